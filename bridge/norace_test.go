//go:build !race

package bridge

const raceDetector = false
