package gate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/bridge/workspace"
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
	// TraceID is the trace that the run belongs to, the client's own if it has one. Span, if
	// not nil, begins the span of a step of a call, as package trace has it.
	TraceID string
	Span    func(ctx context.Context, step, server, tool string, call int) (in context.Context, end func(how string))
	// Script and Input are what is run, for the record; Name is the saved
	// script's, if it is one.
	Script string
	Input  json.RawMessage
	Name   string
	// Names keeps what its script means by names in other spellings.
	Names *catalog.Taken
	// Brief reports that its session lasts no longer than the client's request.
	Brief bool
	// Profile binds the run. The empty name stands for whatever binds the
	// tool `eval`: the default profile, or nothing.
	Profile string
	// Configuration is the one that the run belongs to, if it is not the gate's.
	Configuration Configuration
	// Policy is what the run began with, and so are its surroundings. A run that is
	// resumed brings its own; if Policy is nil, what is known of servers is today's.
	Policy *profiles.Set
	Surroundings
	// Reach says how a person can be asked. The zero value is Nobody.
	Reach Reach
	// CallTimeout bounds one upstream call; 0 leaves it to the upstream.
	CallTimeout time.Duration
}

// Surroundings are what was around a run when it began, as its journal keeps them:
// what is accepted or moved later counts for later runs.
type Surroundings struct {
	Servers  map[string]string `json:"servers,omitempty"`  // their identities
	Trusted  map[string]bool   `json:"trusted,omitempty"`  // servers whose annotations were trusted
	Accepted map[string]bool   `json:"accepted,omitempty"` // servers whose meaning was accepted
	// Folder is the working directory of those of the run's servers that have none
	// of their own; empty if all have one.
	Folder string `json:"folder,omitempty"`
	// Workspace is the folders that the script works on.
	Workspace workspace.Workspace `json:"workspace,omitzero"`
	// Context is what was read before the run began, by those whose context it shares, if
	// policy looks at that; ContextOf says who they are, empty for the session.
	Context   []provenance.Mark `json:"context,omitempty"`
	ContextOf string            `json:"contextOf,omitempty"`
	// Watched reports that Context has it: policy looked at that when the run began.
	Watched bool `json:"watched,omitempty"`
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
	started time.Time
	resumed bool
	trail   *ledger.Trail // of its records

	tally   tally             // what its calls did
	read    provenance.Memory // what they returned
	marks   provenance.Marks  // where that came from
	secrets secrets           // the values that rules hide
	scripts sync.Map          // digests of the saved scripts that were recorded

	mu      sync.Mutex
	preview analysis.Report // as people may see it
	sites   analysis.Report // the same as it came
	remarks []string        // see Remarks
}

// Begin starts a run and records it. The profile is looked up once here and once for
// each call, and the stricter of the two decides, so an edit of the configuration
// can tighten a running run and never loosen it. A nil host means [Unattended].
func (g *Gate) Begin(ctx context.Context, o Origin, h Host) (*Run, error) {
	r := g.run(o, h)
	if err := r.trail.Defer(ctx, r.startRecord(), Entries{}); err != nil {
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
	resumed := o.Policy != nil
	if view := g.View(); !resumed {
		o.Policy, o.Servers, o.Trusted, o.Accepted = view.Profiles, view.Identities, view.Trusted, view.accepted()
	}
	r := &Run{Origin: o, host: h, gate: g, started: g.now()}
	r.trail = ledger.NewTrail(g.recorder, r.fill, h.Withholds(), func(err error) { h.Stop(unwritten(err)) })
	data{r}.begins(g.View(), resumed)
	r.secrets.learn(canon.Member("input", r.Input), r.recordOptions())
	return r
}

// startRecord makes a record with the script as a person may see it, and a hash of
// its exact text.
func (r *Run) startRecord() ledger.Record {
	rec := ledger.Record{Event: ledger.RunStarted, Name: r.Name, Revision: r.Policy.Revision(), Brief: r.Brief}
	if r.Script != "" {
		sum := sha256.Sum256([]byte(r.Script))
		rec.ScriptHash = "sha256:" + hex.EncodeToString(sum[:])
		rec.Script = canon.EscapeLines(r.redact(r.Script))
	}
	if len(r.Input) > 0 {
		rec.Input = canon.Display(canon.Member("input", r.Input), r.recordOptions()).JSON
	}
	return rec
}

// Preview notes the calls that could be read from the script before it ran. They are
// shown to whoever is asked, and decide nothing; those that people would be asked about
// may be put to them beforehand.
func (r *Run) Preview(ctx context.Context, report analysis.Report) error {
	r.gate.previewed(report)
	var text []byte
	var err error
	r.gate.inTurn(ctx, r, func() { text, err = notePreview(r, report) })
	switch {
	case err != nil:
		return fmt.Errorf("writing the preview: %w", err)
	case r.resumed:
		return nil // it was recorded when the run began
	}
	return r.trail.Defer(ctx, ledger.Record{Event: ledger.Preview, Preview: text}, Entries{})
}

// notePreview keeps a preview by the names and with the arguments that people may see. It returns
// its text for the record.
func notePreview(r *Run, report analysis.Report) ([]byte, error) {
	report.Calls = slices.Clone(report.Calls)
	for i := range report.Calls {
		if tool, ok := r.Names.Find(r.gate.View().Catalog, report.Calls[i].Name); ok {
			report.Calls[i].Name = tool.Script
		}
	}
	sites := report
	report.Calls = slices.Clone(report.Calls)
	o := r.recordOptions()
	for i := range report.Calls {
		site := &report.Calls[i]
		site.Name, site.Args = canon.Escape(r.redact(site.Name)), canon.ShowObject(site.Args, maxLiterals, o)
	}
	r.mu.Lock()
	r.preview, r.sites = report, sites
	r.mu.Unlock()
	return json.Marshal(report)
}

// maxLiterals is the length in bytes up to which the arguments of a previewed call are
// shown beside it. Longer ones are in the script, and in the question about the call.
const maxLiterals = 500

// Recall restores what a call of an earlier part of the run has left, so that later
// calls are judged, and failures reported, as if the run had never paused. Nothing
// is recorded, since that was done at the time. At is where the script made it with these
// arguments, and the reply is what the script got.
func (r *Run) Recall(at analysis.Position, p Past, sent, reply json.RawMessage) {
	r.tally.pass(at)
	r.tally.recall(p)
	r.gate.met.Meet(r.Session, p.Met)
	content, context := data{r}.looks(r.gate.View())
	if args, err := canon.Parse(sent); err == nil && p.Server != "" && p.Effect.State != ledger.Refused {
		data{r}.sentBefore(content, context, p, args)
	}
	if p.Server != "" && len(reply) > 0 {
		from := provenance.Source{Call: p.Effect.Number, Server: p.Server, Tool: p.Name, Labels: p.Labels, Unlabelled: p.Unlabelled}
		r.read.Read(from, reply)
		data{r}.mark(from, p.Read)
	}
	data{r}.forget(p.Cleared)
}

// Paused records that the run was suspended, with the last entries of its
// journal.
func (r *Run) Paused(ctx context.Context, e Entries) error {
	lost := foresight{r}.lapse(context.WithoutCancel(ctx))
	return errors.Join(r.trail.Record(context.WithoutCancel(ctx), ledger.Record{Event: ledger.RunPaused, Durable: true}, e), lost)
}

// End records that the run is over, with one of the outcomes of package
// ledger and, if it did not end well, why.
func (r *Run) End(ctx context.Context, outcome string, why string, e Entries) error {
	lost := foresight{r}.lapse(context.WithoutCancel(ctx))
	r.gate.broker.EndRun(r.ID)
	rec := ledger.Record{Event: ledger.RunEnded, Outcome: outcome, Error: canon.Escape(r.redact(why)), Duration: r.gate.now().Sub(r.started)}
	if err := errors.Join(r.trail.End(context.WithoutCancel(ctx), rec, e), lost); err != nil {
		return unwritten(err)
	}
	return nil
}

// Flush has all written that the run has done so far, which must be before any of it is
// shown: to its client, on the page, to another run. After an error none of it may be.
func (r *Run) Flush(ctx context.Context) error { return r.trail.Flush(context.WithoutCancel(ctx)) }

// unwritten is how a run ends whose records cannot be written.
func unwritten(err error) error {
	return &approval.DeniedError{Reason: approval.AuditUnavailable, Message: "audit_unavailable: the run ended, and what it answered is withheld: " + err.Error(), Err: err}
}

// Effects returns what has become of the run's calls so far. The state of a call
// that is still under way is unknown.
func (r *Run) Effects() []Effect {
	return r.tally.all()
}

// Bound returns the name of the profile that the run began under, including the one
// that binds `eval`; empty if there is none.
func (r *Run) Bound() string {
	if began, ok := profileOf(r.Policy, r.Profile); ok {
		return began.Name()
	}
	return r.Profile
}

// bound returns the profiles that bind the run; nil stands for one that no longer
// exists.
func (r *Run) bound(view *View) []*profiles.Profile {
	var all []*profiles.Profile
	for _, name := range append([]string{r.Profile}, r.host.Profiles()...) {
		today, _ := view.profile(name)
		all = append(all, today)
		if began, _ := profileOf(r.Policy, name); began != today {
			all = append(all, began)
		}
	}
	return all
}

// fill puts into a record what all records of this run have.
func (r *Run) fill(rec *ledger.Record) {
	rec.Time, rec.Run, rec.Session, rec.Client, rec.Profile = r.gate.now(), r.ID, r.Session, canon.Escape(r.Client), r.Bound()
	rec.Configuration, rec.Principal, rec.TraceID = cmp.Or(r.Configuration.ID, r.gate.conf.ID), canon.Escape(r.Requester), r.TraceID
	if rec.Call > 0 {
		rec.Trace = trace(r.ID, rec.Call)
	}
}

// record writes one record of this run, after those that were deferred.
func (r *Run) record(ctx context.Context, rec ledger.Record) error {
	return r.trail.Record(ctx, rec, Entries{})
}

// trace identifies one call, from the question about it to its outcome.
func trace(run string, call int) string { return run + "." + strconv.Itoa(call) }

// recordOptions returns how to record arguments that are not decided on yet: whatever
// any rule of the run's profiles hides is hidden.
func (r *Run) recordOptions() canon.DisplayOptions {
	return canon.DisplayOptions{Hidden: hiddenBy(r.bound(r.gate.View())), MaxBytes: recordBytes, FingerprintKey: r.gate.prints}
}

// redact returns a text for a record, without what rules hide and what looks like a
// secret.
func (r *Run) redact(text string) string {
	shown, _ := r.recordOptions().Redact(r.secrets.remove(text))
	return shown
}
