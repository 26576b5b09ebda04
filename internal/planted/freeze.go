//go:build planted_freeze

package planted

// Fault is what this build does wrong.
const Fault = NoFreeze
