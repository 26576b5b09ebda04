//go:build race

package ringlimit

// raceDetector is on: a sync.Pool then drops what it is given, now and then.
const raceDetector = true
