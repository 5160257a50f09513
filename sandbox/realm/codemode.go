package realm

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"codemode-bridge/sandbox/values"
	"codemode-bridge/sandbox/wire"
)

// members are what codemode has besides the tools.
var members = []string{"prompts", "raw", "read", "resources", "run"}

// silent are names that the language itself asks any object for. They are
// not tools: `await codemode` and JSON.stringify(codemode) must be harmless.
// A server's tool of such a name is called by its flat name.
var silent = map[string]bool{
	"then": true, "catch": true, "finally": true, "toJSON": true, "constructor": true, "prototype": true,
	"__proto__": true, "valueOf": true, "inspect": true, "length": true, "name": true,
	"__defineGetter__": true, "__defineSetter__": true, "__lookupGetter__": true, "__lookupSetter__": true,
}

// tools are what a realm's script calls: the members of `codemode`.
type tools struct {
	r     *realm
	names *Names
	made  map[string]goja.Value // function objects by name: a name always gives the same one
}

// dynamic is an object whose properties are made when they are asked for and
// that cannot be changed.
type dynamic struct {
	r    *realm
	what string // for messages
	get  func(key string) goja.Value
	has  func(key string) bool
	keys func() []string
}

var codemodeType = reflect.TypeFor[*dynamic]()

func (t *tools) dynamic(d *dynamic) *goja.Object {
	d.r = t.r
	o := t.r.VM.NewDynamicObject(d)
	o.SetPrototype(nil) // nothing to climb
	return o
}

func (d *dynamic) Get(key string) goja.Value {
	switch {
	case key == "toString" || key == "toLocaleString":
		return d.r.Function(key, func(goja.FunctionCall) goja.Value { return d.r.VM.ToValue("[object " + d.what + "]") })
	case key == "hasOwnProperty":
		return d.r.Function(key, func(c goja.FunctionCall) goja.Value { return d.r.VM.ToValue(d.has(c.Argument(0).String())) })
	case silent[key]:
		return goja.Undefined()
	}
	return d.get(key)
}

func (d *dynamic) Has(key string) bool { return d.has(key) }
func (d *dynamic) Keys() []string      { return d.keys() }

func (d *dynamic) Set(key string, _ goja.Value) bool {
	panic(d.r.VM.NewTypeError("%s can't be changed: setting %s is refused", d.what, values.QuoteName(key)))
}

func (d *dynamic) Delete(key string) bool {
	panic(d.r.VM.NewTypeError("%s can't be changed: deleting %s is refused", d.what, values.QuoteName(key)))
}

// guardPrototypes refuses to set the prototypes of dynamic objects, which cannot
// refuse that themselves. Only a script that names what sets one pays for it.
func (t *tools) guardPrototypes() {
	wrap := func(name string, length int, f goja.Callable, target func(goja.FunctionCall) goja.Value) goja.Value {
		o := t.r.Function(name, func(c goja.FunctionCall) goja.Value {
			if o, ok := target(c).(*goja.Object); ok && o.ExportType() == codemodeType {
				panic(t.r.VM.NewTypeError("codemode can't be changed: setting its prototype is refused"))
			}
			v, err := f(c.This, c.Arguments...)
			if err != nil {
				panic(t.r.Rethrow(err))
			}
			return v
		})
		o.DefineDataProperty("length", t.r.VM.ToValue(length), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
		return o
	}
	const name = "setPrototypeOf"
	first := func(c goja.FunctionCall) goja.Value { return c.Argument(0) }
	for _, class := range []string{"Object", "Reflect"} {
		o := t.r.VM.Get(class).(*goja.Object)
		f, _ := goja.AssertFunction(o.Get(name))
		o.DefineDataProperty(name, wrap(name, 2, f, first), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	prototype := t.r.VM.Get("Object").(*goja.Object).Get("prototype").(*goja.Object)
	d, err := t.r.DescribeProperty(goja.Undefined(), prototype, t.r.VM.ToValue("__proto__"))
	if err != nil {
		panic(fmt.Errorf("guarding prototypes: %w", err))
	}
	f, _ := goja.AssertFunction(d.(*goja.Object).Get("set"))
	this := func(c goja.FunctionCall) goja.Value { return c.This }
	prototype.DefineAccessorProperty("__proto__", d.(*goja.Object).Get("get"), wrap("set __proto__", 1, f, this), goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// object makes the object that scripts call tools with.
func (t *tools) object() *goja.Object {
	t.made = make(map[string]goja.Value)
	return t.dynamic(&dynamic{
		what: "codemode",
		get:  t.member,
		has:  func(key string) bool { return contains(members, key) || t.names.has(key) || t.names.server(key) },
		keys: func() []string { return append(append([]string(nil), members...), t.names.list...) },
	})
}

// member returns codemode[key]. A name that is not known gives a function
// too: its call goes to the parent, which answers with near names and records
// that it was tried. Nothing is decided here.
func (t *tools) member(key string) goja.Value {
	if v, ok := t.made[key]; ok {
		return v
	}
	var v goja.Value
	switch {
	case key == "raw":
		v = t.r.Function(key, func(c goja.FunctionCall) goja.Value { return t.named(c, wire.OpRaw, "codemode.raw") })
	case key == "run":
		v = t.r.Function(key, func(c goja.FunctionCall) goja.Value { return t.named(c, wire.OpRun, "codemode.run") })
	case key == "read":
		v = t.r.Function(key, func(c goja.FunctionCall) goja.Value {
			return t.handle(c, wire.OpRead, "codemode.read", "path")
		})
	case key == "resources":
		v = t.methods(key, wire.OpResource)
	case key == "prompts":
		v = t.methods(key, wire.OpPrompt)
	case t.names.has(key):
		v = t.tool(key)
	case t.names.server(key):
		v = t.server(key)
	default:
		v = t.unknown(key)
	}
	t.made[key] = v
	return v
}

// tool returns the function that calls a tool.
func (t *tools) tool(name string) *goja.Object {
	label := "codemode" + values.Accessor(name)
	return t.r.Function(name, func(c goja.FunctionCall) goja.Value {
		return t.r.call(wire.OpTool, name, label, func() ([]byte, error) { return t.r.EncodeArgs(c, label) })
	})
}

// server returns codemode.<server>, whose members are the server's tools.
func (t *tools) server(name string) *goja.Object {
	cache, prefix := make(map[string]goja.Value), t.names.prefix(name)
	return t.dynamic(&dynamic{
		what: "codemode" + values.Accessor(name),
		get: func(key string) goja.Value {
			v, ok := cache[key]
			if !ok {
				flat := prefix + "__" + key
				if !contains(t.names.list, flat) {
					flat = name + "__" + key // as it was written, for the parent
				}
				v = t.tool(flat)
				cache[key] = v
			}
			return v
		},
		has: func(key string) bool { return !silent[key] && t.names.has(prefix+"__"+key) },
		keys: func() []string {
			return slices.DeleteFunc(t.names.of(prefix), func(key string) bool { return silent[key] })
		},
	})
}

// unknown returns what codemode.<name> is when there is no such name: a
// function, and through its members the tools of a server of that name.
func (t *tools) unknown(name string) goja.Value {
	f := t.tool(name)
	if callers[name] {
		f = t.r.Function(name, func(c goja.FunctionCall) goja.Value {
			return t.r.call(wire.OpTool, name, "codemode."+name, func() ([]byte, error) { return nil, t.notByName(name, c.Argument(0)) })
		})
	}
	p := t.r.VM.NewProxy(f, &goja.ProxyTrapConfig{
		Get: func(target *goja.Object, property string, receiver goja.Value) goja.Value {
			if v := target.Get(property); v != nil || silent[property] {
				return v
			}
			return t.tool(name + "__" + property)
		},
	})
	return t.r.VM.ToValue(p)
}

// callers are the names by which other hosts call tools.
var callers = map[string]bool{"call": true, "callTool": true, "call_tool": true, "execute": true, "invoke": true, "tool": true, "use": true}

// notByName says how to call a tool instead of codemode.call("name", args).
func (t *tools) notByName(caller string, first goja.Value) error {
	member := ".server__tool"
	if o, ok := first.(*goja.Object); ok && !values.IsProxy(o) {
		if name := t.r.DataProperty(o, "name"); name != nil {
			first = name
		}
	}
	if s, ok := first.(goja.String); ok {
		name := s.String()
		if flat := strings.Replace(name, ".", "__", 1); t.names.has(flat) {
			name = flat
		}
		if t.names.has(name) {
			member = values.Accessor(name)
		} else if near := values.Nearest(name, t.names.list); near != "" {
			member = values.Accessor(near)
		}
	}
	return &values.TypeError{Message: fmt.Sprintf("there is no codemode.%s: tools are called by their names: codemode%s({...})", caller, member)}
}

// parameters are what the methods of codemode.resources and codemode.prompts
// take, in their order.
var parameters = map[wire.Op]map[string][]string{
	wire.OpResource: {"list": {"server"}, "read": {"server", "uri"}, "templates": {"server"}},
	wire.OpPrompt:   {"list": {"server"}, "get": {"server", "name", "arguments"}},
}

// methods returns codemode.resources or codemode.prompts.
func (t *tools) methods(name string, op wire.Op) *goja.Object {
	list := slices.Sorted(maps.Keys(parameters[op]))
	cache := make(map[string]goja.Value)
	return t.dynamic(&dynamic{
		what: "codemode." + name,
		get: func(key string) goja.Value {
			v, ok := cache[key]
			if !ok {
				label := "codemode." + name + values.Accessor(key)
				v = t.r.Function(key, func(c goja.FunctionCall) goja.Value {
					return t.r.call(op, key, label, func() ([]byte, error) {
						if names, ok := parameters[op][key]; ok {
							return t.encodeParameters(c, label, names)
						}
						return nil, &values.TypeError{Message: fmt.Sprintf("there is no %s: codemode.%s has %s", label, name, strings.Join(list, ", "))}
					})
				})
				cache[key] = v
			}
			return v
		},
		has:  func(key string) bool { return contains(list, key) },
		keys: func() []string { return list },
	})
}

// encodeParameters makes one object of positional arguments. A call with one
// object has it already.
func (t *tools) encodeParameters(c goja.FunctionCall, label string, names []string) ([]byte, error) {
	if _, ok := c.Argument(0).(*goja.Object); ok && len(c.Arguments) == 1 {
		return t.r.EncodeArgs(c, label)
	}
	if len(c.Arguments) > len(names) {
		return nil, &values.TypeError{Message: fmt.Sprintf("%s takes (%s), got %d arguments", label, strings.Join(names, ", "), len(c.Arguments))}
	}
	b := []byte{'{'}
	for i, name := range names {
		v := c.Argument(i)
		if goja.IsUndefined(v) || goja.IsNull(v) {
			continue
		}
		encoded, err := t.r.EncodeAny(v, label)
		if err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(append(b, '"'), name...), `":`...), encoded...)
	}
	return append(b, '}'), nil
}

// named makes a call whose first argument is the name of what is called.
func (t *tools) named(c goja.FunctionCall, op wire.Op, label string) goja.Value {
	name, ok := c.Argument(0).(goja.String)
	text := ""
	if ok {
		text = name.String()
	}
	return t.r.call(op, text, label, func() ([]byte, error) {
		if !ok {
			return nil, &values.TypeError{Message: fmt.Sprintf("%s: the first argument must be a name, got %s", label, values.Describe(c.Argument(0)))}
		}
		rest := goja.FunctionCall{This: c.This}
		if len(c.Arguments) > 1 {
			rest.Arguments = c.Arguments[1:]
		}
		if op == wire.OpRun {
			if err := t.r.saved.mayRun(); err != nil {
				return nil, err
			}
		}
		return t.r.EncodeArgs(rest, label)
	})
}

// handle makes a call about a handle: an object that an answer held, or its id.
func (t *tools) handle(c goja.FunctionCall, op wire.Op, label string, second string) goja.Value {
	return t.r.call(op, "", label, func() ([]byte, error) {
		h := c.Argument(0)
		if goja.IsUndefined(h) || goja.IsNull(h) {
			return nil, &values.TypeError{Message: fmt.Sprintf("%s: the first argument must be a handle, got %s", label, values.Describe(h))}
		}
		b := []byte(`{"handle":`)
		v, err := t.r.EncodeAny(h, label)
		if err != nil {
			return nil, err
		}
		b = append(b, v...)
		if v := c.Argument(1); second != "" && !goja.IsUndefined(v) {
			path, err := t.r.EncodeAny(v, label)
			if err != nil {
				return nil, err
			}
			b = append(b, `,"`+second+`":`...)
			b = append(b, path...)
		}
		return append(b, '}'), nil
	})
}

// emit is the global emit(handle).
func (t *tools) emit(c goja.FunctionCall) goja.Value { return t.handle(c, wire.OpEmit, "emit", "") }
