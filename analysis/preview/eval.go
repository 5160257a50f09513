package preview

import (
	"strconv"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

const (
	// maxValues bounds how many values one expression may have.
	maxValues = 16
	// maxNesting bounds how deep expressions, patterns and literals are read.
	maxNesting = 64
	// maxSteps bounds the expressions evaluated for one report.
	maxSteps = 200_000
	// maxFolded bounds a string put together from others.
	maxFolded = 512
)

type kind uint8

const (
	kindString kind = iota
	kindCodemode
	kindGlobal // globalThis
	kindTool   // a tool, or a server: codemode.github
	kindRaw    // codemode.raw
	kindArray
	kindObject
	kindUnknown // something, in place of a string
)

// A value is what an expression may be, as far as calls are concerned.
type value struct {
	kind kind
	// name is the text of a string, or the name of a tool as far as it was
	// written: "github" after codemode.github. The name of a tool is empty
	// when it is computed.
	name string
	// number says that the string is the text of a number.
	number bool
	// method is "call", "apply" or "bind" for that method of a tool or raw.
	method string
	// bound are arguments that bind put before others.
	bound []ast.Expression
	// expr is the literal of an array or object.
	expr ast.Expression
	// scope is that of bound or expr.
	scope *scope
	// loose: see origin.
	loose bool
}

// eval returns what e may be; nothing if that does not matter for calls.
func (w *walker) eval(e ast.Expression, s *scope, depth int) []value {
	w.steps++
	if depth > maxNesting || w.steps > maxSteps {
		return nil
	}
	depth++
	switch e := e.(type) {
	case *ast.OptionalChain:
		return w.eval(e.Expression, s, depth)
	case *ast.Optional:
		return w.eval(e.Expression, s, depth)
	case *ast.AwaitExpression:
		return w.eval(e.Argument, s, depth)
	case *ast.AssignExpression:
		return w.eval(e.Right, s, depth)
	case *ast.SequenceExpression:
		if len(e.Sequence) > 0 {
			return w.eval(e.Sequence[len(e.Sequence)-1], s, depth)
		}
	case *ast.ConditionalExpression:
		return either(w.eval(e.Consequent, s, depth), w.eval(e.Alternate, s, depth))
	case *ast.StringLiteral:
		return []value{{kind: kindString, name: e.Value.String()}}
	case *ast.NumberLiteral:
		if n, ok := e.Value.(int64); ok {
			return []value{{kind: kindString, name: strconv.FormatInt(n, 10), number: true}}
		}
	case *ast.TemplateLiteral:
		return w.evalTemplate(e, s, depth)
	case *ast.BinaryExpression:
		switch e.Operator {
		case token.PLUS:
			return concat(w.evalString(e.Left, s, depth), w.evalString(e.Right, s, depth))
		case token.LOGICAL_OR, token.COALESCE:
			return either(w.eval(e.Left, s, depth), w.eval(e.Right, s, depth))
		case token.LOGICAL_AND:
			return w.eval(e.Right, s, depth)
		}
	case *ast.ArrayLiteral:
		return []value{{kind: kindArray, expr: e, scope: s}}
	case *ast.ObjectLiteral:
		return []value{{kind: kindObject, expr: e, scope: s}}
	case *ast.Identifier:
		return w.evalName(e.Name.String(), s, depth)
	case *ast.DotExpression:
		return w.members(w.eval(e.Left, s, depth), []value{{kind: kindString, name: e.Identifier.Name.String()}}, depth)
	case *ast.BracketExpression:
		objects := w.eval(e.Left, s, depth)
		if len(objects) == 0 {
			return nil
		}
		return w.members(objects, w.evalString(e.Member, s, depth), depth)
	case *ast.CallExpression:
		return w.evalCall(e, s, depth)
	}
	return nil
}

// evalString is eval for a place where only strings matter: something else is
// one unknown string.
func (w *walker) evalString(e ast.Expression, s *scope, depth int) []value {
	var strs []value
	unknown := false
	for _, v := range w.eval(e, s, depth) {
		if v.kind == kindString {
			strs = append(strs, v)
		} else {
			unknown = true
		}
	}
	if unknown || len(strs) == 0 {
		strs = append(strs, value{kind: kindUnknown})
	}
	return strs
}

// either joins what the two ways of an expression may be; neither is sure.
func either(a, b []value) []value {
	all := append(append([]value(nil), a...), b...)
	if len(all) > maxValues {
		all = all[:maxValues]
	}
	for i := range all {
		all[i].loose = true
	}
	return all
}

// foldable reports whether x + y is a known string that is not too long.
func foldable(x, y value) bool {
	if x.number && y.number {
		return false // their sum
	}
	return x.kind == kindString && y.kind == kindString && len(x.name)+len(y.name) <= maxFolded
}

// concat joins every string of a with every one of b.
func concat(a, b []value) []value {
	var all []value
	for _, x := range a {
		for _, y := range b {
			v := value{kind: kindUnknown}
			if foldable(x, y) {
				v = value{kind: kindString, name: x.name + y.name, loose: x.loose || y.loose}
			}
			if all = append(all, v); len(all) == maxValues {
				return all
			}
		}
	}
	return all
}

func (w *walker) evalTemplate(t *ast.TemplateLiteral, s *scope, depth int) []value {
	if t.Tag != nil {
		return nil
	}
	all := []value{{kind: kindString}}
	for i, e := range t.Elements {
		all = concat(all, []value{{kind: kindString, name: e.Parsed.String()}})
		if i < len(t.Expressions) {
			all = concat(all, w.evalString(t.Expressions[i], s, depth))
		}
	}
	return all
}

func (w *walker) evalName(name string, s *scope, depth int) []value {
	v := s.lookup(name)
	if v == nil {
		switch name {
		case "codemode":
			return []value{{kind: kindCodemode}}
		case "globalThis", "self", "window", "global":
			return []value{{kind: kindGlobal}}
		}
		return nil
	}
	switch v.state {
	case evaluated:
		return v.values
	case evaluating: // a cycle: let a = b, b = a
		return nil
	}
	v.state = evaluating
	var all []value
	unknown := false
	for _, o := range v.origins {
		var values []value
		if o.expr != nil {
			values = w.follow(w.eval(o.expr, o.scope, depth), o.path, o.scope, depth)
		}
		if len(values) == 0 {
			unknown = true
		}
		for _, value := range values {
			value.loose = value.loose || o.loose || len(v.origins) > 1
			if len(all) < maxValues {
				all = append(all, value)
			}
		}
	}
	if unknown && len(all) > 0 {
		all = append(all, value{kind: kindUnknown})
	}
	v.state, v.values = evaluated, all
	return all
}

// follow goes along a path into values.
func (w *walker) follow(values []value, path []part, s *scope, depth int) []value {
	for _, p := range path {
		switch {
		case len(values) == 0:
			return nil
		case p.element:
			values = w.elements(values, p.index, depth)
		case p.rest: // {a, ...others}: what codemode has besides a
		case p.key != nil:
			values = w.members(values, w.evalString(p.key, s, depth), depth)
		default:
			values = w.members(values, []value{{kind: kindString, name: p.name}}, depth)
		}
	}
	return values
}

// elements returns what an element of the arrays among values may be.
func (w *walker) elements(values []value, index, depth int) []value {
	var all []value
	for _, v := range values {
		array, ok := v.expr.(*ast.ArrayLiteral)
		if v.kind != kindArray || !ok {
			continue
		}
		for i, e := range array.Value {
			if _, spread := e.(*ast.SpreadElement); spread && i <= index {
				index = anyElement
			}
			if index != anyElement && i != index {
				continue
			}
			if len(all) >= maxValues {
				return append(all, value{kind: kindUnknown})
			}
			var these []value
			if e != nil {
				these = w.eval(e, v.scope, depth)
			}
			if len(these) == 0 {
				these = []value{{kind: kindUnknown}}
			}
			for _, value := range these {
				value.loose = value.loose || v.loose || index == anyElement
				all = append(all, value)
			}
		}
	}
	return all
}

// members returns what object[key] may be.
func (w *walker) members(objects, keys []value, depth int) []value {
	var all []value
	for _, object := range objects {
		for _, key := range keys {
			for _, v := range w.member(object, key, depth) {
				if len(all) == maxValues {
					return all
				}
				v.loose = v.loose || object.loose || key.loose
				all = append(all, v)
			}
		}
	}
	return all
}

func (w *walker) member(object, key value, depth int) []value {
	known := key.kind == kindString
	switch object.kind {
	case kindGlobal:
		if known && key.name == "codemode" {
			return []value{{kind: kindCodemode}}
		}
	case kindCodemode:
		if known && key.name == "raw" {
			return []value{{kind: kindRaw}}
		}
		return []value{{kind: kindTool, name: key.name}}
	case kindRaw, kindTool:
		if object.method != "" {
			return nil
		}
		if known && isMethod(object, key.name) {
			object.method = key.name
			return []value{object}
		}
		if object.kind == kindRaw {
			return nil
		}
		return []value{{kind: kindTool, name: inner(object.name, key.name)}}
	case kindArray:
		index := anyElement
		if known {
			i, err := strconv.Atoi(key.name)
			if err != nil {
				return nil
			}
			index = i
		}
		return w.elements([]value{object}, index, depth)
	case kindObject:
		return w.property(object, key, depth)
	}
	return nil
}

// isMethod reports whether key is a method of the function object, and not a
// tool of the server object.
func isMethod(object value, key string) bool {
	if key != "call" && key != "apply" && key != "bind" {
		return false
	}
	return object.kind == kindRaw || object.name == "" || strings.Contains(object.name, "__") || discovery[object.name]
}

// discovery are the functions of codemode that belong to no server.
var discovery = map[string]bool{
	"search_tools": true, "get_tools": true, "get_tool_schema": true, "read": true, "run": true,
}

// inner is the name of codemode[outer][key].
func inner(outer, key string) string {
	switch {
	case outer == "" || key == "":
		return ""
	case outer == "resources" || outer == "prompts":
		return outer + "." + key
	case strings.Contains(outer, "__"): // a member of a tool's function
		return ""
	}
	return outer + "__" + key
}

// property returns what an object literal holds under key.
func (w *walker) property(object, key value, depth int) []value {
	literal, ok := object.expr.(*ast.ObjectLiteral)
	if !ok {
		return nil
	}
	var all []value
	for _, p := range literal.Value {
		var these []value
		switch p := p.(type) {
		case *ast.PropertyShort:
			if name := p.Name.Name.String(); key.kind != kindString || key.name == name {
				these = w.evalName(name, object.scope, depth)
			}
		case *ast.PropertyKeyed:
			part := keyPart(p.Key, p.Computed)
			if p.Kind == ast.PropertyKindValue && (key.kind != kindString || part.key != nil || part.name == key.name) {
				these = w.eval(p.Value, object.scope, depth)
				for i := range these {
					these[i].loose = these[i].loose || part.key != nil
				}
			}
		case *ast.SpreadElement:
			these = w.members(w.eval(p.Expression, object.scope, depth), []value{key}, depth)
		}
		if all = append(all, these...); len(all) >= maxValues {
			return all[:maxValues]
		}
	}
	return all
}

// evalCall returns what a call returns, for the few that matter: f.bind(...),
// Reflect.get(codemode, name), Object.freeze(x), ["a", "b"].join("__").
func (w *walker) evalCall(call *ast.CallExpression, s *scope, depth int) []value {
	callee, ok := unwrap(call.Callee).(*ast.DotExpression)
	if !ok {
		return nil
	}
	args := call.ArgumentList
	switch callee.Identifier.Name {
	case "get":
		if len(args) >= 2 && w.isBuiltin(callee.Left, "Reflect", s) {
			return w.members(w.eval(args[0], s, depth), w.evalString(args[1], s, depth), depth)
		}
	case "freeze":
		if len(args) == 1 && w.isBuiltin(callee.Left, "Object", s) {
			return w.eval(args[0], s, depth)
		}
	case "bind":
		var all []value
		for _, v := range w.eval(callee, s, depth) {
			if v.method == "bind" {
				v.method = ""
				if len(args) > 1 {
					if len(v.bound) > 0 && v.scope != s {
						continue // bound in two places: not worth following
					}
					v.bound, v.scope = append(append([]ast.Expression(nil), v.bound...), args[1:]...), s
				}
				all = append(all, v)
			}
		}
		return all
	case "join":
		return w.evalJoin(callee.Left, args, s, depth)
	}
	return nil
}

func (w *walker) evalJoin(list ast.Expression, args []ast.Expression, s *scope, depth int) []value {
	array, ok := unwrap(list).(*ast.ArrayLiteral)
	if !ok || len(args) > 1 || len(array.Value) > maxValues {
		return nil
	}
	separator := []value{{kind: kindString, name: ","}}
	if len(args) == 1 {
		separator = w.evalString(args[0], s, depth)
	}
	all := []value{{kind: kindString}}
	for i, e := range array.Value {
		if e == nil {
			return nil
		}
		if i > 0 {
			all = concat(all, separator)
		}
		all = concat(all, w.evalString(e, s, depth))
	}
	return all
}

// isBuiltin reports whether e is the global of that name.
func (w *walker) isBuiltin(e ast.Expression, name string, s *scope) bool {
	if e == nil {
		return false
	}
	id, ok := unwrap(e).(*ast.Identifier)
	return ok && id.Name.String() == name && s.lookup(name) == nil
}

// unwrap takes the marks of an optional chain from an expression.
func unwrap(e ast.Expression) ast.Expression {
	for {
		switch x := e.(type) {
		case *ast.OptionalChain:
			e = x.Expression
		case *ast.Optional:
			e = x.Expression
		default:
			return e
		}
	}
}
