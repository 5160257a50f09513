package realm

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"

	"codemode-bridge/sandbox/values"
	"codemode-bridge/sandbox/web"
)

// installGlobals makes the globals that every script has, and those that this one
// mentions.
func (r *realm) installGlobals() {
	r.world.Fix("codemode", r.tools.object())
	if r.input != nil {
		v, err := r.Decode(string(r.input))
		if err == nil {
			r.VM.GlobalObject().DefineDataProperty("input", v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
		}
	}
	if r.VM.Get("input") == nil {
		r.VM.GlobalObject().DefineDataProperty("input", goja.Undefined(), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	r.world.Install([]web.Global{
		{Words: []string{"json"}, Install: func() { r.world.Fix("json", r.Function("json", r.json)) }},
		{Words: []string{"emit"}, Install: func() { r.world.Fix("emit", r.Function("emit", r.tools.emit)) }},
		{Words: timerWords, Install: r.timers.install},
	})
	for _, name := range errorClasses {
		if r.script.Mentions(name) {
			if c := r.class(name); c != nil {
				r.VM.GlobalObject().DefineDataProperty(name, c, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
			}
		}
	}
	r.Keep(r.script.Mentions)
	if r.script.Mentions("setPrototypeOf") || r.script.Mentions("__proto__") {
		r.tools.guardPrototypes()
	}
}

// json is the global json(x): it parses text that is JSON, and leaves
// everything else alone.
func (r *realm) json(c goja.FunctionCall) goja.Value {
	v := c.Argument(0)
	s, ok := v.(goja.String)
	if !ok {
		if _, promise := values.AsPromise(v); promise {
			panic(r.VM.NewTypeError("json: got a promise: write json(await ...)"))
		}
		return v
	}
	text := s.String()
	out, err := r.Decode(strings.TrimPrefix(text, "\ufeff"))
	if err != nil {
		what := "the text is no JSON"
		if strings.TrimSpace(text) == "" {
			what = "the text is empty"
		}
		panic(r.SyntaxError(fmt.Sprintf("json: %s (%s): %s", what, err, excerpt(text))))
	}
	return out
}

// excerpt shows the beginning of a text, on one line.
func excerpt(text string) string {
	short := string([]rune(values.Cut(text, 400))[:min(80, utf8.RuneCountInString(values.Cut(text, 400)))])
	q := string(values.AppendJSON(nil, short))
	if len(short) < len(text) {
		q += fmt.Sprintf("… (%d characters)", utf8.RuneCountInString(text))
	}
	return q
}

// A worldHost is the realm as its globals see it.
type worldHost struct{ r *realm }

func (h worldHost) Log(level, text string) { h.r.host.Log(level, text) }
func (h worldHost) Now() time.Time         { return h.r.host.Now() }
func (h worldHost) Random(b []byte)        { h.r.random(b) }
func (h worldHost) Stack() []string {
	_, stack := h.r.here()
	return stack
}
