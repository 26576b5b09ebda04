package gossip

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// joinFor tries for as long and returns what Join said.
func joinFor(n *node, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return n.Join(ctx)
}

func lookupOf(table map[string][]string) func(*Config) {
	return func(c *Config) {
		c.Lookup = func(_ context.Context, host string) ([]string, error) {
			if ips, ok := table[host]; ok {
				return ips, nil
			}
			return nil, fmt.Errorf("lookup %s: no such host", host)
		}
	}
}

func seeds(join ...string) func(*Config) { return func(c *Config) { c.Join = join } }

// memberlist takes joining itself for success, whichever name it goes by.
func TestJoiningOneselfIsNoSuccess(t *testing.T) {
	for name, join := range map[string][]string{
		"own address":             {addr(1)},
		"own name":                {"self.example:7703"},
		"own name, own port":      {"self.example"},
		"a name for us and a gap": {"both.example:7703"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.start(1, seeds(join...), lookupOf(map[string][]string{
					"self.example": {"10.0.0.1"}, "both.example": {"10.0.0.1", "10.0.0.77"}}))
				w.net.Cut(func(from, to string) bool {
					if from == to {
						t.Errorf("%s dialled itself", from)
					}
					return false
				})
				err := joinFor(n, 5*time.Second)
				time.Sleep(20 * time.Second) // rejoining neither
				if err == nil || !strings.Contains(err.Error(), addr(1)+": "+errSelf.Error()) {
					t.Fatalf("Join: %v", err)
				}
			})
		})
	}
}

// An address that leads back to us through a proxy is not in any list of ours.
func TestJoiningOneselfByAnUnknownAddress(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.start(1, seeds("10.0.0.99:7703"))
		proxy, err := w.net.Listen("10.0.0.99:7703")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = proxy.Shutdown() }()
		n.spawn(func() { // hands each stream on to the node itself
			for {
				select {
				case c := <-proxy.StreamCh():
					back, err := w.net.Dial("10.0.0.99:7703", addr(1), time.Second)
					if err != nil {
						t.Error(err)
						return
					}
					n.spawn(func() { relay(c, back) })
					n.spawn(func() { relay(back, c) })
				case <-n.ctx.Done():
					return
				}
			}
		})
		if err := joinFor(n, 3*time.Second); err == nil || !strings.Contains(err.Error(), "10.0.0.99:7703: "+errSelf.Error()) {
			t.Fatalf("Join: %v", err)
		}
	})
}

func TestJoinByAnyMemberOrName(t *testing.T) {
	for name, join := range map[string][]string{
		"second seed":          {"10.0.0.77:7703", addr(2)},
		"a name without port":  {"cluster.example"},
		"a name, us among it":  {"cluster.example:7703"},
		"unknown name, a seed": {"gone.example:7703", addr(1)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.cluster(2)
				n := w.start(3, seeds(join...), lookupOf(map[string][]string{
					"cluster.example": {"10.0.0.3", "10.0.0.2", "10.0.0.1"}}))
				start := time.Now()
				if err := joinFor(n, 10*time.Second); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("took %v: a dead seed held the live one up", took)
				}
				w.eventually(time.Second, "all", func() bool { return n.sees("n1", "n2", "n3") })
			})
		})
	}
}

func TestJoinSaysWhyNobodyAnswered(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.start(1, seeds("10.0.0.77:7703", "gone.example:7703", addr(1)), lookupOf(nil))
		err := joinFor(n, 5*time.Second)
		var je *JoinError
		if !errors.As(err, &je) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Join: %v", err)
		}
		for addr, why := range map[string]string{
			"10.0.0.77:7703": "i/o timeout", "gone.example:7703": "no such host", addr(1): errSelf.Error(),
		} {
			if got := je.Tried[addr]; got == nil || !strings.Contains(got.Error(), why) {
				t.Errorf("%s: %v, want %q", addr, got, why)
			}
			if !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), why) {
				t.Errorf("the text lacks %s and %s: %v", addr, why, err)
			}
		}
	})
}

func TestJoinHeedsItsContextAndClose(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.start(1, seeds("10.0.0.77:7703"))
		start := time.Now()
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(300*time.Millisecond, cancel)
		if err := n.Join(ctx); !errors.Is(err, context.Canceled) || time.Since(start) > 400*time.Millisecond {
			t.Errorf("Join: %v after %v", err, time.Since(start))
		}
		time.AfterFunc(5*time.Second, func() { _ = n.Close() })
		if err := n.Join(context.Background()); !errors.Is(err, ErrClosed) {
			t.Errorf("Join until Close: %v", err)
		}
	})
}

func TestJoinWithoutAddressesIsNothingToDo(t *testing.T) {
	bubble(t, func(w *world) {
		if err := joinFor(w.start(1, seeds()), time.Second); err != nil {
			t.Error(err)
		}
	})
}

// The seed comes up long after Join has given up.
func TestJoinGoesOnInTheBackground(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.start(2)
		if err := joinFor(n, time.Second); err == nil {
			t.Fatal("nobody is there")
		}
		time.Sleep(time.Minute)
		w.start(1)
		w.eventually(12*time.Second, "joined", func() bool { return n.sees("n1", "n2") })
	})
}

func TestSeedsAreChecked(t *testing.T) {
	for _, bad := range []string{"", "a b:1", ":7703", "host:", "host:0", "host:99999", "host:x", "n/host:7703", "a:b:c"} {
		if _, err := parseSeeds([]string{"good:1", bad}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("join: %q", bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for in, want := range map[string]seed{
		"h.example":      {host: "h.example"},
		"h.example:7713": {host: "h.example", port: 7713},
		"10.0.0.1":       {host: "10.0.0.1"},
		"10.0.0.1:1":     {host: "10.0.0.1", port: 1},
		"2001:db8::1":    {host: "2001:db8::1"},
		"[2001:db8::1]:": {},
		"[::1]:7703":     {host: "::1", port: 7703},
	} {
		got, err := parseSeed(in)
		want.text = in
		if want.host == "" {
			if err == nil {
				t.Errorf("%q: accepted", in)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
}
