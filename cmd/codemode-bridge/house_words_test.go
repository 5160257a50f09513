//go:build !race

package main_test

// One word, one meaning: docs/glossary.md has the words. Names that it has replaced are
// listed in testdata/retired.txt as package.Identifier, so that other packages may still
// use a word in its plain sense.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// declared are the names that a file declares: types, functions, methods,
// fields, variables and constants of the package.
func declared(f file) (names []string, err error) {
	tree, err := parser.ParseFile(token.NewFileSet(), f.Path, f.Text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						names = append(names, id.Name)
					}
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
					ast.Inspect(spec.Type, func(n ast.Node) bool {
						if field, ok := n.(*ast.Field); ok {
							for _, id := range field.Names {
								names = append(names, id.Name)
							}
						}
						_, signature := n.(*ast.FuncType) // whose parameters are local
						return !signature
					})
				}
			}
		}
	}
	return names, nil
}

// nothingRetired finds declarations whose names were retired in the package.
func nothingRetired(files []file, retired []string) (bad []string) {
	for _, f := range files {
		if !strings.HasSuffix(f.Path, ".go") || slices.Contains(strings.Split(f.Path, "/"), "testdata") {
			continue
		}
		names, err := declared(f)
		if err != nil {
			bad = append(bad, err.Error())
		}
		for _, name := range names {
			if full := path.Base(path.Dir(f.Path)) + "." + name; slices.Contains(retired, full) {
				bad = append(bad, fmt.Sprintf("%s declares %s, which docs/glossary.md has replaced", f.Path, full))
			}
		}
	}
	return bad
}

// readRetired reads the list: one name a line, # begins a comment.
func readRetired(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "retired.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func TestWords(t *testing.T) {
	t.Parallel()
	retired := readRetired(t)
	if len(retired) == 0 {
		t.Fatal("testdata/retired.txt names nothing")
	}
	if !slices.IsSorted(retired) || len(slices.Compact(slices.Clone(retired))) != len(retired) {
		t.Error("testdata/retired.txt is not in order, or names something twice")
	}
	for _, name := range retired {
		if pkg, id, ok := strings.Cut(name, "."); !ok || !token.IsIdentifier(id) || pkg == "" {
			t.Errorf("testdata/retired.txt: %q is not package.Identifier", name)
		}
	}
	for _, violation := range nothingRetired(readFiles(t, moduleRoot(t)), retired) {
		t.Error(violation)
	}
}

func TestWordsCanFail(t *testing.T) {
	t.Parallel()
	retired := []string{"run.held"}
	for _, row := range []struct {
		path, text string
		good       bool
	}{
		{"bridge/run/a.go", "package run\nfunc held() {}\n", false},
		{"bridge/run/a.go", "package run\nfunc (r *run) held() {}\n", false},
		{"bridge/run/a.go", "package run\ntype held int\n", false},
		{"bridge/run/a.go", "package run\nvar a, held int\n", false},
		{"bridge/run/a.go", "package run\ntype run struct{ held bool }\n", false},
		{"bridge/run/a.go", "package run\ntype run interface{ held() bool }\n", false},
		{"bridge/run/a_test.go", "package run_test\nconst held = 1\n", false},
		{"bridge/run/a.go", "package run\nfunc f(held int) { held := held; _ = held }\ntype g func(held int)\n", true},
		{"bridge/gate/a.go", "package gate\nfunc held() {}\n", true},
		{"bridge/run/testdata/a.go", "package run\nfunc held() {}\n", true},
		{"bridge/run/a.md", "package run\nfunc held() {}\n", true},
		{"bridge/run/a.go", "not Go", false},
	} {
		if bad := nothingRetired([]file{{row.path, row.text}}, retired); (len(bad) == 0) != row.good {
			t.Errorf("%s, %q: %q", row.path, row.text, bad)
		}
	}
}
