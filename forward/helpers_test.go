package forward

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/ring"
)

const (
	self  membership.NodeID = "a"
	other membership.NodeID = "b"
	third membership.NodeID = "c"
)

// params are those of a small ring.
var params = ring.Params{Partitions: 64, VirtualNodes: 20, Load: 1.25}

func ringOf(t testing.TB, ids ...membership.NodeID) *ring.Ring {
	t.Helper()
	r, err := ring.New(params, ids)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ruleOf(t testing.TB, spec limit.Spec) *limit.Rule {
	t.Helper()
	r, err := limit.NewRule(spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tokens is a token bucket of n a minute.
func tokens(t testing.TB, n int64) *limit.Rule {
	return ruleOf(t, limit.Spec{Algorithm: limit.TokenBucket, Limit: n, Window: time.Minute})
}

func withFailure(r *limit.Rule, f limit.OnFailure) *limit.Rule {
	r.OnFailure = f
	return r
}

// table holds all its partitions.
func table(partitions int, now func() int64) *owner.Table {
	t := owner.NewTable(owner.Config{Partitions: partitions, Now: now})
	for p := range partitions {
		t.SetPhase(p, owner.Holding)
	}
	return t
}

// tableLocal is a table that never lets anybody wait.
type tableLocal struct{ *owner.Table }

func (l tableLocal) Decide(_ context.Context, now, _ int64, c *owner.Call, v *limit.Verdict) error {
	return l.Table.Decide(now, c, v)
}

func (l tableLocal) DecideGroup(_ context.Context, now, _ int64, calls []owner.Call, results []owner.Result) {
	l.Table.DecideFrame(now, calls, results)
}

func (l tableLocal) DecideFrame(now, _ int64, calls []owner.Call, results []owner.Result, _ owner.Late, _ uint64) {
	l.Table.DecideFrame(now, calls, results)
}

// localFunc is a Local that is a function.
type localFunc func(ctx context.Context, now, deadline int64, c *owner.Call, v *limit.Verdict) error

func (f localFunc) Decide(ctx context.Context, now, deadline int64, c *owner.Call, v *limit.Verdict) error {
	return f(ctx, now, deadline, c, v)
}

func (f localFunc) DecideGroup(context.Context, int64, int64, []owner.Call, []owner.Result) {
	panic("no test with a localFunc has groups")
}

// DecideFrame decides call by call, and so waits.
func (f localFunc) DecideFrame(now, deadline int64, calls []owner.Call, results []owner.Result, _ owner.Late, _ uint64) {
	for i := range calls {
		results[i] = owner.Result{}
		results[i].Err = f(context.Background(), now, deadline, &calls[i], &results[i].Verdict)
	}
}

// peerFunc is a peer that is a function.
type peerFunc func(ctx context.Context, c *owner.Call, deadline int64) (limit.Verdict, error)

func (f peerFunc) Check(ctx context.Context, c *owner.Call, deadline int64) (limit.Verdict, error) {
	return f(ctx, c, deadline)
}

// Send is that of a peer that knows no groups.
func (f peerFunc) Send(calls []owner.Call, results []owner.Result, deadline int64) Sent {
	return awaitFunc(func(ctx context.Context) {
		if len(calls) > 1 {
			fail(results, ErrNoGroup)
			return
		}
		v, err := f(ctx, &calls[0], deadline)
		results[0] = owner.Result{Verdict: v, Err: err, Taken: err == nil && v.Allowed}
	})
}

// SendEach asks for one after the other, in the background.
func (f peerFunc) SendEach(calls []owner.Call, deadline int64, to *Inbox, first int) {
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].Counter = slices.Clone(calls[i].Counter)
	}
	go func() {
		for i := range calls {
			v, err := f(context.Background(), &calls[i], deadline)
			to.Put(first+i, &owner.Result{Verdict: v, Err: err})
			to.Ring()
		}
	}()
}

// awaitFunc is a Sent that is a function.
type awaitFunc func(ctx context.Context)

func (f awaitFunc) Await(ctx context.Context) { f(ctx) }

func fail(results []owner.Result, err error) {
	for i := range results {
		results[i] = owner.Result{Err: err}
	}
}

// witness records what an observer is told.
type witness struct {
	mu      sync.Mutex
	reasons map[string]int
	active  []bool
	hops    []time.Duration
	waits   []time.Duration
	strange int // answers with another ring's fingerprint
}

func (w *witness) ForwardFailed(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reasons == nil {
		w.reasons = map[string]int{}
	}
	w.reasons[reason]++
}

func (w *witness) Forwarded(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hops = append(w.hops, took)
}

func (w *witness) Waited(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = append(w.waits, took)
}

func (w *witness) RingMismatch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.strange++
}

func (w *witness) FallbackActive(active bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active = append(w.active, active)
}

func (w *witness) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.reasons, w.active)
}

func (w *witness) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.reasons)
}

// answer is Decide with the verdict as a value.
func answer(t *owner.Table, c *owner.Call) (v limit.Verdict, err error) {
	err = t.Decide(wall(), c, &v)
	return v, err
}

// Decide is the router's with the charge and the verdict as values.
func (f *fixture) Decide(ctx context.Context, ch *limit.Charge) (v limit.Verdict, err error) {
	err = f.Router.Decide(ctx, &owner.Call{Charge: *ch}, &v)
	return v, err
}

// fixture is a router, and what it is made of.
type fixture struct {
	*Router
	local   *owner.Table
	witness *witness
	logs    *safeBuffer
}

func wall() int64 { return time.Now().UnixNano() }

func newFixture(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{local: table(params.Partitions, wall), witness: &witness{}, logs: &safeBuffer{}}
	cfg := Config{
		Self: self, Local: tableLocal{f.local}, Fallback: table(1, wall), Seed: 1, Now: wall,
		Observer: f.witness, Logger: slog.New(slog.NewTextHandler(f.logs, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	f.Router = NewRouter(cfg)
	return f
}

// publish makes a ring of self and the peers' nodes, in which only they are
// asked.
func (f *fixture) publish(t testing.TB, peers map[membership.NodeID]Peer) {
	ids := []membership.NodeID{self}
	for id := range peers {
		ids = append(ids, id)
	}
	f.Publish(ringOf(t, ids...), self, func(id membership.NodeID) Peer { return peers[id] })
}

// nameOf is a counter that the node owns.
func (f *fixture) nameOf(t testing.TB, id membership.NodeID) []byte {
	t.Helper()
	for i := range 1000 {
		name := fmt.Appendf(nil, "counter-%d", i)
		if _, owner, _ := f.Locate(name); owner == id {
			return name
		}
	}
	t.Fatalf("%s owns nothing", id)
	return nil
}

func (f *fixture) take(t testing.TB, name []byte, rule *limit.Rule, cost int64) limit.Verdict {
	t.Helper()
	v, err := f.Decide(context.Background(), &limit.Charge{Counter: name, Rule: rule, Cost: cost})
	if err != nil {
		t.Fatalf("Decide: %v", err)
	}
	return v
}

// safeBuffer is a log that several goroutines write.
type safeBuffer struct {
	mu  sync.Mutex
	buf []byte
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	return len(p), nil
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.buf)
}

var _ io.Writer = (*safeBuffer)(nil)

// find is the deny cache's with the verdict as a value.
func find(d *denyCache, now int64, c *owner.Call) (v limit.Verdict, ok bool) {
	ok = d.find(now, c, &v)
	return v, ok
}
