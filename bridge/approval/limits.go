package approval

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Limits bound how much people are asked. Zero fields mean the defaults.
type Limits struct {
	PerRun     int           // open requests of a run; 5. More wait their turn
	PerSession int           // open requests of a session; 20
	PerBridge  int           // open requests in all; 200
	Budget     int           // new questions of a session in BudgetTime; 20. The next one asks how to go on
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
	tools  map[string]int     // by path
	noMore map[string]Verdict // by path: a denial of every further call of the tool
	asked  int                // questions put to people
	// counted are the requests whose verdicts have been counted: a run that is
	// resumed learns of the earlier ones from the store.
	counted map[string]bool
}

// ErrFlood is what Ask returns when so many of a run's questions were refused
// that the run must be stopped.
var ErrFlood = errors.New("the run was stopped: it asked for too many calls that were refused")

// A limiter decides which calls are refused without asking. The broker's lock
// guards it.
type limiter struct {
	Limits
	asked     map[string][]time.Time     // by session: when questions came up, since somebody last said how to go on
	lists     map[string]bool            // by session: whether people answer what is asked as a list
	denied    map[string]map[Key]Verdict // by run: calls that a verdict refused; by what they do if it stays
	refusals  map[string]int             // by run: calls refused, asked or not
	cooldowns map[string]cooldown        // by run
}

func newLimiter(l Limits) limiter {
	return limiter{Limits: l.orDefaults(), asked: map[string][]time.Time{}, lists: map[string]bool{}, denied: map[string]map[Key]Verdict{},
		refusals: map[string]int{}, cooldowns: map[string]cooldown{}}
}

// A load is how many requests are put to people at this moment: of one run, of one
// session, and in all.
type load struct{ run, session, all int }

// full reports whether so many requests are open that r must wait its turn. Each
// denial lowers its run's bound by one, so that people deny a run no more than
// maxDenialsInARow times, however many questions come at once. While people answer a
// list, the next one is collected; and if the session has used up its budget, one
// question alone asks how to go on.
func (l *limiter) full(r Request, open load) bool {
	if open.session > 0 && (l.lists[r.session()] || l.spent(r.session()) > 0) {
		return true
	}
	unanswered := open.run + l.cooldowns[r.Run].inARow
	return open.run >= l.PerRun || unanswered >= max(l.PerRun, maxDenialsInARow) || open.session >= l.PerSession || open.all >= l.PerBridge
}

// refuse answers r without asking, if a limit says so: after a denial, people are
// not asked the same by one run again, nor anything during its cooldown. If
// [Limits.Refuse] is set, so is a request for which noRoom reports that it would have
// to wait its turn.
func (l *limiter) refuse(r Request, noRoom func() bool) (Verdict, bool) {
	if v, ok := l.refused(r.Run, r.Items[0].Key); ok {
		return v, true
	}
	if v, ok := l.coolingDown(r); ok {
		return v, true
	}
	if l.Refuse && noRoom() {
		return Verdict{Reason: RateLimited, Channel: "limit", Time: time.Now(), Text: "as many questions are open as may be"}, true
	}
	return Verdict{}, false
}

// refused returns the denial that a run got for a call with that key.
func (l *limiter) refused(run string, key Key) (Verdict, bool) {
	v, ok := l.denied[run][key.act()]
	if !ok {
		v, ok = l.denied[run][key]
	}
	return v, ok
}

// denial returns what a person said if that was a no to r, or to every further call of
// its tool: no yes to calls like it outweighs that in the same run.
func (l *limiter) denial(r Request) (Verdict, bool) {
	for _, i := range r.Calls() {
		if v, ok := l.refused(r.Run, i.Key); ok && v.By != "" {
			return v, true
		}
		if v, ok := l.cooldowns[r.Run].noMore[i.Path()]; ok {
			return v, true
		}
	}
	return Verdict{}, false
}

// flood returns ErrFlood if a run was refused once too often.
func (l *limiter) flood(run string) error {
	if l.refusals[run] > l.Flood {
		return ErrFlood
	}
	return nil
}

// spent returns how many questions a session has had if that is all of its budget,
// else 0.
func (l *limiter) spent(session string) int {
	since := time.Now().Add(-l.BudgetTime)
	recent := slices.DeleteFunc(l.asked[session], func(t time.Time) bool { return !t.After(since) })
	if len(recent) == 0 {
		delete(l.asked, session)
		return 0
	}
	if l.asked[session] = recent; len(recent) < l.Budget {
		return 0
	}
	return len(recent)
}

// places returns how many places of the script one question of a session may be
// about.
func (l *limiter) places(session string) int {
	if l.lists[session] {
		return maxLooped
	}
	return MaxPlaces
}

// coolingDown refuses r if people have denied its run so often that they need not
// be asked again.
func (l *limiter) coolingDown(r Request) (Verdict, bool) {
	denials := l.cooldowns[r.Run]
	v := Verdict{Reason: RateLimited, Final: true, Channel: "limit", Time: time.Now()}
	for _, path := range r.Paths() {
		if no, ok := denials.noMore[path]; ok {
			return no, true
		}
	}
	vain := func(path string) bool { return denials.tools[path] >= maxToolDenials }
	switch {
	case slices.ContainsFunc(r.Paths(), vain):
		v.Text = fmt.Sprintf("people were asked %d times in vain for this tool in this script: its other calls are refused unasked", maxToolDenials)
	case denials.inARow >= maxDenialsInARow:
		v.Text = fmt.Sprintf("people were asked %d times in a row in vain by this script: what else it wants to ask is refused", maxDenialsInARow)
	default:
		return Verdict{}, false
	}
	return v, true
}

// number says in a request that is put to people now how many there were before.
func (l *limiter) number(r *Request) {
	r.Before, r.Spent = l.cooldowns[r.Run].asked, l.spent(r.session())
}

// put notes that r is put to people.
func (l *limiter) put(r Request) {
	l.asked[r.session()] = append(l.asked[r.session()], time.Now())
	denials := l.cooldowns[r.Run]
	denials.asked++
	l.cooldowns[r.Run] = denials
}

// settled records what a verdict on a request means for later ones, once. A run does
// not ask about the same calls again, unless nobody denied them.
func (l *limiter) settled(r Request, v Verdict) {
	denials := l.cooldowns[r.Run]
	if v.withdrawn() || r.ID != "" && denials.counted[r.ID] {
		return
	}
	if r.ID != "" {
		if denials.counted == nil {
			denials.counted = map[string]bool{}
		}
		denials.counted[r.ID] = true
		l.cooldowns[r.Run] = denials
	}
	l.countDenial(r, v)
	if !v.Approve {
		l.refusals[r.Run]++
	}
	for _, i := range r.Items {
		if said := v.About(i.Call); !said.Approve && said.Reason != NoApprover && said.Reason != AuditUnavailable {
			if l.denied[r.Run] == nil {
				l.denied[r.Run] = map[Key]Verdict{}
			}
			key := i.Key
			if said.stays() {
				key = key.act()
			}
			l.denied[r.Run][key] = said
		}
	}
}

// goesOn begins the session's budget anew if somebody has said how to go on.
func (l *limiter) goesOn(r Request, v Verdict) {
	if r.Spent == 0 || v.By == "" {
		return
	}
	delete(l.asked, r.session())
	if delete(l.lists, r.session()); v.List {
		l.lists[r.session()] = true
	}
}

func (l *limiter) countDenial(r Request, v Verdict) {
	denials := l.cooldowns[r.Run]
	if v.NoMore && !v.Approve {
		denials.noMore = maps.Clone(denials.noMore)
		if denials.noMore == nil {
			denials.noMore = map[string]Verdict{}
		}
		for _, path := range r.Paths() {
			denials.noMore[path] = Verdict{Reason: v.Reason, Text: v.Text, By: v.By, For: v.For, Channel: v.Channel, Time: v.Time, NoMore: true}
		}
	}
	switch {
	case v.Approve:
		denials.inARow = 0
	case v.Reason == ElicitationDeclined, v.Reason == Declined, v.Reason == NoApprover && v.Channel == "elicitation":
		denials.inARow++
		if denials.tools == nil {
			denials.tools = map[string]int{}
		}
		for _, path := range r.Paths() {
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
