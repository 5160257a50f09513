// Package preview finds out from a script's syntax tree, before the script runs,
// which tools it calls, so that a person who is asked about one call can see the
// others. It runs in the worker: the parent never parses a script.
//
// It lists every place that calls a tool through the global codemode:
//
//	codemode.github__list_issues(...)      codemode["github__list_issues"](...)
//	codemode.github.list_issues(...)       codemode[`git${"hub"}__` + name](...)
//	codemode.raw("github__list_issues")    const {github__list_issues: f} = codemode; f(...)
//	const c = codemode; c.x__y?.(...)      codemode.x__y.call(null, ...), .apply, .bind
//	ids.map(codemode.x__y)                 Reflect.get(codemode, "x__y")(...)
//
// Names are followed through variables, destructuring, conditional
// expressions, literal arrays and objects, loops over literal arrays, and from
// a call of one of the script's functions to its parameters. If an expression
// can be one of several names, each is listed as a branch. If the name cannot be
// determined, the call is listed without one and counted as unknown; so is
// codemode itself when it is passed to something that cannot be followed.
//
// A preview informs and never decides. Scripts can call tools in ways that no
// static reading finds, and a listed call may never be made; every call is
// decided when it is made. So nothing here is an error: what cannot be followed
// is left out, and a tree that is too deep or too odd yields a truncated report.
package preview

import (
	"cmp"
	"slices"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"

	"codemode-bridge/analysis"
)

const (
	// MaxCalls is how many call sites a report holds.
	MaxCalls = 200
	// MaxArgs is the length in bytes up to which a report has a site's arguments, and
	// MaxLiterals that of the arguments of all its sites.
	MaxArgs     = 16 << 10
	MaxLiterals = 64 << 10

	// maxDepth is how deep the tree is walked. Chains nest too: the sum of
	// 1,000 terms is 1,000 deep. A level costs less than 1 KB of stack.
	maxDepth = 10_000
	// maxName is longer than any tool's name.
	maxName = 256
	// maxIncoming is how many calls of one function are followed into it.
	maxIncoming = 32
)

// Script returns what can be read of program. at turns an index of the program's
// file into a position: the caller knows how the parsed text came from the model's
// own. A nil program, as after a syntax error, gives the empty report.
func Script(program *ast.Program, at func(file.Idx) analysis.Position) (report analysis.Report) {
	if program == nil {
		return analysis.Report{}
	}
	defer func() {
		// goja promises nothing about trees it parsed with errors. A preview
		// must not end the worker that could still run the script.
		if recover() != nil {
			report = analysis.Report{Truncated: true}
		}
	}()
	w := walker{at: at, scopes: map[ast.Node]*scope{}, functions: map[ast.Node]*function{}}
	top := context{scope: &scope{}}
	w.walk(program, top)
	w.distribute()
	w.reporting = true
	w.walk(program, top)
	slices.SortStableFunc(w.report.Calls, func(a, b analysis.CallSite) int {
		return cmp.Or(cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
	})
	return w.report
}

// A walker goes through the tree twice. The first time it notes the scopes
// and what each variable is given, which may come after its use; the second
// time it lists the calls.
type walker struct {
	at        func(file.Idx) analysis.Position
	reporting bool
	report    analysis.Report
	literal   int // bytes of arguments in report
	steps     int

	scopes    map[ast.Node]*scope
	functions map[ast.Node]*function
	order     []*function // as found, so that reports do not vary
}

// A context is what surrounds a node.
type context struct {
	scope        *scope
	loop, branch bool
	function     *function // nil outside of any
	depth        int
}

func (c context) inLoop() context          { c.loop = true; return c }
func (c context) inBranch() context        { c.branch = true; return c }
func (c context) inScope(s *scope) context { c.scope = s; return c }

// enter returns the context within n, which has a scope of its own, made on the
// first walk by fill.
func (w *walker) enter(n ast.Node, in context, fill func(*scope)) context {
	s := w.scopes[n]
	if s == nil {
		s = &scope{parent: in.scope}
		w.scopes[n] = s
		fill(s)
	}
	return in.inScope(s)
}

// walk visits n, which may be nil, and everything below it. Nodes whose parts
// are in different contexts are cases here; inside knows the others.
func (w *walker) walk(n ast.Node, in context) {
	if n == nil {
		return
	}
	if in.depth++; in.depth > maxDepth {
		w.report.Truncated = true
		return
	}
	switch n := n.(type) {
	case *ast.FunctionLiteral:
		w.function(n, n.Name, n.ParameterList, n.Body, n.DeclarationList, in)
	case *ast.ArrowFunctionLiteral:
		w.function(n, nil, n.ParameterList, n.Body, n.DeclarationList, in)
	case *ast.CallExpression:
		w.call(n, in)
	case *ast.AssignExpression:
		w.assign(n, in)

	// Loops.
	case *ast.ForStatement:
		w.forLoop(n, in)
	case *ast.ForOfStatement:
		w.walk(n.Source, in)
		w.forInto(n, n.Into, n.Body, origin{expr: n.Source, scope: in.scope, path: []part{{element: true, index: anyElement}}, loose: true}, in)
	case *ast.ForInStatement:
		w.walk(n.Source, in)
		w.forInto(n, n.Into, n.Body, origin{loose: true}, in)

	// Branches.
	case *ast.IfStatement:
		w.walk(n.Test, in)
		w.walk(n.Consequent, in.inBranch())
		w.walk(n.Alternate, in.inBranch())
	case *ast.ConditionalExpression:
		w.walk(n.Test, in)
		w.walk(n.Consequent, in.inBranch())
		w.walk(n.Alternate, in.inBranch())
	case *ast.BinaryExpression:
		w.walk(n.Left, in)
		if isLogical(n.Operator) {
			in = in.inBranch()
		}
		w.walk(n.Right, in)
	case *ast.SwitchStatement:
		w.walk(n.Discriminant, in)
		in = w.enter(n, in, func(s *scope) {
			for _, c := range n.Body {
				w.hoist(s, c.Consequent)
			}
		})
		for _, c := range n.Body {
			w.walk(c, in.inBranch())
		}

	default:
		w.see(n, in)
		in = w.inside(n, in)
		children(n, func(c ast.Node) { w.walk(c, in) })
	}
}

// inside returns the context of all that is below n.
func (w *walker) inside(n ast.Node, in context) context {
	switch n := n.(type) {
	case *ast.Program:
		return w.enter(n, in, func(s *scope) {
			w.hoist(s, n.Body)
			w.hoistVars(s, n.DeclarationList)
		})
	case *ast.BlockStatement:
		return w.enter(n, in, func(s *scope) { w.hoist(s, n.List) })
	case *ast.CatchStatement:
		return w.enter(n, in, func(s *scope) {
			if n.Parameter != nil {
				w.bind(s, n.Parameter, origin{loose: true}, true, 0)
			}
		}).inBranch()
	case *ast.ClassLiteral:
		return w.enter(n, in, func(s *scope) {
			if n.Name != nil {
				s.declare(n.Name.Name.String())
			}
		})
	case *ast.ClassStaticBlock:
		return w.enter(n, in, func(s *scope) { w.hoistVars(s, n.DeclarationList) })
	case *ast.WhileStatement, *ast.DoWhileStatement:
		return in.inLoop()
	case *ast.ObjectPattern, *ast.ArrayPattern:
		return in.inBranch() // what runs in a pattern are defaults
	}
	return in
}

// see notes what n does to variables, or lists what it calls or hands out, apart
// from what is below it.
func (w *walker) see(n ast.Node, in context) {
	switch n := n.(type) {
	case *ast.UnaryExpression:
		if !w.reporting && (n.Operator == token.INCREMENT || n.Operator == token.DECREMENT) {
			w.bind(in.scope, n.Operand, origin{loose: true}, false, 0)
		}
	case *ast.TemplateLiteral:
		if n.Tag != nil && w.reporting {
			w.sites(w.eval(n.Tag, in.scope, 0), n.Tag.Idx0, nil, false, in)
		}
	case *ast.WithStatement:
		if w.reporting && isCodemode(w.eval(n.Object, in.scope, 0)) {
			w.site("", n.Idx0(), "", in)
		}
	}
}

// isLogical reports whether the right side of an operator may be skipped.
func isLogical(operator token.Token) bool {
	return operator == token.LOGICAL_AND || operator == token.LOGICAL_OR || operator == token.COALESCE
}

// assign walks an assignment, and notes on the first walk what it gives.
func (w *walker) assign(n *ast.AssignExpression, in context) {
	from := origin{loose: true}
	right := in
	switch { // of += goja keeps the +
	case n.Operator == token.ASSIGN:
		from = origin{expr: n.Right, scope: in.scope, loose: true}
	case isLogical(n.Operator):
		from = origin{expr: n.Right, scope: in.scope, loose: true}
		right = in.inBranch()
	}
	if !w.reporting {
		w.bind(in.scope, n.Left, from, false, 0)
	}
	w.walk(n.Left, in)
	w.walk(n.Right, right)
}

// forLoop walks a for loop of three parts.
func (w *walker) forLoop(n *ast.ForStatement, in context) {
	in = w.enter(n, in, func(s *scope) {
		if lexical, ok := n.Initializer.(*ast.ForLoopInitializerLexicalDecl); ok {
			w.declareAll(s, lexical.LexicalDeclaration.List)
		}
	})
	w.walk(n.Initializer, in)
	w.walk(n.Test, in.inLoop())
	w.walk(n.Update, in.inLoop())
	w.walk(n.Body, in.inLoop())
}

// forInto walks a for-in or for-of loop except its source. It declares or assigns
// the variable, whose values come from the given origin.
func (w *walker) forInto(loop ast.Node, into ast.ForInto, body ast.Statement, from origin, in context) {
	outer := in.scope
	in = w.enter(loop, in, func(s *scope) {
		switch into := into.(type) {
		case *ast.ForDeclaration:
			w.bind(s, into.Target, from, true, 0)
		case *ast.ForIntoVar:
			w.bind(outer, into.Binding.Target, from, false, 0)
		case *ast.ForIntoExpression:
			w.bind(outer, into.Expression, from, false, 0)
		}
	})
	w.walk(into, in.inLoop())
	w.walk(body, in.inLoop())
}

// function walks a function's parameters and body.
func (w *walker) function(n ast.Expression, name *ast.Identifier, params *ast.ParameterList, body ast.Node, vars []*ast.VariableDeclaration, in context) {
	f := w.functionOf(n)
	block, _ := body.(*ast.BlockStatement)
	in = w.enter(n, in, func(s *scope) {
		f.scope, f.params = s, params
		if in.function != nil {
			in.function.inside = append(in.function.inside, f)
		}
		if name != nil {
			s.declare(name.Name.String()).function = f
		}
		if params != nil {
			for _, p := range params.List {
				w.bind(s, p, origin{}, true, 0)
			}
			if params.Rest != nil {
				w.bind(s, params.Rest, origin{loose: true}, true, 0)
			}
		}
		w.hoistVars(s, vars)
		if block != nil {
			w.hoist(s, block.List)
		}
	})
	in.function = f
	in.loop = in.loop || f.loop
	if params != nil {
		w.walk(params, in.inBranch()) // all there is to run are defaults
	}
	if block == nil {
		w.walk(body, in)
		return
	}
	for _, stmt := range block.List {
		w.walk(stmt, in)
	}
}

// functionOf returns what is known of the function that e is, nil if e is
// none.
func (w *walker) functionOf(e ast.Expression) *function {
	switch e.(type) {
	case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
	default:
		return nil
	}
	f := w.functions[e]
	if f == nil {
		f = &function{}
		w.functions[e] = f
		w.order = append(w.order, f)
	}
	return f
}

// known returns the function of the script that e names or is, if any.
func (w *walker) known(e ast.Expression, s *scope) *function {
	e = unwrap(e)
	if f := w.functionOf(e); f != nil {
		return f
	}
	if id, ok := e.(*ast.Identifier); ok {
		if v := s.lookup(id.Name.String()); v != nil {
			return v.function
		}
	}
	return nil
}

// repeats are the methods that call a function once for each element, and which
// of its parameters the element is.
var repeats = map[string]int{
	"map": 0, "forEach": 0, "filter": 0, "flatMap": 0, "some": 0, "every": 0, "find": 0, "findIndex": 0,
	"findLast": 0, "findLastIndex": 0, "reduce": 1, "reduceRight": 1, "from": 0, "fromAsync": 0, "mapAsync": 0,
	"replace": 0, "replaceAll": 0, "sort": 0, "toSorted": 0, "groupBy": 0,
}

// call walks a call: on the first walk it notes where the arguments go, on
// the second it lists what is called.
func (w *walker) call(n *ast.CallExpression, in context) {
	s := in.scope
	method, object := "", ast.Expression(nil)
	if dot, ok := unwrap(n.Callee).(*ast.DotExpression); ok {
		method, object = dot.Identifier.Name.String(), dot.Left
	}
	parameter, repeated := repeats[method]
	if object == nil {
		repeated = w.isBuiltin(n.Callee, "setInterval", s)
	}
	for _, e := range append([]ast.Expression{n.Callee}, n.ArgumentList...) {
		inner := in
		if e != n.Callee && isFunction(e) {
			inner.loop = inner.loop || repeated
			inner.branch = inner.branch || method == "catch"
		}
		w.walk(e, inner)
	}
	if !w.reporting {
		w.note(n, in, object, parameter, repeated)
		return
	}

	args, callee := n.ArgumentList, w.eval(n.Callee, s, 0)
	if method == "apply" && w.isBuiltin(object, "Reflect", s) && len(args) > 0 {
		callee = w.eval(args[0], s, 0)
		for i := range callee {
			callee[i].method = "apply"
		}
		args = args[1:]
	}
	w.sites(callee, n.Idx0, args, true, in)

	if w.known(n.Callee, s) != nil || w.inspects(object, method, s) {
		return // its parameters were followed, or it calls nothing
	}
	in.loop = in.loop || repeated
	in.branch = in.branch || method == "catch"
	for _, arg := range n.ArgumentList {
		switch unwrap(arg).(type) {
		case *ast.Identifier, *ast.DotExpression, *ast.BracketExpression:
			values := w.eval(arg, s, 0)
			if isCodemode(values) {
				w.site("", arg.Idx0(), "", in)
				continue
			}
			w.sites(values, arg.Idx0, nil, false, in)
		}
	}
}

// note remembers what a call gives to functions of the script.
func (w *walker) note(n *ast.CallExpression, in context, object ast.Expression, parameter int, repeated bool) {
	s := in.scope
	if f := w.known(n.Callee, s); f != nil {
		f.incoming(n.ArgumentList, s)
		w.called(f, in, in.loop)
	}
	for i, arg := range n.ArgumentList {
		f := w.known(arg, s)
		if f == nil {
			continue
		}
		if !isFunction(arg) {
			w.called(f, in, in.loop || repeated)
		}
		if !repeated || object == nil {
			f.escapes = true
			continue
		}
		list := object
		if w.isBuiltin(object, "Array", s) && i == 1 { // Array.from(list, f)
			list = n.ArgumentList[0]
		}
		f.elements = append(f.elements, given{list: list, parameter: parameter, scope: s})
	}
}

// called notes that f is called from in.
func (w *walker) called(f *function, in context, loop bool) {
	f.loop = f.loop || loop || f == in.function
	if in.function != nil {
		in.function.inside = append(in.function.inside, f)
	}
}

// distribute ends the first walk: arguments go to the parameters of the
// functions they were given to, and what a function calls in turn is in a
// loop if it is.
func (w *walker) distribute() {
	var looping []*function
	for _, f := range w.order {
		if f.loop {
			looping = append(looping, f)
		}
		if f.params == nil {
			continue
		}
		for i, p := range f.params.List {
			if f.escapes {
				w.bind(f.scope, p.Target, origin{loose: true}, true, 0)
			}
			for _, call := range f.given {
				if i < len(call.args) {
					w.bind(f.scope, p.Target, origin{expr: call.args[i], scope: call.scope, loose: true}, true, 0)
				}
			}
			for _, g := range f.elements {
				if i == g.parameter {
					w.bind(f.scope, p.Target, origin{expr: g.list, scope: g.scope, path: []part{{element: true, index: anyElement}}, loose: true}, true, 0)
				}
			}
		}
	}
	for len(looping) > 0 {
		f := looping[len(looping)-1]
		looping = looping[:len(looping)-1]
		for _, g := range f.inside {
			if !g.loop {
				g.loop = true
				looping = append(looping, g)
			}
		}
	}
}

// sites lists a call, or the handing out, of what callee may be.
func (w *walker) sites(callee []value, idx func() file.Idx, args []ast.Expression, isCall bool, in context) {
	type found struct{ name, args string }
	var all []found
	add := func(name string, args []ast.Expression, known bool) {
		if slices.ContainsFunc(all, func(f found) bool { return f.name == name }) {
			return
		}
		f := found{name: name}
		if known {
			f.args = w.literals(args, in.scope)
		}
		all = append(all, f)
	}
	for _, v := range callee {
		if v.method == "bind" || v.kind != kindTool && v.kind != kindRaw {
			continue
		}
		args, known := passed(v, args, isCall)
		known = known && (len(v.bound) == 0 || v.scope == in.scope)
		switch {
		case v.kind == kindTool:
			add(v.name, args, known)
		case len(args) == 0: // raw without a name
			add("", nil, false)
		default:
			for _, name := range w.evalString(args[0], in.scope, 0) {
				add(name.name, args[1:], known)
			}
		}
	}
	in.branch = in.branch || len(all) > 1
	for _, f := range all {
		w.site(f.name, idx(), f.args, in)
	}
}

// passed returns the arguments that a tool gets, if they are known.
func passed(v value, args []ast.Expression, isCall bool) (list []ast.Expression, ok bool) {
	switch {
	case !isCall:
		return v.bound, false
	case v.method == "call":
		args = args[min(1, len(args)):]
	case v.method == "apply":
		if len(args) < 2 {
			args = nil
			break
		}
		array, isArray := args[1].(*ast.ArrayLiteral)
		if !isArray {
			return v.bound, false
		}
		args = array.Value
	}
	return append(append([]ast.Expression(nil), v.bound...), args...), true
}

// site adds a call site to the report.
func (w *walker) site(name string, idx file.Idx, args string, in context) {
	if len(w.report.Calls) == MaxCalls {
		w.report.Truncated = true
		return
	}
	if len(name) > maxName {
		name = ""
	}
	if name == "" {
		w.report.Unknown++
	}
	if w.literal+len(args) > MaxLiterals {
		args = ""
	}
	w.literal += len(args)
	w.report.Calls = append(w.report.Calls, analysis.CallSite{
		Name: name, Position: w.at(idx), Args: args, Loop: in.loop, Branch: in.branch,
	})
}

// inspects reports whether object.method looks at its arguments without
// calling them.
func (w *walker) inspects(object ast.Expression, method string, s *scope) bool {
	for _, name := range []string{"console", "JSON", "Reflect"} {
		if w.isBuiltin(object, name, s) {
			return true
		}
	}
	return w.isBuiltin(object, "Object", s) && method != "entries" && method != "values" && method != "assign"
}

func isCodemode(values []value) bool {
	return slices.ContainsFunc(values, func(v value) bool { return v.kind == kindCodemode })
}

func isFunction(e ast.Expression) bool {
	switch e.(type) {
	case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		return true
	}
	return false
}
