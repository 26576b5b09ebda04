package peerrpc

import (
	"context"
	"log/slog"
	"sync"

	"google.golang.org/grpc/metadata"
)

// refusalsPerSecond bounds what is logged about refused streams, and maxLogged
// how many bytes of a stranger's own: whoever reaches the port can be refused,
// without end.
const (
	refusalsPerSecond = 3
	maxLogged         = 64
)

// refusals logs why streams were refused.
type refusals struct {
	log *slog.Logger
	now func() int64

	mu      sync.Mutex
	lines   allowance
	dropped int // since the last line
}

func (r *refusals) tell(ctx context.Context, err error) {
	dropped, ok := r.admit()
	if !ok {
		return
	}
	md, _ := metadata.FromIncomingContext(ctx)
	peer := single(md, fromKey)
	r.log.Warn("refused a peer's stream", "peer", peer[:min(len(peer), maxLogged)], "error", err, "dropped", dropped)
}

// admit counts a line, and tells how many before it were dropped.
func (r *refusals) admit() (dropped int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.lines.take(r.now(), refusalsPerSecond) {
		r.dropped++
		return 0, false
	}
	dropped, r.dropped = r.dropped, 0
	return dropped, true
}
