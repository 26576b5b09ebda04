package ringlimit

import (
	"context"
	"slices"
	"sync"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/rules"
)

// CheckAll judges each request as Check does, for less: what one node owns is asked
// of it in one go. It calls answer once for each index, one call at a time and in the
// order in which the answers become known, perhaps from another goroutine, and returns
// when all are given. The verdict is valid during that call, and nil if there is an
// error.
//
// A request that has to wait holds up no other. Those of one key are decided in their
// order; of those with one limit, which are asked for together, this does not hold
// just while a counter changes hands. As with as many calls of Check at once, what goes
// beyond what one node keeps waiting for another, of which 16,384 checks are the most, is
// answered by on_failure: ask for more in parts.
func (n *Node) CheckAll(ctx context.Context, reqs []Request, answer func(i int, v *Verdict, err error)) {
	if n.gone.Load() {
		for i := range reqs {
			answer(i, nil, ErrLeft)
		}
		return
	}
	b := n.batch()
	defer b.release()
	b.ctx, b.set, b.reqs, b.answer = ctx, n.Rules(), reqs, answer
	b.sort()
	var others sync.WaitGroup
	if len(b.others) > 0 {
		others.Go(b.askOthers)
	}
	n.router.DecideEach(ctx, b.calls, b.decided)
	others.Wait()
}

// batch is requests that are judged together; pooled, so that one costs no
// allocation.
type batch struct {
	node    *Node
	ctx     context.Context
	set     *rules.Set
	reqs    []Request
	matches rules.Matches
	verdict Verdict      // of who needs no counter
	calls   []owner.Call // of requests with one limit
	places  []int        // which requests those are of
	names   []byte       // the calls' counters
	others  []int        // requests to be judged by themselves
	stripe  int          // of the metrics

	mu     sync.Mutex // held to answer
	answer func(i int, v *Verdict, err error)
}

// mostNames is how many bytes of names are kept for the next batch. A thousand usual
// ones are a tenth of that.
const mostNames = 1 << 20

func (n *Node) batch() *batch {
	b, ok := n.batches.Get().(*batch)
	if !ok {
		b = &batch{stripe: n.metrics.tallies.stripe()}
	}
	b.node = n
	return b
}

// release lets go of what is the caller's, and of rules, which may change.
func (b *batch) release() {
	n := b.node
	b.matches.Forget()
	clear(b.calls)
	if cap(b.names) > mostNames {
		b.names = nil
	}
	*b = batch{
		matches: b.matches, stripe: b.stripe,
		calls: b.calls[:0], places: b.places[:0], names: b.names[:0], others: b.others[:0],
	}
	n.batches.Put(b)
}

// sort finds out which requests have one limit that is enforced. If others come
// under several, all requests of their keys are judged one by one, which keeps the
// order.
func (b *batch) sort() {
	for i := range b.reqs {
		b.place(i)
	}
	if len(b.others) > 0 {
		b.follow()
	}
}

// place answers what needs no counter.
func (b *batch) place(i int) {
	req := &b.reqs[i]
	err := req.Validate()
	if err == nil {
		err = b.set.Match(req, &b.matches)
	}
	switch winners := b.matches.Winners; {
	case err != nil:
		b.tell(i, nil, err)
	case len(winners) == 0:
		b.verdict = Verdict{Allowed: true}
		b.tell(i, &b.verdict, nil)
	case len(winners) > 1 || winners[0].Rule.Shadow:
		b.others = append(b.others, i)
	case winners[0].Missing != "":
		b.verdict = lacking(&winners[0])
		b.node.metrics.decided(&b.verdict, b.stripe)
		b.tell(i, &b.verdict, nil)
	default:
		b.call(i, &winners[0])
	}
}

// call has one limit charged. Its counter's name lies in room that the next match
// writes over.
func (b *batch) call(i int, w *rules.Winner) {
	req, from := &b.reqs[i], len(b.names)
	b.names = append(b.names, w.Counter...)
	b.calls = append(b.calls, owner.Call{Charge: limit.Charge{
		Counter: b.names[from:len(b.names):len(b.names)], Rule: w.Rule, Cost: req.Units(), Mode: modeOf(req),
	}})
	b.places = append(b.places, i)
}

// follow takes the requests of the others' keys out of the calls.
func (b *batch) follow() {
	keys := make(map[string]struct{}, len(b.others))
	for _, i := range b.others {
		keys[b.reqs[i].Key] = struct{}{}
	}
	calls, places := b.calls[:0], b.places[:0]
	for k, i := range b.places {
		if _, ok := keys[b.reqs[i].Key]; ok {
			b.others = append(b.others, i)
			continue
		}
		calls, places = append(calls, b.calls[k]), append(places, i)
	}
	clear(b.calls[len(calls):])
	b.calls, b.places = calls, places
	slices.Sort(b.others)
}

// askOthers judges requests one by one: side by side those of different keys.
func (b *batch) askOthers() {
	key := func(k int) (string, bool) { return b.reqs[b.others[k]].Key, true }
	front.SideBySide(len(b.others), key, func(k int) {
		i := b.others[k]
		req, v := b.reqs[i], new(Verdict)
		err := b.node.charge(b.ctx, b.set, &req, modeOf(&req), v)
		if err != nil {
			v = nil
		}
		b.tell(i, v, err)
	})
}

// decided answers one of the calls.
func (b *batch) decided(k int, v *Verdict, err error) {
	if err == nil {
		b.node.metrics.decided(v, b.stripe)
	}
	b.tell(b.places[k], v, err)
}

func (b *batch) tell(i int, v *Verdict, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer(i, v, err)
}
