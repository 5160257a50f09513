package known

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	npmName  = regexp.MustCompile(`^(@[a-z0-9._-]+/)?[a-z0-9._-]+$`)
	pypiName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)
	image    = regexp.MustCompile(`^[a-z0-9.-]+(/[a-z0-9._-]+)*$`)
	address  = regexp.MustCompile(`^https://[a-z0-9.-]+(/[A-Za-z0-9._/-]*)?$`)
	variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

var (
	effects = []Effect{Read, Write, Delete, Execute, Send, Spend}
	roles   = []Role{Path, Host, Recipient, Command, Amount, Place, Content, Plain, Store, Member, PathOrHost, SQL}
	runs    = []Runs{Hooks, CI}
	labels  = []Label{Private, Untrusted, External}
)

func (s *Server) check() *mistake {
	switch {
	case s.Title == "":
		return wrong("missing").in("title")
	case s.Verified == "" && s.Source == "":
		return wrong(`neither "verified" (a version) nor "source" (its public documentation)`)
	case s.Verified != "" && !version.MatchString(s.Verified):
		return wrong("%q is not a version", s.Verified).in("verified")
	case s.Source != "" && !strings.HasPrefix(s.Source, "https://"):
		return wrong("%q is not an https address", s.Source).in("source")
	case len(s.Launch) == 0:
		return wrong("missing").in("launch")
	case len(s.Tools) == 0:
		return wrong("missing").in("tools")
	}
	return first(
		each(s.Launch, func(_ int, l Launch) *mistake { return first(l.check(), s.checkBox(l)) }).in("launch"),
		sorted(s.Tools, func(_ string, t Tool) *mistake { return t.check() }).in("tools"))
}

func (l Launch) check() *mistake {
	forms := 0
	for _, form := range []struct {
		key, text string
		legal     *regexp.Regexp
	}{{"npm", l.NPM, npmName}, {"pypi", l.PyPI, pypiName}, {"docker", l.Docker, image}, {"url", l.URL, address}} {
		if form.text == "" {
			continue
		}
		if forms++; !form.legal.MatchString(form.text) {
			return wrong("%q is not exact", form.text).in(form.key)
		}
	}
	if forms != 1 {
		return wrong(`want one of "npm", "pypi", "docker" and "url"`)
	}
	return first(
		each(l.Args, func(i int, role string) *mistake {
			plain, several := strings.CutSuffix(role, "...")
			if several && i < len(l.Args)-1 {
				return wrong("only the last may be several")
			}
			return Role(plain).check()
		}).in("args"),
		each(slices.Concat(l.Flags, l.BoxedFlags), func(_ int, flag string) *mistake {
			if !strings.HasPrefix(flag, "-") {
				return wrong("%q does not begin with -", flag)
			}
			return nil
		}).in("flags"),
		each(l.Env, func(_ int, name string) *mistake {
			if !variable.MatchString(name) || steers(name) {
				return wrong("%q may not be given", name)
			}
			return nil
		}).in("env"))
}

func (r Role) check() *mistake {
	if !slices.Contains(roles, r) {
		return wrong("no such role: %q", r)
	}
	return nil
}

func (t Tool) check() *mistake {
	if len(t.Effects) == 0 {
		return wrong("missing").in("effects")
	}
	if t.Where == "" {
		return wrong("missing").in("where")
	}
	return first(
		Change{Effects: t.Effects, Where: t.Where, Net: t.Net, Args: t.Args}.check(),
		each(t.Labels, func(_ int, l Label) *mistake {
			if !slices.Contains(labels, l) {
				return wrong("no such label: %q", l)
			}
			return nil
		}).in("labels"),
		sorted(t.Args, func(name string, _ Role) *mistake {
			for outer := range t.Args {
				if strings.HasPrefix(name, outer+".") {
					return wrong("%q already has a role as a whole", outer)
				}
			}
			return nil
		}).in("args"),
		t.whereFits(),
		t.checkRuns().in("runs"),
		sorted(t.Adds, t.checkAdded).in("adds"),
		t.checkWhen().in("when"),
		sorted(t.Values, func(name string, values []string) *mistake {
			if !t.has(name) {
				return wrong("no such argument")
			}
			if len(values) == 0 {
				return wrong("no values")
			}
			return nil
		}).in("values"),
		t.checkHome(),
		sorted(t.Under, func(name, from string) *mistake {
			if from == name || !t.isPath(name) || from != "" && !t.isPath(from) || t.Under[from] == name {
				return wrong("want a path that starts at another path")
			}
			return nil
		}).in("under"))
}

// checkRuns sees to it that a tool which says that others set up what it runs can be
// given no code.
func (t Tool) checkRuns() *mistake {
	if t.Runs == "" {
		return nil
	}
	if !slices.Contains(t.Effects, Execute) {
		return wrong("it runs nothing")
	}
	changes := []Change{{Args: t.Args}}
	for _, c := range t.Adds {
		changes = append(changes, c)
	}
	for _, arms := range t.When {
		changes = slices.AppendSeq(changes, maps.Values(arms))
	}
	for _, c := range changes {
		for _, r := range c.Args {
			if r == Command || r == SQL {
				return wrong("it can be given a command")
			}
		}
	}
	if t.Runs == CI && t.Args["branch"] != Place {
		return wrong("it has no branch that is a place")
	}
	return oneOf(t.Runs, runs)
}

// check looks only at the words.
func (c Change) check() *mistake {
	return first(
		each(c.Effects, func(_ int, e Effect) *mistake {
			if !slices.Contains(effects, e) {
				return wrong("no such effect: %q", e)
			}
			return nil
		}).in("effects"),
		oneOf(c.Where, wheres).in("where"),
		oneOf(c.Net, nets).in("net"),
		sorted(c.Args, func(_ string, r Role) *mistake { return r.check() }).in("args"))
}

func oneOf[T ~string](word T, words []T) *mistake {
	if word == "" || slices.Contains(words, word) {
		return nil
	}
	return wrong("want one of %v, not %q", words, word)
}

// whereFits checks that what t says of its place can be.
func (t Tool) whereFits() *mistake {
	switch {
	case t.Where == Workspace && !t.hasPath():
		return wrong("workspace, but no argument is a path").in("where")
	case t.Where == Remote && t.net() == NetNone:
		return wrong("remote, but it talks to no host (net)").in("where")
	}
	return nil
}

func (t Tool) checkHome() *mistake {
	if t.Home == "" || t.role(t.Home) == Path {
		return nil
	}
	return wrong("want an argument that is a path").in("home")
}

func (t Tool) checkAdded(name string, c Change) *mistake {
	if !t.has(name) {
		return wrong("no such argument")
	}
	if m := c.check(); m != nil {
		return m
	}
	with := t.calledWith(nil)
	with.add(c)
	if m := with.whereFits(); m != nil {
		return m
	}
	return sorted(c.Args, func(name string, role Role) *mistake {
		if t.role(name) == "" || role == Content || role == Plain {
			return wrong("want an argument of the tool, and a role that is more than plain")
		}
		return nil
	}).in("args")
}

func (t Tool) checkWhen() *mistake {
	if len(t.When) > 1 {
		return wrong("two arguments at once cannot say what a call does")
	}
	return sorted(t.When, func(name string, arms map[string]Change) *mistake {
		if t.role(name) == "" {
			return wrong("no such argument")
		}
		return sorted(arms, func(_ string, c Change) *mistake {
			if m := c.check(); m != nil {
				return m
			}
			more := slices.ContainsFunc(c.Effects, func(e Effect) bool { return e != Read && !slices.Contains(t.Effects, e) }) ||
				c.Where != "" && slices.Index(wheres, c.Where) > slices.Index(wheres, t.Where) ||
				slices.Index(nets, c.Net) > slices.Index(nets, t.net())
			if more || len(c.Args) > 0 {
				return wrong("it is more than the tool does otherwise, which must be the most that it does")
			}
			return nil
		})
	})
}

// has reports whether t has an argument with that dotted name, or keys of one.
func (t Tool) has(name string) bool {
	for ; name != ""; name = name[:max(strings.LastIndexByte(name, '.'), 0)] {
		if t.role(name) != "" || t.inside(name) {
			return true
		}
	}
	return false
}

func (t Tool) isPath(name string) bool { return t.role(name) == Path || t.role(name) == PathOrHost }

func (t Tool) hasPath() bool {
	for name := range t.Args {
		if t.isPath(name) {
			return true
		}
	}
	return false
}
