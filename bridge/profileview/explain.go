package profileview

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
)

// An Explained is one call with its decision and everything that led to it.
type Explained struct {
	Profile string          `json:"profile"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	// Known reports whether a server lists the tool and scripts may have it. If not,
	// Note says on what the decision is based.
	Known bool   `json:"known"`
	Note  string `json:"note,omitempty"`
	// Means says what the call means, as far as that is known. Every host and recipient
	// is new, as in a session that has just begun.
	Means []string `json:"means,omitempty"`
	// Box says what the system keeps the server's program to, "not confined" if to nothing.
	// It is empty of what does not run on this machine.
	Box string `json:"box,omitempty"`
	// Hidden reports whether the tool is hidden from scripts of the profile.
	Hidden bool `json:"hidden,omitempty"`
	profiles.Explanation
	// PausedFor is how long people have to answer once the run is paused.
	PausedFor time.Duration `json:"-"`
}

// Servers says which servers the configuration has, and which of them are disabled.
type Servers struct {
	Has, Disabled func(server string) bool
}

// Explain decides a call, without making it, as if it were the first of a run that
// works on ws. TimeToAnswer returns how long a decision gives people.
func Explain(view *gate.View, policy *profiles.Profile, tool string, args canon.Args, ws workspace.Workspace, servers Servers, timeToAnswer func(profiles.Decision) time.Duration) (Explained, error) {
	call, listed, note, err := lookUp(view, servers, tool)
	if err != nil {
		return Explained{}, err
	}
	call.Args = args.Value()
	if listed != nil {
		call.Meaning = view.Meaning(listed, call.Args, ws)
	}
	x := Explained{
		Profile: policy.Name(), Tool: call.Path(), Args: args.Bytes(), Known: note == "", Note: note, Means: means(call.Meaning),
		Hidden: !policy.Sees(call.Server, call.Tool), Explanation: policy.Explain(call), PausedFor: view.Profiles.PausedFor(),
	}
	if listed != nil && call.Server != "" && view.Box != nil {
		x.Box = view.Box(call.Server).Says
		x.Means = append(x.Means, boxed(call.Meaning, x.Box)...)
	}
	x.Decision.Timeout = timeToAnswer(x.Decision)
	return x, nil
}

// lookUp finds a tool by any name that scripts may use. Of a tool that no server lists
// only the name is known; then listed is nil and note says so.
func lookUp(view *gate.View, servers Servers, name string) (call profiles.Call, listed *catalog.Tool, note string, err error) {
	if t, ok := catalog.Method(name); ok && (t.Server == "" || servers.Has(t.Server)) {
		return view.Facts(t)[0], t, "", nil
	}
	if t := view.Catalog.Resolve(name).Tool; t != nil {
		if h, held := view.Unreviewed[gate.ToolName{Server: t.Server, Tool: t.Name}]; held && h.Quarantined {
			note = "no call of it passes: it is quarantined: " + h.Why
		}
		return view.Facts(t)[0], t, note, nil
	}
	server, tool, ok := strings.Cut(name, "__")
	if !ok || server == "" || tool == "" {
		_, err := view.Catalog.View(nil).Declare(name)
		return profiles.Call{}, nil, "", err
	}
	if meant := view.Catalog.Servers(server); !servers.Has(server) && len(meant) == 1 {
		server = meant[0]
	}
	note = fmt.Sprintf("no server lists %s: this goes by the name alone", canon.Escape(name))
	switch {
	case servers.Disabled(server):
		note = fmt.Sprintf("server %s is disabled, so its tools are not known: this goes by the name alone", server)
	case !servers.Has(server):
		note = fmt.Sprintf("there is no server %q in the configuration: this goes by the name alone", server)
	}
	if near := view.Catalog.Near(name, 1); len(near) > 0 {
		note += fmt.Sprintf(" (did you mean %s?)", near[0])
	}
	return profiles.Call{Server: server, Tool: tool, TrustAnnotations: view.Trusted[server]}, nil, note, nil
}

// Write writes the decision, then the reasons. Profile is what people call the profile.
// TriedRows returns the table that belongs below.
func (x Explained) Write(out io.Writer, profile string) {
	d := x.Decision
	said := d.Disposition.String()
	switch {
	case d.Manual:
		said += " (manual)"
	case d.Notify:
		said += " (and notify)"
	}
	fmt.Fprintf(out, "%s: %s %s\n", said, canon.Escape(x.Tool), canon.Fit(canon.Escape(string(x.Args)), 200))
	repeats := "not known to be repeatable"
	if d.Repeatable {
		repeats = "repeatable"
	}
	fmt.Fprintf(out, "%s, risk %s, %s\n", profile, d.Risk, repeats)
	if x.Note != "" {
		fmt.Fprintln(out, x.Note)
	}
	if x.Hidden {
		fmt.Fprintln(out, "scripts of this profile are not told of the tool: no call of it can pass")
	}
	if len(x.Means) > 0 {
		fmt.Fprintf(out, "\nWHAT IT MEANS\n")
		for _, line := range x.Means {
			fmt.Fprintf(out, "  %s\n", canon.Fit(canon.Escape(line), 200))
		}
	}
	fmt.Fprintf(out, "\nWHY\n")
	for _, r := range d.Reasons {
		text := r.String()
		if r.Kind == profiles.KindRule && r.Risk != 0 {
			text += ", risk " + r.Risk.String()
		}
		fmt.Fprintf(out, "  %s\n", canon.Escape(text))
	}
	if d.Would != 0 {
		fmt.Fprintf(out, "\nWHAT IS ONLY OBSERVED\n")
		for _, line := range d.WouldSay() {
			fmt.Fprintf(out, "  %s\n", canon.Escape(line))
		}
	}
	if d.Disposition == profiles.Ask {
		fmt.Fprintf(out, "\nHOW IT IS ASKED\n")
		for _, line := range askedHow(d, x.PausedFor) {
			fmt.Fprintf(out, "  %s\n", canon.Escape(line))
		}
	}
}

// TriedRows returns a table of every list entry and rule: whether it matched, and with
// what outcome.
func (x Explained) TriedRows() [][]string {
	table := [][]string{{"tried", "for", "of profile", "counts", "outcome"}}
	for _, t := range x.Explanation.Tried {
		what := string(t.Kind)
		switch t.Kind {
		case profiles.KindRule:
			if what = t.Rule; !strings.HasPrefix(t.Rule, "rules/") {
				what = "rule " + t.Rule
			}
			if t.Action != 0 {
				what += " (" + t.Action.String() + ")"
			}
		case profiles.KindFlow:
			what = t.Rule
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
		counts := yesNo(t.Matched)
		if t.Observed {
			counts = "observed"
		}
		table = append(table, []string{canon.Escape(what), canon.Escape(tools), of, counts, canon.Escape(t.Outcome)})
	}
	return table
}

// askedHow says how people are asked, and what their answer needs.
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
