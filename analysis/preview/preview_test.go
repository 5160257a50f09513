package preview_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"golang.org/x/tools/txtar"

	"codemode-bridge/analysis"
	"codemode-bridge/analysis/preview"
)

var update = flag.Bool("update", false, "rewrite the .want parts of testdata/*.txtar")

// parse parses a script as the worker does: inside an async function whose
// first line is one of its own.
func parse(script string) (*ast.Program, func(file.Idx) analysis.Position, error) {
	source := "(async () => {\n" + script + "\n})()"
	program, err := parser.ParseFile(nil, "script.js", source, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, nil, err
	}
	lines := strings.Split(source, "\n")
	return program, func(idx file.Idx) analysis.Position {
		p := program.File.Position(int(idx) - program.File.Base())
		before := lines[p.Line-1][:p.Column-1] // goja counts bytes
		return analysis.Position{Line: p.Line - 1, Column: utf8.RuneCountInString(before) + 1}
	}, nil
}

func report(t testing.TB, script string) analysis.Report {
	t.Helper()
	program, at, err := parse(script)
	if err != nil {
		t.Fatalf("parsing the script: %v\n%s", err, script)
	}
	return preview.Script(program, at)
}

// listing writes a report as the golden files hold it.
func listing(r analysis.Report) string {
	var b strings.Builder
	for _, c := range r.Calls {
		name := c.Name
		if name == "" {
			name = "?"
		}
		fmt.Fprintf(&b, "%d:%d %s", c.Position.Line, c.Position.Column, name)
		if c.Args != "" {
			b.WriteString(" " + c.Args)
		}
		if c.Loop {
			b.WriteString(" loop")
		}
		if c.Branch {
			b.WriteString(" branch")
		}
		b.WriteByte('\n')
	}
	if r.Unknown > 0 {
		fmt.Fprintf(&b, "unknown: %d\n", r.Unknown)
	}
	if r.Truncated {
		b.WriteString("truncated\n")
	}
	return b.String()
}

// TestGolden reads testdata/*.txtar: pairs of NAME.js, a script, and
// NAME.want, its listing.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var rewritten []txtar.File
		for i, f := range archive.Files {
			name, ok := strings.CutSuffix(f.Name, ".js")
			if !ok {
				continue
			}
			got := listing(report(t, string(f.Data)))
			rewritten = append(rewritten, f, txtar.File{Name: name + ".want", Data: []byte(got)})
			if *update {
				continue
			}
			t.Run(name, func(t *testing.T) {
				if i+1 == len(archive.Files) || archive.Files[i+1].Name != name+".want" {
					t.Fatalf("%s: %s.js is not followed by %s.want", path, name, name)
				}
				if want := string(archive.Files[i+1].Data); got != want {
					t.Errorf("script:\n%s\ngot:\n%s\nwant:\n%s", f.Data, got, want)
				}
			})
		}
		if *update {
			archive.Files = rewritten
			if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
