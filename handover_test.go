package ringlimit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// Rules whose windows do not end during a test.
const handoverRules = `
tiers:
  default:
    - {name: log, algorithm: sliding_window_log, limit: 50, window: 24h}
  counter:
    - {name: counter, algorithm: sliding_window_counter, limit: 50, window: 240h}
  bucket:
    - {name: bucket, algorithm: token_bucket, limit: 50, window: 8760h}
  big:
    - {name: big, algorithm: token_bucket, limit: 1000, window: 87600h, on_failure: deny}
  sync:
    - {name: sync, algorithm: token_bucket, limit: 1000, window: 87600h, durability: sync, on_failure: deny}
  none:
    - {name: none, algorithm: token_bucket, limit: 1000, window: 87600h, durability: none, on_failure: deny}
`

const manyKeys = 120

// useUp takes all that there is of many keys, at different nodes.
func useUp(t *testing.T, nodes []*Node) {
	t.Helper()
	for i := range manyKeys {
		req := keyed(i)
		for {
			req.Cost = 10
			if v := check(t, nodes[i%len(nodes)], req); !v.Allowed {
				break
			}
		}
	}
}

func keyed(i int) Request {
	return Request{Key: fmt.Sprintf("cust_%d", i), Tier: []string{"default", "counter", "bucket"}[i%3]}
}

// expectUsedUp asks for every key at every node: an owner must refuse it.
func expectUsedUp(t *testing.T, nodes []*Node) {
	t.Helper()
	extra, unanswered := 0, 0
	for i := range manyKeys {
		for _, n := range nodes {
			switch v := check(t, n, keyed(i)); {
			case v.Source == limit.SourceFallback:
				unanswered++
			case v.Allowed:
				extra++
			}
		}
	}
	if extra > 0 || unanswered > 0 {
		t.Errorf("%d more were admitted, and %d checks had no owner's verdict", extra, unanswered)
	}
}

func TestJoinMovesCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		nodes := cluster(t, m, 2, set)
		useUp(t, nodes)
		nodes = append(nodes, start(t, m.config(t, 2, set)))
		defer func() { stop(t, nodes...) }()
		if got := nodes[2].table.Stats().Holding; got < 250 {
			t.Errorf("the new node is ready and holds %d partitions", got)
		}
		expectUsedUp(t, nodes)
		settle(t, nodes...)
		expectUsedUp(t, nodes)
		if got := nodes[2].table.Stats().Counters; got == 0 {
			t.Error("the new node has no counters")
		}
	})
}

func TestLeaveMovesCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		nodes := cluster(t, m, 3, set)
		useUp(t, nodes)
		if err := nodes[1].Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		rest := []*Node{nodes[0], nodes[2]}
		defer stop(t, rest...)
		expectUsedUp(t, rest)
	})
}

// While all nodes are restarted one by one, under load, no key gets more than
// its limit, and every check has an owner's verdict.
func TestRollingRestart(t *testing.T) {
	rollingRestart(t, (*load).start)
}

func rollingRestart(t *testing.T, ask func(*load, *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		nodes := cluster(t, m, 3, set)
		var mu sync.RWMutex // guards nodes
		at := func(i int) *Node {
			mu.RLock()
			defer mu.RUnlock()
			return nodes[i]
		}
		l := newLoad(at, 3)
		ask(l, t)
		for i := range nodes {
			time.Sleep(time.Second)
			l.avoid(i)
			if err := nodes[i].Leave(t.Context()); err != nil {
				t.Errorf("%s: %v", nodes[i].Name(), err)
			}
			cfg := m.config(t, i, set)
			cfg.Join = []string{host((i+1)%3) + ":7703"}
			n := start(t, cfg)
			mu.Lock()
			nodes[i] = n
			mu.Unlock()
			l.avoid(-1)
		}
		time.Sleep(time.Second)
		l.stop()
		if l.unanswered > 0 {
			t.Errorf("%d of %d checks had no owner's verdict", l.unanswered, l.asked)
		}
		l.expectAtMost(t, 50)
		stop(t, nodes...)
	})
}

// load asks for many keys, more often than they have budget.
type load struct {
	at    func(int) *Node
	nodes int
	done  chan struct{}
	wait  sync.WaitGroup

	mu                sync.Mutex
	avoided           int
	admitted          map[string]int
	asked, unanswered int
	silent            time.Duration // the longest time without an owner's verdict, of one client
}

func newLoad(at func(int) *Node, nodes int) *load {
	return &load{at: at, nodes: nodes, done: make(chan struct{}), avoided: -1, admitted: map[string]int{}}
}

func (l *load) start(t *testing.T) {
	for c := range 4 {
		l.wait.Go(func() { l.client(t, c) })
	}
}

// turns asks one node after the other until the load ends. i is the turn.
func (l *load) turns(client int, ask func(i, node int)) {
	for i := client * 31; ; i++ {
		select {
		case <-l.done:
			return
		case <-time.After(5 * time.Millisecond):
		}
		n := i % l.nodes
		if n == l.avoids() {
			n = (n + 1) % l.nodes
		}
		ask(i, n)
	}
}

func (l *load) client(t *testing.T, c int) {
	answered := time.Now()
	l.turns(c, func(i, n int) {
		req := keyed(i % manyKeys)
		v, err := l.at(n).Check(t.Context(), req)
		if err != nil {
			t.Errorf("%s: %v", l.at(n).Name(), err)
			return
		}
		if v.Source != limit.SourceFallback {
			answered = time.Now()
		}
		l.note(req.Key, v, time.Since(answered))
	})
}

func (l *load) note(key string, v Verdict, silent time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	l.silent = max(l.silent, silent)
	switch {
	case v.Source == limit.SourceFallback:
		l.unanswered++
	case v.Allowed:
		l.admitted[key]++
	}
}

func (l *load) avoid(i int) {
	l.mu.Lock()
	l.avoided = i
	l.mu.Unlock()
	time.Sleep(100 * time.Millisecond) // for those under way
}

func (l *load) avoids() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.avoided
}

func (l *load) stop() {
	close(l.done)
	l.wait.Wait()
}

func (l *load) expectAtMost(t *testing.T, most int) {
	t.Helper()
	for key, n := range l.admitted {
		if n > most {
			t.Errorf("%s: owners admitted %d of %d", key, n, most)
		}
	}
}

// When the owner crashes its counters live on in their copies: nothing is lost
// below a limit of 100, and the others answer in milliseconds.
func TestCrash(t *testing.T) { crash(t, (*load).start) }

func crash(t *testing.T, ask func(*load, *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		nodes := cluster(t, m, 3, set)
		time.Sleep(time.Second)
		l := newLoad(func(i int) *Node { return nodes[i] }, 2)
		ask(l, t)
		time.Sleep(3 * time.Second)
		m.kill(2)
		time.Sleep(5 * time.Second)
		l.stop()
		l.expectAtMost(t, 50)
		if l.silent > 25*time.Millisecond {
			t.Errorf("a client was without an owner's verdict for %v", l.silent)
		}
		nodes[2].close(t.Context())
		stop(t, nodes[:2]...)
	})
}

// What a crash can cost is by the rule's durability.
func TestCrashByDurability(t *testing.T) {
	for tier, most := range map[string]int64{"big": 1010, "sync": 1000, "none": 2000} {
		t.Run(tier, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				nodes := cluster(t, m, 3, parseRules(t, handoverRules))
				time.Sleep(time.Second)
				key := ownedBy(t, nodes[0], tier, "node-2")
				var admitted int64
				take := func() bool {
					v := check(t, nodes[0], Request{Key: key, Tier: tier})
					if v.Allowed {
						admitted++
					}
					return v.Allowed
				}
				for range 700 {
					take()
				}
				m.kill(2)
				time.Sleep(500 * time.Millisecond)
				for range 2000 {
					take()
				}
				if admitted > most || admitted < 1000 {
					t.Errorf("admitted %d, want 1000 to %d", admitted, most)
				}
				if tier == "none" && admitted < 1700 {
					t.Errorf("admitted %d: a copy was kept", admitted)
				}
				nodes[2].close(t.Context())
				stop(t, nodes[:2]...)
			})
		})
	}
}

// A node that restarts at once after a crash gets its counters back from the
// copies.
func TestRestartAfterCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		nodes := cluster(t, m, 3, set)
		useUp(t, nodes)
		time.Sleep(time.Second)
		m.kill(2)
		nodes[2].close(t.Context())
		m.revive(2)
		nodes[2] = start(t, m.config(t, 2, set))
		defer func() { stop(t, nodes...) }()
		settle(t, nodes...)
		expectUsedUp(t, nodes)
	})
}

// A node whose clock was set back between two runs gets in again: the others
// remember a later run than this one, and tell it.
func TestRestartWithClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		cfg := m.config(t, 1, set)
		cfg.boot = newBootID() + 1<<42 // some 73 minutes ahead
		nodes := []*Node{start(t, m.config(t, 0, set)), start(t, cfg)}
		settle(t, nodes...)
		useUp(t, nodes)
		time.Sleep(time.Second)
		m.kill(1)
		nodes[1].close(t.Context())
		time.Sleep(20 * time.Second) // and is forgotten by the gossip, not by the other
		m.revive(1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		again, err := Start(ctx, m.config(t, 1, set))
		if err != nil {
			t.Fatal(err)
		}
		if again.self.Boot != cfg.boot+1 {
			t.Errorf("boot %v, want one more than %v", again.self.Boot, cfg.boot)
		}
		nodes[1] = again
		settle(t, nodes...)
		expectUsedUp(t, nodes)
		stop(t, nodes...)
	})
}

// A node that is cut off stops deciding within about a second, before the others
// go on without it. When it is back, no counter is younger than it was.
func TestCutOffNodeIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		nodes := cluster(t, m, 3, set)
		useUp(t, nodes)
		time.Sleep(time.Second)
		m.isolate(2)
		time.Sleep(1500 * time.Millisecond)
		if !nodes[2].driver.Stats().Fenced {
			t.Error("decides on, cut off from everybody")
		}
		if err := nodes[2].Ready(); err != nil {
			t.Errorf("not ready (%v), as all would be in a network that is down", err)
		}
		m.heal(2)
		for deadline := time.Now().Add(2 * time.Minute); !decides(nodes[2]); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("does not serve again")
			}
		}
		defer stop(t, nodes...)
		settle(t, nodes...)
		time.Sleep(time.Second)
		expectUsedUp(t, nodes)
	})
}

func decides(n *Node) bool {
	s := n.driver.Stats()
	return !s.Fenced && s.Acquiring == 0
}

// Long enough for each side to bury the other. Then they find each other again,
// and count together.
func TestPartitionHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		nodes := cluster(t, m, 3, set)
		time.Sleep(time.Second)
		m.isolate(2)
		time.Sleep(35 * time.Second) // after 30 memberlist forgets
		for i := range manyKeys {    // each side uses up what it has
			for _, n := range nodes {
				for check(t, n, Request{Key: keyed(i).Key, Tier: keyed(i).Tier, Cost: 10}).Allowed {
				}
			}
		}
		m.heal(2)
		settle(t, nodes...)
		time.Sleep(2 * time.Second)
		defer stop(t, nodes...)
		expectUsedUp(t, nodes)
	})
}

// Three that start at once, each with the others as Join, become one cluster and
// wait for nobody.
func TestColdStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		nodes := make([]*Node, 3)
		began := time.Now()
		var all sync.WaitGroup
		for i := range nodes {
			cfg := m.config(t, i, set)
			cfg.Join = []string{host(0) + ":7703", host(1) + ":7703", host(2) + ":7703"}
			all.Go(func() { nodes[i] = start(t, cfg) })
		}
		all.Wait()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		settle(t, nodes...)
		useUp(t, nodes)
		expectUsedUp(t, nodes)
		left := time.Now()
		for _, n := range nodes { // and all leave at once
			all.Go(func() {
				if err := n.Leave(t.Context()); err != nil {
					t.Errorf("%s: %v", n.Name(), err)
				}
			})
		}
		all.Wait()
		if took := time.Since(left); took > 5*time.Second {
			t.Errorf("leaving took %v", took)
		}
		time.Sleep(lingering)
	})
}

// A node that leaves waits for one that joins, or the counters would go with it.
func TestLeaveBesideAJoiner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		a := start(t, m.config(t, 0, set))
		useUp(t, []*Node{a})
		time.Sleep(time.Second)
		var b *Node
		var joining sync.WaitGroup
		joining.Go(func() { b = start(t, m.config(t, 1, set)) })
		for len(a.Members()) < 2 {
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := a.Leave(ctx); err != nil {
			t.Error(err)
		}
		joining.Wait()
		expectUsedUp(t, []*Node{b})
		stop(t, b)
	})
}

// Who cannot give its counters away says how many were lost, at its deadline.
func TestLeaveMissesItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := cluster(t, m, 2, parseRules(t, handoverRules))
		useUp(t, nodes)
		m.isolate(0)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := nodes[1].Leave(ctx)
		if err == nil || !strings.Contains(err.Error(), "partitions were not handed over") {
			t.Errorf("left: %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		m.heal(0)
		stop(t, nodes[0])
	})
}

// A node that is closed in the middle of what it gives and takes leaves nothing
// running.
func TestShutdownInMidTransfer(t *testing.T) {
	for _, after := range []time.Duration{0, 300 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, set := newMemory(), parseRules(t, handoverRules)
				nodes := cluster(t, m, 2, set)
				useUp(t, nodes)
				ctx, cancel := context.WithCancel(t.Context())
				joined := make(chan struct{})
				go func() {
					defer close(joined)
					if n, err := Start(ctx, m.config(t, 2, set)); err == nil {
						n.close(t.Context())
					}
				}()
				time.Sleep(after)
				cancel()
				<-joined
				stop(t, nodes...)
			})
		})
	}
}
