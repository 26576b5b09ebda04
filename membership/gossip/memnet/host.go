package memnet

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// buffered is how many packets or streams wait for a host before they are lost.
const buffered = 256

// Host is one address of a Network.
type Host struct {
	net     *Network
	addr    netip.AddrPort
	wire    chan *memberlist.Packet // what arrived
	packets chan *memberlist.Packet // what memberlist gets to see
	streams chan net.Conn

	mu      sync.Mutex
	running chan struct{} // closed while the host runs
	down    bool
	done    chan struct{}
	pump    sync.WaitGroup
}

var _ memberlist.Transport = (*Host)(nil)

// Pause stops the host as SIGSTOP stops a process: what it sends waits, what it
// is sent queues up and overflows, and nobody can open a stream to it. Its
// timers go on, which a stopped process's do not.
func (h *Host) Pause() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = make(chan struct{})
}

// Resume ends a pause.
func (h *Host) Resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !isClosed(h.running) {
		close(h.running)
	}
}

func (h *Host) paused() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !isClosed(h.running)
}

// await returns when the host runs, or is gone.
func (h *Host) await() {
	h.mu.Lock()
	running := h.running
	h.mu.Unlock()
	select {
	case <-running:
	case <-h.done:
	}
}

func (h *Host) deliver() {
	for {
		select {
		case p := <-h.wire:
			h.await()
			select {
			case h.packets <- p:
			case <-h.done:
				return
			}
		case <-h.done:
			return
		}
	}
}

// FinalAdvertiseAddr is where the host listens, whatever is asked for.
func (h *Host) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return h.addr.Addr().AsSlice(), int(h.addr.Port()), nil
}

// WriteTo sends a packet; losing it is no error.
func (h *Host) WriteTo(b []byte, to string) (time.Time, error) {
	h.await()
	if isClosed(h.done) {
		return time.Time{}, net.ErrClosed
	}
	h.net.Send(h.addr.String(), to, b)
	return time.Now(), nil
}

// DialTimeout opens a stream to another host.
func (h *Host) DialTimeout(to string, timeout time.Duration) (net.Conn, error) {
	h.await()
	return h.net.Dial(h.addr.String(), to, timeout)
}

// PacketCh is where packets arrive.
func (h *Host) PacketCh() <-chan *memberlist.Packet { return h.packets }

// StreamCh is where streams arrive.
func (h *Host) StreamCh() <-chan net.Conn { return h.streams }

// Shutdown takes the host off the network, as the end of its process does, and
// waits for its goroutine.
func (h *Host) Shutdown() error {
	h.mu.Lock()
	first := !h.down
	h.down = true
	h.mu.Unlock()
	if !first {
		return nil
	}
	h.net.remove(h)
	close(h.done)
	h.pump.Wait()
	for {
		select {
		case c := <-h.streams:
			_ = c.Close()
		default:
			return nil
		}
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
