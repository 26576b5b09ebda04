// Package gossip finds the members of the cluster and notices when they come,
// change and go. It is the only importer of memberlist and handles what that
// does not: a node that restarts fast or returns at another address, a partition
// that outlasts memberlist's memory, joining oneself, two clusters or two ring
// placements that must not mix. It says who is there; it never says who owns what.
package gossip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/ringlimit/ringlimit/membership"
)

// ErrClosed means that Close or Leave came first.
var ErrClosed = errors.New("gossip: closed")

// turn is a lock that may be held while memberlist waits for the network. A Mutex
// would do, but in a test's bubble time stands still while somebody waits for
// one.
type turn chan struct{}

func (t turn) take() { t <- struct{}{} }
func (t turn) give() { <-t }

// Gossip is one node's part in the cluster.
type Gossip struct {
	cfg      Config
	seeds    []seed
	addr     netip.AddrPort
	list     *memberlist.Memberlist
	roster   *roster
	delegate *delegate
	mailbox  *membership.Mailbox
	said     chan struct{} // we have announced something; see repeat
	joining  atomic.Bool   // Join was called: the seeds are ours to keep trying

	// ops lets one call at a time into memberlist's UpdateNode, Leave and
	// Shutdown: the first races with itself, and Leave after Shutdown panics.
	ops  turn
	left atomic.Bool // set under ops

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// Start opens the listeners and takes part, alone until Join or until others
// join us. The error names the field or the address at fault.
func Start(cfg Config) (*Gossip, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	seeds, err := parseSeeds(cfg.Join)
	if err != nil {
		return nil, err
	}
	settings, err := cfg.settings()
	if err != nil {
		return nil, err
	}
	r := newRoster(cfg.Self)
	d := &delegate{roster: r, log: cfg.Logger, told: map[string]bool{}}
	settings.Delegate, settings.Events, settings.Alive, settings.Merge = d, d, d, d
	list, err := memberlist.Create(settings)
	if err != nil {
		return nil, startError(err)
	}
	self := list.LocalNode()
	ip, _ := netip.AddrFromSlice(self.Addr)
	g := &Gossip{
		cfg: cfg, seeds: seeds, addr: netip.AddrPortFrom(ip.Unmap(), self.Port),
		list: list, roster: r, delegate: d, mailbox: membership.NewMailbox(), ops: make(turn, 1),
		said: make(chan struct{}, 1),
	}
	r.setAddr(g.addr)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	first := r.view()
	g.mailbox.Put(first)
	g.spawn(func() { g.settle(first) })
	g.spawn(g.rejoin)
	g.spawn(g.repeat)
	return g, nil
}

// startError is what the system said of the socket. memberlist wraps that in three
// layers of text that say the same.
func startError(err error) error {
	text := err.Error()
	if at := strings.LastIndex(text, "listen "); at >= 0 {
		text = text[at:]
	}
	return errors.New("gossip: " + text)
}

// Views gives the members whenever they changed, ourself among them, bursts
// settled; the latest wins. The first view is there at once. It is never closed.
func (g *Gossip) Views() <-chan membership.View { return g.mailbox.Views() }

// Addr is the ip:port that others reach this node by.
func (g *Gossip) Addr() string { return g.addr.String() }

// Announce tells everyone of our state, and by which sequence of ours it is
// newer than what they may have heard. An announcement with a sequence lower than
// the last one's comes too late and is dropped. Announce waits a moment for the
// news to go out; should that take longer, it still spreads.
func (g *Gossip) Announce(s membership.State, seq uint64) error {
	if s < membership.Joining || s > membership.Draining {
		return fmt.Errorf("gossip: state %d is none", s)
	}
	done := make(chan error, 1)
	if !g.spawn(func() { done <- g.announce(s, seq) }) {
		return ErrClosed
	}
	return <-done
}

func (g *Gossip) announce(s membership.State, seq uint64) error {
	g.ops.take()
	defer g.ops.give()
	if g.left.Load() {
		return ErrClosed
	}
	g.spread(s, seq)
	return nil
}

// spread needs ops. memberlist's wait can miss that it is over, so that its
// error says nothing.
func (g *Gossip) spread(s membership.State, seq uint64) {
	if g.roster.announce(s, seq) {
		g.repeatSoon()
		if err := g.list.UpdateNode(spreadTimeout); err != nil {
			g.cfg.Logger.Debug("our new state is still spreading", "state", s.String(), "sequence", seq, "error", err)
		}
	}
}

// AnnounceRules tells everyone which rules we have. The news goes out with the
// next gossip, and is not waited for: to announce a state must not have to wait for
// it.
func (g *Gossip) AnnounceRules(s membership.RulesSummary) error {
	done := make(chan error, 1)
	if !g.spawn(func() { done <- g.announceRules(s) }) {
		return ErrClosed
	}
	return <-done
}

func (g *Gossip) announceRules(s membership.RulesSummary) error {
	g.ops.take()
	defer g.ops.give()
	if g.left.Load() {
		return ErrClosed
	}
	if g.roster.announceRules(s) {
		g.repeatSoon()
		_ = g.list.UpdateNode(time.Nanosecond) // says only that it has not gone out yet
	}
	return nil
}

func (g *Gossip) repeatSoon() {
	select {
	case g.said <- struct{}{}:
	default: // it is to be repeated anyway
	}
}

// repeat announces once more what was announced a moment ago. memberlist v0.7.0 can
// lose a broadcast that takes the place of the only one in its queue: the queue then
// begins to number anew, and drops one of two that get the same number and are of one
// length. Without this the others would hear of it with the next push/pull only.
func (g *Gossip) repeat() {
	for {
		select {
		case <-g.said:
		case <-g.ctx.Done():
			return
		}
		select {
		case <-time.After(repeatAfter):
		case <-g.ctx.Done():
			return
		}
		g.ops.take()
		if !g.left.Load() {
			_ = g.list.UpdateNode(time.Nanosecond) // says only that it has not gone out yet
		}
		g.ops.give()
	}
}

// Leave says goodbye: others learn that we drain, so that they do not take us
// for lost, and then that we are gone. Call Close afterwards. Leaving twice is
// leaving once.
func (g *Gossip) Leave(ctx context.Context) error {
	done := make(chan error, 1)
	if !g.spawn(func() { done <- g.leave() }) {
		return ErrClosed
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("gossip: leave: %w", ctx.Err())
	}
}

func (g *Gossip) leave() error {
	g.ops.take()
	defer g.ops.give()
	if g.left.Load() {
		return nil
	}
	g.left.Store(true)
	g.spread(membership.Draining, g.roster.me().Seq) // to drain is the worse state: it wins under the same sequence
	if err := g.list.Leave(spreadTimeout); err != nil {
		return fmt.Errorf("gossip: leave: %w", err)
	}
	return nil
}

// Close stops everything and waits for it; without Leave the others find out by
// probing. It may be called again, and at the same time as anything else.
func (g *Gossip) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	g.work.Wait() // a Leave on its way ends first: after Shutdown it would panic
	g.ops.take()
	defer g.ops.give()
	return g.list.Shutdown()
}

// spawn runs f unless Close came first; Close waits for it.
func (g *Gossip) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.work.Go(f)
	return true
}

// settle turns bursts of events into views, from the last one published on. It
// alone writes to the mailbox.
func (g *Gossip) settle(last membership.View) {
	look := time.NewTicker(twinGrace)
	defer look.Stop()
	told := map[string]bool{}
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-look.C:
		case <-g.roster.dirty:
			g.calm()
		}
		if v := g.roster.view(); !slices.Equal(v.Members, last.Members) {
			last = v
			g.mailbox.Put(v)
		}
		g.reportTwins(told, time.Now())
	}
}

// calm waits until no event came for a while, but not for ever.
func (g *Gossip) calm() {
	limit := time.NewTimer(burst)
	defer limit.Stop()
	for {
		pause := time.NewTimer(quiet)
		select {
		case <-g.roster.dirty:
			pause.Stop()
		case <-pause.C:
			return
		case <-limit.C:
			return
		case <-g.ctx.Done():
			return
		}
	}
}

// reportTwins logs each other process that runs under our node id, once. The
// later boot is the node, in everyone's view and so in ours; an earlier one is
// normal for a moment, until its death is noticed.
func (g *Gossip) reportTwins(told map[string]bool, now time.Time) {
	for name, p := range g.roster.twins() {
		later := p.member.Boot > g.cfg.Self.Boot
		if told[name] || !later && now.Sub(p.since) < twinGrace {
			continue
		}
		told[name] = true
		g.cfg.Logger.Error("two processes run under one node id: give one of them another; the one started later counts",
			"id", string(p.member.ID), "other", p.addr.String(), "ours_counts", !later)
	}
}
