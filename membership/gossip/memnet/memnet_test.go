package memnet

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

const a, b = "10.0.0.1:1", "10.0.0.2:1"

func listen(t *testing.T, n *Network, addr string) *Host {
	t.Helper()
	h, err := n.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Shutdown() })
	return h
}

// received takes what is there to be read.
func received(h *Host) (n int) {
	for {
		synctest.Wait()
		select {
		case <-h.PacketCh():
			n++
		default:
			return n
		}
	}
}

func send(t *testing.T, h *Host, to string, packets int) {
	t.Helper()
	for range packets {
		if _, err := h.WriteTo([]byte("x"), to); err != nil {
			t.Error(err)
		}
	}
}

func TestPacketsAreCutOneWayAndDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		ha, hb := listen(t, n, a), listen(t, n, b)
		n.Cut(func(from, _ string) bool { return from == a })
		send(t, ha, b, 1)
		send(t, hb, a, 1)
		if got := received(hb) + 10*received(ha); got != 10 {
			t.Errorf("received %d, want only the one from b", got)
		}
		n.Cut(nil)
		send(t, ha, "10.0.0.9:1", 1) // nobody: lost without an error
		send(t, ha, b, 3*buffered)
		if got := received(hb); got < buffered || got >= 2*buffered {
			t.Errorf("%d packets in a buffer of %d", got, buffered)
		}
	})
}

func TestPausedHostQueuesAndStaysSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		ha, hb := listen(t, n, a), listen(t, n, b)
		hb.Pause()
		send(t, ha, b, 3)
		go send(t, hb, a, 1)
		if got := received(ha) + received(hb); got != 0 {
			t.Errorf("%d packets through a paused host", got)
		}
		start := time.Now()
		if _, err := ha.DialTimeout(b, time.Second); err == nil || time.Since(start) != time.Second {
			t.Errorf("dial: %v after %v", err, time.Since(start))
		}
		hb.Resume()
		if got := received(hb); got != 3 {
			t.Errorf("%d of 3 queued packets", got)
		}
		if got := received(ha); got != 1 {
			t.Errorf("%d packets from the host that was paused", got)
		}
	})
}

func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		ha, hb := listen(t, n, a), listen(t, n, b)
		c, err := ha.DialTimeout(b, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		far := <-hb.StreamCh()
		go func() { _, _ = io.WriteString(c, "hello"); _ = c.Close() }()
		if got, err := io.ReadAll(far); string(got) != "hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if c, err = ha.DialTimeout(b, time.Second); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("nobody reads")); err == nil {
			t.Error("a write that nobody reads has no end")
		}
	})
}

func TestAddressIsFreeAgainAfterShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		h := listen(t, n, a)
		if _, err := n.Listen(a); err == nil {
			t.Error("two hosts at one address")
		}
		for range 2 {
			if err := h.Shutdown(); err != nil {
				t.Error(err)
			}
		}
		if _, err := h.WriteTo(nil, a); err == nil {
			t.Error("a host that is down sends")
		}
		listen(t, n, a)
	})
}
