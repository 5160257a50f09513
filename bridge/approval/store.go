package approval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// A StoredRequest is a request that was put to people, with what became of it. It is
// what a [Store] keeps, so that any channel of any process can answer it.
type StoredRequest struct {
	Request
	// Bridge is the process whose run waits for the verdict.
	Bridge string `json:"bridge"`
	// Votes are the approvals so far, if one is not enough.
	Votes []Verdict `json:"votes,omitempty"`
	// Relayed are verdicts that other processes have relayed, in the order in
	// which they arrived. They do not count until the process that asked has
	// judged them; see relay.go.
	Relayed []RelayedVerdict `json:"brought,omitempty"`
	// Verdict settles the request. It is set once.
	Verdict *Verdict `json:"verdict,omitempty"`
}

// Open reports whether the request can still be answered.
func (e *StoredRequest) Open(now time.Time) bool { return e.Verdict == nil && now.Before(e.Until) }

// Errors for a verdict that settles nothing. None of them changes anything.
var (
	ErrUnknown = errors.New("there is no such request")
	ErrDigest  = errors.New("the verdict is about other calls than the request")
)

// A RefusedError says why a verdict may not settle its request or does not count.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// A SettledError is the error of a verdict that came too late; it has the one
// that came first.
type SettledError struct{ Verdict Verdict }

func (e *SettledError) Error() string {
	if by := e.Verdict.Stopped; by != "" {
		return fmt.Sprintf("it was settled before: %s stopped the run at %s", by, e.Verdict.Time.Format("15:04:05"))
	}
	answer := "no"
	if e.Verdict.Approve {
		answer = "yes"
	}
	by := e.Verdict.By
	if by == "" {
		by = "nobody (" + e.Verdict.Channel + ")"
	}
	return fmt.Sprintf("it was settled before: %s said %s at %s", by, answer, e.Verdict.Time.Format("15:04:05"))
}

// answer applies a person's verdict to the request. Every verdict that is to
// count passes here, in one transaction with what it changes: this is where a
// request is settled exactly once, and where the verdict's author is checked
// against the current approvers. Earlier approvals are counted anew by them.
func (e *StoredRequest) answer(about canon.Digest, v Verdict, now time.Time, people *Approvers) error {
	if e.Digest() != about {
		return ErrDigest
	}
	if e.Verdict != nil {
		return &SettledError{*e.Verdict}
	}
	if !now.Before(e.Until) {
		e.settle(Verdict{Reason: Timeout, Channel: "timeout"}, now)
		return &SettledError{*e.Verdict}
	}
	v, err := people.judge(e.Request, v, now)
	if err == nil {
		err = v.Valid(e.Request, v.Time)
	}
	if err != nil {
		return &RefusedError{err}
	}
	v = v.withEdit(e.Request)
	v.Time = now
	if !v.Approve || len(e.Decision.Quorums) == 0 {
		e.settle(v, now)
		return nil
	}
	e.Votes = people.Standing(e.Request, e.Votes, now)
	return e.vote(v, now)
}

// settle sets the verdict.
func (e *StoredRequest) settle(v Verdict, now time.Time) {
	if v.Time.IsZero() {
		v.Time = now
	}
	v.Request = e.ID
	e.Verdict = &v
}

// vote counts one of several approvals. The last one needed settles the request,
// in the names of all.
func (e *StoredRequest) vote(v Verdict, now time.Time) error {
	for _, cast := range e.Votes {
		if cast.By == v.By {
			return &RefusedError{fmt.Errorf("%s has said yes already; others are needed", v.By)}
		}
	}
	before := e.Missing()
	e.Votes = append(slices.Clone(e.Votes), v)
	if !slices.ContainsFunc(e.Decision.Quorums, func(q profiles.Quorum) bool {
		return len(tally(q, e.Votes)) > len(tally(q, e.Votes[:len(e.Votes)-1]))
	}) {
		e.Votes = e.Votes[:len(e.Votes)-1]
		return &RefusedError{fmt.Errorf("this yes counts for nothing: there are %s", before)}
	}
	if e.Missing() != "" {
		return nil
	}
	all := Verdict{Approve: true, Scope: Once, Strong: true, Channel: v.Channel}
	var names, lent, words []string
	for _, cast := range e.Votes {
		names = append(names, cast.By)
		if cast.For != "" {
			lent = append(lent, cast.For)
		}
		if cast.Text != "" {
			words = append(words, cast.By+": "+cast.Text)
		}
	}
	all.By, all.For, all.Text = strings.Join(names, " and "), strings.Join(lent, " and "), strings.Join(words, "; ")
	e.settle(all, now)
	return nil
}

// Missing says which approvals there are and which are needed; empty when none
// is.
func (e *StoredRequest) Missing() string {
	var missing []string
	for _, q := range e.Decision.Quorums {
		have := len(tally(q, e.Votes))
		if have >= q.Need {
			continue
		}
		text := fmt.Sprintf("%d of %d yeses", have, q.Need)
		if len(q.Of) > 0 {
			text += " of " + strings.Join(q.Of, ", ")
		}
		if q.InOrder {
			text += ", next " + q.Of[have]
		}
		missing = append(missing, text)
	}
	return strings.Join(missing, "; ")
}

// tally returns the votes that count for a quorum: each stands for one of the
// people that the quorum names by name, group or role, in its order if it has
// one. Whoever decides in another's name counts as that other person, who then
// has no vote of their own.
func tally(q profiles.Quorum, votes []Verdict) []Verdict {
	var counted []Verdict
	used := map[string]bool{}
	for _, v := range votes {
		wanted := func(name string, words []string) bool {
			is := func(who string) bool { return name == who || slices.Contains(words, who) }
			switch {
			case used[name] || used[v.By]:
				return false
			case q.InOrder:
				return len(counted) < len(q.Of) && is(q.Of[len(counted)])
			default:
				return len(q.Of) == 0 || slices.ContainsFunc(q.Of, is)
			}
		}
		name := ""
		if v.For == "" && wanted(v.By, v.Roles) {
			name = v.By
		}
		for _, other := range slices.Sorted(maps.Keys(v.Lent)) {
			if name == "" && wanted(other, v.Lent[other]) {
				name = other
			}
		}
		if name != "" {
			used[name], used[v.By] = true, true
			counted = append(counted, v)
		}
	}
	return counted
}

// A Store keeps requests, their verdicts, and grants. Several processes may
// share one, and its methods may be called concurrently. Once a method has
// returned without error, its change is seen by every later call of any process
// and, if the store is durable at all, survives a crash.
type Store interface {
	// Put stores a new request.
	Put(ctx context.Context, e StoredRequest) error
	// Update changes one request and returns the result. All other updates, in
	// whatever process, wait meanwhile: of two that settle a request, one sees the
	// other's verdict. An error of change is returned and leaves the request as it
	// was; change may be called more than once. ErrUnknown means that there is no
	// such request.
	Update(ctx context.Context, id string, change func(*StoredRequest) error) (StoredRequest, error)
	// Requests returns the requests that pass a filter, the oldest first.
	Requests(ctx context.Context, f Filter) ([]StoredRequest, error)
	// Changed returns a channel that is closed after anyone next changes a request,
	// a grant or a pending configuration; if another process does, within 250 ms.
	Changed() <-chan struct{}

	// AddGrant stores a new grant.
	AddGrant(ctx context.Context, g Grant) error
	// Grants returns all grants, the oldest first.
	Grants(ctx context.Context) ([]Grant, error)
	// UpdateGrant changes one grant as Update changes a request. A grant with no
	// uses left is dropped.
	UpdateGrant(ctx context.Context, id string, change func(*Grant) error) error
	// DropGrants drops the grants for which drop returns true.
	DropGrants(ctx context.Context, drop func(Grant) bool) error

	// ChangePendingConfig replaces the pending configuration of a configuration
	// file; all other changes wait meanwhile. change gets the present one, or nil,
	// and returns the new one, or nil, without modifying its argument. An error
	// leaves everything as it was. ChangePendingConfig returns what change returned
	// last.
	ChangePendingConfig(ctx context.Context, file string, change func(*PendingConfig) (*PendingConfig, error)) (*PendingConfig, error)

	// Forget drops the requests that were settled or ran out before a time.
	Forget(ctx context.Context, before time.Time) error
}

// rereadAfter is how long to wait before reading a request again that could not be
// read: there may be no further change that would cause it to be read.
const rereadAfter = 250 * time.Millisecond

// closedAfter returns a channel that is closed after a duration.
func closedAfter(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}

// A Filter selects requests. Its zero value selects all.
type Filter struct {
	ID   string    // only this one
	Run  string    // only those of this run
	Open time.Time // only those that could still be answered at this time; zero means all
	// Newest, if above zero, limits the result to that many of the newest.
	Newest int
}

// Passes reports whether a request passes the filter, Newest aside.
func (f Filter) Passes(e *StoredRequest) bool {
	return (f.ID == "" || e.ID == f.ID) && (f.Run == "" || e.Run == f.Run) && (f.Open.IsZero() || e.Open(f.Open))
}

// Memory is a Store that lasts as long as the process. Its zero value is empty.
// Beyond a thousand requests it forgets the oldest settled ones.
type Memory struct {
	mu      sync.Mutex
	entries []StoredRequest // the oldest first
	grants  []Grant
	held    map[string]*PendingConfig
	changed chan struct{} // nil until somebody asks
}

const keepEntries = 1000

// Put stores a new request.
func (m *Memory) Put(_ context.Context, e StoredRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.findLocked(e.ID) >= 0 {
		return fmt.Errorf("there is a request %s already", e.ID)
	}
	m.entries = append(m.entries, e.Clone())
	if len(m.entries) > keepEntries { // drop the oldest settled one
		if i := slices.IndexFunc(m.entries, func(e StoredRequest) bool { return e.Verdict != nil }); i >= 0 {
			m.entries = slices.Delete(m.entries, i, i+1)
		}
	}
	m.changedLocked()
	return nil
}

// Update changes one request.
func (m *Memory) Update(_ context.Context, id string, change func(*StoredRequest) error) (StoredRequest, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.findLocked(id)
	if i < 0 {
		return StoredRequest{}, ErrUnknown
	}
	e := m.entries[i].Clone()
	if err := change(&e); err != nil {
		return m.entries[i].Clone(), err
	}
	m.entries[i] = e.Clone()
	m.changedLocked()
	return e, nil
}

// Requests returns requests, the oldest first.
func (m *Memory) Requests(_ context.Context, f Filter) ([]StoredRequest, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []StoredRequest
	for i := len(m.entries) - 1; i >= 0 && (f.Newest <= 0 || len(all) < f.Newest); i-- {
		if e := &m.entries[i]; f.Passes(e) {
			all = append(all, e.Clone())
		}
	}
	slices.Reverse(all)
	return all, nil
}

// Changed returns a channel that the next change closes.
func (m *Memory) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return m.changed
}

// AddGrant stores a new grant.
func (m *Memory) AddGrant(_ context.Context, g Grant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grants = append(m.grants, g)
	m.changedLocked()
	return nil
}

// Grants returns all grants.
func (m *Memory) Grants(context.Context) ([]Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.grants), nil
}

// UpdateGrant changes one grant.
func (m *Memory) UpdateGrant(_ context.Context, id string, change func(*Grant) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.grants, func(g Grant) bool { return g.ID == id })
	if i < 0 {
		return ErrUnknown
	}
	g := m.grants[i]
	if err := change(&g); err != nil {
		return err
	}
	if m.grants[i] = g; g.Left <= 0 {
		m.grants = slices.Delete(m.grants, i, i+1)
	}
	m.changedLocked()
	return nil
}

// DropGrants drops grants.
func (m *Memory) DropGrants(_ context.Context, drop func(Grant) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.grants)
	if m.grants = slices.DeleteFunc(m.grants, drop); len(m.grants) < n {
		m.changedLocked()
	}
	return nil
}

// Forget drops requests that have ended.
func (m *Memory) Forget(_ context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = slices.DeleteFunc(m.entries, func(e StoredRequest) bool { return e.endsAt().Before(before) })
	return nil
}

func (m *Memory) findLocked(id string) int {
	return slices.IndexFunc(m.entries, func(e StoredRequest) bool { return e.ID == id })
}

func (m *Memory) changedLocked() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// endsAt returns when the request was settled or will run out.
func (e *StoredRequest) endsAt() time.Time {
	if e.Verdict != nil {
		return e.Verdict.Time
	}
	return e.Until
}

// Clone copies the request deeply enough that changing the copy leaves the
// original alone.
func (e *StoredRequest) Clone() StoredRequest {
	c := *e
	c.Items, c.Votes, c.Relayed = slices.Clone(e.Items), slices.Clone(e.Votes), slices.Clone(e.Relayed)
	if e.Verdict != nil {
		v := *e.Verdict
		c.Verdict = &v
	}
	return c
}
