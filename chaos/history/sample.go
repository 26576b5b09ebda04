package history

import "slices"

// Sample is how one node was at one moment.
type Sample struct {
	At         int64
	Node       int
	Members    int   // of the cluster, as it sees them
	Counters   int   // in its memory
	Memory     int64 // resident, bytes
	Goroutines int
	Files      int // file descriptors
}

// Sample appends a sample.
func (h *History) Sample(s Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.samples = append(h.samples, s)
}

// Samples lists the samples so far, each node's by time.
func (h *History) Samples() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.samples)
}
