package report

import (
	"fmt"
	"slices"

	"github.com/ringlimit/ringlimit/bench/load"
)

// Names of the targets that a single table is measured for.
const (
	DecideTarget = "decide"
	BareTarget   = "bytes"
	NamedTarget  = "bytes with names"
	GCTarget     = "gc"
	StallTarget  = "stall"
)

// Shapes: where the processes are.
const (
	inProcess  = "in process"  // the counters are the caller's
	inside     = "inside"      // a gateway and an owner, both in the caller's process
	oneOwner   = "one owner"   // the caller is the gateway; the owner is a process
	twoOwners  = "two owners"  // … and so are two
	threeNodes = "three nodes" // a client, and each node is a process
	twoNodes   = "two nodes"   // a client, a node that owns everything and one that forwards
	tenInside  = "ten inside"  // ten nodes in the caller's process
	table      = "table"       // no node at all
)

// The keys of the loads.
const keys, million, hot = "uniform-10k", "uniform-1M", "one"

// TableTargets are those of Targets.
func TableTargets() []Target {
	return slices.DeleteFunc(Targets(), func(t Target) bool { return t.Name == "" })
}

// Targets is the table "to reach" of the project's plan for speed. The bounds for a
// forwarded check are those of a prototype with both ends in one process, which is the
// shape inside; what is apart is held to the same.
func Targets() []Target {
	return slices.Concat(forwardTargets(), serviceTargets(), memoryTargets(), otherTargets())
}

func in(rival string, callers int, keys string) Place {
	return Place{rival, load.Cell{Callers: callers, Keys: keys}}
}

func times(least, aim float64) Bound { return Bound{Least: least, Aim: aim} }

func most(most, aim float64) Bound { return Bound{Least: most, Aim: aim, AtMost: true} }

// ratio compares two rivals in one cell.
func ratio(what, shape, ours, theirs string, callers int, keys string, m Metric, b Bound) Target {
	return Target{What: what, Shape: shape, Ours: in(ours, callers, keys), Theirs: []Place{in(theirs, callers, keys)}, Metric: m, Bound: b}
}

// after notes what the prototype reached.
func (t Target) after(prototype string) Target {
	t.Prototype = prototype
	return t
}

// hops are the shapes that a forwarded check is measured in, and who is compared there.
func hops() []hop {
	return []hop{
		{inside, "ringlimit-inside", "tcp-inside", "unary-inside"},
		{oneOwner, "ringlimit-forward-one", "tcp-one", "unary-one"},
		{twoOwners, "ringlimit-forward", "tcp", "unary"},
	}
}

type hop struct{ shape, ours, tcp, unary string }

// everywhere is a target in each of the shapes of a hop.
func everywhere(what, prototype string, theirs func(hop) string, callers int, m Metric, b Bound) (all []Target) {
	for _, h := range hops() {
		all = append(all, ratio(what, h.shape, h.ours, theirs(h), callers, keys, m, b).after(prototype))
	}
	return all
}

func forwardTargets() []Target {
	unary := func(h hop) string { return h.unary }
	tcp := func(h hop) string { return h.tcp }
	const one, two = "ringlimit-forward-one", "ringlimit-forward"
	return slices.Concat(
		everywhere("forwarded check against plain grpc-go unary, 64 callers", "13–18", unary, 64, Rate, times(10, 14)),
		everywhere("forwarded check against plain grpc-go unary, 256 callers", "20–23", unary, 256, Rate, times(15, 20)),
		everywhere("forwarded check against bare TCP with the same batching, 64 callers", "0.53–0.84", tcp, 64, Rate, times(0.5, 0.7)),
		everywhere("forwarded check against bare TCP with the same batching, 256 callers", "0.53–0.84", tcp, 256, Rate, times(0.5, 0.7)),
		everywhere("forwarded check against plain grpc-go unary, one caller, p50", "0.43–0.49", unary, 1, P50, most(0.6, 0.45)),
		[]Target{
			ratio("forwarded check against Redis + Lua through go-redis, 64 callers", oneOwner, one, "redis", 64, keys, Rate, times(9, 11)).after("12"),
			ratio("forwarded check against best pipelined EVALSHA, 64 callers", oneOwner, one, "redis-pipelined", 64, keys, Rate, times(5, 6)).after("6–7"),
			ratio("forwarded check against gubernator's one remote key, 64 callers", oneOwner, one, "gubernator-embedded", 64, hot, Rate, times(30, 50)),
			ratio("standby credit auto against none, 64 callers", twoOwners, "ringlimit-forward-auto", two, 64, keys, Rate, times(0.6, 0.75)),
			hotKey(oneOwner, one), hotKey(twoOwners, two),
			{What: "allocations per forwarded check, both ends, 64 callers", Shape: inside, Prototype: "0.3–0.4", Ours: in("ringlimit-inside", 64, keys), Metric: Allocs, Bound: most(1, 0.5)},
		},
	)
}

func hotKey(shape, ours string) Target {
	return Target{
		What: "hot key: all traffic on one key against uniform, 64 callers", Shape: shape, Prototype: "1.2",
		Ours: in(ours, 64, hot), Theirs: []Place{in(ours, 64, keys)}, Metric: Rate, Bound: times(0.9, 0),
	}
}

func serviceTargets() []Target {
	const client = "ringlimit-client"
	return []Target{
		ratio("client/ over its stream, against gubernator's client, 64 callers", threeNodes, client, "gubernator", 64, keys, Rate, times(30, 50)),
		ratio("client/ over its stream, against a unary gRPC front with unary forwarding, 64 callers", threeNodes, client, "mesh", 64, keys, Rate, times(12, 20)).after("25"),
		ratio("client/ over its stream, against a unary gRPC front with unary forwarding, 256 callers", threeNodes, client, "mesh", 256, keys, Rate, times(20, 30)).after("40"),
		ratio("unary gRPC Check against gubernator's, 64 callers", threeNodes, "ringlimit-grpc", "gubernator", 64, keys, Rate, times(3, 4)),
		ratio("CheckBatch of 1,000, 8 callers, against gubernator's", threeNodes, "ringlimit-grpc-1000", "gubernator-1000", 8, keys, Rate, times(10, 20)),
		ratio("forwarding tax at the unary gRPC door (CPU of the nodes)", twoNodes, "grpc-forwarded", "grpc-owned", 64, keys, ServerCPU, most(1.35, 1.2)).after("1.2"),
		ratio("forwarding tax at /v1/authorize (CPU of the nodes)", twoNodes, "authorize-forwarded", "authorize-owned", 64, keys, ServerCPU, most(1.7, 1.4)).after("1.4–1.6"),
	}
}

// memoryTargets are measured by another command.
func memoryTargets() []Target {
	all := []Target{
		{What: "decision in memory against the same table without lock, 10⁷ uniform in frames of 64", Prototype: "1.2", Bound: most(1.5, 1.2), Name: DecideTarget},
		{What: "bytes per counter at 10⁷, without the key's text", Prototype: "54", Bound: most(80, 64), Name: BareTarget},
		{What: "bytes per counter at 10⁷, with it", Prototype: "97", Bound: most(130, 105), Name: NamedTarget},
		{What: "GC CPU at 10⁷ counters against map[string]*state", Prototype: "1/10,000", Bound: most(1.0/500, 0), Name: GCTarget},
		{What: "longest stall of a caller at 10⁷ counters, p99.99 beyond an idle run, ms", Bound: most(5, 1), Name: StallTarget},
	}
	for i := range all {
		all[i].Shape, all[i].Elsewhere = table, "go run . table"
	}
	return all
}

func otherTargets() []Target {
	denied := in("ringlimit-denied", 1, hot)
	return []Target{
		fastest(1, hot), fastest(1, million), fastest(64, hot), fastest(64, million),
		{What: "deny-cache hit, ns of CPU", Shape: inProcess, Prototype: "49", Ours: denied, Metric: Nanos, Bound: most(150, 60)},
		{What: "deny-cache hit, allocations", Shape: inProcess, Ours: denied, Metric: Allocs, Bound: most(0.01, 0)},
		ratio("1,024 callers: CPU against a unary mesh", tenInside, "ringlimit-ten", "mesh-ten", 1024, keys, CPU, most(1.0/6, 1.0/8)).after("1/10"),
	}
}

func fastest(callers int, keys string) Target {
	t := Target{
		What:  fmt.Sprintf("Node.Check on an owned key against the fastest Go limiter, %s, %d callers", keys, callers),
		Shape: inProcess, Ours: in("ringlimit-owner", callers, keys), Metric: Rate, Bound: times(1, 2),
	}
	for _, other := range []string{"x-time-rate", "throttled", "go-limiter"} {
		t.Theirs = append(t.Theirs, in(other, callers, keys))
	}
	return t
}
