package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
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

// BenchmarkReply1MB and the like are a call whose answer is JSON of that size,
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
