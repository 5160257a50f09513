package lifecycle

import "sync"

// Locks are one lock for each run, held while it is resumed, or ended where it is
// suspended. The zero value is ready.
type Locks struct {
	mu   sync.Mutex
	held map[string]*counted
}

// A counted is the lock of one run. It is held as long as another bridge takes
// to give the run up: a channel, so that a test can let that time pass.
type counted struct {
	held  chan struct{} // has an element while it is held
	users int
}

// Lock takes the lock of a run, and returns what gives it back.
func (l *Locks) Lock(run string) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = make(map[string]*counted)
	}
	one := l.held[run]
	if one == nil {
		one = &counted{held: make(chan struct{}, 1)}
		l.held[run] = one
	}
	one.users++
	l.mu.Unlock()
	one.held <- struct{}{}
	return func() {
		<-one.held
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, run)
		}
	}
}
