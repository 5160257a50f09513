package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"codemode-bridge/sandbox/racing"
)

// testdata/hostile holds scripts that attack the sandbox, by kind of attack.
// The first line of each says how it must end:
//
//	// expect: result {"a":1}
//	// expect: error TypeError: the beginning of its message
//	// expect: limit memory
//	// expect: limit memory || limit recursion
//
// What depends on which limit of several comes first has alternatives. In a
// script {{1000 x "("}} stands for a thousand parentheses.

var update = flag.Bool("update", false, "write into the first line of each hostile script how it ended")

// hostileLimits are small, so that attacks end soon.
var hostileLimits = Limits{CPU: time.Minute, Waiting: 200 * time.Millisecond, Heap: 64 << 20}

// cpu returns the attack's limit of CPU time: short if that is how it ends,
// and if not, so long that a busy machine does not bring it there.
func (a attack) cpu() time.Duration {
	switch {
	case a.expect == "limit "+LimitCPU:
		return 50 * time.Millisecond
	case strings.Contains(a.expect, "limit "+LimitCPU):
		return 250 * time.Millisecond
	}
	return hostileLimits.CPU
}

// heap returns the attack's limit of memory. What fills memory fills half as
// much in half the time; what nests deep is over soonest when the stack does
// not keep the collector busy.
func (a attack) heap() int64 {
	switch a.kind() {
	case "memory", "loops":
		return hostileLimits.Heap / 2
	case "parser":
		return hostileLimits.Heap * 2
	}
	return hostileLimits.Heap
}

// kind is the folder that the attack is in.
func (a attack) kind() string { return filepath.Base(filepath.Dir(a.path)) }

// An attack is one of these scripts.
type attack struct {
	path   string
	expect string
	source string
}

var repetition = regexp.MustCompile(`\{\{(\d+) x ("(?:[^"\\]|\\.)*")\}\}`)

func attacks(t *testing.T) (list []attack) {
	files, err := filepath.Glob("testdata/hostile/*/*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(b), "\n")
		expect, ok := strings.CutPrefix(first, "// expect: ")
		if !ok {
			t.Fatalf("%s: the first line says nothing of how it ends", path)
		}
		source := repetition.ReplaceAllStringFunc(string(b), func(s string) string {
			m := repetition.FindStringSubmatch(s)
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			var text string
			if err := json.Unmarshal([]byte(m[2]), &text); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			return strings.Repeat(text, n)
		})
		list = append(list, attack{path, expect, source})
	}
	return list
}

// A victim is a host that knows a few tools. It answers a call of echo__say by
// its arguments, one of echo__wait never, and refuses echo__denied.
type victim struct{ recorder }

func (h *victim) Call(ctx context.Context, c Call, settle func(Reply)) {
	fields, _ := json.Marshal(map[string]string{"reason": "denied", "toolName": c.Name})
	switch {
	case c.Op == OpRaw && c.Name == "echo__say", c.Op == OpTool && c.Name == "echo__say":
		settle(Reply{Value: c.Args})
	case c.Op == OpTool && c.Name == "echo__wait":
		<-ctx.Done()
	case c.Op == OpTool && c.Name == "echo__denied":
		settle(Reply{Err: &ReplyError{Name: "ToolCallDeniedError", Message: "no", Fields: fields}})
	case c.Op == OpRead || c.Op == OpEmit:
		settle(Reply{Err: &ReplyError{Name: "ToolError", Message: "there is no such handle"}})
	default:
		settle(Reply{Err: &ReplyError{Name: "UnknownToolError", Message: fmt.Sprintf("there is no tool %q", c.Name)}})
	}
}

// outcome says in a line how a run ended.
func outcome(r Result, err error) string {
	var script *ScriptError
	var limit *LimitError
	line := ""
	switch {
	case err == nil && r.Value == nil:
		line = "result undefined"
	case err == nil && len(r.Value) > 300:
		line = fmt.Sprintf("result of %d bytes", len(r.Value))
	case err == nil:
		line = "result " + string(r.Value)
	case errors.As(err, &limit):
		line = "limit " + limit.Limit
	case errors.As(err, &script):
		line = "error " + script.Name + ": " + script.Message
	default:
		line = "broken " + err.Error()
	}
	// In ASCII, so that it is one line and hides nothing.
	line = strconv.QuoteToASCII(line[:min(len(line), 300)])
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(line[1 : len(line)-1])
}

// expects reports whether an attack may end like this. On a busy machine its wall
// time may run out first.
func (a attack) expects(got string) bool {
	if got == "limit "+LimitWall {
		got = "limit " + LimitCPU
	}
	for want := range strings.SplitSeq(a.expect, " || ") {
		if got == want || strings.HasPrefix(want, "error ") && strings.HasPrefix(got, want) {
			return true
		}
	}
	return false
}

// TestHostile runs every attack against real workers. Each ends as it should,
// and costs nobody else anything: a run of another session that begins during
// an attack ends before it, and afterwards nothing of it is left.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("most of these run into a limit")
	}
	if racing.On {
		t.Skip("the race detector itself needs more memory than a worker gets here")
	}
	list := attacks(t)
	if len(list) < 200 {
		t.Fatalf("%d attacks, want at least 200", len(list))
	}
	descriptors, children, heap := open(t), kids(t), heapInUse()
	pools := map[int64]*Pool{}
	for _, heap := range []int64{hostileLimits.Heap / 2, hostileLimits.Heap, hostileLimits.Heap * 2} {
		limits := hostileLimits
		limits.Heap = heap
		pools[heap] = workers(t, Options{Limits: limits, MaxWorkers: 16})
	}
	// Sessions are used again, as a client's is: what one attack leaves in its
	// worker meets the next.
	type sessions struct{ attacker, innocent *Session }
	unused := map[*Pool]chan sessions{}
	for _, pool := range pools {
		unused[pool] = make(chan sessions, len(list))
	}
	t.Run("attack", func(t *testing.T) {
		for _, a := range list {
			t.Run(strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(a.path), "testdata/hostile/"), ".js"), func(t *testing.T) {
				t.Parallel()
				pool := pools[a.heap()]
				pair := sessions{pool.Session(), pool.Session()}
				select {
				case pair = <-unused[pool]:
				default:
				}
				a.run(t, pair.attacker, pair.innocent)
				unused[pool] <- pair
			})
		}
	})
	for _, pool := range pools {
		pool.Close()
	}
	if n := open(t); n > descriptors {
		t.Errorf("%d descriptors, before %d", n, descriptors)
	}
	if n := kids(t); n > children {
		t.Errorf("%d children, before %d", n, children)
	}
	if n := heapInUse(); n > heap+16<<20 {
		t.Errorf("%d MB of heap, before %d MB", n>>20, heap>>20)
	}
}

// run attacks in session s, while innocent goes on.
func (a attack) run(t *testing.T, s, innocent *Session) {
	gives(t, innocent, "return 1", nil, "1")
	if a.expect == "limit "+LimitCPU {
		a.besides(t, s, innocent)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	got, over := a.begin(ctx, t, s, a.cpu())
	gives(t, innocent, "return await codemode.echo__say({a: 2})", nil, `{"a":2}`)
	<-over
	if *update && !a.expects(*got) {
		_, rest, _ := strings.Cut(string(must(os.ReadFile(a.path))), "\n")
		if err := os.WriteFile(a.path, []byte("// expect: "+*got+"\n"+rest), 0o644); err != nil {
			t.Error(err)
		}
	} else if !a.expects(*got) {
		t.Errorf("got  %s\nwant %s", *got, a.expect)
	}
	gives(t, s, "return 2", nil, "2")
}

// besides begins an attack that does not end by itself, and ends it after a
// run of innocent's, which it must not hold up.
func (a attack) besides(t *testing.T, s, innocent *Session) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got, over := a.begin(ctx, t, s, hostileLimits.CPU)
	gives(t, innocent, "return await codemode.echo__say({a: 3})", nil, `{"a":3}`)
	if ended(over) {
		t.Errorf("the attack was over before a run that began during it: %s", *got)
	}
	cancel()
	<-over
}

// begin begins the attack in session s with a limit of CPU time, and returns
// when it has the session's worker. How it ended can be read when over is closed.
func (a attack) begin(ctx context.Context, t *testing.T, s *Session, limit time.Duration) (got *string, over chan struct{}) {
	gives(t, s, "return 1", nil, "1") // the session has a worker now
	script := Script{Source: a.source, Names: tools, Limits: Limits{CPU: limit}}
	got, over = new(string), make(chan struct{})
	go func() {
		defer close(over)
		*got = outcome(s.Run(ctx, script, new(victim)))
	}()
	for s.holds() && !ended(over) {
		runtime.Gosched()
	}
	return got, over
}

func ended(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// holds reports whether the session has a worker that waits for a run.
func (s *Session) holds() bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.idle != nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
