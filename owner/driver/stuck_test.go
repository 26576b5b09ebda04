package driver

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/membership"
)

// A member that says nothing keeps partitions away. Its name is logged after some
// seconds, and then once a minute, and no longer when it has answered.
func TestWhoKeepsPartitionsAwayIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		m.join("a")
		m.join("b")
		m.mute("a", true)
		c := m.add("c")
		var log bytes.Buffer // written under c.mu
		c.mu.Lock()
		c.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.mu.Unlock()
		m.gossip()
		c.become(membership.Serving)
		told := func() (lines []string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			for l := range strings.Lines(log.String()) {
				if strings.Contains(l, "partitions do not come") {
					lines = append(lines, l)
				}
			}
			return lines
		}
		for _, at := range []struct {
			after time.Duration
			lines int
		}{{4 * time.Second, 0}, {4 * time.Second, 1}, {50 * time.Second, 1}, {12 * time.Second, 2}} {
			time.Sleep(at.after)
			if n := len(told()); n != at.lines {
				t.Errorf("after %v more it was logged %d times, want %d", at.after, n, at.lines)
			}
		}
		for _, l := range told() {
			if !strings.HasSuffix(l, "members=[a]\n") || strings.Contains(l, "partitions=0 ") {
				t.Errorf("logged: %s", l)
			}
		}
		m.mute("a", false)
		time.Sleep(65 * time.Second)
		if n := len(told()); n != 2 {
			t.Errorf("logged %d times when all have answered", n)
		}
	})
}
