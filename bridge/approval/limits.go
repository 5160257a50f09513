package approval

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"codemode-bridge/profiles"
)

// Limits bound how much people are asked. Zero fields mean the defaults.
type Limits struct {
	PerRun     int           // open requests of a run; 5. More wait their turn
	PerSession int           // open requests of a session; 20
	PerBridge  int           // open requests in all; 200
	Budget     int           // new questions of a session in BudgetTime; 20. After that low and medium risk is refused
	BudgetTime time.Duration // 10 minutes
	Flood      int           // refused questions of one run, after which it is stopped; 50
	Refuse     bool          // what would have to wait its turn is refused instead
	// BackOff is how long a session's next question waits after a person's
	// no; 1 s. It doubles with every no, up to MaxBackOff, and a yes ends it.
	BackOff    time.Duration
	MaxBackOff time.Duration // 1 minute
}

func (l Limits) orDefaults() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{{&l.PerRun, 5}, {&l.PerSession, 20}, {&l.PerBridge, 200}, {&l.Budget, 20}, {&l.Flood, 50}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&l.BudgetTime, 10 * time.Minute}, {&l.BackOff, time.Second}, {&l.MaxBackOff, time.Minute}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return l
}

// ErrFlood is what Ask returns when a run has asked in vain so often that it
// must be stopped.
var ErrFlood = errors.New("the run was stopped: it asked for too many calls that were refused")

// A pause is what a person's no earns them: the session's next question waits.
type pause struct {
	until time.Time
	next  time.Duration // how long the one after the next no is
}

// roomLocked reports whether one more request may be open.
func (b *Broker) roomLocked(r Request) bool {
	return !time.Now().Before(b.spared[r.session()].until) && !b.fullLocked(r)
}

// fullLocked reports whether as many requests are open as there may be beside
// r.
func (b *Broker) fullLocked(r Request) bool {
	run, session, all := 0, 0, 0
	for _, o := range b.open {
		if !o.asked {
			continue
		}
		all++
		if o.request.Run == r.Run {
			run++
		}
		if o.request.session() == r.session() {
			session++
		}
	}
	return run >= b.limits.PerRun || session >= b.limits.PerSession || all >= b.limits.PerBridge
}

// refuseLocked answers without asking: a run is not asked the same twice
// after a no, a session has a budget, what cannot be open may not have to wait,
// and a flood stops the run.
func (b *Broker) refuseLocked(r Request) (Verdict, error, bool) {
	v, ok := b.refused[r.Run][r.Items[0].Key]
	if !ok && r.Decision.Risk <= profiles.Medium && b.overBudgetLocked(r.session()) {
		v = Verdict{Reason: RateLimited, Channel: "limit", Time: time.Now(),
			Text: fmt.Sprintf("%d questions in %v are enough", b.limits.Budget, b.limits.BudgetTime)}
		ok = true
	}
	if !ok && b.limits.Refuse && b.fullLocked(r) && b.joinableLocked(r) == nil {
		v = Verdict{Reason: RateLimited, Channel: "limit", Time: time.Now(), Text: "as many questions are open as may be"}
		ok = true
	}
	if !ok {
		return Verdict{}, nil, false
	}
	b.vain[r.Run]++
	return v, b.floodedLocked(r.Run), true
}

// flooded returns ErrFlood if a verdict is one refusal too many for its run.
func (b *Broker) flooded(run string, v Verdict) error {
	if v.Approve {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.floodedLocked(run)
}

func (b *Broker) floodedLocked(run string) error {
	if b.vain[run] > b.limits.Flood {
		return ErrFlood
	}
	return nil
}

// overBudgetLocked reports whether a session has used up its questions.
func (b *Broker) overBudgetLocked(session string) bool {
	since := time.Now().Add(-b.limits.BudgetTime)
	recent := slices.DeleteFunc(b.asked[session], func(t time.Time) bool { return !t.After(since) })
	if len(recent) == 0 {
		delete(b.asked, session)
		return false
	}
	b.asked[session] = recent
	return len(recent) >= b.limits.Budget
}

// spareLocked lets a person who said no wait for the session's next question:
// the longer, the more often they say it.
func (b *Broker) spareLocked(session string, v Verdict) {
	switch p := b.spared[session]; {
	case v.Approve:
		delete(b.spared, session)
	case v.Reason == ElicitationDeclined || v.Reason == Declined:
		p.next = min(max(p.next, b.limits.BackOff), b.limits.MaxBackOff)
		b.spared[session] = pause{until: time.Now().Add(p.next), next: 2 * p.next}
		time.AfterFunc(p.next, b.admit)
	}
}
