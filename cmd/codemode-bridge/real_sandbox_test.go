//go:build real && linux

package main_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox"
)

// quietCalls are the system calls that a worker may make once it is ready, as strace
// writes them.
var quietCalls = regexp.MustCompile(`^(futex|read|readv|write|writev|close|epoll_\w+|eventfd2|nanosleep|clock_\w+|gettimeofday|sched_\w+|` +
	`restart_syscall|mmap|munmap|mprotect|madvise|mincore|rt_sig\w+|sigaltstack|getpid|gettid|tgkill|clone|exit|exit_group|getrandom)$`)

// runnerEnv names the worker that TestRealRunHostile runs the hostile scripts in.
const runnerEnv = "REAL_HOSTILE_WORKER"

// TestRealRunHostile runs the hostile scripts for TestRealWorkerIsQuiet, which traces it,
// and checks nothing itself.
func TestRealRunHostile(t *testing.T) {
	worker := os.Getenv(runnerEnv)
	if worker == "" {
		t.Skip("TestRealWorkerIsQuiet starts it")
	}
	files, err := filepath.Glob("../../sandbox/testdata/hostile/*/*.js")
	if err != nil || len(files) < 200 {
		t.Fatalf("%d hostile scripts, %v", len(files), err)
	}
	pool, err := sandbox.NewPool(sandbox.Options{Worker: worker, Limits: sandbox.Limits{
		CPU: 100 * time.Millisecond, Waiting: 100 * time.Millisecond, Heap: 64 << 20,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	paths := make(chan string)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			s := pool.Session()
			for path := range paths {
				source, err := os.ReadFile(path)
				if err != nil {
					t.Error(err)
				}
				script := sandbox.Script{Source: string(source), Names: &sandbox.Names{Revision: "1", Names: []string{"echo__say"}, Servers: []string{"echo"}}}
				_, _ = s.Run(t.Context(), script, refuser{}) // TestHostile checks how they end
			}
		})
	}
	for _, path := range files {
		paths <- path
	}
	close(paths)
	all.Wait()
	r, err := pool.Session().Run(t.Context(), sandbox.Script{Source: "return 1"}, refuser{})
	if err != nil || string(r.Value) != "1" {
		t.Errorf("after all: %s, %v", r.Value, err)
	}
}

// TestRealWorkerIsQuiet traces workers while they run the hostile scripts. Once their
// filter is installed they open, connect and start nothing, and make no system call
// outside a short list.
func TestRealWorkerIsQuiet(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatalf("strace is not installed, run make test-real: %v", err)
	}
	folder := t.TempDir()
	worker, trace := filepath.Join(folder, "codemode-worker"), filepath.Join(folder, "trace")
	build := exec.Command("go", "build", "-o", worker, "../codemode-worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the worker: %v\n%s", err, out)
	}
	for attempt := 1; ; attempt++ {
		cmd := exec.CommandContext(t.Context(), strace, "-f", "--decode-pids=pidns", "-o", trace, os.Args[0], "-test.run=^TestRealRunHostile$")
		cmd.Env = append(os.Environ(), runnerEnv+"="+worker)
		out, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		// strace 6.1 gives up if a process is killed while strace is stopping it.
		if attempt == 5 || !strings.Contains(string(out), "strace: ptrace(") {
			t.Fatalf("running the hostile scripts under strace: %v\n%s", err, out)
		}
	}
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	quiet := 0
	workers := make(map[string]*tracee) // by the number of a thread
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		thread, call, _ := strings.Cut(lines.Text(), " ")
		call = strings.TrimSpace(call)
		w := workers[thread]
		name, _, ok := strings.Cut(call, "(")
		switch {
		case strings.HasPrefix(call, "execve(\""+worker+"\""):
			workers[thread] = new(tracee)
		case w == nil:
		case strings.HasPrefix(call, "+++ killed by SIGSYS"):
			t.Errorf("%s, by its own filter", call)
		case strings.HasPrefix(call, "+++"):
			delete(workers, thread) // the number may be given to another thread
		case strings.HasPrefix(call, "<... seccomp resumed>"), name == "seccomp" && strings.HasSuffix(call, " = 0"):
			quiet++
			w.quiet = true
		case newThread.MatchString(call):
			// A program's first thread is already known by its execve, which is more
			// reliable: the tracer's translation of a number may be out of date.
			if n := newThread.FindStringSubmatch(call)[1]; workers[n] == nil {
				workers[n] = w
			}
		case strings.HasSuffix(call, "<unfinished ...>"), strings.HasSuffix(call, "= ?"):
			// A call counts when it returns, and the filter refuses one at once. For a
			// process that is being killed strace shows whatever its registers hold, as a
			// call that never returns.
		case resumed.MatchString(call):
			w.judge(t, resumed.FindStringSubmatch(call)[1], call)
		case !ok || !systemCall.MatchString(name): // a signal, an end
		default:
			w.judge(t, name, call)
		}
	}
	if err := lines.Err(); err != nil || quiet < 10 {
		t.Errorf("%d workers became ready, %v", quiet, err)
	}
}

var (
	systemCall = regexp.MustCompile(`^[a-z]\w*$`)
	resumed    = regexp.MustCompile(`^<\.\.\. (\w+) resumed>.* = `)
)

// A tracee is one worker process in a trace.
type tracee struct {
	quiet bool // its filter is installed
}

// judge fails the test if a worker must not make the call.
func (w *tracee) judge(t *testing.T, name, call string) {
	// esbuild asks, by ioctl, whether stderr is a terminal, and is refused.
	if name == "connect" || name == "socket" || w.quiet && !quietCalls.MatchString(name) && name != "ioctl" {
		t.Error(call)
	}
}

// newThread finds the number of a thread that a clone has started, as the
// tracer knows it.
var newThread = regexp.MustCompile(`^(?:clone\(|<\.\.\. clone resumed>).* = (?:\d+ /\* )?(\d+)(?: in strace's PID NS \*/)?$`)

// A refuser refuses every call.
type refuser struct{}

func (refuser) Preview(analysis.Report) {}
func (refuser) Idle(int)                {}
func (refuser) Call(_ context.Context, c sandbox.Call, settle func(sandbox.Reply)) {
	settle(sandbox.Reply{Err: &sandbox.ReplyError{Name: "ToolError", Message: "no"}})
}
