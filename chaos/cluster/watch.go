package cluster

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
)

// How often the nodes are looked at, and how long one may take to answer: a node
// that is stopped shows as a gap.
const (
	watchEvery   = 500 * time.Millisecond
	watchTimeout = 400 * time.Millisecond
)

// Watch samples the nodes' own metrics until ctx ends.
func (c *Cluster) Watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.sampleAll(ctx)
		}
	}
}

func (c *Cluster) sampleAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for _, n := range c.Running() {
		asked.Go(func() {
			if s, err := n.sample(ctx); err == nil { // one that does not answer has no sample
				c.History.Sample(s)
			}
		})
	}
	asked.Wait()
}

func (n *Node) sample(ctx context.Context) (s history.Sample, err error) {
	err = n.get(ctx, adminPort, "/metrics", func(r *http.Response) error {
		s, err = readMetrics(io.LimitReader(r.Body, answerBytes))
		return err
	})
	s.Node, s.At = n.Number, n.cluster.History.Now()
	return s, err
}

// readMetrics picks the few figures that are watched out of the text format of
// Prometheus.
func readMetrics(r io.Reader) (s history.Sample, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue // a comment
		}
		switch name {
		case "ringlimit_members":
			s.Members = int(x)
		case "ringlimit_counters":
			s.Counters = int(x)
		case "process_resident_memory_bytes":
			s.Memory = int64(x)
		case "go_goroutines":
			s.Goroutines = int(x)
		case "process_open_fds":
			s.Files = int(x)
		}
	}
	return s, lines.Err()
}
