package ringlimit

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ringlimit/ringlimit/internal/floor"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// meshRules has the default durability in the tier that a request without one gets.
// A check is forgotten after an hour, so that the counters of a run are all there.
const meshRules = `
tiers:
  default:
    - {name: global, algorithm: token_bucket, limit: 1000000, window: 876000h}
  uncopied:
    - {name: global, algorithm: token_bucket, limit: 1000000, window: 876000h, durability: none}
`

// mesh is nodes in this process, over loopback, and what they send each other.
type mesh struct {
	nodes     []*Node
	sent      traffic
	forwarded atomic.Int64 // of the checks by counting
	lost      atomic.Int64 // checks without an owner's verdict: the machine stood still
}

func newMesh(b *testing.B, nodes int, memory int64) *mesh {
	m, set := new(mesh), parseRules(b, meshRules)
	for i := range nodes {
		cfg := Config{Name: fmt.Sprintf("node-%d", i), Rules: set, Memory: memory, dial: m.sent.dial}
		m.nodes = append(m.nodes, onLoopback(b, cfg, m.nodes...))
	}
	b.Cleanup(func() { leaveAll(b, m.nodes...) })
	waitForCopies(b, m.nodes...)
	return m
}

// asking spreads the callers over the nodes.
func (m *mesh) asking(tier string, keys []string) func(caller, i int) error {
	return m.askingFor(tier, func(i int) string { return keys[i%len(keys)] })
}

func (m *mesh) askingFor(tier string, key func(i int) string) func(caller, i int) error {
	return func(caller, i int) error {
		_, err := m.check(caller, Request{Key: key(i), Route: "POST /v1/charges", Tier: tier})
		return err
	}
}

func (m *mesh) check(caller int, req Request) (Verdict, error) {
	v, err := m.nodes[caller%len(m.nodes)].Check(context.Background(), req)
	switch {
	case err != nil:
	case v.Source == limit.SourceFallback:
		m.lost.Add(1)
	case !v.Allowed:
		err = errNotForwarded
	}
	return v, err
}

// counting is asking that takes note of who has decided.
func (m *mesh) counting(keys []string) func(caller, i int) error {
	return func(caller, i int) error {
		v, err := m.check(caller, Request{Key: keys[i%len(keys)], Route: "POST /v1/charges"})
		if v.Source == limit.SourceForwarded {
			m.forwarded.Add(1)
		}
		return err
	}
}

// BenchmarkMesh is 3, 10 and 20 nodes in this process and callers who are spread over
// them, with copies by the default durability and without, against as many that ask
// each other with plain unary calls and have nothing but a table. Of N checks one is
// decided where it is asked. unary-cpu-x compares processor time a check.
//
// With 1,024 callers the machine is full, and frames are; with one caller a node each
// frame has one record, as on machines that have time to spare.
func BenchmarkMesh(b *testing.B) {
	for _, nodes := range []int{3, 10, 20} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			m, keys := newMesh(b, nodes, 0), benchKeys(10_000)
			unary := newUnaryMesh(b, m.nodes[0], nodes, func(i int) string { return keys[i%len(keys)] })
			for _, callers := range []int{nodes, 1024} {
				b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { m.compare(b, callers, keys, unary.ask) })
			}
		})
	}
}

func (m *mesh) compare(b *testing.B, callers int, keys []string, askUnary func(caller, i int) error) {
	lost := m.lost.Load()
	var none, auto, unary floor.Run
	for range turns {
		none.Add(measure(b, callers, b.N/turns+1, m.asking("uncopied", keys)))
		auto.Add(measure(b, callers, b.N/turns+1, m.asking("", keys)))
		unary.Add(measure(b, callers, b.N/turns/6+1, askUnary))
	}
	b.ReportMetric(auto.CPU(), "copied-cpu-ns/check")
	b.ReportMetric(none.CPU(), "cpu-ns/check")
	b.ReportMetric(none.AllocsPer(), "allocs/check")
	b.ReportMetric(unary.CPU()/none.CPU(), "unary-cpu-x")
	b.ReportMetric(unary.CPU()/auto.CPU(), "copied-unary-cpu-x")
	b.ReportMetric(none.Rate()/unary.Rate(), "unary-x")
	m.reportTraffic(b, callers, keys)
	b.ReportMetric(float64(m.lost.Load()-lost)/float64(none.N+auto.N+b.N), "lost-share")
}

// reportTraffic asks as often again.
func (m *mesh) reportTraffic(b *testing.B, callers int, keys []string) {
	frames, bytes, forwarded := m.sent.frames.Load(), m.sent.bytes.Load(), m.forwarded.Load()
	measure(b, callers, b.N, m.counting(keys))
	n := float64(m.forwarded.Load() - forwarded)
	b.ReportMetric(n/float64(m.sent.frames.Load()-frames), "records/frame")
	b.ReportMetric(float64(m.sent.bytes.Load()-bytes)/n, "bytes/forwarded")
}

// unaryMesh has an owner for each counter, and between each two nodes a way of its own.
type unaryMesh struct {
	key    func(i int) string
	decide []floor.Decide  // by owner
	ways   [][]floor.Asker // by owner and who asks
}

func newUnaryMesh(b *testing.B, n *Node, nodes int, key func(i int) string) *unaryMesh {
	m := &unaryMesh{key: key, ways: make([][]floor.Asker, nodes)}
	for to := range nodes {
		m.decide = append(m.decide, tableDecides(firstRule(n)))
		for range nodes {
			m.ways[to] = append(m.ways[to], floor.Unary(b, m.decide[to]))
		}
	}
	return m
}

func (m *unaryMesh) ask(caller, i int) error {
	var name, answer [64]byte
	counter, to := m.locate(name[:0], i)
	from := caller % len(m.ways)
	if from == to {
		_ = m.decide[to](answer[:0], counter)
		return nil
	}
	_, err := m.ways[to][from](answer[:0], counter)
	return err
}

// here decides without a call.
func (m *unaryMesh) here(_, i int) error {
	var name, answer [64]byte
	counter, to := m.locate(name[:0], i)
	_ = m.decide[to](answer[:0], counter)
	return nil
}

func (m *unaryMesh) locate(name []byte, i int) (counter []byte, to int) {
	counter = append(append(name, "default\x00global\x00"...), m.key(i)...)
	return counter, int(owner.Seed(2).ID(counter).Hi % uint64(len(m.ways)))
}
