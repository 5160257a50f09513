package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// openCalls are the calls of a script that are not answered yet, including its
// timers. A run has one, under its lock.
type openCalls struct {
	limits   Limits
	made     int               // calls made so far, including timers
	timers   int               // timers among them
	byNumber map[int]*openCall // made and not answered
	args     int               // bytes of their arguments
	active   int               // those that the host works on, without timers
	waiting  []Call            // those beyond Limits.Parallel, in the order of their numbers
}

// An openCall is what is kept of a call until its answer.
type openCall struct {
	args  int  // bytes
	timer bool // not counted as parallel
	aside bool // no longer counted as parallel: see YieldHost
	name  string
	at    analysis.Position
}

// calls returns how many calls were made, without timers.
func (o *openCalls) calls() int { return o.made - o.timers }

// add checks whether a call may come now, and opens it.
func (o *openCalls) add(c wire.Call, args []byte) (Call, error) {
	if c.Number != o.made+1 {
		return Call{}, bad("call number %d after %d", c.Number, o.made)
	}
	o.made++
	timer := c.Op == wire.OpTimer
	if timer {
		o.timers++
	}
	o.args += len(args)
	switch {
	case o.timers > wire.MaxTimers:
		return Call{}, &LimitError{Limit: wire.LimitTimers, Value: count(wire.MaxTimers), Position: c.Position}
	case o.calls() > o.limits.Calls:
		return Call{}, &LimitError{Limit: wire.LimitCalls, Value: count(o.limits.Calls), Position: c.Position}
	case o.args > maxOpenArgs:
		return Call{}, &LimitError{Limit: wire.LimitArgs, Value: size(maxOpenArgs), Position: c.Position}
	}
	o.byNumber[c.Number] = &openCall{args: len(args), timer: timer, at: c.Position, name: title(c.Op, c.Name)}
	return Call{Number: c.Number, Op: c.Op, Name: c.Name, Args: args, Position: c.Position}, nil
}

// admit reports whether the host may begin a call now. A call that it may not
// begin waits until remove returns it.
func (o *openCalls) admit(c Call) bool {
	if o.active >= o.limits.Parallel {
		o.waiting = append(o.waiting, c)
		return false
	}
	o.active++
	return true
}

// remove closes a call because it is answered, and returns it with the call that may
// begin in its place. Either is nil if there is none.
func (o *openCalls) remove(number int) (answered *openCall, next *Call) {
	answered = o.byNumber[number]
	if answered == nil {
		return nil, nil
	}
	delete(o.byNumber, number)
	o.args -= answered.args
	if answered.timer {
		return answered, nil
	}
	if answered.aside {
		return answered, nil
	}
	return answered, o.replace()
}

// yield no longer counts a call as parallel, and returns the call that may begin in
// its place, nil if there is none.
func (o *openCalls) yield(number int) (next *Call) {
	call := o.byNumber[number]
	if call == nil || call.timer || call.aside {
		return nil
	}
	call.aside = true
	return o.replace()
}

// replace ends the work on one call, and returns the one that may begin now.
func (o *openCalls) replace() (next *Call) {
	o.active--
	if len(o.waiting) == 0 || o.active >= o.limits.Parallel {
		return nil
	}
	first := o.waiting[0]
	o.waiting = o.waiting[1:]
	o.active++
	return &first
}

// forget drops all open calls: nobody will answer them.
func (o *openCalls) forget() { o.byNumber, o.waiting = nil, nil }

// onlyTimers reports whether nothing but timers is open.
func (o *openCalls) onlyTimers() bool {
	for _, c := range o.byNumber {
		if !c.timer {
			return false
		}
	}
	return true
}

// newestTimer returns where in the script the newest open timer was set.
func (o *openCalls) newestTimer() (at analysis.Position) {
	newest := 0
	for n, c := range o.byNumber {
		if c.timer && n > newest {
			newest, at = n, c.at
		}
	}
	return at
}

// note makes a remark about calls that nobody answered. Answers that the worker has not
// read when its script ends still count: one refusal may end a script that waits for
// several calls, all of which were refused.
func (o *openCalls) note() string {
	var numbers []int
	for n, c := range o.byNumber {
		if !c.timer {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		return ""
	}
	slices.Sort(numbers)
	var list []string
	for i, n := range numbers {
		if i == maxOpenNamed {
			list = append(list, fmt.Sprintf("and %d more", len(numbers)-i))
			break
		}
		list = append(list, strconv.Itoa(n))
	}
	calls := "calls " + strings.Join(list, ", ") + " were"
	if len(numbers) == 1 {
		calls = "call " + list[0] + " was"
	}
	return "the script ended while " + calls + " not answered: await every call whose effect or answer matters"
}

// maxOpenNamed bounds how many open calls a note names.
const maxOpenNamed = 20
