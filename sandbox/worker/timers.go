package worker

import (
	"fmt"
	"math"

	"github.com/dop251/goja"

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

type timers struct {
	byID map[int]*timer
	last int
}

// setTimer returns setTimeout or its like. A callback gets the arguments that
// follow the delay; setImmediate has no delay.
func (r *realm) setTimer(name string, interval, delayed bool) goja.Value {
	return r.function(name, func(c goja.FunctionCall) goja.Value {
		f, ok := goja.AssertFunction(c.Argument(0))
		if !ok {
			panic(r.vm.NewTypeError("%s: the first argument must be a function, got %s", name, describe(c.Argument(0))))
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
		r.timers.last++
		t.id = r.timers.last
		if r.timers.byID == nil {
			r.timers.byID = make(map[int]*timer)
		}
		p := &pending{op: wire.OpTimer, label: name, timer: t}
		p.at, p.stack = r.here()
		if err := r.arm(p); err != nil {
			panic(r.errorValue(p, err))
		}
		r.timers.byID[t.id] = t
		return r.vm.ToValue(t.id)
	})
}

// arm sends the timer's next call.
func (r *realm) arm(p *pending) error {
	n, err := r.host.call(wire.OpTimer, "", fmt.Appendf(nil, `{"ms":%d}`, p.timer.ms), p.at)
	if err != nil {
		return err
	}
	p.timer.number, p.number = n, n
	r.pending[n] = p
	return nil
}

func (r *realm) clearTimer(name string) goja.Value {
	return r.function(name, func(c goja.FunctionCall) goja.Value {
		id, ok := c.Argument(0).Export().(int64)
		if !ok {
			return goja.Undefined()
		}
		if t := r.timers.byID[int(id)]; t != nil {
			t.cleared = true
			delete(r.timers.byID, t.id)
			if _, open := r.pending[t.number]; open {
				delete(r.pending, t.number)
				r.host.drop(t.number)
			}
		}
		return goja.Undefined()
	})
}

// fire runs a timer's callback, and sends an interval's next call. What the
// callback throws ends the script: there is nobody to catch it.
func (r *realm) fire(p *pending) error {
	t := p.timer
	if !t.interval {
		delete(r.timers.byID, t.id)
	}
	if _, err := t.f(goja.Undefined(), t.args...); err != nil {
		return err
	}
	if t.interval && !t.cleared && !r.done {
		if err := r.arm(&pending{op: wire.OpTimer, label: p.label, at: p.at, stack: p.stack, timer: t}); err != nil {
			return r.guard(func() { panic(r.errorValue(p, err)) })
		}
	}
	return nil
}

// timerNote remarks on callbacks that will not run any more.
func (r *realm) timerNote() string {
	n := 0
	for _, t := range r.timers.byID {
		if !t.interval {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("the script ended before %d of its timers fired: to wait, write await new Promise(resolve => setTimeout(resolve, ms))", n)
}
