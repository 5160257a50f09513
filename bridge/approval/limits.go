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
}

// After a no the next question is asked at once, but not for ever: what a run
// asks after that many noes of people is refused unasked. A dialog that brought
// no answer counts as one: somebody closes them.
const (
	maxToolDenials   = 3 // to calls of one tool
	maxDenialsInARow = 5 // to whatever it asks, with no yes in between
)

// cooldown are how often people said no to a run, or nothing.
type cooldown struct {
	inARow int
	tools  map[string]int // by path
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
	if l.BudgetTime == 0 {
		l.BudgetTime = 10 * time.Minute
	}
	return l
}

// ErrFlood is what Ask returns when a run has asked in vain so often that it
// must be stopped.
var ErrFlood = errors.New("the run was stopped: it asked for too many calls that were refused")

// fullLocked reports whether as many requests are open as there may be beside
// r. Each no of a person leaves its run one fewer, so that no more than
// maxDenialsInARow are asked in vain however many come at once.
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
	vain := run + b.cooldowns[r.Run].inARow
	return run >= b.limits.PerRun || vain >= max(b.limits.PerRun, maxDenialsInARow) || session >= b.limits.PerSession || all >= b.limits.PerBridge
}

// refuseLocked answers without asking: a run is not asked the same twice
// after a no, nor anything after many, a session has a budget, what cannot be
// open may not have to wait, and a flood stops the run.
func (b *Broker) refuseLocked(r Request) (Verdict, error, bool) {
	v, ok := b.denied[r.Run][r.Items[0].Key]
	if !ok {
		v, ok = b.cooldownLocked(r)
	}
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
	b.refusals[r.Run]++
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
	if b.refusals[run] > b.limits.Flood {
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

// cooldownLocked refuses what comes after so many noes of people that they need
// not be asked again.
func (b *Broker) cooldownLocked(r Request) (Verdict, bool) {
	said := b.cooldowns[r.Run]
	v := Verdict{Reason: RateLimited, Final: true, Channel: "limit", Time: time.Now()}
	switch {
	case said.tools[r.path()] >= maxToolDenials:
		v.Text = fmt.Sprintf("people were asked %d times in vain for this tool in this script: its other calls are refused unasked", maxToolDenials)
	case said.inARow >= maxDenialsInARow:
		v.Text = fmt.Sprintf("people were asked %d times in a row in vain by this script: what else it wants to ask is refused", maxDenialsInARow)
	default:
		return Verdict{}, false
	}
	return v, true
}

// countDenialLocked counts the noes of people to a run.
func (b *Broker) countDenialLocked(r Request, v Verdict) {
	said := b.cooldowns[r.Run]
	switch {
	case v.Approve:
		said.inARow = 0
	case v.Reason == ElicitationDeclined, v.Reason == Declined, v.Reason == NoApprover && v.Channel == "elicitation":
		said.inARow++
		if said.tools == nil {
			said.tools = map[string]int{}
		}
		said.tools[r.path()]++
	}
	b.cooldowns[r.Run] = said
}
