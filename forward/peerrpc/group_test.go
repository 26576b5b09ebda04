package peerrpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// A group is judged whole, or all of it has the error of one of its records; the
// records beside it do not matter.
func TestJudgeGroups(t *testing.T) {
	table, five, hundred := holding(testPartitions), tokens(t, 5), tokens(t, 100)
	table.Learn(five)
	table.Learn(hundred)
	elsewhere := owner.Seed(1).ID([]byte("elsewhere"))
	table.SetPhase(partitionOf(elsewhere.Hi), owner.None)
	take := func(rule *limit.Rule, name string, cost int64) record {
		return record{rule: rule.ID(), cost: cost, name: []byte(name)}
	}
	with := func(r record) record { r.joined = true; return r }
	unknown := take(five, "k", 1)
	unknown.rule++
	peek := take(five, "k", 1)
	peek.mode = limit.Peek
	shadow := take(five, "full", 6)
	shadow.shadow = true
	large := take(hundred, "large", 1)
	for what, c := range map[string]struct {
		records []record
		err     error
		allowed string // of each, y or n
		left    int64  // of the larger limit, afterwards
	}{
		"both pass":         {[]record{take(five, "small", 1), with(large)}, nil, "yy", 99},
		"the first refuses": {[]record{take(five, "full", 6), with(large)}, nil, "ny", 100},
		"the last refuses":  {[]record{large, with(take(five, "full", 6))}, nil, "yn", 100},
		"a shadow refuses":  {[]record{large, with(shadow)}, nil, "yn", 99},
		"beside a group":    {[]record{take(five, "full", 6), large}, nil, "ny", 99},
		"not mine":          {[]record{large, with(take(five, "elsewhere", 1))}, owner.ErrNotHolder, "", 100},
		"unknown, last":     {[]record{large, with(unknown)}, errUnknownRule, "", 100},
		"unknown, first":    {[]record{unknown, with(large)}, errUnknownRule, "", 100},
		"unknown, middle":   {[]record{large, with(unknown), with(take(five, "k", 1))}, errUnknownRule, "", 100},
		"no cost":           {[]record{large, with(take(five, "k", 0)), with(take(five, "k", 1))}, forward.ErrRejected, "", 100},
		"a peek, last":      {[]record{large, with(peek)}, forward.ErrRejected, "", 100},
		"two rules of one":  {[]record{large, with(take(five, "k", 1)), with(take(five, "large", 1))}, forward.ErrRejected, "", 100},
		"one counter twice": {[]record{large, with(take(five, "k", 1)), with(large)}, nil, "yyy", 98},
		"too many":          {append([]record{large}, slices.Repeat([]record{with(take(hundred, "k", 1))}, limit.MaxLimits)...), forward.ErrRejected, "", 100},
		"a peek, first":     {[]record{peek, with(large)}, forward.ErrRejected, "", 100},
	} {
		for p := range testPartitions {
			if p != partitionOf(elsewhere.Hi) {
				table.SetPhase(p, owner.None) // forgets
				table.SetPhase(p, owner.Holding)
			}
		}
		answers := ask(t, serverConfig("owner", table), append(c.records, take(five, "beside", 1))...)
		for i, a := range answers[:len(c.records)] {
			if !errors.Is(a.err, c.err) || c.err == nil && (a.err != nil || a.verdict.Allowed != (c.allowed[i] == 'y')) {
				t.Errorf("%s: answer %d: %+v", what, i, a)
			}
		}
		if a := answers[len(c.records)]; a.err != nil || a.verdict.Remaining != 4 {
			t.Errorf("%s: the record beside it: %+v", what, a)
		}
		large := large
		large.mode = limit.Peek
		if a := ask(t, serverConfig("owner", table), large)[0]; a.verdict.Remaining != c.left {
			t.Errorf("%s: %d left of the larger limit, want %d", what, a.verdict.Remaining, c.left)
		}
	}
	first := with(large)
	cfg := serverConfig("owner", holding(testPartitions))
	if _, _, err := newJudge(&cfg).frame(asking(appendRecord(nil, &first)), nil); !errors.Is(err, errBadFrame) {
		t.Errorf("a frame that begins in the middle of a group: %v", err)
	}
}

func joinedCalls(calls ...*owner.Call) (group []owner.Call, results []owner.Result) {
	for i, c := range calls {
		c.Joined = i > 0
		group = append(group, *c)
	}
	return group, make([]owner.Result, len(calls))
}

// A group crosses the wire: rules that the owner lacks, shadows, and large ones.
func TestGroupsOverAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, holding(testPartitions))
		synctest.Wait()
		shadow := callOf(tokens(t, 1), "shadow", 1)
		shadow.Shadow = true
		calls, results := joinedCalls(callOf(tokens(t, 5), "small", 1), callOf(tokens(t, 100), "large", 1), shadow)
		for i := range 20 {
			p.peer.Send(calls, results, within(time.Second)).Await(context.Background())
			small, large := &results[0], &results[1]
			if want := i < 5; small.Err != nil || small.Verdict.Allowed != want || small.Taken != want || !large.Verdict.Allowed || large.Taken != want {
				t.Fatalf("request %d: %+v", i+1, results)
			}
			if results[2].Taken != (i == 0) || large.Verdict.Remaining != int64(max(95, 99-i)) {
				t.Errorf("request %d: %+v", i+1, results)
			}
		}
		var many []*owner.Call
		for i := range limit.MaxLimits + 1 {
			many = append(many, callOf(tokens(t, 5), fmt.Sprint(i), 1))
		}
		calls, results = joinedCalls(many...)
		n := limit.MaxLimits
		p.peer.Send(calls[:n], results[:n], within(time.Second)).Await(context.Background())
		if !results[n-1].Taken {
			t.Errorf("a large group: %+v", results[n-1])
		}
		p.peer.Send(calls, results, within(time.Second)).Await(context.Background())
		if results[0].Err != forward.ErrNoGroup {
			t.Errorf("a larger one: %+v", results[0])
		}
		calls[1].Cost = 0
		p.peer.Send(calls[:2], results[:2], within(time.Second)).Await(context.Background())
		if results[0].Err != forward.ErrRejected {
			t.Errorf("without a cost: %+v", results[0])
		}
		p.pool.Close()
		p.peer.Send(calls[2:4], results[2:4], within(time.Second)).Await(context.Background())
		if results[3].Err != forward.ErrAbsent {
			t.Errorf("on a closed pool: %+v", results[3])
		}
	})
}

// A Peek and a Refund are sent alone, and take nothing; the Refund with its age, which
// it has when it arrives, or not at all.
func TestSendAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, there := newNetwork(), make(chan struct{})
		serve(t, serverConfig("owner", holding(testPartitions)), n.listen("owner:1"))
		pool := newPool(t, func(ctx context.Context, addr string) (net.Conn, error) {
			<-there
			return n.dial(ctx, addr)
		})
		peer, rule := pool.Peer(ownerMember), hourly(t, limit.FixedWindow, 9)
		send := func(mode limit.Mode, age time.Duration) owner.Result {
			c := callOf(rule, "k", 1)
			c.Mode, c.Age = mode, age
			calls, results := joinedCalls(c)
			peer.Send(calls, results, within(time.Second)).Await(context.Background())
			return results[0]
		}
		if r := send(limit.Refund, time.Second); r.Err != forward.ErrAbsent {
			t.Errorf("a refund before there is a stream: %+v", r)
		}
		close(there)
		synctest.Wait()
		for _, step := range []struct {
			mode  limit.Mode
			age   time.Duration
			left  int64
			taken bool
		}{
			{limit.Take, 0, 8, true}, {limit.Peek, 0, 8, false}, {limit.Refund, 2 * time.Hour, 8, false},
			{limit.Refund, time.Nanosecond, 8, false}, {limit.Refund, 0, 9, false}, {limit.Peek, 0, 9, false},
		} {
			if r := send(step.mode, step.age); r.Err != nil || r.Taken != step.taken || r.Verdict.Remaining != step.left {
				t.Errorf("%+v: %+v", step, r)
			}
		}
	})
}

// What an owner has taken is known only once all answers to a group are there: a
// refund of anything else would mint.
func TestTakenOrNotKnown(t *testing.T) {
	yes, no := owner.Result{Verdict: limit.Verdict{Allowed: true}}, owner.Result{}
	missing := owner.Result{Err: forward.ErrTimeout}
	for _, c := range []struct {
		results []owner.Result
		shadow  bool // the last one
		taken   string
	}{
		{[]owner.Result{yes, yes}, false, "yy"},
		{[]owner.Result{yes, no}, false, "nn"},
		{[]owner.Result{yes, no}, true, "yn"},
		{[]owner.Result{yes, missing}, false, "nn"},
		{[]owner.Result{missing, yes, yes}, true, "nnn"},
	} {
		calls := make([]owner.Call, len(c.results))
		calls[len(calls)-1].Shadow = c.shadow
		conclude(calls, c.results)
		for i, r := range c.results {
			if r.Taken != (c.taken[i] == 'y') {
				t.Errorf("%+v: call %d is taken: %v", c, i, r.Taken)
			}
		}
	}
}

// older is an owner of the version before groups, that knows nothing of what came
// later.
type older struct {
	peerpb.UnimplementedPeerServer
	cfg     ServerConfig
	strange atomic.Int64 // records that it could not have read
}

func (s *older) Checks(stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]) error {
	if err := stream.SendHeader(metadata.Pairs(versionKey, strconv.Itoa(grouped-1))); err != nil {
		return err
	}
	return newAnswerer(&s.cfg, &readingAlong{stream, s}).run()
}

type readingAlong struct {
	grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]
	s *older
}

func (r *readingAlong) RecvMsg(m any) error {
	err := r.BidiStreamingServer.RecvMsg(m)
	for rest := m.(*peerpb.Frame).Records; err == nil && len(rest) > 0; {
		var rec record
		head := rest[0]
		if rest, err = cutRecord(rest, &rec); head&^(modeMask|withBody) != 0 {
			r.s.strange.Add(1)
		}
	}
	return err
}

// An owner of the version before is asked for each call by itself, and a refund is
// lost rather than given back without its age: that could mint.
func TestOldOwnerKnowsNoGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, n := holding(testPartitions), newNetwork()
		o := &older{cfg: serverConfig("owner", table)}
		g := grpc.NewServer(serverOptions()...)
		peerpb.RegisterPeerServer(g, o)
		go g.Serve(n.listen("owner:1"))
		peer := newPool(t, n.dial).Peer(ownerMember)
		t.Cleanup(g.Stop)
		synctest.Wait()
		calls, results := joinedCalls(callOf(tokens(t, 5), "small", 1), callOf(tokens(t, 100), "large", 1))
		peer.Send(calls, results, within(time.Second)).Await(context.Background())
		if results[0].Err != forward.ErrNoGroup || results[1].Err != forward.ErrNoGroup {
			t.Errorf("a group: %+v", results)
		}
		back := callOf(tokens(t, 5), "small", 1)
		if _, err := peer.Check(context.Background(), back, within(time.Second)); err != nil {
			t.Error(err)
		}
		back.Mode, back.Age = limit.Refund, time.Millisecond
		if _, err := peer.Check(context.Background(), back, within(time.Second)); err != forward.ErrRejected {
			t.Errorf("a refund: %v", err)
		}
		calls, results = joinedCalls(back)
		if peer.Send(calls, results, within(time.Second)).Await(context.Background()); results[0].Err != forward.ErrRejected {
			t.Errorf("a refund that is sent and then awaited: %+v", results[0])
		}
		if o.strange.Load() != 0 {
			t.Errorf("it was sent %d records that it cannot read", o.strange.Load())
		}
	})
}

// gatewaysOf is a settled cluster.
func gatewaysOf(t *testing.T, ids ...membership.NodeID) (gateways []*gateway) {
	n := newNetwork()
	for _, id := range ids {
		gateways = append(gateways, newGateway(t, n, id))
	}
	for _, g := range gateways {
		g.believe(t, ids...)
		t.Cleanup(g.Close)
	}
	synctest.Wait()
	return gateways
}

func hourly(t testing.TB, a limit.Algorithm, n int64) *limit.Rule {
	t.Helper()
	spec := limit.Spec{Algorithm: a, Limit: n, Window: time.Hour}
	if a == limit.LeakyBucket {
		spec.Burst = n - 1
	}
	r, err := limit.NewRule(spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func allAlgorithms() []limit.Algorithm {
	return []limit.Algorithm{limit.TokenBucket, limit.LeakyBucket, limit.FixedWindow, limit.SlidingWindowLog, limit.SlidingWindowCounter}
}

// nameOn is a counter that the node owns.
func (g *gateway) nameOn(t *testing.T, id membership.NodeID, n int) []byte {
	for i := range 10_000 {
		name := fmt.Appendf(nil, "%d-%d", n, i)
		if _, at, _ := g.Locate(name); at == id {
			return name
		}
	}
	t.Fatalf("%s owns nothing", id)
	return nil
}

func (g *gateway) left(rule *limit.Rule, name []byte) int64 {
	c, v := owner.Call{Charge: limit.Charge{Counter: name, Rule: rule, Cost: 1, Mode: limit.Peek}}, limit.Verdict{}
	if g.Decide(context.Background(), &c, &v) != nil || v.Source == limit.SourceFallback {
		return -1
	}
	return v.Remaining
}

// Case G47 in a cluster: 5/h and 100/h of other owners, 20 requests through each
// node in turn.
func TestG47InACluster(t *testing.T) {
	for _, a := range allAlgorithms() {
		synctest.Test(t, func(t *testing.T) {
			nodes := gatewaysOf(t, "a", "b", "c")
			small, large := nodes[0].nameOn(t, "a", 1), nodes[0].nameOn(t, "b", 2)
			five, hundred := hourly(t, a, 5), hourly(t, a, 100)
			admitted := 0
			for i := range 20 {
				calls := []owner.Call{{Charge: limit.Charge{Counter: small, Rule: five, Cost: 1}}, {Charge: limit.Charge{Counter: large, Rule: hundred, Cost: 1}}}
				var v [2]limit.Verdict
				if err := nodes[i%3].DecideAll(context.Background(), calls, v[:]); err != nil {
					t.Fatal(err)
				}
				if v[0].Allowed {
					admitted++
				}
				synctest.Wait()
			}
			if left := nodes[2].left(hundred, large); admitted != 5 || left != 95 {
				t.Errorf("%v: %d admitted, %d of 100 left", a, admitted, left)
			}
		})
	}
}

// Many requests with overlapping limits, through all nodes at once: what is
// admitted was charged, and nothing else, and no limit is exceeded.
func TestOverlappingGroupsInACluster(t *testing.T) {
	for _, a := range allAlgorithms() {
		synctest.Test(t, func(t *testing.T) { overlap(t, a) })
	}
}

func overlap(t *testing.T, a limit.Algorithm) {
	const counters, most = 9, 40
	ids := []membership.NodeID{"a", "b", "c"}
	nodes, rule := gatewaysOf(t, ids...), hourly(t, a, most)
	var names [counters][]byte
	var admitted [counters]atomic.Int64
	for i := range names {
		names[i] = nodes[0].nameOn(t, ids[i%3], i)
	}
	var wg sync.WaitGroup
	for w := range 12 {
		rng := rand.New(rand.NewPCG(uint64(w), 3))
		wg.Go(func() {
			for range 25 {
				at := rng.Perm(counters)[:1+rng.IntN(4)]
				calls, v := make([]owner.Call, len(at)), make([]limit.Verdict, len(at))
				for n, i := range at {
					calls[n].Charge = limit.Charge{Counter: names[i], Rule: rule, Cost: 1}
				}
				if err := nodes[w%3].DecideAll(context.Background(), calls, v); err != nil {
					t.Error(err)
				}
				passed := true
				for n := range v {
					passed = passed && v[n].Allowed
				}
				for _, i := range at {
					if passed {
						admitted[i].Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	synctest.Wait() // for refunds
	refused := false
	for i := range names {
		n, left := admitted[i].Load(), nodes[0].left(rule, names[i])
		if n > most || left != most-n {
			t.Errorf("%v, counter %d: %d admitted of %d, %d left", a, i, n, most, left)
		}
		refused = refused || left == 0
	}
	for _, g := range nodes {
		if n := g.failed.Load(); n != 0 {
			t.Errorf("%s: %d checks or refunds failed", g.id, n)
		}
	}
	if !refused {
		t.Error("no counter came to its limit: this has tested little")
	}
}
