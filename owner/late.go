package owner

// Late takes the answer to a call that could not be answered at once, because
// its partition is just changing hands or because its charge needs a copy first.
type Late interface {
	// Answer is called once, from another goroutine, and must not block. frame
	// and i are what the call was handed over with. It is not called when the
	// call's deadline has passed.
	Answer(frame uint64, i int, r Result)
}
