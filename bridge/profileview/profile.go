package profileview

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// Specs are the profiles of a configuration as they are written there, by name. They
// must have been checked: none extends itself or one that is missing.
type Specs = map[string]*profiles.ProfileSpec

// Called returns what people call a profile.
func Called(p *profiles.Profile) string {
	if p.Name() == "" {
		return "the unrestricted profile"
	}
	return "profile " + p.Name()
}

// Tools returns the eval tools by which clients run scripts under a profile.
func Tools(set *profiles.Set, p *profiles.Profile) []string {
	var tools []string
	if p.Name() == set.Default().Name() {
		tools = append(tools, "eval")
	}
	if p.Name() != "" && !(set.Alone() && set.Default() == p) {
		tools = append(tools, "codemode_eval_"+p.Name())
	}
	return tools
}

// A Row is a line of a list of profiles. docs/reference/cli.md promises its JSON keys.
type Row struct {
	Name      string   `json:"name"` // empty for the unrestricted one
	Tools     []string `json:"tools"`
	Extends   string   `json:"extends,omitempty"`
	Denylist  int      `json:"denylist"`
	Asklist   int      `json:"asklist"`
	Allowlist *int     `json:"allowlist,omitempty"` // absent where the profile has none
	Rules     int      `json:"rules"`
	Default   string   `json:"otherwise"`
	Observed  int      `json:"observed,omitempty"` // list entries, rules and flows, and the default
}

// observed counts what is only observed.
func observed(e *profiles.ProfileSpec) int {
	if e == nil {
		return 0
	}
	n := len(e.Denylist) + len(e.Asklist) + len(e.Allowlist) + len(e.Rules) + len(e.Flows)
	if e.Default != nil {
		n++
	}
	return n
}

// Rows returns a list of profiles; if that of eval has no name, it is the first.
func Rows(set *profiles.Set, specs Specs) []Row {
	rows := []Row{}
	add := func(p *profiles.Profile) {
		e := p.Effective()
		r := Row{
			Name: p.Name(), Tools: Tools(set, p), Denylist: len(e.Denylist), Asklist: len(e.Asklist), Rules: len(e.Rules),
			Default: defaultAction(e.ProfileSpec), Observed: observed(e.Observed),
		}
		if line := Lineage(specs, p.Name()); len(line) > 1 {
			r.Extends = line[len(line)-2]
		}
		if e.Allowlist != nil {
			n := len(e.Allowlist)
			r.Allowlist = &n
		}
		rows = append(rows, r)
	}
	if p := set.Default(); p.Name() == "" {
		add(p)
	}
	for _, name := range set.Names() {
		p, _ := set.Profile(name)
		add(p)
	}
	return rows
}

// defaultAction is what a profile does with calls that no list and no rule names.
func defaultAction(e profiles.ProfileSpec) string {
	switch {
	case e.Allowlist != nil:
		return "deny"
	case e.Default != nil:
		return *e.Default
	}
	return "allow"
}

// Lineage returns a profile and all that it extends, the root first; nil for the
// unrestricted one.
func Lineage(specs Specs, name string) []string {
	if name == "" {
		return nil
	}
	line := []string{name}
	for s := specs[name]; s != nil && s.Extends != nil; s = specs[*s.Extends] {
		line = append(line, *s.Extends)
	}
	slices.Reverse(line)
	return line
}

// Write writes a profile with all that it inherits, and from which parent.
func Write(out io.Writer, set *profiles.Set, specs Specs, p *profiles.Profile) error {
	all := set.Builtins()
	maps.Copy(all, specs)
	specs = all
	e, line := p.Effective(), Lineage(specs, p.Name())
	fmt.Fprintf(out, "%s binds %s\n", Called(p), strings.Join(Tools(set, p), " and "))
	if len(line) > 1 {
		fmt.Fprintf(out, "extends %s\n", strings.Join(line[:len(line)-1], ", which is extended by "))
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	printLists(w, specs, line, e)
	printRules(w, specs, line)
	printFlows(w, specs, line)
	fmt.Fprintf(w, "otherwise\t%s\n", defaultAction(e.ProfileSpec))
	if e.Observed != nil && e.Observed.Default != nil {
		fmt.Fprintf(w, "\t%s%s\n", *e.Observed.Default, onlyObserved)
	}
	if e.ElicitationFallback != nil {
		fmt.Fprintf(w, "client cannot ask\t%s\n", *e.ElicitationFallback)
	}
	if e.Limits != nil {
		limits, err := json.Marshal(e.Limits)
		if err != nil {
			return fmt.Errorf("printing the limits: %w", err)
		}
		fmt.Fprintf(w, "limits\t%s\n", limits)
	}
	return w.Flush()
}

// onlyObserved marks what is decided and recorded, and not enforced.
const onlyObserved = "  (only observed)"

// printLists prints the three lists, each entry with the profile that it is inherited
// from.
func printLists(w *tabwriter.Writer, specs Specs, line []string, e profiles.EffectiveSpec) {
	for _, list := range []struct {
		label string
		of    func(*profiles.ProfileSpec) []string
	}{
		{"deny", func(s *profiles.ProfileSpec) []string { return s.Denylist }},
		{"ask", func(s *profiles.ProfileSpec) []string { return s.Asklist }},
		{"allow", func(s *profiles.ProfileSpec) []string { return s.Allowlist }},
	} {
		label := list.label
		entry := func(text, mark string) {
			from := ""
			for _, name := range line[:max(0, len(line)-1)] {
				if slices.Contains(list.of(specs[name]), text) {
					from = "  (" + name + ")"
					break
				}
			}
			fmt.Fprintf(w, "%s\t%s%s%s\n", label, canon.Escape(text), from, mark)
			label = ""
		}
		if entries := list.of(&e.ProfileSpec); entries != nil && len(entries) == 0 {
			fmt.Fprintf(w, "%s\tnothing: the list is empty\n", label)
		}
		for _, text := range list.of(&e.ProfileSpec) {
			entry(text, "")
		}
		if e.Observed != nil {
			for _, text := range list.of(e.Observed) {
				entry(text, onlyObserved)
			}
		}
	}
}

// allObserved reports whether all rules and flows of a profile in a line are only observed.
func allObserved(specs Specs, line []string, i int) bool {
	all := func(name string) bool { return specs[name].Observe != nil && specs[name].Observe.All }
	return all(line[i]) || strings.HasPrefix(line[i], profiles.BuiltinPrefix) && i+1 < len(line) && all(line[i+1])
}

// marks says where a rule or flow of a line of profiles comes from, and whether it is only
// observed.
func marks(specs Specs, line []string, i int, observe *bool) (text string) {
	if i < len(line)-1 {
		text = "  (" + line[i] + ")"
	}
	if observe != nil && *observe || allObserved(specs, line, i) {
		text += onlyObserved
	}
	return text
}

// printRules prints the rules of a line of profiles.
func printRules(w *tabwriter.Writer, specs Specs, line []string) {
	for i, name := range line {
		for n, r := range specs[name].Rules {
			label, action := fmt.Sprintf("rules/%d", n), "no action"
			if r.Name != nil {
				label = "rule " + *r.Name
			}
			if r.Action != nil {
				action = *r.Action
			}
			fmt.Fprintf(w, "%s\t%s: %s%s\n", canon.Escape(label), action, canon.Escape(strings.Join(r.Tools, ", ")), marks(specs, line, i, r.Observe))
			for _, detail := range ruleDetails(r) {
				fmt.Fprintf(w, "\t  %s\n", canon.Escape(detail))
			}
		}
	}
}

// printFlows prints the rules about flows of a line of profiles.
func printFlows(w *tabwriter.Writer, specs Specs, line []string) {
	for i, name := range line {
		for n, f := range specs[name].Flows {
			fmt.Fprintf(w, "flows/%d\t%s: from %s to %s, by %s%s\n", n, *f.Action, *f.From, *f.To, *f.By, marks(specs, line, i, f.Observe))
			if f.Reason != nil {
				fmt.Fprintf(w, "\t  reason: %s\n", canon.Escape(*f.Reason))
			}
		}
	}
}

// ruleDetails returns the lines below a rule.
func ruleDetails(r profiles.RuleSpec) []string {
	var lines []string
	if r.When != nil && r.When.Params == nil {
		lines = append(lines, "when "+r.When.Expr)
	} else if r.When != nil {
		for _, p := range r.When.Params {
			lines = append(lines, fmt.Sprintf("when %s matches %s", p.Param, p.Matches))
		}
	}
	if r.Reason != nil {
		lines = append(lines, "because "+*r.Reason)
	}
	if r.Risk != nil {
		lines = append(lines, "risk "+*r.Risk)
	}
	if r.Repeatable != nil {
		lines = append(lines, "may be repeated: "+yesNo(*r.Repeatable))
	}
	if r.Timeout != nil {
		lines = append(lines, "time to answer "+span(time.Duration(*r.Timeout)))
	}
	if r.Remember != nil {
		lines = append(lines, "may be remembered: "+yesNo(*r.Remember))
	}
	if r.RequireReason != nil {
		lines = append(lines, "needs a reason: "+yesNo(*r.RequireReason))
	}
	if r.Quorum != nil {
		lines = append(lines, "yes from "+quorum(r.Quorum))
	}
	for _, check := range r.Check {
		lines = append(lines, "check "+check)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Hidden)) {
		lines = append(lines, "hides "+key)
	}
	if r.Display != nil {
		for _, bound := range []struct {
			name string
			most *int
		}{
			{"characters of a text", r.Display.MaxString}, {"elements of an array", r.Display.MaxArray},
			{"members of an object", r.Display.MaxObject}, {"levels of nesting", r.Display.MaxDepth},
		} {
			if bound.most != nil {
				lines = append(lines, fmt.Sprintf("shows at most %d %s", *bound.most, bound.name))
			}
		}
	}
	return lines
}

// RiskRows returns a table of how people are asked at each risk.
func RiskRows(t *profiles.RiskTable) [][]string {
	rows := [][]string{{"risk", "time to answer", "may be remembered", "needs a reason", "yes from"}}
	for _, level := range []struct {
		name string
		spec *profiles.RiskPolicySpec
	}{{"low", t.Low}, {"medium", t.Medium}, {"high", t.High}, {"critical", t.Critical}} {
		if s := level.spec; s != nil {
			rows = append(rows, []string{level.name, span(time.Duration(*s.Timeout)), yesNo(*s.Remember), yesNo(*s.RequireReason), quorum(s.Quorum)})
		}
	}
	return rows
}

// quorum says how many must agree, and who.
func quorum(q *profiles.QuorumSpec) string {
	if q == nil {
		return "1 person"
	}
	text := "1 person"
	if q.Need != nil && *q.Need != 1 {
		text = fmt.Sprintf("%d people", *q.Need)
	}
	if len(q.Of) > 0 {
		text += " of " + strings.Join(q.Of, ", ")
	}
	if q.InOrder != nil && *q.InOrder {
		text += ", in this order"
	}
	return text
}

// span formats a duration without zero units at its end: 5m, 1h30m, 90ms.
func span(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
