//go:build !(planted_merge || planted_freeze || planted_add || planted_fence || planted_standby || planted_ack || planted_time || planted_evict || planted_ring)

package planted

// Fault is what this build does wrong.
const Fault = None
