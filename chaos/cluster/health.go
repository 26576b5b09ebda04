package cluster

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/load"
)

// How a load balancer asks after a node: clients are sent only to those that
// said a moment ago that they are ready.
const (
	probeEvery   = 50 * time.Millisecond
	probeTimeout = time.Second
)

// health is what the last probe said.
type health struct {
	ready bool
	was   bool // ready at least once since the process began
}

func (h *health) reset() { *h = health{} }

// probe asks after the node until ctx ends.
func (n *Node) probe(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.probed(n.answersReady(ctx))
		}
	}
}

func (n *Node) answersReady(ctx context.Context) bool {
	if n.Down() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := n.get(ctx, httpPort, "/readyz", func(r *http.Response) error {
		_, err := io.Copy(io.Discard, io.LimitReader(r.Body, answerBytes))
		return err
	})
	return err == nil
}

func (n *Node) probed(ready bool) {
	n.mu.Lock()
	first := ready && !n.health.was && n.state != down
	n.health.ready = ready && n.state != down
	n.health.was = n.health.was || first
	n.mu.Unlock()
	if first {
		n.cluster.History.Mark(history.Event{Kind: history.Ready, Node: n.Number, Text: n.Name})
	}
}

// Ready is what the last probe said.
func (n *Node) Ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.health.ready
}

// door is where clients ask the node.
func (n *Node) door() load.Door {
	return load.Door{Node: n.Number, Host: n.place.Doors + ":" + httpPort, Client: n.http}
}
