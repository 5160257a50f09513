package upstream

import (
	"context"
	"slices"
	"time"
)

// WaitReady returns when each of the named servers, or without names every one that is
// enabled, has connected or failed once since it was started, or with ctx's error when ctx
// ends.
func (s *Set) WaitReady(ctx context.Context, names ...string) error {
	for _, one := range s.sorted() {
		if len(names) > 0 && !slices.Contains(names, one.spec.Name) {
			continue
		}
		select {
		case <-one.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Pending returns the enabled servers that have neither connected nor failed since they
// were started, sorted by name.
func (s *Set) Pending() (names []string) {
	for _, one := range s.sorted() {
		select {
		case <-one.ready:
		default:
			names = append(names, one.spec.Name)
		}
	}
	return names
}

// Why says what is wrong with the server or, as long as it has not connected, what its
// program wrote last; empty if there is nothing to say.
func (s Status) Why() string {
	if s.Err == "" && s.Said != "" {
		return "it has not answered yet; its stderr ends: " + s.Said
	}
	return s.Err
}

// Await waits for one server, and for no other, until it has listed its tools since the
// start. It returns without that when ctx ends or when there is nothing to wait for: the
// attempt to connect that was under way, or that Await began, has failed, or the listing
// after it, or a person has to do something first. [Set.Status] says which.
func (s *Set) Await(ctx context.Context, server string) {
	s.mu.Lock()
	one := s.servers[server]
	s.mu.Unlock()
	if one == nil {
		return
	}
	one.awaitTools(ctx)
	select { // it is not Pending any more
	case <-one.ready:
	case <-one.life.Done():
	case <-ctx.Done():
	}
}

func (s *server) awaitTools(ctx context.Context) {
	var tries int
	for first := true; ; first = false {
		s.mu.Lock()
		now, known, seen, changed := s.now, s.list.known, s.tries, s.changed
		s.mu.Unlock()
		if first {
			tries = seen
		}
		switch {
		case known, now.Login != "", now.State == Disabled, now.State == Unhealthy, seen > tries && now.State != Connecting:
			return
		case now.State == NeedsLogin && (s.spec.Auth == nil || !s.spec.Auth.Ready()):
			return
		case now.State == Parked && (now.Until.IsZero() || time.Now().Before(now.Until)):
			return
		case now.State != Connecting:
			s.wakeUp(false)
		}
		select {
		case <-changed:
		case <-s.life.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}
