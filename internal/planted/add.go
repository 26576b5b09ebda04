//go:build planted_add

package planted

// Fault is what this build does wrong.
const Fault = Add
