package gossip

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/membership"
)

// roster is our own copy of who is there. memberlist's lists hand out pointers
// into live state, and asking it from within its events deadlocks; so its events
// write here, under a lock held for a moment, and raise the dirty flag.
type roster struct {
	name  string        // our own memberlist name
	dirty chan struct{} // something changed since it was last read

	mu   sync.Mutex
	self membership.Member
	live map[string]peer // the others, by memberlist name: one entry a boot
	lost map[netip.AddrPort]loss
}

// peer is one boot of another node.
type peer struct {
	member membership.Member
	addr   netip.AddrPort // of its gossip
	since  time.Time
}

// loss is a node that vanished without a goodbye; it may be back after a
// partition, and nobody but us may remember where it was.
type loss struct {
	id membership.NodeID
	at time.Time
}

func newRoster(self membership.Member) *roster {
	return &roster{
		name: nodeName(self), self: self, dirty: make(chan struct{}, 1),
		live: map[string]peer{}, lost: map[netip.AddrPort]loss{},
	}
}

func (r *roster) touch() {
	select {
	case r.dirty <- struct{}{}:
	default: // already raised
	}
}

// put records a boot that joined or changed.
func (r *roster) put(name string, m membership.Member, addr netip.AddrPort, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := now
	if old, ok := r.live[name]; ok {
		since = old.since
	}
	r.live[name] = peer{m, addr, since}
	maps.DeleteFunc(r.lost, func(a netip.AddrPort, l loss) bool { return a == addr || l.id == m.ID })
	r.touch()
}

// remove takes a boot out. One that had announced that it drains, or whose
// successor is there, is not missed.
func (r *roster) remove(name string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone, ok := r.live[name]
	if !ok {
		return
	}
	delete(r.live, name)
	r.touch()
	if gone.member.State == membership.Draining || gone.member.ID == r.self.ID || r.succeeded(gone) {
		return
	}
	maps.DeleteFunc(r.lost, func(_ netip.AddrPort, l loss) bool { return now.Sub(l.at) > rememberLost })
	if len(r.lost) < maxLost {
		r.lost[gone.addr] = loss{gone.member.ID, now}
	}
}

func (r *roster) succeeded(gone peer) bool {
	for _, p := range r.live {
		if p.member.ID == gone.member.ID || p.addr == gone.addr {
			return true
		}
	}
	return false
}

// view is everyone, ourself included; the newest boot of each node.
func (r *roster) view() membership.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []membership.Member{r.self}
	for _, p := range r.live {
		all = append(all, p.member)
	}
	return membership.NewView(all)
}

// setAddr notes where our own gossip is reached, once it is known.
func (r *roster) setAddr(addr netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.self.Gossip = addr.String()
}

// announce changes what we tell of ourselves and reports whether it was news.
func (r *roster) announce(s membership.State, seq uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seq < r.self.Seq || seq == r.self.Seq && s == r.self.State {
		return false
	}
	r.self.State, r.self.Seq = s, seq
	r.touch()
	return true
}

// announceRules changes which rules we tell that we have, and reports whether it
// was news.
func (r *roster) announceRules(s membership.RulesSummary) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s == r.self.Rules {
		return false
	}
	r.self.Rules = s
	r.touch()
	return true
}

func (r *roster) me() membership.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.self
}

// alone says whether no other process has appeared.
func (r *roster) alone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live) == 0
}

// reached says whether a live member gossips at this address.
func (r *roster) reached(addr netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.live {
		if p.addr == addr {
			return true
		}
	}
	return false
}

// missing lists where lost members were.
func (r *roster) missing(now time.Time) []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.lost, func(_ netip.AddrPort, l loss) bool { return now.Sub(l.at) > rememberLost })
	return slices.Collect(maps.Keys(r.lost))
}

// twins lists the other processes under our own id, by memberlist name.
func (r *roster) twins() map[string]peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]peer{}
	for name, p := range r.live {
		if p.member.ID == r.self.ID {
			found[name] = p
		}
	}
	return found
}
