package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// A Facts says what policy may know today of a call with these arguments, as of the first
// of a session, to which every host and recipient is new. It reports false if no server
// lists the tool, so that only its name is known. [profiles.Masked] among the arguments
// stands for what the log does not show.
type Facts func(server, tool string, args map[string]any) (profiles.Call, bool)

// ReplayOptions say how the calls of a log are decided anew. Policy and Facts are required.
type ReplayOptions struct {
	Policy *profiles.Set
	Facts  Facts
	// By names the profile that decides all calls; empty: for each call the one of its run.
	By string
	// Since and Until are the period that the rows are from, for counts by the day; zero:
	// the first row's and the last row's time.
	Since, Until time.Time
	// Progress, if not nil, is told from time to time how many rows were read.
	Progress func(rows int)
	// Each, if not nil, is told of each call.
	Each func(Replayed)
}

// A Replayed is one recorded call, decided anew.
type Replayed struct {
	Case
	Profile string // that decides it now
	Server  string
	Tool    string            // the raw name
	Made    profiles.Call     // as it was decided, with Masked for what the log does not show
	Was     string            // a word of Replay's: what was decided then
	WasRule string            // the rule or list entry that did, as reasons name it
	Is      string            // what is decided now; empty if that cannot be known
	Decided profiles.Decision // the strictest that it may be
	Gap     string            // a word of Gaps: why it cannot be known; empty if it can
	Sent    bool              // it was sent then
	Asked   bool              // somebody was asked then, and no earlier yes stood in
	Yes, No bool              // what a person answered
}

// The words for what is decided, from the loosest to the strictest.
var dispositions = []string{"allow", "notify", "ask", "manual", "deny"}

// Why a call cannot be decided by what the log has of it.
const (
	GapHidden  = "hidden"  // a value is hidden that matters
	GapCut     = "cut"     // a value is cut that matters
	GapTool    = "tool"    // no server lists the tool today
	GapContent = "content" // nobody looked whether it sends what its run had read
	GapWritten = "written" // nobody looked whether its arguments stand in the script
	GapProfile = "profile" // its run's profile is none of the policy's
)

// gapWords are the causes in words, in the order in which they are looked for.
var gapWords = []struct{ gap, words string }{
	{GapProfile, "the profile of their run is not in the configuration (--by names another)"},
	{GapTool, "no server lists the tool now, so that only its name is known"},
	{GapHidden, "a value that matters is hidden in the log"},
	{GapCut, "a value that matters is cut in the log"},
	{GapContent, "nobody looked whether they send what their run had read"},
	{GapWritten, "nobody looked whether their arguments are written in the script"},
}

// A Replay is what a policy would have decided on the calls of a log.
type Replay struct {
	Rows int       `json:"rows"`
	From time.Time `json:"from,omitzero"` // the first row's time
	To   time.Time `json:"to,omitzero"`   // the last row's time
	Days float64   `json:"days"`          // of the period, at least one
	// Calls are those that some profile decided. Beside them there are others: refused
	// without that, because there was no such tool or its arguments could not be read.
	Calls  int `json:"calls"`
	Others int `json:"others"`
	Same   int `json:"unchanged"`
	// Changes are what is decided otherwise, the commonest first.
	Changes   []Change        `json:"changes"`
	Undecided []UndecidedCall `json:"undecided"`
	Questions ReplayQuestions `json:"questions"`
}

// A Change is a group of calls that are decided otherwise.
type Change struct {
	Profile string `json:"profile"` // that decides them now
	Was     string `json:"was"`
	Is      string `json:"is"`
	WasRule string `json:"was_rule"` // the rule or list entry that decided then
	IsRule  string `json:"is_rule"`  // and now
	Count   int    `json:"count"`
	Yes     int    `json:"yes"` // of these, what a person approved
	No      int    `json:"no"`  // and refused
	// Examples are the first of them, each with another tool if there are several.
	Examples []Example `json:"examples"`
}

// Looser reports whether less is asked or denied.
func (c Change) Looser() bool {
	return slices.Index(dispositions, c.Is) < slices.Index(dispositions, c.Was)
}

// An UndecidedCall is a group of calls of which the log does not have what matters.
type UndecidedCall struct {
	Gap      string    `json:"cause"`
	Count    int       `json:"count"`
	Examples []Example `json:"examples"`
}

// An Example is one call of a group. Reason is why it is decided so now.
type Example struct {
	Case
	Tool   string `json:"tool"` // server__tool
	Reason string `json:"reason,omitempty"`
}

// ReplayQuestions count questions to people. A call that asks is a question unless an
// earlier yes answered it then.
type ReplayQuestions struct {
	Before int `json:"before"`
	After  int `json:"after"`
	// Most are the questions if each call that cannot be decided is one.
	Most        int     `json:"at_most"`
	BeforeDaily float64 `json:"before_a_day"`
	AfterDaily  float64 `json:"after_a_day"`
}

// ReplayLog decides the calls among rows anew. What is not in the log is as today: the
// tools, what is known of them, and the workspace. A call that something other than a
// profile refused, or asked about, is still refused or asked about: a tool under
// quarantine, a file of the bridge itself, a server that its principal does not reach.
func ReplayLog(rows Rows, o ReplayOptions) (*Replay, error) {
	p := &player{o: o, out: &Replay{Changes: []Change{}, Undecided: []UndecidedCall{}}, runs: map[string]*playedRun{}, contexts: map[string]*playedContext{},
		changes: map[changeKey]*Change{}, gaps: map[string]*UndecidedCall{}, memory: newMemory(o)}
	for row, err := range ahead(rows) {
		if err != nil {
			return nil, fmt.Errorf("reading the log: %w", err)
		}
		p.out.Rows++
		if p.out.From.IsZero() {
			p.out.From = row.Record.Time
		}
		p.out.To = row.Record.Time
		p.play(row.Record)
		if o.Progress != nil && p.out.Rows%1000 == 0 {
			o.Progress(p.out.Rows)
		}
	}
	return p.finish(), nil
}

// A player goes through the rows of a log.
type player struct {
	o        ReplayOptions
	out      *Replay
	runs     map[string]*playedRun
	contexts map[string]*playedContext
	changes  map[changeKey]*Change
	gaps     map[string]*UndecidedCall
	memory   *memory
}

type changeKey struct{ profile, was, is, wasRule, isRule string }

// played are the events that say what a run does.
var played = []ledger.Event{ledger.RunStarted, ledger.Asked, ledger.Verdict, ledger.Intent, ledger.Refusal, ledger.Outcome}

func (p *player) play(r ledger.Record) {
	if r.Event == ledger.RunEnded {
		delete(p.runs, r.Run)
		return
	}
	if r.Run == "" || !slices.Contains(played, r.Event) {
		return
	}
	run := p.run(r)
	switch r.Event {
	case ledger.Asked:
		run.call(r).asked = true
	case ledger.Verdict:
		p.answered(run, r)
	case ledger.Intent, ledger.Refusal:
		if r.Disposition == "" {
			p.out.Others++
			return
		}
		c := run.call(r)
		p.decide(run, c, r)
		if r.Event == ledger.Refusal {
			delete(run.open, r.Call)
			return
		}
		run.facts.Bytes += int64(r.Sent)
		run.sent[r.Call] = source{r.Server, r.Tool}
		p.store(run, c, r)
	case ledger.Outcome:
		p.ended(run, r)
	}
}

// answered notes what a person said of a call, and whom the session has met by a yes.
func (p *player) answered(run *playedRun, r ledger.Record) {
	if !actedOn(r) {
		return
	}
	c := run.call(r)
	if !byPerson(r) {
		c.remembered = c.remembered || r.Channel == "grant" && approved(r)
		return
	}
	c.answer = r.Answer
	if c.yes, c.no = approved(r), !approved(r); c.no {
		return
	}
	if len(r.EditedArgs) > 0 {
		r.Args, r.Digest = r.EditedArgs, r.EditedDigest
	}
	shown := p.memory.read(r)
	if m := shown.call.Meaning; m != nil && m.Accepted {
		run.context.meet(r.Server, m)
	}
}

// decide decides a call anew and counts what that changes.
func (p *player) decide(run *playedRun, c *playedCall, r ledger.Record) {
	p.out.Calls++
	one := p.judge(run, c, r)
	name := r.Path()
	if one.Asked {
		p.out.Questions.Before++
	}
	example := Example{Case: one.Case, Tool: name, Reason: one.Decided.Because().String()}
	switch {
	case one.Gap != "":
		g := p.gaps[one.Gap]
		if g == nil {
			g = &UndecidedCall{Gap: one.Gap}
			p.gaps[one.Gap] = g
		}
		g.Count++
		g.Examples = withExample(g.Examples, example)
		if p.out.Questions.Most++; one.Asked {
			p.out.Questions.After++ // as before
			p.out.Questions.Most--
		}
	case one.Is == one.Was:
		p.out.Same++
	default:
		key := changeKey{one.Profile, one.Was, one.Is, one.WasRule, ruleNamed(one.Decided.Because())}
		change := p.changes[key]
		if change == nil {
			change = &Change{Profile: key.profile, Was: key.was, Is: key.is, WasRule: key.wasRule, IsRule: key.isRule}
			p.changes[key] = change
		}
		change.Count++
		if one.Yes {
			change.Yes++
		}
		if one.No {
			change.No++
		}
		change.Examples = withExample(change.Examples, example)
	}
	if asks := one.Is == "ask" || one.Is == "manual"; asks && one.Gap == "" && !c.remembered {
		p.out.Questions.After++
	}
	if p.o.Each != nil {
		p.o.Each(one)
	}
}

// withExample adds an example, while there are few and of its tool there is none; the
// first few in any case.
func withExample(all []Example, e Example) []Example {
	if len(all) < maxExamples {
		return append(all, e)
	}
	named := map[string]int{}
	for _, had := range all {
		named[had.Tool]++
	}
	if named[e.Tool] > 0 {
		return all
	}
	for i := len(all) - 1; i > 0; i-- {
		if named[all[i].Tool] > 1 {
			all[i] = e
			break
		}
	}
	return all
}

// finish puts the counts in order.
func (p *player) finish() *Replay {
	out := p.out
	for _, c := range p.changes {
		out.Changes = append(out.Changes, *c)
	}
	slices.SortFunc(out.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.IsRule, b.IsRule), cmp.Compare(a.WasRule, b.WasRule), cmp.Compare(a.Was+a.Is, b.Was+b.Is))
	})
	for _, word := range gapWords {
		if g := p.gaps[word.gap]; g != nil {
			out.Undecided = append(out.Undecided, *g)
		}
	}
	from, to := out.From, out.To
	if !p.o.Since.IsZero() {
		from = p.o.Since
	}
	if !p.o.Until.IsZero() {
		to = p.o.Until
	}
	out.Days = max(1, to.Sub(from).Hours()/24)
	q := &out.Questions
	q.Most += q.After
	q.BeforeDaily, q.AfterDaily = float64(q.Before)/out.Days, float64(q.After)/out.Days
	return out
}

// wasDecided is the word for what was decided of a recorded call.
func wasDecided(r ledger.Record) string {
	switch {
	case r.Disposition == profiles.Ask.String() && slices.ContainsFunc(r.Reasons, func(s string) bool { return strings.Contains(s, " (manual)") }):
		return "manual"
	case r.Disposition == profiles.Allow.String() && r.Notify:
		return "notify"
	}
	return r.Disposition
}

// isDecided is the word for a decision.
func isDecided(d profiles.Decision) string {
	switch {
	case d.Disposition == profiles.Ask && d.Manual:
		return "manual"
	case d.Disposition == profiles.Allow && d.Notify:
		return "notify"
	}
	return d.Disposition.String()
}

// ruleNamed names what decided, alike for all calls.
func ruleNamed(r profiles.Reason) string {
	if r.Kind != profiles.KindFlow {
		return ruleOf(r.String())
	}
	return join(" ", r.Rule, profileSuffix(r.Profile))
}

func profileSuffix(profile string) string {
	if profile == "" {
		return ""
	}
	return "[profile " + profile + "]"
}

// rulePlayed names what decided on a recorded call. Of a rule about flows the log has only
// what it found.
func rulePlayed(r ledger.Record) string {
	rule := decidedBy(r)
	text, profile, _ := strings.Cut(rule, " [profile ")
	if label, found, ok := strings.Cut(text, ": "); ok && profiles.ValidLabel(label) && label != string(profiles.KindDenylist) && label != string(profiles.KindAsklist) && label != string(profiles.KindAllowlist) &&
		(strings.Contains(found, ", go to ") || strings.Contains(found, " before, and ")) {
		return join(" ", "a flow from "+label, profileSuffix(strings.TrimSuffix(profile, "]")))
	}
	return rule
}

// floor is what a recorded call is decided to at least, whatever profiles say: something
// other than a profile decided it. It is empty if a profile did.
func floor(r ledger.Record) string {
	if len(r.Reasons) == 0 || r.Disposition == profiles.Allow.String() {
		return ""
	}
	reason := r.Reasons[0]
	switch {
	case strings.HasSuffix(reason, "]") && strings.Contains(reason, " [profile "), strings.HasPrefix(reason, "default: "), strings.HasPrefix(reason, "not on the allowlist"):
		return ""
	}
	return wasDecided(r)
}
