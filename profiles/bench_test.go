package profiles

import (
	"fmt"
	"strings"
	"testing"
)

// benchSection has n rules for fifty servers, every other one with an
// expression if cel is set. A call of one server meets n/50 of them, plus
// those for every server.
func benchSection(n int, cel bool) string {
	var rules []string
	for i := range n {
		tools := fmt.Sprintf(`["server%d__*_%d*", "server%d__delete_*"]`, i%50, i, i%50)
		if i%20 == 0 {
			tools = `["*__write_*"]`
		}
		when := ""
		if cel && i%2 == 0 {
			when = fmt.Sprintf(`"when": "clean(args.path).startsWith('/etc/%d/') || args.size > %d",`, i, 1000000+i)
		}
		rules = append(rules, fmt.Sprintf(`{"tools": %s, %s "action": "ask", "risk": "high"}`, tools, when))
	}
	return `{"default": "risk", "denylist": ["*__never_*"], "asklist": ["server7__*"], "rules": [` + strings.Join(rules, ",") + `]}`
}

// everyRule has n rules which all look at the same call.
func everyRule(n int) string {
	var rules []string
	for i := range n {
		rules = append(rules, fmt.Sprintf(`{"tools": ["server0__*"], "when": "args.size > %d", "action": "ask"}`, 1000000+i))
	}
	return `{"rules": [` + strings.Join(rules, ",") + `]}`
}

func BenchmarkDecide(b *testing.B) {
	for _, bench := range []struct{ name, section string }{
		{"10rules/globs", benchSection(10, false)},
		{"200rules/globs", benchSection(200, false)},
		{"10rules/cel", benchSection(10, true)},
		{"200rules/cel", benchSection(200, true)},
		{"200rules/cel/all", everyRule(200)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s, problems := Parse(spec(b, `{"profiles": {"p": `+bench.section+`}}`),
				Options{OwnFiles: []string{"/home/u/.config/codemode/config.json", "/home/u/.local/state/codemode", "/home/u/.cache/codemode/key"}})
			if problems != nil {
				b.Fatal(problems)
			}
			p, _ := s.Profile("p")
			c := call(b, "server0__write_file", `{"path": "/srv/data/../data/report.txt", "size": 4096, "content": "`+strings.Repeat("some text ", 40)+`"}`)
			c.Description = strings.Repeat("Stores a file at the given place and tells its size. ", 8)
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(c)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	s := spec(b, `{"profiles": {"p": `+benchSection(200, true)+`}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := Parse(s); problems != nil {
			b.Fatal(problems)
		}
	}
}
