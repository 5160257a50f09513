package source

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMoveColumns(t *testing.T) {
	// AAAA is [0,0,0,0]; CAAC is [1,0,0,1]; CACX is [1,0,1,-11].
	for _, c := range []struct {
		in   string
		head int
		want string
	}{
		{"AAAA", 0, "CAAC"},
		{"AAAA,EAAE;AACA", 0, "CAAC,EAAE;CACA"},
		{";;A", 0, ";;C"},
		{"AAAA,WAAW,CAAC", 11, "CAAC,WAAA,CAAC"}, // columns 0, 11, 12 become 1, 1, 2
		{"AAAY,CACX;AADY", 11, "CAAE,CACA;CADC"}, // 12 on line 1, 1 on line 2, 13 on line 1 become 2, 2, 3
	} {
		if got, err := moveColumns(c.in, c.head); err != nil || got != c.want {
			t.Errorf("moveColumns(%q, %d) = %q, %v, want %q", c.in, c.head, got, err, c.want)
		}
	}
	if _, err := moveColumns("!", 0); err == nil {
		t.Error("a map that is none is taken")
	}
}

// FuzzIntake holds that no text breaks the intake: it gives a program or says
// in words what is wrong, at a place that exists.
func FuzzIntake(f *testing.F) {
	for _, s := range []string{
		"", "return 1", "{a: 1}", "const x: number = 1", "```js\nreturn 1\n```", "async (codemode) => 1", "}); (async()=>{", "\ufeff#!/bin/sh\n",
		"import x from 'y'", "for await (const x of y) {}", "export default function () {}", "\u2028let é = `\n`;\r\nx(", "/*", "//", "`", "'", "<", "a<b>(c)", "class A { static { await 1 } }",
		"return /\\p{L}/u", "//# sourceMappingURL=data:application/json;base64,e30=",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 2000 || strings.Count(source, "(")+strings.Count(source, "[")+strings.Count(source, "{")+strings.Count(source, "`")+strings.Count(source, "=>") > 30 {
			return // what nests deep ends the process by design
		}
		script, fail := Read(source)
		if fail == nil {
			_, fail = script.Compile()
		}
		if fail == nil {
			return
		}
		if fail.Message == "" || !utf8.ValidString(fail.Message) || !utf8.ValidString(fail.Frame) {
			t.Errorf("a failure without words: %+v", fail)
		}
		if lines := strings.Count(source, "\n") + strings.Count(source, "\r") + strings.Count(source, "\u2028") + strings.Count(source, "\u2029") + 1; fail.Position.Line > lines {
			t.Errorf("line %d of %d", fail.Position.Line, lines)
		}
	})
}

// BenchmarkStripPerKB is what types cost: ns/op divided by the script's size.
func BenchmarkStripPerKB(b *testing.B) {
	script := strings.Repeat("{ const a: Map<string, number[]> = new Map(); for (const [k, v] of a) console.log(k as string, v!.length); }\n", 100)
	for b.Loop() {
		if _, fail := Read(script); fail != nil {
			b.Fatal(fail.Message)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(float64(len(script))/1024), "ns/KB")
}

func BenchmarkIntake(b *testing.B) {
	plain := strings.Repeat("const a = await codemode.github__list_issues({ owner: 'a', state: 'open' });\nif (a.length > 3) { console.log(a) }\n", 12)
	plain = "{" + strings.ReplaceAll(plain, "const a", "var a") + "}\nreturn a;"
	for _, c := range []struct{ name, text string }{
		{"JavaScript", plain},
		{"TypeScript", "const t: number = 1;\n" + plain},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				if _, fail := Read(c.text); fail != nil {
					b.Fatal(fail.Message)
				}
			}
		})
	}
}
