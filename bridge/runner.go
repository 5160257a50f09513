package bridge

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/commons"
	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/forms"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/handles"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	who "codemode-bridge/bridge/principal"
	"codemode-bridge/bridge/seal"
	"codemode-bridge/bridge/trace"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/sandbox"
)

// A runner starts runs, anew or from their journals, and carries them out.
type runner struct {
	o       *Options
	roster  *roster
	leases  *leases
	shared  commons.Commons
	levels  elicit.Levels // of logging, that clients want
	handles *handles.Keeper
	turns   access.Turns    // of principals with limits.workers
	seed    func(*[32]byte) // makes the seed of a run
}

func newRunner(o *Options, ro *roster, l *leases) *runner {
	return &runner{o: o, roster: ro, leases: l, shared: commons.Commons{Logger: o.Logger}, handles: handles.NewKeeper(o.Now, o.Handles), seed: func(seed *[32]byte) { rand.Read(seed[:]) }}
}

// start begins a run of a script. An error means that there is no run.
func (rn *runner) start(ctx context.Context, sess *session, o gate.Origin, principal who.Principal, args evalArgs, unasked func(*approval.DeniedError)) (*run, error) {
	r := rn.newRun(newID("r"), sess, principal, o.Profile, o.Reach == gate.ByApprovers)
	r.unasked = unasked
	if s := (*gateHost)(r).Scope(); s != nil && s.Refuses("") != "" {
		r.cancel(nil)
		return nil, errors.New(s.Refuses("") + ": ask whoever runs the bridge for access")
	}
	o.Folder = rn.o.Folder()
	o.Workspace = rn.o.Workspace(ctx, sess.conn, sess.remote || o.Reach == gate.ByApprovers)
	o.Reach = r.reach(o.Reach)
	r.identify(ctx, &o, args, trace.Context{})
	if analysis.Enumerates(args.Code) {
		rn.o.Gate.Gather(ctx)
	}
	names := (*sandbox.Names)(rn.shared.Names(rn.o.Gate.View().Within(o.Profile, (*gateHost)(r).Scope())))
	script := rn.script(r, args, names)
	rn.seed(&script.Seed)
	r.secret = seal.NewSecret()
	rn.keepJournal(r, beginning{
		Engine: sandbox.Engine, Code: args.Code, Input: args.Input, Seed: script.Seed, Start: script.Start.Round(0), Started: r.started,
		Profile: o.Profile, Session: sess.id, Client: sess.client, Principal: r.principal, Groups: r.groups, Fetched: r.fetched, Reach: o.Reach,
		Configuration: rn.o.Gate.Configuration(), Secret: r.secret.Hash,
	}, names)
	var err error
	if r.gate, err = rn.o.Gate.Begin(r.ctx, o, (*gateHost)(r)); err == nil && r.fetched {
		err = r.gate.Flush(r.ctx) // whoever starts it is told its id at once
	}
	if err == nil && r.fetched {
		err = r.journal.begin(r.ctx, rn.o.Journal) // and may come back for it when this bridge is gone
	}
	if err != nil {
		r.trace.End(ledger.Stopped)
		r.stop(err)
		return nil, err
	}
	if err := rn.launch(r, script); err != nil {
		return nil, err
	}
	return r, nil
}

// newRun makes a run that is not under way.
func (rn *runner) newRun(id string, sess *session, principal who.Principal, profile string, fetched bool) *run {
	r := &run{
		id: id, runner: rn, session: sess, owner: owner{principal: principal.Name, groups: principal.Groups}, profile: profile,
		done:    make(chan struct{}),
		started: rn.o.Now(), fetched: fetched,
	}
	r.elicit = rn.elicitFor(r)
	r.ctx, r.cancel = context.WithCancelCause(context.Background()) // it outlives the request that starts it
	r.limits.profile = rn.o.Gate.View().Limits(profile)
	r.limits.result = least(rn.o.MaxResult, r.limits.profile.Result)
	return r
}

// identify puts into an origin what it has of the run, whose spans begin; first is where
// those of an earlier part did.
func (r *run) identify(ctx context.Context, o *gate.Origin, args evalArgs, first trace.Context) {
	r.trace = r.runner.o.Tracer.Begin(ctx, trace.Origin{Run: r.id, Session: r.session.id, Profile: o.Profile, First: first})
	o.Span, o.TraceID = r.trace.Step(), cmp.Or(r.trace.ID(), trace.Of(ctx).TraceID())
	o.ID, o.Session, o.Client, o.Requester, o.Brief = r.id, r.session.id, r.session.client, r.principal, r.session.brief
	o.Script, o.Input, o.Names = args.Code, args.Input, &r.names
	o.CallTimeout = time.Duration(deref(r.limits.profile.Call))
}

// script is what a run runs, without its seed.
func (rn *runner) script(r *run, args evalArgs, names *sandbox.Names) sandbox.Script {
	t := r.limits.profile
	script := sandbox.Script{
		Source: args.Code,
		Input:  args.Input,
		Names:  names,
		Limits: rn.o.Limits.Tighten(sandbox.Limits{
			CPU: time.Duration(deref(t.CPU)), Heap: int64(deref(t.Heap)), Calls: deref(t.Calls), Parallel: deref(t.Parallel),
			Source: int64(deref(t.Source)), Input: int64(deref(t.Input)), Logs: int64(deref(t.Logs)),
		}),
		Start: rn.o.Now(),
	}
	r.limits.parallel = rn.o.Pool.Limits().Tighten(script.Limits).Parallel
	return script
}

// launch has a run under way, in a goroutine of its own.
func (rn *runner) launch(r *run, script sandbox.Script) error {
	if err := rn.roster.enter(r, r.access()); err != nil {
		r.trace.End(ledger.Stopped)
		r.stop(err)
		if r.replay != nil { // it stays as it was
			return err
		}
		return errors.Join(err, r.gate.End(r.ctx, outcomeOf(err), err.Error(), r.journal.ending(0, rn.o.Now(), nil)))
	}
	go func() {
		defer rn.roster.underWay.Done()
		defer r.cancel(nil)
		rn.carryOut(r, script)
		r.session.prompts.Forget(r.id)
		rn.roster.exit(r, rn.o.Now())
		rn.closeSession(r.session)
	}()
	return nil
}

// carryOut runs a run's script to its end, and records that, or that the run is
// suspended.
func (rn *runner) carryOut(r *run, script sandbox.Script) {
	ctx := r.ctx
	select {
	case r.session.slots <- struct{}{}:
		if done, err := rn.takeTurn(ctx, r); err != nil {
			r.end.err = err
		} else {
			if r.replay == nil { // else it begins once it is where it was
				r.update(lifecycle.Event{Kind: lifecycle.Begins})
			}
			r.trace.Starts()
			r.end.result, r.end.err = r.session.sandbox.Run(upstream.WithClient(ctx, r.elicit), script, (*workerHost)(r))
			done()
		}
		<-r.session.slots
	case <-ctx.Done():
		r.end.err = context.Cause(ctx)
	}
	r.conclude(ctx)
	if !r.update(lifecycle.Event{Kind: lifecycle.Ends}) && !rn.finishSuspension(ctx, r) {
		r.trace.End(trace.Paused)
		return // it goes on elsewhere
	}
	why := ""
	if r.end.err != nil {
		why = r.end.err.Error()
	}
	if err := r.gate.End(ctx, outcomeOf(r.end.err), why, r.journal.ending(rn.o.KeepJournals, rn.o.Now(), r.unfetched())); err != nil {
		rn.o.Logger.Error("recording the end of a run", "run", r.id, "err", err)
		r.end = end{err: err}
		r.emitted.Withhold(r.session.handles)
	}
	r.trace.End(outcomeOf(r.end.err))
}

// conclude corrects how the script of a run ended: if ctx has ended, it was
// stopped, and what it has still returned does not count; a replay must be complete,
// unless a limit ended the script.
func (r *run) conclude(ctx context.Context) {
	var limit *sandbox.LimitError
	if ctx.Err() != nil {
		r.end.err = context.Cause(ctx)
	} else if r.replay != nil && !errors.As(r.end.err, &limit) {
		if err := r.replay.Unmet(); err != nil {
			r.end.err = err
		}
	}
}

// finishSuspension leaves a suspended run to whoever acquires it. It reports
// whether the run ends here instead: that could not be written down, or somebody
// wanted its end in the same moment.
func (rn *runner) finishSuspension(ctx context.Context, r *run) (ends bool) {
	if r.now().LeaseLost {
		r.end.err = errLeaseLost
		return false
	}
	err := rn.leases.leaveInJournal(ctx, r)
	if err == nil {
		return false
	}
	var stop *approval.StoppedError
	if !errors.As(err, &stop) {
		rn.o.Logger.Error("suspending a run", "run", r.id, "err", err)
		err = fmt.Errorf("the run could not be suspended: %w", err)
	}
	if !r.update(lifecycle.Event{Kind: lifecycle.FailsToSuspend}) {
		r.end.err = errLeaseLost
		return false
	}
	r.end.err = err
	err = rn.o.Gate.Broker().Abandon(context.WithoutCancel(ctx), r.end.err, func(e approval.StoredRequest) bool { return e.Run == r.id })
	if err != nil {
		rn.o.Logger.Error("ending the questions of a run", "run", r.id, "err", err)
	}
	return true
}

// loose makes a session that no connection has: scripts run in it one at a
// time, and leave nothing for later ones.
func (rn *runner) loose(client string) *session {
	return &session{id: newID("s"), client: client, brief: true, started: rn.o.Now(),
		sandbox: rn.o.Pool.Session(), handles: handles.New(rn.o.Now), slots: make(chan struct{}, 1), prompts: elicit.NewQueue(), reflex: new(forms.Reflex)}
}

// closeSession gives back what a session holds once its connection is over and its
// last run has ended: a run that waits for a person outlives the stateless
// request that started it.
func (rn *runner) closeSession(sess *session) {
	over, twin := rn.roster.dismiss(sess)
	if !over {
		return
	}
	defer sess.sandbox.Close()
	if twin { // the session that a resumed run came from, or another run of it
		return
	}
	if err := rn.o.Gate.EndSession(sess.id); err != nil {
		rn.o.Logger.Error("ending a session", "session", sess.id, "err", err)
	}
	if rn.o.Ended != nil {
		rn.o.Ended(sess.id)
	}
}

// elicitFor makes what the upstream servers of a run see of it.
func (rn *runner) elicitFor(r *run) *elicit.Client {
	sess := r.session
	return elicit.New(elicit.Options{
		Run: r.id, Session: sess.id, Person: func() (string, bool) { return r.principal, true }, Can: sess.can, Queue: sess.prompts, Now: rn.o.Now,
		LogLevel: func() string {
			if sess.conn == nil || sess.logLevel != "" {
				return sess.logLevel
			}
			return rn.levels.Of(sess.conn)
		},
		Patience: func() time.Duration {
			if sess.stateless {
				return statelessPatience
			}
			return rn.o.Gate.View().Profiles.ClientPatience(sess.client)
		},
		Record: func(ctx context.Context, rec elicit.Record) error {
			return r.gate.RecordServerRequest(ctx, gate.ServerRequest(rec))
		},
	})
}

// newID returns a new name for a run or session: a letter and 60 random bits.
func newID(kind string) string {
	var b [8]byte
	rand.Read(b[:])
	return kind + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))[:12]
}

// outcomeOf names how a run ended, for its record.
func outcomeOf(err error) string {
	var script *sandbox.ScriptError
	switch {
	case err == nil:
		return ledger.Done
	case errors.As(err, &script):
		return ledger.Failed
	default:
		return ledger.Stopped
	}
}
