package ringlimit

import (
	"cmp"
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
	// pullTimeout bounds one attempt, while something comes; a member that says
	// nothing is given up long before. What has come by then is not asked for again.
	pullTimeout = 30 * time.Second
	// pullsAtOnce bounds how many members are asked at the same time.
	pullsAtOnce = 8
	// catchUpTime is how long a joining node waits for the cluster's rules, and
	// catchUpRest how long for those of the last members when it has some.
	catchUpTime = 30 * time.Second
	catchUpRest = 5 * time.Second
	// lookInterval is how often one who waits looks how far it is.
	lookInterval = 20 * time.Millisecond
)

// puller brings rules that others have to this node's store. It looks at what
// they say of themselves: who has rules that are not known to be included here is
// asked, at once, and again while it fails. So what is written anywhere gets
// everywhere, along any path that is left.
type puller struct {
	self  membership.NodeID
	store *live.Store
	// ask returns what has come, also with an error: then it is not all.
	ask  func(context.Context, membership.Member) (entries []live.Entry, digest uint64, err error)
	warn func(warnings []string)
	log  *slog.Logger

	news    chan struct{} // members have changed
	results chan pulled
	waiting chan chan<- progress
	peers   map[membership.NodeID]*source
	busy    int
	work    sync.WaitGroup
}

// progress is how far this node's rules are behind those of the others.
type progress struct {
	lacking int  // members whose rules are not known to be included here
	pending int  // of them, who was not asked yet, or is being asked
	gained  bool // some member's are included
}

// even says that a node which begins need not wait: no member has other rules, or
// it was given some and nobody else is left to ask.
func (p progress) even() bool { return p.lacking == 0 || p.gained && p.pending == 0 }

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
		news: make(chan struct{}, 1), results: make(chan pulled), waiting: make(chan chan<- progress),
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
		case w := <-p.waiting:
			w <- p.look(ctx, members()) // there is room
			continue
		case <-again.C:
		case <-ctx.Done():
			return
		}
		p.look(ctx, members())
	}
}

// look asks whoever is to be asked now.
func (p *puller) look(ctx context.Context, members []membership.Member) progress {
	differ := p.differing(members)
	is := progress{lacking: len(differ), gained: p.gained() && !p.store.Empty()}
	for _, m := range differ {
		s := p.source(m.ID)
		if !s.busy && p.busy < pullsAtOnce && !time.Now().Before(s.retry) {
			s.busy, s.tried = true, true
			p.busy++
			p.work.Go(func() { p.pull(ctx, m) })
		}
		if s.busy || !s.tried {
			is.pending++
		}
	}
	return is
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

func (p *puller) gained() bool {
	for _, s := range p.peers {
		if s.included != [2]uint64{} {
			return true
		}
	}
	return false
}

// pull asks one member and merges what it gives: of an attempt that fails, too, or
// one that takes too long would never get further.
func (p *puller) pull(ctx context.Context, m membership.Member) {
	asking, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	entries, digest, err := p.ask(asking, m)
	_, warnings, bad := p.store.Merge(entries)
	p.warn(warnings)
	err = cmp.Or(err, bad)
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

// catchUp waits until the others' rules are here, a while at most: what has not
// come by then comes later. It says whether this node has what others have, of some
// member at least.
func (p *puller) catchUp(ctx context.Context) bool {
	waiting, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	rest, late := time.Now().Add(catchUpRest), false
	has := p.await(waiting, func(is progress) bool {
		late = !is.even()
		return !late || is.gained && !time.Now().Before(rest)
	})
	if late && ctx.Err() == nil {
		p.log.Warn("not all rules of the cluster have come; serving without them and trying on", "some_came", has)
	}
	return has
}

// await waits until enough says so, and is false when ctx ends before.
func (p *puller) await(ctx context.Context, enough func(progress) bool) bool {
	again := time.NewTicker(lookInterval)
	defer again.Stop()
	for {
		now := make(chan progress, 1)
		select {
		case p.waiting <- now:
		case <-ctx.Done():
			return false
		}
		if enough(<-now) {
			return true
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}
}
