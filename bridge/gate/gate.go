// Package gate is the one door between a script and a tool.
//
// Every call that a script makes, however it was made, goes through [Gate.Call],
// which freezes the arguments, looks the tool up, lets policy decide on exactly
// the bytes that will be sent, records the decision, and only then sends the call.
// Nothing else in the program can call a tool: the gate reaches upstreams through
// the one-method interface [Caller] and does not share it.
//
// Any failure on the way refuses the call.
//
// A [Gate] decides on a [View], one policy with one catalogue, which
// [Gate.Replace] swaps. A [Run] is one execution of a script as the gate sees it:
// where it comes from ([Origin]), who runs its script ([Host]), and what its calls
// have done so far ([Effect]). A [Call] ends in an [Answer] or in one of the typed
// errors. Verdicts reach the gate's broker through a [Settler].
//
// The way of a call is [Gate.Call], below. Its steps are in decide.go (policy), ask.go
// (people) and outcome.go (sending, and what is recorded of it).
package gate

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/profiles"
)

// A Caller sends one call to an upstream server and returns the whole
// CallToolResult as the exact JSON that came back. Unless identity is empty, the
// server of that name must still have it. Args are the frozen bytes and are sent
// unchanged. When ctx ends, the far end is told.
//
// An error with a method WasSent() bool says whether the upstream may have
// received the call. An error without it counts as sent.
type Caller interface {
	Call(ctx context.Context, server, identity, tool string, args json.RawMessage) (json.RawMessage, error)
}

// Options are the parts a gate works with. Caller and Recorder are required.
type Options struct {
	Caller   Caller
	Reader   Reader // nil means that there are no resources and prompts
	Recorder ledger.Recorder
	Broker   *approval.Broker // nil means one with default limits
	// Configuration is the one that the gate decides by, whatever its text becomes.
	Configuration Configuration
	// MostCalls is how many calls a run may make, unless its profile allows fewer; 0:
	// nobody said.
	MostCalls int
	// Await, if not nil, waits until a server has listed its tools, which it has not
	// since the start, or until that is not worth waiting for. It waits for no other.
	Await func(ctx context.Context, server string)
	// Gather, if not nil, waits a short time for all such servers together.
	Gather func(ctx context.Context)
	// Previewed, if not nil, is told what could be read of a script before it makes a
	// call. It must not block.
	Previewed func(analysis.Report)
	// Turn, if not nil, does work that needs only the processor when it is the session's
	// turn. The error is the end of ctx before that. Nil does it at once.
	Turn func(ctx context.Context, session string, work func()) error
	// Approvers reports whether anybody could answer on an authenticated channel;
	// nil means that nobody ever can.
	Approvers func() bool
	// Fingerprints, if not nil, is the key of the fingerprints that records
	// show of hidden values (canon.Fingerprint).
	Fingerprints []byte
	// Conceal, if not nil, removes the configuration's secrets from arguments that
	// a person wrote, before they are shown to a model.
	Conceal func(text string) string
	// Fence, if not nil, makes the context in which a call is recorded and sent. Its
	// error says why this process may send nothing now.
	Fence   func(ctx context.Context) (context.Context, error)
	Now     func() time.Time         // nil means time.Now
	Decided func(took time.Duration) // is told how long each decision took, unless nil
	// Marks, if not nil, keeps what principals have read, for rules about flows, beyond this process.
	Marks provenance.Shelf
}

// A Configuration identifies one of the configurations that may share a store. Runs,
// requests and grants belong to the one that they began with.
type Configuration struct {
	ID   string // the same across edits of its text
	Name string // for people
}

// A Gate decides and sends calls. Any number of goroutines may use it.
type Gate struct {
	settler   *Settler
	caller    Caller
	reader    Reader
	recorder  ledger.Recorder
	broker    *approval.Broker
	await     func(ctx context.Context, server string)
	gather    func(ctx context.Context)
	previewed func(analysis.Report)
	approvers func() bool
	conf      Configuration
	mostCalls int
	decided   func(time.Duration)
	prints    []byte // key of fingerprints
	conceal   func(string) string
	fence     func(ctx context.Context) (context.Context, error)
	now       func() time.Time
	view      atomic.Pointer[View]
	met       provenance.Met
	marks     *provenance.Book // what was read
	turn      func(ctx context.Context, session string, work func()) error
}

// New makes a gate that decides on view until [Gate.Replace] is called.
func New(view *View, o Options) *Gate {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Broker == nil {
		o.Broker = approval.New(approval.Options{})
	}
	if o.Approvers == nil {
		o.Approvers = func() bool { return false }
	}
	if o.Conceal == nil {
		o.Conceal = func(text string) string { return text }
	}
	if o.Fence == nil {
		o.Fence = func(ctx context.Context) (context.Context, error) { return ctx, nil }
	}
	if o.Await == nil {
		o.Await = func(context.Context, string) {}
	}
	if o.Gather == nil {
		o.Gather = func(context.Context) {}
	}
	if o.Turn == nil {
		o.Turn = func(_ context.Context, _ string, work func()) error { work(); return nil }
	}
	if o.Previewed == nil {
		o.Previewed = func(analysis.Report) {}
	}
	g := &Gate{caller: o.Caller, reader: o.Reader, recorder: o.Recorder, broker: o.Broker, await: o.Await, gather: o.Gather, previewed: o.Previewed, approvers: o.Approvers, conf: o.Configuration, mostCalls: o.MostCalls, prints: o.Fingerprints, conceal: o.Conceal, fence: o.Fence, now: o.Now, turn: o.Turn, decided: o.Decided, marks: provenance.NewBook(o.Marks)}
	g.settler = &Settler{Broker: o.Broker, Recorder: o.Recorder, Approvers: o.Approvers, Now: o.Now, Redact: g.redact, Fits: g.fits}
	g.settler.Listen()
	g.view.Store(view)
	return g
}

// fits checks arguments that a person wrote against the tool as it is listed now.
func (g *Gate) fits(e approval.StoredRequest, raw json.RawMessage) error {
	view := g.View()
	tool, ok := view.Catalog.Tool(catalog.ToolRef{Server: e.Server, Tool: e.Tool})
	if !ok || len(e.Items) == 0 {
		return nil // the tool is looked up again before anything is sent
	}
	profile, _ := view.profile(e.Items[0].Key.Profile)
	by := []*profiles.Profile{profile}
	args, err := canon.Parse(raw)
	if err != nil {
		return unfit(tool, err, by)
	}
	if _, wrong := view.check(tool, args, by); wrong != nil {
		return wrong
	}
	return nil
}

// redact returns a text for a record that belongs to no run, without what looks like
// a secret.
func (g *Gate) redact(text string) string {
	shown, _ := canon.DisplayOptions{FingerprintKey: g.prints}.Redact(text)
	return shown
}

// Broker returns the broker that the gate asks.
func (g *Gate) Broker() *approval.Broker { return g.broker }

// Settle settles a request by a verdict, as [Settler.Settle] does.
func (g *Gate) Settle(ctx context.Context, id string, about canon.Digest, v approval.Verdict) (approval.StoredRequest, error) {
	return g.settler.Settle(ctx, id, about, v)
}

// Refuse records a verdict that its author may not give, as [Settler.Refuse] does.
func (g *Gate) Refuse(ctx context.Context, e approval.StoredRequest, v approval.Verdict, why error) error {
	return g.settler.Refuse(ctx, e, v, why)
}

// EndSession forgets a session, with its grants. Its runs have ended.
func (g *Gate) EndSession(session string) error {
	g.met.Forget(session)
	g.marks.Forget(session)
	return g.broker.EndSession(session)
}

// Configuration returns the configuration that the gate decides by.
func (g *Gate) Configuration() Configuration { return g.conf }

// View returns the view that the gate decides on at this moment.
func (g *Gate) View() *View { return g.view.Load() }

// Replace makes the gate decide on view from now on. Calls that are being decided
// finish with the view they began with. Questions about a server that is another
// one in the new view are ended.
func (g *Gate) Replace(view *View) {
	g.view.Store(view)
	g.broker.EndAllStale(outdated(view))
}

// outdated returns the questions that need no answer any more, because their server
// has been replaced by another one.
func outdated(view *View) func(approval.Key) bool {
	return func(k approval.Key) bool {
		now, there := view.Identities[k.Server]
		return there && now != k.Identity
	}
}

// Call makes one call of run r: it freezes the arguments, looks the tool up,
// decides, records the intent, sends, and records the outcome.
//
// The answer is whatever the tool returned, including its own errors. An error
// means that there is no answer: *ArgumentError, *UnknownToolError or *DeniedError
// if the call was not sent, *UnknownOutcomeError if it was sent and nobody can tell
// what it did, *CallError if it failed on the way, and ErrSuspended if the run was
// suspended before the call was sent.
func (g *Gate) Call(ctx context.Context, r *Run, c Call) (Answer, error) {
	defer r.tally.pass(c.Position)
	if c.Lost && !g.repeatable(ctx, r, c) {
		return r.outcomeUnknown(ctx, c)
	}
	view, tool, err := g.lookup(ctx, r, c.Name)
	if err != nil {
		return r.refuse(ctx, c, nil, err)
	}
	identity, ok := view.Identities[tool.Server]
	if !ok && tool.Server != "" && view.Identities != nil {
		return r.refuse(ctx, c, nil, unknownTool(seen(r, view), c.Name))
	}
	var args canon.Args
	g.inTurn(ctx, r, func() { args, err = canon.Parse(c.Args) }) // frozen: nothing changes them from here on
	if err != nil && Within(r.host.Scope(), tool.Server) {
		return r.refuse(ctx, c, &call{Call: c, gate: g, tool: tool}, unfit(tool, err, r.bound(view)))
	}
	made := &call{Call: c, gate: g, tool: tool, identity: identity, args: args}
	if err := r.barred(ctx, view, made); err != nil { // whatever policy says now
		return r.refuse(ctx, c, made, err)
	}
	var wrong *ArgumentError
	judge := func() {
		_, end := made.span(ctx, r, stepDecide)
		defer func() { end(made.decision.Disposition.String()) }()
		if g.decided != nil {
			defer func(began time.Time) { g.decided(time.Since(began)) }(time.Now())
		}
		r.decide(view, made)
		made.notes, wrong = view.check(tool, args, r.bound(view))
	}
	if err := g.turn(ctx, r.Session, judge); err != nil {
		r.decide(view, made) // for the record
		return r.refuse(ctx, c, made, denied(made, approval.Expired, ""))
	}
	if wrong != nil && made.decision.Disposition != profiles.Deny {
		return r.refuse(ctx, c, made, wrong) // rather than asking a person for nothing
	}
	if err := g.consult(ctx, r, made); err != nil {
		return r.refuse(ctx, c, made, err)
	}
	if !made.allowed() {
		return r.refuse(ctx, c, made, denied(made, approval.Denied, ""))
	}
	if failed := r.check(g.View(), made); failed != "" {
		return r.refuse(ctx, c, made, denied(made, approval.Denied, "the check "+failed+" failed"))
	}
	if err := leadsElsewhere(r, made); err != nil {
		return r.refuse(ctx, c, made, err)
	}
	if ctx.Err() != nil { // stopped in the meantime: what the script still does is not sent
		return r.refuse(ctx, c, made, denied(made, approval.Expired, ""))
	}
	fenced, err := g.fence(ctx)
	if err == nil {
		err = r.intend(ctx, made)
	}
	if errors.Is(err, ledger.ErrUsedUp) {
		return g.usedUp(ctx, r, c, made)
	} else if err != nil {
		return r.refuse(ctx, c, made, unrecorded(made, err))
	}
	started := g.now()
	made.landed = acquaintance{&g.met}.move(view, r.Session, made)
	sending, end := made.span(fenced, r, made.method())
	reply, err := g.send(sending, view, r, made)
	return r.finish(ctx, made, reply, err, g.now().Sub(started), end)
}

// consult asks people about a call for as long as policy says ask, and decides again after
// each answer. Where nobody can be asked it does what the configuration says instead. The
// error says why the call is not made.
func (g *Gate) consult(ctx context.Context, r *Run, made *call) error {
	defer func() { data{r}.forget(made.cleared) }() // for the calls after it
	for made.decision.Disposition == profiles.Ask {
		if !r.mayAsk(made.decision) && !(made.Again && approval.Approved(ctx, g.broker, r.request(made))) {
			return r.fallBack(ctx, made)
		}
		asked := made.decision
		today, err := r.ask(ctx, made)
		if err != nil {
			return err
		}
		r.decide(today, made) // again: minutes may have passed
		if !made.decision.Exceeds(asked) {
			break // otherwise the approval was for less
		}
	}
	return nil
}

// send makes the call, to the upstream or, for a discovery function, to the
// catalogue. Reading a resource or a prompt is not a tool's call but goes the same
// way.
func (g *Gate) send(ctx context.Context, view *View, r *Run, c *call) (json.RawMessage, error) {
	if c.tool.Server == "" && !c.tool.Method {
		var found json.RawMessage
		err := g.InTurn(ctx, r, func() (err error) { found, err = discover(view, r, c); return err })
		return found, err
	}
	if r.CallTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.CallTimeout)
		defer cancel()
	}
	if c.tool.Method {
		return g.read(ctx, view, r, c)
	}
	return g.caller.Call(ctx, c.tool.Server, c.identity, c.tool.Name, c.args.Bytes())
}
