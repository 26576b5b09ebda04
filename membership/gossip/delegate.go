package gossip

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/ringlimit/ringlimit/membership"
)

// ErrPlacement means that a node computes its ring in another way, so that the
// two would disagree on owners for ever. They refuse each other.
var ErrPlacement = errors.New("all nodes of a cluster need the same ring parameters and neighbouring versions")

// delegate is what memberlist calls. Most of it runs under memberlist's node
// lock: it must neither call back nor wait, or the membership of this node
// freezes while it still answers pings and looks healthy.
type delegate struct {
	roster *roster
	log    *slog.Logger

	mu      sync.Mutex
	refused error           // the last refusal of a placement
	told    map[string]bool // nodes whose refusal was logged
}

var (
	_ memberlist.Delegate      = (*delegate)(nil)
	_ memberlist.EventDelegate = (*delegate)(nil)
	_ memberlist.AliveDelegate = (*delegate)(nil)
	_ memberlist.MergeDelegate = (*delegate)(nil)
)

// NodeMeta is what we tell of ourselves. Start has checked that it fits.
func (d *delegate) NodeMeta(int) []byte {
	meta, err := encodeMeta(d.roster.me())
	if err != nil {
		d.log.Error("our own member record does not encode", "error", err)
	}
	return meta
}

// No messages of our own travel by gossip.

// NotifyMsg ignores user messages.
func (d *delegate) NotifyMsg([]byte) {}

// GetBroadcasts has none.
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState has none.
func (d *delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState ignores it.
func (d *delegate) MergeRemoteState([]byte, bool) {}

// NotifyJoin copies what the event carries.
func (d *delegate) NotifyJoin(n *memberlist.Node) { d.put(n) }

// NotifyUpdate is a Meta that changed.
func (d *delegate) NotifyUpdate(n *memberlist.Node) { d.put(n) }

// NotifyLeave is the end of a boot, announced or not.
func (d *delegate) NotifyLeave(n *memberlist.Node) { d.roster.remove(n.Name, time.Now()) }

func (d *delegate) put(n *memberlist.Node) {
	if n.Name == d.roster.name {
		return
	}
	m, addr, err := read(n)
	if err != nil { // NotifyAlive refuses those before they get here
		d.roster.remove(n.Name, time.Now())
		return
	}
	d.roster.put(n.Name, m, addr, time.Now())
}

// NotifyAlive keeps a node out of memberlist's list altogether, however it was
// heard of; NotifyMerge alone sees joins only. memberlist logs the reason.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	if n.Name == d.roster.name {
		return nil // memberlist itself refutes what others say of us
	}
	m, _, err := read(n)
	if err != nil {
		return err
	}
	return d.fits(m, n.Address())
}

// NotifyMerge refuses a join, with the reason on both sides: it runs on the
// joiner and on the one that is asked.
func (d *delegate) NotifyMerge(nodes []*memberlist.Node) error {
	for _, n := range nodes {
		if n.State != memberlist.StateAlive || n.Name == d.roster.name {
			continue
		}
		m, _, err := read(n)
		if err != nil {
			continue // that member is ignored, not the cluster it is in
		}
		if err := d.fits(m, n.Address()); err != nil {
			d.refuse(n.Name, err)
			return err
		}
	}
	return nil
}

func (d *delegate) fits(m membership.Member, addr string) error {
	if ours := d.roster.me().Ring; m.Ring != ours {
		return fmt.Errorf("refused node %s at %s: its ring placement is %x, ours %x: %w", m.ID, addr, m.Ring, ours, ErrPlacement)
	}
	return nil
}

// refuse logs a node once: it will try again every few seconds.
func (d *delegate) refuse(name string, err error) {
	d.mu.Lock()
	first := !d.told[name] && len(d.told) < 1000
	d.told[name] = d.told[name] || first
	d.refused = err
	d.mu.Unlock()
	if first {
		d.log.Error("a node with another ring placement may not join", "error", err)
	}
}

// refusal is the last one since it was asked for.
func (d *delegate) refusal() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.refused
	d.refused = nil
	return err
}

// read takes a node's record apart. Whoever can send a packet can make one up.
func read(n *memberlist.Node) (membership.Member, netip.AddrPort, error) {
	ip, ok := netip.AddrFromSlice(n.Addr)
	if !ok || n.Port == 0 {
		return membership.Member{}, netip.AddrPort{}, fmt.Errorf("%w: no address", errMeta)
	}
	m, err := decodeMeta(n.Meta)
	if err != nil {
		return membership.Member{}, netip.AddrPort{}, err
	}
	if nodeName(m) != n.Name {
		return membership.Member{}, netip.AddrPort{}, fmt.Errorf("%w: it names %s", errMeta, nodeName(m))
	}
	addr := netip.AddrPortFrom(ip.Unmap(), n.Port)
	m.Gossip = addr.String()
	return m, addr, nil
}
