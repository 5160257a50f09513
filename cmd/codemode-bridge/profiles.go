package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles"

	"github.com/spf13/cobra"
)

// evalProfile names, on the command line, the profile that binds the base eval
// tool. No profile can have this name.
const evalProfile = "-"

// profilesCommand shows and explains the policy.
func profilesCommand(con *console) *cobra.Command {
	group := &cobra.Command{
		Use: "profiles", Short: "What scripts may do, and why",
		Long: "Shows and explains the profiles of the configuration. Where a profile is named, " + evalProfile + " stands\n" +
			"for the one that binds the base eval tool: evaluation.defaultProfile or, without it,\nthe unrestricted one.",
	}
	list := &cobra.Command{
		Use: "list", Short: "List the profiles and the eval tools that they bind", Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return listProfiles(con) },
	}
	show := &cobra.Command{
		Use: "show profile", Short: "Print what a profile comes to, with all that it extends", Args: exactArgs(1),
		Long: "Prints the lists, rules and settings of a profile, its own and those it extends.\nThe profile " + evalProfile + " is the one that binds eval.",
		RunE: func(_ *cobra.Command, args []string) error { return showProfile(con, args[0]) },
	}
	explain := &cobra.Command{
		Use: "explain profile tool [arguments]", Short: "Say what a call may do, and everything that was tried to decide it", Args: rangeArgs(2, 3),
		Long: "Decides one call as the first of a run, without making it, and prints the decision,\n" +
			"its reasons, and every list entry and rule with its outcome. The arguments are JSON.\n" +
			"The profile " + evalProfile + " is the one that binds eval. The exit code is 0 whatever the decision.",
		Example: `  codemode-bridge profiles explain supervised filesystem__write_file '{"path": "/etc/hosts"}'
  codemode-bridge profiles explain - time__now`,
		RunE: func(c *cobra.Command, args []string) error {
			return explain(c.Context(), con, args[0], args[1], strings.Join(args[2:], ""))
		},
	}
	check := &cobra.Command{
		Use: "check", Short: "Find entries and rules that do nothing with the tools there are", Args: noArgs,
		Long: "Connects to the servers and warns of list entries and rules that match no tool, that\n" +
			"a stricter one always overrules, or whose condition can never be decided. The exit\ncode is 1 if there is one.",
		RunE: func(c *cobra.Command, _ []string) error { return checkProfiles(c.Context(), con) },
	}
	show.ValidArgsFunction, explain.ValidArgsFunction = con.completeProfiles, con.completeProfiles
	for _, c := range []*cobra.Command{list, show, explain, check} {
		con.jsonFlag(c)
		group.AddCommand(c)
	}
	group.AddCommand(addProfileCommand(con))
	return group
}

// namedProfile is the profile that a word of the command line names.
func namedProfile(set *profiles.Set, name string) (*profiles.Profile, error) {
	if name == evalProfile {
		return set.Default(), nil
	}
	if p, ok := set.Profile(name); ok {
		return p, nil
	}
	known := "the configuration has none"
	if names := set.Names(); len(names) > 0 {
		known = "there are: " + strings.Join(names, ", ")
	}
	return nil, &usageError{fmt.Errorf("there is no profile %q; %s", name, known)}
}

// called is what people call a profile.
func called(p *profiles.Profile) string {
	if p.Name() == "" {
		return "the unrestricted profile"
	}
	return "profile " + p.Name()
}

// boundTools are the eval tools that clients see of a profile.
func boundTools(set *profiles.Set, p *profiles.Profile) []string {
	var tools []string
	if p.Name() == set.Default().Name() {
		tools = append(tools, "eval")
	}
	if p.Name() != "" {
		tools = append(tools, "codemode_eval_"+p.Name())
	}
	return tools
}

// listProfiles prints a line for each profile, first that of eval if it has
// no name.
func listProfiles(con *console) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	set := cfg.Profiles
	type row struct {
		Name      string   `json:"name"` // empty for the unrestricted one
		Tools     []string `json:"tools"`
		Extends   string   `json:"extends,omitempty"`
		Denylist  int      `json:"denylist"`
		Asklist   int      `json:"asklist"`
		Allowlist *int     `json:"allowlist,omitempty"` // absent where the profile has none
		Rules     int      `json:"rules"`
		Otherwise string   `json:"otherwise"`
	}
	rows := []row{}
	add := func(p *profiles.Profile) {
		e := p.Effective()
		r := row{
			Name: p.Name(), Tools: boundTools(set, p), Denylist: len(e.Denylist), Asklist: len(e.Asklist), Rules: len(e.Rules),
			Otherwise: otherwise(e),
		}
		if line := lineage(cfg, p.Name()); len(line) > 1 {
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
	if con.json {
		return con.printJSON(rows)
	}
	table := [][]string{{"profile", "tools", "extends", "deny", "ask", "allow", "rules", "otherwise"}}
	for _, r := range rows {
		name, extends, allow := r.Name, r.Extends, "-"
		if name == "" {
			name = evalProfile
		}
		if extends == "" {
			extends = "-"
		}
		if r.Allowlist != nil {
			allow = strconv.Itoa(*r.Allowlist)
		}
		table = append(table, []string{
			name, strings.Join(r.Tools, ", "), extends,
			strconv.Itoa(r.Denylist), strconv.Itoa(r.Asklist), allow, strconv.Itoa(r.Rules), r.Otherwise,
		})
	}
	if err := con.table(table); err != nil {
		return err
	}
	if !set.Enabled() {
		fmt.Fprintln(con.err, "evaluation.enabled is false: what would be asked is allowed")
	}
	return nil
}

// otherwise is what becomes of a call that nothing speaks of.
func otherwise(e profiles.ProfileSpec) string {
	switch {
	case e.Allowlist != nil:
		return "deny"
	case e.Default != nil:
		return *e.Default
	}
	return "allow"
}

// lineage are a profile and all that it extends, the root first. The
// configuration was checked: there is no circle and nobody missing.
func lineage(cfg *config.Config, name string) []string {
	if name == "" {
		return nil
	}
	line := []string{name}
	for s := cfg.Evaluation.Profiles[name]; s != nil && s.Extends != nil; s = cfg.Evaluation.Profiles[*s.Extends] {
		line = append(line, *s.Extends)
	}
	slices.Reverse(line)
	return line
}

// showProfile prints what a profile comes to.
func showProfile(con *console, name string) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	p, err := namedProfile(cfg.Profiles, name)
	if err != nil {
		return err
	}
	e, line := p.Effective(), lineage(cfg, p.Name())
	if con.json {
		return con.printJSON(struct {
			Name    string               `json:"name"`
			Tools   []string             `json:"tools"`
			Lineage []string             `json:"lineage"` // the root first
			Profile profiles.ProfileSpec `json:"profile"`
		}{p.Name(), boundTools(cfg.Profiles, p), slices.Concat([]string{}, line), e})
	}
	fmt.Fprintf(con.out, "%s binds %s\n", called(p), strings.Join(boundTools(cfg.Profiles, p), " and "))
	if len(line) > 1 {
		fmt.Fprintf(con.out, "extends %s\n", strings.Join(line[:len(line)-1], ", which is extended by "))
	}
	fmt.Fprintln(con.out)
	w := tabwriter.NewWriter(con.out, 0, 0, 2, ' ', 0)
	printLists(w, cfg, line, e)
	printRules(w, cfg, line)
	fmt.Fprintf(w, "otherwise\t%s\n", otherwise(e))
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
	if err := w.Flush(); err != nil || e.Risk == nil {
		return err
	}
	fmt.Fprintln(con.out)
	return con.table(riskRows(e.Risk))
}

// printLists prints the three lists, each entry with the profile that it was
// inherited from.
func printLists(w *tabwriter.Writer, cfg *config.Config, line []string, e profiles.ProfileSpec) {
	for _, list := range []struct {
		label   string
		entries []string
		of      func(*profiles.ProfileSpec) []string
	}{
		{"deny", e.Denylist, func(s *profiles.ProfileSpec) []string { return s.Denylist }},
		{"ask", e.Asklist, func(s *profiles.ProfileSpec) []string { return s.Asklist }},
		{"allow", e.Allowlist, func(s *profiles.ProfileSpec) []string { return s.Allowlist }},
	} {
		label := list.label
		if list.entries != nil && len(list.entries) == 0 {
			fmt.Fprintf(w, "%s\tnothing: the list is empty\n", label)
		}
		for _, entry := range list.entries {
			from := ""
			for _, name := range line[:max(0, len(line)-1)] {
				if slices.Contains(list.of(cfg.Evaluation.Profiles[name]), entry) {
					from = "  (" + name + ")"
					break
				}
			}
			fmt.Fprintf(w, "%s\t%s%s\n", label, canon.Visible(entry), from)
			label = ""
		}
	}
}

// printRules prints the rules of a line of profiles.
func printRules(w *tabwriter.Writer, cfg *config.Config, line []string) {
	for i, name := range line {
		for n, r := range cfg.Evaluation.Profiles[name].Rules {
			label, from, action := fmt.Sprintf("rules/%d", n), "", "no action"
			if r.Name != nil {
				label = "rule " + *r.Name
			}
			if i < len(line)-1 {
				from = "  (" + name + ")"
			}
			if r.Action != nil {
				action = *r.Action
			}
			fmt.Fprintf(w, "%s\t%s: %s%s\n", canon.Visible(label), action, canon.Visible(strings.Join(r.Tools, ", ")), from)
			for _, detail := range ruleDetails(r) {
				fmt.Fprintf(w, "\t  %s\n", canon.Visible(detail))
			}
		}
	}
}

// ruleDetails are the lines below a rule.
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

// riskRows are a table of how people are asked at each risk.
func riskRows(t *profiles.RiskTable) [][]string {
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

// quorum says who must agree.
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

// span is a duration without the zeros at its end: 5m, 1h30m, 90ms.
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

// An explained is one call and everything about its decision.
type explained struct {
	Profile string          `json:"profile"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	// Known reports that a server lists the tool and scripts may have it;
	// without that, Note says
	// what the decision goes by.
	Known bool   `json:"known"`
	Note  string `json:"note,omitempty"`
	// Hidden reports that scripts of the profile are not told of the tool.
	Hidden bool `json:"hidden,omitempty"`
	profiles.Explanation
	pausedFor time.Duration
}

// explain decides a call without making it.
func explain(ctx context.Context, con *console, profile, tool, arguments string) error {
	args, err := canon.Parse([]byte(arguments))
	if err != nil {
		return &usageError{fmt.Errorf(`%w (they are an object in JSON, such as '{"path": "/etc/passwd"}')`, err)}
	}
	var x explained
	var title string
	err = once(ctx, con, func(_ context.Context, p *parts) error {
		view := p.gate.View()
		policy, err := namedProfile(view.Profiles, profile)
		if err != nil {
			return err
		}
		complain(con, p)
		title = called(policy)
		call, note, err := lookUp(view, p.cfg, tool)
		if err != nil {
			return err
		}
		call.Args = args.Value()
		x = explained{
			Profile: policy.Name(), Tool: call.Path(), Args: args.Bytes(), Known: note == "", Note: note,
			Hidden: !policy.Sees(call.Server, call.Tool), Explanation: policy.Explain(call), pausedFor: view.Profiles.PausedFor(),
		}
		x.Decision.Timeout = p.gate.TimeToAnswer(x.Decision)
		return nil
	})
	if err != nil {
		return err
	}
	if con.json {
		return con.printJSON(x)
	}
	return printExplained(con, x, title)
}

// lookUp finds what is known of a tool, by its script name or its path. For a
// tool that no server lists, that is its name, and note says so.
func lookUp(view *gate.View, cfg *config.Config, name string) (call profiles.Call, note string, err error) {
	if t, ok := catalog.Method(name); ok && (t.Server == "" || cfg.Servers[t.Server] != nil) {
		return view.Facts(t)[0], "", nil
	}
	if t, ok := view.Catalog.Lookup(name); ok {
		if h, held := view.Held[gate.ToolName{Server: t.Server, Tool: t.Name}]; held && h.Quarantined {
			note = "no call of it passes: it is quarantined: " + h.Why
		}
		return view.Facts(t)[0], note, nil
	}
	server, tool, ok := strings.Cut(name, "__")
	if !ok || server == "" || tool == "" {
		_, err := view.Catalog.View(nil).Declare(name)
		return profiles.Call{}, "", err
	}
	note = fmt.Sprintf("no server lists %s: this goes by the name alone", canon.Visible(name))
	if cfg.Servers[server] == nil {
		note = fmt.Sprintf("there is no server %q in the configuration: this goes by the name alone", server)
	}
	if near := view.Catalog.Near(name, 1); len(near) > 0 {
		note += fmt.Sprintf(" (did you mean %s?)", near[0])
	}
	return profiles.Call{Server: server, Tool: tool, TrustAnnotations: view.Trusted[server]}, note, nil
}

// printExplained prints the decision first, then why, then what was tried.
func printExplained(con *console, x explained, profile string) error {
	d := x.Decision
	said := d.Disposition.String()
	switch {
	case d.Manual:
		said += " (manual)"
	case d.Notify:
		said += " (and notify)"
	}
	fmt.Fprintf(con.out, "%s: %s %s\n", said, canon.Visible(x.Tool), cut(canon.Visible(string(x.Args)), 200))
	repeats := "not known to be repeatable"
	if d.Repeatable {
		repeats = "repeatable"
	}
	fmt.Fprintf(con.out, "%s, risk %s, %s\n", profile, d.Risk, repeats)
	if x.Note != "" {
		fmt.Fprintln(con.out, x.Note)
	}
	if x.Hidden {
		fmt.Fprintln(con.out, "scripts of this profile are not told of the tool: no call of it can pass")
	}
	fmt.Fprintf(con.out, "\nWHY\n")
	for _, r := range d.Reasons {
		text := r.String()
		if r.Kind == profiles.KindRule && r.Risk != 0 {
			text += ", risk " + r.Risk.String()
		}
		fmt.Fprintf(con.out, "  %s\n", canon.Visible(text))
	}
	if d.Disposition == profiles.Ask {
		fmt.Fprintf(con.out, "\nHOW IT IS ASKED\n")
		for _, line := range askedHow(d, x.pausedFor) {
			fmt.Fprintf(con.out, "  %s\n", canon.Visible(line))
		}
	}
	fmt.Fprintln(con.out)
	table := [][]string{{"tried", "for", "of profile", "counts", "outcome"}}
	for _, t := range x.Tried {
		what := string(t.Kind)
		switch t.Kind {
		case profiles.KindRule:
			if what = t.Rule; !strings.HasPrefix(t.Rule, "rules/") {
				what = "rule " + t.Rule
			}
			if t.Action != 0 {
				what += " (" + t.Action.String() + ")"
			}
		case profiles.KindOwnFile:
			what = "the bridge's own files"
		case profiles.KindNotListed, profiles.KindDefault:
			what = "otherwise"
		}
		of, tools := t.Profile, strings.Join(t.Patterns, ", ")
		if of == "" {
			of = "-"
		}
		if tools == "" {
			tools = "every tool"
		}
		table = append(table, []string{canon.Visible(what), canon.Visible(tools), of, yesNo(t.Matched), canon.Visible(t.Outcome)})
	}
	return con.table(table)
}

// askedHow says what is asked of the people who are asked.
func askedHow(d profiles.Decision, pausedFor time.Duration) []string {
	answer := span(d.Timeout) + " to answer"
	if !d.TimeoutExplicit && d.Timeout < pausedFor {
		answer += ", " + span(pausedFor) + " once the run is paused"
	}
	lines := []string{answer + "; silence is a no"}
	if d.Manual {
		lines = append(lines, "the tool's name must be typed, or the arguments edited; a client's own prompt will not do")
	}
	if d.Remember {
		lines = append(lines, "a yes may hold for the session")
	} else {
		lines = append(lines, "a yes is for this call alone")
	}
	if d.RequireReason {
		lines = append(lines, "the answer needs a reason")
	}
	for _, q := range d.Quorums {
		lines = append(lines, "yes from "+quorum(&profiles.QuorumSpec{Need: &q.Need, Of: q.Of, InOrder: &q.InOrder}))
	}
	return append(lines, fmt.Sprintf("a client that cannot ask: %s", d.Fallback))
}

// A placed warning says where in the configuration it is about.
type placed struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	profiles.Warning
}

// String is the warning in one line, as the mistakes of `check` are.
func (w placed) String() string {
	text := fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message)
	if w.Hint != "" {
		text += " (hint: " + w.Hint + ")"
	}
	return text
}

// checkProfiles prints what does nothing.
func checkProfiles(ctx context.Context, con *console) error {
	warnings := []placed{}
	var tools, all int
	err := once(ctx, con, func(_ context.Context, p *parts) error {
		complain(con, p)
		view := p.gate.View()
		facts := []profiles.ToolFacts{}
		for _, t := range view.Catalog.Tools() {
			f := view.Facts(t)[0]
			facts = append(facts, profiles.ToolFacts{
				Server: f.Server, Tool: f.Tool, Title: f.Title, Description: f.Description,
				Annotations: f.Annotations, TrustAnnotations: f.TrustAnnotations, Input: t.Input,
			})
		}
		tools, all = len(facts), len(view.Profiles.Names())
		for _, s := range view.Catalog.View(nil).Servers() {
			for _, t := range catalog.Methods(s.Server) {
				facts = append(facts, profiles.ToolFacts{Server: t.Server, Tool: t.Name, Annotations: t.Annotations, Input: t.Input})
			}
		}
		for _, w := range view.Profiles.Check(facts) {
			one := placed{Warning: w}
			one.Path = "/evaluation" + w.Path
			one.File, one.Line, one.Column = p.config().Place(one.Path)
			warnings = append(warnings, one)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(warnings, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	switch {
	case con.json:
		if err := con.printJSON(map[string]any{"ok": len(warnings) == 0, "warnings": warnings}); err != nil {
			return err
		}
	case all == 0:
		fmt.Fprintln(con.out, "there are no profiles: scripts may call every tool")
	case len(warnings) == 0:
		fmt.Fprintf(con.out, "%s, %s: every entry and rule does something\n", count(all, "profile"), count(tools, "tool"))
	default:
		for _, w := range warnings {
			fmt.Fprintln(con.out, canon.Visible(w.String()))
		}
		fmt.Fprintln(con.err, count(len(warnings), "warning"))
	}
	if len(warnings) > 0 {
		return &exitError{exitFailed}
	}
	return nil
}

func exactArgs(n int) cobra.PositionalArgs { return rangeArgs(n, n) }

func rangeArgs(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least {
			return minArgs(least)(c, args)
		}
		return maxArgs(most)(c, args)
	}
}
