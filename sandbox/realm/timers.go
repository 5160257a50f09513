package realm

import (
	"fmt"
	"math"

	"github.com/dop251/goja"

	"codemode-bridge/sandbox/values"
	"codemode-bridge/sandbox/wire"
)

// maxDelay is the longest delay of a timer, as browsers have it.
const maxDelay = math.MaxInt32

// A timer waits for its call to be answered: time passes in the parent, so
// that a replayed run sees it pass in the same order.
type timer struct {
	id       int
	number   int // of the call that it waits for
	ms       int64
	f        goja.Callable
	args     []goja.Value
	interval bool
	cleared  bool
}

// timers are the timers of a realm's script.
type timers struct {
	r    *realm
	byID map[int]*timer
	last int
}

// timerWords are what a script sets and clears timers with.
var timerWords = []string{"setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "clearImmediate", "AbortSignal"}

// install makes the functions of timerWords. AbortSignal, which needs them, is
// package web's.
func (ts *timers) install() {
	world := ts.r.world
	for _, t := range []struct {
		name              string
		interval, delayed bool
	}{{"setTimeout", false, true}, {"setInterval", true, true}, {"setImmediate", false, false}} {
		world.Set(t.name, ts.set(t.name, t.interval, t.delayed))
	}
	for _, name := range []string{"clearTimeout", "clearInterval", "clearImmediate"} {
		world.Set(name, ts.clear(name))
	}
}

// set returns setTimeout or the like. A callback gets the arguments that
// follow the delay; setImmediate has no delay.
func (ts *timers) set(name string, interval, delayed bool) goja.Value {
	r := ts.r
	return r.Function(name, func(c goja.FunctionCall) goja.Value {
		f, ok := goja.AssertFunction(c.Argument(0))
		if !ok {
			panic(r.VM.NewTypeError("%s: the first argument must be a function, got %s", name, values.Describe(c.Argument(0))))
		}
		t := &timer{f: f, interval: interval}
		args := 1
		if delayed {
			args = 2
			if ms := c.Argument(1).ToFloat(); ms > 0 && ms <= maxDelay {
				t.ms = int64(ms)
			}
			if interval {
				t.ms = max(t.ms, 1)
			}
		}
		if len(c.Arguments) > args {
			t.args = append(t.args, c.Arguments[args:]...)
		}
		ts.last++
		t.id = ts.last
		if ts.byID == nil {
			ts.byID = make(map[int]*timer)
		}
		p := &pending{op: wire.OpTimer, label: name, timer: t}
		p.at, p.stack = r.here()
		if err := ts.arm(p); err != nil {
			panic(r.errorValue(p, err))
		}
		ts.byID[t.id] = t
		return r.VM.ToValue(t.id)
	})
}

// arm sends the timer's next call.
func (ts *timers) arm(p *pending) error {
	r := ts.r
	n, err := r.host.Call(wire.OpTimer, "", fmt.Appendf(nil, `{"ms":%d}`, p.timer.ms), p.at)
	if err != nil {
		return err
	}
	p.timer.number, p.number = n, n
	r.pending[n] = p
	return nil
}

// clear returns clearTimeout or the like.
func (ts *timers) clear(name string) goja.Value {
	r := ts.r
	return r.Function(name, func(c goja.FunctionCall) goja.Value {
		id, ok := c.Argument(0).Export().(int64)
		if !ok {
			return goja.Undefined()
		}
		if t := ts.byID[int(id)]; t != nil {
			t.cleared = true
			delete(ts.byID, t.id)
			if _, open := r.pending[t.number]; open {
				delete(r.pending, t.number)
				r.host.Drop(t.number)
			}
		}
		return goja.Undefined()
	})
}

// fire runs a timer's callback, and sends an interval's next call. What the
// callback throws ends the script: nothing can catch it.
func (ts *timers) fire(p *pending) error {
	r, t := ts.r, p.timer
	if !t.interval {
		delete(ts.byID, t.id)
	}
	if _, err := t.f(goja.Undefined(), t.args...); err != nil {
		return err
	}
	if t.interval && !t.cleared && !r.done {
		if err := ts.arm(&pending{op: wire.OpTimer, label: p.label, at: p.at, stack: p.stack, timer: t}); err != nil {
			return r.Guard(func() { panic(r.errorValue(p, err)) })
		}
	}
	return nil
}

// note remarks on callbacks that will not run any more.
func (ts *timers) note() string {
	n := 0
	for _, t := range ts.byID {
		if !t.interval {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("the script ended before %d of its timers fired: to wait, write await new Promise(resolve => setTimeout(resolve, ms))", n)
}
