package preview

import (
	"strconv"

	"github.com/dop251/goja/ast"
)

// A scope holds the names that a function or a block declares.
type scope struct {
	parent *scope
	names  map[string]*variable
}

func (s *scope) lookup(name string) *variable {
	for ; s != nil; s = s.parent {
		if v := s.names[name]; v != nil {
			return v
		}
	}
	return nil
}

func (s *scope) declare(name string) *variable {
	v := s.names[name]
	if v == nil {
		if s.names == nil {
			s.names = map[string]*variable{}
		}
		v = &variable{}
		s.names[name] = v
	}
	return v
}

// A variable is everything that a name was seen to be given.
type variable struct {
	origins []origin
	// function is what the name calls, if it was declared as a function or
	// initialised with one.
	function *function

	state  evalState
	values []value
}

type evalState uint8

const (
	fresh evalState = iota
	evaluating
	evaluated
)

// An origin is one expression that gives a variable its value, or the part of
// the expression's value that a path leads to. An origin without expression
// is a value that cannot be known.
type origin struct {
	expr  ast.Expression
	scope *scope
	path  []part
	// loose says that the variable may have this value, not that it has: it
	// was assigned after its declaration, is a parameter or a loop's variable.
	loose bool
}

// A part leads from a value into it: to a member, to an element, or to what
// ... leaves over.
type part struct {
	key     ast.Expression // of a member; evaluated in the origin's scope
	name    string         // of a member when key is nil
	element bool
	index   int // of the element, or anyElement
	rest    bool
}

const anyElement = -1

// A function is what is known of one function of the script.
type function struct {
	params *ast.ParameterList
	scope  *scope // of its parameters and body

	given    []call  // the calls of it
	elements []given // the lists it is called for each element of

	escapes bool        // handed to something that may call it with anything
	loop    bool        // called, or handed out, in a loop
	inside  []*function // the functions that are in it or that it calls
}

// A call is what one call gives to a function.
type call struct {
	args  []ast.Expression
	scope *scope
}

// given says which parameter gets the elements of a list.
type given struct {
	list      ast.Expression
	parameter int
	scope     *scope
}

// incoming notes a call. After a spread argument nobody knows which parameter gets
// what.
func (f *function) incoming(args []ast.Expression, s *scope) {
	if len(f.given) == maxIncoming {
		return
	}
	for i, arg := range args {
		if _, ok := arg.(*ast.SpreadElement); ok {
			args = args[:i]
			break
		}
	}
	f.given = append(f.given, call{args, s})
}

// bind declares the names of a binding target (pass 1) and notes what they
// are given; with declared false it notes an assignment to names that exist.
func (w *walker) bind(s *scope, target ast.Node, from origin, declared bool, depth int) {
	if depth > maxNesting {
		return
	}
	extend := func(p part) origin {
		next := from
		next.path = append(append([]part(nil), from.path...), p)
		return next
	}
	withDefault := func(inner ast.Node, def ast.Expression, from origin) {
		w.bind(s, inner, from, declared, depth+1)
		if def != nil {
			w.bind(s, inner, origin{expr: def, scope: from.scope, loose: true}, declared, depth+1)
		}
	}
	switch t := target.(type) {
	case *ast.Identifier:
		var v *variable
		if declared {
			v = s.declare(t.Name.String())
		} else {
			from.loose = true
			if v = s.lookup(t.Name.String()); v == nil {
				return
			}
		}
		if from.expr != nil || from.loose {
			v.origins = append(v.origins, from)
		}
		if f := w.functionOf(from.expr); f != nil && len(from.path) == 0 {
			v.function = f
		}
	case *ast.Binding:
		withDefault(t.Target, t.Initializer, from)
	case *ast.AssignExpression: // a target with a default
		withDefault(t.Left, t.Right, from)
	case *ast.ObjectPattern:
		for _, p := range t.Properties {
			switch p := p.(type) {
			case *ast.PropertyShort:
				withDefault(&p.Name, p.Initializer, extend(part{name: p.Name.Name.String()}))
			case *ast.PropertyKeyed:
				w.bind(s, p.Value, extend(keyPart(p.Key, p.Computed)), declared, depth+1)
			}
		}
		if t.Rest != nil {
			w.bind(s, t.Rest, extend(part{rest: true}), declared, depth+1)
		}
	case *ast.ArrayPattern:
		for i, e := range t.Elements {
			if e != nil {
				w.bind(s, e, extend(part{element: true, index: i}), declared, depth+1)
			}
		}
		if t.Rest != nil {
			w.bind(s, t.Rest, origin{loose: true}, declared, depth+1)
		}
	}
}

func keyPart(key ast.Expression, computed bool) part {
	if computed {
		return part{key: key}
	}
	switch k := key.(type) {
	case *ast.StringLiteral:
		return part{name: k.Value.String()}
	case *ast.Identifier:
		return part{name: k.Name.String()}
	case *ast.NumberLiteral:
		if n, ok := k.Value.(int64); ok {
			return part{name: strconv.FormatInt(n, 10)}
		}
	}
	return part{key: key}
}

// hoist declares what the statements of a block declare for all of it, before
// any of them runs.
func (w *walker) hoist(s *scope, list []ast.Statement) {
	for _, stmt := range list {
		for {
			labelled, ok := stmt.(*ast.LabelledStatement)
			if !ok {
				break
			}
			stmt = labelled.Statement
		}
		switch stmt := stmt.(type) {
		case *ast.LexicalDeclaration:
			w.declareAll(s, stmt.List)
		case *ast.FunctionDeclaration:
			if f := stmt.Function; f != nil && f.Name != nil {
				w.bind(s, f.Name, origin{expr: f, scope: s}, true, 0)
			}
		case *ast.ClassDeclaration:
			if c := stmt.Class; c != nil && c.Name != nil {
				w.bind(s, c.Name, origin{loose: true}, true, 0)
			}
		}
	}
}

// hoistVars declares the var names of a function, wherever in it they are.
func (w *walker) hoistVars(s *scope, list []*ast.VariableDeclaration) {
	for _, d := range list {
		w.declareAll(s, d.List)
	}
}

func (w *walker) declareAll(s *scope, list []*ast.Binding) {
	for _, b := range list {
		w.bind(s, b.Target, origin{expr: b.Initializer, scope: s}, true, 0)
	}
}
