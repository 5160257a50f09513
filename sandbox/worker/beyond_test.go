package worker

import (
	"os"
	"strings"
	"testing"

	"codemode-bridge/sandbox/source"
)

// TestBeyond holds docs/reference/script.md to what the errors say, and the
// errors to happening at all.
func TestBeyond(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/script.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string) // what stands in the second column, by the first
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | "); len(cells) == 2 {
			for name := range strings.SplitSeq(cells[0], ", ") {
				rows[strings.Trim(strings.TrimSpace(name), "`")] = strings.TrimSpace(cells[1])
			}
			rows[strings.TrimSpace(cells[0])] = strings.TrimSpace(cells[1])
		}
	}
	p := start(t)
	for name, hint := range source.Absent {
		if rows[name] != hint {
			t.Errorf("the reference says of %s %q, the error %q", name, rows[name], hint)
		}
		if name == "import" {
			continue // a keyword
		}
		if got := p.run(scriptedRun{script: "return " + name + ";"}); !strings.Contains(got, "hint "+hint+"\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
	scripts := map[string]string{
		"import()":          `return import("fs")`,
		"deep recursion":    "function f() { f() }\nf()",
		"JSX":               "return <b>1</b>",
		"namespace":         "namespace A { export const x = 1 }",
		"{a: [b = 1] = []}": "const { a: [b = 1] = [] } = {}",
		"block":             "if (true) { function inner() {} }\ninner()",
	}
	for what, b := range source.Beyond {
		if rows[b.Message] != b.Hint {
			t.Errorf("the reference says of %s %q, the error %q", b.Message, rows[b.Message], b.Hint)
		}
		if script, ok := scripts[what]; ok {
			if got := p.run(scriptedRun{script: script}); !strings.Contains(got, "Error: "+b.Message) || !strings.Contains(got, "hint "+b.Hint+"\n") {
				t.Errorf("%s: %s", what, got)
			}
		} else if what != "s += x" { // which takes time: testdata/cases/errors.txtar
			t.Errorf("no script for %s", what)
		}
	}
	for script, name := range map[string]string{
		`new Intl.DisplayNames("en")`:               "Intl.DisplayNames",
		`new Intl.DurationFormat("en")`:             "Intl.DurationFormat",
		`new Intl.Locale("en")`:                     "Intl.Locale",
		`new Intl.NumberFormat().formatRange(1, 2)`: "formatRange",
		`eval("1")`:         "eval",
		`new Function("1")`: "new Function",
	} {
		if got := p.run(scriptedRun{script: script}); !strings.Contains(got, name+" does not exist here: "+rows[name]) {
			t.Errorf("%s: %s, the reference says %q", script, got, rows[name])
		}
	}
}
