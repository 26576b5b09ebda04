package driver

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// Enter waits until this node may serve beside the members that it has found:
// when another serves, or, of those that only join, this one has the lowest boot
// id. Of a whole cluster that starts at once, one begins and the others take over
// from it. The error is that of ctx or a *LaterRunError.
func (d *Driver) Enter(ctx context.Context) error { return d.begin(ctx, d.mayServe) }

// LaterRunError says that the others remember a run of this node with a higher
// boot id, and that it has ended: they do not listen to this one.
type LaterRunError struct{ Boot membership.BootID }

func (e *LaterRunError) Error() string {
	return fmt.Sprintf("the others remember a run of this node with boot id %v, which is later than this one's: was the clock set back? Start with a higher boot id", e.Boot)
}

// begin is until, for a run that may be outdated. One that is superseded is so by
// a process that lives, and must not take the name back.
func (d *Driver) begin(ctx context.Context, reached func() bool) error {
	var outdated error
	err := d.until(ctx, func() bool {
		if later := d.core.Later(); later != 0 && !d.superseded {
			outdated = &LaterRunError{later}
			return true
		}
		return reached()
	})
	return cmp.Or(err, outdated)
}

func (d *Driver) mayServe() bool {
	others, first := false, true
	for _, r := range d.core.Records() {
		switch {
		case r.ID == d.cfg.Self.ID || r.State == transfer.Dead:
			continue
		case r.State == membership.Serving:
			return true
		case r.State == membership.Joining:
			first = first && d.precedes(r)
		}
		others = true
	}
	return others && first
}

// precedes says that this node begins before one that joins as well. Boots are
// equal only where clocks are coarse.
func (d *Driver) precedes(r transfer.Record) bool {
	return cmp.Or(cmp.Compare(d.cfg.Self.Boot, r.Boot), cmp.Compare(d.cfg.Self.ID, r.ID)) < 0
}

// Serve lets this node own partitions, and returns when it holds those it owns.
// The error is that of ctx or a *LaterRunError.
func (d *Driver) Serve(ctx context.Context) error {
	d.become(membership.Serving)
	return d.begin(ctx, func() bool { return d.superseded || d.serving() })
}

func (d *Driver) become(s membership.State) {
	d.event(func(now int64) { d.core.Become(now, s) })
}

// serving says whether this node serves, holds what it owns and may decide.
func (d *Driver) serving() bool {
	return d.core.Self().State == membership.Serving && !d.core.Fenced() && d.core.Acquiring() == 0
}

// Drain gives all partitions away, and the copies that it keeps, and returns when
// the others have them, or when there is nobody who could. When ctx ends before,
// the error says how many were left. Copies whose holders live are waited for as
// well, since until there are others a crash would lose counters, but they are no
// error: nothing goes with this node that is not elsewhere.
func (d *Driver) Drain(ctx context.Context) error {
	d.become(membership.Draining)
	err := d.until(ctx, func() bool { return d.superseded || d.core.Drained() })
	if err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch partitions, copies := d.core.Left(); {
	case partitions > 0:
		return fmt.Errorf("%d partitions were not handed over: %w", partitions, err)
	case copies > 0:
		return fmt.Errorf("copies of %d partitions, whose holders may be gone, were not handed over: %w", copies, err)
	}
	return nil
}

// Depart is the event that this node says goodbye to the gossip, after Drain.
func (d *Driver) Depart() { d.event(d.core.Depart) }

// until waits for a state that events lead to. reached is called under the lock.
func (d *Driver) until(ctx context.Context, reached func() bool) error {
	for {
		d.mu.Lock()
		if reached() {
			d.mu.Unlock()
			return nil
		}
		if d.changed == nil {
			d.changed = make(chan struct{})
		}
		changed := d.changed
		d.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
