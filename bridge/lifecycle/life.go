package lifecycle

import "sync"

// A Life is the State of a run that is under way, with a lock. Its methods may be
// called by any number of goroutines; State may be set before the first of them.
type Life struct {
	State State

	mu      sync.Mutex
	changed chan struct{} // closed by the next Step; nil until somebody waits
}

// Step has an event happen to the run, and reports whether it did.
func (l *Life) Step(e Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	happened := l.State.Step(e)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return happened
}

// Now returns where the run is at this moment.
func (l *Life) Now() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.State.Copy()
}

// Idle returns how many open calls are not under way at servers while the script is
// idle, else 0. The channel is closed after the next Step.
func (l *Life) Idle() (calls int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return max(0, l.State.Idle-len(l.State.servers)), l.changed
}
