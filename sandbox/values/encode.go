package values

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// EncodeArgs converts the one argument of a call: an object, or nothing.
func (r *Codec) EncodeArgs(c goja.FunctionCall, label string) ([]byte, error) {
	for _, extra := range c.Arguments[min(1, len(c.Arguments)):] {
		if !goja.IsUndefined(extra) {
			return nil, &TypeError{Message: fmt.Sprintf("%s takes one object, got %d arguments: write %s({name: value, ...})", label, len(c.Arguments), label)}
		}
	}
	v := c.Argument(0)
	if goja.IsUndefined(v) {
		return []byte("{}"), nil
	}
	obj, ok := v.(*goja.Object)
	if _, promise := AsPromise(v); promise {
		return nil, &TypeError{Message: label + ": arguments must be one object, got a promise: await it first"}
	}
	if !ok || IsArray(obj) || Callable(obj) {
		return nil, &TypeError{Message: fmt.Sprintf("%s: arguments must be one object, got %s", label, Describe(v))}
	}
	b, err := r.EncodeAny(v, label)
	if err == nil && (len(b) == 0 || b[0] != '{') {
		return nil, &TypeError{Message: fmt.Sprintf("%s: arguments must be one object, got %s", label, Describe(v))}
	}
	return b, err
}

// EncodeAny converts a value that becomes part of a call. It returns nil for
// undefined; anything else that has no JSON form is a *TypeError.
func (r *Codec) EncodeAny(v goja.Value, label string) ([]byte, error) {
	e := encoder{r: r, label: label + ": ", root: "args", max: r.maxArgs, strict: true}
	b, err := e.encode(v)
	if err == nil && b == nil && !goja.IsUndefined(v) {
		return nil, &TypeError{Message: fmt.Sprintf("%s: got %s, which has no JSON form", label, Describe(v))}
	}
	return b, err
}

// Encode converts any value, called root in messages. What has no JSON form
// is left out, or becomes null with a note.
func (r *Codec) Encode(v goja.Value, root string, limit int64) ([]byte, error) {
	b, _, err := r.EncodeNoted(v, root, limit)
	return b, err
}

// EncodeNoted is Encode, and returns notes for whoever wrote the script.
func (r *Codec) EncodeNoted(v goja.Value, root string, limit int64) (b []byte, notes []string, err error) {
	e := encoder{r: r, root: root, max: limit}
	b, err = e.encode(v)
	return b, e.notes, err
}

// EncodeFields converts some of an object's own properties. It returns nil if
// one of them has no JSON form, or they are larger than limit.
func (r *Codec) EncodeFields(o *goja.Object, keys []string, limit int64) []byte {
	e := encoder{r: r, root: "error", max: limit}
	if err := r.Guard(func() { e.plain(o, keys) }); err != nil {
		if Stopped(err) {
			panic(err)
		}
		return nil
	}
	return e.buf
}

// An encoder writes values as JSON. The table of what becomes of each kind of
// value is docs/reference/script-values.md; TestValues holds it to that.
type encoder struct {
	r      *Codec
	label  string // before a message
	root   string // what the value is called in it
	max    int64  // bytes
	strict bool   // arguments: what JSON can't hold, and a promise, is a mistake

	buf   []byte
	path  []step
	stack []*goja.Object // objects being written, for cycles
	notes []string
	noted map[string]bool
}

type step struct {
	key   string
	index int // used if key is empty and is is set
	is    bool
}

// encode returns nil for a value that has no JSON form. What the script threw
// meanwhile is returned as *goja.Exception, or what interrupted it.
func (e *encoder) encode(v goja.Value) (b []byte, err error) {
	err = e.r.Guard(func() {
		if !e.value(v, "") {
			e.buf = nil
		}
	})
	if err != nil {
		return nil, err
	}
	return e.buf, nil
}

func (e *encoder) fail(format string, args ...any) {
	panic(abort{&TypeError{Message: e.label + e.where() + " " + fmt.Sprintf(format, args...)}})
}

// where writes the path: result.items[3].name.
func (e *encoder) where() string {
	var b strings.Builder
	b.WriteString(e.root)
	for i, s := range e.path {
		if len(e.path) > 12 && i == 6 {
			b.WriteString("…")
		}
		if len(e.path) > 12 && i >= 6 && i < len(e.path)-6 {
			continue
		}
		if s.is {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		} else {
			b.WriteString(Accessor(s.key))
		}
	}
	return b.String()
}

// note remarks once on each kind of change.
func (e *encoder) note(kind, text string) {
	if e.noted[kind] || e.strict {
		return
	}
	if e.noted == nil {
		e.noted = make(map[string]bool)
	}
	e.noted[kind] = true
	e.notes = append(e.notes, e.where()+" "+text)
}

func (e *encoder) write(s string) {
	e.buf = append(e.buf, s...)
	e.check()
}

func (e *encoder) check() {
	if int64(len(e.buf)) <= e.max {
		return
	}
	panic(abort{&TooLarge{e.max}})
}

// A TooLarge says that a value needs more bytes as JSON than it may have.
type TooLarge struct{ Limit int64 }

func (t *TooLarge) Error() string { return "the value has more than " + Size(t.Limit) }

// value writes v and reports whether it has a JSON form. key is the name of its
// property, which toJSON gets.
func (e *encoder) value(v goja.Value, key string) bool {
	switch v := v.(type) {
	case nil:
		return false
	case *goja.Object:
		return e.object(v, key)
	case goja.String:
		e.buf = AppendJSON(e.buf, v.String())
		e.check()
		return true
	case *goja.Symbol:
		return false
	}
	if goja.IsUndefined(v) {
		return false
	}
	if goja.IsNull(v) {
		e.write("null")
		return true
	}
	switch x := v.Export().(type) {
	case bool:
		e.write(strconv.FormatBool(x))
	case int64:
		e.buf = strconv.AppendInt(e.buf, x, 10)
		e.check()
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			if e.strict {
				e.fail("is %s, which JSON can't hold", strings.TrimPrefix(v.String(), "+"))
			}
			e.note("nan", "is "+strings.TrimPrefix(v.String(), "+")+", which JSON can't hold: it became null")
			e.write("null")
			return true
		}
		e.write(numberText(v, x))
	case *big.Int:
		e.write(x.String())
	default:
		return false
	}
	return true
}

// numberText writes a number as JavaScript does; -0 is 0.
func numberText(v goja.Value, x float64) string {
	if x == 0 {
		return "0"
	}
	return v.String()
}

func (e *encoder) object(o *goja.Object, key string) bool {
	if len(e.stack) >= maxDepth {
		e.fail("nests more than %d levels deep", maxDepth)
	}
	for i, outer := range e.stack {
		if outer == o {
			at := encoder{root: e.root, path: e.path[:i]}
			e.fail("refers back to %s: a cycle has no JSON form", at.where())
		}
	}
	if p, ok := AsPromise(o); ok {
		return e.promise(p, key)
	}
	if o.ExportType() == e.r.opaque {
		e.write("{}")
		return true
	}
	e.stack = append(e.stack, o)
	defer func() { e.stack = e.stack[:len(e.stack)-1] }()

	class := o.ClassName()
	if f, ok := goja.AssertFunction(o.Get("toJSON")); ok && class != "Error" {
		if class == "Date" && e.strict && isInvalid(o) {
			e.fail("is an invalid Date")
		}
		v, err := f(o, e.r.VM.ToValue(key))
		if err != nil {
			panic(abort{err})
		}
		if inner, ok := v.(*goja.Object); ok && inner != o {
			return e.object(inner, key)
		} else if !ok {
			return e.value(v, key)
		}
	}
	return e.contents(o, class, key)
}

// contents writes an object that has no toJSON, by its kind.
func (e *encoder) contents(o *goja.Object, class, key string) bool {
	if Callable(o) {
		return false
	}
	if IsArray(o) {
		e.array(o)
		return true
	}
	switch class {
	case "Error":
		e.error(o)
		return true
	case "RegExp":
		e.note("regexp", "is a RegExp: it became its text")
		return e.value(e.r.VM.ToValue(o.String()), key)
	case "String":
		return e.value(e.r.VM.ToValue(o.String()), key)
	case "Number", "Boolean":
		if v, ok := e.r.Primitive(o); ok {
			return e.value(v, key)
		}
	case "Symbol":
		return false
	}
	switch {
	case IsMap(o) && e.r.MapEach != nil:
		e.mapping(o)
		return true
	case IsSet(o) && e.r.SetEach != nil:
		e.set(o)
		return true
	case e.bytes(o):
		return true
	}
	e.plain(o, o.Keys())
	return true
}

func (e *encoder) promise(p *goja.Promise, key string) bool {
	switch {
	case e.strict:
		e.fail("is a promise: await it first")
	case p.State() == goja.PromiseStateFulfilled:
		return e.value(p.Result(), key)
	}
	e.note("promise", "is a promise that was not awaited: it became null")
	e.write("null")
	return true
}

func (e *encoder) plain(o *goja.Object, keys []string) {
	e.write("{")
	first := true
	halves := e.halves(o, keys)
	for i, key := range keys {
		first = !e.member(key, e.get(o, key, halves[i]), first) && first
	}
	e.write("}")
}

// member writes a member of an object and reports whether its value has a
// JSON form.
func (e *encoder) member(key string, v goja.Value, first bool) bool {
	mark := len(e.buf)
	if !first {
		e.buf = append(e.buf, ',')
	}
	e.buf = AppendJSON(e.buf, key)
	e.buf = append(e.buf, ':')
	e.path = append(e.path, step{key: key})
	ok := e.value(v, key)
	e.path = e.path[:len(e.path)-1]
	if !ok {
		e.buf = e.buf[:mark]
	}
	return ok
}

// halves finds the keys with half of a surrogate pair. As Go strings they have
// U+FFFD there and name no property, so they are returned as strings of the engine,
// by their index in keys. These are o's own keys, or some of them, in order.
func (e *encoder) halves(o *goja.Object, keys []string) map[int]goja.Value {
	if e.r.keysOf == nil || !slices.ContainsFunc(keys, replaced) {
		return nil
	}
	v, err := e.r.keysOf(goja.Undefined(), o)
	if err != nil {
		panic(abort{err})
	}
	halves := make(map[int]goja.Value)
	list, at := v.(*goja.Object), 0
	for i := range int(list.Get("length").ToInteger()) {
		key, ok := list.Get(strconv.Itoa(i)).(goja.String)
		if !ok || at == len(keys) || key.String() != keys[at] {
			continue
		}
		if e.half(key) {
			halves[at] = key
		}
		at++
	}
	return halves
}

// replaced reports whether a text may come from a string that UTF-8 can't hold.
func replaced(text string) bool { return strings.Contains(text, "\ufffd") }

// half reports whether a key has half of a surrogate pair. In arguments it is
// a mistake: another key would reach the tool.
func (e *encoder) half(key goja.String) bool {
	if !replaced(key.String()) {
		return false
	}
	for i := 0; i < key.Length(); i++ {
		c := rune(key.CharAt(i))
		if !utf16.IsSurrogate(c) {
			continue
		}
		if i+1 < key.Length() && utf16.DecodeRune(c, rune(key.CharAt(i+1))) != utf8.RuneError {
			i++
			continue
		}
		if e.strict {
			e.fail("has the key %s with half of a surrogate pair, which JSON can't hold", QuoteName(key.String()))
		}
		e.note("half", "has the key "+QuoteName(key.String())+" with half of a surrogate pair: it became U+FFFD")
		return true
	}
	return false
}

// get returns a property: by the text of its key, or by half if that is set.
func (e *encoder) get(o *goja.Object, key string, half goja.Value) goja.Value {
	if half == nil {
		return o.Get(key)
	}
	v, err := e.r.DescribeProperty(goja.Undefined(), o, half)
	if err != nil {
		panic(abort{err})
	}
	d, ok := v.(*goja.Object)
	if !ok {
		return nil
	}
	if getter, ok := goja.AssertFunction(d.Get("get")); ok {
		if v, err = getter(o); err != nil {
			panic(abort{err})
		}
		return v
	}
	return d.Get("value")
}

// element writes one element of a list; what has no JSON form is null there.
func (e *encoder) element(i int, v goja.Value) {
	if i > 0 {
		e.buf = append(e.buf, ',')
	}
	e.path = append(e.path, step{index: i, is: true})
	if !e.value(v, strconv.Itoa(i)) {
		e.write("null")
	}
	e.path = e.path[:len(e.path)-1]
}

func (e *encoder) array(o *goja.Object) {
	e.write("[")
	// Not the keys: a hole is null, and a length of 2^32-1 ends at e.max.
	n := int(min(o.Get("length").ToInteger(), math.MaxInt32*2+1))
	for i := 0; i < n; i++ {
		e.element(i, o.Get(strconv.Itoa(i)))
	}
	e.write("]")
}

func (e *encoder) mapping(o *goja.Object) {
	var keys []string
	var entries [][2]goja.Value
	text := true
	e.r.Each(e.r.MapEach, o, func(value, key goja.Value) {
		if s, ok := key.(goja.String); ok {
			keys = append(keys, s.String())
			e.half(s)
		} else if _, isObject := key.(*goja.Object); isObject {
			text = false
		} else {
			keys = append(keys, key.String())
		}
		entries = append(entries, [2]goja.Value{key, value})
	})
	if !text {
		e.note("map", "is a Map with objects as keys: it became a list of [key, value]")
		e.write("[")
		for i, entry := range entries {
			e.element(i, e.r.VM.NewArray(entry[0], entry[1]))
		}
		e.write("]")
		return
	}
	e.note("map", "is a Map: it became an object")
	e.write("{")
	for i, entry := range entries {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = AppendJSON(e.buf, keys[i])
		e.buf = append(e.buf, ':')
		e.path = append(e.path, step{key: keys[i]})
		if !e.value(entry[1], keys[i]) {
			e.write("null")
		}
		e.path = e.path[:len(e.path)-1]
	}
	e.write("}")
}

func (e *encoder) set(o *goja.Object) {
	e.note("set", "is a Set: it became a list")
	var values []goja.Value
	e.r.Each(e.r.SetEach, o, func(v, _ goja.Value) { values = append(values, v) })
	e.write("[")
	for i, v := range values {
		e.element(i, v)
	}
	e.write("]")
}

// Each calls f for every entry of a Map or Set, through the forEach that
// was there before the script.
func (r *Codec) Each(forEach goja.Callable, o *goja.Object, f func(value, key goja.Value)) {
	_, err := forEach(o, r.VM.ToValue(func(c goja.FunctionCall) goja.Value {
		f(c.Argument(0), c.Argument(1))
		return goja.Undefined()
	}))
	if err != nil {
		panic(abort{err})
	}
}

// error writes what a person wants to know of an error, where JSON.stringify
// writes {}.
func (e *encoder) error(o *goja.Object) {
	e.write("{")
	first := true
	put := func(key string, v goja.Value) {
		first = !e.member(key, v, first) && first
	}
	put("name", o.Get("name"))
	put("message", o.Get("message"))
	put("cause", o.Get("cause"))
	put("errors", o.Get("errors"))
	keys := o.Keys()
	halves := e.halves(o, keys)
	for i, key := range keys {
		switch key {
		case "name", "message", "cause", "errors", "stack":
		default:
			put(key, e.get(o, key, halves[i]))
		}
	}
	e.write("}")
}

// bytes writes a typed array or buffer as the list of its numbers.
func (e *encoder) bytes(o *goja.Object) bool {
	t := o.ExportType()
	if t == bufferType {
		b, _ := o.Export().(goja.ArrayBuffer)
		e.numbers(reflect.ValueOf(b.Bytes()))
		return true
	}
	if t == nil || t.Kind() != reflect.Slice || !numeric(t.Elem().Kind()) {
		return false
	}
	e.numbers(reflect.ValueOf(o.Export()))
	return true
}

func (e *encoder) numbers(list reflect.Value) {
	e.write("[")
	for i := range list.Len() {
		e.element(i, e.r.VM.ToValue(list.Index(i).Interface()))
	}
	e.write("]")
}

func numeric(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Float64 }
