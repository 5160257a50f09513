package logfile

// processLives is not needed here: a file that a process has open cannot be
// removed.
func processLives(int) bool { return false }
