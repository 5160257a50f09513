package preview_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"codemode-bridge/analysis"
	"codemode-bridge/analysis/preview"
)

func nowhere(file.Idx) analysis.Position { return analysis.Position{} }

func TestNoProgram(t *testing.T) {
	program, _, err := parse("this is (not a script")
	if err == nil {
		t.Fatal("the script parses")
	}
	if got := listing(preview.Script(program, nowhere)); got != "" {
		t.Errorf("a script that does not parse gives %s", got)
	}
}

func TestOddTreeIsTruncated(t *testing.T) {
	var none *ast.Identifier
	program := &ast.Program{Body: []ast.Statement{&ast.ExpressionStatement{Expression: &ast.CallExpression{Callee: none}}}}
	if got := preview.Script(program, nowhere); !got.Truncated || len(got.Calls) != 0 {
		t.Errorf("got %+v, want an empty, truncated report", got)
	}
}

func TestPanicOfPositions(t *testing.T) {
	program, _, err := parse("codemode.a__b()")
	if err != nil {
		t.Fatal(err)
	}
	got := preview.Script(program, func(file.Idx) analysis.Position { panic("no such place") })
	if !got.Truncated || len(got.Calls) != 0 {
		t.Errorf("got %+v, want an empty, truncated report", got)
	}
}

func TestManyCalls(t *testing.T) {
	script := strings.Repeat("codemode.a__b();\n", preview.MaxCalls)
	got := report(t, script)
	if len(got.Calls) != preview.MaxCalls || got.Truncated {
		t.Errorf("got %d calls, truncated %v; want all of them", len(got.Calls), got.Truncated)
	}
	got = report(t, script+"codemode[x]();")
	if len(got.Calls) != preview.MaxCalls || !got.Truncated || got.Unknown != 0 {
		t.Errorf("got %d calls, %d unknown, truncated %v; want the first %d only", len(got.Calls), got.Unknown, got.Truncated, preview.MaxCalls)
	}
}

func TestLongNamesAndArguments(t *testing.T) {
	long := strings.Repeat("x", preview.MaxArgs)
	got := report(t, fmt.Sprintf("codemode.a__b({x: %q}); codemode[%q]();", long, long))
	if want := fmt.Sprintf("1:1 a__b\n1:%d ? {}\nunknown: 1\n", len(long)+25); listing(got) != want {
		t.Errorf("got %s, want %s", listing(got), want)
	}
}

// A report has the arguments of its first sites, as many as fit together.
func TestManyArguments(t *testing.T) {
	long := strings.Repeat("x", preview.MaxArgs-10)
	got := report(t, strings.Repeat(fmt.Sprintf("codemode.a__b({x: %q});\n", long), 10)+"codemode.a__b({x: 1});")
	all, known := 0, 0
	for _, c := range got.Calls {
		if all += len(c.Args); c.Args != "" {
			known++
		}
	}
	if len(got.Calls) != 11 || known != preview.MaxLiterals/preview.MaxArgs+1 || all > preview.MaxLiterals || got.Truncated {
		t.Errorf("%d of %d calls have arguments, %d bytes in all; truncated %v", known, len(got.Calls), all, got.Truncated)
	}
}

// TestDeepTrees parses what the parser survives: depths that would exhaust a
// walker without bounds, or take it exponential time.
func TestDeepTrees(t *testing.T) {
	const n = 20_000
	repeat := strings.Repeat
	scripts := map[string]string{
		"sum":          "codemode.a__b(); x = 1" + repeat("+1", n),
		"names":        `codemode.a__b(); codemode["a"` + repeat(`+"a"`, n) + `]()`,
		"calls":        "codemode.a__b(); f" + repeat("()", n),
		"chain":        "codemode.a__b(); f" + repeat(".then(g)", n),
		"nesting":      "codemode.a__b(); " + repeat("[", n) + repeat("]", n),
		"blocks":       "codemode.a__b(); " + repeat("{", n) + repeat("}", n),
		"unary":        "codemode.a__b(); " + repeat("!", n) + "x",
		"conditionals": "codemode.a__b(); f = " + repeat("a?b:", n) + "c",
		"arguments":    "codemode.a__b(); codemode.c__d(" + repeat("{a:", n) + "1" + repeat("}", n) + ")",
		"pattern":      "codemode.a__b(); const " + repeat("[", n) + "x" + repeat("]", n) + " = codemode",
		"aliases": func() string {
			var b strings.Builder
			b.WriteString("codemode.a__b(); const v0 = codemode;")
			for i := range n {
				fmt.Fprintf(&b, "const v%d = v%d;", i+1, i)
			}
			fmt.Fprintf(&b, "v%d.c__d();", n)
			return b.String()
		}(),
		"doubling": func() string {
			var b strings.Builder
			b.WriteString(`codemode.a__b(); const s0 = x ? "a" : "b";`)
			for i := range 60 {
				fmt.Fprintf(&b, "const s%d = s%d + s%d;", i+1, i, i)
			}
			b.WriteString("codemode[s60]();")
			return b.String()
		}(),
		"functions": func() string {
			var b strings.Builder
			b.WriteString("codemode.a__b();")
			for i := range 60 {
				fmt.Fprintf(&b, "function f%d(x) { f%d(x || codemode); f%d(x); x.c%d__d(); }", i, i+1, i+1, i)
			}
			return b.String()
		}(),
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			program, at, err := parse(script)
			if err != nil {
				t.Fatal(err)
			}
			// A worker has 64 MB of stack. This ends the test binary if the
			// walk needs half of it.
			defer debug.SetMaxStack(debug.SetMaxStack(32 << 20))
			got := preview.Script(program, at)
			if len(got.Calls) == 0 || got.Calls[0].Name != "a__b" {
				t.Errorf("the first call is missing: %s", listing(got))
			}
		})
	}
}

// TestSaysSoWhenTooDeep checks that a report says when something lies too deep to
// be read.
func TestSaysSoWhenTooDeep(t *testing.T) {
	const n = 20_000
	got := report(t, "codemode.a__b();"+strings.Repeat("[", n)+"codemode.c__d()"+strings.Repeat("]", n))
	if len(got.Calls) != 1 || !got.Truncated {
		t.Errorf("got %s, want the first call and truncated", listing(got))
	}
}

// TestRandomScripts puts random fragments together and checks what holds for
// every report.
func TestRandomScripts(t *testing.T) {
	fragments := []string{
		"codemode", ".a__b", ".call", ".bind", ".raw", "[x]", `["c__d"]`, "(", ")", "{", "}", "[", "]", ";", ",", "\n",
		"const c = ", "let {x} = ", "x", "c", " = ", "=>", "async ", "await ", "for (const x of ", "if (", "...", "?.",
		"function f(x) ", "f", "return ", "`a${", "}`", `"a"`, "+", "??", ":", "?", ".map(", "class A ", "1", "null",
	}
	rapid.Check(t, func(t *rapid.T) {
		script := strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 1, 40).Draw(t, "script"), "")
		program, at, err := parse(script)
		if err != nil {
			return
		}
		check(t, preview.Script(program, at))
	})
}

type errorer interface{ Errorf(string, ...any) }

func check(t errorer, r analysis.Report) {
	unknown := 0
	for i, c := range r.Calls {
		if c.Name == "" {
			unknown++
		}
		if len(c.Args) > preview.MaxArgs {
			t.Errorf("call %d shows %d bytes of arguments", i, len(c.Args))
		}
		if c.Position.Line < 1 || c.Position.Column < 1 {
			t.Errorf("call %d has no position: %+v", i, c)
		}
	}
	if unknown != r.Unknown {
		t.Errorf("unknown is %d, but %d calls have no name", r.Unknown, unknown)
	}
	if r.Truncated {
		t.Errorf("a small script gives a truncated report")
	}
}

func FuzzScript(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.txtar")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(data).Files {
			if strings.HasSuffix(file.Name, ".js") {
				f.Add(string(file.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 500 {
			return // the parser itself takes exponential time on some texts
		}
		program, at, err := parse(script)
		if err != nil {
			return
		}
		check(t, preview.Script(program, at))
	})
}

func BenchmarkScript(b *testing.B) {
	const block = `
const issues = json(await codemode.github__list_issues({owner: "acme", repo: "shop", state: "open"}));
for (const issue of issues.filter(i => !i.labels.includes("done"))) {
  const text = issue.body.split("\n").map(line => line.trim()).join(" ");
  if (text.length > 100) await codemode["github__add_label"]({number: issue.number, label: "long"});
  else results.push({n: issue.number, t: issue.title, text});
}
`
	for _, size := range []int{1, 10, 100} {
		script := "const results = [];\n"
		for i := 0; len(script) < size<<10; i++ {
			script += "{" + block + "}\n"
		}
		program, at, err := parse(script)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%dKB", size), func(b *testing.B) {
			b.SetBytes(int64(len(script)))
			b.ReportAllocs()
			for b.Loop() {
				preview.Script(program, at)
			}
		})
	}
}
