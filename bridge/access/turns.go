package access

import (
	"context"
	"slices"
	"sync"
)

// Turns has the scripts of a principal wait for one another, so that no more run at the same time than
// may. The zero value is ready. Its methods may be called by any number of goroutines.
type Turns struct {
	mu    sync.Mutex
	lines map[string]*line // by principal; gone with the last that runs or waits
}

// A line is the scripts of one principal.
type line struct {
	running int
	waiting []chan struct{} // the first in line first; closed when it is its turn
}

// Take returns once fewer than most scripts of the principal run; 0 is any number. Done must be called
// when the script has ended. The error is the cause of the end of ctx before that. Waits, if
// not nil, is called if there is a wait.
func (t *Turns) Take(ctx context.Context, name string, most int, waits func()) (done func(), err error) {
	t.mu.Lock()
	if t.lines == nil {
		t.lines = map[string]*line{}
	}
	l := t.lines[name]
	if l == nil {
		l = new(line)
		t.lines[name] = l
	}
	if most == 0 || l.running < most {
		l.running++
		t.mu.Unlock()
		return func() { t.end(name, l) }, nil
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	t.mu.Unlock()
	if waits != nil {
		waits()
	}
	select {
	case <-turn:
		return func() { t.end(name, l) }, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(l.waiting, turn)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // its turn came in the same moment
		t.end(name, l)
	}
	return nil, context.Cause(ctx)
}

// end hands the turn of a script on to the next in line.
func (t *Turns) end(name string, l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(l.waiting) > 0 {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		return
	}
	if l.running--; l.running == 0 {
		delete(t.lines, name)
	}
}
