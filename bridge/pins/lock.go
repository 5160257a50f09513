package pins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/lockfile"
)

// A cachedLock is codemode.lock as it was last read.
type cachedLock struct {
	info  fs.FileInfo // nil if there was none
	lock  *lockfile.Lock
	err   error                               // it cannot be read
	tools map[string]map[string]lockfile.Tool // by server, and by the key of the tool
}

// CompareWith has the store compare tools with a lock file too, which need not exist.
// Identities tell what each configured server is, by name: config.Server.Portable.
func (s *Store) CompareWith(path string, identities map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockPath, s.identities = path, identities
}

// Lock returns the lock file as it is now, nil if there is none, and its path. The error
// says why it cannot be read.
func (s *Store) Lock() (lock *lockfile.Lock, path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.lockLocked()
	return c.lock, s.lockPath, c.err
}

// lockLocked reads the lock file, from memory if it has not changed.
func (s *Store) lockLocked() *cachedLock {
	if s.lockPath == "" {
		return &cachedLock{}
	}
	info, err := os.Stat(s.lockPath)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = nil, nil
	}
	if err != nil {
		return &cachedLock{err: err}
	}
	wrong := (*lockfile.Error)(nil) // about the text, and so the same until that changes
	if c := s.lock; c != nil && (c.err == nil || errors.As(c.err, &wrong)) && (info == nil && c.info == nil || info != nil && c.info != nil &&
		os.SameFile(info, c.info) && info.Size() == c.info.Size() && info.ModTime().Equal(c.info.ModTime())) {
		return c
	}
	c := &cachedLock{info: info, tools: map[string]map[string]lockfile.Tool{}}
	s.lock = c
	if info == nil {
		return c
	}
	if c.lock, c.err = lockfile.Read(s.lockPath); c.err != nil {
		return c
	}
	for name, server := range c.lock.Servers {
		c.tools[name] = map[string]lockfile.Tool{}
		for tool, line := range server.Tools {
			c.tools[name][key(tool)] = line
		}
	}
	return c
}

// The terms of a lock file are what it says of one server.
type terms struct {
	lines    map[string]lockfile.Tool // by the key of the tool
	listed   bool                     // the file has the server
	identity string                   // of the server in the file; empty if it is not the configured one
	gone     bool                     // there is no file
	err      error                    // it cannot be read
	strict   bool                     // nothing is let in as it is found
}

// termsOnLocked returns what the lock file says of a server whose pins are f. Nothing is
// let in as it is found where the file says what is accepted, or said so when somebody
// accepted it; one that cannot be read may say anything.
func (s *Store) termsOnLocked(server string, f *file) terms {
	c := s.termsLocked(server)
	c.strict = c.listed || c.err != nil
	for _, e := range f.Tools {
		c.strict = c.strict || e.Accepted != nil && e.Accepted.Lock != ""
	}
	return c
}

func (s *Store) termsLocked(server string) terms {
	c := s.lockLocked()
	switch {
	case c.err != nil:
		return terms{err: c.err}
	case c.lock == nil:
		return terms{gone: true}
	}
	of := c.lock.Servers[server]
	if of == nil {
		return terms{}
	}
	all := terms{lines: c.tools[server], listed: true}
	if of.Identity == s.identities[server] {
		all.identity = of.Identity
	}
	return all
}

// state compares a definition with what was accepted in the store and with the lock
// file. Of the two the stricter holds. Why is empty if it is accepted.
func (f *file) state(name, digest string, c terms) (_ State, why string) {
	e, line := f.Tools[name], c.lines[name]
	switch {
	case e != nil && e.Blocked != nil:
		return Blocked, fmt.Sprintf("%s blocked it on %s", canon.Escape(e.Blocked.By), day(e.Blocked.At))
	case e == nil || e.Accepted == nil:
		switch line.Digest {
		case "":
			return New, "it is new, and nobody has accepted it yet"
		case digest:
			return New, "codemode.lock has it, and nobody has accepted that here yet"
		}
		return New, "it is new, and not as codemode.lock has it"
	case e.Accepted.Digest != digest:
		return Changed, "its definition changed since " + e.Accepted.words()
	case line.Digest != "" && line.Digest != digest:
		return Changed, "codemode.lock has another definition of it than was accepted here"
	case e.Accepted.Lock == "":
		return Accepted, ""
	case c.err != nil:
		return Changed, "codemode.lock, by which it was accepted, cannot be read"
	case c.gone:
		return Changed, "codemode.lock, by which it was accepted, is gone"
	case line.Digest == "":
		return Changed, "codemode.lock, by which it was accepted, no longer has it"
	case c.identity != e.Accepted.Lock:
		return Changed, "its server is no longer the one of codemode.lock, by which it was accepted"
	}
	return Accepted, ""
}

// reaction returns what becomes of a tool in a state.
func (c terms) reaction(state State, rules Rules) Reaction {
	r := Quarantine
	switch state {
	case Accepted:
		return Allow
	case New:
		r = rules.New
	case Changed:
		r = rules.Changed
	}
	if c.strict && Ask.stricter(r) {
		return Ask
	}
	return r
}
