// Package pins records each server's tools as somebody last accepted them, and
// tells which of the tools that a server lists now are new, changed or blocked.
//
//	listed ── Observe ──┬── as accepted ──────────────▶ called as policy says
//	                    ├── changed ── Rules.Changed ─┐
//	                    ├── new ────── Rules.New ─────┼─▶ allow · ask · quarantine
//	                    └── blocked ──────────────────┴─▶ quarantine
//	                                      ▲
//	          Accept, Block ── a person ──┘ who saw the [Difference]
//
// A tool is identified by its server's configured name and its raw name there; a
// definition by [catalog.Definition.Digest] of its name, title, description,
// schemas and annotations. Reordering keys is not a change. A definition that
// goes from A to B and back to A leaves an [Event] for each step; back at A it is
// the accepted one again.
//
// # Trust on first use, and better
//
// If Rules.New is Allow, tools that are listed for the first time are accepted in
// nobody's name, and only later changes are held. A caller that knows the right
// definitions before the bridge first connects, such as a command that imports
// servers whose tools a person already uses, pins them:
//
//	pins.Open(folder).Pin("github", definitions, "ann", time.Now())
//
// and puts "quarantine": true into the server's configuration, so that only these
// tools are let in. The folder must be the one that the bridge uses: the
// command's pinFolder.
//
// # With a lock file
//
// A lock file (package lockfile) proposes what is to be accepted. A person accepts its
// lines once ([Store.Propose], [Store.AcceptLocked]); from then on those tools are accepted
// as long as the file has these lines. Of store and lock the stricter holds:
//
//	lock \ store    nothing       the listed one   another         blocked
//	the listed one  New           Accepted         Changed         Blocked
//	another         New           Changed          Changed         Blocked
//	no line         New           Accepted [1]     Changed         Blocked
//	unreadable      New           Accepted [1]     Changed         Blocked
//
// [1] Changed, if it was accepted by the lock. A line that nobody has accepted makes
// nothing looser. Where a lock file is about a server, Rules that say Allow mean Ask.
//
// # On several machines
//
// Bridges that share a store ([OpenShared]) may list different tools under one server's
// name: their machines have different versions of it. Each writes down what it lists once,
// and does not take back what another has written: so they do not write in turns for ever.
// What a bridge lists counts for it as always: if that is not what was accepted, it is held.
//
// # On disk
//
// The folder has one file for each server, server-NAME.json, of mode 0600:
//
//	{"version": 1, "server": "github", "tools": {"create_issue": {
//	  "accepted": {"digest": "sha256:...", "at": "...", "by": "ann", "definition": {...}},
//	  "seen":     {"digest": "sha256:...", "at": "...", "definition": {...}},
//	  "blocked":  {"at": "...", "by": "ann"}}}}
//
// "seen" is what the server lists, if that differs from what was accepted. Accepted with
// a "lock" was what a lock file has, of the server with that identity. Files
// are replaced as a whole, under a lock that all processes using the folder take
// (the file "lock"). A damaged file accepts nothing: every tool of its server
// asks until the file is repaired or removed.
package pins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/documents"
)

// A Reaction is what becomes of a tool whose present definition nobody has
// accepted.
type Reaction string

const (
	Allow      Reaction = "allow"      // it is accepted as it is found
	Ask        Reaction = "ask"        // its calls ask a person
	Quarantine Reaction = "quarantine" // scripts do not see it, and calls are denied
)

// stricter reports whether r is stricter than o. An unknown word is the strictest.
func (r Reaction) stricter(o Reaction) bool {
	order := []Reaction{Allow, Ask, Quarantine}
	rank := func(r Reaction) int {
		if i := slices.Index(order, r); i >= 0 {
			return i
		}
		return len(order)
	}
	return rank(r) > rank(o)
}

// Rules are the reactions for one server.
type Rules struct {
	New     Reaction // to a tool that was not there before
	Changed Reaction // to one whose definition is not the accepted one
}

// A State says how a listed tool compares with what was accepted.
type State string

const (
	Accepted State = "accepted"
	New      State = "new"
	Changed  State = "changed"
	Blocked  State = "blocked" // a person blocked it
	Unknown  State = "unknown" // what was accepted cannot be read
)

// A Standing is the state of one tool, and what follows.
type Standing struct {
	State    State
	Reaction Reaction // Allow: nothing is held
	// Why is the reason for people, in our words and without a full stop;
	// empty where nothing is held.
	Why string
	// Was is what was accepted last; nil if nothing was, or if it is not kept.
	Was *catalog.Definition
	// Difference is from Was to what is listed; of a new tool it is all of it.
	Difference []Part
}

// An Event is a change of a server's tools that Observe has seen.
type Event struct {
	Server, Tool string // Tool is empty of a FirstContact
	Kind         Kind
	From, To     string // digests; empty for nothing
	Tools        int    // of a FirstContact
	Reaction     Reaction
}

// A Kind is what happened to a tool.
type Kind string

const (
	FirstContact Kind = "first_contact" // all tools of a server that was not known
	Appeared     Kind = "new"
	Differs      Kind = "changed"
	Returned     Kind = "as_accepted" // a changed tool has its accepted definition again
)

var (
	// ErrUnknown: the server has no such tool, or nothing about it waits.
	ErrUnknown = errors.New("no such tool waits to be looked at")
	// ErrChanged: the tool is no longer what the person saw.
	ErrChanged = errors.New("the tool has changed again meanwhile")
)

// A Store is the pins of a configuration. Any number of goroutines and processes may use
// them.
type Store struct {
	documents  documents.Store
	where      string          // the documents are, for people
	beginnings documents.Store // what documents begin with; nil: with nothing

	mu         sync.Mutex
	loaded     map[string]*cachedFile // by server
	failed     bool                   // the last read
	mine       map[string]sightings   // by server; nil if all bridges list the same tools
	lockPath   string                 // codemode.lock; empty for none: see CompareWith
	identities map[string]string      // of the configured servers
	lock       *cachedLock            // nil before it is read
}

// Open returns the store in a folder, which is made when something is written.
// An empty name keeps pins in memory.
func Open(dir string) *Store {
	d := documents.Memory()
	if dir != "" {
		d = documents.Folder(dir)
	}
	return &Store{documents: d, where: dir, loaded: map[string]*cachedFile{}}
}

// OpenShared returns the store in documents that bridges on several machines share, at a
// place that is named for people. A server of which they have nothing yet begins with what
// this machine had in a folder, if that is not empty.
func OpenShared(d documents.Store, where, dir string) *Store {
	s := &Store{documents: d, where: where, loaded: map[string]*cachedFile{}, mine: map[string]sightings{}}
	if dir != "" {
		s.beginnings = documents.Folder(dir)
	} else {
		s.beginnings = documents.Memory()
	}
	return s
}

// Observe compares what a server lists with what was accepted, stores what is new,
// and returns the standing of each tool by its raw name. Events are those that
// this call was the first to see. An error is about the files; the standings are
// valid even then: what could not be read or written is not accepted.
func (s *Store) Observe(server string, listed []catalog.Definition, rules Rules, now time.Time) (map[string]Standing, []Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.readLocked(server)
	var c terms
	if err == nil {
		if c = s.termsOnLocked(server, f); !f.wouldChange(listed, rules, c, s.mineLocked(server)) {
			s.sawLocked(server, listed, f)
			return f.judge(listed, rules, c), nil, nil
		}
	}
	var events []Event
	if err == nil {
		err = s.changeLocked(server, func(f *file) error {
			c = s.termsOnLocked(server, f)
			events = f.observe(server, listed, rules, c, s.mineLocked(server), now)
			return nil
		})
	}
	if err != nil {
		return unreadable(server, listed, rules, err), nil, fmt.Errorf("pinning the tools of server %s: %w", server, err)
	}
	s.sawLocked(server, listed, s.loaded[server].file)
	return s.loaded[server].file.judge(listed, rules, c), events, nil
}

// Judge is like Observe but stores nothing: a tool that Observe would accept as
// found is reported as accepted.
func (s *Store) Judge(server string, listed []catalog.Definition, rules Rules) (map[string]Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.readLocked(server)
	if err != nil {
		return unreadable(server, listed, rules, err), fmt.Errorf("reading the pins of server %s: %w", server, err)
	}
	return f.judge(listed, rules, s.termsOnLocked(server, f)), nil
}

// unreadable returns the standings of tools for which it is unknown what was
// accepted.
func unreadable(server string, listed []catalog.Definition, rules Rules, err error) map[string]Standing {
	standing := Standing{State: Unknown, Reaction: rules.Changed, Why: fmt.Sprintf("what was accepted of server %s cannot be read or written: %v", server, err)}
	if Ask.stricter(standing.Reaction) {
		standing.Reaction = Ask
	}
	all := make(map[string]Standing, len(listed))
	for _, d := range listed {
		all[d.Name] = standing
	}
	return all
}

// Pin accepts tools as they are, in somebody's name, whatever was known of
// them; one that was blocked stays blocked. Other tools of the server are left as
// they are.
func (s *Store) Pin(server string, tools []catalog.Definition, by string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.changeLocked(server, func(f *file) error {
		for _, d := range tools {
			pinned := &pin{Accepted: newSnapshot(d, by, now)}
			if was := f.Tools[key(d.Name)]; was != nil {
				pinned.Blocked = was.Blocked
			}
			f.Tools[key(d.Name)] = pinned
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("pinning the tools of server %s: %w", server, err)
	}
	return nil
}

// Forget drops all that is known of a server.
func (s *Store) Forget(server string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.removeLocked(server); err != nil {
		return fmt.Errorf("forgetting the tools of server %s: %w", server, err)
	}
	return nil
}

// Accept accepts a tool as it is listed now, in somebody's name, and lifts a block.
// The digest is that of the definition that the person saw. The error is
// ErrUnknown, ErrChanged, or about the files.
func (s *Store) Accept(server, tool, digest, by string, now time.Time) error {
	return s.decide(server, tool, digest, func(e *pin) {
		if e.Seen != nil {
			e.Accepted, e.Seen = e.Seen, nil
		}
		e.Accepted.By, e.Accepted.At, e.Accepted.Lock, e.Blocked = by, now, "", nil
	})
}

// Block keeps a tool from scripts, whatever its definition becomes, until it
// is accepted. The digest is of what the person saw; empty stands for whatever
// it is. Errors are as with Accept.
func (s *Store) Block(server, tool, digest, by string, now time.Time) error {
	return s.decide(server, tool, digest, func(e *pin) { e.Blocked = &blockNote{At: now, By: by} })
}

func (s *Store) decide(server, tool, digest string, do func(*pin)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.changeLocked(server, func(f *file) error {
		e := f.Tools[key(tool)]
		switch {
		case e == nil:
			return ErrUnknown
		case digest != "" && e.current().Digest != digest:
			return ErrChanged
		}
		do(e)
		return nil
	})
	if err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrChanged) {
		return fmt.Errorf("deciding on tool %s of server %s: %w", canon.Escape(tool), server, err)
	}
	return err
}

// An UnreviewedTool is a tool that waits for review, or that was blocked.
type UnreviewedTool struct {
	Server string
	Tool   string // the raw name
	State  State
	Since  time.Time // when it was first seen as it is
	Digest string    // of what is listed
	// Was is the digest of what was accepted, by whom and when; all zero where
	// nothing was. AcceptedBy is empty for what was let in as it was found.
	Was        string
	AcceptedBy string
	AcceptedAt time.Time
	// Lock says what is wrong with the lock file, or with its line of the tool; empty
	// if that is not why it waits.
	Lock string
	// Strict says that there is a lock file for its server: Allow means Ask.
	Strict bool
	// BlockedBy and BlockedAt are of a tool that was blocked.
	BlockedBy string
	BlockedAt time.Time
	// Difference is from what was accepted to what is listed.
	Difference []Part
	// Notices are what a person should know before they read it.
	Notices []string
}

// Find returns a tool that is known, whatever its state.
func (s *Store) Find(server, tool string) (UnreviewedTool, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.readLocked(server)
	if err != nil {
		return UnreviewedTool{}, false, fmt.Errorf("reading the pins of server %s: %w", server, err)
	}
	if _, ok := f.Tools[key(tool)]; !ok {
		return UnreviewedTool{}, false, nil
	}
	return f.unreviewed(server, key(tool), s.termsOnLocked(server, f)), true, nil
}

// Unreviewed lists what waits of some servers, by server and name.
func (s *Store) Unreviewed(servers []string) ([]UnreviewedTool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []UnreviewedTool
	var problems []error
	for _, server := range servers {
		f, err := s.readLocked(server)
		if err != nil {
			problems = append(problems, fmt.Errorf("reading the pins of server %s: %w", server, err))
			continue
		}
		c := s.termsOnLocked(server, f)
		for name, e := range f.Tools {
			if state, _ := f.state(name, e.current().Digest, c); state != Accepted {
				all = append(all, f.unreviewed(server, name, c))
			}
		}
	}
	slices.SortFunc(all, func(a, b UnreviewedTool) int {
		if c := strings.Compare(a.Server, b.Server); c != 0 {
			return c
		}
		return strings.Compare(a.Tool, b.Tool)
	})
	return all, errors.Join(problems...)
}

// Watch calls changed whenever a process, this one included, has changed the pins or the
// lock file, and now and then while the pins cannot be read, until ctx ends. It makes one
// call at a time.
func (s *Store) Watch(ctx context.Context, changed func()) {
	s.mu.Lock()
	lock := s.lockPath
	s.mu.Unlock()
	var turn sync.Mutex
	tell := func() {
		turn.Lock()
		defer turn.Unlock()
		changed()
	}
	var all sync.WaitGroup
	all.Go(func() { s.documents.Watch(ctx, tell) })
	if lock != "" {
		all.Go(func() { follow(ctx, lock, tell) })
	}
	if s.mine != nil {
		all.Go(func() { s.retry(ctx, tell) })
	}
	all.Wait()
}

// retry calls changed now and then while the last read of pins has failed: a database that
// is back tells nobody.
func (s *Store) retry(ctx context.Context, changed func()) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		failed := s.failed
		s.mu.Unlock()
		if failed {
			changed()
		}
	}
}

// mineLocked returns the sightings of a server.
func (s *Store) mineLocked(server string) sightings {
	if my := s.mine[server]; my != nil || s.mine == nil {
		return my
	}
	return sightings{}
}

// sawLocked notes what is listed of a server and written in its file.
func (s *Store) sawLocked(server string, listed []catalog.Definition, f *file) {
	if s.mine == nil {
		return
	}
	my := make(sightings, len(listed))
	for _, d := range listed {
		if e := f.Tools[key(d.Name)]; e != nil {
			my[key(d.Name)] = sighting{d.Digest(), e.Accepted.digest()}
		}
	}
	s.mine[server] = my
}
