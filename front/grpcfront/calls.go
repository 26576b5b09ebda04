package grpcfront

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// calls knows which calls of the service are under way, so that a stop waits for
// them and for nobody else.
type calls struct {
	mu       sync.Mutex
	n        int           // streams among them
	none     chan struct{} // closed when there are none; nil: nobody waits
	streams  map[*stream]struct{}
	stopping bool
}

func (c *calls) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// ended waits until there are none: once the grace is over, in which those that were
// on their way may begin. It gives up when ctx ends.
func (c *calls) ended(ctx context.Context) {
	grace := time.NewTimer(watchGrace)
	defer grace.Stop()
	select {
	case <-grace.C:
	case <-ctx.Done():
		return
	}
	select {
	case <-c.empty():
	case <-ctx.Done():
	}
}

func (c *calls) empty() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	none := make(chan struct{})
	if c.n == 0 {
		close(none)
	} else {
		c.none = none
	}
	return none
}

// register says whether the server is about to stop: the stream then has to say
// farewell by itself.
func (c *calls) register(s *stream) (stopping bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams == nil {
		c.streams = map[*stream]struct{}{}
	}
	c.streams[s] = struct{}{}
	return c.stopping
}

func (c *calls) unregister(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s)
}

// farewell asks the clients of all streams to end them. Together: one that is stuck
// must not delay the others.
func (c *calls) farewell() {
	c.mu.Lock()
	c.stopping = true
	streams := slices.Collect(maps.Keys(c.streams))
	c.mu.Unlock()
	for _, s := range streams {
		s.replies.farewell()
	}
}
