package upstream

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"
)

// A Set keeps the sessions. Make one with [New]. All methods may be called
// from several goroutines at once.
type Set struct {
	options Options

	mu      sync.Mutex
	servers map[string]*server
	owned   map[owner]*owned // of the sessions and persons that have their own
	closed  bool
	// running counts the servers' goroutines, including those of removed servers
	// that are still ending.
	running sync.WaitGroup
}

// New makes a Set without servers. [Set.Close] ends it.
func New(o Options) *Set {
	return &Set{options: o, servers: map[string]*server{}, owned: map[owner]*owned{}}
}

// Apply makes the Set hold exactly the given servers: it starts those that are
// new, stops those that are gone, restarts those whose Spec changed, and leaves
// the others alone. It returns at once; starting and stopping continue in the
// background. If two specs have the same name, the last one counts. After Close it
// does nothing.
func (s *Set) Apply(specs []Spec) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	want := make(map[string]Spec, len(specs))
	for _, spec := range specs {
		want[spec.Name] = clone(spec)
	}
	var changed bool
	for name, old := range s.servers {
		if spec, ok := want[name]; !ok || !equal(spec, old.spec) {
			old.stop()
			s.disownLocked(func(of owner) bool { return of.server == name })
			changed = true
			if !ok {
				delete(s.servers, name)
			}
		}
	}
	for name, spec := range want {
		old := s.servers[name]
		if old != nil && equal(spec, old.spec) {
			continue
		}
		next := newServer(spec, s.options)
		s.servers[name] = next
		changed = true
		s.running.Go(func() {
			if old != nil {
				<-old.ended // a server may hold a port or a lock file that its successor needs
			}
			next.run()
		})
	}
	s.mu.Unlock()
	if changed {
		s.options.changed()
	}
}

// clone returns spec with maps and slices of its own, so that a caller may
// reuse those it passed in.
func clone(spec Spec) Spec {
	spec.Args, spec.PassEnv = slices.Clone(spec.Args), slices.Clone(spec.PassEnv)
	spec.Secrets = slices.Clone(spec.Secrets)
	spec.Allow, spec.Deny, spec.Roots = slices.Clone(spec.Allow), slices.Clone(spec.Deny), slices.Clone(spec.Roots)
	if spec.Box != nil {
		box := *spec.Box
		box.Write, box.Read, box.Run = slices.Clone(box.Write), slices.Clone(box.Read), slices.Clone(box.Run)
		box.Net.Hosts = slices.Clone(box.Net.Hosts)
		spec.Box = &box
	}
	if spec.kind() != Stdio {
		spec.IdleStop = 0
	}
	spec.Env, spec.Headers = maps.Clone(spec.Env), maps.Clone(spec.Headers)
	return spec
}

func equal(a, b Spec) bool {
	if (a.InProcess == nil) != (b.InProcess == nil) || a.Auth != b.Auth {
		return false
	}
	a.InProcess, b.InProcess = nil, nil // functions cannot be compared
	a.Auth, b.Auth = nil, nil           // compared before, by identity
	return reflect.DeepEqual(a, b)
}

// Tools returns the tools of every server that has listed its tools at least once, by
// the server's name. For a server that is not connected, these are the tools that it
// listed last. The caller must not modify them.
func (s *Set) Tools() map[string][]Tool {
	all := map[string][]Tool{}
	for _, one := range s.sorted() {
		if tools, ok := one.listed(); ok {
			all[one.spec.Name] = tools
		}
	}
	return all
}

// Status returns the status of every server, sorted by name.
func (s *Set) Status() []Status {
	all := []Status{}
	for _, one := range s.sorted() {
		all = append(all, one.status())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		all[i].Sessions = s.sessionsLocked(all[i].Name)
	}
	return all
}

func (s *Set) sorted() []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*server, 0, len(s.servers))
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		all = append(all, s.servers[name])
	}
	return all
}

// Call calls a tool and returns the whole CallToolResult as the exact JSON that
// the server sent, also where its isError is true. args are the arguments as a
// JSON object, sent as they are; empty means {}.
//
// If identity is not empty, the server is called only if its Spec still has that
// identity.
//
// Call connects first if the server is not connected. It ends when ctx ends or
// Limits.Timeout has passed, and then tells the server so. Its errors are *Error.
func (s *Set) Call(ctx context.Context, server, identity, tool string, args json.RawMessage) (json.RawMessage, error) {
	one, err := s.serverFor(ctx, server, identity, tool)
	if err != nil {
		return nil, err
	}
	return one.do(ctx, job{name: tool, args: args})
}

// Read asks a server for something other than a tool call: method is resources/list,
// resources/templates/list, resources/read, prompts/list or prompts/get, and args are
// an object with its uri, or its name and arguments. The pages of a list are joined.
// The result is the exact JSON that the server sent; of a list, the entries are.
// Otherwise Read is like [Set.Call].
func (s *Set) Read(ctx context.Context, server, identity, method string, args json.RawMessage) (json.RawMessage, error) {
	one, err := s.serverFor(ctx, server, identity, method)
	if err != nil {
		return nil, err
	}
	return one.do(ctx, job{name: method, args: args, method: true})
}

// Offers returns the servers that offer what a method of [Set.Read] asks for,
// sorted by name: those that are connected, or that a call would start again.
func (s *Set) Offers(method string) []string {
	var names []string
	for _, one := range s.sorted() {
		one.mu.Lock()
		caps, there := one.caps, one.session != nil || one.now.State == Idle
		one.mu.Unlock()
		if there && offers(caps, one.spec, method) == nil {
			names = append(names, one.spec.Name)
		}
	}
	return names
}

// Reconnect makes a Failed or Parked server try again now. It reports whether
// there is such a server; it does not wait.
func (s *Set) Reconnect(server string) bool {
	s.mu.Lock()
	one := s.servers[server]
	s.mu.Unlock()
	if one == nil {
		return false
	}
	one.wakeUp(true)
	return true
}

// Close ends every session and every child process and returns when all of
// them and all goroutines of the Set have ended, within about three seconds.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, one := range s.servers {
		one.stop()
	}
	s.disownLocked(func(owner) bool { return true })
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// serverFor returns the server for a call of what. Where the spec says so, that is
// the session's or the person's own, made by their first call. If identity is not empty
// and the spec has another one, the server no longer exists.
func (s *Set) serverFor(ctx context.Context, name, identity, what string) (*server, error) {
	one, err := s.named(name, identity, what)
	if err != nil || one.spec.Disabled {
		return one, err
	}
	client, of, auth := clientOf(ctx), owner{}, one.spec.Auth
	accounts, each := one.spec.Auth.(Persons)
	switch {
	case each:
		if of, auth, err = s.personOf(ctx, one.spec, accounts, client); err != nil {
			return nil, &Error{Server: name, Tool: what, Kind: Unavailable, Err: err}
		}
	case !one.spec.PerSession || client == nil:
		return one, nil
	default:
		of = owner{session: client.Session(), server: name}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, &Error{Server: name, Tool: what, Kind: Unavailable, Err: ErrClosed}
	case s.servers[name] != one: // meanwhile
		return nil, &Error{Server: name, Tool: what, Kind: UnknownServer, Err: errReplaced}
	}
	own, err := s.ownLocked(one, of, auth)
	if err != nil {
		return nil, &Error{Server: name, Tool: what, Kind: Unavailable, Err: err}
	}
	return own, nil
}

// named returns the shared server of a name.
func (s *Set) named(name, identity, what string) (*server, error) {
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
	}
	return one, nil
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
