package ringlimit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
)

// reply is what CheckAll has answered.
type reply struct {
	Verdict
	err   error
	after time.Duration // since the call
}

// askAll is CheckAll with the answers as values. That one index is answered twice,
// two answers overlap, or one is missing, is an error.
func askAll(t testing.TB, ctx context.Context, n *Node, reqs []Request) []reply {
	t.Helper()
	var one sync.Mutex
	replies, answered, began := make([]reply, len(reqs)), make([]int, len(reqs)), time.Now()
	n.CheckAll(ctx, reqs, func(i int, v *Verdict, err error) {
		if !one.TryLock() {
			t.Error("two answers at once")
			return
		}
		defer one.Unlock()
		if answered[i]++; (v == nil) != (err != nil) {
			t.Errorf("%d: the verdict is %v, the error %v", i, v, err)
		}
		if replies[i].err, replies[i].after = err, time.Since(began); v != nil {
			replies[i].Verdict = *v
		}
	})
	for i, n := range answered {
		if n != 1 {
			t.Errorf("%d was answered %d times", i, n)
		}
	}
	return replies
}

// Of two limits of one request at most one ever refuses: what the other has taken
// would be given back in the background, and the next check might come before it.
const manyRules = `
tiers:
  default:
    - {name: all, algorithm: token_bucket, limit: 5, window: 24h}
  several:
    - {name: few, algorithm: token_bucket, limit: 5, window: 24h}
    - {name: window, algorithm: fixed_window, limit: 1000, window: 24h}
  shadow:
    - {name: tried, algorithm: token_bucket, limit: 2, window: 24h, shadow: true}
    - {name: all, algorithm: token_bucket, limit: 4, window: 24h}
  user:
    - {name: user, by: ["attribute user"], on_missing: deny, algorithm: token_bucket, limit: 1000, window: 24h}
  sync:
    - {name: sync, algorithm: sliding_window_log, limit: 4, window: 24h, durability: sync}
  routes:
    - {name: write, route_pattern: "POST /*", algorithm: token_bucket, limit: 3, window: 24h}
    - {name: all, algorithm: token_bucket, limit: 5, window: 24h}
`

func drawRequest(r *rand.Rand) Request {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	req := Request{
		Key:   pick("a", "b", "c", "d", ""),
		Tier:  pick("", "", "", "several", "shadow", "user", "sync", "routes", "unheard-of"),
		Route: pick("", "GET /", "POST /x"),
		Cost:  []int64{0, 0, 1, 2, 9}[r.IntN(5)],
		Peek:  r.IntN(5) == 0,
	}
	if r.IntN(2) == 0 {
		req.Attributes = map[string]string{"user": pick("u", "v")}
	}
	return req
}

// Requests that are asked for together are answered as one by one, those of one key in
// their order, whichever owners and limits they have. The clock stands still.
func TestLawCheckAllIsManyChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, newMemory(), 3, parseRules(t, manyRules))
		defer stop(t, nodes...)
		time.Sleep(2 * time.Second) // the copies are complete
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		for run := range 150 {
			reqs := make([]Request, r.IntN(60))
			for i := range reqs {
				reqs[i] = drawRequest(r)
			}
			n := nodes[r.IntN(len(nodes))]
			together := askAll(t, t.Context(), n, named(reqs, fmt.Sprint("together-", run)))
			for i, req := range named(reqs, fmt.Sprint("alone-", run)) {
				v, err := n.Check(t.Context(), req)
				if got, want := describeAll(&together[i].Verdict, together[i].err), describeAll(&v, err); got != want {
					t.Fatalf("seed %d, run %d, %d, %+v: together %s, alone %s", seed, run, i, req, got, want)
				}
			}
		}
	})
}

// named gives the requests keys of their own; an empty one is a fault that stays.
func named(reqs []Request, name string) []Request {
	reqs = slices.Clone(reqs)
	for i := range reqs {
		if reqs[i].Key != "" {
			reqs[i].Key = name + reqs[i].Key
		}
	}
	return reqs
}

// describeAll leaves out who has decided, for other keys are other nodes', and of
// several limits what may be shown by a view.
func describeAll(v *Verdict, err error) string {
	text := fmt.Sprint(v.Allowed, v.Reason, len(v.Limits()), err)
	if v.Rule != nil && v.Limits() == nil {
		text += fmt.Sprint(v.Rule.Name, v.Limit, v.Remaining, v.RetryAfter, v.ResetAfter, v.Delay)
	}
	return text
}

// Batches at all nodes at once charge each counter to the last unit and not beyond.
func TestCheckAllTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, newMemory(), 3, parseRules(t, handoverRules))
		var mu sync.Mutex
		admitted := map[string]int{}
		var callers sync.WaitGroup
		for c := range 6 {
			callers.Go(func() {
				for range 12 {
					reqs := make([]Request, 700)
					for i := range reqs {
						reqs[i] = keyed(rand.IntN(manyKeys))
					}
					replies := askAll(t, t.Context(), nodes[c%3], reqs)
					mu.Lock()
					for i, r := range replies {
						if r.Allowed {
							admitted[reqs[i].Key]++
						}
					}
					mu.Unlock()
				}
			})
		}
		callers.Wait()
		for i := range manyKeys {
			if n := admitted[keyed(i).Key]; n != 50 {
				t.Errorf("key %d: admitted %d of 50", i, n)
			}
		}
		stop(t, nodes...)
	})
}

// startBatches is start with clients that ask for many keys at once, some of them
// twice.
func (l *load) startBatches(t *testing.T) {
	for c := range 4 {
		l.wait.Go(func() { l.batchClient(t, c) })
	}
}

func (l *load) batchClient(t *testing.T, c int) {
	answered := time.Now()
	l.turns(c, func(i, n int) {
		reqs := make([]Request, 16)
		for k := range reqs {
			reqs[k] = keyed((i + k%12*7) % manyKeys)
		}
		for k, r := range askAll(t, t.Context(), l.at(n), reqs) {
			if r.err != nil {
				t.Errorf("%s: %v", l.at(n).Name(), r.err)
			}
			if r.Source != limit.SourceFallback {
				answered = time.Now()
			}
			l.note(reqs[k].Key, r.Verdict, time.Since(answered))
		}
	})
}

func TestCheckAllWhileNodesRestart(t *testing.T) {
	rollingRestart(t, (*load).startBatches)
}

func TestCheckAllWhenTheOwnerCrashes(t *testing.T) {
	crash(t, (*load).startBatches)
}

// spread is a key of each node's in the tier, by node.
func spread(t *testing.T, n *Node, tier string) (keys [3]string) {
	for i := range keys {
		keys[i] = ownedBy(t, n, tier, membership.NodeID(fmt.Sprintf("node-%d", i)))
	}
	return keys
}

// besideASilentOwner runs a test in a cluster of which the third node does not answer.
// keys has one of each node.
func besideASilentOwner(t *testing.T, test func(t *testing.T, nodes []*Node, keys [3]string)) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := cluster(t, m, 3, parseRules(t, handoverRules))
		defer stop(t, nodes...)
		keys := spread(t, nodes[0], "none")
		m.isolate(2)
		defer m.heal(2)
		test(t, nodes, keys)
	})
}

// An owner that does not answer holds up nobody else's answers. on_failure answers for
// it within the deadline, and each such check is counted as one.
func TestCheckAllWithASilentOwner(t *testing.T) {
	besideASilentOwner(t, func(t *testing.T, nodes []*Node, keys [3]string) {
		var reqs []Request
		for i := range 30 {
			reqs = append(reqs, Request{Key: keys[i%3], Tier: "none"})
		}
		for i, r := range askAll(t, t.Context(), nodes[0], reqs) {
			silent := i%3 == 2
			if r.Allowed == silent || (r.Source == limit.SourceFallback) != silent || r.Rule == nil {
				t.Errorf("%d: %+v", i, r)
			}
			if !silent && r.after > 0 || silent && (r.after < 50*time.Millisecond || r.after > 65*time.Millisecond) {
				t.Errorf("%d was answered after %v", i, r.after)
			}
		}
		if n := testutil.ToFloat64(nodes[0].metrics.failures.WithLabelValues("timeout")); n != 10 {
			t.Errorf("the metric counts %v timeouts, want 10", n)
		}
	})
}

// A caller who gives up is told so at once of all that has no answer yet, and only of
// that.
func TestCheckAllCancelled(t *testing.T) {
	besideASilentOwner(t, func(t *testing.T, nodes []*Node, keys [3]string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(10*time.Millisecond, cancel)
		reqs := []Request{{Key: keys[0], Tier: "none"}, {Key: keys[2], Tier: "none"}, {Key: keys[1], Tier: "none"}, {Key: keys[2], Tier: "none"}}
		for i, r := range askAll(t, ctx, nodes[0], reqs) {
			if silent := i%2 == 1; silent != errors.Is(r.err, context.Canceled) || silent != (r.after == 10*time.Millisecond) {
				t.Errorf("%d: %v after %v", i, r.err, r.after)
			}
		}
		for i, r := range askAll(t, ctx, nodes[0], reqs) { // cancelled before
			if own := i == 0; own == errors.Is(r.err, context.Canceled) || r.after > 0 {
				t.Errorf("%d: %v after %v", i, r.err, r.after)
			}
		}
	})
}

// A check that waits for its copy holds up no other. When the copy does not come in
// time, on_failure answers; while it comes, the wait is timed.
func TestCheckAllWithACopyThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		cfg := m.config(t, 0, set)
		cfg.Deadline = 20 * time.Millisecond // sooner than the standby is given up
		nodes := []*Node{start(t, cfg), start(t, m.config(t, 1, set))}
		settle(t, nodes...)
		defer stop(t, nodes...)
		time.Sleep(2 * time.Second) // the copies are complete
		key := ownedBy(t, nodes[0], "sync", "node-0")
		reqs := []Request{{Key: key, Tier: "sync"}, {Key: ownedBy(t, nodes[0], "none", "node-0"), Tier: "none"}}
		for i, r := range askAll(t, t.Context(), nodes[0], reqs) {
			if r.Source != limit.SourceOwner || !r.Allowed {
				t.Errorf("%d: %+v", i, r)
			}
		}
		m.isolate(1)
		defer m.heal(1)
		replies := askAll(t, t.Context(), nodes[0], reqs)
		if r := &replies[0]; r.Source != limit.SourceFallback || r.after != cfg.Deadline {
			t.Errorf("without a copy: %+v", r)
		}
		if r := &replies[1]; r.Source != limit.SourceOwner || r.after > 0 {
			t.Errorf("that needs no copy: %+v", r)
		}
	})
}

const uncopiedRules = `
tiers:
  default:
    - {name: all, algorithm: token_bucket, limit: 5, window: 24h, durability: none}
  several:
    - {name: few, algorithm: token_bucket, limit: 3, window: 24h, durability: none}
    - {name: window, algorithm: fixed_window, limit: 6, window: 24h, durability: none}
`

// Requests with several limits, which are judged one by one, hold up no others.
func TestCheckAllWithSeveralLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := cluster(t, m, 3, parseRules(t, uncopiedRules))
		defer stop(t, nodes...)
		keys := spread(t, nodes[0], "")
		several := ownedBy(t, nodes[0], "several", "node-2") // the limit that binds
		m.isolate(2)
		defer m.heal(2)
		replies := askAll(t, t.Context(), nodes[0], []Request{{Key: several, Tier: "several"}, {Key: keys[0]}, {Key: keys[1]}})
		if len(replies[0].Limits()) != 2 || replies[0].after < 50*time.Millisecond {
			t.Errorf("several limits: %+v", replies[0])
		}
		if r := &replies[2]; r.after > 0 || !r.Allowed || r.Source != limit.SourceForwarded {
			t.Errorf("one limit: %+v", r)
		}
	})
}

func TestCheckAllOfANodeThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, newMemory().config(t, 0, parseRules(t, manyRules)))
		stop(t, n)
		for _, r := range askAll(t, t.Context(), n, make([]Request, 2)) {
			if r.err != ErrLeft {
				t.Error(r.err)
			}
		}
	})
}

func TestCheckAllOfOwnCountersAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget")
	}
	n, reqs := alone(t), make([]Request, 100)
	for i := range reqs {
		reqs[i] = Request{Key: fmt.Sprint("cust_", i), Route: "POST /v1/charges"}
	}
	ctx, answer := t.Context(), func(int, *Verdict, error) {}
	if a := testing.AllocsPerRun(1000, func() { n.CheckAll(ctx, reqs, answer) }); a > 3 {
		t.Errorf("%v allocations for 100 checks, want 3 at most", a)
	}
}
