package source

import (
	"reflect"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// What the engine gets wrong and can be repaired in the tree, besides regular
// expressions.

// Names that no script can write.
const (
	outerArguments = "codemode:arguments"
	CaughtFunction = "codemode:caught"
)

// RepairArguments gives arrow functions the arguments of the function around
// them, which the engine looks for in the wrong place, or beyond the end of its
// stack: the outer function keeps them in a variable, which the arrow functions
// read instead.
func (s *Script) RepairArguments() {
	if !strings.Contains(s.Text, "arguments") || !strings.Contains(s.Text, "=>") {
		return
	}
	repairArguments(reflect.ValueOf(s.Program.Body), 0, nil)
}

// argumentsOf is a function other than an arrow function, while its body is walked.
type argumentsOf struct {
	arrows int  // within it, around the node
	taken  bool // by an arrow function
}

func repairArguments(v reflect.Value, depth int, in *argumentsOf) {
	if depth > maxTree {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			repairArguments(v.Elem(), depth+1, in)
		}
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct || v.Type().Elem().PkgPath() != astPath {
			return
		}
		switch n := v.Interface().(type) {
		case *ast.Identifier:
			if in != nil && in.arrows > 0 && n.Name == "arguments" {
				n.Name, in.taken = outerArguments, true
			}
			return
		case *ast.DotExpression: // x.arguments is a property
			repairArguments(reflect.ValueOf(n.Left), depth+1, in)
			return
		case *ast.ArrowFunctionLiteral:
			if in != nil {
				in.arrows++
				defer func() { in.arrows-- }()
			}
		case *ast.FunctionLiteral:
			// Defaults of parameters cannot see what the body declares.
			repairArguments(reflect.ValueOf(n.ParameterList), depth+1, nil)
			own := new(argumentsOf)
			repairArguments(reflect.ValueOf(n.Body), depth+1, own)
			if own.taken {
				n.Body.List = append([]ast.Statement{&ast.LexicalDeclaration{Idx: n.Body.LeftBrace, Token: token.CONST, List: []*ast.Binding{{
					Target:      &ast.Identifier{Name: outerArguments, Idx: n.Body.LeftBrace},
					Initializer: &ast.Identifier{Name: "arguments", Idx: n.Body.LeftBrace},
				}}}}, n.Body.List...)
			}
			return
		}
		repairArguments(v.Elem(), depth+1, in)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "DeclarationList" {
				repairArguments(v.Field(i), depth+1, in)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			repairArguments(v.Index(i), depth+1, in)
		}
	}
}

// RepairCaught makes every catch clause pass its error to CaughtFunction first,
// and reports whether there is one.
func (s *Script) RepairCaught() (found bool) {
	if !strings.Contains(s.Text, "catch") {
		return false
	}
	eachNode(reflect.ValueOf(s.Program.Body), 0, func(n any) {
		c, ok := n.(*ast.CatchStatement)
		if !ok || c.Body == nil {
			return
		}
		id, ok := c.Parameter.(*ast.Identifier)
		if !ok {
			return
		}
		at := c.Body.LeftBrace
		c.Body.List = append([]ast.Statement{&ast.ExpressionStatement{Expression: &ast.CallExpression{
			Callee:           &ast.Identifier{Name: CaughtFunction, Idx: at},
			LeftParenthesis:  at,
			ArgumentList:     []ast.Expression{&ast.Identifier{Name: id.Name, Idx: at}},
			RightParenthesis: at,
		}}}, c.Body.List...)
		found = true
	})
	return found
}

// eachNode calls f for every pointer below v. It is only used for scripts
// that need a repair, so it can afford reflection.
func eachNode(v reflect.Value, depth int, f func(any)) {
	if depth > maxTree {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			eachNode(v.Elem(), depth+1, f)
		}
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct || v.Type().Elem().PkgPath() != astPath {
			return
		}
		f(v.Interface())
		eachNode(v.Elem(), depth+1, f)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "DeclarationList" {
				eachNode(v.Field(i), depth+1, f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachNode(v.Index(i), depth+1, f)
		}
	}
}

var astPath = reflect.TypeFor[ast.Program]().PkgPath()

// maxTree bounds how deep a syntax tree is walked.
const maxTree = 1000
