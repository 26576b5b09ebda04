//go:build planted_fence

package planted

// Fault is what this build does wrong.
const Fault = NoFence
