package ringlimit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/rules/live"
)

const (
	// pullRetry lies between two attempts to get rules from a member that failed
	// to give them.
	pullRetry = time.Second
	// pullTimeout bounds one attempt: a member that hangs is then asked anew.
	pullTimeout = 10 * time.Second
	// pullsAtOnce bounds how many members are asked at the same time.
	pullsAtOnce = 8
	// catchUpTime is how long a joining node waits for the cluster's rules.
	catchUpTime = 5 * time.Second
)

// puller brings rules that others have to this node's store. It looks at what
// they say of themselves: who has rules that are not known to be included here is
// asked, at once, and again while it fails. So what is written anywhere gets
// everywhere, along any path that is left.
type puller struct {
	self  membership.NodeID
	store *live.Store
	ask   func(context.Context, membership.Member) (entries []live.Entry, digest uint64, err error)
	warn  func(warnings []string)
	log   *slog.Logger

	news    chan struct{} // members have changed
	results chan pulled
	even    chan struct{} // closed once the others' rules are here
	peers   map[membership.NodeID]*source
	busy    int
	work    sync.WaitGroup
}

// source is what is known of a member's rules. All of it is run's.
type source struct {
	busy     bool
	tried    bool
	included [2]uint64 // digests of the member's that are included here
	retry    time.Time // not before, after a failure
	told     string    // what was last logged
}

// pulled is what came of asking.
type pulled struct {
	from   membership.NodeID
	asked  uint64 // the digest that the member had announced
	digest uint64 // that it then had
	err    error
}

func newPuller(n *Node) *puller {
	return &puller{
		self: n.self.ID, store: n.store,
		ask: func(ctx context.Context, m membership.Member) ([]live.Entry, uint64, error) {
			return n.pool.Rules(ctx, m, n.store)
		},
		warn: n.warnOfRules, log: n.cfg.Logger,
		news: make(chan struct{}, 1), results: make(chan pulled), even: make(chan struct{}),
		peers: map[membership.NodeID]*source{},
	}
}

// notice says that the members have changed. It never blocks.
func (p *puller) notice() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// run pulls until ctx ends, and returns when nobody is being asked any more.
func (p *puller) run(ctx context.Context, members func() []membership.Member) {
	defer p.work.Wait()
	again := time.NewTicker(pullRetry)
	defer again.Stop()
	for {
		select {
		case <-p.news:
		case r := <-p.results:
			p.take(r)
		case <-again.C:
		case <-ctx.Done():
			return
		}
		p.look(ctx, members())
	}
}

// look asks whoever is to be asked now.
func (p *puller) look(ctx context.Context, members []membership.Member) {
	differ, untried := p.differing(members), 0
	for _, m := range differ {
		if s := p.source(m.ID); !s.tried && p.busy == pullsAtOnce {
			untried++
		} else if !s.busy && p.busy < pullsAtOnce && !time.Now().Before(s.retry) {
			s.busy, s.tried = true, true
			p.busy++
			p.work.Go(func() { p.pull(ctx, m) })
		}
	}
	p.noteEven(len(members) > 1, len(differ), untried)
}

// differing lists the members that may have what this node lacks, and forgets
// those that are gone. Who failed last comes last: those that hang must not take
// all turns.
func (p *puller) differing(members []membership.Member) (differ []membership.Member) {
	present := map[membership.NodeID]bool{}
	for _, m := range members {
		present[m.ID] = true
		if m.ID != p.self && !p.includes(m) {
			differ = append(differ, m)
		}
	}
	for id, s := range p.peers {
		if !present[id] && !s.busy {
			delete(p.peers, id)
		}
	}
	slices.SortStableFunc(differ, func(a, b membership.Member) int { return p.source(a.ID).retry.Compare(p.source(b.ID).retry) })
	return differ
}

// includes says whether the member has no rules that this node is known to lack.
func (p *puller) includes(m membership.Member) bool {
	d := m.Rules.Digest
	if d == 0 || p.store.Includes(d) {
		return true
	}
	s := p.peers[m.ID]
	return s != nil && (d == s.included[0] || d == s.included[1])
}

func (p *puller) source(id membership.NodeID) *source {
	s := p.peers[id]
	if s == nil {
		s = &source{}
		p.peers[id] = s
	}
	return s
}

// noteEven tells a node that waits to serve when it need not wait any longer: no
// member has other rules, or it was given some and nobody else is left to ask.
func (p *puller) noteEven(others bool, differ, untried int) {
	if !others || differ > 0 && (untried > 0 || p.busy > 0 || !p.gained()) {
		return
	}
	select {
	case <-p.even:
	default:
		close(p.even)
	}
}

func (p *puller) gained() bool {
	for _, s := range p.peers {
		if s.included != [2]uint64{} {
			return true
		}
	}
	return false
}

// pull asks one member and merges what it gives.
func (p *puller) pull(ctx context.Context, m membership.Member) {
	asking, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	entries, digest, err := p.ask(asking, m)
	if err == nil {
		var warnings []string
		_, warnings, err = p.store.Merge(entries)
		p.warn(warnings)
	}
	select {
	case p.results <- pulled{m.ID, m.Rules.Digest, digest, err}:
	case <-ctx.Done():
	}
}

// take notes what came of asking. What the member had when it announced its rules
// it had when it was asked.
func (p *puller) take(r pulled) {
	s := p.source(r.from)
	p.busy--
	s.busy = false
	if r.err == nil {
		s.included, s.told = [2]uint64{r.asked, r.digest}, ""
		return
	}
	s.retry = time.Now().Add(pullRetry)
	if reason := r.err.Error(); reason != s.told {
		s.told = reason
		p.log.Warn("a member did not give its rules; trying on", "peer", string(r.from), "error", r.err)
	}
}

// catchUp waits until the others' rules are here, a while at most: they come
// later then, and meanwhile this node enforces what it has.
func (p *puller) catchUp(ctx context.Context) {
	patience := time.NewTimer(catchUpTime)
	defer patience.Stop()
	select {
	case <-p.even:
	case <-patience.C:
		p.log.Warn("the cluster's rules have not come yet; serving with this node's own and trying on")
	case <-ctx.Done():
	}
}
