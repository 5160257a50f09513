package worker

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the worker does into the cases")

// TestCases runs testdata/cases/*.txtar. An archive holds many cases: for a
// case called x, the files x (the script), and as needed x.input, x.replies
// (see parseReplies), x.options and x.want, the frames that the worker sends.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	total := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := map[string]string{}
		var order []string
		for _, f := range archive.Files {
			if _, twice := parts[f.Name]; twice {
				t.Fatalf("%s: two files %s", file, f.Name)
			}
			parts[f.Name] = string(f.Data)
			if !strings.Contains(f.Name, ".") {
				order = append(order, f.Name)
			}
		}
		total += len(order)
		group := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(group, func(t *testing.T) {
			p := start(t)
			p.sendNames()
			for _, name := range order {
				t.Run(name, func(t *testing.T) {
					p.t = t
					s := scriptedRun{
						script:  strings.TrimSuffix(parts[name], "\n"),
						input:   strings.TrimSpace(parts[name+".input"]),
						replies: parseReplies(t, parts[name+".replies"]),
						limits:  testLimits(),
					}
					s.script = strings.NewReplacer("<BOM>", "\ufeff", "<CR>", "\r", "<FENCE>", "```").Replace(s.script)
					for _, o := range strings.Fields(parts[name+".options"]) {
						switch o {
						case "preview":
							s.names = true
						case "idle":
							s.idle = true
						case "cpu":
							s.limits.CPU = 200 * time.Millisecond // the engine of the next run may be made meanwhile
						case "anywhere":
							s.anywhere = true
						case "few":
							s.limits.Calls, s.limits.Parallel = 3, 2
						case "small":
							s.limits.Logs, s.limits.Result = 20, 40
						default:
							t.Fatalf("unknown option %s", o)
						}
					}
					got := p.run(s)
					if *update {
						parts[name+".want"] = got
						return
					}
					if want := parts[name+".want"]; got != want {
						t.Errorf("script:\n%s\ngot:\n%s\nwant:\n%s", s.script, got, want)
					}
				})
			}
			p.t = t
		})
		if *update {
			out := &txtar.Archive{Comment: archive.Comment}
			for _, name := range order {
				for _, suffix := range []string{"", ".input", ".replies", ".options", ".want"} {
					if data, ok := parts[name+suffix]; ok {
						out.Files = append(out.Files, txtar.File{Name: name + suffix, Data: []byte(data)})
					}
				}
			}
			if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if total < 120 {
		t.Errorf("%d cases, want at least 120", total)
	}
}
