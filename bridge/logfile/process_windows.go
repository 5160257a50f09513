package logfile

// processLives need not know on Windows, where a file that a process has open cannot be
// removed.
func processLives(int) bool { return false }
