//go:build !race

package main_test

// The Makefile lists the packages that the race detector runs over. The list is checked
// against what the packages do.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// raced matches the list in the Makefile, with its continuation lines.
var raced = regexp.MustCompile(`(?m)^RACE *=((?:.*\\\n)*.*)$`)

// raceList returns the packages that a Makefile names for the race detector.
func raceList(makefile string) (list []string) {
	m := raced.FindStringSubmatch(makefile)
	if m == nil {
		return nil
	}
	for _, word := range strings.Fields(strings.ReplaceAll(m[1], "\\\n", " ")) {
		list = append(list, path.Clean(word))
	}
	return list
}

// goroutinesMeet reports whether a file has a go statement, a channel, or
// something of sync, such as a group that starts goroutines.
func goroutinesMeet(f file) (bool, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), f.Path, f.Text, 0)
	if err != nil {
		return false, err
	}
	meet := slices.ContainsFunc(tree.Imports, func(i *ast.ImportSpec) bool {
		return matches([]string{"sync", "sync/..."}, strings.Trim(i.Path.Value, `"`))
	})
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt, *ast.ChanType:
			meet = true
		}
		return !meet
	})
	return meet, nil
}

// racedWhereGoroutinesMeet finds packages with tests that are missing in the list, and
// those in the list without a reason to be there.
func racedWhereGoroutinesMeet(files []file, list []string) (bad []string) {
	tested, meet := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		if !strings.HasSuffix(f.Path, ".go") || slices.Contains(strings.Split(f.Path, "/"), "testdata") {
			continue
		}
		dir := path.Dir(f.Path)
		tested[dir] = tested[dir] || strings.HasSuffix(f.Path, "_test.go")
		found, err := goroutinesMeet(f)
		if err != nil {
			bad = append(bad, err.Error())
		}
		meet[dir] = meet[dir] || found
	}
	for dir := range tested {
		switch listed := slices.Contains(list, dir); {
		case tested[dir] && meet[dir] && !listed:
			bad = append(bad, "goroutines meet in "+dir+", and RACE in the Makefile does not name it")
		case listed && !(tested[dir] && meet[dir]):
			bad = append(bad, "RACE in the Makefile names "+dir+", where no goroutines meet or nothing is tested")
		}
	}
	for _, dir := range list {
		if _, ok := tested[dir]; !ok {
			bad = append(bad, "RACE in the Makefile names "+dir+", which does not exist")
		}
	}
	return bad
}

func TestRacedWhereGoroutinesMeet(t *testing.T) {
	t.Parallel()
	files := readFiles(t, filepath.Join("..", ".."))
	i := slices.IndexFunc(files, func(f file) bool { return f.Path == "Makefile" })
	if i < 0 {
		t.Fatal("there is no Makefile")
	}
	for _, violation := range racedWhereGoroutinesMeet(files, raceList(files[i].Text)) {
		t.Error(violation)
	}
}

func TestRaceRuleCanFail(t *testing.T) {
	t.Parallel()
	list := raceList("A = b\nRACE = ./a \\\n\t./b/c\nrace:\n\ttest ./d\n")
	if !slices.Equal(list, []string{"a", "b/c"}) {
		t.Errorf("read %q", list)
	}
	const quiet = "package p\n"
	for _, row := range []struct {
		code, test string
		listed     bool
		good       bool
	}{
		{quiet, quiet, false, true},
		{quiet, quiet, true, false},
		{"package p\nfunc f() { go f() }\n", quiet, true, true},
		{"package p\nfunc f() { go f() }\n", quiet, false, false},
		{quiet, "package p\nvar c chan int\n", false, false},
		{quiet, "package p\nimport \"sync/atomic\"\nvar n atomic.Int64\n", false, false},
		{quiet, "package p\n// go f() in a chan of sync\nvar s = \"go f()\"\n", false, true},
		{"not Go", quiet, false, false},
	} {
		files := []file{{"p/a.go", row.code}, {"p/a_test.go", row.test}}
		var list []string
		if row.listed {
			list = []string{"p"}
		}
		if bad := racedWhereGoroutinesMeet(files, list); (len(bad) == 0) != row.good {
			t.Errorf("%q and %q, in the list %v: %q", row.code, row.test, row.listed, bad)
		}
	}
	if bad := racedWhereGoroutinesMeet(nil, []string{"gone"}); len(bad) != 1 {
		t.Errorf("a package that does not exist: %q", bad)
	}
}
