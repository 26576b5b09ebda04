//go:build planted_merge

package planted

// Fault is what this build does wrong.
const Fault = NoMerge
