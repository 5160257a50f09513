package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dop251/goja"
)

// What a run costs in the worker, pipes of
// memory included, and what crossing the border costs.

func BenchmarkRunTrivial(b *testing.B) { benchmarkRun(b, "return 1") }
func BenchmarkRunFeatures(b *testing.B) {
	benchmarkRun(b, "console.log(1); setTimeout; new Map(); return new URL('https://a.b').href")
}
func BenchmarkRunTypes(b *testing.B) { benchmarkRun(b, "const x: number = 1; return x") }
func BenchmarkRunCall(b *testing.B)  { benchmarkRun(b, "return await codemode.time__now({})") }

func BenchmarkRunCalls100(b *testing.B) {
	benchmarkRun(b, "for (let i = 0; i < 100; i++) await codemode.time__now({ i })")
}

func benchmarkRun(b *testing.B, script string) {
	p := start(b)
	p.sendNames()
	for b.Loop() {
		p.run(scriptedRun{script: script})
	}
}

// megabyte is an answer of a megabyte: a list of records.
func megabyte() string {
	var list []map[string]any
	for i := range 5500 {
		list = append(list, map[string]any{"number": i, "title": fmt.Sprintf("issue %d: something is wrong", i), "open": i%2 == 0,
			"labels": []string{"bug", "help wanted"}, "user": map[string]any{"login": "octocat", "id": 583231}, "score": 1.5, "body": strings.Repeat("x", 20)})
	}
	text, _ := json.Marshal(list)
	return string(text)
}

// BenchmarkReply1MB and its like are a call whose answer is JSON of that size,
// from the parent's frame to the script's value.
func BenchmarkReply1MB(b *testing.B)  { benchmarkReply(b, 1) }
func BenchmarkReply10MB(b *testing.B) { benchmarkReply(b, 10) }

func benchmarkReply(b *testing.B, megabytes int) {
	one := strings.TrimSuffix(strings.TrimPrefix(megabyte(), "["), "]")
	body := []byte("[" + one + strings.Repeat(","+one, megabytes-1) + "]")
	b.SetBytes(int64(len(body)))
	p := start(b)
	p.sendNames()
	for b.Loop() {
		got := p.run(scriptedRun{script: "return (await codemode.github__list_issues({})).length", replies: []scriptedReply{{number: 1, body: body}}})
		if !strings.HasSuffix(got, fmt.Sprintf("result %d\n", 5500*megabytes)) {
			b.Fatal(got)
		}
	}
}

// BenchmarkStripPerKB is what types cost: ns/op divided by the script's size.
func BenchmarkStripPerKB(b *testing.B) {
	script := strings.Repeat("{ const a: Map<string, number[]> = new Map(); for (const [k, v] of a) console.log(k as string, v!.length); }\n", 100)
	for b.Loop() {
		if _, fail := intake(script); fail != nil {
			b.Fatal(fail.Message)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(float64(len(script))/1024), "ns/KB")
}

func BenchmarkDecodeMegabyte(b *testing.B) {
	text := megabyte()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r := &realm{vm: goja.New()}
		if _, err := r.decode(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEngineParseMegabyte(b *testing.B) {
	text := megabyte()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		vm := goja.New()
		vm.Set("text", text)
		if _, err := vm.RunString("JSON.parse(text)"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeMegabyte(b *testing.B) {
	text := megabyte()
	b.SetBytes(int64(len(text)))
	r := &realm{vm: goja.New()}
	v, err := r.decode(text)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		e := encoder{r: r, max: 64 << 20}
		if out, err := e.encode(v); err != nil || len(out) < 1<<19 {
			b.Fatal(err)
		}
	}
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
				if _, fail := intake(c.text); fail != nil {
					b.Fatal(fail.Message)
				}
			}
		})
	}
}
