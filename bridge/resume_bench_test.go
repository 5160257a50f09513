package bridge

import (
	"fmt"
	"testing"
	"time"

	"codemode-bridge/bridge/replay"
)

// BenchmarkReplay measures a recorded call that is answered again from its
// journal, in the worker and out; the script's start is part of it.
func BenchmarkReplay(b *testing.B) {
	const calls = 1000
	f := newFleet()
	one := f.bridge(b, "one", queued(), func(o *Options) { o.KeepJournals = time.Hour })
	id, err := one.Start(b.Context(), "", fmt.Sprintf(`for (let i = 0; i < %d; i += 10) await Promise.all(Array.from({length: 10}, (_, j) => codemode.b__echo({n: i + j})))`, calls), nil, "ci")
	if err != nil {
		b.Fatal(err)
	}
	waitUntil(b, func() bool { st, _ := one.Run(b.Context(), id); return st.Over() })
	steps := 0
	for b.Loop() {
		if _, err := one.Replay(b.Context(), id, func(replay.Step) { steps++ }); err != nil {
			b.Fatal(err)
		}
	}
	if steps != b.N*calls {
		b.Fatalf("%d steps of %d replays", steps, b.N)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/call")
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkResume measures how long it takes until a run that was suspended
// waits again where it was, in another worker.
func BenchmarkResume(b *testing.B) { benchmarkResume(b, `await codemode.b__echo({n: 1})`) }

// BenchmarkResumeLong does for a run that has 900 answers.
func BenchmarkResumeLong(b *testing.B) {
	benchmarkResume(b, `for (let i = 0; i < 900; i += 100) await Promise.all(Array.from({length: 100}, (_, j) => codemode.b__echo({n: i + j})))`)
}

func benchmarkResume(b *testing.B, before string) {
	f := newFleet()
	one := f.bridge(b, "one", queued())
	id := f.startPaused(b, one, before+`; return await codemode.a__echo({n: 2})`, 1)
	for b.Loop() {
		r, ok := one.roster.lookup(id)
		if !ok {
			b.Fatal("the run is gone")
		}
		for !r.suspend() {
			time.Sleep(10 * time.Microsecond)
		}
		<-r.done
		if err := one.ResumeInBackground(b.Context(), id, "the benchmark"); err != nil {
			b.Fatal(err)
		}
	}
}
