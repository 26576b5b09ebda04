package client

import (
	"github.com/ringlimit/ringlimit/internal/wait"
	"github.com/ringlimit/ringlimit/limit"
)

// answer is what a call comes to: a verdict or an error.
type answer struct {
	verdict limit.Verdict
	err     error
}

type (
	waiter  = wait.Waiter[answer]
	waiters = wait.Pool[answer]
)
