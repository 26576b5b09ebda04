package ringlimit

import (
	"context"
	"fmt"
	"testing"

	"github.com/ringlimit/ringlimit/internal/floor"
	"github.com/ringlimit/ringlimit/owner"
)

// BenchmarkMesh is ten nodes in this process and 1,024 callers who are spread over
// them, with copies by the default durability and without, against ten that ask each
// other with plain unary calls and have nothing but a table. A tenth of the checks is
// decided where it is asked. unary-cpu-x compares processor time a check.
func BenchmarkMesh(b *testing.B) {
	const nodes, callers = 10, 1024
	set := parseRules(b, `
tiers:
  default:
    - {name: global, algorithm: token_bucket, limit: 1000000000, window: 1s, durability: none}
  copied:
    - {name: global, algorithm: token_bucket, limit: 1000000000, window: 1s}
`)
	cluster := []*Node{onLoopback(b, Config{Name: "node-0", Rules: set})}
	for i := 1; i < nodes; i++ {
		cluster = append(cluster, onLoopback(b, Config{Name: fmt.Sprintf("node-%d", i), Rules: set}, cluster[0]))
	}
	defer leaveAll(b, cluster...)
	waitForCopies(b, cluster...)
	keys := benchKeys(10_000)
	check := func(tier string) func(caller, i int) error {
		return func(caller, i int) error {
			v, err := cluster[caller%nodes].Check(context.Background(), Request{Key: keys[i%len(keys)], Route: "POST /v1/charges", Tier: tier})
			if err == nil && !v.Allowed {
				return errNotForwarded
			}
			return err
		}
	}
	mesh := unaryMesh(b, cluster[0], nodes, keys)
	var none, auto, unary floor.Run
	for range turns {
		none.Add(measure(b, callers, b.N/turns+1, check("")))
		auto.Add(measure(b, callers, b.N/turns+1, check("copied")))
		unary.Add(measure(b, callers, b.N/turns/6+1, mesh))
	}
	b.ReportMetric(none.CPU(), "cpu-ns/check")
	b.ReportMetric(none.AllocsPer(), "allocs/check")
	b.ReportMetric(unary.CPU()/none.CPU(), "unary-cpu-x")
	b.ReportMetric(unary.CPU()/auto.CPU(), "copied-unary-cpu-x")
}

// unaryMesh has an owner for each counter, and between each two nodes a way of its own.
func unaryMesh(b *testing.B, n *Node, nodes int, keys []string) func(caller, i int) error {
	decides := make([]floor.Decide, nodes)
	ways := make([][]floor.Asker, nodes)
	for to := range nodes {
		decides[to] = tableDecides(firstRule(n))
		for range nodes {
			ways[to] = append(ways[to], floor.Unary(b, decides[to]))
		}
	}
	names, owners := make([][]byte, len(keys)), make([]int, len(keys))
	for i, key := range keys {
		names[i] = []byte("default\x00global\x00" + key)
		owners[i] = int(owner.Seed(2).ID(names[i]).Hi % uint64(nodes))
	}
	return func(caller, i int) error {
		i %= len(keys)
		from, to := caller%nodes, owners[i]
		var room [64]byte
		if from == to {
			_ = decides[to](room[:0], names[i])
			return nil
		}
		_, err := ways[to][from](room[:0], names[i])
		return err
	}
}
