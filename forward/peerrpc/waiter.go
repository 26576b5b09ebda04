package peerrpc

import "github.com/ringlimit/ringlimit/internal/wait"

type (
	waiter  = wait.Waiter[answer]
	waiters = wait.Pool[answer]
)
