package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"codemode-bridge/bridge/canon"
)

// Bridges with different configurations may share one store, and each has its
// own approvers. A verdict counts by the rules of the bridge that asked, so that
// bridge alone judges it; any other process can only relay it there:
//
//	Settle ── relay ──▶ StoredRequest.Relayed ──▶ judge ──┬── settles, or counts as one of several
//	    ◀───────────────── Outcome ◀──────────────────────┴── does not count, because ...
//
// If no bridge has the run, because it was suspended or its bridge has ended,
// any process with the same configuration judges.

// A RelayedVerdict is a verdict that another process has relayed.
type RelayedVerdict struct {
	ID    string       `json:"id"`
	About canon.Digest `json:"about"` // of the request that its author saw
	// Verdict is the verdict as it was relayed; once it is judged, only its author
	// remains.
	Verdict   Verdict   `json:"verdict"`
	Judgement Judgement `json:"judgement,omitempty"`
	Why       string    `json:"why,omitempty"` // it is void
}

// A Judgement is what became of a relayed verdict.
type Judgement string

const (
	Unjudged Judgement = ""
	Taken    Judgement = "taken"   // it settled the request, or is one of several approvals
	Late     Judgement = "late"    // the request was already settled
	Changed  Judgement = "changed" // it was about another question
	Void     Judgement = "void"    // its author may not give it
)

// Afar begins the name, in StoredRequest.Bridge, of somebody who asks through this store
// and is no process that shares it, such as a laptop at its centre. Whether they are gone
// nobody here knows, so nobody takes over what is theirs.
const Afar = "laptop:"

// maxRelayed bounds the verdicts that are kept with a request.
const maxRelayed = 20

// A RelayedError is not a failure: the verdict was relayed to another process,
// which judges whether it counts.
type RelayedError struct{ ID string }

func (e *RelayedError) Error() string { return "the bridge that asked judges whether this counts" }

// ErrUnjudged means that nobody has judged a verdict yet: the bridge that asked
// is busy or away, and judges it when it comes back, if the request is still open
// by then.
var ErrUnjudged = errors.New("it is kept for the bridge that asked, which has not judged it yet: it counts if that bridge allows it")

// FromOtherConfiguration reports whether a request belongs to another
// configuration, whose approvers then judge its verdicts.
func (b *Broker) FromOtherConfiguration(r Request) bool {
	return r.ConfigurationID() != b.o.Configuration
}

// relay stores a verdict for the process that judges it.
func (e *StoredRequest) relay(about canon.Digest, v Verdict) (id string, err error) {
	switch {
	case e.Digest() != about:
		return "", ErrDigest
	case e.Verdict != nil:
		return "", &SettledError{*e.Verdict}
	case !v.Time.Before(e.Until):
		return "", &SettledError{Verdict{Reason: Timeout, Channel: "timeout", Time: e.Until}}
	case v.Credential == "":
		return "", &RefusedError{errors.New("another bridge asked for this call, and it takes the word of those alone who prove to it who they are")}
	}
	if len(e.Relayed) >= maxRelayed { // an author who still waits for a dropped outcome is told that it is unknown
		i := slices.IndexFunc(e.Relayed, func(b RelayedVerdict) bool { return b.Judgement != Unjudged })
		if i < 0 {
			return "", &RefusedError{fmt.Errorf("%d answers wait for the bridge that asked; it takes no more until it has looked at them", maxRelayed)}
		}
		e.Relayed = slices.Delete(e.Relayed, i, i+1)
	}
	one := RelayedVerdict{ID: newID("v"), About: about, Verdict: v}
	e.Relayed = append(e.Relayed, one)
	return one.ID, nil
}

// unjudged reports whether there is a relayed verdict that nobody has judged.
func (e *StoredRequest) unjudged() bool { return len(e.Unjudged()) > 0 }

// Unjudged returns the relayed verdicts that nobody has judged yet, in the order
// in which they arrived, as others may see them.
func (e *StoredRequest) Unjudged() []Verdict {
	var all []Verdict
	for _, b := range e.Relayed {
		if b.Judgement == Unjudged {
			all = append(all, b.Verdict.Shown())
		}
	}
	return all
}

// judgeRelayed judges the relayed verdicts in the order in which they arrived, and
// returns their outcomes.
func (e *StoredRequest) judgeRelayed(people *Approvers, now time.Time) (outcomes []outcome) {
	for i := range e.Relayed {
		one := &e.Relayed[i]
		if one.Judgement != Unjudged {
			continue
		}
		err := error(&RefusedError{errNoApprovers})
		if people != nil {
			err = e.answer(one.About, one.Verdict, now, people)
		}
		said := one.Verdict
		if err == nil && e.Verdict == nil { // a vote, as it was signed here
			said = e.Votes[len(e.Votes)-1]
		}
		outcomes = append(outcomes, outcome{said, err})
		var settled *SettledError
		switch {
		case err == nil:
			one.Judgement = Taken
		case errors.As(err, &settled):
			one.Judgement = Late
		case errors.Is(err, ErrDigest):
			one.Judgement = Changed
		default:
			one.Judgement, one.Why = Void, err.Error()
		}
		v := one.Verdict
		one.Verdict = Verdict{Approve: v.Approve, By: v.By, Channel: v.Channel, Time: v.Time}
	}
	return outcomes
}

var errNoApprovers = errors.New("the bridge that asked knows nobody who answers elsewhere")

// An outcome is what became of a verdict.
type outcome struct {
	verdict Verdict
	err     error
}

// Outcome waits until a verdict relayed to a request is judged, and returns what
// Settle would have returned. If ctx ends first, the error is [ErrUnjudged].
func (b *Broker) Outcome(ctx context.Context, request, relayed string) (StoredRequest, error) {
	for {
		changed := b.store.Changed() // before looking: nothing is missed
		all, err := b.store.Requests(context.WithoutCancel(ctx), Filter{ID: request})
		switch {
		case err != nil:
			return StoredRequest{}, fmt.Errorf("reading what became of a relayed verdict: %w", err)
		case len(all) != 1:
			return StoredRequest{}, ErrUnknown
		}
		e := all[0]
		i := slices.IndexFunc(e.Relayed, func(b RelayedVerdict) bool { return b.ID == relayed })
		if i < 0 {
			return e, ErrUnjudged
		}
		switch one := e.Relayed[i]; one.Judgement {
		case Taken:
			return e, nil
		case Changed:
			return e, ErrDigest
		case Void:
			return e, &RefusedError{errors.New(one.Why)}
		}
		if e.Verdict != nil {
			return e, &SettledError{*e.Verdict}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return e, ErrUnjudged
		}
	}
}
