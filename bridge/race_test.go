//go:build race

package bridge

const raceDetector = true
