//go:build planted_standby

package planted

// Fault is what this build does wrong.
const Fault = ClosestStandby
