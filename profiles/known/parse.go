package known

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Parse reads the text of a server's file, JSON with comments. The error says what is
// wrong, and where.
func Parse(name string, text []byte) (Server, error) {
	var s Server
	plain, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return s, err
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, err
	}
	s.Name = name
	return s, s.check()
}

var (
	version  = regexp.MustCompile(`^\d+(\.\d+)+(-[0-9A-Za-z.-]+)?$`)
	npmName  = regexp.MustCompile(`^(@[a-z0-9._-]+/)?[a-z0-9._-]+$`)
	image    = regexp.MustCompile(`^[a-z0-9.-]+(/[a-z0-9._-]+)*$`)
	address  = regexp.MustCompile(`^https://[a-z0-9.-]+(/[A-Za-z0-9._/-]*)?$`)
	variable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
)

func (s *Server) check() error {
	switch {
	case s.Title == "":
		return errors.New("title: missing")
	case s.Verified == "" && s.Source == "":
		return errors.New(`neither "verified" (a version) nor "source" (its public documentation)`)
	case s.Verified != "" && !version.MatchString(s.Verified):
		return fmt.Errorf("verified: %q is not a version", s.Verified)
	case s.Source != "" && !strings.HasPrefix(s.Source, "https://"):
		return fmt.Errorf("source: %q is not an https address", s.Source)
	case len(s.Launch) == 0:
		return errors.New("launch: missing")
	case len(s.Tools) == 0:
		return errors.New("tools: missing")
	}
	for i, l := range s.Launch {
		if err := l.check(); err != nil {
			return fmt.Errorf("launch/%d: %w", i, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		if err := s.Tools[name].check(); err != nil {
			return fmt.Errorf("tools/%s: %w", name, err)
		}
	}
	return nil
}

func (l Launch) check() error {
	forms := 0
	for _, form := range []struct {
		text  string
		legal *regexp.Regexp
	}{{l.NPM, npmName}, {l.Docker, image}, {l.URL, address}} {
		if form.text == "" {
			continue
		}
		if forms++; !form.legal.MatchString(form.text) {
			return fmt.Errorf("%q is not exact", form.text)
		}
	}
	if forms != 1 {
		return errors.New(`want one of "npm", "docker" and "url"`)
	}
	for i, role := range l.Args {
		plain, several := strings.CutSuffix(role, "...")
		if several && i < len(l.Args)-1 {
			return fmt.Errorf("args/%d: only the last may be several", i)
		}
		if !slices.Contains(roles, Role(plain)) {
			return fmt.Errorf("args/%d: no such role: %q", i, plain)
		}
	}
	for _, flag := range l.Flags {
		if !strings.HasPrefix(flag, "-") {
			return fmt.Errorf("flags: %q does not begin with -", flag)
		}
	}
	for _, name := range l.Env {
		if !variable.MatchString(name) || steers(name) {
			return fmt.Errorf("env: %q may not be given", name)
		}
	}
	return nil
}

var (
	effects = []Effect{Read, Write, Delete, Execute, Send, Spend}
	roles   = []Role{Path, Host, Recipient, Command, Amount, Place, Content, Plain}
	labels  = []Label{Private, Untrusted, External}
)

func (t Tool) check() error {
	if len(t.Effects) == 0 {
		return errors.New("effects: missing")
	}
	for _, e := range t.Effects {
		if !slices.Contains(effects, e) {
			return fmt.Errorf("effects: no such effect: %q", e)
		}
	}
	if !slices.Contains([]Where{Workspace, Local, Remote}, t.Where) {
		return fmt.Errorf("where: no such place: %q", t.Where)
	}
	if !slices.Contains([]Net{"", NetNone, NetFixed, NetChosen}, t.Net) {
		return fmt.Errorf("net: want none, fixed or chosen, not %q", t.Net)
	}
	for _, l := range t.Labels {
		if !slices.Contains(labels, l) {
			return fmt.Errorf("labels: no such label: %q", l)
		}
	}
	paths := false
	for _, name := range slices.Sorted(maps.Keys(t.Args)) {
		role := t.Args[name]
		if !slices.Contains(roles, role) {
			return fmt.Errorf("args/%s: no such role: %q", name, role)
		}
		for outer := range t.Args {
			if strings.HasPrefix(name, outer+".") {
				return fmt.Errorf("args/%s: %q already has a role as a whole", name, outer)
			}
		}
		paths = paths || role == Path
	}
	if t.Where == Workspace && !paths {
		return errors.New("where: workspace, but no argument is a path")
	}
	if t.Where == Remote && t.net() == NetNone {
		return errors.New("where: remote, but it talks to no host (net)")
	}
	return nil
}

func (t Tool) net() Net {
	if t.Net == "" {
		return NetNone
	}
	return t.Net
}
