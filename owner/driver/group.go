package driver

import (
	"context"
	"errors"

	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// DecideGroup answers joined calls of this node, as owner.Table's DecideFrame does,
// into results of the same length. It waits as Decide does while charges have no
// copy, but not while a partition changes hands: then all of the group have a
// *transfer.NotMine, without a hint, and nothing was counted. So it is with
// owner.ErrFull. Any other error is of one call whose copy is late: it is Taken.
func (d *Driver) DecideGroup(ctx context.Context, now, deadline int64, calls []owner.Call, results []owner.Result) {
	d.cfg.Table.DecideFrame(now, calls, results)
	if errors.Is(results[0].Err, owner.ErrNotHolder) {
		d.refuse(results)
		return
	}
	waiting := d.promiseGroup(calls, results)
	for i, l := range waiting {
		if l == nil {
			continue
		}
		results[i].Err = d.wait(ctx, now, deadline, l, &results[i].Verdict)
	}
}

// promiseGroup enters what a group was charged. It returns where to wait for each
// call whose reply has to wait; nil when there is none.
func (d *Driver) promiseGroup(calls []owner.Call, results []owner.Result) (waiting []*local) {
	due := transfer.NotDue
	for i := range calls {
		if !results[i].Taken || !d.core.Guarded(calls[i].Partition) {
			continue
		}
		l := d.calls.local()
		waits, when := d.charge(&calls[i], &results[i].Verdict, l, 0, 0)
		due = max(due, when)
		if !waits {
			d.calls.locals.Put(l)
			continue
		}
		if waiting == nil {
			waiting = make([]*local, len(calls))
		}
		waiting[i] = l
	}
	d.owe(due)
	return waiting
}
