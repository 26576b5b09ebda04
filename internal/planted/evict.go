//go:build planted_evict

package planted

// Fault is what this build does wrong.
const Fault = Evict
