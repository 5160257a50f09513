package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Persons are the accounts that people have at one server. Its methods are called from
// several goroutines at once.
type Persons interface {
	// Account returns what authorizes the requests of one person, by the name that
	// Client.Person returns: the same value as long as they have the same login. The
	// error, which is shown, says where to log in if they have none. The empty name is
	// whoever has none: the local user.
	Account(ctx context.Context, person string) (Authorizer, error)
}

// A Holder is an Authorizer that knows when a process must not have its token any more.
type Holder interface {
	// Holds reports whether a token that Token returned is still good for a process that
	// was started with it.
	Holds(token string) bool
}

var (
	errNoAccount = errors.New("there is no account whose token its program could be given")
	errTakenBack = errors.New("its program was ended: the account whose token it had was disconnected, or has another one")
)

// withToken adds the token of Auth to what the child is given, where the spec says so.
func (s *server) withToken(spec Spec) (Spec, error) {
	s.mine.token = ""
	if spec.TokenEnv == "" {
		return spec, nil
	}
	if spec.Auth == nil {
		return spec, &wrongError{errNoAccount.Error()}
	}
	token, err := spec.Auth.Token(s.life)
	if err == nil && token == "" {
		err = errNoAccount
	}
	if err != nil {
		return spec, s.shown.showError(err)
	}
	spec.Env = maps.Clone(spec.Env)
	if spec.Env == nil {
		spec.Env = map[string]string{}
	}
	spec.Env[spec.TokenEnv], s.mine.token = token, token
	return spec, nil
}

// tokenLooks ticks when it is to be looked whether the child may keep its token; nil if it
// has none.
func (s *server) tokenLooks() (looks <-chan time.Time, stop func()) {
	if s.mine.token == "" {
		return nil, func() {}
	}
	ticker := time.NewTicker(loginPoll)
	return ticker.C, ticker.Stop
}

// keepsToken reports whether the child may keep the token that it was started with.
func (s *server) keepsToken() bool {
	holder, ok := s.spec.Auth.(Holder)
	return !ok || holder.Holds(s.mine.token)
}

// errNobodys refuses a call of which it is not known whose account it may use.
var errNobodys = errors.New("each person has an account of their own at this server, and it is not known who makes this call")

// personIdle is how long a person's connection stays that no call uses.
const personIdle = 5 * time.Minute

// An owner has a connection of its own to a server: a session (Spec.PerSession), a
// person (Persons), or both.
type owner struct{ session, person, server string }

// An owned is the connection of an owner.
type owned struct {
	*server
	wanted time.Time // last
}

// maxOwned bounds the owners that have their own connection to one server.
const maxOwned = 64

// personOf returns the owner of a call of a server at which each person has an account,
// and what authorizes it. A call that is nobody's has none.
func (s *Set) personOf(ctx context.Context, spec Spec, accounts Persons, client Client) (owner, Authorizer, error) {
	if client == nil {
		return owner{}, nil, errNobodys
	}
	name, known := client.Person()
	if !known {
		return owner{}, nil, errNobodys
	}
	of := owner{person: "=" + name, server: spec.Name} // whoever has no name is somebody, too
	if spec.PerSession {
		of.session = client.Session()
	}
	auth, err := accounts.Account(ctx, name)
	if err == nil && auth == nil {
		err = errNobodys
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.disownLocked(func(o owner) bool { return o.person == of.person && o.server == spec.Name }) // of the login that is gone
		return owner{}, nil, err
	}
	return of, auth, nil
}

// ownLocked returns the connection of an owner, made now if there is none. One that was
// made with another login is replaced.
func (s *Set) ownLocked(one *server, of owner, auth Authorizer) (*server, error) {
	if own := s.owned[of]; own != nil {
		if own.spec.Auth == auth {
			own.wanted = time.Now()
			return own.server, nil
		}
		own.stop()
		delete(s.owned, of)
	}
	if s.sessionsLocked(of.server) >= maxOwned && !s.makeRoomLocked(of.server) {
		what := "sessions have a connection of their own to it (perSession)"
		if of.person != "" {
			what = "people have a connection of their own to it (auth.per)"
		}
		return nil, fmt.Errorf("%d %s, which is the most", maxOwned, what)
	}
	o := s.options
	o.Changed = nil // the shared server is the one that is shown
	spec := one.spec
	spec.Auth = auth
	if of.person != "" && (spec.IdleStop == 0 || spec.IdleStop > personIdle) {
		spec.IdleStop = personIdle
	}
	own := newServer(spec, o)
	if of.person != "" { // the limits are the server's, whoever calls
		own.slots, own.limiter = one.slots, one.limiter
	}
	s.owned[of] = &owned{own, time.Now()}
	s.running.Go(own.run)
	return own, nil
}

// makeRoomLocked ends the person's connection to a server that has been unused for the
// longest time, if there is one that no call uses.
func (s *Set) makeRoomLocked(server string) bool {
	var first owner
	var oldest time.Time
	for of, own := range s.owned {
		if of.server == server && of.person != "" && !own.inUse() && (oldest.IsZero() || own.wanted.Before(oldest)) {
			first, oldest = of, own.wanted
		}
	}
	if oldest.IsZero() {
		return false
	}
	s.owned[first].stop()
	delete(s.owned, first)
	return true
}

func (s *server) inUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use.calls > 0
}
