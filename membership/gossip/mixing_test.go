package gossip

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/membership"
)

func relay(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// Another placement would disagree with everyone's ring for ever: it stays out
// of every view, and both sides say why.
func TestOtherPlacementIsRefused(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(3)
		odd := w.start(4, func(c *Config) { c.Self.Ring = 8 })
		start := time.Now()
		err := joinFor(odd, 10*time.Second)
		if !errors.Is(err, ErrPlacement) || !strings.Contains(err.Error(), "8") || !strings.Contains(err.Error(), "7") {
			t.Errorf("Join: %v", err)
		}
		if time.Since(start) > time.Second {
			t.Errorf("said so after %v", time.Since(start))
		}
		time.Sleep(time.Minute) // it goes on trying
		for _, n := range nodes {
			for _, v := range n.history() {
				if _, ok := v.Find("n4"); ok {
					t.Fatalf("%s had n4 in a view", n.name())
				}
			}
		}
		if !odd.sees("n4") {
			t.Errorf("n4 sees %v", odd.names())
		}
		for _, n := range []*node{nodes[0], odd} {
			if c := strings.Count(n.log.errors(), "another ring placement"); c < 1 || c > 3 {
				t.Errorf("%s said so %d times:\n%s", n.name(), c, n.log.errors())
			}
		}
	})
}

// Push/pull between members does not ask the merge delegate: a stranger that
// gets in touch by packets alone has to be refused too.
func TestOtherPlacementIsRefusedWithoutAJoin(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(2)
		odd := w.start(3, func(c *Config) { c.Self.Ring = 8 })
		meta, err := encodeMeta(odd.cfg.Self)
		if err != nil {
			t.Fatal(err)
		}
		w.net.Send("10.0.0.3:7703", addr(1), aliveMessage(odd.roster.name, meta))
		time.Sleep(5 * time.Second)
		if !nodes[0].sees("n1", "n2") || !nodes[1].sees("n1", "n2") {
			t.Errorf("a stranger got in\n%s", w)
		}
		if !strings.Contains(nodes[0].log.all(), "placement") {
			t.Errorf("n1 logged:\n%s", nodes[0].log.all())
		}
	})
}

func TestOtherClusterOrKeyNeverMixes(t *testing.T) {
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	for name, c := range map[string]struct{ ours, theirs func(*Config) }{
		"label":            {func(c *Config) { c.Cluster = "a" }, func(c *Config) { c.Cluster = "b" }},
		"label and none":   {func(c *Config) { c.Cluster = "a" }, func(c *Config) {}},
		"key":              {func(c *Config) { c.Key = key(1) }, func(c *Config) { c.Key = key(2) }},
		"key and none":     {func(c *Config) { c.Key = key(1) }, func(c *Config) {}},
		"none and key":     {func(c *Config) {}, func(c *Config) { c.Key = key(1) }},
		"same key, labels": {func(c *Config) { c.Key = key(1); c.Cluster = "a" }, func(c *Config) { c.Key = key(1); c.Cluster = "b" }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				a, b := w.start(1, c.ours), w.start(2, c.ours)
				w.join(b)
				x := w.start(3, c.theirs)
				var je *JoinError
				if err := joinFor(x, 5*time.Second); !errors.As(err, &je) || je.Tried[addr(1)] == nil {
					t.Errorf("Join: %v", err)
				}
				time.Sleep(30 * time.Second)
				if !a.sees("n1", "n2") || !b.sees("n1", "n2") || !x.sees("n3") {
					t.Errorf("they mixed\n%s", w)
				}
			})
		})
	}
}

// A Meta nobody can read belongs to nobody: ignored, logged, and the members
// after it in the same packet are not.
func TestDamagedMetaIsIgnored(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(2)
		good := member("n9")
		meta, err := encodeMeta(good)
		if err != nil {
			t.Fatal(err)
		}
		for name, m := range map[string][]byte{
			"x/1": nil, "x/2": []byte("x"), "x/3": meta[:len(meta)-1], "x/4": meta, // x/4: not its name
			"x/5": bytes.Repeat([]byte{255}, 512), "x/6": bytes.Repeat([]byte{1}, 600),
		} {
			w.net.Send("10.0.0.9:7703", addr(1), aliveMessage(name, m))
		}
		time.Sleep(time.Second)
		if !nodes[0].sees("n1", "n2") || !nodes[1].sees("n1", "n2") {
			t.Errorf("a damaged member got in\n%s", w)
		}
		if n := strings.Count(nodes[0].log.all(), errMeta.Error()); n != 6 {
			t.Errorf("%d of 6 were logged:\n%s", n, nodes[0].log.all())
		}
		w.net.Send("10.0.0.9:7703", addr(1), aliveMessage(nodeName(good), meta))
		w.eventually(time.Second, "a good one gets in", func() bool { return nodes[1].sees("n1", "n2", "n9") })
		if err := nodes[0].Announce(membership.Draining, 0); err != nil {
			t.Fatal(err)
		}
		w.eventually(time.Second, "n1 still speaks", func() bool {
			m, _ := nodes[1].latest().Find("n1")
			return m.State == membership.Draining
		})
	})
}
