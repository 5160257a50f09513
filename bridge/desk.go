package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
)

// What those who run the bridge see of its runs, and may do with them: the
// approval page and the HTTP API are made of these methods. None of them can
// answer a question.

// A RunState is what is known of a run at one moment.
type RunState struct {
	ID        string
	Session   string
	Client    string // the client's own name for itself
	Requester string // whose token it came with
	Profile   string // that binds it; empty if none does
	State     string // one of the words below
	Started   time.Time
	Ended     time.Time
	Calls     int // made so far
	// Result is what an eval tool would answer, once the run is over. Only
	// Run fills it in.
	Result json.RawMessage
}

// How far a run is.
const (
	RunRunning = "running"
	RunWaiting = "waiting" // for a person
	RunPaused  = "paused"  // the same, without a worker: it goes on when it is resumed
	RunDone    = "done"
	RunFailed  = "failed"
	RunStopped = "stopped" // before its script ended
	// RunInterrupted is one whose bridge ended without a word: it goes on when it is
	// resumed.
	RunInterrupted = "interrupted"
)

// Over reports whether the run has ended.
func (s RunState) Over() bool {
	return s.State == RunDone || s.State == RunFailed || s.State == RunStopped
}

// Start begins a run that no MCP client asked for, once the tools of servers
// that have just been started are known. Its questions go to approvers,
// whatever the profile's fallback. The requester is who started it,
// as the caller knows them. The run's answer is kept like that of a run whose
// client has left.
func (s *Server) Start(ctx context.Context, profile, code string, input json.RawMessage, requester string) (string, error) {
	s.o.Ready(ctx)
	if profile != "" {
		if _, ok := s.o.Gate.View().Profiles.Profile(profile); !ok {
			return "", s.noProfile(profile)
		}
	}
	if s.fetched(requester) >= maxStarted {
		return "", fmt.Errorf("%d runs of %s are under way: fetch or stop some first", maxStarted, requester)
	}
	sess := s.loose("api")
	sess.owner, sess.closed = requester, true
	r, err := s.start(sess, gate.Origin{Profile: profile, Reach: gate.ByApprovers}, requester, evalArgs{Code: code, Input: input}, nil)
	if err != nil {
		sess.sandbox.Close()
		return "", err
	}
	return r.id, nil
}

// maxStarted bounds the runs that one requester has started here and that are
// under way: each holds a worker.
const maxStarted = 16

// fetched counts them.
func (s *Server) fetched(requester string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.live {
		if r.fetched && r.principal == requester {
			n++
		}
	}
	return n
}

// Run returns the state of a run that is live, whose answer is kept, or that is
// paused and no bridge has.
func (s *Server) Run(ctx context.Context, id string) (RunState, bool) {
	r, ok := s.lookup(id)
	if !ok {
		paused := s.paused(ctx)
		if i := slices.IndexFunc(paused, func(k ledger.JournaledRun) bool { return k.Run == id }); i >= 0 {
			return s.pausedState(ctx, paused[i]), true
		}
		if r, ok = s.lookup(id); !ok { // it may have been resumed since
			return RunState{}, false
		}
	}
	state := s.state(r)
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
	s.mu.Lock()
	all := slices.Clone(s.ended)
	for _, r := range s.live {
		all = append(all, r)
	}
	s.mu.Unlock()
	var states []RunState
	for _, r := range all {
		states = append(states, s.state(r))
	}
	for _, k := range s.paused(ctx) {
		if !slices.ContainsFunc(all, func(r *run) bool { return r.id == k.Run }) {
			states = append(states, s.pausedState(ctx, k))
		}
	}
	slices.SortStableFunc(states, func(a, b RunState) int { return b.Started.Compare(a.Started) })
	return states
}

// RunsChanged returns a channel that is closed after the next run starts or
// ends. That a run waits for a person is told by its broker.
func (s *Server) RunsChanged() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turned == nil {
		s.turned = make(chan struct{})
	}
	return s.turned
}

// turnLocked tells that a run has started or ended.
func (s *Server) turnLocked() {
	if s.turned != nil {
		close(s.turned)
		s.turned = nil
	}
}

// StopRun ends a run in somebody's name. It reports whether there was one.
func (s *Server) StopRun(id, by string) bool {
	s.mu.Lock()
	r := s.live[id]
	s.mu.Unlock()
	if r == nil {
		return false
	}
	r.stop(&approval.StoppedError{By: by})
	return true
}

// A SessionState is what is known of a client's connection.
type SessionState struct {
	ID      string
	Client  string // as it calls itself
	Profile string // that it was put under; empty if none
	Started time.Time
}

// Sessions returns the clients' connections, the oldest first.
func (s *Server) Sessions() []SessionState {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []SessionState
	for _, sess := range s.sessions {
		all = append(all, SessionState{ID: sess.id, Client: sess.client, Profile: sess.addedProfile, Started: sess.started})
	}
	slices.SortFunc(all, func(a, b SessionState) int { return a.Started.Compare(b.Started) })
	return all
}

// ErrNoSession is returned for a session that is over, or never was.
var ErrNoSession = errors.New("there is no such session")

// Tighten puts the calls of a session under one more profile than its tools
// name: from now on a call needs the leave of both, so the session can only
// lose by it. The empty profile takes that back.
func (s *Server) Tighten(session, profile string) error {
	if _, ok := s.o.Gate.View().Profiles.Profile(profile); !ok && profile != "" {
		return s.noProfile(profile)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions {
		if sess.id == session {
			sess.addedProfile = profile
			return nil
		}
	}
	return ErrNoSession
}

func (s *Server) noProfile(name string) error {
	return fmt.Errorf("there is no profile %q; there are %s", name, strings.Join(s.o.Gate.View().Profiles.Names(), ", "))
}

// addedProfiles are the profiles that bind a session beside the one of its tool.
func (s *Server) addedProfiles(sess *session) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(sess.boundBefore)
	add := func(profile string) {
		if profile != "" && !slices.Contains(all, profile) {
			all = append(all, profile)
		}
	}
	add(sess.addedProfile)
	if twin := s.twinLocked(sess); twin != nil {
		add(twin.addedProfile)
	}
	return all
}

// lookup finds a run that is live or kept, whoever it belongs to.
func (s *Server) lookup(id string) (*run, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.live[id]; ok {
		return r, true
	}
	for _, r := range s.ended {
		if r.id == id {
			return r, true
		}
	}
	return nil, false
}

// state looks at a run.
func (s *Server) state(r *run) RunState {
	st := RunState{ID: r.id, Session: r.session.id, Client: r.session.client, Requester: r.principal, Profile: r.gate.Bound(), Started: r.started, State: RunRunning}
	r.mu.Lock()
	st.Calls = r.made
	r.mu.Unlock()
	select {
	case <-r.done:
		st.Ended, st.State = r.ended, map[string]string{ledger.Done: RunDone, ledger.Failed: RunFailed, ledger.Stopped: RunStopped}[outcomeOf(r.err)]
		return st
	default:
	}
	if s.o.Gate.Broker().Waiting(r.id) > 0 {
		st.State = RunWaiting
	}
	return st
}
