package web

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"codemode-bridge/sandbox/values"
)

// A console is the script's console: what it writes goes to the parent, in
// the order in which it was written.
type console struct {
	r      *World
	indent string
	counts map[string]int
	timers map[string]float64 // label to the script's clock, in ms
}

// newConsole makes the console object. Its methods can't be replaced: logs
// are part of the answer.
func (r *World) newConsole() goja.Value {
	c := &console{r: r, counts: make(map[string]int), timers: make(map[string]float64)}
	o := r.VM.NewObject()
	add := func(name string, f func(args []goja.Value)) {
		fn := r.Function(name, func(call goja.FunctionCall) goja.Value {
			if err := r.Guard(func() { f(call.Arguments) }); err != nil {
				c.write("log", r.Unreadable(err))
			}
			return goja.Undefined()
		})
		o.DefineDataProperty(name, fn, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
	}
	for _, level := range []string{"log", "info", "warn", "error", "debug"} {
		add(level, func(args []goja.Value) { c.write(level, c.format(args)) })
	}
	add("trace", func(args []goja.Value) {
		stack := r.host.Stack()
		c.write("error", strings.TrimRight("Trace: "+c.format(args), ": ")+"\n    at "+strings.Join(stack, "\n    at "))
	})
	add("dir", func(args []goja.Value) {
		if len(args) > 0 {
			c.write("log", r.InspectDeep(args[0], c.dirDepth(args)))
		}
	})
	add("dirxml", func(args []goja.Value) { c.write("log", c.format(args)) })
	add("table", func(args []goja.Value) { c.write("log", c.table(args)) })
	add("assert", func(args []goja.Value) {
		if len(args) > 0 && args[0].ToBoolean() {
			return
		}
		text := "Assertion failed"
		if len(args) > 1 {
			if _, ok := args[1].(goja.String); ok {
				text += ":"
			}
			text += " " + c.format(args[1:])
		}
		c.write("error", text)
	})
	add("count", func(args []goja.Value) {
		label := labelOf(args)
		c.counts[label]++
		c.write("log", label+": "+strconv.Itoa(c.counts[label]))
	})
	add("countReset", func(args []goja.Value) { delete(c.counts, labelOf(args)) })
	group := func(args []goja.Value) {
		if len(args) > 0 {
			c.write("log", c.format(args))
		}
		if len(c.indent) < 100 {
			c.indent += "  "
		}
	}
	add("group", group)
	add("groupCollapsed", group)
	add("groupEnd", func([]goja.Value) { c.indent = c.indent[:max(0, len(c.indent)-2)] })
	add("time", func(args []goja.Value) { c.timers[labelOf(args)] = c.now() })
	elapsed := func(args []goja.Value) (string, bool) {
		label := labelOf(args)
		from, ok := c.timers[label]
		if !ok {
			c.write("warn", "no such label '"+label+"' for console.time()")
			return "", false
		}
		return label + ": " + strconv.FormatFloat(c.now()-from, 'f', -1, 64) + "ms", true
	}
	add("timeLog", func(args []goja.Value) {
		if text, ok := elapsed(args); ok {
			if len(args) > 1 {
				text += " " + c.format(args[1:])
			}
			c.write("log", text)
		}
	})
	add("timeEnd", func(args []goja.Value) {
		if text, ok := elapsed(args); ok {
			c.write("log", text)
			delete(c.timers, labelOf(args))
		}
	})
	return o
}

// number converts as Number(v) does; what can't be converted is NaN.
func (c *console) number(v goja.Value) float64 {
	x := math.NaN()
	if err := c.r.Guard(func() { x = v.ToFloat() }); err != nil {
		c.r.Unreadable(err)
	}
	return x
}

func (c *console) now() float64 { return float64(c.r.host.Now().UnixMicro()) / 1000 }

func (c *console) write(level, text string) {
	if c.indent != "" {
		text = c.indent + strings.ReplaceAll(text, "\n", "\n"+c.indent)
	}
	c.r.host.Log(level, text)
}

func labelOf(args []goja.Value) string {
	if len(args) == 0 || goja.IsUndefined(args[0]) {
		return "default"
	}
	return values.Cut(args[0].String(), 200)
}

func (c *console) dirDepth(args []goja.Value) int {
	if len(args) > 1 {
		if o, ok := args[1].(*goja.Object); ok {
			switch v := o.Get("depth"); {
			case v == nil || goja.IsUndefined(v):
			case goja.IsNull(v):
				return 100
			default:
				return int(min(max(v.ToInteger(), 0), 100))
			}
		}
	}
	return values.InspectDepth
}

// format joins the arguments as console.log does, with its % directives.
func (c *console) format(args []goja.Value) string {
	if len(args) == 0 {
		return ""
	}
	var b strings.Builder
	rest := args
	if s, ok := args[0].(goja.String); ok {
		rest = args[1:]
		text := s.String()
		if len(rest) == 0 || !strings.Contains(text, "%") {
			b.WriteString(text)
		} else {
			rest = c.directives(&b, text, rest)
		}
	} else {
		b.WriteString(c.r.Inspect(args[0]))
		rest = args[1:]
	}
	for _, v := range rest {
		b.WriteByte(' ')
		if s, ok := v.(goja.String); ok {
			b.WriteString(s.String())
		} else {
			b.WriteString(c.r.Inspect(v))
		}
	}
	return b.String()
}

func (c *console) directives(b *strings.Builder, text string, args []goja.Value) []goja.Value {
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		d := text[i+1]
		if d == '%' {
			b.WriteByte('%')
			i++
			continue
		}
		if len(args) == 0 || !strings.ContainsRune("sdifjoOc", rune(d)) {
			b.WriteByte('%')
			continue
		}
		v := args[0]
		args = args[1:]
		i++
		_, object := v.(*goja.Object)
		switch d {
		case 's':
			if object {
				b.WriteString(c.r.InspectDeep(v, 0))
			} else {
				b.WriteString(c.r.PlainText(v))
			}
		case 'd', 'i':
			if big, ok := v.Export().(*big.Int); ok && !object {
				b.WriteString(big.String() + "n")
				break
			}
			x := math.NaN()
			if !object {
				x = c.number(v)
			}
			if d == 'i' {
				x = math.Trunc(x)
			}
			b.WriteString(c.r.VM.ToValue(x).String())
		case 'f':
			b.WriteString(c.r.VM.ToValue(c.number(v)).String())
		case 'j':
			if text, err := c.r.Encode(v, "value", maxLogged); err == nil {
				b.Write(text)
			} else if values.Stopped(err) {
				panic(err)
			} else {
				b.WriteString("[Circular]")
			}
		case 'c': // a style: a log has none
		default:
			b.WriteString(c.r.InspectDeep(v, 4))
		}
	}
	return args
}

// maxTable bounds the rows of console.table.
const maxTable = 200

// table draws rows as Node does: the entries of an array, object, Map or Set,
// with a column for each of their properties, or for those that the second
// argument lists.
func (c *console) table(args []goja.Value) string {
	if len(args) == 0 {
		return ""
	}
	data, ok := args[0].(*goja.Object)
	if !ok {
		return c.format(args)
	}
	t := newTable(c.r, "(index)")
	if len(args) > 1 {
		if list, ok := args[1].(*goja.Object); ok && values.IsArray(list) {
			t.only = true
			for i := range int(min(list.Get("length").ToInteger(), maxTable)) {
				t.column(list.Get(strconv.Itoa(i)).String())
			}
		}
	}
	switch {
	case values.IsMap(data) && c.r.MapEach != nil:
		t.head[0] = "(iteration index)"
		t.column("Key")
		c.r.Each(c.r.MapEach, data, func(v, k goja.Value) {
			row := t.add(strconv.Itoa(len(t.rows)), v)
			t.set(row, 1, c.r.InspectDeep(k, 0))
		})
	case values.IsSet(data) && c.r.SetEach != nil:
		t.head[0] = "(iteration index)"
		c.r.Each(c.r.SetEach, data, func(v, _ goja.Value) { t.add(strconv.Itoa(len(t.rows)), v) })
	default:
		for _, k := range data.Keys() {
			t.add(k, data.Get(k))
		}
	}
	return t.draw()
}

// A table is what console.table draws.
type table struct {
	r      *World
	head   []string
	at     map[string]int // the column of a property
	only   bool           // no further columns
	rows   [][]string
	values []string // by row, of those that are not objects
	cut    bool
}

func newTable(r *World, index string) *table {
	return &table{r: r, head: []string{index}, at: make(map[string]int)}
}

func (t *table) column(name string) int {
	i, ok := t.at[name]
	if !ok && len(t.head) <= maxTable {
		i = len(t.head)
		t.at[name] = i
		t.head = append(t.head, name)
	}
	return i
}

func (t *table) set(row, column int, text string) {
	if row < 0 || column == 0 {
		return
	}
	for len(t.rows[row]) <= column {
		t.rows[row] = append(t.rows[row], "")
	}
	t.rows[row][column] = text
}

// add adds a row and returns its number, or -1 if there are too many.
func (t *table) add(key string, v goja.Value) int {
	if t.cut = len(t.rows) == maxTable; t.cut {
		return -1
	}
	row := len(t.rows)
	t.rows = append(t.rows, []string{key})
	t.values = append(t.values, "")
	o, ok := v.(*goja.Object)
	if !ok || values.Callable(o) {
		t.values[row] = t.r.InspectDeep(v, 0)
		return row
	}
	for _, k := range o.Keys() {
		if _, known := t.at[k]; known || !t.only {
			t.set(row, t.column(k), t.r.InspectDeep(o.Get(k), 0))
		}
	}
	return row
}

func (t *table) draw() string {
	for row, text := range t.values {
		if text != "" {
			t.set(row, t.column(valuesColumn), text)
		}
	}
	// The values of rows that are not objects are in the last column.
	if i, ok := t.at[valuesColumn]; ok {
		t.head[i] = "Values"
	}
	rows := t.rows
	if t.cut {
		rows = append(rows, []string{"…"})
	}
	return drawTable(t.head, rows)
}

// valuesColumn is a name that no property of a script has by accident.
const valuesColumn = "\x00values"

func drawTable(head []string, rows [][]string) string {
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], values.Width(cell)+2)
		}
	}
	var b strings.Builder
	rule := func(left, mid, right string) {
		for i, w := range widths {
			b.WriteString(left + strings.Repeat("─", w))
			left = mid
			if i == len(widths)-1 {
				b.WriteString(right)
			}
		}
	}
	line := func(row []string) {
		for i, w := range widths {
			cell := ""
			if i < len(row) {
				cell = row[i]
			}
			b.WriteString("│ " + cell + strings.Repeat(" ", w-1-values.Width(cell)))
		}
		b.WriteString("│\n")
	}
	rule("┌", "┬", "┐\n")
	line(head)
	rule("├", "┼", "┤\n")
	for _, row := range rows {
		line(row)
	}
	rule("└", "┴", "┘")
	return b.String()
}

// maxLogged bounds the JSON of one value of a line, in bytes.
const maxLogged = 64 << 10
