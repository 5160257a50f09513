package worker

import (
	"reflect"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// What the engine gets wrong and the tree can mend, beside regular expressions.

// Names that no script can write.
const (
	outerArguments = "codemode:arguments"
	caughtFunction = "codemode:caught"
)

// repairArguments gives arrow functions the arguments of the function around
// them, which the engine looks for in the wrong place, or beyond the end of its
// stack: that function keeps them under another name, which they read.
func (s *scriptText) repairArguments() {
	if !strings.Contains(s.text, "arguments") || !strings.Contains(s.text, "=>") {
		return
	}
	mendArguments(reflect.ValueOf(s.program.Body), 0, nil)
}

// argumentsOf is a function that is no arrow function, while its body is walked.
type argumentsOf struct {
	arrows int  // within it, around the node
	taken  bool // by an arrow function
}

func mendArguments(v reflect.Value, depth int, in *argumentsOf) {
	if depth > maxDepth {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			mendArguments(v.Elem(), depth+1, in)
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
			mendArguments(reflect.ValueOf(n.Left), depth+1, in)
			return
		case *ast.ArrowFunctionLiteral:
			if in != nil {
				in.arrows++
				defer func() { in.arrows-- }()
			}
		case *ast.FunctionLiteral:
			// Defaults of parameters cannot see what the body declares.
			mendArguments(reflect.ValueOf(n.ParameterList), depth+1, nil)
			own := new(argumentsOf)
			mendArguments(reflect.ValueOf(n.Body), depth+1, own)
			if own.taken {
				n.Body.List = append([]ast.Statement{&ast.LexicalDeclaration{Idx: n.Body.LeftBrace, Token: token.CONST, List: []*ast.Binding{{
					Target:      &ast.Identifier{Name: outerArguments, Idx: n.Body.LeftBrace},
					Initializer: &ast.Identifier{Name: "arguments", Idx: n.Body.LeftBrace},
				}}}}, n.Body.List...)
			}
			return
		}
		mendArguments(v.Elem(), depth+1, in)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "DeclarationList" {
				mendArguments(v.Field(i), depth+1, in)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			mendArguments(v.Index(i), depth+1, in)
		}
	}
}

// repairCaught has every catch clause show its error to caught first.
func (s *scriptText) repairCaught() (found bool) {
	if !strings.Contains(s.text, "catch") {
		return false
	}
	eachNode(reflect.ValueOf(s.program.Body), 0, func(n any) {
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
			Callee:           &ast.Identifier{Name: caughtFunction, Idx: at},
			LeftParenthesis:  at,
			ArgumentList:     []ast.Expression{&ast.Identifier{Name: id.Name, Idx: at}},
			RightParenthesis: at,
		}}}, c.Body.List...)
		found = true
	})
	return found
}

// installCaught makes what catch clauses call: it puts the engine's message about
// a member of nothing, which says undefined of null too, into Node's words.
func (r *realm) installCaught() {
	r.fix(caughtFunction, r.function("", func(c goja.FunctionCall) goja.Value {
		o, ok := c.Argument(0).(*goja.Object)
		if !ok || isProxy(o) || o.ClassName() != "Error" {
			return goja.Undefined()
		}
		message, ok := r.dataProperty(o, "message").(goja.String)
		if !ok {
			return goja.Undefined()
		}
		m := noProperty.FindStringSubmatch(message.String())
		if m == nil {
			return goja.Undefined()
		}
		stack := propertyText(o, "stack", "")
		at, _ := r.parseStack(stack)
		text := "Cannot read properties of " + r.nothing(r.lineAt(at), at, m[1]) + " (reading '" + m[1] + "')"
		o.Set("message", text)
		o.Set("stack", strings.Replace(stack, message.String(), text, 1))
		return goja.Undefined()
	}))
}
