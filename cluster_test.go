package ringlimit

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustAddrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func parseRules(t testing.TB, text string) *rules.Set {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// cluster starts n nodes and waits until each sees all.
func cluster(t *testing.T, m *memory, n int, set *rules.Set) []*Node {
	t.Helper()
	nodes := make([]*Node, n)
	for i := range nodes {
		nodes[i] = start(t, m.config(t, i, set))
	}
	settle(t, nodes...)
	return nodes
}

func start(t *testing.T, cfg Config) *Node {
	t.Helper()
	n, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// settle waits until the nodes agree on who serves.
func settle(t *testing.T, nodes ...*Node) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if agree(nodes) {
			return
		}
	}
	t.Fatalf("no agreement: %v", nodes[0].Members())
}

func agree(nodes []*Node) bool {
	for _, n := range nodes {
		if len(membership.NewView(n.Members()).Owners()) != len(nodes) {
			return false
		}
	}
	return true
}

// lingering is longer than what memberlist starts outlives its Shutdown.
const lingering = 10 * time.Second

// stop ends the nodes, the last started first, and waits until a bubble can end.
func stop(t *testing.T, nodes ...*Node) {
	t.Helper()
	for i := len(nodes) - 1; i >= 0; i-- {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := nodes[i].Leave(ctx); err != nil {
			t.Errorf("%s: leave: %v", nodes[i].Name(), err)
		}
		cancel()
	}
	time.Sleep(lingering)
}

func check(t *testing.T, n *Node, req Request) Verdict {
	t.Helper()
	v, err := n.Check(t.Context(), req)
	if err != nil {
		t.Fatalf("%s: %v", n.Name(), err)
	}
	return v
}

const eachAlgorithm = `
tiers:
  default:
    - {name: all, algorithm: sliding_window_log, limit: 100, window: 60s}
  counter:
    - {name: all, algorithm: sliding_window_counter, limit: 100, window: 60s}
  window:
    - {name: all, algorithm: fixed_window, limit: 100, window: 60s}
  bucket:
    - {name: all, algorithm: token_bucket, limit: 100, window: 30m}
  queue:
    - {name: all, algorithm: leaky_bucket, limit: 100, window: 30m, burst: 99}
`

// Whichever node is asked, one counter is charged.
func TestOneCounterWhicheverNodeIsAsked(t *testing.T) {
	for _, tier := range []string{"", "counter", "window", "bucket", "queue"} {
		t.Run(tier, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := cluster(t, newMemory(), 3, parseRules(t, eachAlgorithm))
				defer stop(t, nodes...)
				admitted := 0
				for i := range 150 {
					if check(t, nodes[i%3], Request{Key: "cust_42", Tier: tier}).Allowed {
						admitted++
					}
				}
				if admitted != 100 {
					t.Errorf("admitted %d, want 100", admitted)
				}
				refused := check(t, nodes[0], Request{Key: "cust_42", Tier: tier})
				time.Sleep(refused.RetryAfter.Truncate(time.Millisecond) + time.Millisecond)
				if v := check(t, nodes[1], Request{Key: "cust_42", Tier: tier}); !v.Allowed {
					t.Errorf("refused after waiting %v: %+v", refused.RetryAfter, v)
				}
			})
		})
	}
}

// A key used up is denied with the same numbers at every node (H63).
func TestSameNumbersAtEveryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, newMemory(), 3, parseRules(t, eachAlgorithm))
		defer stop(t, nodes...)
		for range 100 {
			check(t, nodes[0], Request{Key: "k"})
		}
		want := check(t, nodes[0], Request{Key: "k"})
		for _, n := range nodes {
			got := check(t, n, Request{Key: "k"})
			if got.Rule.ID() != want.Rule.ID() { // each node has compiled its own
				t.Errorf("%s judges by rule %+v, %s by %+v", n.Name(), got.Rule, nodes[0].Name(), want.Rule)
			}
			got.Rule, got.Source, want.Source = want.Rule, 0, 0
			if got != want || got.Allowed {
				t.Errorf("%s says %+v, %s said %+v", n.Name(), got, nodes[0].Name(), want)
			}
		}
	})
}

func TestNodesAgreeOnOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, newMemory(), 3, parseRules(t, eachAlgorithm))
		defer stop(t, nodes...)
		owned := map[membership.NodeID]int{}
		for i := range 1000 {
			req := Request{Key: fmt.Sprintf("user-%d", i)}
			first, err := nodes[0].Locate(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range nodes[1:] {
				l, err := n.Locate(t.Context(), req)
				if err != nil || l.Owner != first.Owner || l.Partition != first.Partition {
					t.Fatalf("%s: %+v, %v; %s: %+v", n.Name(), l, err, nodes[0].Name(), first)
				}
			}
			owned[first.Owner]++
		}
		for id, n := range owned {
			if n < 200 || n > 470 {
				t.Errorf("%s owns %d of 1000", id, n)
			}
		}
	})
}

// A node that only forwards owns nothing and limits all the same.
func TestForwarderOwnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		set := parseRules(t, eachAlgorithm)
		nodes := cluster(t, m, 2, set)
		cfg := m.config(t, 2, set)
		cfg.Forwarder = true
		gateway := start(t, cfg)
		defer stop(t, append(nodes, gateway)...)
		if got := gateway.table.Stats().Holding; got != 0 {
			t.Errorf("holds %d partitions", got)
		}
		admitted := 0
		for i := range 150 {
			n := []*Node{gateway, nodes[0], nodes[1]}[i%3]
			if check(t, n, Request{Key: "k"}).Allowed {
				admitted++
			}
		}
		if admitted != 100 {
			t.Errorf("admitted %d, want 100", admitted)
		}
	})
}

// A node that restarts fast after a crash, under its name and address, is the
// owner to the others under its new boot (H58), with the counters it had.
func TestFastRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		set := parseRules(t, eachAlgorithm)
		nodes := cluster(t, m, 3, set)
		key := ownedBy(t, nodes[0], "", "node-2")
		for range 100 {
			check(t, nodes[0], Request{Key: key})
		}
		nodes[2].close(t.Context()) // no goodbye
		nodes[2] = start(t, m.config(t, 2, set))
		settle(t, nodes...)
		defer stop(t, nodes...)
		time.Sleep(time.Second) // settle cannot tell the old boot from the new one
		for _, n := range nodes {
			if v := check(t, n, Request{Key: key}); v.Source == limit.SourceFallback || v.Allowed {
				t.Errorf("%s was not answered by the new boot, with its old counters: %+v", n.Name(), v)
			}
		}
	})
}

// When the owner does not answer, on_failure does, within the deadline (H55).
func TestOwnerUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := cluster(t, m, 3, parseRules(t, `
tiers:
  default:
    - {name: all, algorithm: token_bucket, limit: 9, window: 24h}
  allow:
    - {name: all, algorithm: token_bucket, limit: 9, window: 24h, on_failure: allow}
  deny:
    - {name: all, algorithm: token_bucket, limit: 9, window: 24h, on_failure: deny}
`))
		defer stop(t, nodes...)
		keys := map[string]string{}
		for _, tier := range []string{"default", "allow", "deny"} {
			keys[tier] = ownedBy(t, nodes[0], tier, "node-2")
		}
		m.isolate(2)
		defer m.heal(2)
		admitted := map[string]int{}
		began := time.Now()
		for range 8 { // under two seconds: then the gossip finds out
			for tier, key := range keys {
				if v := check(t, nodes[0], Request{Key: key, Tier: tier}); v.Allowed {
					admitted[tier]++
				}
			}
		}
		if took := time.Since(began); took > 24*65*time.Millisecond {
			t.Errorf("24 checks took %v, want at most the deadline of 50 ms and a scan's delay each", took)
		}
		if admitted["default"] != 3 || admitted["allow"] != 8 || admitted["deny"] != 0 {
			t.Errorf("admitted %v, want 3 (a third of 9), 8 and 0", admitted)
		}
		if n := testutil.ToFloat64(nodes[0].metrics.failures.WithLabelValues("timeout")); n != 24 {
			t.Errorf("the metric counts %v timeouts, want 24", n)
		}
	})
}

// ownedBy finds a key whose counter in the tier this node owns.
func ownedBy(t *testing.T, n *Node, tier string, id membership.NodeID) string {
	t.Helper()
	for i := range 1000 {
		key := fmt.Sprintf("key-%d", i)
		if l, err := n.Locate(t.Context(), Request{Key: key, Tier: tier}); err == nil && l.Owner == id {
			return key
		}
	}
	t.Fatalf("%s owns none of 1000 keys", id)
	return ""
}

// A join address that nobody answers holds Start up for JoinTimeout; the node
// then serves alone, and finds the others when they appear.
func TestJoinAddressThatNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		set := parseRules(t, eachAlgorithm)
		early := start(t, m.config(t, 1, set))
		if !check(t, early, Request{Key: "k"}).Allowed || early.Ready() != nil {
			t.Error("does not serve alone")
		}
		late := start(t, m.config(t, 0, set))
		defer stop(t, early, late)
		settle(t, early, late)
	})
}

// Of two processes under one name the later one is the node: the earlier must
// not decide beside it.
func TestSupersededNodeDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		set := parseRules(t, eachAlgorithm)
		earlier := start(t, m.config(t, 0, set))
		cfg := m.config(t, 1, set)
		cfg.Name, cfg.boot = earlier.Name(), newBootID()+1
		later := start(t, cfg)
		defer stop(t, earlier, later)
		time.Sleep(time.Second)
		if !earlier.driver.Superseded() || later.driver.Superseded() {
			t.Error("the earlier process may decide, or the later one may not")
		}
		if earlier.Ready() == nil || later.Ready() != nil {
			t.Errorf("ready: the earlier %v, the later %v", earlier.Ready(), later.Ready())
		}
		admitted := 0
		for i := range 150 {
			if check(t, []*Node{earlier, later}[i%2], Request{Key: "k"}).Allowed {
				admitted++
			}
		}
		if admitted != 100 {
			t.Errorf("the two admitted %d, want 100", admitted)
		}
	})
}

// A node that leaves decides until the others have heard: at no moment is one of
// its keys without an owner's verdict.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, newMemory(), 3, parseRules(t, eachAlgorithm))
		key := ownedBy(t, nodes[0], "bucket", "node-2")
		left := make(chan error)
		began := time.Now()
		go func() { left <- nodes[2].Leave(context.Background()) }()
		for done := false; !done; time.Sleep(time.Millisecond) {
			for _, n := range nodes[:2] {
				if v := check(t, n, Request{Key: key, Tier: "bucket"}); v.Source == limit.SourceFallback {
					t.Errorf("%s, %v after Leave began: no verdict of an owner: %+v", n.Name(), time.Since(began), v)
				}
			}
			select {
			case err := <-left:
				done = true
				if err != nil || time.Since(began) > time.Second {
					t.Errorf("left after %v: %v", time.Since(began), err)
				}
			default:
			}
		}
		if !agree(nodes[:2]) {
			t.Errorf("Leave is over and unheard: %v", nodes[0].Members())
		}
		if _, err := nodes[2].Check(t.Context(), Request{Key: key}); err != ErrLeft || nodes[2].Ready() == nil {
			t.Errorf("a check after Leave: %v", err)
		}
		stop(t, nodes[:2]...)
	})
}

// A process that starts under the name of a later one is told so.
func TestStartUnderTheNameOfALaterProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		set := parseRules(t, eachAlgorithm)
		cfg := m.config(t, 0, set)
		cfg.boot = newBootID() + 1<<40
		later := start(t, cfg)
		defer stop(t, later)
		cfg = m.config(t, 1, set)
		cfg.Name = later.Name()
		_, err := Start(t.Context(), cfg)
		if wrong, ok := errors.AsType[*ConfigError](err); !ok || wrong.Field != "name" {
			t.Errorf("started: %v", err)
		}
	})
}

// The secret and the cluster's name keep strangers out of the gossip, and the
// secret keeps them from the peer port and hides where keys fall.
func TestStrangersStayOut(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"another secret": func(c *Config) { c.Secret = []byte("the secret of another cluster") },
		"another name":   func(c *Config) { c.Cluster = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				ours := start(t, m.config(t, 0, parseRules(t, eachAlgorithm)))
				cfg := m.config(t, 1, parseRules(t, eachAlgorithm))
				spoil(&cfg)
				stranger := start(t, cfg)
				defer stop(t, ours, stranger)
				time.Sleep(time.Minute)
				if len(ours.Members()) != 1 || len(stranger.Members()) != 1 {
					t.Errorf("they mix: %v", ours.Members())
				}
				if name != "another secret" {
					return
				}
				call := &owner.Call{Charge: limit.Charge{Counter: []byte("c"), Rule: firstRule(ours), Cost: 1}}
				if _, err := stranger.pool.Peer(ours.self).Check(t.Context(), call, stranger.clock.Now()+int64(time.Second)); err == nil {
					t.Error("a stranger's check was answered")
				}
				if samePlaces(t, ours, stranger) {
					t.Error("with two secrets all keys fall on the same partitions")
				}
			})
		})
	}
}

func samePlaces(t *testing.T, a, b *Node) bool {
	t.Helper()
	for i := range 50 {
		req := Request{Key: fmt.Sprintf("key-%d", i)}
		la, _ := a.Locate(t.Context(), req)
		lb, _ := b.Locate(t.Context(), req)
		if la.Partition != lb.Partition {
			return false
		}
	}
	return true
}

// The metrics can be registered again by the next node of the process.
func TestMetricsComeAndGoWithTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		for range 2 {
			cfg := newMemory().config(t, 0, parseRules(t, eachAlgorithm))
			cfg.Registerer = registry
			n := start(t, cfg)
			for range 101 {
				check(t, n, Request{Key: "k"})
			}
			want := `
# HELP ringlimit_members Members of the cluster as this node sees it, itself included.
# TYPE ringlimit_members gauge
ringlimit_members 1
# HELP ringlimit_partitions_owned Partitions that this node holds.
# TYPE ringlimit_partitions_owned gauge
ringlimit_partitions_owned 1024
# HELP ringlimit_counters Counters in memory.
# TYPE ringlimit_counters gauge
ringlimit_counters 1
`
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "ringlimit_members", "ringlimit_partitions_owned", "ringlimit_counters"); err != nil {
				t.Error(err)
			}
			checks := checksTotal(t, registry)
			if a, d := checks["default/all allowed owner"], checks["default/all denied owner"]; a != 100 || d != 1 {
				t.Errorf("counted %v allowed and %v denied, want 100 and 1", a, d)
			}
			stop(t, n)
		}
	})
}
