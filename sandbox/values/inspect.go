package values

import (
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

// The shape of inspected values is Node's, so that a model reads what it has
// seen a million times: these are the defaults of util.inspect.
const (
	InspectDepth  = 2
	inspectItems  = 100
	inspectString = 10_000
	inspectRoom   = 128 << 10 // bytes of one value, roughly: what does not fit is cut
	breakLength   = 80
	compactLevels = 3
	arrayRun      = 6 // arrays longer than this are set in columns
)

// Inspect writes a value as console.log does. It runs getters and proxies of
// the script, so the deadline must be armed; what they throw is never thrown on.
func (r *Codec) Inspect(v goja.Value) string { return r.InspectDeep(v, InspectDepth) }

// InspectDeep is Inspect with another depth than that of console.log.
func (r *Codec) InspectDeep(v goja.Value, depth int) string {
	in := &inspector{r: r, depth: depth, room: inspectRoom}
	return in.value(v, 0, false)
}

type inspector struct {
	r       *Codec
	depth   int
	room    int // bytes left, roughly; a huge value is cut anyway
	indent  int
	current int // depth of the object begun last
	seen    []*goja.Object
	circles []*goja.Object
}

func (in *inspector) value(v goja.Value, depth int, top bool) string {
	var s string
	switch v := v.(type) {
	case nil:
		s = "undefined"
	case *goja.Object:
		return in.object(v, depth)
	case goja.String:
		if top {
			return v.String()
		}
		s = quoteJS(v.String())
	case *goja.Symbol:
		s = "Symbol(" + symbolText(v) + ")"
	default:
		switch x := v.Export().(type) {
		case *big.Int:
			s = x.String() + "n"
		case float64:
			if s = v.String(); x == 0 && math.Signbit(x) {
				s = "-0"
			}
		default:
			s = v.String()
		}
	}
	in.room -= len(s)
	return s
}

func symbolText(s *goja.Symbol) string {
	if v := s.String(); strings.HasPrefix(v, "Symbol(") {
		return strings.TrimSuffix(strings.TrimPrefix(v, "Symbol("), ")")
	} else {
		return v
	}
}

// object writes an object, or a remark in place of one that throws when it is
// read, such as a revoked proxy.
func (in *inspector) object(o *goja.Object, depth int) (s string) {
	indent := in.indent
	if err := in.r.Guard(func() { s = in.readable(o, depth) }); err != nil {
		in.indent = indent
		return in.r.Unreadable(err)
	}
	return s
}

func (in *inspector) readable(o *goja.Object, depth int) string {
	for _, outer := range in.seen {
		if outer == o {
			return "[Circular *" + strconv.Itoa(in.circle(o)) + "]"
		}
	}
	if o.ExportType() == in.r.opaque {
		return "[codemode]"
	}
	name := in.constructor(o)
	class := o.ClassName()
	if s, ok := in.custom(o, depth); ok {
		return s
	}
	if s := in.empty(o, name); s != "" {
		return s
	}
	if depth > in.depth && !shownAtAnyDepth(o, class) {
		switch {
		case IsArray(o):
			return "[Array]"
		case name == "":
			return "[Object: null prototype]"
		}
		return "[" + name + "]"
	}
	if in.room <= 0 {
		return "…"
	}
	in.current = depth
	in.seen = append(in.seen, o)
	defer func() { in.seen = in.seen[:len(in.seen)-1] }()

	d := in.draw(o, name, depth)
	for _, key := range d.keys {
		if len(d.entries) > 2*inspectItems {
			d.entries = append(d.entries, "...")
			break
		}
		d.entries = append(d.entries, keyText(key)+": "+in.property(o, key, depth))
	}
	for _, s := range o.Symbols() {
		var v goja.Value
		in.r.VM.Try(func() { v = o.GetSymbol(s) })
		d.entries = append(d.entries, "[Symbol("+symbolText(s)+")]: "+in.nested(v, depth))
	}
	if len(d.entries) == 0 && d.base != "" {
		return d.base
	}
	if len(d.entries) == 0 {
		return in.reference(o) + d.open + d.end
	}
	return in.join(o, d.entries, d.base, in.reference(o)+d.open, d.end, d.list, depth)
}

// A drawing is how an object is written, by its kind: base { entries }.
type drawing struct {
	base      string // before the entries, or alone if there are none
	open, end string
	entries   []string // without those of keys
	list      bool     // the entries are a list's
	keys      []string // properties that become entries
}

// draw returns the drawing of an object whose constructor has that name.
func (in *inspector) draw(o *goja.Object, name string, depth int) drawing {
	d := drawing{open: "{", end: "}", keys: in.keys(o)}
	switch class := o.ClassName(); {
	case IsArray(o):
		n := int(o.Get("length").ToInteger())
		d.list, d.open, d.end = true, "[", "]"
		if name != "Array" && name != "" {
			d.open = name + "(" + strconv.Itoa(n) + ") ["
		}
		d.entries, d.keys = in.items(o, n, depth, d.keys)
	case Callable(o):
		d.base = in.callable(o)
	case class == "Error":
		d.base = in.errorText(o)
		d.keys = without(d.keys, "name", "message", "stack")
		if v := o.Get("cause"); v != nil && !slices.Contains(d.keys, "cause") {
			d.entries = append(d.entries, "[cause]: "+in.nested(v, depth))
		}
	case class == "Date":
		d.base = in.method(o, "toISOString", "Invalid Date")
	case class == "RegExp":
		d.base = o.String()
	case IsMap(o) && in.r.MapEach != nil:
		d.entries = in.mapEntries(o, depth)
		d.open = name + "(" + strconv.Itoa(int(o.Get("size").ToInteger())) + ") {"
	case IsSet(o) && in.r.SetEach != nil:
		d.entries = in.setEntries(o, depth)
		d.open = name + "(" + strconv.Itoa(int(o.Get("size").ToInteger())) + ") {"
	case class == "String":
		d.base, d.keys = "[String: "+quoteJS(o.String())+"]", nil
	case class == "Number" || class == "Boolean":
		d.base = "[" + class + ": " + o.String() + "]"
	default:
		in.drawOther(&d, o, name, depth)
	}
	return d
}

// drawOther draws what no class tells apart: promises, buffers, typed arrays, and
// plain objects.
func (in *inspector) drawOther(d *drawing, o *goja.Object, name string, depth int) {
	if p, ok := AsPromise(o); ok {
		d.open = "Promise {"
		switch p.State() {
		case goja.PromiseStatePending:
			d.entries = []string{"<pending>"}
		case goja.PromiseStateRejected:
			d.entries = []string{"<rejected> " + in.nested(p.Result(), depth)}
		default:
			d.entries = []string{in.nested(p.Result(), depth)}
		}
		return
	}
	switch t := o.ExportType(); {
	case t == bufferType:
		b, _ := o.Export().(goja.ArrayBuffer)
		d.open = "ArrayBuffer {"
		d.entries = []string{"[Uint8Contents]: <" + hexBytes(b.Bytes()) + ">", "[byteLength]: " + strconv.Itoa(len(b.Bytes()))}
	case o.ClassName() == "Object" && (name == "WeakMap" || name == "WeakSet"):
		d.open = name + " {"
		d.entries = []string{"<items unknown>"}
	case t != nil && t.Kind() == reflect.Slice && numeric(t.Elem().Kind()):
		n := int(o.Get("length").ToInteger())
		d.list, d.open, d.end = true, name+"("+strconv.Itoa(n)+") [", "]"
		d.entries, d.keys = in.items(o, n, depth, nil)
	default:
		if name == "" {
			name = "[Object: null prototype]"
		}
		if tag := in.tag(o); tag != "" && tag != name {
			d.open = name + " [" + tag + "] {"
		} else if name != "Object" {
			d.open = name + " {"
		}
	}
}

// shownAtAnyDepth reports whether an object is short enough to be written
// wherever it is.
func shownAtAnyDepth(o *goja.Object, class string) bool {
	switch class {
	case "Error", "Date", "RegExp":
		return true
	}
	return Callable(o)
}

// reference marks an object that something inside of it refers back to.
func (in *inspector) reference(o *goja.Object) string {
	for i, c := range in.circles {
		if c == o {
			return "<ref *" + strconv.Itoa(i+1) + "> "
		}
	}
	return ""
}

func (in *inspector) circle(o *goja.Object) int {
	for i, c := range in.circles {
		if c == o {
			return i + 1
		}
	}
	in.circles = append(in.circles, o)
	return len(in.circles)
}

func (in *inspector) nested(v goja.Value, depth int) string {
	in.indent += 2
	s := in.value(v, depth+1, false)
	in.indent -= 2
	return s
}

func (in *inspector) keys(o *goja.Object) (keys []string) {
	in.r.VM.Try(func() { keys = o.Keys() })
	return keys
}

func (in *inspector) get(o *goja.Object, key string) (v goja.Value) {
	if ex := in.r.VM.Try(func() { v = o.Get(key) }); ex != nil {
		return in.r.VM.ToValue("[a getter that throws]")
	}
	return v
}

// property writes the value of a property, without running a getter.
func (in *inspector) property(o *goja.Object, key string, depth int) string {
	if !IsProxy(o) && in.r.DescribeProperty != nil {
		if d, err := in.r.DescribeProperty(goja.Undefined(), o, in.r.VM.ToValue(key)); err == nil {
			if d, ok := d.(*goja.Object); ok {
				getter, setter := callableIn(d, "get"), callableIn(d, "set")
				switch {
				case getter && setter:
					return "[Getter/Setter]"
				case getter:
					return "[Getter]"
				case setter:
					return "[Setter]"
				}
			}
		}
	}
	return in.nested(in.get(o, key), depth)
}

func callableIn(o *goja.Object, key string) bool {
	v, ok := o.Get(key).(*goja.Object)
	return ok && Callable(v)
}

// empty writes an object that holds nothing; it returns "" for others. What is
// empty is written at any depth, as it is.
func (in *inspector) empty(o *goja.Object, name string) string {
	switch {
	case IsArray(o) && name == "Array":
		if v := in.get(o, "length"); v != nil && v.ToInteger() == 0 && len(in.keys(o)) == 0 {
			return in.reference(o) + "[]"
		}
	case o.ClassName() == "Object" && name == "Object" && o.ExportType().Kind() == reflect.Map && in.tag(o) == "":
		if len(in.keys(o)) == 0 && len(o.Symbols()) == 0 {
			return in.reference(o) + "{}"
		}
	}
	return ""
}

// tag returns the Symbol.toStringTag of an object or its prototype.
func (in *inspector) tag(o *goja.Object) (tag string) {
	in.r.VM.Try(func() {
		if s, ok := o.GetSymbol(goja.SymToStringTag).(goja.String); ok {
			tag = s.String()
		}
	})
	return tag
}

// custom asks an object how it wants to be shown, as Node does.
func (in *inspector) custom(o *goja.Object, depth int) (string, bool) {
	if in.r.inspectSymbol == nil {
		return "", false
	}
	var v goja.Value
	in.r.VM.Try(func() { v = o.GetSymbol(in.r.inspectSymbol) })
	f, ok := goja.AssertFunction(v)
	if !ok {
		return "", false
	}
	shown, err := f(o, in.r.VM.ToValue(in.depth-depth))
	if err != nil {
		panic(abort{err})
	}
	if s, ok := shown.(goja.String); ok {
		return s.String(), true
	}
	if other, ok := shown.(*goja.Object); ok && other != o {
		return in.readable(other, depth), true
	}
	return "", false
}

// hexBytes writes the first bytes of a buffer as Node does.
func hexBytes(b []byte) string {
	const most = 50
	var parts []string
	for _, x := range b[:min(len(b), most)] {
		parts = append(parts, string([]byte{hexDigits[x>>4], hexDigits[x&15]}))
	}
	text := strings.Join(parts, " ")
	if len(b) > most {
		text += " ... " + strconv.Itoa(len(b)-most) + " more byte" + strings.Repeat("s", min(1, len(b)-most-1))
	}
	return text
}

func (in *inspector) method(o *goja.Object, name, otherwise string) string {
	f, ok := goja.AssertFunction(in.get(o, name))
	if !ok {
		return otherwise
	}
	v, err := f(o)
	if err != nil {
		if Stopped(err) {
			panic(err)
		}
		return otherwise
	}
	return v.String()
}

func (in *inspector) constructor(o *goja.Object) string {
	for p := o; p != nil; p = in.proto(p) {
		var c goja.Value
		in.r.VM.Try(func() { c = p.Get("constructor") })
		if f, ok := c.(*goja.Object); ok {
			if s, ok := in.get(f, "name").(goja.String); ok && s.String() != "" {
				return s.String()
			}
		}
	}
	return ""
}

func (in *inspector) proto(o *goja.Object) (p *goja.Object) {
	in.r.VM.Try(func() { p = o.Prototype() })
	return p
}

func (in *inspector) items(o *goja.Object, n, depth int, keys []string) (out, rest []string) {
	index := 0
	for ; index < n && len(out) < inspectItems && in.room > 0; index++ {
		v := in.get(o, strconv.Itoa(index))
		if v == nil {
			// A hole, or many: the next key says how many.
			next := n
			for _, k := range keys {
				if i, err := strconv.Atoi(k); err == nil && i > index {
					next = i
					break
				}
			}
			hole := next - index
			index = next - 1
			if hole == 1 {
				out = append(out, "<1 empty item>")
			} else {
				out = append(out, "<"+strconv.Itoa(hole)+" empty items>")
			}
			continue
		}
		out = append(out, in.nested(v, depth))
	}
	if index < n {
		out = append(out, more(n-index))
	}
	for _, k := range keys {
		if i, err := strconv.Atoi(k); err != nil || i < 0 || i >= n {
			rest = append(rest, k)
		}
	}
	return out, rest
}

func more(n int) string {
	if n == 1 {
		return "... 1 more item"
	}
	return "... " + strconv.Itoa(n) + " more items"
}

func (in *inspector) mapEntries(o *goja.Object, depth int) (out []string) {
	n := 0
	in.r.Each(in.r.MapEach, o, func(v, k goja.Value) {
		if n++; n <= inspectItems && in.room > 0 {
			out = append(out, in.nested(k, depth)+" => "+in.nested(v, depth))
		}
	})
	if n > len(out) {
		out = append(out, more(n-len(out)))
	}
	return out
}

func (in *inspector) setEntries(o *goja.Object, depth int) (out []string) {
	n := 0
	in.r.Each(in.r.SetEach, o, func(v, _ goja.Value) {
		if n++; n <= inspectItems && in.room > 0 {
			out = append(out, in.nested(v, depth))
		}
	})
	if n > len(out) {
		out = append(out, more(n-len(out)))
	}
	return out
}

func (in *inspector) callable(o *goja.Object) string {
	name := ""
	if s, ok := in.get(o, "name").(goja.String); ok {
		name = s.String()
	}
	source := o.String()
	kind := "Function"
	switch {
	case strings.HasPrefix(source, "class"):
		text := "(anonymous)"
		if name != "" {
			text = name
		}
		if p := in.proto(o); p != nil {
			if s, ok := in.get(p, "name").(goja.String); ok && s.String() != "" {
				text += " extends " + s.String()
			}
		}
		return "[class " + text + "]"
	case strings.HasPrefix(source, "async"):
		kind = "AsyncFunction"
	case strings.HasPrefix(source, "function*") || strings.HasPrefix(source, "function *"):
		kind = "GeneratorFunction"
	}
	if name == "" {
		return "[" + kind + " (anonymous)]"
	}
	return "[" + kind + ": " + name + "]"
}

// errorText is an error's name, message and stack in the script's own lines.
func (in *inspector) errorText(o *goja.Object) string {
	s := PropertyText(o, "name", "Error")
	if m := PropertyText(o, "message", ""); m != "" {
		s += ": " + m
	}
	lines := in.r.StackOf(o)
	if len(in.seen) > 1 {
		if len(lines) == 0 {
			return "[" + s + "]"
		}
	}
	pad := strings.Repeat(" ", in.indent)
	for _, line := range lines {
		s += "\n" + pad + "    at " + line
	}
	return s
}

// PlainText writes a value as %s of console.log does: a string without quotes.
func (r *Codec) PlainText(v goja.Value) string {
	in := inspector{r: r, room: inspectString}
	return in.value(v, 0, true)
}
