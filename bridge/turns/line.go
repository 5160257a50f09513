package turns

import (
	"maps"
	"slices"
)

// mostIdle is of how many sessions that do not wait a Line remembers what they have had.
const mostIdle = 1000

// A Line is what several sessions wait with. It is served in the order of what each has had,
// counted in any unit: who has had least is next, and of those the one that waits longest. What a
// session has left unused it does not keep: one that comes back begins with as much as the one
// that was served last. A Line is not safe for concurrent use.
type Line[T any] struct {
	sessions map[string]*share[T] // that wait
	idle     map[string]int64     // what others have had, if it is more than now; see forget
	now      int64                // what the session that was served last had had by then
	arrivals int64
	waiting  int
}

// A share is what one session has had, and what it waits with, in order.
type share[T any] struct {
	had     int64
	since   int64 // the arrival that it waits for since
	waiting []T
}

// Len returns how much waits.
func (l *Line[T]) Len() int { return l.waiting }

// Add has a session wait with v.
func (l *Line[T]) Add(session string, v T) {
	s := l.sessions[session]
	l.arrivals++
	if s == nil {
		s = &share[T]{had: l.had(session), since: l.arrivals}
		delete(l.idle, session)
		if l.sessions == nil {
			l.sessions = make(map[string]*share[T])
		}
		l.sessions[session] = s
	}
	s.waiting = append(s.waiting, v)
	l.waiting++
}

// Peek returns what is next, and whose it is; ok is false if nothing waits.
func (l *Line[T]) Peek() (session string, v T, ok bool) {
	var next *share[T]
	for name, s := range l.sessions {
		if next == nil || s.had < next.had || s.had == next.had && s.since < next.since {
			session, next = name, s
		}
	}
	if next == nil {
		return "", v, false
	}
	return session, next.waiting[0], true
}

// Take removes what a session waits with first, and counts it.
func (l *Line[T]) Take(session string, cost int64) {
	s := l.sessions[session]
	l.arrivals++
	s.since = l.arrivals
	l.now = max(l.now, s.had)
	s.had += cost
	l.remove(session, 0)
}

// Remove removes what a session waits with that matches, and reports whether there was any.
func (l *Line[T]) Remove(session string, matches func(T) bool) bool {
	s := l.sessions[session]
	if s == nil {
		return false
	}
	at := slices.IndexFunc(s.waiting, matches)
	if at >= 0 {
		l.remove(session, at)
	}
	return at >= 0
}

// remove removes the i-th of what a session waits with.
func (l *Line[T]) remove(session string, i int) {
	s := l.sessions[session]
	l.waiting--
	if len(s.waiting) == 1 {
		delete(l.sessions, session)
		l.remember(session, s.had)
		return
	}
	if i > 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return
	}
	var none T
	s.waiting[0] = none
	s.waiting = s.waiting[1:]
}

// Serve counts what a session has had without waiting.
func (l *Line[T]) Serve(session string, cost int64) {
	l.now = max(l.now, l.had(session))
	l.Charge(session, cost)
}

// Charge counts what a session has had beyond what was counted when it was served.
func (l *Line[T]) Charge(session string, cost int64) {
	if s := l.sessions[session]; s != nil {
		s.had += cost
		return
	}
	l.remember(session, l.had(session)+cost)
}

// had returns what a session has had.
func (l *Line[T]) had(session string) int64 {
	if s := l.sessions[session]; s != nil {
		return s.had
	}
	return max(l.now, l.idle[session])
}

// remember notes what a session has had that does not wait.
func (l *Line[T]) remember(session string, had int64) {
	if had <= l.now {
		delete(l.idle, session) // as one that never was here
		return
	}
	if l.idle == nil {
		l.idle = make(map[string]int64)
	}
	l.idle[session] = had
	if len(l.idle) > mostIdle {
		l.forget()
	}
}

// forget drops what need not be known of sessions that do not wait, and if that is little, the smaller half of
// the rest. Where sessions come once each, for one piece of work, now never passes what they have had.
func (l *Line[T]) forget() {
	upTo := func(most int64) {
		maps.DeleteFunc(l.idle, func(_ string, had int64) bool { return had <= most })
	}
	upTo(l.now)
	if len(l.idle) > mostIdle/2 {
		upTo(slices.Sorted(maps.Values(l.idle))[len(l.idle)/2])
	}
}
