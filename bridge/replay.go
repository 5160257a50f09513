package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"
)

// A DivergedError ends a run that was run again and did not do what it had
// done before.
type DivergedError struct {
	Call    int    // the first that differs; 0 if it is none
	Message string // what differs
}

func (e *DivergedError) Error() string {
	return "the script was run again to go on, and did not do what it had done before: " + e.Message
}

// A past is an earlier part of a run, as its journal has it.
type past struct {
	beginning
	names    *sandbox.Names
	policy   *profiles.Set // that it began with; nil: an older release kept none
	calls    map[int]*pastCall
	turns    []turn
	profiles []string // the profiles that bound the session beside the run's own, at last
	bytes    int64    // that its journal has
}

// A pastCall is a call that was made then.
type pastCall struct {
	*entry
	answered bool // else it was only sent
}

// readPast reads a run's entries. What was kept twice, since nobody could tell
// whether it was kept, counts once.
func readPast(entries []ledger.Entry) (past, error) {
	p := past{calls: map[int]*pastCall{}}
	for i, e := range entries {
		if (e.Kind == ledger.Began) != (i == 0) {
			return p, fmt.Errorf("%w: it does not begin once", errEntry)
		}
		switch e.Kind {
		case ledger.Began:
			if err := json.Unmarshal(e.Body, &p.beginning); err != nil {
				return p, fmt.Errorf("%w: %v", errEntry, err)
			}
			var err error
			if p.names, p.policy, err = readCommon(e.Common); err != nil {
				return p, fmt.Errorf("%w: %v", errEntry, err)
			}
		case ledger.Sent, ledger.Settled, ledger.Noted:
			s, err := decodeEntry(e.Body)
			if err != nil {
				return p, err
			}
			p.profiles = s.Profiles
			if known := p.calls[e.Call]; e.Kind != ledger.Noted && (known == nil || !known.answered) {
				p.calls[e.Call] = &pastCall{s, e.Kind == ledger.Settled}
			}
			if s.First > len(p.turns) {
				return p, fmt.Errorf("%w: turns are missing", errEntry)
			}
			for _, t := range s.Turns[min(len(s.Turns), len(p.turns)-s.First):] {
				p.turns = append(p.turns, t)
				if len(t.Answer) == 0 {
					continue
				}
				answer, err := decodeEntry(t.Answer)
				if err != nil {
					return p, err
				}
				p.calls[t.Call] = &pastCall{answer, true}
			}
		}
	}
	if len(entries) == 0 {
		return p, ledger.ErrNoJournal
	}
	return p, nil
}

// A replay brings a run that is run again to where it was: it gives each call
// the answer that is kept, in the turn that is kept, and lets what comes after
// that go on by itself. No call is sent before all that is kept was met again.
type replay struct {
	past   past
	r      *run
	caught chan struct{} // closed when the script is where it was

	mu      sync.Mutex
	next    int             // the place of the next turn
	turned  map[int]bool    // calls that have a turn
	left    map[int]bool    // calls that are kept and were not made again
	arrived map[int]arrival // calls whose turn is to come
	calls   int             // of arrived, timers not counted
	waiting int             // calls that wait until the script is where it was
	timers  []heldTimer     // that run from then on
	idle    int             // open calls while the script can do nothing more; 0 while it may
	moves   int             // counts whatever moves the script or was made by it
	over    bool            // caught up, or diverged
}

// An arrival is a call that was made again.
type arrival struct {
	give  func(at time.Time) // its answer
	timer bool
}

type heldTimer struct {
	call   int
	wait   time.Duration
	settle func(sandbox.Reply)
}

// recorded is what is known of a call when it is made.
type recorded struct {
	live  bool // it is to be made, not answered from the journal
	again bool // in a run that has paused
	lost  bool // it was sent before and its answer is not known
}

func newReplay(r *run, p past) *replay {
	re := &replay{past: p, r: r, caught: make(chan struct{}), turned: map[int]bool{}, left: map[int]bool{}, arrived: map[int]arrival{}}
	for call := range p.calls {
		re.left[call] = true
	}
	for _, t := range p.turns {
		re.left[t.Call], re.turned[t.Call] = true, true
	}
	re.advanceLocked() // there may be nothing to replay
	return re
}

// call meets a call of the script. Unless it is to be made live, it is answered
// when its turn comes, if it ever does.
func (p *replay) call(ctx context.Context, c sandbox.Call, settle func(sandbox.Reply)) recorded {
	p.mu.Lock()
	p.moves++
	known := p.past.calls[c.Number]
	switch {
	case known == nil && p.turned[c.Number]:
		p.divergeLocked(c.Number, fmt.Sprintf("call %d was a timer, and is %s now", c.Number, c.Name))
	case known == nil:
	case known.differs(c) != "":
		p.divergeLocked(c.Number, fmt.Sprintf("call %d %s", c.Number, known.differs(c)))
	case !known.answered && p.turned[c.Number]:
		p.divergeLocked(c.Number, fmt.Sprintf("the answer to call %d (%s) could not be kept", c.Number, c.Name))
	}
	delete(p.left, c.Number)
	if known != nil && known.answered {
		p.arrived[c.Number] = arrival{give: func(at time.Time) { p.answer(c, known, at, settle) }}
		p.calls++
		p.advanceLocked()
		p.mu.Unlock()
		return recorded{}
	}
	p.waiting++
	p.advanceLocked()
	p.mu.Unlock()
	select {
	case <-p.caught:
		return recorded{live: true, again: true, lost: known != nil}
	case <-ctx.Done():
		return recorded{}
	}
}

// differs says in what a call is another than the one that is kept.
func (k *pastCall) differs(c sandbox.Call) string {
	switch {
	case k.Op != string(c.Op) || k.Name != c.Name:
		return fmt.Sprintf("was %s %q, and is %s %q now", k.Op, k.Name, c.Op, c.Name)
	case k.Digest != argsDigest(c.Args):
		return fmt.Sprintf("of %s has other arguments", c.Name)
	}
	return ""
}

// answer gives a call the answer that is kept. The caller holds p.mu.
func (p *replay) answer(c sandbox.Call, known *pastCall, at time.Time, settle func(sandbox.Reply)) {
	if known.Past != nil {
		p.r.gate.Recall(*known.Past, known.value)
	}
	p.r.session.handles.Restore(known.Items)
	if known.Media != nil {
		content, err := p.r.session.handles.Content(known.Media)
		if err == nil {
			err = p.r.emit(c.Number, content, len(known.Media))
		}
		if err != nil {
			p.divergeLocked(c.Number, fmt.Sprintf("what call %d attached to the answer cannot be attached again: %v", c.Number, err))
			return
		}
	}
	if known.Past == nil && p.r.journal != nil { // its answer travels with its turn again
		if err := p.r.journal.carry(c.Number, known.entry); err != nil {
			p.divergeLocked(c.Number, err.Error())
			return
		}
	}
	p.r.count(0, 1)
	settle(known.reply(at))
}

// timer meets a timer, and reports whether the replay serves it: until the
// script is where it was.
func (p *replay) timer(c sandbox.Call, wait time.Duration, settle func(sandbox.Reply)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.moves++
	switch known := p.past.calls[c.Number]; {
	case known != nil:
		p.divergeLocked(c.Number, fmt.Sprintf("call %d was %s, and is a timer now", c.Number, known.Name))
	case p.turned[c.Number]:
		delete(p.left, c.Number)
		p.arrived[c.Number] = arrival{func(at time.Time) { settle(sandbox.Reply{Time: at}) }, true}
	default:
		p.timers = append(p.timers, heldTimer{c.Number, wait, settle})
	}
	p.advanceLocked()
	return true
}

// idles is told that the script can do nothing until one of so many open calls
// is answered.
func (p *replay) idles(open int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = open
	p.advanceLocked()
}

// advanceLocked gives the answers whose turn has come, and ends the replay when
// the script is where it was, or cannot get there.
func (p *replay) advanceLocked() {
	for !p.over && p.next < len(p.past.turns) {
		t := p.past.turns[p.next]
		if _, here := p.arrived[t.Call]; !here {
			break
		}
		p.next++
		p.giveLocked(t.Call, time.Unix(0, t.At).UTC())
	}
	if !p.over && p.next == len(p.past.turns) {
		// What was answered without a turn: nothing came of it, so the order is free.
		for _, call := range slices.Sorted(maps.Keys(p.arrived)) {
			p.giveLocked(call, p.r.server.o.Now())
		}
		if len(p.left) == 0 && !p.over {
			p.over = true
			p.r.journal.replayed(len(p.past.turns)) // before a call goes on: its answer is a turn of its own
			p.r.update(event{kind: begins})
			close(p.caught)
			p.startTimersLocked()
		}
	}
	// The script waits, and all that it has made, or may make at a time, is here.
	here := len(p.arrived) + p.waiting + len(p.timers)
	if !p.over && p.idle > 0 && (here >= p.idle || p.calls+p.waiting >= p.r.parallel) {
		p.doubtLocked()
	}
}

// doubtLocked ends the run if it stays as it is: that the script waits may have
// been said before an answer reached it.
func (p *replay) doubtLocked() {
	moves := p.moves
	time.AfterFunc(sureAfter, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.moves == moves {
			p.divergeLocked(0, "it did not make "+p.missing()+" again")
		}
	})
}

// sureAfter is how long a script that could move takes at most to show it.
const sureAfter = 3 * time.Second

// giveLocked gives a call its answer.
func (p *replay) giveLocked(call int, at time.Time) {
	a := p.arrived[call]
	delete(p.arrived, call)
	if !a.timer {
		p.calls--
	}
	p.idle = 0
	p.moves++
	p.r.moves()
	a.give(at)
}

// missing names the first call that was not made again.
func (p *replay) missing() string {
	all := slices.Sorted(maps.Keys(p.left))
	if len(all) == 0 {
		return "a call"
	}
	if known := p.past.calls[all[0]]; known != nil {
		return fmt.Sprintf("call %d (%s)", all[0], known.Name)
	}
	return fmt.Sprintf("call %d (a timer)", all[0])
}

// startTimersLocked starts the timers that were set when the script was where
// it was: in the order of their times.
func (p *replay) startTimersLocked() {
	timers := p.timers
	p.timers = nil
	slices.SortStableFunc(timers, func(a, b heldTimer) int {
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
				t.settle(sandbox.Reply{})
			case <-p.r.done:
				return
			}
		}
	}()
}

// divergeLocked ends the run.
func (p *replay) divergeLocked(call int, why string) {
	if !p.over {
		p.over = true
		p.r.stop(&DivergedError{call, why})
	}
}

// underWay reports whether the script is not yet where it was: then nothing was sent.
func (p *replay) underWay() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.over
}

// unmet says what the script has not done again, now that it has ended; nil if
// there is nothing.
func (p *replay) unmet() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || len(p.left) == 0 {
		return nil
	}
	return &DivergedError{0, fmt.Sprintf("it ended before it made %s", p.missing())}
}
