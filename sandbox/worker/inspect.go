package worker

import (
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"

	"codemode-bridge/sandbox/wire"
)

// The shape of inspected values is Node's, so that a model reads what it has
// seen a million times: these are the defaults of util.inspect.
const (
	inspectDepth  = 2
	inspectItems  = 100
	inspectString = 10_000
	breakLength   = 80
	compactLevels = 3
	arrayRun      = 6 // arrays longer than this are set in columns
)

// inspect writes a value as console.log does. It runs getters and proxies of
// the script, so the deadline must be armed; what they throw is left out.
func (r *realm) inspect(v goja.Value) string { return r.inspectDeep(v, inspectDepth) }

func (r *realm) inspectDeep(v goja.Value, depth int) string {
	in := &inspector{r: r, depth: depth, room: 2 * wire.MaxText}
	return in.value(v, 0, false)
}

type inspector struct {
	r       *realm
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

func (in *inspector) object(o *goja.Object, depth int) string {
	for _, outer := range in.seen {
		if outer == o {
			return "[Circular *" + strconv.Itoa(in.circle(o)) + "]"
		}
	}
	if o.ExportType() == codemodeType {
		return "[codemode]"
	}
	name := in.constructor(o)
	class := o.ClassName()
	if depth > in.depth && class != "Error" && class != "Date" && class != "RegExp" && !callable(o) {
		switch {
		case isArray(o):
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

	base, open, end := "", "{", "}"
	var out []string
	list := false
	keys := in.keys(o)
	switch {
	case isArray(o):
		list = true
		open, end = "[", "]"
		n := int(o.Get("length").ToInteger())
		if name != "Array" && name != "" {
			open = name + "(" + strconv.Itoa(n) + ") ["
		}
		out, keys = in.items(o, n, depth, keys)
	case callable(o):
		base = in.callable(o)
	case class == "Error":
		base = in.errorText(o)
		keys = without(keys, "name", "message", "stack")
		if v := o.Get("cause"); v != nil && !oneOf(keys, "cause") {
			out = append(out, "[cause]: "+in.nested(v, depth))
		}
	case class == "Date":
		base = in.method(o, "toISOString", "Invalid Date")
	case class == "RegExp":
		base = o.String()
	case isMap(o) && in.r.mapEach != nil:
		out = in.mapEntries(o, depth)
		open = "Map(" + strconv.Itoa(int(o.Get("size").ToInteger())) + ") {"
	case isSet(o) && in.r.setEach != nil:
		out = in.setEntries(o, depth)
		open = "Set(" + strconv.Itoa(int(o.Get("size").ToInteger())) + ") {"
	case class == "String":
		base, keys = "[String: "+quoteJS(o.String())+"]", nil
	case class == "Number" || class == "Boolean":
		base = "[" + class + ": " + o.String() + "]"
	default:
		if p, ok := asPromise(o); ok {
			open = "Promise {"
			switch p.State() {
			case goja.PromiseStatePending:
				out = []string{"<pending>"}
			case goja.PromiseStateRejected:
				out = []string{"<rejected> " + in.nested(p.Result(), depth)}
			default:
				out = []string{in.nested(p.Result(), depth)}
			}
		} else if t := o.ExportType(); t == bufferType {
			b, _ := o.Export().(goja.ArrayBuffer)
			open = "ArrayBuffer {"
			out = []string{"byteLength: " + strconv.Itoa(len(b.Bytes()))}
		} else if t != nil && t.Kind() == reflect.Slice && numeric(t.Elem().Kind()) {
			list = true
			n := int(o.Get("length").ToInteger())
			open, end = name+"("+strconv.Itoa(n)+") [", "]"
			out, keys = in.items(o, n, depth, nil)
		} else if name == "" {
			open = "[Object: null prototype] {"
		} else if name != "Object" {
			open = name + " {"
		}
	}
	for _, key := range keys {
		if len(out) > 2*inspectItems {
			out = append(out, "...")
			break
		}
		out = append(out, keyText(key)+": "+in.nested(in.get(o, key), depth))
	}
	for _, s := range o.Symbols() {
		var v goja.Value
		in.r.vm.Try(func() { v = o.GetSymbol(s) })
		out = append(out, "[Symbol("+symbolText(s)+")]: "+in.nested(v, depth))
	}
	if len(out) == 0 && base != "" {
		return base
	}
	if len(out) == 0 {
		return in.reference(o) + open + end
	}
	return in.join(o, out, base, in.reference(o)+open, end, list, depth)
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
	in.r.vm.Try(func() { keys = o.Keys() })
	return keys
}

func (in *inspector) get(o *goja.Object, key string) (v goja.Value) {
	if ex := in.r.vm.Try(func() { v = o.Get(key) }); ex != nil {
		return in.r.vm.ToValue("[a getter that throws]")
	}
	return v
}

func (in *inspector) method(o *goja.Object, name, otherwise string) string {
	f, ok := goja.AssertFunction(in.get(o, name))
	if !ok {
		return otherwise
	}
	v, err := f(o)
	if err != nil {
		if limitOf(err) != nil {
			panic(err)
		}
		return otherwise
	}
	return v.String()
}

func (in *inspector) constructor(o *goja.Object) string {
	for p := o; p != nil; p = in.proto(p) {
		var c goja.Value
		in.r.vm.Try(func() { c = p.Get("constructor") })
		if f, ok := c.(*goja.Object); ok {
			if s, ok := in.get(f, "name").(goja.String); ok && s.String() != "" {
				return s.String()
			}
		}
	}
	return ""
}

func (in *inspector) proto(o *goja.Object) (p *goja.Object) {
	in.r.vm.Try(func() { p = o.Prototype() })
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
	in.each(in.r.mapEach, o, func(v, k goja.Value) {
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
	in.each(in.r.setEach, o, func(v, _ goja.Value) {
		if n++; n <= inspectItems && in.room > 0 {
			out = append(out, in.nested(v, depth))
		}
	})
	if n > len(out) {
		out = append(out, more(n-len(out)))
	}
	return out
}

func (in *inspector) each(forEach goja.Callable, o *goja.Object, f func(v, k goja.Value)) {
	e := encoder{r: in.r}
	e.each(forEach, o, f)
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
		if name == "" {
			return "[class (anonymous)]"
		}
		return "[class " + name + "]"
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
	s := propertyText(o, "name", "Error")
	if m := propertyText(o, "message", ""); m != "" {
		s += ": " + m
	}
	var lines []string
	if p := in.r.thrown[o]; p != nil {
		lines = p.stack
	} else {
		_, lines = in.r.parseStack(propertyText(o, "stack", ""))
	}
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

// join sets the entries of one object on one line where they fit, as Node's
// reduceToSingleString does.
func (in *inspector) join(o *goja.Object, out []string, base, open, end string, list bool, depth int) string {
	entries := len(out)
	if list && entries > arrayRun {
		out = in.columns(out, o)
	}
	if base != "" {
		base += " "
	}
	if in.current-depth < compactLevels && entries == len(out) {
		start := len(out) + in.indent + width(open) + width(base) + 10
		total := len(out) + start
		for _, s := range out {
			total += width(s)
		}
		if total <= breakLength && !strings.Contains(base, "\n") {
			line := strings.Join(out, ", ")
			if !strings.Contains(line, "\n") {
				return base + open + " " + line + " " + end
			}
		}
	}
	pad := "\n" + strings.Repeat(" ", in.indent)
	return base + open + pad + "  " + strings.Join(out, ","+pad+"  ") + pad + end
}

// columns groups the entries of a long array, as Node's groupArrayElements does.
func (in *inspector) columns(out []string, o *goja.Object) []string {
	n := len(out)
	if strings.HasPrefix(out[n-1], "... ") && strings.Contains(out[n-1], " more item") {
		n--
	}
	total, longest := 0, 0
	for _, s := range out[:n] {
		w := width(s)
		total += w + 2
		longest = max(longest, w)
	}
	actual := longest + 2
	if actual*3+in.indent >= breakLength || !(float64(total)/float64(actual) > 5 || longest <= 6) {
		return out
	}
	bias := math.Sqrt(float64(actual) - float64(total)/float64(len(out)))
	biased := math.Max(float64(actual)-3-bias, 1)
	columns := int(math.Min(math.Min(
		math.Round(math.Sqrt(2.5*biased*float64(n))/biased),
		math.Floor(float64(breakLength-in.indent)/float64(actual))),
		math.Min(compactLevels*4, 15)))
	if columns <= 1 {
		return out
	}
	var widths []int
	for i := range columns {
		w := 0
		for j := i; j < n; j += columns {
			w = max(w, width(out[j]))
		}
		widths = append(widths, w+2)
	}
	numbers := true
	for i := range n {
		if v := in.get(o, strconv.Itoa(i)); v != nil {
			switch v.Export().(type) {
			case int64, float64, *big.Int:
				continue
			}
		}
		numbers = false
		break
	}
	var rows []string
	for i := 0; i < n; i += columns {
		last := min(i+columns, n)
		var b strings.Builder
		for j := i; j < last; j++ {
			cell := out[j]
			if j < last-1 {
				cell += ", "
			}
			pad := strings.Repeat(" ", max(0, widths[j-i]-width(cell)))
			switch {
			case numbers && j == last-1:
				b.WriteString(strings.Repeat(" ", max(0, widths[j-i]-2-width(cell))) + cell)
			case numbers:
				b.WriteString(pad + cell)
			case j == last-1:
				b.WriteString(cell)
			default:
				b.WriteString(cell + pad)
			}
		}
		rows = append(rows, b.String())
	}
	return append(rows, out[n:]...)
}

func width(s string) int { return utf8.RuneCountInString(s) }

func keyText(key string) string {
	if identifier(key) {
		return key
	}
	return quoteJS(key)
}

// quoteJS writes a string as Node does: in single quotes, or in others where
// that saves escapes.
func quoteJS(s string) string {
	tail := ""
	if len(s) > inspectString {
		rest := len(s) - inspectString
		s = cutText(s, inspectString)
		tail = "... " + strconv.Itoa(rest) + " more characters"
	}
	q := byte('\'')
	if strings.Contains(s, "'") {
		if !strings.Contains(s, `"`) {
			q = '"'
		} else if !strings.ContainsAny(s, "`$") {
			q = '`'
		}
	}
	var b strings.Builder
	b.WriteByte(q)
	for _, c := range s {
		switch {
		case c == rune(q) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\b':
			b.WriteString(`\b`)
		case c == '\f':
			b.WriteString(`\f`)
		case c == '\v':
			b.WriteString(`\v`)
		case c < ' ' || c >= 0x7f && c < 0xa0:
			b.WriteString(`\x` + strings.ToUpper(string([]byte{hexDigits[c>>4], hexDigits[c&15]})))
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte(q)
	return b.String() + tail
}

func without(list []string, drop ...string) (out []string) {
	for _, s := range list {
		if !oneOf(drop, s) {
			out = append(out, s)
		}
	}
	return out
}

func oneOf(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
