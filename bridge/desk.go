package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	who "codemode-bridge/bridge/principal"
	"codemode-bridge/profiles"
)

// What those who run the bridge see of its runs, and may do with them: the
// approval page and the HTTP API are made of these methods. None of them can
// answer a question.

// RunState and its words are those of package lifecycle.
type RunState = lifecycle.RunState

// Start begins a run that no MCP client asked for. Its questions go to approvers,
// whatever the profile's fallback. The requester is who started it,
// as the caller knows them. The run's answer is kept like that of a run whose
// client has left.
func (s *Server) Start(ctx context.Context, profile, code string, input json.RawMessage, requester string) (string, error) {
	if profile != "" {
		if _, ok := s.o.Gate.View().Profiles.Profile(profile); !ok {
			return "", noProfile(s.o.Gate.View().Profiles, profile)
		}
	}
	by := who.From(ctx)
	by.Name = requester
	profile, err := s.o.standard(s.o.Access().For(by.Name, by.Groups), profile)
	if err != nil {
		return "", err
	}
	if s.roster.fetched(requester) >= maxStarted {
		return "", fmt.Errorf("%d runs of %s are under way: fetch or stop some first", maxStarted, requester)
	}
	sess := s.runner.loose("api")
	sess.owner, sess.closed, sess.handles = requester, true, s.runner.handles.Of(requester)
	r, err := s.runner.start(ctx, sess, gate.Origin{Profile: profile, Reach: gate.ByApprovers}, by, evalArgs{Code: code, Input: input}, nil)
	if err != nil {
		sess.sandbox.Close()
		return "", err
	}
	return r.id, nil
}

// maxStarted bounds the runs that one requester has started here and that are
// under way: each holds a worker.
const maxStarted = 16

// Run returns the state of a run that is live, whose answer is kept, or that is
// paused and no bridge has.
func (s *Server) Run(ctx context.Context, id string) (RunState, bool) {
	r, ok := s.roster.lookup(id)
	if !ok {
		paused := s.leases.paused(ctx)
		if i := slices.IndexFunc(paused, func(k ledger.JournaledRun) bool { return k.Run == id }); i >= 0 {
			return s.leases.state(ctx, paused[i]), true
		}
		if r, ok = s.roster.lookup(id); !ok { // it may have been resumed since
			return RunState{}, false
		}
	}
	state := r.state()
	if state.Over() {
		if text, ok := r.answer().StructuredContent.(json.RawMessage); ok {
			state.Result = text
		}
	}
	return state, true
}

// Runs returns the runs that are live, those whose answers are kept, and those
// that are paused and no bridge has, the newest first.
func (s *Server) Runs(ctx context.Context) []RunState {
	live, ended := s.roster.runs()
	all := append(ended, live...)
	var states []RunState
	for _, r := range all {
		states = append(states, r.state())
	}
	for _, k := range s.leases.paused(ctx) {
		if !slices.ContainsFunc(all, func(r *run) bool { return r.id == k.Run }) {
			states = append(states, s.leases.state(ctx, k))
		}
	}
	slices.SortStableFunc(states, func(a, b RunState) int { return b.Started.Compare(a.Started) })
	return states
}

// RunsChanged returns a channel that is closed after the next run starts or
// ends. That a run waits for a person is told by its broker.
func (s *Server) RunsChanged() <-chan struct{} { return s.roster.changed() }

// CancelRun ends a run, wherever it is: here, in another bridge, or nowhere.
// The name is whose wish it is.
func (s *Server) CancelRun(ctx context.Context, id, by string) error {
	return s.leases.cancel(ctx, id, by)
}

// A SessionState is what is known of a client's connection.
type SessionState struct {
	ID      string
	Client  string // as it calls itself
	Profile string // that it was put under; empty if none
	Started time.Time
}

// Sessions returns the clients' connections, the oldest first.
func (s *Server) Sessions() []SessionState { return s.roster.sessionStates() }

// Tighten puts the calls of a session under one more profile than its tools
// name: from now on a call needs the leave of both, so the session can only
// lose by it. The empty profile takes that back.
func (s *Server) Tighten(session, profile string) error {
	if _, ok := s.o.Gate.View().Profiles.Profile(profile); !ok && profile != "" {
		return noProfile(s.o.Gate.View().Profiles, profile)
	}
	return s.roster.tighten(session, profile)
}

func noProfile(of *profiles.Set, name string) error {
	return fmt.Errorf("there is no profile %q; there are %s", name, strings.Join(of.Names(), ", "))
}

// state is what is known of the run now. What it has done is written before it is
// shown; if that fails, the run ends.
func (r *run) state() RunState {
	_ = r.gate.Flush(context.Background())
	st := RunState{ID: r.id, Session: r.session.id, Client: r.session.client, Requester: r.principal, Profile: r.gate.Bound(), Started: r.started, State: lifecycle.RunRunning, Calls: int(r.made.Load())}
	if r.isDone() {
		st.Ended, st.State = r.end.at, map[string]string{ledger.Done: lifecycle.RunDone, ledger.Failed: lifecycle.RunFailed, ledger.Stopped: lifecycle.RunStopped}[outcomeOf(r.end.err)]
		return st
	}
	if r.runner.o.Gate.Broker().Waiting(r.id) > 0 {
		st.State = lifecycle.RunWaiting
	}
	return st
}
