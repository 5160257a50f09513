package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// A memory keeps what is found out again and again: a log has the same calls many times.
type memory struct {
	policy  *profiles.Set
	facts   Facts
	shown   map[string]*shownCall
	decided map[string][2]profiles.Decision
	byTool  map[source]toolLabels
	known   map[string]*profiles.Profile // nil if there is none
	marked  map[string]string            // what rules show in the place of a value, by its name
	counts  bool                         // some rule looks at what its run has done
}

// remembered bounds how many calls are kept of each kind.
const remembered = 1 << 14

func newMemory(o ReplayOptions) *memory {
	m := &memory{policy: o.Policy, facts: o.Facts, shown: map[string]*shownCall{}, decided: map[string][2]profiles.Decision{},
		byTool: map[source]toolLabels{}, known: map[string]*profiles.Profile{}, marked: map[string]string{}}
	all := []*profiles.Profile{o.Policy.Default()}
	for _, name := range o.Policy.Names() {
		p, _ := o.Policy.Profile(name)
		all = append(all, p)
	}
	for _, p := range all {
		for name, text := range p.Hidden() {
			if text != "" {
				m.marked[lettersOf(name)] = text
			}
		}
		for _, r := range p.Effective().Rules {
			m.counts = m.counts || r.When != nil && strings.Contains(r.When.Expr, "run.")
		}
	}
	return m
}

// lettersOf is the form in which names of hidden arguments are compared.
func lettersOf(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// profile returns a profile of the policy; the empty name is what binds `eval`.
func (m *memory) profile(name string) *profiles.Profile {
	if p, ok := m.known[name]; ok {
		return p
	}
	p := m.policy.Default()
	if name != "" {
		p, _ = m.policy.Profile(name)
	}
	m.known[name] = p
	return p
}

// toolLabels are the labels of a tool; of one that no server lists now they are not known.
type toolLabels struct {
	profiles.Labels
	listed bool
}

// labels returns the labels of a tool today.
func (m *memory) labels(s source) toolLabels {
	if l, ok := m.byTool[s]; ok {
		return l
	}
	call, listed := m.facts(s.server, s.tool, nil)
	l := toolLabels{profiles.Labels{Unknown: s.server != ""}, listed}
	if call.Flow != nil {
		l.Labels = call.Flow.Labels
	}
	m.byTool[s] = l
	return l
}

// marks are what was read, as policy sees it: of the tools with the same labels, a few.
func (m *memory) marks(read []source) (all []profiles.FlowFact) {
	alike := map[string]int{}
	for _, s := range read {
		l := m.labels(s).Labels
		key := fmt.Sprint(l)
		if len(l.Has) == 0 && !l.Unknown || alike[key] == 4 {
			continue
		}
		alike[key]++
		all = append(all, profiles.FlowFact{Labels: l, Says: s.server + "__" + s.tool + " was read"})
	}
	return all
}

// A shownCall is a call as far as the log shows it.
type shownCall struct {
	call   profiles.Call
	listed bool
	cut    bool           // whole arguments are missing
	args   map[string]any // as the log shows them
	hidden []string       // where values are hidden; each is Masked in call.Args
	short  []string       // where they are cut, or written in another form; likewise
}

// read reads a recorded call, and what policy may know of it today.
func (m *memory) read(r ledger.Record) *shownCall {
	key := ""
	if r.Digest != "" {
		key = r.Server + "\x00" + r.Tool + "\x00" + r.Digest
		if s := m.shown[key]; s != nil {
			return s
		}
	}
	s := &shownCall{}
	var ok bool
	if s.args, ok = tree(r.Args); !ok {
		s.args, s.cut = map[string]any{}, true
	}
	args, _ := s.mask(m, "", "", s.args).(map[string]any)
	if args == nil {
		args, s.cut = map[string]any{}, true
	}
	s.call, s.listed = m.facts(r.Server, r.Tool, args)
	s.call.Args = args
	if s.call.Flow == nil {
		s.call.Flow = &profiles.FlowFacts{Labels: profiles.Labels{Unknown: r.Server != ""}}
	}
	s.secrets()
	if key != "" {
		if len(m.shown) >= remembered {
			clear(m.shown)
		}
		m.shown[key] = s
	}
	return s
}

// mask returns a value as far as the log shows it: what it does not show is Masked, and an
// array or object of which something is missing is Masked as a whole.
func (s *shownCall) mask(m *memory, at, name string, v any) any {
	switch v := v.(type) {
	case string:
		mark, named := m.marked[lettersOf(name)]
		switch {
		case strings.Contains(v, "[hidden") || named && strings.HasPrefix(v, mark):
			s.hidden = append(s.hidden, at)
		case masked(v) || strings.Contains(v, " bytes left out"):
			s.short = append(s.short, at)
		default:
			return v
		}
		return profiles.Masked{}
	case []any:
		before := len(s.hidden) + len(s.short)
		for _, element := range v {
			s.mask(m, at, name, element)
		}
		if len(s.hidden)+len(s.short) > before {
			return profiles.Masked{}
		}
	case map[string]any:
		is := make(map[string]any, len(v))
		for key, element := range v {
			below := strings.TrimPrefix(at+"."+key, ".")
			if strings.Contains(key, "…") { // members are missing, or their names are
				if at == "" {
					s.cut = true
					continue
				}
				s.short = append(s.short, at)
				return profiles.Masked{}
			}
			is[key] = s.mask(m, below, key, element)
		}
		return is
	}
	return v
}

// secrets adds to what the call carries what the log hides because it looks like a secret.
func (s *shownCall) secrets() {
	if s.call.Meaning == nil || !s.call.Meaning.Leaves() {
		return
	}
	is := *s.call.Meaning
	is.Carries = slices.Clone(is.Carries)
	for _, at := range s.hidden {
		if text, err := json.Marshal(s.args); err == nil && strings.Contains(string(text), "[hidden: looks like") {
			is.Carries = append(is.Carries, profiles.CarriedFact{Param: at, What: "a secret", Secret: true})
			break
		}
	}
	s.call.Meaning = &is
}

// between is [profiles.Profile.Between], remembered.
func (m *memory) between(name string, p *profiles.Profile, call profiles.Call, r ledger.Record, missing profiles.Gaps) (strict, loose profiles.Decision) {
	if m.counts || r.Digest == "" {
		return p.Between(call, missing)
	}
	key := m.key(name, call, r, missing)
	if both, ok := m.decided[key]; ok {
		return both[0], both[1]
	}
	strict, loose = p.Between(call, missing)
	if len(m.decided) >= remembered {
		clear(m.decided)
	}
	m.decided[key] = [2]profiles.Decision{strict, loose}
	return strict, loose
}

// key is everything that a decision depends on, besides what a call with these arguments
// always means.
func (m *memory) key(name string, call profiles.Call, r ledger.Record, missing profiles.Gaps) string {
	var b strings.Builder
	say := func(texts ...string) {
		for _, text := range texts {
			b.WriteString(text)
			b.WriteByte(0)
		}
	}
	flag := func(all ...bool) {
		for _, is := range all {
			b.WriteByte("ny"[map[bool]int{true: 1}[is]])
		}
	}
	say(name, r.Server, r.Tool, r.Digest)
	flag(missing.Args, missing.Tool, missing.Content, missing.Written, missing.Carries, call.Flow.Written)
	if m := call.Meaning; m != nil {
		for _, h := range m.Hosts {
			say(h.Name)
			flag(h.New)
		}
		for _, who := range m.Recipients {
			flag(who.New)
		}
		for _, c := range m.Carries {
			say(c.Param, c.What)
		}
	}
	for _, facts := range [][]profiles.FlowFact{call.Flow.Content, call.Flow.Context} {
		say("|")
		for _, f := range facts {
			say(f.Says)
			say(f.Labels.Has...)
			flag(f.Undecided, f.Labels.Unknown)
		}
	}
	return b.String()
}

// cause says what is missing that matters: the first that by itself keeps the decision from
// being known.
func (m *memory) cause(p *profiles.Profile, call profiles.Call, s *shownCall, missing profiles.Gaps) string {
	without := func(masked []string) map[string]any { return unmasked("", call.Args, s.args, masked) }
	shown := without(nil)
	first := ""
	for _, one := range []struct {
		gap  string
		is   bool
		args map[string]any
		gaps profiles.Gaps
	}{
		{GapTool, missing.Tool, shown, profiles.Gaps{Tool: true}},
		{GapHidden, len(s.hidden) > 0, without(s.hidden), profiles.Gaps{}},
		{GapCut, missing.Args || len(s.short) > 0, without(s.short), profiles.Gaps{Args: missing.Args}},
		{GapContent, missing.Content || missing.Carries, shown, profiles.Gaps{Content: missing.Content, Carries: missing.Carries}},
		{GapWritten, missing.Written, shown, profiles.Gaps{Written: true}},
	} {
		if !one.is {
			continue
		}
		if first == "" {
			first = one.gap
		}
		call.Args = one.args
		if strict, loose := p.Between(call, one.gaps); isDecided(strict) != isDecided(loose) {
			return one.gap
		}
	}
	return first
}

// unmasked returns args with what the log shows in the place of what is Masked, but at the
// places that are to stay so.
func unmasked(at string, args, shown map[string]any, stay []string) map[string]any {
	is := make(map[string]any, len(args))
	for name, v := range args {
		below := strings.TrimPrefix(at+"."+name, ".")
		was, _ := shown[name].(map[string]any)
		switch inner, nested := v.(map[string]any); {
		case nested:
			is[name] = unmasked(below, inner, was, stay)
		case isMasked(v) && !slices.Contains(stay, below):
			is[name] = shown[name]
		default:
			is[name] = v
		}
	}
	return is
}

func isMasked(v any) bool {
	_, is := v.(profiles.Masked)
	return is
}
