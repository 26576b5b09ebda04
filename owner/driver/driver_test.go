package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithoutCancel(t.Context()))
}

func rule(t testing.TB, d limit.Durability, most int64) *limit.Rule {
	t.Helper()
	r, err := limit.NewRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: most, Window: 1000 * time.Hour, Durability: d})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// call charges the i-th counter.
func call(r *limit.Rule, partition func(uint64) int, i int) *owner.Call {
	name := fmt.Appendf(nil, "counter %d", i)
	id := owner.Seed(1).ID(name)
	return &owner.Call{ID: id, Partition: partition(id.Hi), Charge: limit.Charge{Counter: name, Rule: r, Cost: 1}}
}

func (m *mesh) take(n *node, r *limit.Rule, i int, patience time.Duration) (limit.Verdict, error) {
	now := m.clock.Now()
	var v limit.Verdict
	err := n.Decide(m.t.Context(), now, now+int64(patience), call(r, n.partition, i), &v)
	return v, err
}

func (n *node) partition(hash uint64) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.core.Ring().Partition(hash)
}

const patience = 50 * time.Millisecond

func TestFirstNodeServesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		r := rule(t, limit.DurabilityAuto, 5)
		for i := range 6 {
			if v, err := m.take(a, r, 0, patience); err != nil || v.Allowed != (i < 5) {
				t.Errorf("check %d: %+v, %v", i, v, err)
			}
		}
		if s := a.Stats(); s.Acquiring != 0 || s.Fenced || !a.Serving() {
			t.Errorf("%+v", s)
		}
	})
}

// A check of a node that is just acquiring waits, and is decided with what came.
func TestCheckWaitsForItsPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		r := rule(t, limit.DurabilityAuto, 1)
		const counters = 64
		for i := range counters {
			if v, err := m.take(a, r, i, patience); err != nil || !v.Allowed {
				t.Fatal(v, err)
			}
		}
		b := m.add("b")
		m.gossip()
		b.become(membership.Serving) // and does not wait until it holds
		waited, denied := 0, 0
		for i := range counters {
			began := time.Now()
			v, err := m.take(b, r, i, patience)
			elsewhere, moved := errors.AsType[*transfer.NotMine](err)
			switch {
			case moved && elsewhere.Hint != "a":
				t.Errorf("counter %d: hint %q", i, elsewhere.Hint)
			case moved:
			case err != nil || v.Allowed:
				t.Errorf("counter %d: %+v, %v", i, v, err)
			default:
				denied++
			}
			if time.Since(began) > 0 {
				waited++
			}
		}
		if waited == 0 || denied == 0 {
			t.Errorf("%d waited, %d were denied", waited, denied)
		}
		if err := b.until(t.Context(), b.serving); err != nil {
			t.Fatal(err)
		}
		for i := range counters {
			for _, n := range []*node{a, b} {
				if v, err := m.take(n, r, i, patience); err == nil && v.Allowed {
					t.Errorf("counter %d was admitted again", i)
				}
			}
		}
	})
}

// A check that has waited for its whole deadline is not counted afterwards.
func TestCheckThatGaveUpIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		m.join("a")
		m.mute("a", true)
		b := m.add("b")
		m.gossip()
		b.become(membership.Serving)
		r := rule(t, limit.DurabilityAuto, 3)
		given := 0
		for i := range 40 {
			switch _, err := m.take(b, r, i, patience); {
			case errors.Is(err, context.DeadlineExceeded):
				given++
			default:
				if _, moved := errors.AsType[*transfer.NotMine](err); !moved {
					t.Errorf("counter %d: %v", i, err)
				}
			}
		}
		if given == 0 {
			t.Fatal("none waited")
		}
		m.mute("a", false)
		if err := b.until(t.Context(), b.serving); err != nil {
			t.Fatal(err)
		}
		if got := b.table.Stats().Counters; got != 0 {
			t.Errorf("%d checks were counted that nobody waited for", got)
		}
	})
}

// A caller who leaves before the deadline is not charged when the partition comes,
// and is given nothing back.
func TestCallerWhoLeftIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		const counters = 80
		r := rule(t, limit.DurabilityAuto, 3)
		for i := range counters {
			if _, err := m.take(a, r, i, patience); err != nil {
				t.Fatal(err)
			}
		}
		m.mute("a", true)
		b := m.add("b")
		m.gossip()
		b.become(membership.Serving)
		left := map[limit.Mode]int{}
		for i := range 2 * counters {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			c, now, v := call(r, b.partition, i/2), m.clock.Now(), limit.Verdict{}
			if i%2 == 1 {
				c.Mode, c.Cost = limit.Refund, 2 // more than the take: the two do not cancel out
			}
			if err := b.Decide(ctx, now, now+int64(time.Minute), c, &v); errors.Is(err, context.DeadlineExceeded) {
				left[c.Mode]++
			}
			cancel()
		}
		if left[limit.Take] == 0 || left[limit.Refund] == 0 {
			t.Fatalf("left: %v", left)
		}
		m.mute("a", false)
		if err := b.until(t.Context(), b.serving); err != nil {
			t.Fatal(err)
		}
		for i := range counters {
			c, now, v := call(r, b.partition, i), m.clock.Now(), limit.Verdict{}
			c.Mode = limit.Peek
			if err := b.Decide(t.Context(), now, now+int64(patience), c, &v); err == nil && v.Remaining != 2 {
				t.Errorf("counter %d: %d remain, want 2", i, v.Remaining)
			}
		}
	})
}

// With `sync` a reply waits for the copy, a message there and one back; with a
// slack it does not.
func TestReplyWaitsForItsCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		m.join("b")
		time.Sleep(time.Second) // the copies are complete
		for d, want := range map[limit.Durability]time.Duration{
			limit.DurabilitySync: 2 * latency, limit.DurabilityAuto: 0, limit.DurabilityNone: 0,
		} {
			r, taken := rule(t, d, 1000), 0
			for i := range 50 {
				began := time.Now()
				v, err := m.take(a, r, i, patience)
				if err != nil {
					continue // b has it
				}
				taken++
				if took := time.Since(began); !v.Allowed || took != want {
					t.Errorf("%v: %+v after %v, want %v", d, v, took, want)
				}
			}
			if taken == 0 {
				t.Error("a holds none of 50 counters")
			}
			a.seen.mu.Lock()
			if n := len(a.seen.waits); want > 0 && (n != taken || a.seen.waits[0] != want) || want == 0 && n > 0 {
				t.Errorf("%v: %d of %d checks were timed: %v", d, n, taken, a.seen.waits)
			}
			a.seen.waits = nil
			a.seen.mu.Unlock()
		}
		if s := a.Stats(); s.Unguarded != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A standby that says nothing holds a reply up for 40 ms, once.
func TestSilentStandbyHoldsUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		m.join("b")
		time.Sleep(time.Second)
		m.mute("b", true)
		r := rule(t, limit.DurabilitySync, 1000)
		var longest time.Duration
		for i := range 50 {
			began := time.Now()
			if _, err := m.take(a, r, i, time.Second); err == nil {
				longest = max(longest, time.Since(began))
			}
		}
		if longest < 30*time.Millisecond || longest > 60*time.Millisecond {
			t.Errorf("the longest wait was %v", longest)
		}
		if _, err := m.take(a, r, 1, time.Second); err == nil && a.Stats().Unguarded == 0 {
			t.Error("without a standby, and no figure says so")
		}
	})
}

// answers is an owner.Late.
type answers struct{ got chan owner.Result }

func (a answers) Answer(_ uint64, _ int, r owner.Result) { a.got <- r }

// The calls of a frame are answered at once, or later, or elsewhere.
func TestFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		m.join("b")
		time.Sleep(time.Second)
		var calls []owner.Call
		sync, auto := rule(t, limit.DurabilitySync, 9), rule(t, limit.DurabilityAuto, 9000)
		for i := range 20 {
			calls = append(calls, *call(sync, a.partition, i), *call(auto, a.partition, 100+i))
		}
		late, results := answers{make(chan owner.Result, 100)}, make([]owner.Result, len(calls))
		now := m.clock.Now()
		a.DecideFrame(now, now+int64(patience), calls, results, late, 7)
		later, decided, elsewhere := 0, 0, 0
		for i, r := range results {
			hint, moved := errors.AsType[*transfer.NotMine](r.Err)
			switch {
			case moved && hint.Hint == "b" && hint.Ring == a.Fingerprint():
				elsewhere++
			case r.Err == owner.ErrLater && i%2 == 0:
				later++
			case r.Err == nil && r.Verdict.Allowed && i%2 == 1:
				decided++
			default:
				t.Errorf("call %d: %+v", i, r)
			}
		}
		if later == 0 || decided == 0 || elsewhere == 0 {
			t.Errorf("%d later, %d decided, %d elsewhere", later, decided, elsewhere)
		}
		time.Sleep(10 * latency)
		for range later {
			if r := <-late.got; r.Err != nil || !r.Verdict.Allowed {
				t.Errorf("later: %+v", r)
			}
		}
		if len(late.got) > 0 {
			t.Error("answered twice")
		}
	})
}

// A node without contact stops deciding after a second, and refuses; when it is
// back it goes on, but not with what was asked meanwhile.
func TestFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		m.join("b")
		time.Sleep(time.Second)
		m.mute("b", true)
		time.Sleep(1200 * time.Millisecond)
		r := rule(t, limit.DurabilityAuto, 5)
		for i := range 20 {
			if _, err := m.take(a, r, i, patience); !errors.Is(err, owner.ErrNotHolder) {
				t.Errorf("counter %d behind the fence: %v", i, err)
			}
		}
		if s := a.Stats(); !s.Fenced || a.Serving() || a.seen.stopped != 1 {
			t.Errorf("%+v, stopped %d times", s, a.seen.stopped)
		}
		m.mute("b", false)
		if err := a.until(t.Context(), func() bool { return !a.core.Fenced() }); err != nil {
			t.Fatal(err)
		}
		frame := []owner.Call{*call(r, a.partition, 1)}
		results, now := make([]owner.Result, 1), m.clock.Now()
		a.DecideFrame(now, now+int64(patience), frame, results, answers{}, 1)
		if !errors.Is(results[0].Err, owner.ErrNotHolder) {
			t.Errorf("a frame that waited out the fence: %+v", results[0])
		}
		time.Sleep(time.Second)
		if !a.Serving() {
			t.Error("does not serve again")
		}
	})
}

// A process that another replaces under its name decides nothing.
func TestSuperseded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		twin := a.cfg.Self
		twin.Boot = 99
		a.Members(membership.NewView([]membership.Member{a.cfg.Self, twin}))
		if _, err := m.take(a, rule(t, limit.DurabilityAuto, 5), 0, patience); !errors.Is(err, owner.ErrNotHolder) || !a.Superseded() {
			t.Errorf("decides: %v", err)
		}
		if err := a.Drain(t.Context()); err != nil {
			t.Errorf("has something to give: %v", err)
		}
	})
}

// Of those that only join, the lowest boot begins.
func TestEnter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		nodes := []*node{m.add("c"), m.add("a"), m.add("b")}
		m.gossip()
		entered := make(chan membership.NodeID, 3)
		for _, n := range nodes {
			go func() {
				if n.Enter(t.Context()) == nil {
					entered <- n.self.ID
					_ = n.Serve(t.Context())
				}
			}()
		}
		for _, want := range []membership.NodeID{"c", "", ""} {
			if id := <-entered; want != "" && id != want {
				t.Errorf("%s entered, want %s", id, want)
			}
		}
		time.Sleep(time.Second)
		holding := 0
		for _, n := range nodes {
			holding += n.table.Stats().Holding
		}
		if holding != 1024 {
			t.Errorf("%d partitions are held, want each by one", holding)
		}
	})
}

// What a node holds goes to the others, and when it cannot, the error says so.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		b := m.join("b")
		r := rule(t, limit.DurabilityAuto, 1)
		for i := range 100 {
			for _, n := range []*node{a, b} {
				_, _ = m.take(n, r, i, patience)
			}
		}
		m.mute("b", true)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := a.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "partitions were not handed over") {
			t.Errorf("drained: %v", err)
		}
		m.mute("b", false)
		if err := a.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * latency)
		if held := b.table.Stats(); held.Holding != 1024 || held.Counters != 100 {
			t.Errorf("the other has %+v", held)
		}
		if _, err := m.take(a, r, 1, patience); !errors.Is(err, owner.ErrNotHolder) {
			t.Errorf("decides after it has drained: %v", err)
		}
	})
}

// A partition of which this node has long kept a copy takes as long to come as any
// other.
func TestCopyIsNotAcquiredForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a, b := m.join("a"), m.join("b")
		time.Sleep(30 * time.Second)
		before := b.seen.in
		if err := a.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b.seen.in == before || b.seen.longest == 0 || b.seen.longest > 5*time.Second {
			t.Errorf("%d partitions came, the last within %v", b.seen.in-before, b.seen.longest)
		}
	})
}

// A flood of checks that wait for one partition is refused, not collected.
func TestParkedChecksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		m.join("a")
		m.mute("a", true)
		b := m.add("b")
		m.gossip()
		b.become(membership.Serving)
		r := rule(t, limit.DurabilityAuto, 3)
		i := 0
		for b.core.Phase(call(r, b.partition, i).Partition) != owner.Acquiring {
			i++
		}
		calls := make([]owner.Call, mostParked+10)
		for j := range calls {
			calls[j] = *call(r, b.partition, i)
		}
		late, results := answers{make(chan owner.Result, len(calls))}, make([]owner.Result, len(calls))
		send := func() (parked int) {
			now := m.clock.Now()
			b.DecideFrame(now, now+int64(patience), calls, results, late, 1)
			for _, r := range results {
				if r.Err == owner.ErrLater {
					parked++
				}
			}
			return parked
		}
		if n := send(); n != mostParked {
			t.Errorf("%d checks wait, want %d", n, mostParked)
		}
		time.Sleep(2 * patience)
		if n := send(); n != mostParked {
			t.Errorf("when the first have given up %d wait, want %d", n, mostParked)
		}
	})
}

// Checks that nobody waits for any more are not kept until their partition comes.
func TestOverdueChecksAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		m.join("a")
		m.mute("a", true)
		b := m.add("b")
		m.gossip()
		b.become(membership.Serving)
		parked := func() (n int) {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, q := range b.parked.queues {
				n += len(q.calls)
			}
			return n
		}
		r := rule(t, limit.DurabilityAuto, 3)
		var callers sync.WaitGroup
		for i := range 200 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				now, v := m.clock.Now(), limit.Verdict{}
				deadline := now + int64(patience)
				if i%2 == 1 {
					deadline += int64(time.Hour) // the caller leaves before
				}
				_ = b.Decide(ctx, now, deadline, call(r, b.partition, i), &v)
			})
		}
		synctest.Wait()
		if parked() == 0 {
			t.Fatal("none waits")
		}
		callers.Wait()
		time.Sleep(500 * time.Millisecond)
		if n := parked(); n > 0 || len(b.parked.queues) > 0 {
			t.Errorf("%d checks are kept, in %d queues", n, len(b.parked.queues))
		}
	})
}

// A full queue is looked through when one of its checks may be over, and not
// before.
func TestFullQueueIsNotSearchedInVain(t *testing.T) {
	g := parking{queues: map[int]*queue{}}
	add := func(now, deadline int64) bool { return g.add(now, 1, &parked{deadline: deadline, to: answers{}}) }
	for i := range int64(mostParked) {
		add(0, 100+i)
	}
	g.queues[1].calls[5].deadline = 0 // found by any search
	if add(99, 200) {
		t.Error("searched before the earliest deadline")
	}
	for range 2 { // the one whose time has come, and the other
		if !add(100, 200) {
			t.Error("no room after it")
		}
	}
	if soonest := g.queues[1].soonest; soonest != 101 {
		t.Errorf("the earliest deadline is %d, want 101", soonest)
	}
}

// Members that were declared dead by mistake are told so, until they contradict.
func TestFalselyDeadReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		b := m.join("b")
		m.mute("b", true)
		a.Members(membership.NewView([]membership.Member{a.cfg.Self})) // each buries the other
		b.Members(membership.NewView([]membership.Member{b.cfg.Self}))
		time.Sleep(time.Minute)
		m.mute("b", false)
		m.gossip()
		time.Sleep(2 * time.Second)
		if n := a.table.Stats().Holding + b.table.Stats().Holding; n != 1024 || a.Fingerprint() != b.Fingerprint() {
			t.Errorf("%d partitions are held, want each by one", n)
		}
	})
}
