package worker

import (
	"testing"

	"github.com/dop251/goja"
)

// What a script computes costs what the engine takes for it and nothing of ours: the pairs of
// benchmarks below are to stay within 1.1 of each other (docs/engine.md).

var floors = []struct{ name, code string }{
	{"Loop", "let s = 0; for (let i = 0; i < 1e6; i++) s += i % 7; return s"},
	{"Objects", "const m = {}; for (let i = 0; i < 1e5; i++) m['k' + i % 1000] = { i, t: 'x' + i }; return Object.keys(m).length"},
	{"Sort", "const a = Array.from({ length: 20000 }, (_, i) => i * 7919 % 20011); a.sort((x, y) => x - y); return a[0]"},
	{"Text", "const parts = []; for (let i = 0; i < 50000; i++) parts.push('line ' + i); return parts.join('\\n').split('\\n').filter(l => l.endsWith('7')).length"},
}

// BenchmarkRunFloor runs each in a worker.
func BenchmarkRunFloor(b *testing.B) {
	for _, f := range floors {
		b.Run(f.name, func(b *testing.B) { benchmarkRun(b, f.code) })
	}
}

// BenchmarkRunFloorBare runs the same in goja alone.
func BenchmarkRunFloorBare(b *testing.B) {
	for _, f := range floors {
		b.Run(f.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := goja.New().RunString("(async () => {" + f.code + "})()"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
