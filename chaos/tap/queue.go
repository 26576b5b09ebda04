package tap

import "time"

// frame is one on its way to a port.
type frame struct {
	due  time.Time
	turn uint64 // of those due at the same time the one that came first goes first
	data []byte
}

// queue is a heap (container/heap) of the frames for one port, the next on top.
type queue []*frame

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if c := q[i].due.Compare(q[j].due); c != 0 {
		return c < 0
	}
	return q[i].turn < q[j].turn
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(f any) { *q = append(*q, f.(*frame)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	f := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return f
}
