package owner

import "errors"

var (
	// ErrNotHolder means that this node does not hold the counter's partition:
	// the caller's ring is older or newer than ours.
	ErrNotHolder = errors.New("this node does not hold the counter's partition")
	// ErrNotReceiving means that this node neither acquires nor holds the
	// partition: counters that arrive for it come too late.
	ErrNotReceiving = errors.New("this node neither acquires nor holds the partition")
	// ErrFull means that the memory bound is reached and the counter is new.
	// Counters that exist are never given up for new ones.
	ErrFull = errors.New("the memory for counters is used up")
	// ErrLater means that the call is not answered yet: a Late will be.
	ErrLater = errors.New("the answer follows")
)
