package upstream

import (
	"context"
	"fmt"
)

// An owner is a session that has a connection of its own to a server.
type owner struct{ session, server string }

// maxOwned bounds the sessions that have their own connection to one server.
const maxOwned = 64

// serverFor returns the server for a call of what. Where the spec says so, that is
// the session's own, made by its first call. If identity is not empty and the spec
// has another one, the server no longer exists.
func (s *Set) serverFor(ctx context.Context, name, identity, what string) (*server, error) {
	client := clientOf(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.servers[name]
	switch {
	case s.closed:
		return nil, &Error{Server: name, Tool: what, Kind: Unavailable, Err: ErrClosed}
	case one == nil:
		return nil, &Error{Server: name, Tool: what, Kind: UnknownServer, Err: errUnknownServer}
	case identity != "" && one.spec.Identity != identity:
		return nil, &Error{Server: name, Tool: what, Kind: UnknownServer, Err: errReplaced}
	case !one.spec.PerSession || one.spec.Disabled || client == nil:
		return one, nil
	}
	of := owner{client.Session(), name}
	if own := s.owned[of]; own != nil {
		return own, nil
	}
	if s.sessionsLocked(name) >= maxOwned {
		return nil, &Error{Server: name, Tool: what, Kind: Unavailable, Err: fmt.Errorf("%d sessions have a connection of their own to it (perSession), which is the most", maxOwned)}
	}
	o := s.options
	o.Changed = nil // the shared server is the one that is shown
	own := newServer(one.spec, o)
	s.owned[of] = own
	s.running.Go(own.run)
	return own, nil
}

// EndSession ends a session's own connections. It does not wait until they have
// ended.
func (s *Set) EndSession(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disownLocked(func(of owner) bool { return of.session == session })
}

func (s *Set) disownLocked(gone func(owner) bool) {
	for of, own := range s.owned {
		if gone(of) {
			own.stop()
			delete(s.owned, of)
		}
	}
}

func (s *Set) sessionsLocked(server string) int {
	n := 0
	for of := range s.owned {
		if of.server == server {
			n++
		}
	}
	return n
}
