package ringlimit

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/membership/gossip"
	"github.com/ringlimit/ringlimit/ring"
	"github.com/ringlimit/ringlimit/rules"
	"github.com/ringlimit/ringlimit/rules/live"
)

// logged is a log that several goroutines write.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// window is a tier's body: one fixed_window of an hour with this limit.
func window(n int) []byte {
	return fmt.Appendf(nil, `{"rules":[{"name":"all","algorithm":"fixed_window","limit":%d,"window":"1h"}]}`, n)
}

func bucket(n int) []byte {
	return fmt.Appendf(nil, `{"rules":[{"name":"all","algorithm":"token_bucket","limit":%d,"window":"10h"}]}`, n)
}

func putLimits(t *testing.T, n *Node, tier string, body []byte) {
	t.Helper()
	if _, err := n.PutLimits(tier, body, Precondition{}); err != nil {
		t.Fatal(err)
	}
}

// converge waits until the nodes have the same rules, and returns how long that
// took.
func converge(t *testing.T, most time.Duration, nodes ...*Node) time.Duration {
	t.Helper()
	start := time.Now()
	for ; !sameRules(nodes); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > most {
			t.Fatalf("no agreement within %v: %s", most, summaries(nodes))
		}
	}
	for _, n := range nodes {
		if string(n.LimitsJSON()) != string(nodes[0].LimitsJSON()) {
			t.Fatalf("equal digests, but\n%s\n%s", n.LimitsJSON(), nodes[0].LimitsJSON())
		}
	}
	return time.Since(start)
}

func sameRules(nodes []*Node) bool {
	for _, n := range nodes {
		if n.RulesSummary() != nodes[0].RulesSummary() {
			return false
		}
	}
	return true
}

func summaries(nodes []*Node) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s %+v; ", n.Name(), n.RulesSummary())
	}
	return b.String()
}

func hasLimit(t *testing.T, n *Node, tier string, limit int) {
	t.Helper()
	if body, _, ok := n.Limits(tier); !ok || !strings.Contains(string(body), fmt.Sprintf(`"limit":%d,`, limit)) {
		t.Errorf("%s: tier %s is %s, want limit %d", n.Name(), tier, body, limit)
	}
}

func TestAChangeIsInForceEverywhereWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, newMemory(), 5, parseRules(t, eachAlgorithm))
		defer stop(t, nodes...)
		converge(t, 0, nodes...) // equal files: at once
		if v := nodes[0].RulesSummary().Version; v != 0 {
			t.Errorf("version %d of rules that nobody wrote", v)
		}
		var worst time.Duration
		for i := range 20 {
			putLimits(t, nodes[i%5], "default", window(1000+i))
			worst = max(worst, converge(t, time.Second, nodes...))
			for _, n := range nodes {
				hasLimit(t, n, "default", 1000+i)
			}
			time.Sleep(time.Duration(i) * 37 * time.Millisecond)
		}
		t.Logf("at worst %v", worst)
		time.Sleep(time.Second)
		for _, m := range nodes[3].Members() {
			if m.Rules.Version != 20 || m.Rules != nodes[3].RulesSummary() {
				t.Errorf("%s is said to have %+v", m.ID, m.Rules)
			}
		}
	})
}

// Writes at all nodes at once, of one entity and of others: one answer.
func TestWritesAtOnceConverge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, newMemory(), 5, parseRules(t, eachAlgorithm))
		defer stop(t, nodes...)
		for i, n := range nodes {
			putLimits(t, n, "default", window(100+i))
			if _, err := n.PutClient(fmt.Sprint("cust_", i), []byte(`{"tier":"window"}`), Precondition{}); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("after %v", converge(t, 3*time.Second, nodes...))
		hasLimit(t, nodes[0], "default", 104) // the same count everywhere: the last name wins
		for i := range nodes {
			if _, _, ok := nodes[(i+1)%5].Client(fmt.Sprint("cust_", i)); !ok {
				t.Errorf("the client of node %d is lost", i)
			}
		}
	})
}

// E35: what was used stays used, a raised limit helps at once, on every node.
func TestE35RaisedLimitHelpsAtOnceEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := parseRules(t, "tiers: {default: [{name: all, algorithm: fixed_window, limit: 10000, window: 1h}]}")
		nodes := cluster(t, newMemory(), 3, set)
		defer stop(t, nodes...)
		if v := check(t, nodes[0], Request{Key: "k", Cost: 10_000}); !v.Allowed || v.Remaining != 0 {
			t.Fatalf("%+v", v)
		}
		for _, n := range nodes { // E37: the deny caches know it
			for range 2 {
				if v := check(t, n, Request{Key: "k"}); v.Allowed {
					t.Fatalf("%s: %+v", n.Name(), v)
				}
			}
		}
		cached := 0
		for _, n := range nodes {
			if check(t, n, Request{Key: "k"}).Source == limit.SourceDenyCache {
				cached++
			}
		}
		if cached == 0 {
			t.Error("no denial came from a cache: this test shows less than it should")
		}
		putLimits(t, nodes[1], "default", window(15_000))
		converge(t, time.Second, nodes...)
		for _, n := range nodes {
			if v := check(t, n, Request{Key: "k", Peek: true}); !v.Allowed || v.Limit != 15_000 || v.Remaining != 5_000 {
				t.Errorf("%s: %+v, want 5,000 left", n.Name(), v)
			}
		}
		if v := check(t, nodes[2], Request{Key: "k", Cost: 5_000}); !v.Allowed || v.Remaining != 0 {
			t.Errorf("%+v", v)
		}
		if v := check(t, nodes[0], Request{Key: "k"}); v.Allowed {
			t.Errorf("%+v", v)
		}
	})
}

// E38: what was used (60 of 100) stays used when the capacity becomes 200; and a
// lowered limit denies, and does not underflow.
func TestE38UsedStaysUsed(t *testing.T) {
	for _, c := range []struct {
		name      string
		body      func(int) []byte
		used, to  int64
		allowed   bool
		remaining int64
	}{
		{"raised bucket", bucket, 60, 200, true, 140},
		{"lowered bucket", bucket, 80, 50, false, 0},
		{"raised window", window, 60, 200, true, 140},
		{"lowered window", window, 80, 50, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := cluster(t, newMemory(), 3, nil)
				defer stop(t, nodes...)
				putLimits(t, nodes[0], "default", c.body(100))
				converge(t, time.Second, nodes...)
				check(t, nodes[1], Request{Key: "k", Cost: c.used})
				putLimits(t, nodes[2], "default", c.body(int(c.to)))
				converge(t, time.Second, nodes...)
				for _, n := range nodes {
					v := check(t, n, Request{Key: "k", Peek: true})
					if v.Allowed != c.allowed || v.Remaining != c.remaining || v.Limit != c.to {
						t.Errorf("%s: %+v, want allowed %v, %d left", n.Name(), v, c.allowed, c.remaining)
					}
				}
			})
		})
	}
}

// Both sides of a partition are written to. It heals to one answer: of each entity
// the later write, deletions among them.
func TestAPartitionWithAWriteOnEachSideHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := cluster(t, m, 5, parseRules(t, eachAlgorithm))
		defer stop(t, nodes...)
		m.isolate(4)
		time.Sleep(40 * time.Second) // memberlist alone would not heal it
		putLimits(t, nodes[4], "default", window(1))
		putLimits(t, nodes[4], "default", window(2))
		putLimits(t, nodes[0], "default", window(3))
		putLimits(t, nodes[1], "here", window(4))
		putLimits(t, nodes[4], "there", window(5))
		if _, err := nodes[4].DeleteLimits("bucket", Precondition{}); err != nil {
			t.Fatal(err)
		}
		converge(t, time.Second, nodes[:4]...) // also when gossip loses an announcement: it is repeated
		m.heal(4)
		t.Logf("healed after %v", converge(t, time.Minute, nodes...))
		hasLimit(t, nodes[0], "default", 2) // the second write of its side
		hasLimit(t, nodes[4], "here", 4)
		hasLimit(t, nodes[2], "there", 5)
		if _, _, ok := nodes[1].Limits("bucket"); ok {
			t.Error("the deleted tier is back")
		}
	})
}

// A node that joins enforces the cluster's rules from the first check on. Its own
// file is ignored, which it says.
func TestAJoinerHasTheRulesBeforeItIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := cluster(t, m, 3, parseRules(t, eachAlgorithm))
		putLimits(t, nodes[0], "default", window(7))
		if _, err := nodes[0].DeleteLimits("queue", Precondition{}); err != nil {
			t.Fatal(err)
		}
		converge(t, time.Second, nodes...)
		for i, c := range []struct {
			set  *rules.Set
			says int
		}{{nil, 0}, {parseRules(t, eachAlgorithm), 1}} {
			var log logged
			cfg := m.config(t, 3+i, c.set)
			cfg.Logger = log.logger()
			joiner := start(t, cfg)
			if joiner.Ready() != nil || joiner.RulesSummary() != nodes[0].RulesSummary() {
				t.Errorf("ready with %+v, want %+v", joiner.RulesSummary(), nodes[0].RulesSummary())
			}
			hasLimit(t, joiner, "default", 7)
			if n := log.count("were not applied"); n != c.says {
				t.Errorf("%d lines say that the file was not applied, want %d", n, c.says)
			}
			nodes = append(nodes, joiner)
		}
		if nodes[0].RulesSummary().Version != 2 {
			t.Errorf("a joiner changed the rules: %s", summaries(nodes))
		}
		stop(t, nodes...)
	})
}

// A member says that it has rules, and cannot be asked for them. A node that joins
// must not make those of its file the cluster's: it enforces them alone, after a
// while, until there is nobody any more whose rules it lacks.
func TestAJoinerDoesNotSeedWhatOthersMayHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		mute := announcing(t, m, 0, membership.RulesSummary{Version: 3, Digest: 99})
		var log logged
		cfg := m.config(t, 1, parseRules(t, eachAlgorithm))
		cfg.Logger = log.logger()
		began := time.Now()
		n := start(t, cfg)
		if took := time.Since(began); took < catchUpTime || took > catchUpTime+cfg.JoinTimeout+11*time.Second {
			t.Errorf("started after %v; the rules are to be waited for %v", took, catchUpTime)
		}
		if s := n.RulesSummary(); s != (membership.RulesSummary{}) || n.Ready() != nil || log.count("no member gives its rules") != 1 {
			t.Errorf("seeded %+v; ready: %v", s, n.Ready())
		}
		if v := check(t, n, Request{Key: "k"}); v.Limit != 100 {
			t.Errorf("without the cluster's rules those of the file are enforced; got %+v", v)
		}
		// What is enforced is what is shown.
		body, tag, ok := n.Limits("default")
		if want, _ := n.Rules().TierJSON("default"); !ok || string(body) != string(want) || tag == "" {
			t.Errorf("the tier is shown as %s %s", body, tag)
		}
		if all := n.RulesETag(); all == `"0-0000000000000000"` {
			t.Errorf("rules that are enforced have the tag of none, %s", all)
		}
		if _, _, ok := n.Client("nobody"); ok {
			t.Error("a client is shown that has no entry")
		}
		if _, err := n.PutLimits("default", window(1), Precondition{}); !errors.Is(err, ErrNoRules) {
			t.Errorf("a change: %v", err)
		}
		if _, err := n.ApplyRules(parseRules(t, eachAlgorithm)); !errors.Is(err, ErrNoRules) {
			t.Errorf("a changed file: %v", err)
		}
		if err := errors.Join(mute.Leave(t.Context()), mute.Close()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if s := n.RulesSummary(); s.Digest == 0 {
			t.Error("nobody has other rules any more, and those of the file are not the cluster's")
		}
		putLimits(t, n, "default", window(7))
		if v := check(t, n, Request{Key: "k"}); v.Limit != 7 {
			t.Errorf("%+v", v)
		}
		stop(t, n)
	})
}

// announcing is a member that only gossips: that it joins, and has rules.
func announcing(t *testing.T, m *memory, i int, s membership.RulesSummary) *gossip.Gossip {
	t.Helper()
	cfg, err := m.config(t, i, nil).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := deriveKeys(cfg.Secret)
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{cfg: cfg, self: cfg.self(1, cfg.Peer, ring.Defaults().Placement())}
	n.self.Rules = s
	g, err := gossip.Start(n.gossipConfig(secrets))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Nodes with one file that start at once, none of them first, have equal rules
// and write nothing.
func TestNodesThatStartAtOnceSeedAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, nodes := newMemory(), make([]*Node, 4)
		var all sync.WaitGroup
		for i := range nodes {
			all.Go(func() {
				cfg := m.config(t, i, parseRules(t, eachAlgorithm))
				cfg.Join = []string{host(0) + ":7703", host(1) + ":7703"}
				nodes[i], _ = Start(t.Context(), cfg)
			})
		}
		all.Wait()
		converge(t, 0, nodes...)
		if s := nodes[0].RulesSummary(); s.Version != 0 || s.Digest == 0 {
			t.Errorf("%+v", s)
		}
		stop(t, nodes...)
	})
}

// What was written outlives a restart of all nodes that have data directories,
// deletions too; the rule file does not undo it.
func TestARestartOfAllNodesKeepsTheRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		var configs []Config
		var nodes []*Node
		for i := range 3 {
			cfg := m.config(t, i, parseRules(t, eachAlgorithm))
			cfg.DataDir = t.TempDir() + "/made"
			configs = append(configs, cfg)
			nodes = append(nodes, start(t, cfg))
		}
		settle(t, nodes...)
		putLimits(t, nodes[2], "default", window(77))
		if _, err := nodes[1].DeleteLimits("queue", Precondition{}); err != nil {
			t.Fatal(err)
		}
		converge(t, time.Second, nodes...)
		before, shown := nodes[0].RulesSummary(), string(nodes[0].LimitsJSON())
		stop(t, nodes...)
		for i := range nodes {
			configs[i].boot = 0
			nodes[i] = start(t, configs[i])
			if nodes[i].RulesSummary() != before || string(nodes[i].LimitsJSON()) != shown {
				t.Errorf("%+v, want %+v\n%s", nodes[i].RulesSummary(), before, nodes[i].LimitsJSON())
			}
		}
		putLimits(t, nodes[0], "default", window(78))
		converge(t, time.Second, nodes...)
		hasLimit(t, nodes[2], "default", 78)
		stop(t, nodes...)
	})
}

func TestADamagedDataDirectoryIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := newMemory().config(t, 0, nil)
		cfg.DataDir = t.TempDir()
		path := live.FileIn(cfg.DataDir).Path()
		if err := os.WriteFile(path, []byte("what is this"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Start(t.Context(), cfg)
		if bad, ok := errors.AsType[*ConfigError](err); !ok || bad.Field != "data-dir" || !strings.Contains(err.Error(), path+" is damaged") {
			t.Errorf("error %v", err)
		}
	})
}

func TestChangesAreRefusedWithTheirReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, newMemory().config(t, 0, parseRules(t, eachAlgorithm)))
		_, tag, _ := n.Limits("default")
		next, err := n.PutLimits("default", window(5), Precondition{IfMatch: tag})
		if err != nil || next.ETag == "" || next.ETag == tag || !strings.Contains(string(next.Is), `"limit":5,`) {
			t.Fatalf("%s, %v", next.Is, err)
		}
		if _, err := n.PutLimits("default", window(6), Precondition{IfMatch: tag}); !errors.Is(err, ErrPrecondition) {
			t.Errorf("an old tag: %v", err)
		}
		if _, err := n.DeleteLimits("nothing", Precondition{}); !errors.Is(err, ErrNotFound) {
			t.Errorf("deleting nothing: %v", err)
		}
		if _, err := n.PutClient("c", []byte(`{"tier":"window"}`), Precondition{}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.DeleteLimits("window", Precondition{}); !errors.Is(err, ErrInUse) {
			t.Errorf("a tier in use: %v", err)
		}
		bad := `{"rules":[{"name":"all","algorithm":"fixed_window","limit":-1,"window":"1h"}]}`
		if _, err := n.PutLimits("default", []byte(bad), Precondition{}); err == nil || !strings.Contains(err.Error(), "limit") {
			t.Errorf("a bad rule: %v", err)
		}
		hasLimit(t, n, "default", 5)
		if _, err := n.DeleteClient("c", Precondition{}); err != nil {
			t.Fatal(err)
		}
		changes, err := n.ApplyRules(parseRules(t, eachAlgorithm)) // as after a SIGHUP
		if err != nil || len(changes) == 0 || n.store.Differs(parseRules(t, eachAlgorithm)) {
			t.Errorf("%v, %v", changes, err)
		}
		stop(t, n)
		if _, err := n.PutLimits("default", window(6), Precondition{}); !errors.Is(err, ErrLeft) {
			t.Errorf("after it left: %v", err)
		}
	})
}
