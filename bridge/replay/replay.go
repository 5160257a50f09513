// Package replay brings a script that is run again back to where it was.
//
// A script does the same whenever it gets the same answers in the same order, at
// the same times of its clock. So a [Replay] knows which calls the script made the
// first time and in which turn each was answered. It intercepts every call and timer
// of the second run, holds it until its turn comes, and answers it from the record:
//
//	script ──call──▶ Call ──▶ recorded answer: given in its turn
//	                  │       else: waits until the replay is complete, then live
//	script ──timer─▶ Timer ─▶ recorded: fires in its turn; else: runs from then on
//
// No call goes live before the script has repeated everything on record. A script
// that does something else, or leaves out something that it did before, diverges:
// its run ends with a [DivergedError].
//
// The package knows nothing of scripts or journals, and of calls only their names:
// its user keeps the answers and supplies them. The order of answers is kept as
// [AppendTurns] writes it.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// A DivergedError ends a run that was run again and did not do what it had done
// before.
type DivergedError struct {
	Call    int    // the first that differs; 0 if it is none
	Message string // what differs
}

func (e *DivergedError) Error() string {
	return "the script was run again to go on, and did not do what it had done before: " + e.Message
}

// A Call is what tells one call of a script from others.
type Call struct {
	Op     string // what kind of call it is
	Name   string // of what is called
	Digest string // of the arguments
}

// differs says how a call differs from what it was; "" if it is the same.
func (was Call) differs(is Call) string {
	switch {
	case was.Op != is.Op || was.Name != is.Name:
		return fmt.Sprintf("was %s %q, and is %s %q now", was.Op, was.Name, is.Op, is.Name)
	case was.Digest != is.Digest:
		return fmt.Sprintf("of %s has other arguments", is.Name)
	}
	return ""
}

// A Past is a call that was made before.
type Past struct {
	Call
	Answered bool // else it was only sent
}

// Options say what is replayed and who is told of it. All of them are required.
// The functions are called with a lock held: they must not call the Replay.
type Options struct {
	Calls map[int]Past // by number, timers not included
	Turns []Turn       // in order
	// Now is the clock for answers that had no turn.
	Now func() time.Time
	// Moves is called before the script gets an answer, which may move it.
	Moves func()
	// CaughtUp is called once, when the script is where it was, before any call
	// goes on.
	CaughtUp func()
	// Diverged is called once, at most. It ends the run.
	Diverged func(*DivergedError)
	// Over is closed when the run has ended.
	Over <-chan struct{}
}

// A Replay is under way until the script is where it was. Its methods may be
// called by any number of goroutines.
type Replay struct {
	o      Options
	caught chan struct{} // closed when the script is where it was

	mu      sync.Mutex
	next    int             // the place of the next turn
	turned  map[int]bool    // calls that have a turn
	left    map[int]bool    // calls that are kept and were not made again
	arrived map[int]arrival // calls whose turn is to come
	calls   int             // of arrived, timers not counted
	waiting int             // calls that wait until the script is where it was
	timers  []timer         // that run from then on
	idle    int             // open calls while the script can do nothing more; 0 while it may
	moves   int             // counts whatever moves the script or was made by it
	over    bool            // caught up, or diverged
}

// An arrival is a call that was made again, or a timer that was set again.
type arrival struct {
	give  func(at time.Time) error
	timer bool
}

type timer struct {
	call int
	wait time.Duration
	fire func(at time.Time)
}

// New begins a replay. Where there is nothing to replay, the script is where it
// was at once.
func New(o Options) *Replay {
	p := &Replay{o: o, caught: make(chan struct{}), turned: map[int]bool{}, left: map[int]bool{}, arrived: map[int]arrival{}}
	for call := range o.Calls {
		p.left[call] = true
	}
	for _, t := range o.Turns {
		p.left[t.Call], p.turned[t.Call] = true, true
	}
	p.advanceLocked()
	return p
}

// A Found says what is to be done with a call.
type Found struct {
	Live bool // it is to be made: the script is where it was
	Lost bool // it was sent before, and its answer is not known
}

// Call is told of the script's call of that number. If it was answered before, give
// is called when its turn comes, and an error of give is a divergence. Any other call
// waits until the script is where it was, and is live then, or until ctx ends.
func (p *Replay) Call(ctx context.Context, number int, c Call, give func(at time.Time) error) Found {
	p.mu.Lock()
	p.moves++
	past, known := p.o.Calls[number]
	switch {
	case !known && p.turned[number]:
		p.divergeLocked(number, fmt.Sprintf("call %d was a timer, and is %s now", number, c.Name))
	case !known:
	case past.differs(c) != "":
		p.divergeLocked(number, fmt.Sprintf("call %d %s", number, past.differs(c)))
	case !past.Answered && p.turned[number]:
		p.divergeLocked(number, fmt.Sprintf("the answer to call %d (%s) could not be kept", number, c.Name))
	}
	delete(p.left, number)
	if past.Answered {
		p.arrived[number] = arrival{give: give}
		p.calls++
		p.advanceLocked()
		p.mu.Unlock()
		return Found{}
	}
	p.waiting++
	p.advanceLocked()
	p.mu.Unlock()
	select {
	case <-p.caught:
		return Found{Live: true, Lost: known}
	case <-ctx.Done():
		return Found{}
	}
}

// Timer is told of a timer of the script, and reports whether the replay serves it,
// as it does until the script is where it was. fire is called in the timer's turn,
// with what the clock showed; if it had no turn, after wait, with the zero time.
func (p *Replay) Timer(number int, wait time.Duration, fire func(at time.Time)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.moves++
	switch past, known := p.o.Calls[number]; {
	case known:
		p.divergeLocked(number, fmt.Sprintf("call %d was %s, and is a timer now", number, past.Name))
	case p.turned[number]:
		delete(p.left, number)
		p.arrived[number] = arrival{func(at time.Time) error { fire(at); return nil }, true}
	default:
		p.timers = append(p.timers, timer{number, wait, fire})
	}
	p.advanceLocked()
	return true
}

// Idles notes that the script can do nothing until one of so many open calls is
// answered.
func (p *Replay) Idles(open int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = open
	p.advanceLocked()
}

// UnderWay reports whether the script is not yet where it was: then nothing was
// sent.
func (p *Replay) UnderWay() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.over
}

// Unmet says what the script, which has ended, did not do again; nil if nothing.
func (p *Replay) Unmet() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || len(p.left) == 0 {
		return nil
	}
	return &DivergedError{0, fmt.Sprintf("it ended before it made %s", p.missing())}
}

// advanceLocked gives the answers whose turn has come, and ends the replay when
// the script is where it was, or cannot get there.
func (p *Replay) advanceLocked() {
	for !p.over && p.next < len(p.o.Turns) {
		t := p.o.Turns[p.next]
		if _, here := p.arrived[t.Call]; !here {
			break
		}
		p.next++
		p.giveLocked(t.Call, t.At)
	}
	if !p.over && p.next == len(p.o.Turns) {
		// What was answered without a turn: nothing came of it, so the order is free.
		for _, call := range slices.Sorted(maps.Keys(p.arrived)) {
			p.giveLocked(call, p.o.Now())
		}
		if len(p.left) == 0 && !p.over {
			p.over = true
			p.o.CaughtUp() // before a call goes on: its answer is a turn of its own
			close(p.caught)
			p.startTimersLocked()
		}
	}
	// The script waits, and every call that it has open is here.
	if here := len(p.arrived) + p.waiting + len(p.timers); !p.over && p.idle > 0 && here >= p.idle {
		p.doubtLocked()
	}
}

// doubtLocked ends the run unless it moves within Patience: an answer may still have
// been on its way when the script was said to wait.
func (p *Replay) doubtLocked() {
	moves := p.moves
	time.AfterFunc(Patience, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.moves == moves {
			p.divergeLocked(0, "it did not make "+p.missing()+" again")
		}
	})
}

// Patience is how long a script that could move takes at most to show it.
const Patience = 3 * time.Second

// giveLocked gives a call its answer.
func (p *Replay) giveLocked(call int, at time.Time) {
	a := p.arrived[call]
	delete(p.arrived, call)
	if !a.timer {
		p.calls--
	}
	p.idle = 0
	p.moves++
	p.o.Moves()
	if err := a.give(at); err != nil {
		p.divergeLocked(call, err.Error())
	}
}

// missing names the first call that was not made again.
func (p *Replay) missing() string {
	all := slices.Sorted(maps.Keys(p.left))
	if len(all) == 0 {
		return "a call"
	}
	if past, known := p.o.Calls[all[0]]; known {
		return fmt.Sprintf("call %d (%s)", all[0], past.Name)
	}
	return fmt.Sprintf("call %d (a timer)", all[0])
}

// startTimersLocked starts the timers that were set when the script was where it
// was, in the order of their times. The goroutine ends with the last of them, or
// with the run.
func (p *Replay) startTimersLocked() {
	timers := p.timers
	p.timers = nil
	slices.SortStableFunc(timers, func(a, b timer) int {
		return cmp.Or(cmp.Compare(a.wait, b.wait), cmp.Compare(a.call, b.call))
	})
	if len(timers) == 0 {
		return
	}
	go func() {
		began := time.Now()
		for _, t := range timers {
			select {
			case <-time.After(t.wait - time.Since(began)):
				t.fire(time.Time{})
			case <-p.o.Over:
				return
			}
		}
	}()
}

// divergeLocked ends the run.
func (p *Replay) divergeLocked(call int, why string) {
	if !p.over {
		p.over = true
		p.o.Diverged(&DivergedError{call, why})
	}
}
