//go:build race

package sim

// One goroutine has no races, and the detector makes it ten times slower.
const defaultSeeds = 10
