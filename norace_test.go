//go:build !race

package ringlimit

const raceDetector = false
