package source_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"codemode-bridge/sandbox/source"
)

// All patterns compile, those that no test comes by included: what fails first when it is
// used fails in somebody's script.
func TestPatterns(t *testing.T) {
	found := 0
	own, _ := filepath.Glob("*.go")
	others, _ := filepath.Glob("../realm/*.go")
	for _, path := range append(own, others...) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 && called(call) == "Pattern" {
				found++
				if _, err := regexp.Compile(constant(t, call.Args[0])); err != nil {
					t.Error(err)
				}
			}
			return true
		})
	}
	if found < 40 {
		t.Errorf("only %d patterns were found", found)
	}
}

// called returns the name of what a call calls, without its package.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// constant returns the text of an expression of literals; a name stands for a word.
func constant(t *testing.T, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		return text
	case *ast.BinaryExpr:
		return constant(t, e.X) + constant(t, e.Y)
	}
	return "word"
}

// A pattern is compiled when it is first asked for, once.
func TestPatternIsLazy(t *testing.T) {
	broken := source.Pattern(`(`)
	defer func() {
		if recover() == nil {
			t.Error("a pattern that is none was taken")
		}
	}()
	p := source.Pattern(`a+`)
	if first, again := p(), p(); first != again || !first.MatchString("caat") {
		t.Error("the pattern is another one each time")
	}
	broken()
}
