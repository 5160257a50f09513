package worker

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/dop251/goja"

	"codemode-bridge/sandbox/wire"
)

// names are what `codemode` offers: one copy for all runs of a revision, so
// that ten thousand tools cost a run nothing.
type names struct {
	revision string
	list     []string // sorted
	servers  []string // sorted
}

func readNames(h wire.Names, body []byte) *names {
	n := &names{revision: h.Revision, servers: append([]string(nil), h.Servers...)}
	if len(body) > 0 {
		for _, name := range bytes.Split(body, []byte{0}) {
			n.list = append(n.list, string(name))
		}
	}
	sort.Strings(n.list)
	sort.Strings(n.servers)
	return n
}

func (n *names) has(name string) bool    { return contains(n.list, name) }
func (n *names) server(name string) bool { return contains(n.servers, name) }

// of returns the tools of a server, without their prefix.
func (n *names) of(server string) (tools []string) {
	prefix := server + "__"
	for i := sort.SearchStrings(n.list, prefix); i < len(n.list) && strings.HasPrefix(n.list[i], prefix); i++ {
		tools = append(tools, n.list[i][len(prefix):])
	}
	return tools
}

func contains(sorted []string, s string) bool {
	i := sort.SearchStrings(sorted, s)
	return i < len(sorted) && sorted[i] == s
}

// members are what codemode has beside the tools.
var members = []string{"prompts", "raw", "read", "resources", "run"}

// silent are names that the language itself asks any object for. They are
// no tools: `await codemode` and JSON.stringify(codemode) must be harmless.
// A server's tool of such a name is called by its flat name.
var silent = map[string]bool{
	"then": true, "catch": true, "finally": true, "toJSON": true, "constructor": true, "prototype": true,
	"__proto__": true, "valueOf": true, "inspect": true, "length": true, "name": true,
	"__defineGetter__": true, "__defineSetter__": true, "__lookupGetter__": true, "__lookupSetter__": true,
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

func (r *realm) dynamic(d *dynamic) *goja.Object {
	d.r = r
	o := r.vm.NewDynamicObject(d)
	o.SetPrototype(nil) // nothing to climb
	return o
}

func (d *dynamic) Get(key string) goja.Value {
	switch {
	case key == "toString" || key == "toLocaleString":
		return d.r.function(key, func(goja.FunctionCall) goja.Value { return d.r.vm.ToValue("[object " + d.what + "]") })
	case key == "hasOwnProperty":
		return d.r.function(key, func(c goja.FunctionCall) goja.Value { return d.r.vm.ToValue(d.has(c.Argument(0).String())) })
	case silent[key]:
		return goja.Undefined()
	}
	return d.get(key)
}

func (d *dynamic) Has(key string) bool { return d.has(key) }
func (d *dynamic) Keys() []string      { return d.keys() }

func (d *dynamic) Set(key string, _ goja.Value) bool {
	panic(d.r.vm.NewTypeError("%s can't be changed: setting %s is refused", d.what, quoteName(key)))
}

func (d *dynamic) Delete(key string) bool {
	panic(d.r.vm.NewTypeError("%s can't be changed: deleting %s is refused", d.what, quoteName(key)))
}

// guardPrototypes keeps the prototypes of dynamic objects, which have no say
// in it themselves. A script that does not name what sets one does not pay.
func (r *realm) guardPrototypes() {
	wrap := func(name string, length int, f goja.Callable, target func(goja.FunctionCall) goja.Value) goja.Value {
		o := r.function(name, func(c goja.FunctionCall) goja.Value {
			if o, ok := target(c).(*goja.Object); ok && o.ExportType() == codemodeType {
				panic(r.vm.NewTypeError("codemode can't be changed: setting its prototype is refused"))
			}
			v, err := f(c.This, c.Arguments...)
			if err != nil {
				panic(r.rethrow(err))
			}
			return v
		})
		o.DefineDataProperty("length", r.vm.ToValue(length), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
		return o
	}
	const name = "setPrototypeOf"
	first := func(c goja.FunctionCall) goja.Value { return c.Argument(0) }
	for _, class := range []string{"Object", "Reflect"} {
		o := r.vm.Get(class).(*goja.Object)
		f, _ := goja.AssertFunction(o.Get(name))
		o.DefineDataProperty(name, wrap(name, 2, f, first), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	prototype := r.vm.Get("Object").(*goja.Object).Get("prototype").(*goja.Object)
	d, err := r.describeProperty(goja.Undefined(), prototype, r.vm.ToValue("__proto__"))
	if err != nil {
		panic(fmt.Errorf("guarding prototypes: %w", err))
	}
	f, _ := goja.AssertFunction(d.(*goja.Object).Get("set"))
	this := func(c goja.FunctionCall) goja.Value { return c.This }
	prototype.DefineAccessorProperty("__proto__", d.(*goja.Object).Get("get"), wrap("set __proto__", 1, f, this), goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// newCodemode makes the object that scripts call tools with.
func (r *realm) newCodemode() *goja.Object {
	r.tools = make(map[string]goja.Value)
	return r.dynamic(&dynamic{
		what: "codemode",
		get:  r.member,
		has:  func(key string) bool { return contains(members, key) || r.names.has(key) || r.names.server(key) },
		keys: func() []string { return append(append([]string(nil), members...), r.names.list...) },
	})
}

// member returns codemode[key]. A name that is not known gives a function
// too: its call goes to the parent, which answers with near names and records
// that it was tried. Nothing is decided here.
func (r *realm) member(key string) goja.Value {
	if v, ok := r.tools[key]; ok {
		return v
	}
	var v goja.Value
	switch {
	case key == "raw":
		v = r.function(key, func(c goja.FunctionCall) goja.Value { return r.named(c, wire.OpRaw, "codemode.raw") })
	case key == "run":
		v = r.function(key, func(c goja.FunctionCall) goja.Value { return r.named(c, wire.OpRun, "codemode.run") })
	case key == "read":
		v = r.function(key, func(c goja.FunctionCall) goja.Value {
			return r.handle(c, wire.OpRead, "codemode.read", "path")
		})
	case key == "resources":
		v = r.methods(key, wire.OpResource)
	case key == "prompts":
		v = r.methods(key, wire.OpPrompt)
	case r.names.has(key):
		v = r.tool(key)
	case r.names.server(key):
		v = r.server(key)
	default:
		v = r.unknown(key)
	}
	r.tools[key] = v
	return v
}

// tool returns the function that calls a tool.
func (r *realm) tool(name string) *goja.Object {
	label := "codemode" + accessor(name)
	return r.function(name, func(c goja.FunctionCall) goja.Value {
		return r.call(wire.OpTool, name, label, func() ([]byte, error) { return r.encodeArgs(c, label) })
	})
}

// server returns codemode.<server>, whose members are the server's tools.
func (r *realm) server(name string) *goja.Object {
	cache := make(map[string]goja.Value)
	return r.dynamic(&dynamic{
		what: "codemode" + accessor(name),
		get: func(key string) goja.Value {
			v, ok := cache[key]
			if !ok {
				v = r.tool(name + "__" + key)
				cache[key] = v
			}
			return v
		},
		has: func(key string) bool { return !silent[key] && r.names.has(name+"__"+key) },
		keys: func() []string {
			return slices.DeleteFunc(r.names.of(name), func(key string) bool { return silent[key] })
		},
	})
}

// unknown returns what codemode.<name> is when there is no such name: a
// function, and through its members the tools of a server of that name.
func (r *realm) unknown(name string) goja.Value {
	f := r.tool(name)
	if callers[name] {
		f = r.function(name, func(c goja.FunctionCall) goja.Value {
			return r.call(wire.OpTool, name, "codemode."+name, func() ([]byte, error) { return nil, r.notByName(name, c.Argument(0)) })
		})
	}
	p := r.vm.NewProxy(f, &goja.ProxyTrapConfig{
		Get: func(target *goja.Object, property string, receiver goja.Value) goja.Value {
			if v := target.Get(property); v != nil || silent[property] {
				return v
			}
			return r.tool(name + "__" + property)
		},
	})
	return r.vm.ToValue(p)
}

// callers are what other hosts call tools with.
var callers = map[string]bool{"call": true, "callTool": true, "call_tool": true, "execute": true, "invoke": true, "tool": true, "use": true}

// notByName says how to call a tool instead of codemode.call("name", args).
func (r *realm) notByName(caller string, first goja.Value) error {
	member := ".server__tool"
	if o, ok := first.(*goja.Object); ok && !isProxy(o) {
		if name := r.dataProperty(o, "name"); name != nil {
			first = name
		}
	}
	if s, ok := first.(goja.String); ok {
		name := s.String()
		if flat := strings.Replace(name, ".", "__", 1); r.names.has(flat) {
			name = flat
		}
		if r.names.has(name) {
			member = accessor(name)
		} else if near := nearest(name, r.names.list); near != "" {
			member = accessor(near)
		}
	}
	return &typeError{fmt.Sprintf("there is no codemode.%s: tools are called by their names: codemode%s({...})", caller, member)}
}

// parameters are what the methods of codemode.resources and codemode.prompts
// take, in their order.
var parameters = map[wire.Op]map[string][]string{
	wire.OpResource: {"list": {"server"}, "read": {"server", "uri"}, "templates": {"server"}},
	wire.OpPrompt:   {"list": {"server"}, "get": {"server", "name", "arguments"}},
}

// methods returns codemode.resources or codemode.prompts.
func (r *realm) methods(name string, op wire.Op) *goja.Object {
	list := slices.Sorted(maps.Keys(parameters[op]))
	cache := make(map[string]goja.Value)
	return r.dynamic(&dynamic{
		what: "codemode." + name,
		get: func(key string) goja.Value {
			v, ok := cache[key]
			if !ok {
				label := "codemode." + name + accessor(key)
				v = r.function(key, func(c goja.FunctionCall) goja.Value {
					return r.call(op, key, label, func() ([]byte, error) {
						if names, ok := parameters[op][key]; ok {
							return r.encodeParameters(c, label, names)
						}
						return nil, &typeError{fmt.Sprintf("there is no %s: codemode.%s has %s", label, name, strings.Join(list, ", "))}
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

// encodeParameters makes one object of arguments that stand in a row. A call with
// one object has them already.
func (r *realm) encodeParameters(c goja.FunctionCall, label string, names []string) ([]byte, error) {
	if _, ok := c.Argument(0).(*goja.Object); ok && len(c.Arguments) == 1 {
		return r.encodeArgs(c, label)
	}
	if len(c.Arguments) > len(names) {
		return nil, &typeError{fmt.Sprintf("%s takes (%s), got %d arguments", label, strings.Join(names, ", "), len(c.Arguments))}
	}
	b := []byte{'{'}
	for i, name := range names {
		v := c.Argument(i)
		if goja.IsUndefined(v) || goja.IsNull(v) {
			continue
		}
		encoded, err := r.encodeAny(v, label)
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
func (r *realm) named(c goja.FunctionCall, op wire.Op, label string) goja.Value {
	name, ok := c.Argument(0).(goja.String)
	text := ""
	if ok {
		text = name.String()
	}
	return r.call(op, text, label, func() ([]byte, error) {
		if !ok {
			return nil, &typeError{fmt.Sprintf("%s: the first argument must be a name, got %s", label, describe(c.Argument(0)))}
		}
		rest := goja.FunctionCall{This: c.This}
		if len(c.Arguments) > 1 {
			rest.Arguments = c.Arguments[1:]
		}
		if op == wire.OpRun {
			if err := r.mayRun(); err != nil {
				return nil, err
			}
		}
		return r.encodeArgs(rest, label)
	})
}

// handle makes a call about a handle: an object that an answer held, or its id.
func (r *realm) handle(c goja.FunctionCall, op wire.Op, label string, second string) goja.Value {
	return r.call(op, "", label, func() ([]byte, error) {
		h := c.Argument(0)
		if goja.IsUndefined(h) || goja.IsNull(h) {
			return nil, &typeError{fmt.Sprintf("%s: the first argument must be a handle, got %s", label, describe(h))}
		}
		b := []byte(`{"handle":`)
		v, err := r.encodeAny(h, label)
		if err != nil {
			return nil, err
		}
		b = append(b, v...)
		if v := c.Argument(1); second != "" && !goja.IsUndefined(v) {
			path, err := r.encodeAny(v, label)
			if err != nil {
				return nil, err
			}
			b = append(b, `,"`+second+`":`...)
			b = append(b, path...)
		}
		return append(b, '}'), nil
	})
}

// call makes one call: number it, send it, return the promise of its answer.
// The arguments are converted now, once; what the script does to its objects
// later changes nothing. What is wrong with them rejects the promise, as an
// async function would.
func (r *realm) call(op wire.Op, name, label string, encode func() ([]byte, error)) goja.Value {
	p := &pending{op: op, name: name, label: label}
	p.at, p.stack = r.here()
	p.at = r.script.callStart(p.at)
	if len(p.stack) > 0 { // agrees with the position
		p.stack[0] = p.stack[0][:strings.LastIndexByte(p.stack[0], '(')] + placeText(p.at)
	}
	p.promise, p.resolve, p.reject = r.vm.NewPromise()
	promise := r.vm.ToValue(p.promise)
	args, err := encode()
	if err == nil && len(name) > wire.MaxName {
		err = &typeError{fmt.Sprintf("%s: a name of %d bytes, at most %d", cutText(label, 80), len(name), wire.MaxName)}
	}
	if err == nil {
		p.number, err = r.host.call(op, name, args, p.at)
	}
	if op == wire.OpRun {
		p.input = args
	}
	if err != nil {
		p.settled, p.failed = true, true
		if limit := limitOf(err); limit != nil {
			panic(err)
		}
		r.callOf[p.promise] = p
		defer r.letGo(p)
		r.must(p.reject(r.errorValue(p, err)))
		return promise
	}
	r.pending[p.number] = p
	r.callOf[p.promise] = p
	return promise
}

// must hands an uncatchable error on to the engine that called us.
func (r *realm) must(err error) {
	if err != nil {
		panic(err)
	}
}

// function makes a native function with a name.
func (r *realm) function(name string, f func(goja.FunctionCall) goja.Value) *goja.Object {
	o := r.vm.ToValue(f).(*goja.Object)
	o.DefineDataProperty("name", r.vm.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return o
}

// accessor writes a name as it stands behind an object.
func accessor(name string) string {
	if identifier(name) {
		return "." + name
	}
	return "[" + quoteName(name) + "]"
}

func identifier(name string) bool {
	for i, c := range name {
		if !(c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return name != ""
}

func quoteName(name string) string { return string(appendJSONString(nil, cutText(name, 80))) }
