package profiles

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Many servers look up arguments regardless of case, so that a call with Path
// instead of path does what a rule on args.path forbids. A condition therefore
// knows which names it reads. If the arguments contain one of them in another
// spelling, nobody can tell which one the server will use, and the condition is
// undecided.

// FoldName returns the form that all names share which differ only in the case of
// their letters: by Unicode's simple case folding (the Kelvin sign is a k, a long
// s is an s), and with the Turkish i's taken as an i, as some servers do.
func FoldName(name string) string {
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return strings.Map(foldRune, name)
		}
	}
	return name
}

func foldRune(r rune) rune {
	r = unicode.ToLower(unicode.ToUpper(r))
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return unicode.ToLower(least)
}

// A place is the name of an argument and its depth, the number of objects that
// enclose it: 1 is a name in args itself. Arrays do not count.
type place struct {
	name  string
	depth int // for a name that is read, 0 if unknown
}

// A nameRead is a name that a condition reads.
type nameRead struct {
	place
	folded string
}

func readsName(name string, depth int) nameRead {
	return nameRead{place{name, depth}, FoldName(name)}
}

// at reports whether the name that is read may be at that depth.
func (n nameRead) at(depth int) bool { return n.depth == 0 || n.depth == depth }

// respelled says which argument has one of the names in another case; empty if
// none has.
func (f *facts) respelled(names []nameRead) string {
	for _, n := range names {
		for _, have := range f.folded()[n.folded] {
			if have.name != n.name && n.at(have.depth) {
				return fmt.Sprintf("an argument's name differs from %s in case alone", n.name)
			}
		}
	}
	return ""
}

// folded lists the names of all arguments by their folded form.
func (f *facts) folded() map[string][]place {
	if f.names == nil {
		f.names = map[string][]place{}
		f.foldIn(f.call.Args, 0)
	}
	return f.names
}

func (f *facts) foldIn(v any, depth int) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			f.foldIn(element, depth)
		}
	case map[string]any:
		for name, element := range v {
			folded, here := FoldName(name), place{name, depth + 1}
			if have := f.names[folded]; !slices.Contains(have, here) {
				f.names[folded] = append(have, here)
			}
			f.foldIn(element, depth+1)
		}
	}
}

// namesRead lists the names of arguments that an expression reads: args.a,
// args["a"], "a" in args, and those that a loop over the names compares with.
func namesRead(tree *ast.AST) (names []nameRead) {
	add := func(name string, depth int) {
		if n := readsName(name, depth); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	under := func(container, name ast.Expr) {
		if text, ok := textOf(name); ok {
			if depth, ok := depthOf(container); ok {
				add(text, depth)
			}
		}
	}
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		switch x.Kind() {
		case ast.SelectKind:
			if depth, ok := depthOf(x.AsSelect().Operand()); ok {
				add(x.AsSelect().FieldName(), depth)
			}
		case ast.CallKind:
			switch call := x.AsCall(); call.FunctionName() {
			case operators.Index:
				under(call.Args()[0], call.Args()[1])
			case operators.In:
				under(call.Args()[1], call.Args()[0])
			}
		case ast.ComprehensionKind:
			loop := x.AsComprehension()
			depth, ok := depthOf(loop.IterRange())
			if !ok {
				return
			}
			for _, text := range comparedWith(loop.LoopStep(), loop.IterVar()) {
				add(text, depth)
			}
		}
	}))
	return names
}

// depthOf returns the depth of the names in the object x: 1 for args, 0 if it
// depends on the call. It reports false if x is not part of the arguments.
func depthOf(x ast.Expr) (depth int, ok bool) {
	switch x.Kind() {
	case ast.IdentKind:
		if x.AsIdent() == "args" {
			return 1, true
		}
		_, fact := (&facts{call: &Call{}}).ResolveName(x.AsIdent())
		return 0, !fact // else the variable of a loop
	case ast.SelectKind:
		if depth, ok = depthOf(x.AsSelect().Operand()); ok && depth > 0 {
			depth++
		}
		return depth, ok
	case ast.CallKind:
		call := x.AsCall()
		if call.FunctionName() != operators.Index {
			return 0, true
		}
		if depth, ok = depthOf(call.Args()[0]); !ok || depth == 0 {
			return depth, ok
		}
		key := call.Args()[1]
		if _, isText := textOf(key); isText {
			return depth + 1, true
		}
		if key.Kind() == ast.LiteralKind && key.AsLiteral().Type() == types.IntType { // an element of an array
			return depth, true
		}
	}
	return 0, true
}

// comparedWith lists the texts that a variable is compared with.
func comparedWith(x ast.Expr, variable string) (all []string) {
	ast.PreOrderVisit(x, ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.CallKind {
			return
		}
		call := x.AsCall()
		switch call.FunctionName() {
		case operators.Equals, operators.NotEquals, operators.In:
		default:
			return
		}
		isVariable := func(x ast.Expr) bool { return x.Kind() == ast.IdentKind && x.AsIdent() == variable }
		if !slices.ContainsFunc(call.Args(), isVariable) {
			return
		}
		for _, other := range call.Args() {
			elements := []ast.Expr{other}
			if other.Kind() == ast.ListKind {
				elements = other.AsList().Elements()
			}
			for _, element := range elements {
				if text, ok := textOf(element); ok {
					all = append(all, text)
				}
			}
		}
	}))
	return all
}

// textOf is the value of a string literal.
func textOf(x ast.Expr) (string, bool) {
	if x.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := x.AsLiteral().(types.String)
	return string(text), ok
}

// Reads returns a function that reports whether any rule for the tool reads or
// hides an argument of this name, in any case, at this depth (the number of
// enclosing objects, args included). A nil profile, which denies everything, reads
// everything.
func (p *Profile) Reads(server, tool string) func(name string, depth int) bool {
	path := qualified(server, tool)
	if p == nil || len(path) > maxPath {
		return func(string, int) bool { return true }
	}
	var rules []*rule
	for _, r := range p.rules {
		if _, ok := anyMatch(r.tools, path); ok {
			rules = append(rules, r)
		}
	}
	return func(name string, depth int) bool {
		folded := FoldName(name)
		return slices.ContainsFunc(rules, func(r *rule) bool { return r.reads(folded, depth) })
	}
}

func (r *rule) reads(folded string, depth int) bool {
	is := func(n nameRead) bool { return n.folded == folded && n.at(depth) }
	if r.when != nil && slices.ContainsFunc(r.when.reads(), is) {
		return true
	}
	for _, check := range r.checks {
		if slices.ContainsFunc(check.names, is) {
			return true
		}
	}
	return r.hides(folded)
}

// hides reports whether the rule hides the value of an argument with this folded
// name.
func (r *rule) hides(folded string) bool {
	for key := range r.hidden {
		if lettersOnly(FoldName(key)) == lettersOnly(folded) {
			return true
		}
	}
	return false
}

// lettersOnly reduces a name to the form in which hidden names are compared:
// apiKey equals api_key.
func lettersOnly(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
}
