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
	Budget     int           // new questions of a session in BudgetTime; 20. Beyond that, low and medium risk is refused
	BudgetTime time.Duration // 10 minutes
	Flood      int           // refused questions after which a run is stopped; 50
	Refuse     bool          // refuse a request that would have to wait its turn
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

// After a denial the next question is asked at once, but not forever: after this
// many denials a run is refused without asking. A dialog that was closed without
// an answer counts as a denial.
const (
	maxToolDenials   = 3 // of calls of one tool
	maxDenialsInARow = 5 // of anything the run asks, with no approval in between
)

// A cooldown counts how often people denied what a run asked, or closed the
// dialog.
type cooldown struct {
	inARow int
	tools  map[string]int // by path
}

// ErrFlood is what Ask returns when so many of a run's questions were refused
// that the run must be stopped.
var ErrFlood = errors.New("the run was stopped: it asked for too many calls that were refused")

// A limiter decides which calls are refused without asking. The broker's lock
// guards it.
type limiter struct {
	Limits
	asked     map[string][]time.Time     // by session: when questions came up
	denied    map[string]map[Key]Verdict // by run: calls that a verdict refused
	refusals  map[string]int             // by run: calls refused, asked or not
	cooldowns map[string]cooldown        // by run
}

func newLimiter(l Limits) limiter {
	return limiter{Limits: l.orDefaults(), asked: map[string][]time.Time{}, denied: map[string]map[Key]Verdict{},
		refusals: map[string]int{}, cooldowns: map[string]cooldown{}}
}

// A load is how many requests are put to people at this moment: of one run, of one
// session, and in all.
type load struct{ run, session, all int }

// full reports whether so many requests are open that r must wait its turn. Each
// denial lowers its run's bound by one, so that people deny a run no more than
// maxDenialsInARow times, however many questions come at once.
func (l *limiter) full(r Request, open load) bool {
	unanswered := open.run + l.cooldowns[r.Run].inARow
	return open.run >= l.PerRun || unanswered >= max(l.PerRun, maxDenialsInARow) || open.session >= l.PerSession || open.all >= l.PerBridge
}

// refuse answers r without asking, if a limit says so: after a denial, people are
// not asked the same by one run again, nor anything during its cooldown, and a
// session has a budget. If [Limits.Refuse] is set, so is a request for which
// noRoom reports that it would have to wait its turn.
func (l *limiter) refuse(r Request, noRoom func() bool) (Verdict, bool) {
	if v, ok := l.denied[r.Run][r.Items[0].Key]; ok {
		return v, true
	}
	if v, ok := l.coolingDown(r); ok {
		return v, true
	}
	v := Verdict{Reason: RateLimited, Channel: "limit", Time: time.Now()}
	switch {
	case r.Decision.Risk <= profiles.Medium && l.overBudget(r.session()):
		v.Text = fmt.Sprintf("%d questions in %v are enough", l.Budget, l.BudgetTime)
	case l.Refuse && noRoom():
		v.Text = "as many questions are open as may be"
	default:
		return Verdict{}, false
	}
	return v, true
}

// flood returns ErrFlood if a run was refused once too often.
func (l *limiter) flood(run string) error {
	if l.refusals[run] > l.Flood {
		return ErrFlood
	}
	return nil
}

// overBudget reports whether a session has used up its questions.
func (l *limiter) overBudget(session string) bool {
	since := time.Now().Add(-l.BudgetTime)
	recent := slices.DeleteFunc(l.asked[session], func(t time.Time) bool { return !t.After(since) })
	if len(recent) == 0 {
		delete(l.asked, session)
		return false
	}
	l.asked[session] = recent
	return len(recent) >= l.Budget
}

// coolingDown refuses r if people have denied its run so often that they need not
// be asked again.
func (l *limiter) coolingDown(r Request) (Verdict, bool) {
	denials := l.cooldowns[r.Run]
	v := Verdict{Reason: RateLimited, Final: true, Channel: "limit", Time: time.Now()}
	vain := func(path string) bool { return denials.tools[path] >= maxToolDenials }
	switch {
	case slices.ContainsFunc(r.paths(), vain):
		v.Text = fmt.Sprintf("people were asked %d times in vain for this tool in this script: its other calls are refused unasked", maxToolDenials)
	case denials.inARow >= maxDenialsInARow:
		v.Text = fmt.Sprintf("people were asked %d times in a row in vain by this script: what else it wants to ask is refused", maxDenialsInARow)
	default:
		return Verdict{}, false
	}
	return v, true
}

// settled records what a verdict on a request means for later ones. A run does not
// ask about the same calls again, unless nobody denied them.
func (l *limiter) settled(r Request, v Verdict) {
	l.countDenial(r, v)
	if !v.Approve {
		l.refusals[r.Run]++
	}
	for _, i := range r.Items {
		if said := v.About(i.Call); !said.Approve && said.Reason != NoApprover && said.Reason != AuditUnavailable {
			if l.denied[r.Run] == nil {
				l.denied[r.Run] = map[Key]Verdict{}
			}
			l.denied[r.Run][i.Key] = said
		}
	}
}

func (l *limiter) countDenial(r Request, v Verdict) {
	denials := l.cooldowns[r.Run]
	switch {
	case v.Approve:
		denials.inARow = 0
	case v.Reason == ElicitationDeclined, v.Reason == Declined, v.Reason == NoApprover && v.Channel == "elicitation":
		denials.inARow++
		if denials.tools == nil {
			denials.tools = map[string]int{}
		}
		for _, path := range r.paths() {
			denials.tools[path]++
		}
	}
	l.cooldowns[r.Run] = denials
}

// forgetRun drops what is remembered of a run.
func (l *limiter) forgetRun(run string) {
	delete(l.denied, run)
	delete(l.refusals, run)
	delete(l.cooldowns, run)
}
