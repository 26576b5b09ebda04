package driver

import (
	"context"
	"errors"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// local is where a check of this very node waits.
type local struct {
	answer chan owner.Result
	left   bool // its caller has gone, perhaps before the deadline; guarded by mu
}

// Answer is owner.Late's. There is room for the one answer, also when nobody
// waits any more.
func (l *local) Answer(_ uint64, _ int, r owner.Result) { l.answer <- r }

func (k *pools) local() *local {
	if l, ok := k.locals.Get().(*local); ok {
		return l
	}
	return &local{answer: make(chan owner.Result, 1)}
}

// Era is how often this node has begun to decide again after it had stopped for
// fear that it was replaced. What waited in a socket meanwhile was asked in an
// earlier one: those who asked have given up, and another node has decided.
func (d *Driver) Era() uint64 { return d.era.Load() }

// NotMine is the refusal of a call that was not counted. It names nobody who might
// decide instead.
func (d *Driver) NotMine() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.notMine("")
}

// Rule returns a rule that this node knows, or nil.
func (d *Driver) Rule(id limit.RuleID) *limit.Rule { return d.cfg.Table.Rule(id) }

// Decide answers a call of this node into v. It waits, until the deadline (in
// Unix nanoseconds) or until ctx ends, while the partition changes hands or the
// charge has no copy. The error is a *transfer.NotMine or owner.ErrFull, and
// nothing was counted; or it is context.DeadlineExceeded or that of ctx, and the
// call may have been counted: it was if v says Allowed.
func (d *Driver) Decide(ctx context.Context, now, deadline int64, c *owner.Call, v *limit.Verdict) error {
	err := d.cfg.Table.Decide(now, c, v)
	if err != nil && !errors.Is(err, owner.ErrNotHolder) {
		return err
	}
	if err == nil && !d.core.Guarded(c.Partition) {
		return nil
	}
	l := d.calls.local()
	if err == nil {
		err = d.promise(c, v, l)
	} else {
		err = d.redirect(deadline, c, v, l)
	}
	if err != owner.ErrLater {
		d.calls.locals.Put(l)
		return err
	}
	return d.wait(ctx, now, deadline, l, v)
}

// promise enters a charge. The error is owner.ErrLater if the reply has to wait.
func (d *Driver) promise(c *owner.Call, v *limit.Verdict, l *local) error {
	waits, due := d.charge(c, v, l, 0, 0)
	d.owe(due)
	if waits {
		return owner.ErrLater
	}
	return nil
}

// wait returns the answer that was promised to a call of the given time.
func (d *Driver) wait(ctx context.Context, now, deadline int64, l *local, v *limit.Verdict) error {
	t := time.NewTimer(time.Duration(deadline - d.cfg.Now()))
	defer t.Stop()
	select {
	case r := <-l.answer:
		d.calls.locals.Put(l)
		if r.Err == nil {
			d.cfg.Observer.Waited(time.Duration(d.cfg.Now() - now))
		}
		*v = r.Verdict
		return r.Err
	case <-t.C:
		return d.abandon(l, context.DeadlineExceeded, v)
	case <-ctx.Done():
		return d.abandon(l, ctx.Err(), v)
	}
}

// abandon leaves the place behind: an answer may still come there. What is
// parked is not counted any more, and a wake that was under way is over.
func (d *Driver) abandon(l *local, why error, v *limit.Verdict) error {
	d.mu.Lock()
	l.left = true
	d.mu.Unlock()
	select {
	case r := <-l.answer:
		*v = r.Verdict
		return r.Err
	default:
		return why
	}
}

// redirect is for a call that the table has refused.
func (d *Driver) redirect(deadline int64, c *owner.Call, v *limit.Verdict, l *local) error {
	r := owner.Result{Err: owner.ErrNotHolder}
	d.mu.Lock()
	due := d.route(parked{call: *c, deadline: deadline, to: l}, &r)
	d.obey()
	d.mu.Unlock()
	d.owe(due)
	if r.Err == nil {
		*v = r.Verdict
	}
	return r.Err
}

// DecideFrame answers calls of another node into results. An error is
// owner.ErrFull, a *transfer.NotMine, or owner.ErrLater: then late has the answer
// later, or never, when the deadline has passed before.
func (d *Driver) DecideFrame(now, deadline int64, calls []owner.Call, results []owner.Result, late owner.Late, frame uint64) {
	d.cfg.Table.DecideFrame(now, calls, results)
	due, refused := transfer.NotDue, false
	for i := range calls {
		switch r := &results[i]; {
		case r.Taken:
			waits, when := d.charge(&calls[i], &r.Verdict, late, frame, i)
			due = max(due, when)
			if waits {
				r.Err = owner.ErrLater
			}
		case errors.Is(r.Err, owner.ErrNotHolder):
			refused = true
		}
	}
	if refused {
		due = max(due, d.redirectFrame(deadline, calls, results, late, frame))
	}
	d.owe(due)
}

// refuse names nobody who might decide instead.
func (d *Driver) refuse(results []owner.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notMineAll(results)
}

func (d *Driver) notMineAll(results []owner.Result) {
	for i := range results {
		results[i] = owner.Result{Err: d.notMine("")}
	}
}

// redirectFrame is for the calls of a frame that the table has refused. A group
// does not wait: whoever asks has to ask for each of its calls, which may be
// anywhere by now.
func (d *Driver) redirectFrame(deadline int64, calls []owner.Call, results []owner.Result, late owner.Late, frame uint64) (due transfer.Due) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, end := 0, 0; i < len(calls); i = end {
		end = owner.GroupEnd(calls, i)
		switch r := &results[i]; {
		case !errors.Is(r.Err, owner.ErrNotHolder):
		case end-i > 1:
			d.notMineAll(results[i:end])
		default:
			due = max(due, d.route(parked{call: calls[i], deadline: deadline, to: late, frame: frame, i: i}, r))
		}
	}
	d.obey()
	return due
}

// route answers a call that the table has refused, as the core says, or parks
// it: then the result is owner.ErrLater. mu is held.
func (d *Driver) route(k parked, r *owner.Result) (due transfer.Due) {
	p := k.call.Partition
	way, hint := d.core.Route(p)
	switch {
	case way == transfer.Decide:
		return d.again(&k, r)
	case way == transfer.Wait && d.parked.add(d.cfg.Now(), p, &k):
		*r = owner.Result{Err: owner.ErrLater}
	default:
		*r = owner.Result{Err: d.notMine(hint)}
	}
	return transfer.NotDue
}

// again decides: the partition was acquired since the table refused. If it is
// not that but the fence, the table refuses once more.
func (d *Driver) again(k *parked, r *owner.Result) (due transfer.Due) {
	*r = owner.Result{}
	if r.Err = d.cfg.Table.Decide(d.cfg.Now(), &k.call, &r.Verdict); r.Err != nil {
		if errors.Is(r.Err, owner.ErrNotHolder) {
			r.Err = d.notMine("")
		}
		return transfer.NotDue
	}
	waits, due := d.charge(&k.call, &r.Verdict, k.to, k.frame, k.i)
	if waits {
		r.Err = owner.ErrLater
	}
	return due
}

func (d *Driver) notMine(hint membership.NodeID) error {
	return &transfer.NotMine{Hint: hint, Ring: d.core.Ring().Fingerprint()}
}

// wake looks again at the calls that wait for a partition, but for those whose
// askers have given up. mu is held.
func (d *Driver) wake(p int) {
	due, now := transfer.NotDue, d.cfg.Now()
	for _, k := range d.parked.take(p) {
		if k.over(now) {
			continue
		}
		var r owner.Result
		k.age(now)
		due = max(due, d.route(*k, &r))
		if r.Err != owner.ErrLater {
			k.to.Answer(k.frame, k.i, r)
		}
	}
	switch due {
	case transfer.Now:
		d.core.Owe(now)
	case transfer.Later:
		signal(d.owing)
	}
}
