package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"

	"github.com/google/go-cmp/cmp"
)

// recorder is a Host that answers each call by its arguments, unless the
// test says how.
type recorder struct {
	answer  func(ctx context.Context, c Call, settle func(Reply))
	mu      sync.Mutex
	calls   []Call
	reports []analysis.Report
	idled   chan int // if set, gets each idle; with room, since Idle must not block
}

func (h *recorder) Preview(r analysis.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reports = append(h.reports, r)
}

func (h *recorder) Call(ctx context.Context, c Call, settle func(Reply)) {
	h.mu.Lock()
	h.calls = append(h.calls, c)
	h.mu.Unlock()
	if h.answer == nil {
		settle(Reply{Value: c.Args})
		return
	}
	h.answer(ctx, c, settle)
}

func (h *recorder) Idle(open int) {
	if h.idled != nil {
		h.idled <- open
	}
}

// waitForEver answers no call.
func waitForEver(ctx context.Context, _ Call, _ func(Reply)) { <-ctx.Done() }

// fakes returns a pool of fake worker processes.
func fakes(t testing.TB, o Options) *Pool {
	t.Helper()
	if o.Command == nil {
		o.Command = again("fake", "ready")
	}
	pool, err := NewPool(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pool.Close()
		if s := pool.Status(); s.Live+s.Warm+s.Idle+s.Running+s.Queued+s.Sessions != 0 {
			t.Errorf("after Close: %+v", s)
		}
	})
	return pool
}

func play(t testing.TB, s *Session, source string, host Host) (Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if host == nil {
		host = &recorder{}
	}
	return s.Run(ctx, Script{Source: source}, host)
}

// returns fails the test unless the script returns value.
func returns(t testing.TB, s *Session, source string, host Host, value string) Result {
	t.Helper()
	r, err := play(t, s, source, host)
	if err != nil || string(r.Value) != value {
		t.Fatalf("%s: got %.200s, %v; want %s", source, r.Value, err, value)
	}
	return r
}

func TestRun(t *testing.T) {
	pool := fakes(t, Options{})
	s := pool.Session()
	defer s.Close()
	returns(t, s, "one", nil, "1")
	returns(t, s, "env", nil, "[]")
	if runtime.GOOS != "windows" {
		returns(t, s, "where", nil, `"/"`)
	}

	h := &recorder{}
	r := returns(t, s, "sequence 3", h, `["0","1","2"]`)
	if r.Calls != 3 || len(h.calls) != 3 {
		t.Errorf("%d calls in the result, %d at the host; want 3", r.Calls, len(h.calls))
	}
	for i, c := range h.calls {
		want := Call{Number: i + 1, Op: OpTool, Name: "t", Args: json.RawMessage(fmt.Sprint(i))}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Errorf("call %d (-want +got):\n%s", i+1, diff)
		}
	}

	// A host that answers only when the script can do nothing else is told of
	// each such moment.
	h = &recorder{idled: make(chan int, 16)}
	h.answer = func(_ context.Context, _ Call, settle func(Reply)) {
		if open := <-h.idled; open != 1 {
			t.Errorf("%d open calls, want 1", open)
		}
		settle(Reply{})
	}
	returns(t, s, "sequence 3", h, `["","",""]`)

	r, err := s.Run(t.Context(), Script{Source: "input", Input: json.RawMessage(`{"a":1}`)}, &recorder{})
	if err != nil || string(r.Value) != `{"a":1}` {
		t.Errorf("input: %s, %v", r.Value, err)
	}
}

func TestRunTellsOfFailure(t *testing.T) {
	pool := fakes(t, Options{})
	s := pool.Session()
	r, err := play(t, s, "logs", nil)
	var script, cause *ScriptError
	if !errors.As(err, &script) || !errors.As(script.Cause, &cause) {
		t.Fatalf("error %v", err)
	}
	if got := [2]string{script.Name, cause.Message}; got != [2]string{"TypeError", "deep"} {
		t.Errorf("the error and its cause: %q", got)
	}
	want := Result{Logs: []Log{{"warn", "a line"}}, LogsDropped: 7, Notes: []string{"a note"}}
	r.CPU = 0
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("the result (-want +got):\n%s", diff)
	}
	if n := pool.Status().Killed; n != 0 {
		t.Errorf("%d workers killed for a script that threw", n)
	}
}

func TestWorkerIsKeptBySession(t *testing.T) {
	pool := fakes(t, Options{})
	pid := func(s *Session) string {
		r, err := play(t, s, "who", nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(r.Value)
	}
	a, b := pool.Session(), pool.Session()
	first := pid(a)
	if pid(b) == first {
		t.Error("two sessions share a worker")
	}
	if pid(a) != first {
		t.Error("a session does not keep its worker")
	}
	if _, err := play(t, a, "exit 1", nil); err == nil {
		t.Error("no error from a run whose worker ended")
	}
	if pid(a) == first {
		t.Error("a worker survived its end")
	}

	fresh := fakes(t, Options{Fresh: true}).Session()
	if once, twice := pid(fresh), pid(fresh); once == twice {
		t.Error("fresh runs share a worker")
	}
}

func TestNamesAreSentOncePerRevision(t *testing.T) {
	s := fakes(t, Options{}).Session()
	one := &Names{Revision: "r1", Names: []string{"a__x", "a__y"}, Servers: []string{"a"}}
	two := &Names{Revision: "r2", Names: []string{"a__x"}}
	var last Result
	for _, n := range []*Names{one, one, two, two, one} {
		var err error
		if last, err = s.Run(t.Context(), Script{Source: "names", Names: n}, &recorder{}); err != nil {
			t.Fatal(err)
		}
	}
	if want := `["r1:2","r2:1","r1:2"]`; string(last.Value) != want {
		t.Errorf("names frames %s, want %s", last.Value, want)
	}
}

// A hostile or broken worker costs its run, with a reason, and nothing else.
func TestHostileWorker(t *testing.T) {
	type row struct {
		source string
		want   string // in the error
	}
	rows := []row{
		{"other-run", "run 3 in run 2"},
		{"earlier-run", "run 1 in run 2"},
		{"call-other", "run 7 in run 2"},
		{"log-other", "run 99"},
		{"preview-other", "run 99"},
		{"preview-twice", "second or late preview"},
		{"preview-late", "second or late preview"},
		{"call-skipped", "call number 2 after 0"},
		{"call-reused", "call number 1 after 1"},
		{"call-nothing", "arguments that are not JSON"},
		{"call-idle", "a call while idle"},
		{"timer-odd", "a timer without a time"},
		{"op-odd", "unknown operation"},
		{"idle-ahead", "an idle frame with 3 calls"},
		{"idle-taken", "an idle frame with 2 calls and 2 answers"},
		{"idle-stuck", "no call is open"},
		{"idle-flood", "too many idle frames"},
		{"call-flood", "limit of 1,000 calls per run exceeded"},
		{"timer-flood", "limit of 10,000 timers per run exceeded"},
		{"args-flood", "arguments limit of 64 MB exceeded"},
		{"log-flood", "more than 64 KB of logs"},
		{"log-empty-flood", "more than 64 KB of logs"},
		{"log-level", "unknown log level"},
		{"ready-again", "unexpected ready frame"},
		{"speaks-up", "unexpected reply frame"},
		{"done-json", "a result that is not JSON"},
		{"done-calls", "a count of 0 calls after 1"},
		{"done-both", "both a result and an error"},
		{"done-big", "17825794 bytes"},
		{"done-twice", "more after the end"},
		{"long-number", "a number that is not in its shortest form"},
		{"odd-flag", "a flag of 7"},
		{"many-notes", "16383 notes"},
		{"long-note", "notes of 16383 bytes"},
		{"not-utf8", "notes that is not UTF-8"},
		{"short-header", "a header that ends too early"},
		{"trailing", "1 bytes after the header's end"},
		{"unknown-kind", "unknown kind 77"},
		{"huge-length", "a length of 4294967295 bytes"},
		{"claimed-large", "ended (exit status 0)"},
		{"half-frame", "ended (exit status 0)"},
		{"header-longer", "a header longer than the frame"},
		{"closed-out", "ended: it closed its pipe, or somebody outside killed it"},
		{"text", "a length of"},

		{"exit 0", "ended (exit status 0)"},
		{"exit 3", "ended (exit status 3)"},
		{"exit 86", "memory limit of 256 MB exceeded"},
		{"exit 87", "script CPU time limit of 100 ms exceeded"},
		{"exit 90", "script wall time limit of 400 ms exceeded"},
		{"exit 88", "recursion limit exceeded"},
		{"exit 89", "different builds"},
		{"stderr 2 fatal error: runtime: out of memory", "memory limit of 256 MB exceeded"},
		{"stderr 2 fatal error: runtime: cannot allocate memory", "memory limit of 256 MB exceeded"},
		{"stderr 2 [signal SIGSEGV: segmentation violation code=0x1]", "memory limit of 256 MB exceeded"},
		{"stderr 2 panic: <script>", "ended: it crashed (exit status 2)"},
		{"overflow", "recursion limit exceeded"},
		{"spin", "time limit of "}, // of which time depends on how busy the machine is
		{"limit cpu", "script CPU time limit of 100 ms exceeded"},
		{"limit memory", "memory limit of 256 MB exceeded"},
		{"limit result", "result limit of 16 MB exceeded"},
		{"limit calls", "limit of 1,000 calls per run exceeded"},
		{"limit recursion", "recursion limit exceeded"},
	}
	if runtime.GOOS != "windows" {
		rows = append(rows,
			row{"segv", "memory limit of 256 MB exceeded"},
			row{"stop", "script wall time limit of 400 ms exceeded"})
	}
	if runtime.GOOS == "linux" {
		rows = append(rows, row{"liar", "time limit of "})
	}
	pool := fakes(t, Options{Limits: Limits{CPU: time.Minute}})
	innocent := pool.Session()
	returns(t, innocent, "one", nil, "1")
	for _, row := range rows {
		t.Run(row.source, func(t *testing.T) {
			t.Parallel()
			s := pool.Session()
			defer s.Close()
			// The first run is good: the hostile one has number 2.
			if _, err := s.Run(t.Context(), Script{Source: "one"}, &recorder{}); err != nil {
				t.Fatal(err)
			}
			script := Script{Source: row.source}
			if strings.Contains(row.want, "time limit") {
				script.Limits.CPU = 100 * time.Millisecond
			}
			_, err := s.Run(t.Context(), script, &recorder{answer: waitForEver})
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want %s", err, row.want)
			}
			var limit *LimitError
			var died *WorkerError
			if !errors.As(err, &limit) && !errors.As(err, &died) {
				t.Errorf("a %T", err)
			}
			if strings.Contains(err.Error(), "goroutine") || strings.Contains(err.Error(), "<script>") {
				t.Errorf("the worker's own words are shown: %v", err)
			}
			if s.idle != nil {
				t.Error("the worker is kept")
			}
			returns(t, s, "one", nil, "1")
			returns(t, innocent, "one", nil, "1")
		})
	}
}

func TestStartErrors(t *testing.T) {
	if _, err := NewPool(Options{Worker: "/nowhere/codemode-worker"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing program: %v", err)
	}
	if _, err := NewPool(Options{}); err == nil {
		t.Error("no program: no error")
	}
	for hello, want := range map[string]string{
		"version": "different builds",
		"garbage": "a length of",
		"wrong":   "not the expected ready",
		"exit":    "ended (exit status 3)",
		"memory":  "memory limit of 256 MB exceeded",
	} {
		t.Run(hello, func(t *testing.T) {
			pool := fakes(t, Options{Command: again("fake", hello), Warm: -1})
			_, err := play(t, pool.Session(), "one", nil)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	t.Run("no program", func(t *testing.T) {
		pool := fakes(t, Options{Command: func() *exec.Cmd { return exec.Command("/nowhere/worker") }, Warm: 1})
		if _, err := play(t, pool.Session(), "one", nil); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
	t.Run("silent", func(t *testing.T) {
		pool := fakes(t, Options{Command: again("fake", "silent"), Warm: -1})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := pool.Session().Run(ctx, Script{Source: "one"}, &recorder{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestSizesAreRefusedBeforeTheRun(t *testing.T) {
	s := fakes(t, Options{Warm: -1}).Session()
	for _, row := range []struct {
		script Script
		want   string
	}{
		{Script{Source: strings.Repeat(" ", 300<<10)}, "source is 300 KB; the limit is 256 KB"},
		{Script{Source: "one", Limits: Limits{Source: 2}}, "source is 3 bytes; the limit is 2 bytes"},
		{Script{Source: "one", Input: make([]byte, 1<<20+512<<10)}, "input is 1.5 MB; the limit is 1 MB"},
	} {
		_, err := s.Run(t.Context(), row.script, &recorder{})
		if err == nil || err.Error() != row.want {
			t.Errorf("got %v, want %s", err, row.want)
		}
	}
	if n := s.pool.Status().Live; n != 0 {
		t.Errorf("%d workers started", n)
	}
}

func TestCancel(t *testing.T) {
	pool := fakes(t, Options{})
	s := pool.Session()
	why := errors.New("the client has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	h := &recorder{answer: waitForEver, idled: make(chan int, 16)}
	go func() {
		if open := <-h.idled; open != 2 {
			t.Errorf("%d calls open, want 2", open)
		}
		cancel(why)
	}()
	r, err := s.Run(ctx, Script{Source: "parallel 2"}, h)
	if !errors.Is(err, why) || r.Calls != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	returns(t, s, "one", nil, "1")
}

func TestCloseEndsRuns(t *testing.T) {
	for name, closeIt := range map[string]func(*Pool, *Session){
		"session": func(_ *Pool, s *Session) { s.Close() },
		"pool":    func(p *Pool, _ *Session) { p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			pool := fakes(t, Options{})
			s := pool.Session()
			h := &recorder{answer: waitForEver, idled: make(chan int, 16)}
			go func() {
				<-h.idled
				closeIt(pool, s)
			}()
			if _, err := play(t, s, "parallel 1", h); !errors.Is(err, ErrClosed) {
				t.Errorf("the run's error is %v", err)
			}
			if _, err := play(t, s, "one", nil); !errors.Is(err, ErrClosed) {
				t.Errorf("the next run's error is %v", err)
			}
			s.Close()
			if name == "pool" {
				if _, err := play(t, pool.Session(), "one", nil); !errors.Is(err, ErrClosed) {
					t.Errorf("the next session's error is %v", err)
				}
			}
		})
	}
}

// Answers that come after the run go nowhere, least of all to the next run.
func TestLateAnswers(t *testing.T) {
	s := fakes(t, Options{}).Session()
	var mu sync.Mutex
	var late []func(Reply)
	h := &recorder{answer: func(_ context.Context, _ Call, settle func(Reply)) {
		mu.Lock()
		defer mu.Unlock()
		late = append(late, settle)
	}}
	r := returns(t, s, "open 5", h, `"left"`)
	if want := []string{"the script ended while calls 1, 2, 3, 4, 5 were not answered: await every call whose effect or answer matters"}; !slices.Equal(r.Notes, want) {
		t.Errorf("notes %q, want %q", r.Notes, want)
	}
	for _, settle := range late {
		settle(Reply{})
	}
	var answered []func(Reply)
	returns(t, s, "sequence 1", &recorder{answer: func(_ context.Context, c Call, settle func(Reply)) {
		for _, settle := range late {
			settle(Reply{Value: json.RawMessage(`"late"`)})
		}
		settle(Reply{Value: json.RawMessage(`"first"`)})
		settle(Reply{Value: json.RawMessage(`"second"`)})
		answered = append(answered, settle)
	}}, `["\"first\""]`)
}

// Notes name only calls without an answer as open, and no timers. They tell of
// refusals that came too late for the script, too.
func TestOpenNote(t *testing.T) {
	s := fakes(t, Options{}).Session()
	for _, row := range []struct {
		source string
		open   []int
		want   string
	}{
		{"leave 5 5", nil, ""},
		{"leave 5 4", []int{4}, "the script ended while call 4 was not answered: await every call whose effect or answer matters"},
		{"leave 5 3", []int{2, 3}, "the script ended while calls 2, 3 were not answered: await every call whose effect or answer matters"},
	} {
		r := returns(t, s, row.source, &recorder{answer: func(_ context.Context, c Call, settle func(Reply)) {
			if !slices.Contains(row.open, c.Number) {
				settle(Reply{Err: &ReplyError{Name: "ToolCallDeniedError", Message: "no"}})
			}
		}}, `"left"`)
		if notes := strings.Join(r.Notes, "\n"); notes != row.want {
			t.Errorf("%s: notes %q, want %q", row.source, notes, row.want)
		}
	}
	deny := &recorder{answer: func(_ context.Context, _ Call, settle func(Reply)) {
		settle(Reply{Err: &ReplyError{Name: "ToolCallDeniedError", Message: "no"}})
	}}
	unheard := returns(t, s, "leave 5 5 2", deny, `"left"`).Notes // which two is a matter of luck
	if len(unheard) != 2 || !strings.HasSuffix(unheard[0], " t failed and nobody awaited it: ToolCallDeniedError: no") {
		t.Errorf("after three of five answers: notes %q", unheard)
	}
	r := returns(t, s, "open 30", &recorder{answer: func(context.Context, Call, func(Reply)) {}}, `"left"`)
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "19, 20, and 10 more were") {
		t.Errorf("notes %q", r.Notes)
	}
}

// The script sees answers in the order in which they were settled.
func TestOrderOfAnswers(t *testing.T) {
	s := fakes(t, Options{}).Session()
	settles := make(map[int]func(Reply))
	var mu sync.Mutex
	returns(t, s, "parallel 7", &recorder{answer: func(_ context.Context, c Call, settle func(Reply)) {
		mu.Lock()
		defer mu.Unlock()
		if settles[c.Number] = settle; len(settles) == 7 {
			for _, n := range []int{4, 1, 7, 2, 6, 3, 5} {
				settles[n](Reply{})
			}
		}
	}}, `[4,1,7,2,6,3,5]`)
}

func TestReplies(t *testing.T) {
	s := fakes(t, Options{}).Session()
	text := "plain \x00 text"
	replies := []Reply{
		{Value: json.RawMessage(`{"a":1}`)},
		{Text: &text},
		{Err: &ReplyError{Name: "ToolError", Message: strings.Repeat("m", 1<<20), Fields: json.RawMessage(`{"tool":"x"}`)}},
		{Err: &ReplyError{Name: "ToolError", Message: "no", Fields: json.RawMessage(`{"tool":`)}},
		{Value: make([]byte, maxReply+1)},
		{},
	}
	bodies, _ := json.Marshal([]string{`{"a":1}`, text, "", "", "", ""})
	returns(t, s, fmt.Sprintf("sequence %d", len(replies)), &recorder{answer: func(_ context.Context, c Call, settle func(Reply)) {
		settle(replies[c.Number-1])
	}}, string(bodies))

	times := []time.Time{
		time.Date(2030, 1, 1, 0, 0, 5, 0, time.UTC),
		time.Date(2030, 1, 1, 0, 0, 3, 0, time.UTC), // back
		time.Date(2030, 1, 1, 0, 0, 7, 0, time.FixedZone("", 3600)),
	}
	r, err := s.Run(t.Context(), Script{Source: "clock 3", Start: times[1]}, &recorder{answer: func(_ context.Context, c Call, settle func(Reply)) {
		settle(Reply{Time: times[c.Number-1]})
	}})
	if want := `["2030-01-01T00:00:05Z","2030-01-01T00:00:05Z","2030-01-01T00:00:05Z"]`; err != nil || string(r.Value) != want {
		t.Errorf("times %s, %v", r.Value, err)
	}
}

func TestParallelLimit(t *testing.T) {
	pool := fakes(t, Options{Limits: Limits{Parallel: 3}})
	var mu sync.Mutex
	now, most, started := 0, 0, []int{}
	h := &recorder{answer: func(_ context.Context, c Call, settle func(Reply)) {
		mu.Lock()
		now++
		most = max(most, now)
		started = append(started, c.Number)
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		settle(Reply{})
	}}
	r, err := play(t, pool.Session(), "parallel 30", h)
	if err != nil || r.Calls != 30 || len(started) != 30 {
		t.Fatalf("%+v, %v, %d started", r, err, len(started))
	}
	if most != 3 {
		t.Errorf("%d calls at once, want 3", most)
	}
}

// Two runs of one session go on at the same time: each needs the other.
func TestRunsOfOneSessionAreParallel(t *testing.T) {
	pool := fakes(t, Options{})
	s := pool.Session()
	both := make(chan struct{})
	var once sync.WaitGroup
	once.Add(2)
	go func() { once.Wait(); close(both) }()
	var runs sync.WaitGroup
	for range 2 {
		runs.Go(func() {
			_, err := play(t, s, "sequence 1", &recorder{answer: func(ctx context.Context, _ Call, settle func(Reply)) {
				once.Done()
				select {
				case <-both:
					settle(Reply{})
				case <-ctx.Done():
				}
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	if st := pool.Status(); st.Idle != 1 || st.Running != 0 {
		t.Errorf("after both: %+v", st)
	}
}

func TestManySessions(t *testing.T) {
	pool := fakes(t, Options{MaxWorkers: 4})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			s := pool.Session()
			for range 2 {
				if _, err := play(t, s, "sequence 2", nil); err != nil {
					t.Error(err)
				}
			}
			if n := pool.Status().Live; n > 4 {
				t.Errorf("%d live workers, want at most 4", n)
			}
		})
	}
	all.Wait()
}

// Under synctest, time is the test's.

func bubble(t *testing.T, o Options, test func(t *testing.T, pool *Pool)) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(o, inMemory)
		defer pool.Close()
		test(t, pool)
	})
}

func TestClockOfScript(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, pool *Pool) {
		s := pool.Session()
		// Nine seconds of work in all, and a day of waiting.
		r, err := s.Run(t.Context(), Script{Source: "work 4500"}, &recorder{answer: func(_ context.Context, _ Call, settle func(Reply)) {
			time.Sleep(24 * time.Hour)
			settle(Reply{})
		}})
		if err != nil || r.CPU != 9*time.Second {
			t.Errorf("9 s of work: %v, %v", r.CPU, err)
		}
		// Twelve are too many, together.
		before := time.Now()
		r, err = s.Run(t.Context(), Script{Source: "work 6000"}, &recorder{})
		if err == nil || err.Error() != "script CPU time limit of 10 s exceeded" || time.Since(before) != 10*time.Second+grace {
			t.Errorf("12 s of work: %v after %v", err, time.Since(before))
		}
		if r.CPU != 10*time.Second+grace {
			t.Errorf("ran for %v", r.CPU)
		}
		// A run may have less, never more.
		for _, row := range []struct{ wish, is time.Duration }{{time.Second, time.Second}, {time.Hour, 10 * time.Second}} {
			before = time.Now()
			_, err = s.Run(t.Context(), Script{Source: "deaf", Limits: Limits{CPU: row.wish}}, &recorder{})
			if err == nil || time.Since(before) != row.is+grace {
				t.Errorf("limit of %v: %v after %v", row.wish, err, time.Since(before))
			}
		}
	})
}

// Six scripts at once on two processors take three times as long as one, and each
// has its CPU time all the same. One that has too little of a processor for too
// long is ended by the limit of wall time.
func TestScriptsOnABusyMachine(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, pool *Pool) {
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				before := time.Now()
				r, err := pool.Session().Run(t.Context(), Script{Source: "share 3 9000"}, &recorder{})
				if err != nil || r.CPU != 9*time.Second || time.Since(before) != 27*time.Second {
					t.Errorf("%v of CPU time in %v: %v", r.CPU, time.Since(before), err)
				}
			})
		}
		all.Wait()
		for _, row := range []struct {
			source, want string
			after, used  time.Duration
		}{
			{"share 3 12000", "script CPU time limit of 10 s exceeded", 3 * (10*time.Second + grace), 10*time.Second + grace},
			{"share 10 9000", "script wall time limit of 40 s exceeded: it had the processor for too little of that", 4 * (10*time.Second + grace), 4200 * time.Millisecond},
		} {
			before := time.Now()
			r, err := pool.Session().Run(t.Context(), Script{Source: row.source}, &recorder{})
			took := time.Since(before)
			if err == nil || err.Error() != row.want {
				t.Errorf("%s: %v, want %s", row.source, err, row.want)
			}
			// Its turns are of 10 ms.
			if (took-row.after).Abs() > 30*time.Millisecond || (r.CPU-row.used).Abs() > 10*time.Millisecond {
				t.Errorf("%s: %v of CPU time in %v, want %v in %v", row.source, r.CPU, took, row.used, row.after)
			}
		}
		// One that uses no processor and says nothing does not last for ever either.
		for _, source := range []string{"silence", "half-silence"} {
			before := time.Now()
			_, err := pool.Session().Run(t.Context(), Script{Source: source}, &recorder{})
			if took := time.Since(before); err == nil || !strings.Contains(err.Error(), "wall time limit of 40 s") || took != 4*(10*time.Second+grace) {
				t.Errorf("%s: %v after %v", source, err, took)
			}
		}
		time.Sleep(time.Minute) // a fake notices late that it was killed
	})
}

// Processor time that a worker uses while it claims to wait, or after it claimed to
// be done, is noticed.
func TestIdleIsChecked(t *testing.T) {
	bubble(t, Options{Warm: -1}, func(t *testing.T, pool *Pool) {
		s := pool.Session()
		before := time.Now()
		_, err := s.Run(t.Context(), Script{Source: "quiet-liar"}, &recorder{answer: waitForEver})
		took := time.Since(before)
		if err == nil || err.Error() != "script CPU time limit of 10 s exceeded" {
			t.Error(err)
		}
		if took < 10*time.Second || took > 15*time.Second {
			t.Errorf("after %v", took)
		}
		if _, err := s.Run(t.Context(), Script{Source: "afterlife"}, &recorder{}); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if st := pool.Status(); st.Live != 0 || st.Killed != 2 || !maps.Equal(st.KilledFor, map[string]uint64{wire.LimitCPU: 1, Restless: 1}) {
			t.Errorf("%+v", st)
		}
	})
}

func TestTimers(t *testing.T) {
	bubble(t, Options{Limits: Limits{Parallel: 1}}, func(t *testing.T, pool *Pool) {
		s := pool.Session()
		before := time.Now()
		r, err := s.Run(t.Context(), Script{Source: "timers 3000 1000 2000 1000 0 1000"}, &recorder{answer: waitForEver})
		if err != nil || string(r.Value) != "[5,2,4,6,3,1]" || time.Since(before) != 3*time.Second {
			t.Errorf("%s, %v after %v", r.Value, err, time.Since(before))
		}
		if r.Calls != 0 {
			t.Errorf("%d calls", r.Calls)
		}
	})
}

// Waiting for timers alone is bounded, over the whole run; waiting for
// a call, and a timer beside it, is not.
func TestWaitingIsBounded(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, pool *Pool) {
		s := pool.Session()
		slow := &recorder{answer: func(_ context.Context, _ Call, settle func(Reply)) {
			time.Sleep(time.Hour)
			settle(Reply{})
		}}
		for _, row := range []struct {
			source string
			limit  time.Duration
			took   time.Duration
			ends   bool
		}{
			{"timers 60000", 0, time.Minute, false},
			{"timers 60001", 0, time.Minute, true},
			{"timers 2147483647", 0, time.Minute, true},
			{"timers 1 2147483647", 0, time.Minute, true},
			{"timers 20000 40000 60000", 0, time.Minute, false},
			{"nap 2147483647", 0, time.Hour, false},
			{"naps 59000 1000", 0, time.Hour + time.Minute, false},
			{"naps 59000 1001", 0, time.Hour + time.Minute, true},
			{"timers 3000", 2 * time.Second, 2 * time.Second, true},
		} {
			before := time.Now()
			_, err := s.Run(t.Context(), Script{Source: row.source, Limits: Limits{Waiting: row.limit}}, slow)
			var limit *LimitError
			if took := time.Since(before); errors.As(err, &limit) != row.ends || !row.ends && err != nil || took != row.took {
				t.Errorf("%s: %v after %v", row.source, err, took)
			}
			if limit == nil {
				continue
			}
			want := "waiting limit of " + duration(or(row.limit, time.Minute)) + " exceeded: the script waited for nothing but its own timers"
			if limit.Limit != LimitWaiting || limit.Error() != want || limit.Hint() == "" {
				t.Errorf("%s: %v", row.source, limit)
			}
		}
	})
}

// A timerHost takes the timers of even hours, and settles each when the one
// after it is set.
type timerHost struct {
	recorder
	mu    sync.Mutex // guards last
	last  func(Reply)
	waits []time.Duration
	order []int
}

func (h *timerHost) Timer(c Call, wait time.Duration, settle func(Reply)) bool {
	h.waits = append(h.waits, wait)
	if wait%(2*time.Hour) != 0 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != nil {
		h.last(Reply{})
	}
	h.last = settle
	return true
}

func (h *timerHost) Answered(number int, _ time.Time) { h.order = append(h.order, number) }

func TestTimersOfHost(t *testing.T) {
	bubble(t, Options{Limits: Limits{Waiting: 10 * time.Hour}}, func(t *testing.T, pool *Pool) {
		before := time.Now()
		h := new(timerHost)
		go func() {
			time.Sleep(90 * time.Minute)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.last(Reply{})
		}()
		// Hours 2, 4, 1: the first when the second is set, the third by itself, the second last.
		r, err := pool.Session().Run(t.Context(), Script{Source: "timers 7200000 14400000 3600000"}, h)
		if err != nil || string(r.Value) != "[1,3,2]" || time.Since(before) != 90*time.Minute {
			t.Errorf("%s, %v after %v", r.Value, err, time.Since(before))
		}
		if !slices.Equal(h.order, []int{1, 3, 2}) || len(h.waits) != 3 {
			t.Errorf("order %v, waits %v", h.order, h.waits)
		}
	})
}

func TestIdleWorkersEnd(t *testing.T) {
	bubble(t, Options{Warm: 1}, func(t *testing.T, pool *Pool) {
		s := pool.Session()
		for range 2 {
			if _, err := s.Run(t.Context(), Script{Source: "one"}, &recorder{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5*time.Minute - time.Second)
		synctest.Wait()
		if st := pool.Status(); st.Idle != 1 || st.Live != 2 {
			t.Errorf("before the time: %+v", st)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if st := pool.Status(); st.Idle != 0 || st.Live != 1 || st.Warm != 1 {
			t.Errorf("after the time: %+v", st)
		}
		if _, err := s.Run(t.Context(), Script{Source: "one"}, &recorder{}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestQueue(t *testing.T) {
	bubble(t, Options{MaxWorkers: 2, Warm: -1}, func(t *testing.T, pool *Pool) {
		slow := func(d time.Duration) Host {
			return &recorder{answer: func(_ context.Context, _ Call, settle func(Reply)) {
				time.Sleep(d)
				settle(Reply{})
			}}
		}
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		start := func(name string, d time.Duration, ctx context.Context) {
			all.Go(func() {
				_, err := pool.Session().Run(ctx, Script{Source: "sequence 1"}, slow(d))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					name += " " + err.Error()
				}
				order = append(order, name)
			})
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		start("a", time.Minute, t.Context())
		start("b", 2*time.Minute, t.Context())
		start("c", 10*time.Second, t.Context())
		start("impatient", time.Second, short)
		start("d", time.Second, t.Context())
		if st := pool.Status(); st.Queued != 3 || st.Running != 2 || st.Live != 2 {
			t.Errorf("%+v", st)
		}
		all.Wait()
		want := []string{"impatient waiting for a worker: context deadline exceeded", "a", "c", "d", "b"}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

// A run that needs room takes the worker of the session that was idle
// longest.
func TestIdleWorkersMakeRoom(t *testing.T) {
	bubble(t, Options{MaxWorkers: 2, Warm: -1}, func(t *testing.T, pool *Pool) {
		var sessions []*Session
		for range 3 {
			s := pool.Session()
			sessions = append(sessions, s)
			if _, err := s.Run(t.Context(), Script{Source: "one"}, &recorder{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if st := pool.Status(); st.Live != 2 {
			t.Errorf("%+v", st)
		}
		var idle []bool
		for _, s := range sessions {
			idle = append(idle, s.idle != nil)
		}
		if want := []bool{false, true, true}; !slices.Equal(idle, want) {
			t.Errorf("which sessions have a worker: %v, want %v", idle, want)
		}
	})
}

func TestTightHeapHasItsOwnWorker(t *testing.T) {
	bubble(t, Options{Warm: 1, MaxWorkers: 1}, func(t *testing.T, pool *Pool) {
		s := pool.Session()
		for _, heap := range []int64{0, 64 << 20, 1 << 40} {
			_, err := s.Run(t.Context(), Script{Source: "exit 86", Limits: Limits{Heap: heap}}, &recorder{})
			want := "memory limit of 256 MB exceeded"
			if heap == 64<<20 {
				want = "memory limit of 64 MB exceeded"
			}
			if err == nil || err.Error() != want {
				t.Errorf("heap %d: %v", heap, err)
			}
		}
	})
}

// A worker that cannot be started is not tried again at once.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		pool := newPool(Options{}, func(int64) (*process, error) { tries++; return nil, os.ErrPermission })
		defer pool.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if tries != 4 { // at 0, 1, 3 and 7 seconds
			t.Errorf("%d tries in 10 s", tries)
		}
	})
}

func TestTighten(t *testing.T) {
	got := Limits{CPU: time.Second, Calls: 5}.Tighten(Limits{CPU: time.Minute, Calls: 3, Logs: -1, Heap: 1 << 20})
	want := DefaultLimits()
	want.CPU, want.Calls, want.Heap = time.Second, 3, 1<<20
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWords(t *testing.T) {
	for _, row := range [][2]string{
		{size(0), "0 bytes"}, {size(1), "1 byte"}, {size(1023), "1023 bytes"}, {size(1 << 10), "1 KB"}, {size(300 << 10), "300 KB"},
		{size(1536), "1.5 KB"}, {size(256 << 20), "256 MB"}, {size(3 << 30), "3 GB"},
		{count(0), "0"}, {count(999), "999"}, {count(1000), "1,000"}, {count(1234567), "1,234,567"},
		{duration(10 * time.Second), "10 s"}, {duration(250 * time.Millisecond), "250 ms"}, {duration(2 * time.Minute), "2 min"}, {duration(time.Minute), "60 s"},
		{duration(90 * time.Second), "90 s"}, {duration(1500 * time.Millisecond), "1500 ms"}, {duration(time.Microsecond), "0.001 ms"},
	} {
		if row[0] != row[1] {
			t.Errorf("got %q, want %q", row[0], row[1])
		}
	}
}

// Which error an ending means. There are many ways for a worker to end on a machine
// without memory.
func TestDeath(t *testing.T) {
	const trace = "\n\ngoroutine 1 [running]:\nruntime.throw({0x1, 0x2})\n"
	memory := "memory limit of 64 MB exceeded"
	for _, row := range []struct {
		ending
		want string
	}{
		{ending{code: wire.ExitMemory, status: "exit status 86", stderr: "codemode-worker: memory limit exceeded: heap 70 MB, limit 64 MB\n"}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "codemode-worker: memory limit exceeded: heap 70 MB, limit 64 MB\nfatal error: unexpected signal during runtime execution" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "fatal error: runtime: out of memory" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "runtime: out of memory: cannot allocate 4194304-byte block (66977792 in use)\nfatal error: out of memory" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "fatal error: out of memory (stackalloc)" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "fatal error: out of memory allocating heap arena metadata" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "fatal error: runtime: cannot allocate memory" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "runtime: mmap(0xc000, 4096) returned 0x0, 12\nfatal error: runtime: cannot map pages in arena address space" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "fatal error: runtime: cannot remap pages in address space" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "fatal error: memory reservation exceeds address space limit" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "runtime: failed to create new OS thread (have 9 already; errno=12)\nfatal error: newosproc" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "fatal error: unexpected signal during runtime execution\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "unexpected fault address 0xc000\nfatal error: fault\n[signal SIGBUS: bus error code=0x2 addr=0xc000 pc=0x1]" + trace}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "runtime: VirtualAlloc of 65536 bytes failed with errno=1455\nfatal error: runtime: failed to commit pages" + trace}, memory},
		{ending{code: -1, status: "signal: segmentation fault (core dumped)", stderr: ""}, memory},
		{ending{code: -1, status: "signal: bus error", stderr: ""}, memory},
		{ending{code: 2, status: "exit status 2", stderr: "runtime: goroutine stack exceeds 67108864-byte limit\nfatal error: stack overflow" + trace}, "recursion limit exceeded"},
		{ending{code: 2, status: "exit status 2", stderr: "fatal error: all goroutines are asleep - deadlock!" + trace}, "sandbox worker: ended: it crashed (exit status 2)"},
		{ending{code: 2, status: "exit status 2", stderr: "panic: assignment to entry in nil map" + trace}, "sandbox worker: ended: it crashed (exit status 2)"},
		{ending{code: 2, status: "exit status 2", stderr: ""}, "sandbox worker: ended (exit status 2)"},
		{ending{code: -1, status: "signal: aborted"}, memory},
		{ending{code: -1, status: "signal: killed", memory: func() bool { return true }}, memory},
		{ending{code: -1, status: "signal: killed"}, "sandbox worker: ended: it closed its pipe, or somebody outside killed it"},
		{ending{code: -1, status: "signal: bad system call", stderr: ""}, "sandbox worker: ended: it tried something that is forbidden to it"},
	} {
		p := &process{heap: 64 << 20, ending: row.ending}
		if got := p.death().Error(); got != row.want {
			t.Errorf("%s, %.80q: %q, want %q", row.status, row.stderr, got, row.want)
		}
	}
}

// A result beyond the run's own limit does not count, however a worker came to send
// it.
func TestResultIsBounded(t *testing.T) {
	s := fakes(t, Options{}).Session()
	run := func(n int) (Result, error) {
		return s.Run(t.Context(), Script{Source: fmt.Sprint("result ", n), Limits: Limits{Result: 100}}, &recorder{})
	}
	if r, err := run(100); err != nil || len(r.Value) != 100 {
		t.Errorf("as large as the limit: %d bytes, %v", len(r.Value), err)
	}
	var died *WorkerError
	if r, err := run(101); !errors.As(err, &died) || !strings.Contains(died.Reason, "a result of 101 bytes") || r.Value != nil {
		t.Errorf("larger than the limit: %d bytes, %v", len(r.Value), err)
	}
	returns(t, s, "one", nil, "1")
}

func TestExcerpt(t *testing.T) {
	var x excerpt
	for i := range 10_000 {
		fmt.Fprintf(&x, "line %d\n", i)
	}
	s := x.String()
	if !strings.HasPrefix(s, "line 0\nline 1\n") || !strings.HasSuffix(s, "line 9998\nline 9999\n") || len(s) > excerptHead+excerptTail+10 {
		t.Errorf("%d bytes: %.20q ... %q", len(s), s, s[len(s)-20:])
	}
}
