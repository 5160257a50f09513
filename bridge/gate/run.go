package gate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/profiles"
)

// Origin says where a run comes from: facts that never change.
type Origin struct {
	ID      string // of the run, unique
	Session string
	Client  string // the client's own name for itself, untrusted
	// Requester is whose run it is, as far as the bridge can tell: the name of
	// the client's token.
	Requester string
	// TraceID is the client's own trace of what started the run; empty if it has none.
	TraceID string
	// Script and Input are what is run, for the record; Name is the saved
	// script's, if it is one.
	Script string
	Input  json.RawMessage
	Name   string
	// Profile binds the run. The empty name stands for whatever binds the
	// tool `eval`: the default profile, or nothing.
	Profile string
	// Folder is the working directory of those of the run's servers that have none
	// of their own; empty if all have one.
	Folder string
	// Configuration is the one that the run belongs to, if it is not the gate's.
	Configuration Configuration
	// Policy and Servers are what an earlier part of the run began with; nil means
	// the current ones.
	Policy  *profiles.Set
	Servers map[string]string
	Trusted map[string]bool
	// Reach says how a person can be asked. The zero value is Nobody.
	Reach Reach
	// CallTimeout bounds one upstream call; 0 leaves it to the upstream.
	CallTimeout time.Duration
}

// Reach says how a run can ask a person.
type Reach int

const (
	Nobody        Reach = iota // there is no client with a person: a pipeline
	NoElicitation              // the client has declared that it cannot ask
	ByElicitation              // the client can ask
	ByAddress                  // the client has declared that it opens addresses, and shows no forms
	ByApprovers                // there is no client: approvers are asked whatever the profile's fallback
)

// A Run is one execution of a script, as far as its calls are concerned: the policy
// it began with, what it has done, and how much. Its methods may be called by any
// number of goroutines.
type Run struct {
	Origin
	host    Host
	gate    *Gate
	policy  *profiles.Set     // that the run began with
	servers map[string]string // their identities at the time
	trusted map[string]bool   // whose annotations were trusted at the time
	started time.Time
	read    provenance.Memory // what its calls have returned

	mu      sync.Mutex
	preview analysis.Report
	effects []Effect // in the order the calls were decided
	facts   profiles.RunFacts
	scripts map[string]bool // digests of the saved scripts that were recorded
	secrets []string        // values that rules hide, to remove them from texts that repeat them
	resumed bool
}

// A call is a call with all that the gate knows about it.
type call struct {
	Call
	gate     *Gate
	tool     *catalog.Tool
	identity string // of the tool's server, as the call is meant for it
	args     canon.Args
	decision profiles.Decision
	verdict  *approval.Verdict    // of a person, if one was asked
	shown    *canon.Digest        // of the arguments that the person was asked about, if they edited them
	edited   *Edited              // how, nil if nobody did
	notes    []string             // on its arguments, for the record
	sources  []string             // of its arguments, in words, once it is asked about
	finds    []ledger.SourceMatch // the same for the record
	counted  bool                 // among the run's facts, with so many bytes:
	bytes    int64
}

// Begin starts a run and records it. The profile is looked up once here and once for
// each call, and the stricter of the two decides, so an edit of the configuration
// can tighten a running run and never loosen it. A nil host means [Unattended].
func (g *Gate) Begin(ctx context.Context, o Origin, h Host) (*Run, error) {
	r := g.run(o, h)
	if err := r.record(ctx, r.startRecord()); err != nil {
		return nil, &approval.DeniedError{Reason: approval.AuditUnavailable, Message: "the run was not started: its record could not be written", Err: err}
	}
	return r, nil
}

// Resume continues a run that was begun before, and records that. The policy that it
// began with is in its origin. Recall restores what its calls have done so far.
func (g *Gate) Resume(ctx context.Context, o Origin, h Host, began time.Time, by string) (*Run, error) {
	r := g.run(o, h)
	r.started, r.resumed = began, true
	if err := r.record(ctx, ledger.Record{Event: ledger.RunResumed, Approver: canon.Escape(by), Durable: true}); err != nil {
		return nil, &approval.DeniedError{Reason: approval.AuditUnavailable, Message: "the run does not go on: that could not be written down", Err: err}
	}
	return r, nil
}

// Leftover returns a run that was begun before and does not continue: it can only End.
func (g *Gate) Leftover(o Origin, began time.Time) *Run {
	r := g.run(o, nil)
	r.started = began
	return r
}

func (g *Gate) run(o Origin, h Host) *Run {
	if h == nil {
		h = Unattended{}
	}
	r := &Run{Origin: o, host: h, gate: g, started: g.now()}
	view := g.View()
	if r.policy, r.servers, r.trusted = o.Policy, o.Servers, o.Trusted; r.policy == nil {
		r.policy, r.servers, r.trusted = view.Profiles, view.Identities, view.Trusted
	}
	r.hide(r.input(), r.recordOptions())
	return r
}

// startRecord makes a record with the script as a person may see it, and a hash of
// its exact text.
func (r *Run) startRecord() ledger.Record {
	rec := ledger.Record{Event: ledger.RunStarted, Name: r.Name, Revision: r.policy.Revision()}
	if r.Script != "" {
		sum := sha256.Sum256([]byte(r.Script))
		rec.ScriptHash = "sha256:" + hex.EncodeToString(sum[:])
		rec.Script = canon.EscapeLines(r.redact(r.Script))
	}
	if len(r.Input) > 0 {
		rec.Input = canon.Display(r.input(), r.recordOptions()).JSON
	}
	return rec
}

// input returns the script's input as the member of an object.
func (r *Run) input() canon.Args {
	if len(r.Input) == 0 {
		return canon.Args{}
	}
	input, err := canon.Parse(fmt.Appendf(nil, `{"input":%s}`, r.Input))
	if err != nil {
		input, _ = canon.Parse([]byte(`{"input":"[not to be read]"}`))
	}
	return input
}

// End records that the run is over, with one of the outcomes of package
// ledger and, if it did not end well, why.
func (r *Run) End(ctx context.Context, outcome string, why string, e Entries) error {
	r.gate.broker.EndRun(r.ID)
	return r.keep(context.WithoutCancel(ctx), ledger.Record{
		Event: ledger.RunEnded, Outcome: outcome, Error: canon.Escape(r.redact(why)), Duration: r.gate.now().Sub(r.started),
	}, e)
}

// Preview notes the calls that could be read from the script before it ran. They are
// shown to whoever is asked, and decide nothing.
func (r *Run) Preview(ctx context.Context, report analysis.Report) error {
	report.Calls = slices.Clone(report.Calls)
	o := r.recordOptions()
	for i := range report.Calls {
		site := &report.Calls[i]
		site.Name, site.Args = canon.Escape(r.redact(site.Name)), shownLiterals(site.Args, o)
	}
	r.mu.Lock()
	r.preview = report
	r.mu.Unlock()
	if r.resumed {
		return nil // it was recorded when the run began
	}
	text, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("writing the preview: %w", err)
	}
	return r.record(ctx, ledger.Record{Event: ledger.Preview, Preview: text})
}

// shownLiterals returns the arguments of a previewed call as a person may see them.
func shownLiterals(args string, o canon.DisplayOptions) string {
	if args == "" {
		return ""
	}
	whole, err := canon.Parse([]byte(`{"args":` + args + `}`))
	if err != nil {
		return "" // not a JSON literal
	}
	shown := canon.Display(whole, o).JSON
	return strings.TrimSuffix(strings.TrimPrefix(string(shown), `{"args":`), "}")
}

// decide judges c by the policy that the run began with and by today's, and
// remembers which of its values rules hide.
func (r *Run) decide(view *View, c *call) {
	r.mu.Lock() // until the call is counted: rules may ask how many there were
	c.decision = r.decideLocked(view, c)
	r.countLocked(c)
	r.mu.Unlock()
	r.hide(c.args, c.displayOptions(nil))
}

func (r *Run) decideLocked(view *View, c *call) profiles.Decision {
	facts := r.factsLocked(view, c)
	decision := r.decideBy(view, r.Profile, facts)
	for _, name := range r.host.Profiles() {
		decision = profiles.Stricter(decision, r.decideBy(view, name, facts))
	}
	if held, ok := view.held(c.tool); ok && held.Quarantined {
		decision = profiles.Stricter(quarantined(held, decision), decision)
	}
	return decision
}

// decideAll judges a call by every definition of its tool; the strictest decision
// counts.
func decideAll(p *profiles.Profile, facts []profiles.Call) profiles.Decision {
	decision := p.Decide(facts[0])
	for _, more := range facts[1:] {
		decision = profiles.Stricter(decision, p.Decide(more))
	}
	return decision
}

// quarantined returns the decision on an unreviewed tool under quarantine.
func quarantined(h UnreviewedTool, d profiles.Decision) profiles.Decision {
	return profiles.Decision{Disposition: profiles.Deny, Risk: d.Risk, Profile: d.Profile, Revision: d.Revision,
		Reasons: []profiles.Reason{{Kind: profiles.KindQuarantine, Disposition: profiles.Deny, Detail: "it is quarantined: " + h.Why}}}
}

// gone returns the decision of a profile that no longer exists.
func gone(name string) profiles.Decision {
	return profiles.Decision{Disposition: profiles.Deny, Risk: profiles.Critical, Profile: name,
		Reasons: []profiles.Reason{{Kind: profiles.KindPolicyError, Disposition: profiles.Deny, Detail: "there is no such profile any more"}}}
}

// bound returns the profiles that bind the run; nil stands for one that no longer
// exists.
func (r *Run) bound(view *View) []*profiles.Profile {
	var all []*profiles.Profile
	for _, name := range append([]string{r.Profile}, r.host.Profiles()...) {
		today, _ := view.profile(name)
		all = append(all, today)
		if began, _ := profileOf(r.policy, name); began != today {
			all = append(all, began)
		}
	}
	return all
}

// factsLocked returns the facts of a call: see View.Facts.
func (r *Run) factsLocked(view *View, c *call) []profiles.Call {
	facts := view.Facts(c.tool)
	_, began := r.servers[c.tool.Server]
	for i := range facts {
		if began && !r.trusted[c.tool.Server] && !c.tool.Method { // trust given later applies to later runs
			facts[i].TrustAnnotations = false
		}
		facts[i].Args, facts[i].Run = c.args.Value(), r.othersLocked(c)
	}
	return facts
}

// check runs the checks of the rules that match, after everything that can
// allow a call and before it is sent. It returns the first that fails.
func (r *Run) check(view *View, c *call) string {
	for _, result := range r.checks(view, c) {
		if !result.Passed {
			return strconv.Quote(result.Expr)
		}
	}
	return ""
}

// checks runs the checks of the rules that match, of every profile that binds
// the run, as of now.
func (r *Run) checks(view *View, c *call) (results []profiles.CheckResult) {
	r.mu.Lock()
	facts := r.factsLocked(view, c)
	r.mu.Unlock()
	for _, p := range r.bound(view) {
		for _, one := range facts {
			results = append(results, p.Checks(one)...)
		}
	}
	return results
}

// intend records that c is about to be sent and counts it.
func (r *Run) intend(ctx context.Context, c *call) error {
	if !r.host.Sends(c.Number) {
		return ErrSuspended
	}
	if err := r.keep(ctx, c.intent(), c.journal().Sending()); err != nil {
		r.host.Returns(c.Number)
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.effects = append(r.effects, c.effect(ledger.Unknown))
	return nil
}

// intent makes the record of a call that is about to be sent.
func (c *call) intent() ledger.Record {
	rec := c.record(ledger.Intent)
	rec.Sent = len(c.args.Bytes())
	rec.Durable = !c.decision.ReadOnly || c.decision.Disposition == profiles.Ask
	if c.shown != nil {
		rec.Detail = fmt.Appendf(nil, `{"asked_about":%q}`, c.shown)
	}
	return rec
}

// finish records how a sent call ended, and makes its answer.
func (r *Run) finish(ctx context.Context, c *call, reply json.RawMessage, err error, took time.Duration) (Answer, error) {
	defer r.host.Returns(c.Number)
	var answer Answer
	if err == nil {
		answer, err = parseAnswer(c, reply)
		r.remember(c, reply)
	}
	rec := c.record(ledger.Outcome)
	rec.Duration, rec.Received = took, len(reply)
	rec.Durable = !c.decision.ReadOnly || c.decision.Disposition == profiles.Ask
	switch {
	case err == nil && answer.IsError:
		rec.Outcome, rec.Error = ledger.Failed, r.redact(answer.ErrorText())
	case err == nil:
		rec.Outcome = ledger.Done
	case wasSent(err) && !(c.decision.ReadOnly && c.decision.Repeatable):
		rec.Outcome, rec.Error = ledger.Unknown, r.redact(err.Error())
		err = &UnknownOutcomeError{Tool: c.tool.Script, Server: c.tool.Server, Repeatable: c.decision.Repeatable, Err: err}
	default:
		rec.Outcome, rec.Error = ledger.Failed, r.redact(err.Error())
		err = &CallError{Tool: c.tool.Script, Server: c.tool.Server, Err: err}
	}
	rec.Error = canon.Escape(rec.Error)
	r.mark(c.Number, rec.Outcome, len(reply))
	answer.Reply = c.reply(answer, err)
	kept := c.journal().Ended(answer.Reply, c.past(rec.Outcome, len(reply)))
	if lost := r.keep(context.WithoutCancel(ctx), rec, kept); lost != nil && err == nil {
		err = &UnknownOutcomeError{Tool: c.tool.Script, Server: c.tool.Server, Repeatable: c.decision.Repeatable, Err: errors.Join(errors.New("its outcome could not be written down"), lost)}
		answer.Reply = c.reply(answer, err)
	}
	return answer, err
}

// refuse records that a call was not sent, and returns why. known is nil when
// there is no such tool, and has no arguments when they could not be read.
func (r *Run) refuse(ctx context.Context, c Call, known *call, why error) (Answer, error) {
	if r.host.Suspended() {
		return Answer{}, ErrSuspended
	}
	if c.Lost { // it was already sent, whatever would be decided now
		return r.outcomeUnknown(ctx, c)
	}
	name := canon.Escape(r.redact(c.Name)) // a script may have put anything there
	rec := ledger.Record{Event: ledger.Refusal, Call: c.Number, Tool: name, Line: c.Position.Line, Column: c.Position.Column}
	past := Past{Effect: Effect{Number: c.Number, Tool: name, State: ledger.Refused}}
	if known != nil {
		rec = known.record(ledger.Refusal)
		past = known.past(ledger.Refused, 0)
		past.Effect.Repeatable = false
	}
	rec.Outcome, rec.Error, rec.Durable = ledger.Refused, canon.Escape(r.redact(why.Error())), true
	past.Effect.Retry = retry(why)
	r.mu.Lock()
	r.effects = append(r.effects, past.Effect)
	r.mu.Unlock()
	return r.conclude(ctx, c, rec, past, why) // refused whether or not this can be recorded
}

// Bound returns the name of the profile that the run began under, including the one
// that binds `eval`; empty if there is none.
func (r *Run) Bound() string {
	if began, ok := profileOf(r.policy, r.Profile); ok {
		return began.Name()
	}
	return r.Profile
}

// record writes one record of this run.
func (r *Run) record(ctx context.Context, rec ledger.Record) error {
	rec.Time, rec.Run, rec.Session, rec.Client, rec.Profile = r.gate.now(), r.ID, r.Session, canon.Escape(r.Client), r.Bound()
	rec.Configuration, rec.Principal, rec.TraceID = cmp.Or(r.Configuration.ID, r.gate.conf.ID), canon.Escape(r.Requester), r.TraceID
	if rec.Call > 0 {
		rec.Trace = trace(r.ID, rec.Call)
	}
	return r.gate.recorder.Record(ctx, rec)
}

// trace identifies one call, from the question about it to its outcome.
func trace(run string, call int) string { return run + "." + strconv.Itoa(call) }

// record begins a record about c.
func (c *call) record(event ledger.Event) ledger.Record {
	rec := ledger.Record{Event: event, Call: c.Number, Server: c.tool.Server, Tool: c.tool.Name, Identity: c.identity, Line: c.Position.Line, Column: c.Position.Column,
		Durable: event == ledger.Asked || event == ledger.Verdict}
	if c.decision.Disposition == 0 {
		return rec // refused before anything was decided
	}
	if rec.Digest = c.args.Digest().String(); event != ledger.Outcome { // the record of its intent has them
		rec.Args, rec.Sources = c.recorded(c.args, nil), c.finds
	}
	if c.edited != nil {
		rec.EditedBy = c.edited.By
	}
	rec.Notify, rec.Repeatable = c.decision.Notify, c.decision.Repeatable
	rec.Disposition, rec.Risk, rec.Revision = c.decision.Disposition.String(), c.decision.Risk.String(), c.decision.Revision
	for _, reason := range c.decision.Reasons {
		rec.Reasons = append(rec.Reasons, reason.String())
	}
	rec.Reasons = append(rec.Reasons, c.notes...)
	return rec
}

// recorded returns arguments of the call as records show them. Hides is as in
// displayOptions.
func (c *call) recorded(args canon.Args, hides map[string]string) json.RawMessage {
	o := c.displayOptions(hides)
	o.MaxBytes, o.MaxDepth, o.FingerprintKey = recordBytes, min(o.MaxDepth, recordDepth), c.gate.prints
	return canon.Display(args, o).JSON
}

// Bounds on arguments in a record, whatever rules say about their display: with this
// depth they fit into the bytes.
const (
	recordBytes = ledger.MaxText
	recordDepth = 10
)

// displayOptions returns how policy wants the arguments to be shown. Hides are names
// that are hidden besides those of the decision.
func (c *call) displayOptions(hides map[string]string) canon.DisplayOptions {
	d, hidden := c.decision.Display, c.decision.Hidden
	if len(hides) > 0 {
		hidden = maps.Clone(hides)
		maps.Copy(hidden, c.decision.Hidden)
	}
	return canon.DisplayOptions{Hidden: hidden,
		MaxString: d.MaxString, MaxArray: d.MaxArray, MaxObject: d.MaxObject, MaxDepth: d.MaxDepth}
}

// recordOptions returns how to record arguments that are not decided on yet: whatever
// any rule of the run's profiles hides is hidden.
func (r *Run) recordOptions() canon.DisplayOptions {
	return canon.DisplayOptions{Hidden: hiddenBy(r.bound(r.gate.View())), MaxBytes: recordBytes, FingerprintKey: r.gate.prints}
}

const (
	maxSecrets  = 200     // hidden values that a run remembers
	secretBytes = 1 << 10 // of each; a longer one is recognized by its beginning
)

// hide remembers the values in a that rules hide, or the last ones if there are too
// many: the server and the script may repeat them where they have no name.
func (r *Run) hide(a canon.Args, o canon.DisplayOptions) {
	if len(o.Hidden) == 0 {
		return
	}
	values := o.HiddenTexts(a)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, value := range values[max(0, len(values)-maxSecrets):] {
		value = value[:min(len(value), secretBytes)]
		if !slices.Contains(r.secrets, value) {
			r.secrets = append(r.secrets, value)
		}
	}
	r.secrets = slices.Delete(r.secrets, 0, max(0, len(r.secrets)-maxSecrets))
}

// redact returns a text for a record, without what rules hide and what looks like a
// secret.
func (r *Run) redact(text string) string {
	r.mu.Lock()
	secrets := slices.Clone(r.secrets)
	r.mu.Unlock()
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // longest first: the first match at a place counts
	for _, secret := range secrets {
		if at := strings.Index(text, secret); at >= 0 && len(secret) == secretBytes {
			text = text[:at] + "[hidden]" // its end is not known
			continue
		}
		text = strings.ReplaceAll(text, secret, "[hidden]")
	}
	shown, _ := r.recordOptions().Redact(text)
	return shown
}

// redact returns a text for a record that belongs to no run, without what looks like
// a secret.
func (g *Gate) redact(text string) string {
	shown, _ := canon.DisplayOptions{FingerprintKey: g.prints}.Redact(text)
	return shown
}

// othersLocked returns a copy of the facts that rules may ask of the run,
// without c.
func (r *Run) othersLocked(c *call) profiles.RunFacts {
	facts := r.facts
	facts.Tools = slices.Clone(facts.Tools)
	if c.counted {
		facts.Calls--
		facts.Bytes -= c.bytes
	}
	return facts
}

// countLocked counts c, once. A call that is refused later stays counted.
func (r *Run) countLocked(c *call) {
	if c.counted {
		return
	}
	c.counted, c.bytes = true, int64(len(c.args.Bytes()))
	r.tallyLocked(c.tool.Path(), c.bytes)
}

// tallyLocked counts a call of a tool with the number of bytes that it sends.
func (r *Run) tallyLocked(path string, bytes int64) {
	r.facts.Calls++
	r.facts.Bytes += bytes
	if !slices.Contains(r.facts.Tools, path) {
		r.facts.Tools = append(r.facts.Tools, path)
	}
}

// An Effect is what became of one call. The model is told when its script fails, so
// that a second attempt does not do things twice.
type Effect struct {
	Number     int    `json:"call"`
	Tool       string `json:"tool"`
	State      string `json:"state"` // done, failed, refused or unknown, as in package ledger
	Repeatable bool   `json:"repeatable,omitempty"`
	// Retry says, for a refused call, what would stop it in another run as well;
	// it is empty if the same call may pass there.
	Retry string `json:"retry,omitempty"`
	// Edited, if not nil, says that the arguments were not the script's.
	Edited *Edited `json:"edited,omitempty"`
}

// Edited says that a person changed the arguments of a call before they allowed
// it. Both are in display form, cut where they are long: a model reads them.
type Edited struct {
	By   string          `json:"by"`
	From json.RawMessage `json:"from"` // the script's
	To   json.RawMessage `json:"to"`
}

// madeLocked counts the calls that were sent so far, without those that were refused.
func (r *Run) madeLocked() int {
	made := 0
	for _, e := range r.effects {
		if e.State != ledger.Refused {
			made++
		}
	}
	return made
}

// effect returns the effect of c with the given state.
func (c *call) effect(state string) Effect {
	return Effect{Number: c.Number, Tool: c.tool.Script, State: state, Repeatable: c.decision.Repeatable, Edited: c.edited}
}

// The values of Retry.
const (
	RetryNever   = "never"   // policy or a person denied it, or nobody can be asked
	RetryChanged = "changed" // its arguments or its name are wrong: with others it may pass
)

// Effects returns what has become of the run's calls so far. The state of a call
// that is still under way is unknown.
func (r *Run) Effects() []Effect {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Effect(nil), r.effects...)
}

// mark sets the state of the call with the given number, and counts what was
// received.
func (r *Run) mark(number int, state string, received int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts.Bytes += int64(received)
	for i := len(r.effects) - 1; i >= 0; i-- {
		if r.effects[i].Number == number {
			r.effects[i].State = state
			return
		}
	}
}
