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
)

// What those who run the bridge see of its runs, and may do with them: the
// approval page and the HTTP API are made of these methods. None of them can
// answer a question.

// A RunState is what is known of a run at one moment.
type RunState struct {
	ID      string    `json:"run"`
	Session string    `json:"session"`
	Client  string    `json:"client"` // the client's own name for itself
	Profile string    `json:"profile,omitempty"`
	Started time.Time `json:"started"`
	// State is running, asking (a person is waited for), done or failed.
	State   string `json:"state"`
	Calls   int    `json:"calls"`   // made so far
	Settled int    `json:"settled"` // of them, how many have ended
	// Result is what an eval tool would answer, once the run is over.
	Result json.RawMessage `json:"result,omitempty"`
}

func (s RunState) over() bool { return s.State == "done" || s.State == "failed" }

// ErrNoRun is returned for a run that is over and forgotten, or never was.
var ErrNoRun = errors.New("there is no such run")

// Start begins a run that no MCP client asked for. Its questions go to
// approvers, whatever the profile's fallback. The requester is who started it,
// as the caller knows them. The run's answer is kept like that of a run whose
// client has left.
func (s *Server) Start(profile, code string, input json.RawMessage, requester string) (string, error) {
	if profile != "" {
		if _, ok := s.o.Gate.View().Profiles.Profile(profile); !ok {
			return "", fmt.Errorf("there is no profile %q; there are %s", profile, strings.Join(s.o.Gate.View().Profiles.Names(), ", "))
		}
	}
	sess := &session{id: newID("s"), client: "api", owner: requester, brief: true, sandbox: s.o.Pool.Session(), handles: newHandles(s.o.Now), slots: make(chan struct{}, 1), over: true}
	r, err := s.start(sess, gate.Origin{Profile: profile, Reach: gate.ByApprovers}, requester, evalArgs{Code: code, Input: input})
	if err != nil {
		sess.sandbox.Close()
		return "", err
	}
	return r.id, nil
}

// Await returns the state of a run, as soon as it is over or asks a person,
// and at the latest when ctx ends.
func (s *Server) Await(ctx context.Context, id string) (RunState, error) {
	r, ok := s.lookup(id)
	if !ok {
		return RunState{}, ErrNoRun
	}
	changed, end := s.o.Gate.Broker().Watch(id)
	defer end()
	for {
		state := s.state(r)
		if state.over() {
			if text, ok := r.answer().StructuredContent.(json.RawMessage); ok {
				state.Result = text
			}
		}
		if state.State != "running" || ctx.Err() != nil {
			return state, nil
		}
		select {
		case <-r.done:
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Runs returns the runs that are under way, the oldest first, and then those
// whose answers are kept.
func (s *Server) Runs() []RunState {
	s.mu.Lock()
	all := make([]*run, 0, len(s.live)+len(s.ended))
	for _, r := range s.live {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *run) int { return a.started.Compare(b.started) })
	all = append(all, s.ended...)
	s.mu.Unlock()
	states := make([]RunState, len(all))
	for i, r := range all {
		states[i] = s.state(r)
	}
	return states
}

// StopRun ends a run in somebody's name. It reports whether there was one.
func (s *Server) StopRun(id, by string) bool {
	s.mu.Lock()
	r := s.live[id]
	s.mu.Unlock()
	if r == nil {
		return false
	}
	r.stop(fmt.Errorf("%s stopped the run", by))
	return true
}

// Tighten puts the runs of a session under one more profile: from now on a
// call needs the leave of both. Nothing takes that back.
func (s *Server) Tighten(session, profile string) error {
	if _, ok := s.o.Gate.View().Profiles.Profile(profile); !ok {
		return fmt.Errorf("there is no profile %q; there are %s", profile, strings.Join(s.o.Gate.View().Profiles.Names(), ", "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions {
		if sess.id == session {
			if !slices.Contains(sess.tight, profile) {
				sess.tight = append(slices.Clone(sess.tight), profile)
			}
			return nil
		}
	}
	return fmt.Errorf("there is no session %q", session)
}

// tightened are the profiles that bind a session beside the one of its tool.
func (s *Server) tightened(sess *session) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sess.tight
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
	st := RunState{ID: r.id, Session: r.session.id, Client: r.session.client, Profile: r.gate.Profile, Started: r.started, State: "running"}
	r.mu.Lock()
	st.Calls, st.Settled = r.made, r.settled
	r.mu.Unlock()
	select {
	case <-r.done:
		if st.State = "done"; r.err != nil {
			st.State = "failed"
		}
		return st
	default:
	}
	open, err := s.o.Gate.Broker().Entries(context.Background(), approval.Filter{Run: r.id, Open: s.o.Now()})
	if err == nil && len(open) > 0 {
		st.State = "asking"
	}
	return st
}
