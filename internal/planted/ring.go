//go:build planted_ring

package planted

// Fault is what this build does wrong.
const Fault = OtherRing
