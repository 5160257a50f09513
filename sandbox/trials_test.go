package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/sandbox/racing"
	"codemode-bridge/sandbox/wire"
)

// testStart is when the runs begin that must repeat.
var testStart = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Eight sessions fill their memory at once. Each gets an error, and a ninth goes
// on undisturbed.
func TestEightMemoryBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("fills memory")
	}
	if racing.On {
		t.Skip("the race detector itself needs more memory than a worker gets here")
	}
	pool := workers(t, Options{Limits: Limits{CPU: time.Minute, Heap: 32 << 20}})
	innocent := pool.Session()
	gives(t, innocent, "return 1", nil, "1")
	bombs := []string{
		"const a = []; for (;;) a.push(new Array(1000).fill(a.length))",
		"const a = []; for (;;) a.push('x'.repeat(1e5) + a.length)",
		"const m = new Map(); for (let i = 0; ; i++) m.set(i, {})",
		"const all = []; for (;;) all.push(new Uint8Array(2 ** 20))",
		"'x'.repeat(2 ** 33)",
		"let s = 'x'; for (;;) { s = `${s}${s}`; s.charCodeAt(0); }",
		"return JSON.parse('[' + '[],'.repeat(2 ** 24) + '[]]').length",
		"return new Array(2 ** 26).join('0123456789').length",
	}
	var all sync.WaitGroup
	for _, source := range bombs {
		all.Go(func() {
			s := pool.Session()
			_, err := s.Run(t.Context(), Script{Source: source}, new(victim))
			if limit := (*LimitError)(nil); !errors.As(err, &limit) || limit.Limit != LimitMemory {
				t.Errorf("%s: %v", source, err)
			}
			gives(t, s, "return 2", nil, "2")
		})
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	for n := 0; !ended(over); n++ {
		gives(t, innocent, fmt.Sprintf("return (await codemode.echo__say({n: %d})).n", n), nil, fmt.Sprint(n))
	}
	<-over
}

// More of what a hostile worker may send; see TestHostileWorker.
func init() {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	acts["args-deep"] = func(f *fake) { f.call(wire.OpTool, "t", deep(1<<20)); hang() }
	acts["result-deep"] = func(f *fake) { f.send(wire.KindDone, wire.Done{Run: f.run.ID}, []byte(deep(1<<20))) }
	// stall: a call, and then reads nothing of its answer
	acts["stall"] = func(f *fake) { f.call(wire.OpTool, "t", ""); f.idle(); hang() }
	// drip: a frame that comes byte by byte and never ends
	acts["drip"] = func(f *fake) {
		f.raw.Write([]byte{0, 0, 255, 5, byte(wire.KindLog), 0, 0, 255, 0})
		for {
			f.raw.Write([]byte{0})
			time.Sleep(time.Millisecond)
		}
	}
	// early: is done while a call is open, and goes on
	acts["early"] = func(f *fake) {
		f.call(wire.OpTool, "t", "")
		f.done("early")
		f.call(wire.OpTool, "t", "")
	}
}

func TestMoreOfHostileWorkers(t *testing.T) {
	pool := fakes(t, Options{Limits: Limits{CPU: time.Minute}})
	large := &recorder{answer: func(_ context.Context, _ Call, settle func(Reply)) {
		settle(Reply{Value: []byte(`"` + strings.Repeat("x", 8<<20) + `"`)})
	}}
	for _, row := range []struct {
		source string
		host   Host
		want   string // in the error, or in the result of a run that counts
	}{
		{"args-deep", large, "arguments that are not JSON"},
		{"result-deep", large, "a result that is not JSON"},
		{"stall", large, "script wall time limit of 400 ms exceeded"},
		{"drip", large, "script wall time limit of 400 ms exceeded"},
	} {
		t.Run(row.source, func(t *testing.T) {
			t.Parallel()
			s := pool.Session()
			script := Script{Source: row.source}
			if strings.Contains(row.want, "00 ms") {
				script.Limits.CPU = 100 * time.Millisecond
			}
			_, err := s.Run(t.Context(), script, row.host)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %s", err, row.want)
			}
			returns(t, s, "one", nil, "1")
		})
	}
	// What comes after the end of a run is the end of the worker, and never
	// reaches the next run.
	s := pool.Session()
	for range 20 {
		h := &recorder{answer: waitForEver}
		_, err := s.Run(t.Context(), Script{Source: "early"}, h)
		if died := (*WorkerError)(nil); err != nil && !errors.As(err, &died) {
			t.Fatal(err)
		}
		if len(h.calls) > 1 {
			t.Fatalf("%d calls of a run that was done after one", len(h.calls))
		}
		if r, err := play(t, s, "one", nil); err == nil && string(r.Value) != "1" || err != nil && !errors.As(err, new(*WorkerError)) {
			t.Fatalf("the next run: %s, %v", r.Value, err)
		}
	}
	returns(t, pool.Session(), "one", nil, "1")
}
