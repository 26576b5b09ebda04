package forward

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/membership"
)

// calm is how long no check may fail before an outage counts as over. Without
// it an owner that answers every other check would start one with each.
const calm = 5 * time.Second

// outage says when on_failure starts and ceases to answer, once each.
type outage struct {
	observer Observer
	log      *slog.Logger

	active   atomic.Bool
	last     atomic.Int64 // when a check failed
	failures atomic.Int64 // in this outage

	mu sync.Mutex // held to change active
}

// failed notes that a check had no owner's verdict.
func (o *outage) failed(now int64, asked membership.NodeID, err error) {
	o.last.Store(now)
	o.failures.Add(1)
	if o.active.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.active.Load() {
		return
	}
	o.active.Store(true)
	o.observer.FallbackActive(true)
	o.log.Warn("no verdict from an owner; on_failure answers", "owner", string(asked), "error", err)
}

// answered notes that an owner has decided.
func (o *outage) answered(now int64) {
	if !o.active.Load() || now-o.last.Load() < int64(calm) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.active.Load() || now-o.last.Load() < int64(calm) {
		return
	}
	o.active.Store(false)
	o.observer.FallbackActive(false)
	o.log.Info("owners answer again", "failures", o.failures.Swap(0))
}
