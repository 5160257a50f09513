package preview

import (
	goast "go/ast"
	goparser "go/parser"
	gotoken "go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dop251/goja/ast"
)

// nodes are all types of goja's tree that children knows.
var nodes = []ast.Node{
	&ast.ArrayLiteral{}, &ast.ArrayPattern{}, &ast.ArrowFunctionLiteral{}, &ast.AssignExpression{},
	&ast.AwaitExpression{}, &ast.BadExpression{}, &ast.BadStatement{}, &ast.BinaryExpression{}, &ast.Binding{},
	&ast.BlockStatement{}, &ast.BooleanLiteral{}, &ast.BracketExpression{}, &ast.BranchStatement{},
	&ast.CallExpression{}, &ast.CaseStatement{}, &ast.CatchStatement{}, &ast.ClassDeclaration{},
	&ast.ClassLiteral{}, &ast.ClassStaticBlock{}, &ast.ConditionalExpression{}, &ast.DebuggerStatement{},
	&ast.DoWhileStatement{}, &ast.DotExpression{}, &ast.EmptyStatement{}, &ast.ExpressionBody{},
	&ast.ExpressionStatement{}, &ast.FieldDefinition{}, &ast.ForDeclaration{}, &ast.ForInStatement{},
	&ast.ForIntoExpression{}, &ast.ForIntoVar{}, &ast.ForLoopInitializerExpression{},
	&ast.ForLoopInitializerLexicalDecl{}, &ast.ForLoopInitializerVarDeclList{}, &ast.ForOfStatement{},
	&ast.ForStatement{}, &ast.FunctionDeclaration{}, &ast.FunctionLiteral{}, &ast.Identifier{},
	&ast.IfStatement{}, &ast.LabelledStatement{}, &ast.LexicalDeclaration{}, &ast.MetaProperty{},
	&ast.MethodDefinition{}, &ast.NewExpression{}, &ast.NullLiteral{}, &ast.NumberLiteral{},
	&ast.ObjectLiteral{}, &ast.ObjectPattern{}, &ast.Optional{}, &ast.OptionalChain{}, &ast.ParameterList{},
	&ast.PrivateDotExpression{}, &ast.PrivateIdentifier{}, &ast.Program{}, &ast.PropertyKeyed{},
	&ast.PropertyShort{}, &ast.RegExpLiteral{}, &ast.ReturnStatement{}, &ast.SequenceExpression{},
	&ast.SpreadElement{}, &ast.StringLiteral{}, &ast.SuperExpression{}, &ast.SwitchStatement{},
	&ast.TemplateElement{}, &ast.TemplateLiteral{}, &ast.ThisExpression{}, &ast.ThrowStatement{},
	&ast.TryStatement{}, &ast.UnaryExpression{}, &ast.VariableDeclaration{}, &ast.VariableStatement{},
	&ast.WhileStatement{}, &ast.WithStatement{}, &ast.YieldExpression{},
}

// TestKnowsEveryNodeType reads the structs that goja's ast package declares
// and fails when there is one that children has never heard of.
func TestKnowsEveryNodeType(t *testing.T) {
	known := map[string]bool{}
	for _, n := range nodes {
		known[reflect.TypeOf(n).Elem().Name()] = true
	}
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/dop251/goja/ast").Output()
	if err != nil {
		t.Fatalf("finding the source of goja: %v", err)
	}
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("finding the source of goja in %s: %v", dir, err)
	}
	declared := map[string]bool{}
	for _, path := range paths {
		f, err := goparser.ParseFile(gotoken.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		goast.Inspect(f, func(n goast.Node) bool {
			if spec, ok := n.(*goast.TypeSpec); ok {
				if _, ok := spec.Type.(*goast.StructType); ok {
					declared[spec.Name.Name] = true
				}
			}
			return true
		})
	}
	for name := range declared {
		if !known[name] {
			t.Errorf("goja has a node type %s that children does not know", name)
		}
	}
	for name := range known {
		if !declared[name] {
			t.Errorf("goja no longer has the node type %s", name)
		}
	}
}

// TestVisitsEveryField fills every field of every node type that can hold a
// node and checks that children visits what was put there.
func TestVisitsEveryField(t *testing.T) {
	nodeType := reflect.TypeFor[ast.Node]()
	fillers := append([]ast.Node(nil), nodes...)
	// filler returns a fresh node that fits a field's type.
	filler := func(typ reflect.Type) (reflect.Value, bool) {
		for _, n := range fillers {
			if p := reflect.TypeOf(n); p.AssignableTo(typ) {
				return reflect.New(p.Elem()), true
			}
		}
		return reflect.Value{}, false
	}
	for _, n := range nodes {
		typ := reflect.TypeOf(n).Elem()
		t.Run(typ.Name(), func(t *testing.T) {
			node := reflect.New(typ)
			want := map[any]string{} // node -> field
			for i := range typ.NumField() {
				field, v := typ.Field(i), node.Elem().Field(i)
				if field.Name == "DeclarationList" {
					continue // also stands in the body
				}
				switch {
				case reflect.PointerTo(field.Type).Implements(nodeType) && field.Type.Kind() == reflect.Struct:
					want[v.Addr().Interface()] = field.Name
				case field.Type.Implements(nodeType):
					f, ok := filler(field.Type)
					if !ok {
						t.Fatalf("nothing fits field %s %s", field.Name, field.Type)
					}
					v.Set(f)
					want[f.Interface()] = field.Name
				case field.Type.Kind() == reflect.Slice && field.Type.Elem().Implements(nodeType):
					for range 2 {
						f, ok := filler(field.Type.Elem())
						if !ok {
							t.Fatalf("nothing fits field %s %s", field.Name, field.Type)
						}
						v.Set(reflect.Append(v, f))
						want[f.Interface()] = field.Name
					}
				}
			}
			children(node.Interface().(ast.Node), func(c ast.Node) {
				if _, ok := want[c]; !ok {
					t.Errorf("children visits a %T that is no field", c)
				}
				delete(want, c)
			})
			for _, name := range want {
				t.Errorf("children does not visit field %s", name)
			}
		})
	}
}
