package cluster

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/load"
)

// How a load balancer asks after a node: clients are sent only to those that
// said a moment ago that they are ready. An answer counts at once. Of silence it
// takes some in a row, as load balancers have it: else a machine that stands still
// for a moment would take all its nodes out at once.
const (
	probeEvery   = 50 * time.Millisecond
	probeTimeout = time.Second
	silences     = 2
)

// health is what the last probes said.
type health struct {
	ready  bool
	was    bool // ready at least once since the process began
	silent int  // probes without an answer, in a row
}

func (h *health) reset() { *h = health{} }

// hear takes in what one probe came to.
func (h *health) hear(err error) {
	if !errors.Is(err, context.DeadlineExceeded) {
		h.ready, h.silent = err == nil, 0
		return
	}
	h.silent++
	h.ready = h.ready && h.silent < silences
}

// probe asks after the node until ctx ends.
func (n *Node) probe(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.probed(n.readiness(ctx))
		}
	}
}

var errDown = errors.New("down")

// readiness is nil for a node that says it is ready.
func (n *Node) readiness(ctx context.Context) error {
	if n.Down() {
		return errDown
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return n.get(ctx, httpPort, "/readyz", func(r *http.Response) error {
		_, err := io.Copy(io.Discard, io.LimitReader(r.Body, answerBytes))
		return err
	})
}

func (n *Node) probed(err error) {
	n.mu.Lock()
	if n.state == down {
		err = errDown
	}
	n.health.hear(err)
	first := n.health.ready && !n.health.was
	n.health.was = n.health.was || first
	n.mu.Unlock()
	if first {
		n.cluster.History.Mark(history.Event{Kind: history.Ready, Node: n.Number, Text: n.Name})
	}
}

// Ready is what the last probes said.
func (n *Node) Ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.health.ready
}

// door is where clients ask the node.
func (n *Node) door() load.Door {
	return load.Door{Node: n.Number, Host: n.place.Doors + ":" + httpPort, Client: n.http}
}
