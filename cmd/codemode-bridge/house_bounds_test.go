//go:build !race

package main_test

// How large packages, types, files and functions may grow. The numbers are taken from the
// packages as the compiler sees them; a rule is a function over them that returns its
// violations. exceptions lists what may be over a bound, with the reason.

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
)

// The bounds.
const (
	maxLevels        = 5    // of imports among our packages, the program included
	maxPackageLines  = 5000 // without tests
	maxProgramLines  = 7000 // of cmd/codemode-bridge
	maxMethods       = 40   // of one type
	maxFields        = 25   // of one struct
	longFunction     = 60   // lines
	maxLongFunctions = 0.02 // of all functions
	maxOwnImports    = 10   // of one package; programs import what they wire
	maxKnot          = 0.10 // of the pairs of files refer to each other both ways
	smallPackage     = 6    // files; one reads them all, so knots do not matter
)

// exceptions are what may be over a bound, by rule, with the reason.
var exceptions = map[string]map[string]string{
	"a type is one thing": {
		"bridge/ledger.Record": "plain data: one line of the audit log",
		"bridge/config.Server": "plain data: a server as the file has it",
	},
	"a package can be read in a day": {
		"profiles": "one decision and what it needs: all else stands on it, so that a package below would add a level",
	},
	"a package stands on few others": {
		"bridge": "a run meets its client, its worker, its calls and its journal here; a split would add a level",
	},
}

// A measured package has the numbers that the bounds are about.
type measured struct {
	path    string // relative to the module
	lines   int
	files   int
	imports []string       // ours
	methods map[string]int // by type
	fields  map[string]int // by struct
	lengths map[string]int // by function, in lines
	knots   int            // pairs of files that refer to each other both ways
}

// loadOnce loads the packages of ours with their syntax and types, tests not counted:
// that takes seconds, and several tests look at them.
var loadOnce = sync.OnceValues(func() ([]*packages.Package, error) {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Fset: token.NewFileSet()}, module+"/...")
	for _, p := range pkgs {
		for _, wrong := range p.Errors {
			err = errors.Join(err, wrong)
		}
	}
	return pkgs, err
})

func loadPackages(t *testing.T) []*packages.Package {
	t.Helper()
	pkgs, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) == 0 {
		t.Fatal("there are no packages")
	}
	return pkgs
}

// measure measures the packages of ours.
func measure(t *testing.T) (all []measured) {
	t.Helper()
	for _, p := range loadPackages(t) {
		m, err := measurePackage(p.Fset, p.Types, p.TypesInfo, p.Syntax)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func measurePackage(set *token.FileSet, of *types.Package, info *types.Info, syntax []*ast.File) (measured, error) {
	name, _ := local(of.Path())
	m := measured{path: name, files: len(syntax), methods: map[string]int{}, fields: map[string]int{}, lengths: map[string]int{}}
	for _, imported := range of.Imports() {
		if path, ours := local(imported.Path()); ours {
			m.imports = append(m.imports, path)
		}
	}
	place := func(at token.Pos) string { return filepath.Base(set.Position(at).Filename) }
	in := make(map[string]bool)
	for _, f := range syntax {
		text, err := os.ReadFile(set.Position(f.Pos()).Filename)
		if err != nil {
			return m, err
		}
		m.lines += strings.Count(string(text), "\n")
		in[place(f.Pos())] = true
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				m.lengths[set.Position(fn.Pos()).String()+" "+fn.Name.Name] = set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1
			}
		}
	}
	for _, name := range of.Scope().Names() {
		declared, ok := of.Scope().Lookup(name).(*types.TypeName)
		if !ok || declared.IsAlias() {
			continue
		}
		if named, ok := declared.Type().(*types.Named); ok {
			m.methods[name] = named.NumMethods()
		}
		if s, ok := declared.Type().Underlying().(*types.Struct); ok {
			m.fields[name] = s.NumFields()
		}
	}
	refers := make(map[[2]string]bool)
	for id, used := range info.Uses {
		if used.Pkg() != of || !used.Pos().IsValid() {
			continue
		}
		if from, to := place(id.Pos()), place(used.Pos()); from != to && in[to] {
			refers[[2]string{from, to}] = true
		}
	}
	for pair := range refers {
		if pair[0] < pair[1] && refers[[2]string{pair[1], pair[0]}] {
			m.knots++
		}
	}
	return m, nil
}

func isProgram(path string) bool { return strings.HasPrefix(path, "cmd/") }

func packagesOfABearableSize(all []measured) (bad []string) {
	for _, m := range all {
		most := maxPackageLines
		if isProgram(m.path) {
			most = maxProgramLines
		}
		if m.lines > most {
			bad = append(bad, fmt.Sprintf("%s has %d lines, at most %d", m.path, m.lines, most))
		}
	}
	return bad
}

func typesOfABearableSize(all []measured) (bad []string) {
	for _, m := range all {
		for _, name := range slices.Sorted(maps.Keys(m.methods)) {
			if n := m.methods[name]; n > maxMethods {
				bad = append(bad, fmt.Sprintf("%s.%s has %d methods, at most %d", m.path, name, n, maxMethods))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.fields)) {
			if n := m.fields[name]; n > maxFields {
				bad = append(bad, fmt.Sprintf("%s.%s has %d fields, at most %d", m.path, name, n, maxFields))
			}
		}
	}
	return bad
}

func fewLongFunctions(all []measured) (bad []string) {
	functions := 0
	for _, m := range all {
		functions += len(m.lengths)
		for name, lines := range m.lengths {
			if lines > longFunction {
				bad = append(bad, fmt.Sprintf("%s has %d lines", name, lines))
			}
		}
	}
	if float64(len(bad)) <= maxLongFunctions*float64(functions) {
		return nil
	}
	return bad
}

func narrowImports(all []measured) (bad []string) {
	for _, m := range all {
		if len(m.imports) > maxOwnImports && !isProgram(m.path) {
			bad = append(bad, fmt.Sprintf("%s imports %d of our packages, at most %d", m.path, len(m.imports), maxOwnImports))
		}
	}
	return bad
}

func noKnots(all []measured) (bad []string) {
	for _, m := range all {
		pairs := m.files * (m.files - 1) / 2
		if m.files > smallPackage && float64(m.knots) > maxKnot*float64(pairs) {
			bad = append(bad, fmt.Sprintf("%s has %d of %d pairs of files that refer to each other both ways, at most %.0f %%", m.path, m.knots, pairs, maxKnot*100))
		}
	}
	return bad
}

// levels are the lengths of the longest chains of our own imports beneath
// each package.
func levels(imports map[string][]string) map[string]int {
	of := make(map[string]int)
	var level func(path string) int
	level = func(path string) int {
		if n, ok := of[path]; ok {
			return n
		}
		n := 0
		for _, imported := range imports[path] {
			n = max(n, level(imported)+1)
		}
		of[path] = n
		return n
	}
	for path := range imports {
		level(path)
	}
	return of
}

func fewLevels(all []measured) (bad []string) {
	imports := make(map[string][]string)
	for _, m := range all {
		imports[m.path] = m.imports
	}
	of := levels(imports)
	for _, path := range slices.Sorted(maps.Keys(of)) {
		if of[path] >= maxLevels {
			bad = append(bad, fmt.Sprintf("%s is on level %d, the highest is %d", path, of[path], maxLevels-1))
		}
	}
	return bad
}

// without removes the violations whose first word is an exception, and adds a violation
// for every exception that is not needed.
func without(bad []string, but map[string]string) (left []string) {
	needed := make(map[string]bool)
	for _, violation := range bad {
		subject, _, _ := strings.Cut(violation, " ")
		if needed[subject] = true; but[subject] == "" {
			left = append(left, violation)
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(but)) {
		if !needed[subject] {
			left = append(left, subject+" is an exception without need")
		}
	}
	return left
}

func TestBounds(t *testing.T) {
	t.Parallel()
	all := measure(t)
	for rule, bad := range map[string][]string{
		"a package can be read in a day": packagesOfABearableSize(all),
		"a type is one thing":            typesOfABearableSize(all),
		"few functions are long":         fewLongFunctions(all),
		"a package stands on few others": narrowImports(all),
		"files are rooms with doors":     noKnots(all),
		"the house has five floors":      fewLevels(all),
	} {
		for _, violation := range without(bad, exceptions[rule]) {
			t.Errorf("%s: %s", rule, violation)
		}
	}
}

func TestBoundsCanFail(t *testing.T) {
	t.Parallel()
	one := func(change func(*measured)) []measured {
		m := measured{path: "bridge/p", methods: map[string]int{}, fields: map[string]int{}, lengths: map[string]int{"f": 1}}
		change(&m)
		return []measured{m}
	}
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("p", i))
		}
		return all
	}
	rows := []struct {
		rule      string
		good, bad []string
	}{
		{"lines",
			packagesOfABearableSize(one(func(m *measured) { m.lines = maxPackageLines })),
			packagesOfABearableSize(one(func(m *measured) { m.lines = maxPackageLines + 1 }))},
		{"lines of a program",
			packagesOfABearableSize(one(func(m *measured) { m.path, m.lines = "cmd/p", maxProgramLines })),
			packagesOfABearableSize(one(func(m *measured) { m.path, m.lines = "cmd/p", maxProgramLines+1 }))},
		{"methods",
			typesOfABearableSize(one(func(m *measured) { m.methods["T"] = maxMethods })),
			typesOfABearableSize(one(func(m *measured) { m.methods["T"] = maxMethods + 1 }))},
		{"fields",
			typesOfABearableSize(one(func(m *measured) { m.fields["T"] = maxFields })),
			typesOfABearableSize(one(func(m *measured) { m.fields["T"] = maxFields + 1 }))},
		{"long functions",
			fewLongFunctions(one(func(m *measured) { m.lengths["f"] = longFunction })),
			fewLongFunctions(one(func(m *measured) { m.lengths["f"] = longFunction + 1 }))},
		{"imports",
			narrowImports(append(one(func(m *measured) { m.imports = names(maxOwnImports) }), one(func(m *measured) { m.path, m.imports = "cmd/p", names(99) })...)),
			narrowImports(one(func(m *measured) { m.imports = names(maxOwnImports + 1) }))},
		{"knots",
			noKnots(one(func(m *measured) { m.files, m.knots = 20, 19 })),
			noKnots(one(func(m *measured) { m.files, m.knots = 20, 20 }))},
		{"knots in a small package",
			noKnots(one(func(m *measured) { m.files, m.knots = smallPackage, 15 })),
			noKnots(one(func(m *measured) { m.files, m.knots = smallPackage+1, 15 }))},
		{"levels",
			fewLevels([]measured{{path: "a", imports: []string{"b"}}, {path: "b", imports: []string{"c"}}, {path: "c", imports: []string{"d"}}, {path: "d", imports: []string{"e"}}, {path: "e"}}),
			fewLevels([]measured{{path: "a", imports: []string{"b"}}, {path: "b", imports: []string{"c"}}, {path: "c", imports: []string{"d"}}, {path: "d", imports: []string{"e"}}, {path: "e", imports: []string{"f"}}, {path: "f"}})},
		{"excepted",
			without([]string{"p.T has 99 fields"}, map[string]string{"p.T": "data"}),
			without([]string{"p.Ta has 99 fields", "p.T has 99 fields"}, map[string]string{"p.T": "data"})},
		{"excepted without need",
			without(nil, nil),
			without(nil, map[string]string{"p.T": "data"})},
	}
	for _, row := range rows {
		if len(row.good) != 0 {
			t.Errorf("%s: refuses what is right: %q", row.rule, row.good)
		}
		if len(row.bad) != 1 {
			t.Errorf("%s: found %d violations where there is one: %q", row.rule, len(row.bad), row.bad)
		}
	}
}

// TestMeasure checks the numbers for made-up code.
func TestMeasure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	set := token.NewFileSet()
	var syntax []*ast.File
	for name, text := range map[string]string{
		"a.go": "package p\ntype T struct{ x, y int; U }\nfunc (t T) A() { b() }\nfunc a() {\n}\n",
		"b.go": "package p\ntype U struct{}\nfunc b() { a() }\n",
		"c.go": "package p\nfunc c() { a() }\n",
	} {
		f := parse(t, set, filepath.Join(dir, name), text)
		syntax = append(syntax, f)
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	of, err := (&types.Config{}).Check(module+"/p", set, syntax, info)
	if err != nil {
		t.Fatal(err)
	}
	m, err := measurePackage(set, of, info, syntax)
	if err != nil {
		t.Fatal(err)
	}
	at := func(file, position string) string { return filepath.Join(dir, file) + ":" + position }
	want := measured{
		path: "p", lines: 10, files: 3, knots: 1,
		methods: map[string]int{"T": 1, "U": 0},
		fields:  map[string]int{"T": 3, "U": 0},
		lengths: map[string]int{at("a.go", "3:1 A"): 1, at("a.go", "4:1 a"): 2, at("b.go", "3:1 b"): 1, at("c.go", "2:1 c"): 1},
	}
	if diff := cmp.Diff(want, m, cmp.AllowUnexported(measured{})); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
}

// parse writes and parses one file.
func parse(t *testing.T, set *token.FileSet, name, text string) *ast.File {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(set, name, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
