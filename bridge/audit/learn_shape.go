package audit

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/profiles"
)

// A shape is what calls of one server must have in common to be let pass by one rule.
type shape struct {
	server     string
	effects    []string
	where, net string
	hosts      []string
	recipients []string
	bound      []string // conditions on arguments that must be as they were
	texts      []string // conditions on texts that leave this machine
	plain      []string // conditions on addresses that say nothing but where
	names      []string // conditions on names of files
	address    string   // the argument with the address
	tool       string   // empty if calls of several tools are alike
	across     bool     // several tools are alike
	// What may differ if there is enough of it.
	inside []string
	urls   []string
}

// key is the same for calls that one rule lets pass.
func (s shape) key() string {
	b, err := json.Marshal([]any{s.server, s.effects, s.where, s.net, s.hosts, s.recipients, s.bound, s.texts, s.plain, s.names, s.address, s.tool, len(s.inside) > 0})
	if err != nil {
		return ""
	}
	return string(b)
}

// globSigns mean something in a pattern.
const globSigns = `*?[]{}\!,`

// Why no rule is made of a call.
const (
	whyUnknown   = "nobody has said what it means"
	whyGrave     = "it deletes, spends or runs code"
	whyState     = "what it does depends on the calls before it"
	whyPage      = "what it does depends on the page that is open"
	whyCarries   = "it carries away a secret or what another server answered"
	whyOutside   = "it is outside of the workspace"
	whyAddress   = "its address says more than where"
	whyTooLoose  = "what it does cannot be said narrowly"
	whyShell     = "the name of a file has signs that a shell would read"
	whyNamesHost = "a text that it sends names a host or an address"
)

// shapeOf makes the shape of a call, or says why there is none.
func (l *learner) shapeOf(c *learntCall) (shape, string) {
	m := c.Made.Meaning
	if m == nil || !m.Accepted || len(m.Unknown) > 0 || len(m.Effects) == 0 || c.Server == "" || strings.ContainsAny(c.Server+c.Tool, globSigns) {
		return shape{}, whyUnknown
	}
	s := shape{server: c.Server, effects: slices.Sorted(slices.Values(m.Effects)), where: m.Where, net: m.Net}
	switch {
	case slices.ContainsFunc(m.Effects, func(e string) bool { return e != "read" && e != "write" && e != "send" }), len(m.Commands) > 0, m.Spends, m.Orders:
		return s, whyGrave
	case len(m.Carries) > 0:
		return s, whyCarries
	case l.meaning(c.Server, c.Tool).Stateful && !slices.Equal(m.Effects, []string{"read"}):
		return s, whyState
	}
	for _, of := range []func(*shape, *learntCall) string{pathsOf, hostsOf, recipientsOf, l.argumentsOf} {
		if why := of(&s, c); why != "" {
			return s, why
		}
	}
	if len(s.bound)+len(s.texts)+len(s.hosts)+len(s.recipients) > 0 {
		s.tool = c.Tool
	} else {
		s.across = true
	}
	return s, ""
}

// shellSigns are not in the name of a file that a rule lets pass: a script that goes over
// the files of a folder may run what stands there.
const shellSigns = "$`;|&<>"

// pathsOf notes the files of a call, which must be in the workspace.
func pathsOf(s *shape, c *learntCall) string {
	for _, p := range c.Made.Meaning.Paths {
		changes := !slices.Equal(s.effects, []string{"read"})
		if !p.Inside || p.Doubt != "" || p.Secret != "" || p.RunsLater != "" && changes || strings.ContainsAny(p.Path, globSigns) {
			return whyOutside
		}
		if strings.ContainsAny(p.Path, shellSigns) {
			return whyShell
		}
		s.inside = append(s.inside, p.Path)
	}
	if s.where == "workspace" && len(s.inside) == 0 {
		return whyOutside
	}
	return ""
}

// plainAddress matches an address of the web that has a host, a path of plain words and
// nothing else; longest bounds it, since a path can carry something, too.
var plainAddress = regexp.MustCompile(`^https://[a-z0-9.-]+(/[A-Za-z0-9._-]{0,40}){0,6}$`)

const longest = 120

// ruleWords mean something else in rules than a host or a recipient of that name.
var ruleWords = []string{"new", "localhost", "beyond"}

// hostsOf notes the one host of a call, with its address.
func hostsOf(s *shape, c *learntCall) string {
	hosts := c.Made.Meaning.Hosts
	switch {
	case len(hosts) == 0 && s.net == "chosen":
		return whyTooLoose
	case len(hosts) == 0:
		return ""
	}
	h := hosts[0]
	address, ok := c.Made.Args[h.Param].(string)
	switch {
	case h.Beyond || h.Param == pageParam:
		return whyPage
	case len(hosts) > 1 || h.Name == "" || h.Doubt != "" || !ok || strings.ContainsAny(h.Name, globSigns) || slices.Contains(ruleWords, h.Name):
		return whyTooLoose
	case !h.Bare || len(address) > longest || !plainAddress.MatchString(address):
		return whyAddress
	}
	s.hosts, s.urls, s.address = []string{h.Name}, []string{address}, "args"+member(h.Param)
	s.plain = []string{s.address + ".matches(" + quote(plainAddress.String()) + ")", "size(" + s.address + ") <= " + strconv.Itoa(longest)}
	return ""
}

// recipientsOf notes to whom something goes.
func recipientsOf(s *shape, c *learntCall) string {
	for _, r := range c.Made.Meaning.Recipients {
		name := strings.ToLower(r.Name)
		if name == "" || strings.ContainsAny(name, globSigns) || slices.Contains(ruleWords, name) {
			return whyTooLoose
		}
		if !slices.Contains(s.recipients, name) {
			s.recipients = append(s.recipients, name)
		}
	}
	slices.Sort(s.recipients)
	return ""
}

// argumentsOf binds the arguments that are neither text nor said by the meaning.
func (l *learner) argumentsOf(s *shape, c *learntCall) string {
	for _, name := range slices.Sorted(maps.Keys(c.Made.Args)) {
		if why := l.argument(s, c, name, "args"+member(name), c.Made.Args[name]); why != "" {
			return why
		}
	}
	return ""
}

func (l *learner) argument(s *shape, c *learntCall, param, place string, v any) string {
	role := l.meaning(c.Server, c.Tool).Args[param]
	switch {
	case role == Text:
		return s.text(c, place, v)
	case role == Meant && meantBy(c.Made.Meaning, param):
		return s.name(c, param, place, v)
	case role == Meant: // nothing that the rule says is about it
		return whyTooLoose
	}
	switch v := v.(type) {
	case map[string]any:
		s.bound = append(s.bound, namesIn(place, slices.Sorted(maps.Keys(v))))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if why := l.argument(s, c, param+"."+name, place+member(name), v[name]); why != "" {
				return why
			}
		}
		return ""
	case []any:
		return whyTooLoose
	}
	if role != Bound {
		return whyUnknown
	}
	term, ok := alike(place, []any{v})
	if text, isText := v.(string); isText {
		term, ok = place+" == "+quote(text), len(text) <= 200
	}
	if !ok {
		return whyTooLoose
	}
	s.bound = append(s.bound, term)
	return ""
}

// name notes an argument that names files, or somebody.
func (s *shape) name(c *learntCall, param, place string, v any) string {
	if !slices.ContainsFunc(c.Made.Meaning.Paths, func(f profiles.PathFact) bool { return about(f.Param, param) }) {
		return ""
	}
	signs := "matches(" + quote("["+shellSigns+"]") + ")"
	switch v := v.(type) {
	case string:
		s.names = append(s.names, "!"+place+"."+signs)
	case []any:
		if slices.ContainsFunc(v, func(one any) bool { _, ok := one.(string); return !ok }) {
			return whyTooLoose
		}
		s.names = append(s.names, place+".all(file, !file."+signs+")")
	default:
		return whyTooLoose
	}
	return ""
}

// about reports whether a fact is about an argument, or about what is in it.
func about(fact, param string) bool { return fact == param || strings.HasPrefix(fact, param+".") }

// meantBy reports whether a fact of the call is about an argument.
func meantBy(m *profiles.Meaning, param string) bool {
	is := func(fact string) bool { return about(fact, param) }
	return slices.ContainsFunc(m.Paths, func(f profiles.PathFact) bool { return is(f.Param) }) ||
		slices.ContainsFunc(m.Hosts, func(f profiles.HostFact) bool { return is(f.Param) }) ||
		slices.ContainsFunc(m.Recipients, func(f profiles.RecipientFact) bool { return is(f.Param) })
}

// text notes an argument that may be any text. Where it leaves this machine it names nobody.
func (s *shape) text(c *learntCall, place string, v any) string {
	if !c.Made.Meaning.Leaves() {
		return ""
	}
	text, ok := v.(string)
	switch {
	case !ok:
		return whyTooLoose
	case strings.Contains(text, "://") || strings.Contains(text, "@"):
		return whyNamesHost
	}
	s.texts = append(s.texts, "!"+place+".contains('://')", "!"+place+".contains('@')")
	return ""
}
