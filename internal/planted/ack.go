//go:build planted_ack

package planted

// Fault is what this build does wrong.
const Fault = NoRepeat
