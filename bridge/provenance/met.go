package provenance

import (
	"maps"
	"sync"
)

// Met is whom sessions have met so far. Its zero value is ready, and any
// number of goroutines may use it.
type Met struct {
	mu       sync.Mutex
	sessions map[string]map[string]bool // session -> names that people approved
	places   map[Whose]*place
}

// Whose says whose place it is: a server's, or a session's own if the server is started
// for each session; that of its browser, or of its folder.
type Whose struct{ Server, Session, What string }

// What of a server is somewhere.
const (
	Browser = "browser"
	Folder  = "folder"
)

// A place is where a browser or a server is, as far as the calls tell that were sent to
// it. A page that sends the browser elsewhere by itself is not noticed.
type place struct {
	at      string // the host of the page, or the folder; empty if nobody knows
	moving  int    // calls under way that may lead elsewhere
	several bool   // they overlapped: nobody knows which was the last
}

// Knows reports whether somebody approved a call of the session that names name.
func (b *Met) Knows(session, name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[session][name]
}

// Meet notes that a person approved a call of the session that names all of these.
func (b *Met) Meet(session string, names []string) {
	if len(names) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions == nil {
		b.sessions = map[string]map[string]bool{}
	}
	if b.sessions[session] == nil {
		b.sessions[session] = map[string]bool{}
	}
	for _, name := range names {
		b.sessions[session][name] = true
	}
}

// Forget forgets a session.
func (b *Met) Forget(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sessions, session)
	for w := range b.places {
		if w.Session == session {
			delete(b.places, w)
		}
	}
}

// Ahead returns a copy for one session, for what would be met next.
func (b *Met) Ahead(session string) *Met {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := &Met{sessions: map[string]map[string]bool{session: maps.Clone(b.sessions[session])}, places: map[Whose]*place{}}
	for w, p := range b.places {
		now := *p
		next.places[w] = &now
	}
	return next
}

// At returns where w is; empty if nobody knows.
func (b *Met) At(w Whose) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.places[w]; p != nil {
		return p.at
	}
	return ""
}

// Depart notes that a call is sent that leads w to another place. While it is under way
// nobody knows where w is; arrive is told once the call has succeeded, or "" if nobody
// knows that.
func (b *Met) Depart(w Whose) (arrive func(at string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.places == nil {
		b.places = map[Whose]*place{}
	}
	p := b.places[w]
	if p == nil {
		p = new(place)
		b.places[w] = p
	}
	p.several = p.moving > 0
	p.at, p.moving = "", p.moving+1
	return func(at string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if p.moving--; p.moving == 0 && !p.several {
			p.at = at
		}
	}
}
