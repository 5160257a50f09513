package realm

import (
	"strings"

	"github.com/dop251/goja"

	"codemode-bridge/sandbox/source"
	"codemode-bridge/sandbox/values"
)

// installCaught makes the function that catch clauses call. It puts the engine's
// message about a property of undefined, which it writes for null too, into Node's
// words.
func (r *realm) installCaught() {
	r.world.Fix(source.CaughtFunction, r.Function("", func(c goja.FunctionCall) goja.Value {
		o, ok := c.Argument(0).(*goja.Object)
		if !ok || values.IsProxy(o) || o.ClassName() != "Error" {
			return goja.Undefined()
		}
		message, ok := r.DataProperty(o, "message").(goja.String)
		if !ok {
			return goja.Undefined()
		}
		m := noProperty().FindStringSubmatch(message.String())
		if m == nil {
			return goja.Undefined()
		}
		stack := values.PropertyText(o, "stack", "")
		at, _ := r.script.ParseStack(stack)
		text := "Cannot read properties of " + nothing(r.script.LineOf(at.Line), at, m[1]) + " (reading '" + m[1] + "')"
		o.Set("message", text)
		o.Set("stack", strings.Replace(stack, message.String(), text, 1))
		return goja.Undefined()
	}))
}
