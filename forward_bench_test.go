package ringlimit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/ringlimit/ringlimit/internal/floor"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// turns is how often contenders take turns in a run, so that a noisy neighbour slows
// all of them.
const turns = 20

// BenchmarkForwarded is Node.Check of counters that the other of two nodes owns,
// against what carries the counter's name to an owner.Table and the verdict back with
// nothing else: plain grpc-go unary calls, and bare TCP with the same batching.
// unary-x and tcp-x compare checks a second, unary-cpu-x and tcp-cpu-x processor time a
// check: more is better for us. p50-x is our median wait over unary's: less is better.
func BenchmarkForwarded(b *testing.B) {
	owning := onLoopback(b, Config{Name: "owner", Rules: parseRules(b, benchRules)})
	gateway := onLoopback(b, Config{Name: "gateway", Rules: parseRules(b, benchRules), Forwarder: true}, owning)
	defer leaveAll(b, owning, gateway)
	decide := tableDecides(firstRule(owning))
	unary, tcp := floor.Unary(b, decide), floor.TCP(b, decide)
	keys := benchKeys(10_000)
	names := make([][]byte, len(keys))
	for i := range keys {
		names[i] = []byte("default\x00global\x00" + keys[i])
	}
	ours := func(_, i int) error { return askForwarded(gateway, keys[i%len(keys)]) }
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			var check, u, t floor.Run
			for range turns {
				check.Add(measure(b, callers, b.N/turns+1, ours))
				u.Add(measure(b, callers, b.N/turns/8+1, asking(unary, callers, names)))
				t.Add(measure(b, callers, b.N/turns+1, asking(tcp, callers, names)))
			}
			warm := measure(b, callers, b.N, ours) // turns empty the pools
			b.ReportMetric(check.Rate(), "checks/s")
			b.ReportMetric(check.CPU(), "cpu-ns/check")
			b.ReportMetric(warm.AllocsPer(), "allocs/check")
			b.ReportMetric(check.Rate()/u.Rate(), "unary-x")
			b.ReportMetric(u.CPU()/check.CPU(), "unary-cpu-x")
			b.ReportMetric(check.Rate()/t.Rate(), "tcp-x")
			b.ReportMetric(t.CPU()/check.CPU(), "tcp-cpu-x")
			if callers == 1 {
				b.ReportMetric(check.P50(), "p50-ns")
				b.ReportMetric(check.P50()/u.P50(), "p50-x")
				b.ReportMetric(check.P50()/t.P50(), "tcp-p50-x")
			}
		})
	}
}

func measure(tb testing.TB, callers, n int, ask func(caller, i int) error) floor.Run {
	tb.Helper()
	r, err := floor.Measure(callers, n, ask)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%08d", i)
	}
	return keys
}

var errNotForwarded = errors.New("the owner has not admitted it")

func askForwarded(n *Node, key string) error {
	v, err := n.Check(context.Background(), Request{Key: key, Route: "POST /v1/charges"})
	if err == nil && (v.Source != limit.SourceForwarded || !v.Allowed) {
		return errNotForwarded
	}
	return err
}

// tableDecides has a table of its own decide, and packs the verdict as peers do.
func tableDecides(rule *limit.Rule) floor.Decide {
	const partitions, seed = 1024, owner.Seed(1)
	clock := limit.NewClock()
	table := owner.NewTable(owner.Config{Partitions: partitions, Now: clock.Now})
	for p := range partitions {
		table.SetPhase(p, owner.Holding)
	}
	table.Learn(rule)
	return func(answer, name []byte) []byte {
		id := seed.ID(name)
		call := owner.Call{ID: id, Partition: int(id.Hi % partitions), Charge: limit.Charge{Counter: name, Rule: rule, Cost: 1}}
		var v limit.Verdict
		if table.Decide(clock.Now(), &call, &v) != nil || !v.Allowed {
			return answer
		}
		answer = append(answer, 1, byte(v.Reason))
		for _, n := range [...]int64{v.Limit, v.Remaining, int64(v.RetryAfter), int64(v.Delay), int64(v.ResetAfter)} {
			answer = binary.AppendUvarint(answer, uint64(n))
		}
		return answer
	}
}

// asking asks for counters by their names, each caller with room of its own.
func asking(ask floor.Asker, callers int, names [][]byte) func(caller, i int) error {
	room := make([][64]byte, callers)
	return func(caller, i int) error {
		answer, err := ask(room[caller][:0], names[i%len(names)])
		if err == nil && len(answer) == 0 {
			return errNotForwarded
		}
		return err
	}
}
