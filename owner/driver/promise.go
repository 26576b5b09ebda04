package driver

import (
	"sync"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// promise is a verdict that is given when its charge has a copy.
type promise struct {
	verdict limit.Verdict
	to      owner.Late
	frame   uint64
	i       int
}

// pools keeps what checks need that may have to wait, so that those that do not
// cost no allocation.
type pools struct{ promises, locals sync.Pool }

func (k *pools) promise() *promise {
	if p, ok := k.promises.Get().(*promise); ok {
		return p
	}
	return new(promise)
}

func (k *pools) drop(p *promise) {
	*p = promise{}
	k.promises.Put(p)
}

// keep gives the verdict.
func (k *pools) keep(p *promise) {
	p.to.Answer(p.frame, p.i, owner.Result{Verdict: p.verdict})
	k.drop(p)
}

// charge enters what a verdict has taken, and says whether its reply has to wait.
// It comes after the decision, never before: a copy made in between has it.
func (d *Driver) charge(c *owner.Call, v *limit.Verdict, to owner.Late, frame uint64, i int) (waits bool, due transfer.Due) {
	slack := c.Rule.Slack()
	if c.Mode != limit.Take || !v.Allowed || slack < 0 {
		return false, transfer.NotDue
	}
	p := d.calls.promise()
	p.verdict, p.to, p.frame, p.i = *v, to, frame, i
	waits, due = d.core.Charge(c.Partition, c.ID, c.Cost, slack, p)
	if !waits {
		d.calls.drop(p)
	}
	return waits, due
}

// owe sees to it that charges are sent.
func (d *Driver) owe(due transfer.Due) {
	switch due {
	case transfer.Now:
		d.event(d.core.Owe)
	case transfer.Later:
		signal(d.owing)
	}
}
