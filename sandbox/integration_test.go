package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/sandbox/racing"
	"codemode-bridge/sandbox/worker"

	"github.com/google/go-cmp/cmp"
)

func workerMain() { worker.Main() }

// workers returns a pool of real workers.
func workers(t testing.TB, o Options) *Pool {
	o.Command = again("worker")
	return fakes(t, o)
}

var tools = &Names{Revision: "1", Names: []string{"echo__say", "echo__wait"}, Servers: []string{"echo"}}

func eval(t testing.TB, s *Session, source string, host Host) (Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if host == nil {
		host = &recorder{}
	}
	return s.Run(ctx, Script{Source: source, Names: tools}, host)
}

func gives(t testing.TB, s *Session, source string, host Host, value string) {
	t.Helper()
	r, err := eval(t, s, source, host)
	if err != nil || string(r.Value) != value {
		t.Errorf("%.100s: got %.200s, %v; want %s", source, r.Value, err, value)
	}
}

func TestRealWorker(t *testing.T) {
	pool := workers(t, Options{})
	s := pool.Session()
	gives(t, s, "return 1 + 1", nil, "2")
	gives(t, s, "const x: number = 2; return {x, y: [null]}", nil, `{"x":2,"y":[null]}`)
	gives(t, s, "return (await codemode.echo__say({a: 1})).a", nil, "1")
	gives(t, s, "let n = 0; for (let i = 0; i < 100; i++) n += (await codemode.echo__say({i})).i; return n", nil, "4950")
	gives(t, s, "const all = await Promise.all(Array.from({length: 100}, (_, i) => codemode.echo__say({i}))); return all.reduce((n, x) => n + x.i, 0)", nil, "4950")
	gives(t, s, "const order = []; setTimeout(() => order.push('b'), 20); setTimeout(() => order.push('a'), 1); await new Promise(r => setTimeout(r, 40)); return order", nil, `["a","b"]`)
	gives(t, s, "try { await codemode.echo__say({}) } catch (e) { return [e.name, e.message, e.reason] }", &recorder{answer: func(_ context.Context, _ Call, settle func(Reply)) {
		settle(Reply{Err: &ReplyError{Name: "ToolCallDeniedError", Message: "no", Fields: json.RawMessage(`{"reason":"denied"}`)}})
	}}, `["ToolCallDeniedError","no","denied"]`)
	text := "it's \"text\""
	gives(t, s, "return await codemode.echo__say({})", &recorder{answer: func(_ context.Context, _ Call, settle func(Reply)) { settle(Reply{Text: &text}) }}, `"it's \"text\""`)

	r, err := s.Run(t.Context(), Script{Source: "console.log('hi', input); console.warn(1); return input.a", Input: json.RawMessage(`{"a":7}`)}, &recorder{})
	if err != nil || string(r.Value) != "7" {
		t.Errorf("%s %v", r.Value, err)
	}
	if diff := cmp.Diff([]Log{{"log", "hi { a: 7 }"}, {"warn", "1"}}, r.Logs); diff != "" {
		t.Errorf("logs (-want +got):\n%s", diff)
	}
	// An emit that nobody awaits is part of the answer all the same.
	r, err = eval(t, s, "emit('h1'); emit('h99'); return 1", &recorder{answer: func(_ context.Context, c Call, settle func(Reply)) {
		if strings.Contains(string(c.Args), "h99") {
			settle(Reply{Err: &ReplyError{Name: "ToolError", Message: "there is no handle h99"}})
			return
		}
		settle(Reply{})
	}})
	if err != nil || string(r.Value) != "1" {
		t.Errorf("%s %v", r.Value, err)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "call 2 emit failed and nobody awaited it: ToolError: there is no handle h99") {
		t.Errorf("notes %q", r.Notes)
	}
	h := &recorder{}
	_, err = eval(t, s, "const a = 1\nawait codemode.echo__say({})\nnull.x", h)
	var script *ScriptError
	if !errors.As(err, &script) {
		t.Fatalf("%+v", err)
	}
	if script.Name != "TypeError" || script.Position.Line != 3 || script.Frame == "" {
		t.Errorf("%+v", script)
	}
	if len(h.reports) != 1 || len(h.calls) != 1 {
		t.Fatalf("reports %+v, calls %+v", h.reports, h.calls)
	}
	if len(h.reports[0].Calls) != 1 || h.calls[0].Position.Line != 2 {
		t.Errorf("report %+v, call %+v", h.reports[0], h.calls[0])
	}
	if st := pool.Status(); st.Killed != 0 || st.Idle != 1 {
		t.Errorf("%+v", st)
	}
}

// A script that does not keep its answers may get any number of them.
func TestAnswersAreNotKept(t *testing.T) {
	if racing.On {
		t.Skip("the race detector itself needs more memory than a worker gets here")
	}
	answersAreNotKept(t, 24)
}

func answersAreNotKept(t *testing.T, calls int) {
	s := workers(t, Options{Limits: Limits{Heap: 32 << 20, CPU: time.Hour, Calls: 4 * calls}}).Session()
	text, large := strings.Repeat("a text, ", 2<<20/8), strings.Repeat("x", 400<<10)
	for name, row := range map[string]struct {
		reply Reply
		want  string
		times int
	}{
		"text":      {Reply{Text: &text}, "2097152", 1},
		"JSON text": {Reply{Text: new(`["` + text + `"]`)}, "2097156", 1},
		"JSON":      {Reply{Value: []byte(`"` + text + `"`)}, "2097152", 1},
		"an object": {Reply{Value: []byte(`{"length":1,"text":"` + text + `"}`)}, "1", 1},
		"an error":  {Reply{Err: &ReplyError{Name: "ToolError", Message: "no", Fields: json.RawMessage(`{"content":"` + large + `"}`)}}, "409600", 4},
	} {
		t.Run(name, func(t *testing.T) {
			source := "let last; for (let i = 0; i < " + fmt.Sprint(row.times*calls) + "; i++) { try { last = (await codemode.echo__say({})).length } catch (e) { last = e.content.length } } return last"
			r, err := s.Run(t.Context(), Script{Source: source, Names: tools}, &recorder{answer: func(_ context.Context, _ Call, settle func(Reply)) { settle(row.reply) }})
			if err != nil || string(r.Value) != row.want {
				t.Errorf("%d answers: %s, %v; want %s", row.times*calls, r.Value, err, row.want)
			}
		})
	}
}

// A run's own limit is enforced in the worker, and its error says so.
func TestRealWorkerBoundsResult(t *testing.T) {
	s := workers(t, Options{}).Session()
	for _, row := range []struct {
		bytes int
		want  string
	}{{100, ""}, {101, "result limit of 100 bytes exceeded"}, {20, ""}} {
		source := fmt.Sprintf("return 'x'.repeat(%d)", row.bytes-2)
		_, err := s.Run(t.Context(), Script{Source: source, Limits: Limits{Result: 100}}, &recorder{})
		if limit := (*LimitError)(nil); (err == nil) != (row.want == "") || err != nil && (!errors.As(err, &limit) || limit.Error() != row.want) {
			t.Errorf("a result of %d bytes: %v, want %q", row.bytes, err, row.want)
		}
	}
}

// What kills a worker or must be stopped costs that run only.
func TestRealWorkerDies(t *testing.T) {
	if testing.Short() {
		t.Skip("each of these runs into a limit")
	}
	if racing.On {
		t.Skip("the race detector itself needs more memory than a worker gets here")
	}
	pool := workers(t, Options{Limits: Limits{Heap: 64 << 20}})
	innocent := pool.Session()
	gives(t, innocent, "return 1", nil, "1")
	for source, want := range map[string]string{
		"for (;;);":           "CPU time limit of 100 ms|wall time limit of 400 ms",
		"for (;;) await null": "CPU time limit of 100 ms|wall time limit of 400 ms",
		"await codemode.echo__say({}); for (;;);":                   "CPU time limit of 100 ms|wall time limit of 400 ms",
		"Array.prototype.indexOf.call({length: 2**53-1})":           "CPU time limit of 100 ms|wall time limit of 400 ms",
		"'x'.repeat(2**40)":                                         "memory limit of 64 MB exceeded",
		"new ArrayBuffer(2**40)":                                    "memory limit of 64 MB exceeded",
		"const a = []; for (;;) a.push('x'.repeat(1e5) + a.length)": "memory limit of 64 MB exceeded",
		strings.Repeat("(", 100_000):                                "limit exceeded|SyntaxError|memory limit",
		"for (let i = 0; ; i++) await codemode.echo__say({i})":      "the limit of 1000 calls a run",
		"return 'x'.repeat(20 * 2**20)":                             "result limit of 16 MB exceeded",
	} {
		t.Run(fmt.Sprintf("%.40s", source), func(t *testing.T) {
			s := pool.Session()
			defer s.Close()
			gives(t, s, "return 1", nil, "1")
			script := Script{Source: source, Names: tools}
			if strings.Contains(want, "100 ms") {
				script.Limits.CPU = 100 * time.Millisecond
			}
			_, err := s.Run(t.Context(), script, &recorder{})
			ok := false
			for _, w := range strings.Split(want, "|") {
				ok = ok || err != nil && strings.Contains(err.Error(), w)
			}
			if !ok {
				t.Errorf("got %v, want %s", err, want)
			}
			gives(t, s, "return 2", nil, "2")
			gives(t, innocent, "return 3", nil, "3")
		})
	}
}

func TestRealWorkerIsKilled(t *testing.T) {
	pool := workers(t, Options{})
	s := pool.Session()
	gives(t, s, "return 1", nil, "1")
	pid := s.idle.pid
	_, err := eval(t, s, "await codemode.echo__wait({})", &recorder{answer: func(ctx context.Context, _ Call, _ func(Reply)) {
		p, err := os.FindProcess(pid)
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			t.Error(err)
		}
		<-ctx.Done()
	}})
	var died *WorkerError
	if !errors.As(err, &died) || runtime.GOOS != "windows" && died.Reason != "ended: it closed its pipe, or somebody outside killed it" {
		t.Errorf("got %v", err)
	}
	if why := pool.Status().KilledFor; why[Died] != 1 {
		t.Errorf("workers were killed for %v", why)
	}
	gives(t, s, "return 2", nil, "2")
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Run(ctx, Script{Source: "await codemode.echo__wait({})", Names: tools}, &recorder{answer: func(context.Context, Call, func(Reply)) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if why := pool.Status().KilledFor; why[Cancelled] != 1 || why[Died] != 1 {
		t.Errorf("workers were killed for %v", why)
	}
}

// A hundred sessions at once; afterwards everything is as it was before.
func TestRealWorkersLeaveNothing(t *testing.T) {
	descriptors, children := open(t), kids(t)
	pool := workers(t, Options{MaxWorkers: 8})
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			s := pool.Session()
			defer s.Close()
			source := fmt.Sprintf("const r = await codemode.echo__say({i: %d}); return r.i", i)
			if i%10 == 3 {
				ctx, cancel := context.WithCancel(t.Context())
				_, err := s.Run(ctx, Script{Source: "await codemode.echo__wait({})", Names: tools}, &recorder{answer: func(context.Context, Call, func(Reply)) { cancel() }})
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
			gives(t, s, source, nil, strconv.Itoa(i))
		})
	}
	all.Wait()
	pool.Close()
	if n := open(t); n > descriptors {
		t.Errorf("%d descriptors, before %d", n, descriptors)
	}
	if n := kids(t); n > children {
		t.Errorf("%d children, before %d", n, children)
	}
}

// open counts our descriptors where the system shows them.
func open(t *testing.T) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// kids counts our child processes, ended ones that nobody waited for
// included.
func kids(t *testing.T) (n int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		b, _ := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

// Benchmarks: the rows of what isolation costs. The first four compare with
// a call of a function in this process, 10 to 23 us.

func bench(b *testing.B, o Options, source string, host Host) {
	pool := workers(b, o)
	s := pool.Session()
	if _, err := eval(b, s, source, host); err != nil {
		b.Fatal(err)
	}
	script := Script{Source: source, Names: tools}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Run(b.Context(), script, host); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTrivial(b *testing.B) { bench(b, Options{}, "return 1", &recorder{}) }
func BenchmarkFresh(b *testing.B)   { bench(b, Options{Fresh: true}, "return 1", &recorder{}) }

// A host that keeps nothing.
type echo struct{ recorder }

func (*echo) Call(_ context.Context, c Call, settle func(Reply)) { settle(Reply{Value: c.Args}) }

func BenchmarkOneCall(b *testing.B) {
	bench(b, Options{}, "return await codemode.echo__say({})", &echo{})
}
func BenchmarkSequential100(b *testing.B) {
	bench(b, Options{}, "for (let i = 0; i < 100; i++) await codemode.echo__say({i})", &echo{})
}
func BenchmarkParallel100(b *testing.B) {
	bench(b, Options{}, "await Promise.all(Array.from({length: 100}, (_, i) => codemode.echo__say({i})))", &echo{})
}

type constant struct {
	recorder
	reply Reply
}

func (h *constant) Call(_ context.Context, _ Call, settle func(Reply)) { settle(h.reply) }

func BenchmarkReply1MB(b *testing.B) {
	rows := make([]map[string]any, 10_000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": "item number " + strconv.Itoa(i), "tags": []string{"a", "b"}, "ok": true, "score": 1.5, "note": "some longer text here"}
	}
	body, _ := json.Marshal(rows)
	b.SetBytes(int64(len(body)))
	bench(b, Options{}, "return (await codemode.echo__say({})).length", &constant{reply: Reply{Value: body}})
}

func BenchmarkThroughput(b *testing.B) {
	pool := workers(b, Options{})
	script := Script{Source: "for (let i = 0; i < 5; i++) await codemode.echo__say({i})", Names: tools}
	b.RunParallel(func(pb *testing.PB) {
		s := pool.Session()
		defer s.Close()
		for pb.Next() {
			if _, err := s.Run(b.Context(), script, &echo{}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// The error of a script that only waits says where it set its timer; a long timer
// that was cleared does no harm.
func TestWaitingOfRealWorker(t *testing.T) {
	s := workers(t, Options{Limits: Limits{Waiting: 50 * time.Millisecond}}).Session()
	gives(t, s, "const t = setTimeout(() => 1, 1e9); await codemode.echo__say({}); clearTimeout(t); return 1", nil, "1")
	_, err := eval(t, s, "console.log('waiting');\nawait new Promise(r => setTimeout(r, 1e9))", nil)
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Limit != LimitWaiting || limit.Position.Line != 2 {
		t.Errorf("got %v", err)
	}
	gives(t, s, "return 2", nil, "2")
}
