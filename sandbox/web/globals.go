package web

import (
	"embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dop251/goja"

	"codemode-bridge/sandbox/values"
)

// A feature is something that goja lacks and a script may use. It is
// installed when one of its words occurs in the script's text, so that a
// script that uses none pays for none: looking takes microseconds, running
// the prelude of all would take more than most scripts. Code can't be made
// from text in a realm, so a name that is used occurs in the text, unless it
// is put together by hand.
type feature struct {
	words   []string
	install func(*World)
}

// first is installed before the caller's own globals, features after them, each in
// this order: a script that lists the globals can see it.
var first = []feature{
	{[]string{"captureStackTrace"}, (*World).installCapture},
	{[]string{"console"}, func(r *World) { r.Fix("console", r.newConsole()) }},
}

var features = []feature{
	{[]string{"BigInt"}, func(r *World) { r.OnBigInt = nil; prelude("bigint")(r) }},
	{[]string{"queueMicrotask"}, prelude("microtask")},
	{[]string{"structuredClone"}, prelude("clone")},
	{[]string{"JSON"}, (*World).InstallParse},
	{[]string{"URL"}, preludeWith("url", (*World).domains)},
	{[]string{"RegExp"}, preludeWith("regexp", (*World).regexpParts)},
	{[]string{"8Array.from", "16Array.from", "32Array.from", "64Array.from"}, prelude("typed")},
	{[]string{"WeakRef", "FinalizationRegistry"}, prelude("weak")},
	{[]string{"TextEncoder", "TextDecoder"}, preludeWith("text", (*World).textCoders)},
	{[]string{"atob", "btoa"}, installBase64},
	{[]string{"crypto"}, preludeWith("crypto", (*World).cryptoParts)},
	{[]string{"performance"}, preludeWith("performance", (*World).elapsed)},
	{[]string{"Abort", "EventTarget", "DOMException"}, prelude("abort")},
	{[]string{"withResolvers", "Promise.try", "fromAsync", "groupBy", "isWellFormed", "toWellFormed", "RegExp.escape", "asyncIterator", "ispose", "isError", "getOrInsert"}, prelude("language")},
	{[]string{"union", "intersection", "difference", "symmetricDifference", "isSubsetOf", "isSupersetOf", "isDisjointFrom"}, prelude("sets")},
	{[]string{"Iterator", "function*", "function *", ".values()", ".entries()", ".keys()", "matchAll", ".iterator", "yield"}, prelude("iterators")},
	{[]string{"toLocale", "localeCompare"}, (*World).installLocale},
	{[]string{"Intl"}, preludeWith("intl", (*World).intlParts)},
}

// A Global is a feature of the caller's own.
type Global struct {
	Words   []string // it is installed when one of them occurs in the script
	Install func()
}

// Install makes the globals that the script mentions, own ones included.
func (r *World) Install(own []Global) {
	r.install(first)
	for i := range own {
		if slices.ContainsFunc(own[i].Words, r.script.Mentions) {
			own[i].Install()
		}
	}
	r.install(features)
	if r.script.Mentions("global") && r.script.Word("global") {
		r.Set("global", r.VM.GlobalObject())
	}
}

func (r *World) install(list []feature) {
	for i := range list {
		if slices.ContainsFunc(list[i].words, r.script.Mentions) {
			list[i].install(r)
		}
	}
}

// Fix defines a global that the script can't replace.
func (r *World) Fix(name string, v goja.Value) {
	r.VM.GlobalObject().DefineDataProperty(name, v, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
}

// Set defines a global like those of the language.
func (r *World) Set(name string, v goja.Value) {
	r.VM.GlobalObject().DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// blockCompilers removes what makes code from text: eval, Function and the
// constructors that can be reached through any function. `Function` stays as
// a name, so that `x instanceof Function` and Function.prototype keep their
// meaning. Every run pays for this, so it is done without a prelude.
func (r *World) blockCompilers() {
	refuse := func(name string) goja.Value {
		return r.VM.NewTypeError("%s does not exist here: code can't be made from text; write it in the script itself", name)
	}
	fix := func(o *goja.Object, name string, v goja.Value) {
		if err := o.DefineDataProperty(name, v, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE); err != nil {
			panic(fmt.Errorf("blocking the compilers: %w", err))
		}
	}
	global := r.VM.GlobalObject()
	prototype := global.Get("Function").(*goja.Object).Get("prototype").(*goja.Object)
	compiler := r.VM.ToValue(func(goja.ConstructorCall) *goja.Object { panic(refuse("new Function")) }).(*goja.Object)
	compiler.DefineDataProperty("name", r.VM.ToValue("Function"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	fix(compiler, "prototype", prototype)
	fix(prototype, "constructor", compiler)
	for _, kind := range functionKinds {
		v, err := r.VM.RunProgram(kind)
		if err != nil {
			panic(fmt.Errorf("blocking the compilers: %w", err))
		}
		fix(v.(*goja.Object).Prototype(), "constructor", compiler)
	}
	fix(global, "Function", compiler)
	fix(global, "eval", r.Function("eval", func(goja.FunctionCall) goja.Value { panic(refuse("eval")) }))
}

// functionKinds make a function of each kind that has a prototype of its own
// besides Function.prototype.
var functionKinds = []*goja.Program{
	goja.MustCompile("codemode:generator", "(function* () {})", true),
	goja.MustCompile("codemode:async", "(async function () {})", true),
}

//go:embed prelude
var preludeFiles embed.FS

// programs are the compiled files of the prelude, compiled once a process.
var programs sync.Map

func preludeProgram(name string) *goja.Program {
	if p, ok := programs.Load(name); ok {
		return p.(*goja.Program)
	}
	text, err := preludeFiles.ReadFile("prelude/" + name + ".js")
	if err != nil {
		panic(err)
	}
	p := goja.MustCompile("codemode:"+name, string(text), true)
	programs.Store(name, p)
	return p
}

// ErrorClass makes an error class of that name.
func (r *World) ErrorClass(name string) (*goja.Object, error) {
	v, err := r.VM.RunProgram(preludeProgram("errors"))
	if err != nil {
		return nil, err
	}
	build, _ := goja.AssertFunction(v)
	if v, err = build(goja.Undefined(), r.VM.ToValue(name)); err != nil {
		return nil, err
	}
	return v.(*goja.Object), nil
}

// mustRun runs a file of the prelude, whose value is a function. They are our
// own and run before the script, so an error is a defect of this package, or a
// limit that was passed meanwhile.
func (r *World) mustRun(name string) goja.Value {
	v, err := r.VM.RunProgram(preludeProgram(name))
	if err != nil {
		panic(fmt.Errorf("prelude %s: %w", name, err))
	}
	return v
}

func prelude(name string) func(*World) { return preludeWith(name, nil) }

// preludeWith runs a file of the prelude with the native functions it needs.
func preludeWith(name string, native func(*World) []goja.Value) func(*World) {
	return func(r *World) {
		f, _ := goja.AssertFunction(r.mustRun(name))
		args := []goja.Value{r.VM.ToValue(r.define)}
		if native != nil {
			args = append(args, native(r)...)
		}
		if _, err := f(goja.Undefined(), args...); err != nil {
			panic(fmt.Errorf("prelude %s: %w", name, err))
		}
	}
}

// define adds a property like those of the language: writable, not enumerable.
// What goja has by itself stays.
func (r *World) define(c goja.FunctionCall) goja.Value {
	o := c.Argument(0).ToObject(r.VM)
	key, v := c.Argument(1), c.Argument(2)
	if s, ok := key.(*goja.Symbol); ok {
		if o.GetSymbol(s) == nil {
			o.DefineDataPropertySymbol(s, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
		}
		return goja.Undefined()
	}
	if o.Get(key.String()) == nil {
		o.DefineDataProperty(key.String(), v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	return goja.Undefined()
}

func installBase64(r *World) {
	fail := func(name, why string) {
		e, err := r.VM.New(r.VM.Get("Error"), r.VM.ToValue(name+": "+why))
		if err != nil {
			panic(r.VM.NewTypeError("%s: %s", name, why))
		}
		e.DefineDataProperty("name", r.VM.ToValue("InvalidCharacterError"), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
		panic(e)
	}
	r.Set("atob", r.Function("atob", func(c goja.FunctionCall) goja.Value {
		text := strings.Map(func(c rune) rune {
			if strings.ContainsRune(" \t\n\f\r", c) {
				return -1
			}
			return c
		}, c.Argument(0).String())
		text, pad := strings.CutSuffix(text, "=")
		if pad {
			text = strings.TrimSuffix(text, "=")
		}
		b, err := base64.RawStdEncoding.DecodeString(text)
		if err != nil || pad && len(text)%4 == 0 {
			fail("atob", "the text is not base64")
		}
		units := make([]uint16, len(b))
		for i, x := range b {
			units[i] = uint16(x)
		}
		return goja.StringFromUTF16(units)
	}))
	r.Set("btoa", r.Function("btoa", func(c goja.FunctionCall) goja.Value {
		s := r.StringOf(c.Argument(0))
		b := make([]byte, s.Length())
		for i := range b {
			u := s.CharAt(i)
			if u > 0xff {
				fail("btoa", "the text has characters beyond U+00FF: encode it as UTF-8 first")
			}
			b[i] = byte(u)
		}
		return r.VM.ToValue(base64.StdEncoding.EncodeToString(b))
	}))
}

// installCapture makes Error.captureStackTrace, which V8 has. If there is a second
// argument, which in V8 is a function whose frame is left out with those it called,
// the innermost frame is left out: it is usually that function's.
func (r *World) installCapture() {
	class := r.VM.Get("Error").(*goja.Object)
	class.DefineDataProperty("captureStackTrace", r.Function("captureStackTrace", func(c goja.FunctionCall) goja.Value {
		o, ok := c.Argument(0).(*goja.Object)
		if !ok {
			panic(r.VM.NewTypeError("Error.captureStackTrace: the first argument must be an object, got %s", values.Describe(c.Argument(0))))
		}
		e, err := r.VM.New(class)
		if err != nil {
			panic(r.Rethrow(err))
		}
		head := values.PropertyText(o, "name", "Error")
		if m := values.PropertyText(o, "message", ""); m != "" {
			head += ": " + m
		}
		var lines []string
		for line := range strings.Lines(e.Get("stack").String()) {
			if strings.Contains(line, values.ScriptName+":") {
				lines = append(lines, line)
			}
		}
		if _, leaveOut := c.Argument(1).(*goja.Object); leaveOut && len(lines) > 1 {
			lines = lines[1:]
		}
		stack := r.VM.ToValue(head + "\n" + strings.Join(lines, ""))
		if err := o.DefineDataProperty("stack", stack, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE); err != nil {
			panic(r.Rethrow(err))
		}
		return goja.Undefined()
	}), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// elapsed gives prelude/performance.js the script's clock, in milliseconds since
// the run began, and when that was.
func (r *World) elapsed() []goja.Value {
	return []goja.Value{
		r.VM.ToValue(func(goja.FunctionCall) goja.Value {
			return r.VM.ToValue(float64(r.host.Now().Sub(r.started).Microseconds()) / 1000)
		}),
		r.VM.ToValue(float64(r.started.UnixMilli())),
	}
}
