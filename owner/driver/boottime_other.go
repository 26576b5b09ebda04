//go:build !linux

package driver

import "time"

// suspended returns a function that says how long the machine has slept since
// its last call. Only Linux tells; elsewhere it is never known to have.
func suspended() func() time.Duration { return func() time.Duration { return 0 } }
