package turns

// A Line is what several sessions wait with. It is served in the order of what each has had,
// counted in any unit: who has had least is next, and of those the one that waits longest. What a
// session has left unused it does not keep: one that comes back begins with as much as the one
// that was served last. A Line is not safe for concurrent use.
type Line[T any] struct {
	sessions map[string]*share[T]
	now      int64 // what the session that was served last had had by then
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
	s := l.share(session)
	l.arrivals++
	if len(s.waiting) == 0 {
		s.since = l.arrivals
	}
	s.waiting = append(s.waiting, v)
	l.waiting++
}

// Peek returns what is next, and whose it is; ok is false if nothing waits.
func (l *Line[T]) Peek() (session string, v T, ok bool) {
	var next *share[T]
	for name, s := range l.sessions {
		switch {
		case len(s.waiting) == 0:
			if s.had <= l.now {
				delete(l.sessions, name) // as one that never was here
			}
		case next == nil, s.had < next.had, s.had == next.had && s.since < next.since:
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
	s := l.share(session)
	var none T
	s.waiting[0] = none
	s.waiting = s.waiting[1:]
	l.waiting--
	l.arrivals++
	s.since = l.arrivals
	l.now = max(l.now, s.had)
	s.had += cost
}

// Remove removes what a session waits with that matches, and reports whether there was any.
func (l *Line[T]) Remove(session string, matches func(T) bool) bool {
	s := l.share(session)
	for i, v := range s.waiting {
		if matches(v) {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			l.waiting--
			return true
		}
	}
	return false
}

// Serve counts what a session has had without waiting.
func (l *Line[T]) Serve(session string, cost int64) {
	s := l.share(session)
	l.now = max(l.now, s.had)
	s.had += cost
}

// Charge counts what a session has had beyond what was counted when it was served.
func (l *Line[T]) Charge(session string, cost int64) {
	l.share(session).had += cost
}

// share returns a session's share.
func (l *Line[T]) share(session string) *share[T] {
	s := l.sessions[session]
	if s == nil {
		if l.sessions == nil {
			l.sessions = make(map[string]*share[T])
		}
		s = &share[T]{}
		l.sessions[session] = s
	}
	if len(s.waiting) == 0 {
		s.had = max(s.had, l.now)
	}
	return s
}
