package worker

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// maxFrames bounds the stack of a call or error.
const maxFrames = 10

// errorClasses are the errors that answers throw. They are real classes of
// the script's world: `e instanceof ToolError` holds.
var errorClasses = []string{"ToolError", "ToolCallDeniedError", "ArgumentError", "UnknownOutcomeError", "DivergedError", "LimitError"}

func failText(name, message, hint string) *wire.Failure {
	return &wire.Failure{Kind: wire.FailureError, Name: name, Message: message, Hint: hint}
}

// here returns where the script stands, from inside a native function, and
// the lines of its stack.
func (r *realm) here() (analysis.Position, []string) {
	return r.trace(r.vm.CaptureCallStack(maxFrames+2, nil))
}

func (r *realm) trace(frames []goja.StackFrame) (at analysis.Position, stack []string) {
	for i := range frames {
		f := &frames[i]
		if f.SrcName() != scriptName {
			continue // native code, or our own prelude
		}
		g := f.Position()
		p := r.script.place(g.Line, g.Column)
		if p.Line == 0 {
			continue
		}
		if at.Line == 0 {
			at = p
		}
		if len(stack) < maxFrames {
			stack = append(stack, stackLine(f.FuncName(), p))
		}
	}
	return at, stack
}

func stackLine(name string, p analysis.Position) string {
	if name == "" || name == "<anonymous>" {
		name = "script"
	}
	return cutText(name, 100) + " " + placeText(p)
}

func placeText(p analysis.Position) string {
	return "(" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column) + ")"
}

// class returns one of errorClasses, made on first use.
func (r *realm) class(name string) *goja.Object {
	if c, ok := r.classes[name]; ok {
		return c
	}
	if r.classes == nil {
		r.classes = make(map[string]*goja.Object)
	}
	v, err := r.vm.RunProgram(errorClassProgram())
	if err != nil {
		return nil
	}
	build, _ := goja.AssertFunction(v)
	v, err = build(goja.Undefined(), r.vm.ToValue(name))
	if err != nil {
		return nil
	}
	c := v.(*goja.Object)
	r.classes[name] = c
	return c
}

// thrownError makes the error that an answer throws, with the stack of the
// call that it answers.
func (r *realm) thrownError(p *pending, t *wire.Thrown) goja.Value {
	var e *goja.Object
	known := false
	for _, name := range errorClasses {
		known = known || name == t.Name
	}
	if known {
		if c := r.class(t.Name); c != nil {
			e, _ = r.vm.New(c, r.vm.ToValue(t.Message))
		}
	}
	if e == nil {
		e, _ = r.vm.New(r.vm.Get("Error"), r.vm.ToValue(t.Message))
		if e == nil { // the script replaced Error
			e = r.vm.NewTypeError(t.Message)
		}
		e.DefineDataProperty("name", r.vm.ToValue(t.Name), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	if len(t.Fields) > 0 {
		if v, err := r.decode(string(t.Fields)); err == nil {
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
	e.DefineDataProperty("stack", r.vm.ToValue(stack), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	r.thrown.add(e, p)
	return e
}

// errorValue makes the error for a call that was never sent.
func (r *realm) errorValue(p *pending, err error) goja.Value {
	var ex *goja.Exception
	var limit *limitError
	switch {
	case errors.As(err, &ex):
		return ex.Value()
	case errors.As(err, &limit):
		fields, _ := json.Marshal(map[string]string{"limit": limit.limit, "value": limit.value})
		return r.thrownError(p, &wire.Thrown{Name: "LimitError", Message: p.label + " was not sent: " + limit.Error(), Fields: fields})
	}
	e := r.vm.NewTypeError(err.Error())
	r.thrown.add(e, p)
	return e
}

// failureOf reports an error of the engine.
func (r *realm) failureOf(err error) *wire.Failure {
	if reason := limitOf(err); reason != nil {
		fail := *reason
		var i *goja.InterruptedError
		if errors.As(err, &i) {
			fail.Position, fail.Stack = r.trace(i.Stack())
			fail.Frame = r.script.frame(fail.Position)
		}
		if fail.Name == wire.LimitCPU && fail.Hint == "" && strings.Contains(r.lineAt(fail.Position), "+=") {
			fail.Hint = beyond["s += x"].hint
		}
		return &fail
	}
	var overflow *goja.StackOverflowError
	var size *oversize
	var ex *goja.Exception
	switch {
	case errors.As(err, &size):
		return resultFailure(size.limit)
	case errors.As(err, &overflow):
		fail := failText("RangeError", "maximum call stack size exceeded ("+strconv.Itoa(maxCalls)+" calls deep)", beyond["deep recursion"].hint)
		fail.Position, fail.Stack = r.trace(overflow.Stack())
		fail.Frame = r.script.frame(fail.Position)
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
	err := r.guard(func() { fail = r.describeThrown(v, 1) })
	if err != nil {
		if reason := limitOf(err); reason != nil {
			return r.failureOf(err)
		}
		fail = failText("Error", "the script threw a value that throws when it is looked at", "")
	}
	if fail.Position.Line == 0 {
		at, lines := r.trace(stack)
		fail.Position, fail.Stack = at, lines
	}
	fail.Frame = r.script.frame(fail.Position)
	for f := fail; f != nil; f = f.Cause {
		r.explain(f)
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
		text := cutText(r.inspect(v), 4<<10)
		if s, ok := v.(goja.String); ok {
			text = cutText(s.String(), 4<<10)
		}
		return failText("Error", "the script threw "+describeKind(v)+": "+text, "throw new Error(...) to have a line and a stack")
	}
	fail := failText(cutText(propertyText(o, "name", "Error"), 200), propertyText(o, "message", ""), "")
	if p := r.thrown.call(o); p != nil {
		fail.Call, fail.Position, fail.Stack = p.number, p.at, p.stack
	} else {
		fail.Position, fail.Stack = r.parseStack(propertyText(o, "stack", ""))
	}
	if fields := r.errorFields(o); len(fields) > 2 {
		fail.Fields = fields
	}
	if list, ok := o.Get("errors").(*goja.Object); ok && isArray(list) {
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
			parts = append(parts, propertyText(o, "name", "Error")+": "+cutText(propertyText(o, "message", ""), 300))
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
	e := encoder{r: r, root: "error", max: maxErrorFields}
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
	if err := r.guard(func() { e.plain(o, keys) }); err != nil {
		if limitOf(err) != nil {
			panic(err)
		}
		return nil
	}
	return e.buf
}

const maxErrorFields = 64 << 10

func has(o *goja.Object, key string) bool {
	v := o.Get(key)
	return v != nil && !goja.IsUndefined(v)
}

func propertyText(o *goja.Object, key, otherwise string) string {
	v := o.Get(key)
	if s, ok := v.(goja.String); ok {
		return s.String()
	}
	if v == nil || goja.IsUndefined(v) {
		return otherwise
	}
	if _, ok := v.(*goja.Object); ok {
		return otherwise
	}
	return v.String()
}

func describeKind(v goja.Value) string {
	d := describe(v)
	if word, _, ok := strings.Cut(d, " "); ok && !strings.HasPrefix(d, "a") {
		return "a " + word
	}
	return d
}

// stackEntry matches one line of the stack property that goja writes:
//
//	at name (script:3:15(22))
//	at script:3:15(22)
var stackEntry = regexp.MustCompile(`(?m)^\tat (?:(.*) \()?` + scriptName + `:(\d{1,9}):(\d{1,9})\(\d+\)\)?$`)

// parseStack reads positions from an error's stack property. A script may
// have put anything there; what does not look right is left out.
func (r *realm) parseStack(text string) (at analysis.Position, lines []string) {
	text = text[max(0, len(text)-(32<<10)):]
	for _, m := range stackEntry.FindAllStringSubmatch(text, maxFrames) {
		line, _ := strconv.Atoi(m[2])
		column, _ := strconv.Atoi(m[3])
		p := r.script.place(line, column)
		if p.Line == 0 {
			continue
		}
		if at.Line == 0 {
			at = p
		}
		lines = append(lines, stackLine(m[1], p))
		// The constructor of an error class is not where the error arose.
		if rest := r.script.from(p); len(lines) == 1 && (strings.HasPrefix(rest, "constructor") || strings.HasPrefix(rest, "super(")) {
			at, lines = analysis.Position{}, nil
		}
	}
	return at, lines
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
		r.guard(func() {
			fail := r.describeThrown(p.promise.Result(), wire.MaxCauses)
			text = fail.Name + ": " + cutText(fail.Message, 500)
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
		return cutText(p.name, 100)
	}
	return p.label
}
