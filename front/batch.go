package front

import (
	"context"
	"sync"

	"github.com/ringlimit/ringlimit/limit"
)

// BatchChecker is a Checker that judges many requests for less than one by one.
type BatchChecker interface {
	Checker
	// CheckAll checks all of reqs, and returns when all are answered; it keeps reqs no
	// longer. answer is called exactly once for each index, one call at a time, in the
	// order in which answers become known; v is valid only during the call, and only
	// if err is nil. The checks of one key are decided in their order. When ctx ends,
	// what is not answered gets its error.
	CheckAll(ctx context.Context, reqs []limit.Request, answer func(i int, v *limit.Verdict, err error))
}

// CheckAll does what [BatchChecker] says with any Checker: with one that is none, the
// requests are checked SideBySide.
func CheckAll(ctx context.Context, c Checker, reqs []limit.Request, answer func(i int, v *limit.Verdict, err error)) {
	if all, ok := c.(BatchChecker); ok {
		all.CheckAll(ctx, reqs, answer)
		return
	}
	var answering sync.Mutex
	var told limit.Verdict // one for all: each would be allocated
	SideBySide(len(reqs),
		func(i int) (string, bool) { return reqs[i].Key, true },
		func(i int) {
			v, err := c.Check(ctx, reqs[i])
			answering.Lock()
			defer answering.Unlock()
			told = v
			answer(i, &told, err)
		})
}
