package realm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dop251/goja"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/source"
	"codemode-bridge/sandbox/values"
	"codemode-bridge/sandbox/wire"
)

// errorClasses are the errors that answers throw. They are real classes of
// the script's world: `e instanceof ToolError` holds.
var errorClasses = []string{"ToolError", "ToolCallDeniedError", "ArgumentError", "UnknownOutcomeError", "DivergedError", "LimitError"}

// failText describes an error of the script.
func failText(name, message, hint string) *wire.Failure {
	return &wire.Failure{Kind: wire.FailureError, Name: name, Message: message, Hint: hint}
}

// syntaxFailure is how a script fails that cannot be run.
func syntaxFailure(e *source.Error) *wire.Failure {
	if e == nil {
		return nil
	}
	fail := failText("SyntaxError", e.Message, e.Hint)
	fail.Position, fail.Frame = e.Position, e.Frame
	return fail
}

// here returns where the script is, from inside a native function, and
// the lines of its stack.
func (r *realm) here() (analysis.Position, []string) {
	return r.script.Trace(r.VM.CaptureCallStack(source.MaxFrames+2, nil))
}

// class returns one of errorClasses, made on first use.
func (r *realm) class(name string) *goja.Object {
	if c, ok := r.classes[name]; ok {
		return c
	}
	if r.classes == nil {
		r.classes = make(map[string]*goja.Object)
	}
	c, err := r.world.ErrorClass(name)
	if err != nil {
		return nil
	}
	r.classes[name] = c
	return c
}

// thrownError makes the error that an answer throws, with the stack of the
// call that it answers.
func (r *realm) thrownError(p *pending, t *wire.Thrown) goja.Value {
	var e *goja.Object
	if slices.Contains(errorClasses, t.Name) {
		if c := r.class(t.Name); c != nil {
			e, _ = r.VM.New(c, r.VM.ToValue(t.Message))
		}
	}
	if e == nil {
		e, _ = r.VM.New(r.VM.Get("Error"), r.VM.ToValue(t.Message))
		if e == nil { // the script replaced Error
			e = r.VM.NewTypeError(t.Message)
		}
		e.DefineDataProperty("name", r.VM.ToValue(t.Name), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	if len(t.Fields) > 0 {
		if v, err := r.Decode(string(t.Fields)); err == nil {
			if fields, ok := v.(*goja.Object); ok {
				for _, key := range fields.Keys() {
					switch key {
					case "name", "message", "stack":
					default:
						e.DefineDataProperty(key, fields.Get(key), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
					}
				}
			}
		}
	}
	stack := t.Name + ": " + t.Message + "\n"
	for _, line := range p.stack {
		stack += "\tat " + line + "\n"
	}
	e.DefineDataProperty("stack", r.VM.ToValue(stack), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	r.thrown.add(e, p)
	return e
}

// errorValue makes the error for a call that was never sent.
func (r *realm) errorValue(p *pending, err error) goja.Value {
	var ex *goja.Exception
	var limit *LimitReached
	if large := (*values.TooLarge)(nil); errors.As(err, &large) {
		err = &LimitReached{Limit: wire.LimitArgs, Value: values.Size(wire.MaxArgs) + " of arguments"}
	}
	switch {
	case errors.As(err, &ex):
		return ex.Value()
	case errors.As(err, &limit):
		fields, _ := json.Marshal(map[string]string{"limit": limit.Limit, "value": limit.Value})
		return r.thrownError(p, &wire.Thrown{Name: "LimitError", Message: p.label + " was not sent: " + limit.Error(), Fields: fields})
	}
	e := r.VM.NewTypeError(err.Error())
	r.thrown.add(e, p)
	return e
}

// failureOf reports an error of the engine.
func (r *realm) failureOf(err error) *wire.Failure {
	if reason := limitOf(err); reason != nil {
		fail := *reason
		var i *goja.InterruptedError
		if errors.As(err, &i) {
			fail.Position, fail.Stack = r.script.Trace(i.Stack())
			fail.Frame = r.script.Frame(fail.Position)
		}
		if fail.Name == wire.LimitCPU && fail.Hint == "" && strings.Contains(r.script.LineOf(fail.Position.Line), "+=") {
			fail.Hint = source.Beyond["s += x"].Hint
		}
		return &fail
	}
	var overflow *goja.StackOverflowError
	var size *values.TooLarge
	var ex *goja.Exception
	switch {
	case errors.As(err, &size):
		return ResultFailure(size.Limit)
	case errors.As(err, &overflow):
		fail := failText("RangeError", "maximum call stack size exceeded ("+strconv.Itoa(maxCalls)+" calls deep)", source.Beyond["deep recursion"].Hint)
		fail.Position, fail.Stack = r.script.Trace(overflow.Stack())
		fail.Frame = r.script.Frame(fail.Position)
		return fail
	case errors.As(err, &ex):
		return r.failureFrom(ex.Value(), ex.Stack())
	}
	return failText("TypeError", err.Error(), "")
}

// failureFrom reports what the script threw. It reads the value's properties,
// so the deadline must be armed.
func (r *realm) failureFrom(v goja.Value, stack []goja.StackFrame) *wire.Failure {
	var fail *wire.Failure
	err := r.Guard(func() { fail = r.describeThrown(v, 1) })
	if err != nil {
		if reason := limitOf(err); reason != nil {
			return r.failureOf(err)
		}
		fail = failText("Error", "the script threw a value that throws when it is looked at", "")
	}
	if fail.Position.Line == 0 {
		at, lines := r.script.Trace(stack)
		fail.Position, fail.Stack = at, lines
	}
	fail.Frame = r.script.Frame(fail.Position)
	for f := fail; f != nil; f = f.Cause {
		r.hints.explain(f)
	}
	if o, ok := v.(*goja.Object); ok {
		if p := r.thrown.call(o); p != nil && p.within != nil {
			fail.Frame, fail.Hint = r.savedFrame(p.at, p.name, p.within.Frame), p.within.Hint
		}
	}
	return fail
}

// describeThrown reads an error value and its causes.
func (r *realm) describeThrown(v goja.Value, depth int) *wire.Failure {
	o, ok := v.(*goja.Object)
	if !ok || o.ClassName() != "Error" && !has(o, "message") {
		text := values.Cut(r.Inspect(v), 4<<10)
		if s, ok := v.(goja.String); ok {
			text = values.Cut(s.String(), 4<<10)
		}
		return failText("Error", "the script threw "+values.DescribeKind(v)+": "+text, "throw new Error(...) to have a line and a stack")
	}
	fail := failText(values.Cut(values.PropertyText(o, "name", "Error"), 200), values.PropertyText(o, "message", ""), "")
	if p := r.thrown.call(o); p != nil {
		fail.Call, fail.Position, fail.Stack = p.number, p.at, p.stack
	} else {
		fail.Position, fail.Stack = r.script.ParseStack(values.PropertyText(o, "stack", ""))
	}
	if fields := r.errorFields(o); len(fields) > 2 {
		fail.Fields = fields
	}
	if list, ok := o.Get("errors").(*goja.Object); ok && values.IsArray(list) {
		if fail.Message == "" {
			fail.Message = "all promises were rejected"
		}
		fail.Message += joinErrors(list)
	}
	if cause := o.Get("cause"); cause != nil && !goja.IsUndefined(cause) && depth < wire.MaxCauses {
		fail.Cause = r.describeThrown(cause, depth+1)
		if fail.Call == 0 {
			fail.Call = fail.Cause.Call
		}
	}
	return fail
}

// joinErrors lists the messages of an AggregateError.
func joinErrors(list *goja.Object) string {
	var parts []string
	n := list.Get("length").ToInteger()
	for i := int64(0); i < min(n, 5); i++ {
		if o, ok := list.Get(strconv.FormatInt(i, 10)).(*goja.Object); ok {
			parts = append(parts, values.PropertyText(o, "name", "Error")+": "+values.Cut(values.PropertyText(o, "message", ""), 300))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	if n > 5 {
		parts = append(parts, "and "+strconv.FormatInt(n-5, 10)+" more")
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// errorFields returns an error's own properties as JSON, as far as they have
// a JSON form and are not large.
func (r *realm) errorFields(o *goja.Object) json.RawMessage {
	var keys []string
	for _, key := range o.Keys() {
		switch key {
		case "name", "message", "stack", "cause", "errors":
		default:
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return r.EncodeFields(o, keys, maxErrorFields)
}

const maxErrorFields = 64 << 10

func has(o *goja.Object, key string) bool {
	v := o.Get(key)
	return v != nil && !goja.IsUndefined(v)
}

// rejectionNotes remarks on failures that nobody saw.
func (r *realm) rejectionNotes() []string {
	var notes []string
	for i, p := range r.rejected {
		if i == wire.MaxNotes/4 {
			notes = append(notes, "and "+strconv.Itoa(len(r.rejected)-i)+" more failures that nobody awaited")
			break
		}
		text := "a value that can't be shown"
		r.Guard(func() {
			fail := r.describeThrown(p.promise.Result(), wire.MaxCauses)
			text = fail.Name + ": " + values.Cut(fail.Message, 500)
			if fail.Position.Line > 0 {
				text += " (line " + strconv.Itoa(fail.Position.Line) + ")"
			}
		})
		if c := p.call; c != nil && c.number > 0 {
			notes = append(notes, "call "+strconv.Itoa(c.number)+" "+c.title()+" failed and nobody awaited it: "+text)
		} else if c != nil {
			notes = append(notes, c.title()+" was not sent and nobody awaited it: "+text)
		} else {
			notes = append(notes, "a promise was rejected and nobody awaited it: "+text)
		}
	}
	return notes
}

// title is how notes name a call.
func (p *pending) title() string {
	if p.op == wire.OpTool {
		return values.Cut(p.name, 100)
	}
	return p.label
}

// stackOf returns the lines of an error's stack: for the error of a call, where
// the script made the call.
func (r *realm) stackOf(o *goja.Object) []string {
	if p := r.thrown.call(o); p != nil {
		return p.stack
	}
	_, lines := r.script.ParseStack(values.PropertyText(o, "stack", ""))
	return lines
}

// TimeFailure reports that a script exceeded the time limit of that name; cpu is
// the limit of CPU time.
func TimeFailure(name string, cpu time.Duration) *wire.Failure {
	most := cpu
	if name == wire.LimitWall {
		most = wire.WallFactor * cpu
	}
	return &wire.Failure{Kind: wire.FailureLimit, Name: name,
		Message: fmt.Sprintf("the script ran for more than %s of %s (waiting for calls is not counted)", most, name)}
}

// ResultFailure reports that a result is larger than its limit, in bytes.
func ResultFailure(limit int64) *wire.Failure {
	return &wire.Failure{Kind: wire.FailureLimit, Name: wire.LimitResult,
		Message: fmt.Sprintf("the result is larger than the limit of %s", values.Size(limit)),
		Hint:    "return only what is needed: pick fields, slice lists, count"}
}

// savedFrame shows where the run's own script runs a saved script, and below
// it the lines of that.
func (r *realm) savedFrame(at analysis.Position, name, within string) string {
	frame := r.script.Frame(at)
	if within == "" {
		return frame
	}
	return values.Cut(frame+"\nsaved script "+values.Cut(name, 80)+":\n"+within, wire.MaxNote)
}
