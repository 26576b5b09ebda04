//go:build planted_time

package planted

// Fault is what this build does wrong.
const Fault = AbsoluteTime
