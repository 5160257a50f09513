package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// From these bounds on, questions count as nearly always answered yes.
const (
	minYes  = 5   // approvals of one tool
	minRate = 0.9 // approvals among its answers
)

// A Suggestion is a rule that would have spared people questions that they nearly
// always answer with yes. It is as narrow as its form allows: one tool, no argument
// that no approved call had, and for each argument what all approved calls have in
// common (its value, its folder, its host).
//
// Cover and LetThrough were found with the policy's own code, by putting the rule into
// a profile that allows nothing else and deciding the recorded calls. Of an argument
// that the log does not show in full the worst is assumed: that the rule allows it if
// the answer was no, and that it does not if the answer was yes.
type Suggestion struct {
	Asks    string   `json:"asks"` // the rule or list entry that asks
	Profile string   `json:"profile"`
	Tool    string   `json:"tool"` // server__tool
	Risks   []string `json:"risks"`
	Yes     int      `json:"yes"`
	No      int      `json:"no"`

	// Rule is for pasting into the profile's rules.
	Rule       profiles.RuleSpec `json:"rule"`
	Cover      int               `json:"would_have_covered"`
	LetThrough []Case            `json:"would_have_let_through"`

	// An allow does not outweigh an ask: if a list entry or rule asks, Rule alone
	// changes nothing. Instead has rules that ask for all calls but these, each to
	// replace a list entry. Except is to be added, with &&, to the conditions of
	// rules. Note says which.
	Instead []profiles.RuleSpec `json:"instead,omitempty"`
	Except  string              `json:"except,omitempty"`
	Note    string              `json:"note,omitempty"`
}

// Suggest returns a suggestion for every tool whose questions by one rule are nearly
// always answered yes, the most useful first. It suggests nothing for critical calls,
// nor for those that need the tool's name typed.
func (s *Stats) Suggest() []Suggestion {
	all := []Suggestion{}
	for key, a := range s.asked {
		if !a.nearlyAlwaysYes() || slices.Contains(a.risks, profiles.Critical.String()) {
			continue
		}
		if suggestion, ok := suggest(key, a); ok {
			all = append(all, suggestion)
		}
	}
	slices.SortFunc(all, func(a, b Suggestion) int {
		return cmp.Or(cmp.Compare(b.Cover, a.Cover), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.Asks, b.Asks))
	})
	return all
}

// nearlyAlwaysYes reports whether the questions were nearly always answered yes, and
// without typing the tool's name.
func (a *asks) nearlyAlwaysYes() bool {
	return len(a.yes) >= minYes && float64(len(a.yes)) >= minRate*float64(len(a.yes)+len(a.no)) && !a.manual
}

func suggest(key askKey, a *asks) (Suggestion, bool) {
	tool := key.tool
	if key.server != "" {
		tool = key.server + "__" + key.tool
	}
	s := Suggestion{Asks: key.rule, Profile: key.profile, Tool: tool, Yes: len(a.yes), No: len(a.no), LetThrough: []Case{}}
	s.Risks = slices.Sorted(slices.Values(a.risks))
	var approved []map[string]any
	for _, c := range a.yes {
		if args, ok := tree(c.Args); ok {
			approved = append(approved, args)
		}
	}
	terms := common(approved)
	if len(terms) == 0 || strings.ContainsAny(tool, `*?[]{}\!,`) {
		return s, false // nothing to go by, or a name with characters that mean something in a glob
	}
	s.Rule = allow(tool, terms)
	if len(s.Rule.When.Expr) > 2000 {
		return s, false
	}
	rule := newJudge(s.Rule)
	for _, c := range a.yes {
		if args, ok := tree(c.Args); ok && rule.allows(key, args) {
			s.Cover++
		}
	}
	for _, c := range a.no {
		args, _ := tree(c.Args)
		known := slices.DeleteFunc(slices.Clone(terms), func(t term) bool { return t.maskedIn(args) })
		if newJudge(allow(tool, known)).allows(key, args) {
			s.LetThrough = append(s.LetThrough, c)
		}
	}
	s.explain(a.reasons, key)
	return s, s.Cover > 0
}

// explain says what else has to change for the rule to have an effect.
func (s *Suggestion) explain(reasons []string, key askKey) {
	except := fmt.Sprintf("!(server == %s && tool == %s && %s)", quote(key.server), quote(key.tool), s.Rule.When.Expr)
	var notes []string
	for _, reason := range reasons {
		head := ruleOf(reason)
		switch {
		case strings.HasPrefix(head, string(profiles.KindAsklist)+": "):
			text, _, _ := strings.Cut(strings.TrimPrefix(head, string(profiles.KindAsklist)+": "), " [profile ")
			pattern, err := strconv.Unquote(text)
			if err != nil {
				continue
			}
			s.Instead = append(s.Instead, profiles.RuleSpec{Tools: []string{pattern}, When: &profiles.When{Expr: except}, Action: new("ask")})
			notes = append(notes, fmt.Sprintf("take %s off the asklist", text))
		case strings.HasPrefix(head, "rule ") && strings.Contains(reason, " (ask)"):
			s.Except = except
			notes = append(notes, "narrow "+head)
		}
	}
	if len(notes) > 0 {
		s.Note = "an ask outweighs an allow: " + strings.Join(notes, ", ")
	}
}

// A term is a condition that the arguments of all approved calls meet.
type term struct {
	at   []string // the path into the arguments; empty for the names of all
	expr string
}

// allow is the rule that allows calls of a tool that meet all terms.
func allow(tool string, terms []term) profiles.RuleSpec {
	var all []string
	for _, t := range terms {
		all = append(all, t.expr)
	}
	if len(all) == 0 {
		all = []string{"true"}
	}
	return profiles.RuleSpec{Tools: []string{tool}, When: &profiles.When{Expr: strings.Join(all, " && ")}, Action: new("allow")}
}

// tree decodes arguments as the policy sees them.
func tree(args json.RawMessage) (map[string]any, bool) {
	if len(args) == 0 {
		return nil, false
	}
	a, err := canon.Parse(args)
	if err != nil {
		return nil, false
	}
	return a.Value(), true
}

// maxTerms bounds the conditions of one rule.
const maxTerms = 12

// common finds what all arguments have in common.
func common(all []map[string]any) []term {
	if len(all) == 0 {
		return nil
	}
	names := map[string]bool{}
	for _, args := range all {
		for name := range args {
			names[name] = true
		}
	}
	if names["…"] {
		return nil // these were cut: nobody knows what they were
	}
	var quoted []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		quoted = append(quoted, quote(name))
	}
	terms := []term{{nil, fmt.Sprintf("args.all(name, name in [%s])", strings.Join(quoted, ", "))}}
	if len(quoted) == 0 {
		terms[0].expr = "size(args) == 0"
	}
	values := make([]any, len(all))
	for i, args := range all {
		values[i] = args
	}
	return commonBelow(terms, values, nil)
}

// commonBelow adds to terms what the values at a path have in common.
func commonBelow(terms []term, values []any, at []string) []term {
	if len(terms) == maxTerms || slices.ContainsFunc(values, func(v any) bool { return masked(v) }) {
		return terms
	}
	place := "args"
	for _, name := range at {
		place += member(name)
	}
	if expr, ok := alike(place, values); ok {
		return append(terms, term{slices.Clone(at), expr})
	}
	first, ok := values[0].(map[string]any)
	if !ok || len(at) > 3 {
		return terms
	}
	for _, name := range slices.Sorted(maps.Keys(first)) {
		below := make([]any, 0, len(values))
		for _, v := range values {
			object, _ := v.(map[string]any)
			inner, ok := object[name]
			if !ok {
				break
			}
			below = append(below, inner)
		}
		if len(below) == len(values) {
			terms = commonBelow(terms, below, append(at, name))
		}
	}
	return terms
}

// alike returns a condition that all values meet, if there is one: the same value, the
// same host, or the same folder.
func alike(place string, values []any) (string, bool) {
	texts := make([]string, 0, len(values))
	for _, v := range values {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	if len(texts) == len(values) {
		switch host, folder := sameHost(texts), sameFolder(texts); {
		case len(slices.Compact(slices.Clone(texts))) == 1 && len(texts[0]) <= 200:
			return fmt.Sprintf("%s == %s", place, quote(texts[0])), true
		case host != "":
			return fmt.Sprintf("host(%s) == %s", place, quote(host)), true
		case folder != "":
			return fmt.Sprintf("clean(%s).startsWith(%s)", place, quote(folder)), true
		}
		return "", false
	}
	var literal string
	for i, v := range values {
		var text string
		switch v := v.(type) {
		case bool:
			text = strconv.FormatBool(v)
		case json.Number:
			if _, err := v.Int64(); err != nil {
				return "", false
			}
			text = v.String()
		default:
			return "", false
		}
		if i > 0 && text != literal {
			return "", false
		}
		literal = text
	}
	return fmt.Sprintf("%s == %s", place, literal), true
}

// sameHost is the host that all texts have if they are URLs of one host, in lower case
// and without port; else "".
func sameHost(texts []string) (host string) {
	for _, text := range texts {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || host != "" && strings.ToLower(u.Hostname()) != host {
			return ""
		}
		host = strings.ToLower(u.Hostname())
	}
	return host
}

// sameFolder is the deepest folder that contains all texts, if they are absolute paths,
// with a slash at its end; else, and if that is the root, "".
func sameFolder(texts []string) string {
	var shared []string
	for i, text := range texts {
		if !strings.HasPrefix(text, "/") || strings.Contains(text, `\`) {
			return ""
		}
		parts := strings.Split(path.Dir(path.Clean(text)), "/")
		if i == 0 {
			shared = parts
		}
		n := 0
		for n < min(len(shared), len(parts)) && shared[n] == parts[n] {
			n++
		}
		shared = shared[:n]
	}
	if folder := strings.Join(shared, "/"); folder != "" {
		return folder + "/"
	}
	return ""
}

// masked reports whether the log does not show a value as it was: something in it was
// hidden, cut or escaped.
func masked(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "…") || strings.Contains(v, "[hidden") || strings.Contains(v, `\u{`) || strings.Contains(v, `\x{`)
	case []any:
		return slices.ContainsFunc(v, masked)
	}
	return false // commonBelow looks at an object's members one by one
}

// maskedIn reports whether the log does not show the part of args that t is about.
func (t term) maskedIn(args map[string]any) bool {
	if _, cut := args["…"]; cut {
		return true
	}
	var v any = args
	for _, name := range t.at {
		object, ok := v.(map[string]any)
		if _, cut := object["…"]; cut {
			return true
		}
		if v = object[name]; !ok || masked(v) {
			return masked(v) // a member that is not there is not masked
		}
	}
	return false
}

// reserved words of CEL cannot follow a dot.
var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var reserved = strings.Fields("as break const continue else false for function if import in let loop namespace null package return true var void while")

// member is how a CEL expression reads a member.
func member(name string) string {
	if plain.MatchString(name) && !slices.Contains(reserved, name) {
		return "." + name
	}
	return "[" + quote(name) + "]"
}

// quote is a text as a literal of CEL and of JSON.
func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return strconv.Quote(text)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// A judge decides by a single rule.
type judge struct{ profile *profiles.Profile }

// newJudge makes a profile that allows what the rule does, and nothing else.
func newJudge(rule profiles.RuleSpec) judge {
	spec := profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"only": {Default: new("deny"), Rules: []profiles.RuleSpec{rule}}}}
	set, problems := profiles.Parse(spec)
	if len(problems) > 0 {
		return judge{}
	}
	p, _ := set.Profile("only")
	return judge{p}
}

// allows reports whether the rule allows a call. A rule that is not valid allows none,
// so that it is not suggested.
func (j judge) allows(key askKey, args map[string]any) bool {
	if j.profile == nil {
		return false
	}
	d := j.profile.Decide(profiles.Call{Server: key.server, Tool: key.tool, Args: args})
	return d.Disposition == profiles.Allow
}
