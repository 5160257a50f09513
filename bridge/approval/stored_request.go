package approval

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	// Lease is the one under which that process has the run. Once another has taken the
	// question up under a newer one, it alone changes it. 0: of a run that nobody else
	// can go on with, or of an older release.
	Lease int64 `json:"lease,omitempty"`
	// Votes are the approvals so far, if one is not enough.
	Votes []Verdict `json:"votes,omitempty"`
	// Relayed are verdicts that other processes have relayed, in the order in
	// which they arrived. They do not count until the process that asked has
	// judged them; see relay.go.
	Relayed []RelayedVerdict `json:"brought,omitempty"`
	// Verdict settles the request. It is set once.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Granted reports that the verdict has become a grant, if it is to cover more.
	Granted bool `json:"granted,omitempty"`
}

// Open reports whether the request can still be answered.
func (e *StoredRequest) Open(now time.Time) bool { return e.Verdict == nil && now.Before(e.Until) }

// Errors for a verdict that settles nothing. None of them changes anything.
var (
	ErrUnknown = errors.New("there is no such request")
	ErrDigest  = errors.New("the verdict is about other calls than the request")
)

// ErrNotOwner is the error of a process that asks in the name of a run that another one
// has acquired meanwhile.
var ErrNotOwner = errors.New("another bridge goes on with the run")

// under returns an error if the request is another process's, whose lease is newer.
func (e *StoredRequest) under(lease int64) error {
	if e.Lease > lease {
		return ErrNotOwner
	}
	return nil
}

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

// stands says why the approval that settled the request would not count now; nil
// if it would. A denial always stands, and so does the client's own answer.
func (e StoredRequest) stands(people *Approvers, now time.Time) error {
	v := e.Verdict
	if people == nil || v == nil || !v.Approve || !v.Strong {
		return nil
	}
	if len(e.Decision.Quorums) == 0 {
		_, err := people.judge(e.Request, *v, now)
		return err
	}
	e.Votes = people.Standing(e.Request, e.Votes, now)
	if missing := e.Missing(); missing != "" {
		return fmt.Errorf("of the yeses that it had not all count any more: there are %s", missing)
	}
	return nil
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
