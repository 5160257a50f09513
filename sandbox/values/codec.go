package values

import (
	"errors"
	"reflect"

	"github.com/dop251/goja"
)

// ScriptName is the file name of a script in the engine's stack traces.
const ScriptName = "script"

// A Codec carries the values of one runtime across its border.
type Codec struct {
	VM *goja.Runtime
	// maxArgs bounds the JSON of a call's arguments, in bytes.
	maxArgs int64
	// opaque is the Go type of objects that are never looked into: they are
	// shown as [codemode], and are {} in JSON.
	opaque reflect.Type
	// StackOf returns the lines of an error's stack, for people.
	StackOf func(e *goja.Object) []string
	// OnBigInt, if not nil, is called before the first BigInt is made.
	OnBigInt func()
	// inspectSymbol is the key of the method by which an object says how it is logged;
	// nil if the script has no such object.
	inspectSymbol *goja.Symbol

	// Built-ins from before the script, which may replace them.
	MapEach, SetEach, keysOf, DescribeProperty goja.Callable
}

// New returns the codec of a runtime that has run no script yet.
func New(vm *goja.Runtime, maxArgs int64, opaque reflect.Type) *Codec {
	return &Codec{VM: vm, maxArgs: maxArgs, opaque: opaque, StackOf: func(*goja.Object) []string { return nil }}
}

// Keep takes the built-ins that values are read with, before the script can
// replace them. Those for Maps, Sets, and objects that say how they are logged are
// taken only if the script mentions such.
func (r *Codec) Keep(mentions func(word string) bool) {
	object := r.VM.Get("Object").(*goja.Object)
	r.keysOf, _ = goja.AssertFunction(object.Get("keys"))
	r.DescribeProperty, _ = goja.AssertFunction(object.Get("getOwnPropertyDescriptor"))
	if mentions("Map") {
		r.MapEach = r.forEachOf("Map")
	}
	if mentions("Set") || mentions("groupBy") {
		r.SetEach = r.forEachOf("Set")
		r.MapEach = r.forEachOf("Map")
	}
	if mentions("URL") || mentions("inspect.custom") {
		symbol := r.VM.Get("Symbol").(*goja.Object)
		if f, ok := goja.AssertFunction(symbol.Get("for")); ok {
			v, _ := f(symbol, r.VM.ToValue("nodejs.util.inspect.custom"))
			r.inspectSymbol, _ = v.(*goja.Symbol)
		}
	}
}

// forEachOf takes Map.prototype.forEach, or Set's, before the script can
// replace it.
func (r *Codec) forEachOf(class string) goja.Callable {
	c := r.VM.Get(class).(*goja.Object)
	f, _ := goja.AssertFunction(c.Get("prototype").(*goja.Object).Get("forEach"))
	return f
}

// Function makes a native function with a name.
func (r *Codec) Function(name string, f func(goja.FunctionCall) goja.Value) *goja.Object {
	o := r.VM.ToValue(f).(*goja.Object)
	o.DefineDataProperty("name", r.VM.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return o
}

// DataProperty returns an own property without running a getter, or nil.
func (r *Codec) DataProperty(o *goja.Object, key string) goja.Value {
	v, err := r.DescribeProperty(goja.Undefined(), o, r.VM.ToValue(key))
	if err != nil {
		panic(abort{err})
	}
	d, ok := v.(*goja.Object)
	if !ok {
		return nil
	}
	return d.Get("value")
}

// Rethrow returns what to panic with, so that the engine throws on an error that
// Guard caught.
func (r *Codec) Rethrow(err error) any {
	if ex, ok := err.(*goja.Exception); ok {
		return ex.Value()
	}
	if _, ok := err.(*TypeError); ok {
		return r.VM.NewTypeError(err.Error())
	}
	return err
}

// Unreadable returns what a log shows in place of a value that threw when it was
// read: a script must not fail because it logs. What ends a script still does.
func (r *Codec) Unreadable(err error) string {
	ex, ok := err.(*goja.Exception)
	if !ok {
		if _, ok := err.(*TypeError); !ok {
			panic(err)
		}
		return "[unreadable: " + Cut(err.Error(), 200) + "]"
	}
	text := "it throws"
	again := r.Guard(func() {
		switch v := ex.Value().(type) {
		case *goja.Object:
			text = PropertyText(v, "message", text)
		case goja.String:
			text = v.String()
		}
	})
	if _, ok := again.(*goja.Exception); again != nil && !ok {
		panic(again)
	}
	return "[unreadable: " + Cut(text, 200) + "]"
}

// Stopped reports whether an error is an interruption, which no script may
// catch.
func Stopped(err error) bool {
	var i *goja.InterruptedError
	return errors.As(err, &i)
}

// SyntaxError makes an error of the language, of the class that the script has.
func (r *Codec) SyntaxError(message string) goja.Value {
	e, err := r.VM.New(r.syntaxErrors(), r.VM.ToValue(message))
	if err != nil {
		return r.VM.NewTypeError(message)
	}
	return e
}

func (r *Codec) syntaxErrors() goja.Value { return r.VM.Get("SyntaxError") }

// PropertyText returns a property as text, or otherwise if it is undefined or an
// object, whose methods it does not call.
func PropertyText(o *goja.Object, key, otherwise string) string {
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

// Guard runs f, which may run script code, from outside of the engine or
// inside of it, and returns what it threw.
func (r *Codec) Guard(f func()) (err error) {
	defer func() {
		x := recover()
		if x == nil {
			return
		}
		var interrupted *goja.InterruptedError
		var overflow *goja.StackOverflowError
		switch x := x.(type) {
		case abort:
			err = x.err
		case error:
			if !errors.As(x, &interrupted) && !errors.As(x, &overflow) {
				panic(x)
			}
			err = x
		default:
			panic(x)
		}
	}()
	if ex := r.VM.Try(f); ex != nil {
		return ex
	}
	return nil
}

// Primitive unwraps new Number(1) and the like.
func (r *Codec) Primitive(o *goja.Object) (goja.Value, bool) {
	switch x := o.Export().(type) {
	case int64, float64, bool:
		return r.VM.ToValue(x), true
	}
	return nil, false
}

// StringOf converts as String(v) does.
func (r *Codec) StringOf(v goja.Value) goja.String {
	if s, ok := v.(goja.String); ok {
		return s
	}
	return r.VM.ToValue(v.String()).(goja.String)
}

// A TypeError becomes a TypeError in the script.
type TypeError struct{ Message string }

func (e *TypeError) Error() string { return e.Message }

// An abort is panicked with to stop reading a value; Guard returns its error.
type abort struct{ err error }
