package gossip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/membership"
)

func TestMembersFindEachOther(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(5)
		if err := nodes[2].Announce(membership.Draining, 0); err != nil {
			t.Fatal(err)
		}
		w.eventually(time.Second, "n3 drains", func() bool {
			return all(nodes, func(n *node) bool {
				return slices.Equal(n.latest().Owners(), []membership.NodeID{"n1", "n2", "n4", "n5"})
			})
		})
		for _, n := range nodes {
			m, ok := n.latest().Find("n3")
			if want := nodes[2].cfg.Self; !ok || m.Peer != want.Peer || m.HTTP != want.HTTP || m.Boot != want.Boot || m.State != membership.Draining {
				t.Errorf("%s: n3 is %+v", n.name(), m)
			}
			if n.log.errors() != "" {
				t.Errorf("%s logged errors:\n%s", n.name(), n.log.errors())
			}
		}
	})
}

// A sequence of its own makes what a node says newer, and is news: others may
// hold something else of it for true until they hear it.
func TestANewSequenceIsNews(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(3)
		seq := func(n *node) uint64 {
			m, _ := n.latest().Find("n3")
			return m.Seq
		}
		for _, step := range []struct{ announced, want uint64 }{{7, 7}, {7, 7}, {1 << 40, 1 << 40}, {8, 1 << 40}} {
			if err := nodes[2].Announce(membership.Serving, step.announced); err != nil {
				t.Fatal(err)
			}
			w.eventually(time.Second, fmt.Sprintf("sequence %d", step.want), func() bool {
				return all(nodes, func(n *node) bool { return seq(n) == step.want })
			})
		}
		for _, n := range nodes {
			var told []uint64
			for _, v := range n.history() {
				if m, ok := v.Find("n3"); ok && m.State == membership.Serving {
					told = append(told, m.Seq)
				}
			}
			if told = slices.Compact(told); !slices.Equal(told, []uint64{0, 7, 1 << 40}) {
				t.Errorf("%s was told of the sequences %d", n.name(), told)
			}
		}
	})
}

// An announcement that another has overtaken changes nothing, whatever its state.
func TestAnOldAnnouncementIsDropped(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.start(1)
		for _, a := range []struct {
			state membership.State
			seq   uint64
		}{{membership.Serving, 5}, {membership.Joining, 4}} {
			if err := n.Announce(a.state, a.seq); err != nil {
				t.Fatal(err)
			}
		}
		if m := n.roster.me(); m.State != membership.Serving || m.Seq != 5 {
			t.Errorf("%v with sequence %d", m.State, m.Seq)
		}
	})
}

// memberlist never sends what does not fit a packet, and says nothing. The
// longest record, encrypted, under the longest label, must fit: here only gossip
// can be in time, the full exchange comes after ten seconds.
func TestTheLongestRecordFitsAPacket(t *testing.T) {
	bubble(t, func(w *world) {
		long := func(c *Config) {
			c.Cluster, c.Key = strings.Repeat("l", 255), bytes.Repeat([]byte{1}, 32)
			c.Self.ID += membership.NodeID(strings.Repeat("i", maxID-len(c.Self.ID)))
			c.Self.Peer = strings.Repeat("p", 255)
			c.Self.HTTP = strings.Repeat("h", maxStrings-maxID-255)
		}
		var nodes []*node
		for i := 1; i <= 4; i++ {
			n := w.start(i, long)
			nodes = append(nodes, n)
			if i > 1 {
				w.join(n)
			}
		}
		start := time.Now()
		if err := nodes[3].Announce(membership.Draining, 0); err != nil {
			t.Fatal(err)
		}
		w.eventually(time.Second-time.Since(start), "the news of n4", func() bool {
			return all(nodes, func(n *node) bool {
				m, _ := n.latest().Find(nodes[3].cfg.Self.ID)
				return m.State == membership.Draining
			})
		})
	})
}

func TestForwardersAreMembersAndNoOwners(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(2)
		f := w.start(3, func(c *Config) { c.Self.Owner = false })
		w.join(f)
		if err := f.Announce(membership.Serving, 0); err != nil {
			t.Fatal(err)
		}
		w.eventually(time.Second, "n3 serves", func() bool {
			return all(append(nodes, f), func(n *node) bool {
				m, ok := n.latest().Find("n3")
				return ok && m.State == membership.Serving && slices.Equal(n.latest().Owners(), []membership.NodeID{"n1", "n2"})
			})
		})
	})
}

func TestViewContainsOurselfFromTheStart(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.start(1)
		w.eventually(time.Millisecond*10, "n1 alone", func() bool { return n.sees("n1") })
		if err := n.Announce(membership.Serving, 0); err != nil {
			t.Fatal(err)
		}
		w.eventually(time.Second, "n1 serves", func() bool { return len(n.latest().Owners()) == 1 })
	})
}

// What happens before the settling goroutine first runs must not be taken for
// published already.
func TestEventsRightAfterStartArePublished(t *testing.T) {
	for range 20 {
		bubble(t, func(w *world) {
			n, other := w.start(1), member("n2")
			n.roster.put(nodeName(other), other, n.addr, time.Now())
			w.eventually(time.Second, "n2", func() bool { return n.sees("n1", "n2") })
		})
	}
}

// Twenty members that appear within a moment cause few views, not twenty.
func TestBurstsSettleIntoFewViews(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(20)
		late := w.start(21)
		w.join(late)
		w.eventually(time.Second, "all", func() bool { return len(late.latest().Members) == 21 })
		if n := len(late.history()); n > 3 {
			t.Errorf("%d views for one join", n)
		}
		w.eventually(time.Second, "all see n21", func() bool {
			return all(nodes, func(n *node) bool { _, ok := n.latest().Find("n21"); return ok })
		})
	})
}

// News that trickles in within a moment is one view.
func TestTrickleSettlesIntoOneView(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.start(1)
		time.Sleep(time.Second)
		before := len(n.history())
		for i := range 10 {
			m := member(fmt.Sprintf("x%d", i))
			n.roster.put(nodeName(m), m, n.addr, time.Now())
			time.Sleep(quiet / 2)
		}
		time.Sleep(time.Second)
		if views := n.history()[before:]; len(views) != 1 || len(views[0].Members) != 11 {
			t.Errorf("%d views", len(views))
		}
	})
}

// An endless trickle of events must not hold views back.
func TestSettlingHasAnEnd(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.start(1)
		start := time.Now()
		for time.Since(start) < 450*time.Millisecond {
			m := member(fmt.Sprintf("x%d", time.Since(start).Milliseconds()))
			n.roster.put(nodeName(m), m, n.addr, time.Now())
			time.Sleep(quiet / 2)
		}
		if got := len(n.latest().Members); got < 15 {
			t.Errorf("after 450 ms of events 10 ms apart the view has %d members", got)
		}
	})
}

// H58: everyone learns that the new process is not the old one, although
// name and address are the same and nobody noticed the death.
func TestH58FastRestartIsANewBoot(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(3)
		old := nodes[2].cfg.Self.Boot
		w.kill(nodes[2])
		time.Sleep(100 * time.Millisecond)
		again := w.start(3)
		w.join(again)
		took := w.eventually(time.Second, "the new boot", func() bool {
			return all(w.nodes, func(n *node) bool { m, _ := n.latest().Find("n3"); return m.Boot == again.cfg.Self.Boot })
		})
		t.Logf("known everywhere after %v", took)
		// The death of the old boot, noticed later, takes nobody out.
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			if !all(w.nodes, func(n *node) bool { m, ok := n.latest().Find("n3"); return ok && m.Boot > old }) {
				t.Fatalf("n3 was lost again\n%s", w)
			}
		}
		for _, n := range w.nodes {
			if n.log.errors() != "" {
				t.Errorf("%s: a restart is no error:\n%s", n.name(), n.log.errors())
			}
		}
	})
}

func TestReturnUnderANewAddressIsAcceptedAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(3)
		w.kill(nodes[2])
		time.Sleep(100 * time.Millisecond)
		again := w.startAt("10.9.9.9:7703", "n3", func(c *Config) { c.Self.Peer = "10.9.9.9:7702" })
		w.join(again)
		w.eventually(time.Second, "n3 at its new address", func() bool {
			return all(w.nodes, func(n *node) bool { m, _ := n.latest().Find("n3"); return m.Peer == "10.9.9.9:7702" })
		})
	})
}

// H59: memberlist alone forgets the other side after 30 s, for ever.
func TestH59LongPartitionHealsByItself(t *testing.T) {
	for _, length := range []time.Duration{10 * time.Second, 45 * time.Second, 10 * time.Minute} {
		t.Run(length.String(), func(t *testing.T) {
			bubble(t, func(w *world) {
				nodes := w.cluster(5)
				left := map[string]bool{addr(1): true, addr(2): true}
				w.net.Cut(func(from, to string) bool { return left[from] != left[to] })
				time.Sleep(length)
				if length > 30*time.Second && (!nodes[0].sees("n1", "n2") || !nodes[4].sees("n3", "n4", "n5")) {
					t.Fatalf("the sides still see each other\n%s", w)
				}
				w.net.Cut(nil)
				took := w.eventually(15*time.Second, "the halves find each other", func() bool {
					return all(nodes, func(n *node) bool { return n.sees("n1", "n2", "n3", "n4", "n5") })
				})
				t.Logf("whole after %v", took)
			})
		})
	}
}

// The side without the seed, and a seed nobody lists: only what members
// remember of each other heals this.
func TestPartitionHealsWithoutSeeds(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(4)
		for _, n := range nodes {
			n.joining.Store(false)
		}
		left := map[string]bool{addr(1): true, addr(2): true}
		w.net.Cut(func(from, to string) bool { return left[from] != left[to] })
		time.Sleep(time.Minute)
		w.net.Cut(nil)
		w.eventually(15*time.Second, "whole", func() bool {
			return all(nodes, func(n *node) bool { return n.sees("n1", "n2", "n3", "n4") })
		})
	})
}

// A paused node is seen to leave and return, and catches up with what happened
// meanwhile: one member joined and one died.
func TestPausedNodeReturnsAndCatchesUp(t *testing.T) {
	for _, length := range []time.Duration{8 * time.Second, 45 * time.Second} {
		t.Run(length.String(), func(t *testing.T) {
			bubble(t, func(w *world) {
				nodes := w.cluster(5)
				paused, boot := nodes[4], nodes[4].cfg.Self.Boot
				paused.host.Pause()
				took := w.eventually(8*time.Second, "the pause is noticed", func() bool {
					return all(nodes[:4], func(n *node) bool { return n.sees("n1", "n2", "n3", "n4") })
				})
				t.Logf("seen to leave after %v", took)
				w.kill(nodes[3])
				w.join(w.start(6))
				time.Sleep(length - took)
				paused.host.Resume()
				took = w.eventually(20*time.Second, "the paused node is back and up to date", func() bool {
					return all(w.nodes, func(n *node) bool { return n.sees("n1", "n2", "n3", "n5", "n6") })
				})
				t.Logf("whole after %v", took)
				for _, n := range w.nodes {
					if m, _ := n.latest().Find("n5"); m.Boot != boot {
						t.Errorf("%s takes n5 for another boot", n.name())
					}
				}
			})
		})
	}
}

func TestLeaveIsSeenAtOnceAndNotMissed(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(3)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		for range 2 { // leaving twice is leaving once
			if err := nodes[2].Leave(ctx); err != nil {
				t.Fatal(err)
			}
		}
		took := w.eventually(500*time.Millisecond, "n3 left", func() bool {
			return all(nodes[:2], func(n *node) bool { return n.sees("n1", "n2") })
		})
		t.Logf("gone after %v", took)
		if err := nodes[2].Announce(membership.Serving, 0); !errors.Is(err, ErrClosed) {
			t.Errorf("Announce after Leave: %v", err)
		}
		if err := nodes[2].Close(); err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes[:2] {
			if missing := n.roster.missing(time.Now()); len(missing) != 0 {
				t.Errorf("%s still looks for %v", n.name(), missing)
			}
			if !slices.ContainsFunc(n.history(), func(v membership.View) bool {
				m, _ := v.Find("n3")
				return m.State == membership.Draining
			}) {
				t.Logf("%s never saw n3 drain (the burst was settled)", n.name())
			}
		}
		time.Sleep(30 * time.Second)
		if !nodes[0].sees("n1", "n2") {
			t.Errorf("n3 came back\n%s", w)
		}
	})
}

func TestCloseAndLeaveInAnyOrder(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(3)
		ctx := context.Background()
		done := make(chan struct{})
		go func() { defer close(done); _ = nodes[2].Leave(ctx) }()
		go func() { _ = nodes[2].Announce(membership.Draining, 0) }()
		if err := nodes[2].Close(); err != nil {
			t.Fatal(err)
		}
		<-done
		if err := nodes[2].Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		if err := nodes[2].Leave(ctx); !errors.Is(err, ErrClosed) {
			t.Errorf("Leave after Close: %v", err)
		}
		if err := nodes[2].Announce(membership.Serving, 0); !errors.Is(err, ErrClosed) {
			t.Errorf("Announce after Close: %v", err)
		}
		if err := nodes[2].Join(ctx); !errors.Is(err, ErrClosed) {
			t.Errorf("Join after Close: %v", err)
		}
	})
}

// Two processes under one id: the later one is the node to everyone, and both
// say what is wrong.
func TestTwoProcessesUnderOneID(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(3)
		time.Sleep(time.Second)
		twin := w.startAt("10.0.0.33:7703", "n3")
		w.join(twin)
		w.eventually(2*time.Second, "the later one counts", func() bool {
			return all(w.nodes, func(n *node) bool { m, _ := n.latest().Find("n3"); return m.Boot == twin.cfg.Self.Boot })
		})
		if !nodes[2].latest().Superseded(nodes[2].cfg.Self) || twin.latest().Superseded(twin.cfg.Self) {
			t.Error("the earlier one is superseded, the later is not")
		}
		if !strings.Contains(nodes[2].log.errors(), "two processes run under one node id") {
			t.Errorf("the earlier one logged:\n%s", nodes[2].log.all())
		}
		time.Sleep(3 * twinGrace)
		if n := strings.Count(twin.log.errors(), "two processes"); n != 1 {
			t.Errorf("the later one said so %d times:\n%s", n, twin.log.all())
		}
		w.kill(twin)
		w.eventually(8*time.Second, "the earlier one counts again", func() bool {
			return all(w.nodes, func(n *node) bool { m, _ := n.latest().Find("n3"); return m.Boot == nodes[2].cfg.Self.Boot })
		})
	})
}

// Which rules a node has is news without a new sequence, also before it joins, and
// spreads within a moment. To tell it does not wait for the gossip.
func TestRulesAreAnnounced(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(4)
		joiner := w.start(5)
		rules := membership.RulesSummary{Version: 7, Digest: 1 << 63}
		for _, n := range []*node{nodes[2], joiner} {
			start := time.Now()
			if err := n.AnnounceRules(rules); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > time.Millisecond {
				t.Errorf("%s: announcing took %v", n.name(), took)
			}
		}
		w.join(joiner)
		w.eventually(500*time.Millisecond, "the rules of n3 and n5", func() bool {
			return all(nodes, func(n *node) bool {
				three, _ := n.latest().Find("n3")
				five, _ := n.latest().Find("n5")
				return three.Rules == rules && five.Rules == rules
			})
		})
		for _, n := range nodes {
			if two, _ := n.latest().Find("n2"); two.Rules != (membership.RulesSummary{}) {
				t.Errorf("%s: n2 has %v", n.name(), two.Rules)
			}
		}
	})
}
