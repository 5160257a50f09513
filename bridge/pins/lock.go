package pins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
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
	if c := s.lock; c != nil && c.err == nil && (info == nil && c.info == nil || info != nil && c.info != nil &&
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

// The claims of a lock file are what it says of one server.
type claims struct {
	lines    map[string]lockfile.Tool // by the key of the tool
	listed   bool                     // the file has the server
	identity string                   // of the server in the file; empty if it is not the configured one
	gone     bool                     // there is no file
	err      error                    // it cannot be read
	strict   bool                     // nothing is let in as it is found
}

// claimsOnLocked returns what the lock file says of a server whose pins are f. Nothing is
// let in as it is found where the file says what is accepted, or said so when somebody
// accepted it; one that cannot be read may say anything.
func (s *Store) claimsOnLocked(server string, f *file) claims {
	c := s.claimsLocked(server)
	c.strict = c.listed || c.err != nil
	for _, e := range f.Tools {
		c.strict = c.strict || e.Accepted != nil && e.Accepted.Lock != ""
	}
	return c
}

func (s *Store) claimsLocked(server string) claims {
	c := s.lockLocked()
	switch {
	case c.err != nil:
		return claims{err: c.err}
	case c.lock == nil:
		return claims{gone: true}
	}
	of := c.lock.Servers[server]
	if of == nil {
		return claims{}
	}
	all := claims{lines: c.tools[server], listed: true}
	if of.Identity == s.identities[server] {
		all.identity = of.Identity
	}
	return all
}

// state compares a definition with what was accepted in the store and with the lock
// file. Of the two the stricter holds. Why is empty if it is accepted.
func (f *file) state(name, digest string, c claims) (_ State, why string) {
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
func (c claims) reaction(state State, rules Rules) Reaction {
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

// A Proposal is what a lock file proposes of one server, compared with what the server
// lists. Names are raw, in order.
type Proposal struct {
	Offers []Offer
	// Agreed counts the tools that are accepted here as the file has them, and Blocked
	// those that are as the file has them, and blocked here.
	Agreed, Blocked int
	// Differs are the tools that the server lists otherwise than the file has them, Extra
	// those that the file does not have, and Missing those that the server does not list.
	Differs, Extra, Missing []string
	// Other says that the file's server is not the configured one: nothing is offered.
	Other bool
}

// An Offer is a definition that the server lists as the lock file has it, and that is not
// accepted here.
type Offer struct {
	Tool catalog.Definition
	Was  string // the digest of what was accepted here; empty if nothing was
	// Difference and Notices are as those of an [UnreviewedTool]. Texts are all texts of
	// it that a model may read, none of them cut.
	Difference []Part
	Notices    []string
	Texts      []Part
}

// Propose compares the lock file with what a server lists.
func (s *Store) Propose(server string, listed []catalog.Definition) (Proposal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.readLocked(server)
	if err != nil {
		return Proposal{}, fmt.Errorf("reading the pins of server %s: %w", server, err)
	}
	c := s.claimsOnLocked(server, f)
	if c.err != nil {
		return Proposal{}, c.err
	}
	p := Proposal{Other: c.listed && c.identity == ""}
	there := map[string]bool{}
	for _, d := range listed {
		name, digest := key(d.Name), d.Digest()
		there[name] = true
		line, ok := c.lines[name]
		state, _ := f.state(name, digest, c)
		switch {
		case !ok:
			p.Extra = append(p.Extra, d.Name)
		case line.Digest != digest:
			p.Differs = append(p.Differs, d.Name)
		case state == Accepted:
			p.Agreed++
		case state == Blocked:
			p.Blocked++
		case !p.Other:
			o := Offer{Tool: d, Notices: notices(d), Texts: texts(d)}
			var was *catalog.Definition
			if e := f.Tools[name]; e != nil && e.Accepted != nil {
				o.Was, was = e.Accepted.Digest, e.Accepted.whole()
			}
			o.Difference = difference(was, o.Was != "", &d)
			p.Offers = append(p.Offers, o)
		}
	}
	for name := range c.lines {
		if !there[name] {
			p.Missing = append(p.Missing, name)
		}
	}
	slices.Sort(p.Differs)
	slices.Sort(p.Extra)
	slices.Sort(p.Missing)
	slices.SortFunc(p.Offers, func(a, b Offer) int { return strings.Compare(a.Tool.Name, b.Tool.Name) })
	return p, nil
}

// AcceptLocked accepts definitions as the lock file has them, in somebody's name, for as
// long as the file has them so. What was blocked stays blocked. The error is ErrChanged if
// the file has one of them otherwise by now; then none is accepted.
func (s *Store) AcceptLocked(server string, tools []catalog.Definition, by string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claimsLocked(server)
	if c.err != nil {
		return c.err
	}
	for _, d := range tools {
		if c.identity == "" || c.lines[key(d.Name)].Digest != d.Digest() {
			return ErrChanged
		}
	}
	err := s.changeLocked(server, func(f *file) error {
		for _, d := range tools {
			pinned := &pin{Accepted: newSnapshot(d, by, now)}
			pinned.Accepted.Lock = c.identity
			if was := f.Tools[key(d.Name)]; was != nil {
				pinned.Blocked = was.Blocked
			}
			f.Tools[key(d.Name)] = pinned
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("accepting the tools of server %s by the lock: %w", server, err)
	}
	return nil
}

// Objection says why accepting a definition in the store alone would not let its calls
// through: the lock file has another one. It is empty if there is nothing in the way.
func (s *Store) Objection(server, tool, digest string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line := s.claimsLocked(server).lines[key(tool)].Digest; line != "" && line != digest {
		return fmt.Sprintf("%s has another definition of it: codemode-bridge tools review accepts this one there too", s.lockPath)
	}
	return ""
}

// Kept returns the names by which scripts call tools that the lock file has, so that tools
// keep them: see KeptNames.
func (s *Store) Kept() map[catalog.ToolRef]string {
	lock, _, err := s.Lock()
	if err != nil {
		return nil
	}
	return KeptNames(lock)
}

// KeptNames returns the names by which scripts call the tools of a lock. Nobody needs to
// have accepted it for that: a line cannot give a tool the name of another one, only
// decide which of two has a plain name and which one with a hash.
func KeptNames(lock *lockfile.Lock) map[catalog.ToolRef]string {
	if lock == nil {
		return nil
	}
	all := map[catalog.ToolRef]string{}
	for name, server := range lock.Servers {
		for tool, line := range server.Tools {
			if fits(name, tool, line.Script) {
				all[catalog.ToolRef{Server: name, Tool: tool}] = line.Script
			}
		}
	}
	return all
}

var hashed = regexp.MustCompile(`^(.*?)_?([0-9a-f]{6,60})$`)

// fits reports whether a script name is one that package catalog could give the tool:
// made of its server's name and its own, each perhaps with a hash.
func fits(server, tool, script string) bool {
	spell := func(name string) string {
		return strings.Map(func(r rune) rune {
			if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '$') {
				return r
			}
			return '_'
		}, name)
	}
	made := func(part, from string) bool {
		if part == from {
			return true
		}
		m := hashed.FindStringSubmatch(part)
		return m != nil && strings.HasPrefix(from, m[1])
	}
	prefix, rest, ok := strings.Cut(script, "__")
	if whole := spell(server); strings.HasPrefix(script, whole+"__") { // which may have "__" in it
		prefix, rest, ok = whole, script[len(whole)+2:], true
	}
	return ok && made(strings.TrimPrefix(prefix, "_"), strings.TrimPrefix(spell(server), "_")) && made(rest, spell(tool))
}

// Proposed counts the tools of the lock file that nobody has accepted here as the file has
// them. The error says why the file, or some pins, cannot be read.
func (s *Store) Proposed() (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock := s.lockLocked()
	if lock.lock == nil {
		return 0, lock.err
	}
	for name := range lock.lock.Servers {
		if _, configured := s.identities[name]; !configured {
			continue
		}
		f, err := s.readLocked(name)
		if err != nil {
			return n, fmt.Errorf("reading the pins of server %s: %w", name, err)
		}
		c := s.claimsOnLocked(name, f)
		for tool, line := range c.lines {
			if state, _ := f.state(tool, line.Digest, c); state != Accepted && state != Blocked {
				n++
			}
		}
	}
	return n, nil
}

// Of returns the digests that are accepted of a server's tools by now, by their names as
// the server lists them: what a lock file of this store would have.
func (s *Store) Of(server string, listed []catalog.Definition, rules Rules) (map[string]string, error) {
	standings, err := s.Judge(server, listed, rules)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, d := range listed {
		if standings[d.Name].State == Accepted {
			all[d.Name] = d.Digest()
		}
	}
	return all, nil
}
