package turns

// Kept returns of how many sessions a line knows anything.
func Kept[T any](l *Line[T]) int { return len(l.sessions) + len(l.idle) }
