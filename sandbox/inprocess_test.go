package sandbox

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/sandbox/worker"
)

// A worker in this process does what one in a process of its own does, in the time
// of a bubble: half a minute of the script's timers takes no time.
func TestWorkerInProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, err := NewPool(Options{Serve: worker.Serve, Warm: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		s := pool.Session()
		gives(t, s, "let n = 0; for (let i = 0; i < 50; i++) n += (await codemode.echo__say({i})).i; return n", nil, "1225")
		gives(t, s, "const all = await Promise.all(Array.from({length: 90}, (_, i) => codemode.echo__say({i, x: 'x'.repeat(9000)}))); return all.length", nil, "90")
		began := time.Now()
		gives(t, s, "await new Promise(r => setTimeout(r, 30000)); return 'woke'", nil, `"woke"`)
		if took := time.Since(began); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("half a minute took %v", took)
		}

		ctx, cancel := context.WithCancelCause(t.Context())
		left := errors.New("left")
		time.AfterFunc(time.Minute, func() { cancel(left) })
		silent := &recorder{answer: func(ctx context.Context, _ Call, _ func(Reply)) { <-ctx.Done() }}
		if _, err := s.Run(ctx, Script{Source: "await codemode.echo__say({})", Names: tools}, silent); !errors.Is(err, left) {
			t.Errorf("a run that was cancelled: %v", err)
		}
		if st := pool.Status(); st.Killed != 1 || len(st.KilledFor) != 1 {
			t.Errorf("its worker was not ended: %+v", st)
		}
	})
}

// A limit that is exceeded while the engine is prepared is reported as a limit.
func TestLimitBeforeTheScript(t *testing.T) {
	pool, err := NewPool(Options{Serve: worker.Serve, Warm: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s := pool.Session()
	for i := range 40 {
		script := Script{Source: "async function* f() { for (;;) yield 1 } for await (const x of f());", Names: tools, Limits: Limits{CPU: time.Duration(1+i) * 100 * time.Microsecond}}
		// Where the machine has no time for it, the time on the wall is over first.
		if got := outcome(s.Run(t.Context(), script, new(victim))); got != "limit "+LimitCPU && got != "limit "+LimitWall {
			t.Fatal(got)
		}
	}
}

func BenchmarkWorkerInProcess(b *testing.B) {
	pool, err := NewPool(Options{Serve: worker.Serve, Warm: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	for b.Loop() {
		s := pool.Session()
		gives(b, s, "return (await codemode.echo__say({a: 1})).a", nil, "1")
		s.Close()
	}
}
