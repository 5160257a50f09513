package worker

import (
	"embed"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// A feature is something that goja lacks and a script may use. It is
// installed when one of its words stands in the script's text, so that a
// script that uses none pays for none: looking takes microseconds, running
// the prelude of all would take more than most scripts. Code can't be made
// from text in a realm, so a name that is used stands in the text, unless it
// is put together by hand.
type feature struct {
	words   []string
	install func(*realm)
}

var features = []feature{
	{[]string{"captureStackTrace"}, (*realm).installCapture},
	{[]string{"console"}, func(r *realm) { r.fix("console", r.newConsole()) }},
	{[]string{"json"}, func(r *realm) { r.fix("json", r.function("json", r.json)) }},
	{[]string{"emit"}, func(r *realm) { r.fix("emit", r.function("emit", r.emit)) }},
	{[]string{"BigInt"}, func(r *realm) { r.bigInts = true; prelude("bigint")(r) }},
	{[]string{"setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "clearImmediate", "AbortSignal"}, installTimers},
	{[]string{"queueMicrotask"}, prelude("microtask")},
	{[]string{"structuredClone"}, prelude("clone")},
	{[]string{"JSON"}, (*realm).installParse},
	{[]string{"URL"}, preludeWith("url", (*realm).domains)},
	{[]string{"RegExp"}, preludeWith("regexp", (*realm).regexpParts)},
	{[]string{"8Array.from", "16Array.from", "32Array.from", "64Array.from"}, prelude("typed")},
	{[]string{"WeakRef", "FinalizationRegistry"}, prelude("weak")},
	{[]string{"TextEncoder", "TextDecoder"}, preludeWith("text", (*realm).textCoders)},
	{[]string{"atob", "btoa"}, installBase64},
	{[]string{"crypto"}, preludeWith("crypto", (*realm).cryptoParts)},
	{[]string{"performance"}, preludeWith("performance", (*realm).elapsed)},
	{[]string{"Abort", "EventTarget", "DOMException"}, prelude("abort")},
	{[]string{"withResolvers", "Promise.try", "fromAsync", "groupBy", "isWellFormed", "toWellFormed", "RegExp.escape", "asyncIterator", "ispose", "isError", "getOrInsert"}, prelude("language")},
	{[]string{"union", "intersection", "difference", "symmetricDifference", "isSubsetOf", "isSupersetOf", "isDisjointFrom"}, prelude("sets")},
	{[]string{"Iterator", "function*", "function *", ".values()", ".entries()", ".keys()", "matchAll", ".iterator", "yield"}, prelude("iterators")},
	{[]string{"toLocale", "localeCompare"}, (*realm).installLocale},
	{[]string{"Intl"}, preludeWith("intl", (*realm).intlParts)},
}

// installGlobals makes what every script has, and the features that this one
// mentions.
func (r *realm) installGlobals() {
	r.fix("codemode", r.newCodemode())
	if r.input != nil {
		v, err := r.decode(string(r.input))
		if err == nil {
			r.vm.GlobalObject().DefineDataProperty("input", v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
		}
	}
	if r.vm.Get("input") == nil {
		r.vm.GlobalObject().DefineDataProperty("input", goja.Undefined(), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	text := r.script.text
	for i := range features {
		for _, word := range features[i].words {
			if r.script.mentions(word) {
				features[i].install(r)
				break
			}
		}
	}
	if globalName.MatchString(text) {
		r.set("global", r.vm.GlobalObject())
	}
	for _, name := range errorClasses {
		if strings.Contains(text, name) {
			if c := r.class(name); c != nil {
				r.vm.GlobalObject().DefineDataProperty(name, c, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
			}
		}
	}
	if strings.Contains(text, "URL") || strings.Contains(text, "inspect.custom") {
		symbol := r.vm.Get("Symbol").(*goja.Object)
		if f, ok := goja.AssertFunction(symbol.Get("for")); ok {
			v, _ := f(symbol, r.vm.ToValue("nodejs.util.inspect.custom"))
			r.inspectSymbol, _ = v.(*goja.Symbol)
		}
	}
	object := r.vm.Get("Object").(*goja.Object)
	r.keysOf, _ = goja.AssertFunction(object.Get("keys"))
	r.describeProperty, _ = goja.AssertFunction(object.Get("getOwnPropertyDescriptor"))
	if strings.Contains(text, "setPrototypeOf") || strings.Contains(text, "__proto__") {
		r.guardPrototypes()
	}
	if strings.Contains(text, "Map") {
		r.mapEach = r.forEachOf("Map")
	}
	if strings.Contains(text, "Set") || strings.Contains(text, "groupBy") {
		r.setEach = r.forEachOf("Set")
		r.mapEach = r.forEachOf("Map")
	}
}

// globalName is what Node calls the global object.
var globalName = regexp.MustCompile(`\bglobal\b`)

// fix defines a global that the script can't replace.
func (r *realm) fix(name string, v goja.Value) {
	r.vm.GlobalObject().DefineDataProperty(name, v, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
}

// set defines a global like those of the language.
func (r *realm) set(name string, v goja.Value) {
	r.vm.GlobalObject().DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// forEachOf takes Map.prototype.forEach, or Set's, before the script can
// replace it.
func (r *realm) forEachOf(class string) goja.Callable {
	c := r.vm.Get(class).(*goja.Object)
	f, _ := goja.AssertFunction(c.Get("prototype").(*goja.Object).Get("forEach"))
	return f
}

// blockCompilers takes away what makes code from text: eval, Function and the
// constructors that can be reached through any function. `Function` stays as
// a name, so that `x instanceof Function` and Function.prototype keep their
// meaning. Every run pays for this, so it is no JavaScript.
func (r *realm) blockCompilers() {
	refuse := func(name string) goja.Value {
		return r.vm.NewTypeError("%s does not exist here: code can't be made from text; write it in the script itself", name)
	}
	fix := func(o *goja.Object, name string, v goja.Value) {
		if err := o.DefineDataProperty(name, v, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE); err != nil {
			panic(fmt.Errorf("blocking the compilers: %w", err))
		}
	}
	global := r.vm.GlobalObject()
	prototype := global.Get("Function").(*goja.Object).Get("prototype").(*goja.Object)
	compiler := r.vm.ToValue(func(goja.ConstructorCall) *goja.Object { panic(refuse("new Function")) }).(*goja.Object)
	compiler.DefineDataProperty("name", r.vm.ToValue("Function"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	fix(compiler, "prototype", prototype)
	fix(prototype, "constructor", compiler)
	for _, kind := range functionKinds {
		v, err := r.vm.RunProgram(kind)
		if err != nil {
			panic(fmt.Errorf("blocking the compilers: %w", err))
		}
		fix(v.(*goja.Object).Prototype(), "constructor", compiler)
	}
	fix(global, "Function", compiler)
	fix(global, "eval", r.function("eval", func(goja.FunctionCall) goja.Value { panic(refuse("eval")) }))
}

// functionKinds make a function of each kind that has a prototype of its own
// beside Function.prototype.
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

func errorClassProgram() *goja.Program { return preludeProgram("errors") }

// mustRun runs a file of the prelude, whose value is a function. They are our
// own and run before the script, so an error is a defect of this package, or a
// limit that was passed meanwhile.
func (r *realm) mustRun(name string) goja.Value {
	v, err := r.vm.RunProgram(preludeProgram(name))
	if err != nil {
		panic(fmt.Errorf("prelude %s: %w", name, err))
	}
	return v
}

func prelude(name string) func(*realm) { return preludeWith(name, nil) }

// preludeWith runs a file of the prelude with the native functions it needs.
func preludeWith(name string, native func(*realm) []goja.Value) func(*realm) {
	return func(r *realm) {
		f, _ := goja.AssertFunction(r.mustRun(name))
		args := []goja.Value{r.vm.ToValue(r.define)}
		if native != nil {
			args = append(args, native(r)...)
		}
		if _, err := f(goja.Undefined(), args...); err != nil {
			panic(fmt.Errorf("prelude %s: %w", name, err))
		}
	}
}

// define adds a property as the language's own are: writable, not
// enumerable. What goja has by itself stays.
func (r *realm) define(c goja.FunctionCall) goja.Value {
	o := c.Argument(0).ToObject(r.vm)
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

// json is the global json(x): it parses text that is JSON, and leaves
// everything else alone.
func (r *realm) json(c goja.FunctionCall) goja.Value {
	v := c.Argument(0)
	s, ok := v.(goja.String)
	if !ok {
		if _, promise := asPromise(v); promise {
			panic(r.vm.NewTypeError("json: got a promise: write json(await ...)"))
		}
		return v
	}
	text := s.String()
	out, err := r.decode(strings.TrimPrefix(text, "\ufeff"))
	if err != nil {
		what := "the text is no JSON"
		if strings.TrimSpace(text) == "" {
			what = "the text is empty"
		}
		panic(r.syntaxError(fmt.Sprintf("json: %s (%s): %s", what, err, excerpt(text))))
	}
	return out
}

// excerpt shows the beginning of a text, on one line.
func excerpt(text string) string {
	short := string([]rune(cutText(text, 400))[:min(80, utf8.RuneCountInString(cutText(text, 400)))])
	q := string(appendJSONString(nil, short))
	if len(short) < len(text) {
		q += fmt.Sprintf("… (%d characters)", utf8.RuneCountInString(text))
	}
	return q
}

func (r *realm) syntaxError(message string) goja.Value {
	e, err := r.vm.New(r.syntaxErrors(), r.vm.ToValue(message))
	if err != nil {
		return r.vm.NewTypeError(message)
	}
	return e
}

func (r *realm) syntaxErrors() goja.Value { return r.vm.Get("SyntaxError") }

func (r *realm) emit(c goja.FunctionCall) goja.Value { return r.handle(c, "emit", "emit", "") }

func installTimers(r *realm) {
	for _, t := range []struct {
		name              string
		interval, delayed bool
	}{{"setTimeout", false, true}, {"setInterval", true, true}, {"setImmediate", false, false}} {
		r.set(t.name, r.setTimer(t.name, t.interval, t.delayed))
	}
	for _, name := range []string{"clearTimeout", "clearInterval", "clearImmediate"} {
		r.set(name, r.clearTimer(name))
	}
}

func installBase64(r *realm) {
	fail := func(name, why string) {
		e, err := r.vm.New(r.vm.Get("Error"), r.vm.ToValue(name+": "+why))
		if err != nil {
			panic(r.vm.NewTypeError("%s: %s", name, why))
		}
		e.DefineDataProperty("name", r.vm.ToValue("InvalidCharacterError"), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
		panic(e)
	}
	r.set("atob", r.function("atob", func(c goja.FunctionCall) goja.Value {
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
	r.set("btoa", r.function("btoa", func(c goja.FunctionCall) goja.Value {
		s := r.stringOf(c.Argument(0))
		b := make([]byte, s.Length())
		for i := range b {
			u := s.CharAt(i)
			if u > 0xff {
				fail("btoa", "the text has characters beyond U+00FF: encode it as UTF-8 first")
			}
			b[i] = byte(u)
		}
		return r.vm.ToValue(base64.StdEncoding.EncodeToString(b))
	}))
}

// installCapture gives Error.captureStackTrace, which V8 has. Its second argument
// is the function from which on frames are left out: the one that calls it.
func (r *realm) installCapture() {
	class := r.vm.Get("Error").(*goja.Object)
	class.DefineDataProperty("captureStackTrace", r.function("captureStackTrace", func(c goja.FunctionCall) goja.Value {
		o, ok := c.Argument(0).(*goja.Object)
		if !ok {
			panic(r.vm.NewTypeError("Error.captureStackTrace: the first argument must be an object, got %s", describe(c.Argument(0))))
		}
		e, err := r.vm.New(class)
		if err != nil {
			panic(r.rethrow(err))
		}
		head := propertyText(o, "name", "Error")
		if m := propertyText(o, "message", ""); m != "" {
			head += ": " + m
		}
		var lines []string
		for line := range strings.Lines(e.Get("stack").String()) {
			if strings.Contains(line, scriptName+":") {
				lines = append(lines, line)
			}
		}
		if _, leaveOut := c.Argument(1).(*goja.Object); leaveOut && len(lines) > 1 {
			lines = lines[1:]
		}
		stack := r.vm.ToValue(head + "\n" + strings.Join(lines, ""))
		if err := o.DefineDataProperty("stack", stack, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE); err != nil {
			panic(r.rethrow(err))
		}
		return goja.Undefined()
	}), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// elapsed gives the prelude the script's clock, in milliseconds since the
// run began and since the epoch.
func (r *realm) elapsed() []goja.Value {
	return []goja.Value{
		r.vm.ToValue(func(goja.FunctionCall) goja.Value {
			return r.vm.ToValue(float64(r.host.now().Sub(r.started).Microseconds()) / 1000)
		}),
		r.vm.ToValue(float64(r.started.UnixMilli())),
	}
}
