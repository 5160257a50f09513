package pins

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/catalog"
)

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
	c := s.termsOnLocked(server, f)
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
	c := s.termsLocked(server)
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
	if line := s.termsLocked(server).lines[key(tool)].Digest; line != "" && line != digest {
		return fmt.Sprintf("%s has another definition of it: codemode-bridge tools review accepts this one there too", s.lockPath)
	}
	return ""
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
		c := s.termsOnLocked(name, f)
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
