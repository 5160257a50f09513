package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"codemode-bridge/sandbox/wire"
)

// startTimeout is how long a new worker may take until it says Ready.
const startTimeout = 15 * time.Second

// A process is a worker as its parent sees it.
type process struct {
	conn *wire.Conn
	heap int64             // its heap limit, in bytes
	pid  int               // for logs
	cage map[string]string // what confines it from outside, step by step

	// kill ends the process at once. It may be called at any time, by
	// anyone, also more than once.
	kill func()
	// wait returns when the process has ended and its pipes are closed.
	wait func() ending
	// cpu returns the processor time it has used, if the system reports it.
	cpu func() (time.Duration, bool)
	// memory returns how much memory it uses, in bytes, if the system reports it.
	memory func() (int64, bool)
	// overran is the pool's budget of memory if it was killed to keep that, else 0.
	overran atomic.Int64

	exited chan struct{} // closed when wait has returned
	ending ending        // set before exited is closed

	// Owned by whoever holds the process: a run, or the pool under its lock.
	ready    wire.Ready
	revision string // of the names it was last sent
	named    bool   // whether it was sent any
	runs     uint64 // the number of its last run
	sampled  sample // of its processor time, while it is idle
	evicted  bool   // it was killed to make room

	// Guarded by Pool.mu.
	used       int64 // bytes of memory, when last measured
	rests      bool  // nobody runs a script in it: it is ready, or kept by a session
	measured   bool  // it was measured since it rests
	unmeasured bool  // the system does not tell
}

// gone reports whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// An ending says how a process ended.
type ending struct {
	code   int         // exit code, -1 if a signal ended it
	status string      // "exit status 2", "signal: killed"
	stderr string      // the beginning and the end of what it wrote there
	memory func() bool // whether the system has meanwhile killed processes because memory ran out; nil: no
}

// launcher returns a function that starts the worker that the options name,
// for a heap of so many bytes.
func (o Options) launcher() (func(heap int64) (*process, error), error) {
	if o.Serve != nil {
		return func(heap int64) (*process, error) { return serveHere(o.Serve, heap), nil }, nil
	}
	if o.Command != nil {
		return func(heap int64) (*process, error) { return launch(o.Command, heap) }, nil
	}
	if o.Worker == "" {
		return nil, errors.New("no worker program given")
	}
	path, err := exec.LookPath(o.Worker)
	if err != nil {
		return nil, fmt.Errorf("finding the worker program, which should stand beside this one: %w", err)
	}
	return func(heap int64) (*process, error) {
		return launch(func() *exec.Cmd { return exec.Command(path) }, heap)
	}, nil
}

// memoryMax returns the system's memory limit for a worker with such a heap limit: the
// garbage collector needs as much again, and the rest is for tables, stacks, and freed
// memory that is not yet returned.
func memoryMax(heap int64) int64 { return 2*heap + 128<<20 }

// launch starts a process in the tightest cage that the system allows.
func launch(command func() *exec.Cmd, heap int64) (*process, error) {
	c := newCage(heap)
	for {
		p, again, err := launchIn(c, command())
		if err == nil {
			p.heap = heap
			return p, nil
		}
		if !again {
			c.close()
			return nil, fmt.Errorf("starting worker: %w", err)
		}
	}
}

// launchIn starts a process in a cage, with nothing but three pipes. If it does
// not start, again reports that the cage was made wider, so that another try may
// succeed.
func launchIn(c *cage, cmd *exec.Cmd) (p *process, again bool, err error) {
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	if cmd.Dir == "" {
		cmd.Dir = emptyDir()
	}
	c.confine(cmd)
	stderr := new(excerpt)
	cmd.Stderr = stderr
	// A child of the worker, if it could start one, might keep stderr open.
	cmd.WaitDelay = time.Second

	// Plain pipes instead of cmd.StdoutPipe: Wait would close that one under
	// the reader, and lose the last frames of a worker that ends itself.
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, false, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		childIn.Close()
		in.Close()
		return nil, false, err
	}
	cmd.Stdin, cmd.Stdout = childIn, childOut
	err = cmd.Start()
	childIn.Close()
	childOut.Close()
	again = c.started(cmd, err)
	if err != nil {
		in.Close()
		out.Close()
		return nil, again, err
	}
	return &process{
		conn:   wire.New(out, in),
		pid:    cmd.Process.Pid,
		exited: make(chan struct{}),
		cage:   c.steps,
		kill:   func() { cmd.Process.Kill() },
		cpu:    func() (time.Duration, bool) { return processorTime(cmd.Process.Pid) },
		memory: func() (int64, bool) { return residentMemory(cmd.Process.Pid) },

		unmeasured: !measuresMemory,
		wait: func() ending {
			cmd.Wait()
			in.Close()
			out.Close()
			e := ending{code: -1, status: "unknown", stderr: stderr.String(), memory: c.killedForMemory}
			c.close()
			if s := cmd.ProcessState; s != nil {
				e.code, e.status = s.ExitCode(), s.String()
			}
			return e
		},
	}, false, nil
}

// handshake greets a new process and waits until it is ready. On an error
// the process was killed.
func (p *process) handshake(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		&WorkerError{"was not ready within " + duration(startTimeout)})
	defer cancel()
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()

	err := p.conn.Send(wire.KindHello, wire.Hello{Version: wire.Version, Heap: p.heap})
	if err == nil {
		p.ready, err = readReady(p.conn)
	}
	if err == nil && stop() {
		if len(p.cage) > 0 && p.ready.Hardening == nil {
			p.ready.Hardening = make(map[string]string)
		}
		maps.Copy(p.ready.Hardening, p.cage)
		return nil
	}
	p.kill()
	<-p.exited
	switch bad := (*wire.FrameError)(nil); {
	case ctx.Err() != nil:
		return fmt.Errorf("starting worker: %w", context.Cause(ctx))
	case errors.As(err, &bad):
		return fmt.Errorf("starting worker: %w", &WorkerError{bad.Error()})
	}
	return fmt.Errorf("starting worker: %w", p.death())
}

func readReady(conn *wire.Conn) (wire.Ready, error) {
	conn.SetMaxBody(0)
	f, err := conn.Read()
	if err != nil {
		return wire.Ready{}, err
	}
	if f.Kind != wire.KindReady {
		return wire.Ready{}, &wire.FrameError{Kind: f.Kind, Reason: "not the expected ready"}
	}
	ready, err := wire.Decode[wire.Ready](f)
	if err != nil {
		return wire.Ready{}, err
	}
	if ready.Version != wire.Version {
		return wire.Ready{}, &wire.FrameError{Kind: f.Kind, Reason: fmt.Sprintf(
			"protocol version %d instead of %d: worker and parent are of different builds", ready.Version, wire.Version)}
	}
	return ready, nil
}

// death returns the error of a run whose worker ended by itself: a *LimitError if a
// limit was the cause. What the worker wrote on stderr is read only to find the cause:
// it is a Go crash report at best, and never shown.
func (p *process) death() error {
	e := p.ending
	has := func(texts ...string) bool {
		for _, t := range texts {
			if strings.Contains(e.stderr, t) {
				return true
			}
		}
		return false
	}
	if budget := p.overran.Load(); budget != 0 {
		return &LimitError{Limit: wire.LimitTotalMemory, Value: size(budget)}
	}
	memory := &LimitError{Limit: wire.LimitMemory, Value: size(p.heap)}
	switch e.code {
	case wire.ExitMemory:
		return memory
	case wire.ExitDeadline:
		return &LimitError{Limit: wire.LimitCPU}
	case wire.ExitWall:
		return &LimitError{Limit: wire.LimitWall}
	case wire.ExitStack:
		return &LimitError{Limit: wire.LimitRecursion}
	case wire.ExitProtocol:
		return &WorkerError{"worker and parent are of different builds"}
	}
	switch {
	case has("goroutine stack exceeds", "stack overflow"):
		return &LimitError{Limit: wire.LimitRecursion}
	case has("memory limit exceeded"), // the monitor wrote it, and a crash came before its exit
		has("out of memory", "cannot allocate memory", "cannot map pages", "cannot remap pages", "failed to create new OS thread",
			"failed to reserve", "memory reservation exceeds", "VirtualAlloc", "failed to commit pages"),
		// Under a data limit the runtime may find no room even for its own
		// structures, and access an address that is not mapped.
		has("SIGSEGV", "SIGBUS", "SIGABRT"), fault(e.status):
		return memory
	case e.status == killed && e.memory != nil && e.memory():
		return memory // the control group's limit, or the end of the machine's own
	case e.status == killed:
		return &WorkerError{"ended: it closed its pipe, or somebody outside killed it"}
	case has("SIGSYS"), strings.Contains(e.status, "bad system call"):
		return &WorkerError{"ended: it tried something that is forbidden to it"}
	case has("panic:", "fatal error:"):
		return &WorkerError{"ended: it crashed (" + e.status + ")"}
	}
	return &WorkerError{"ended (" + e.status + ")"}
}

// killed is the status of a process that SIGKILL has ended.
const killed = "signal: killed"

// fault reports whether a process ended as if it had accessed unmapped memory.
func fault(status string) bool {
	for _, s := range []string{"segmentation fault", "bus error", "aborted", "0xc0000005"} { // the last on Windows
		if strings.Contains(status, s) {
			return true
		}
	}
	return false
}

// An excerpt keeps the beginning and the end of what is written to it. A Go crash
// report names its cause at the beginning.
type excerpt struct {
	head, tail []byte
	cut        bool
}

const excerptHead, excerptTail = 8 << 10, 4 << 10

func (x *excerpt) Write(b []byte) (int, error) {
	n := len(b)
	if room := excerptHead - len(x.head); room > 0 {
		k := min(room, len(b))
		x.head = append(x.head, b[:k]...)
		b = b[k:]
	}
	x.tail = append(x.tail, b[max(0, len(b)-excerptTail):]...)
	if over := len(x.tail) - excerptTail; over > 0 {
		x.tail = append(x.tail[:0], x.tail[over:]...)
		x.cut = true
	}
	return n, nil
}

func (x *excerpt) String() string {
	if x.cut {
		return string(x.head) + "\n[...]\n" + string(x.tail)
	}
	return string(x.head) + string(x.tail)
}

var _ io.Writer = (*excerpt)(nil)

// A sample is a process's processor time at a moment.
type sample struct {
	at  time.Time
	cpu time.Duration
}

// idleSampleEvery is how often the processor time of idle workers is sampled.
const idleSampleEvery = 5 * time.Second

// busy reports whether a process without a task has used more than a tenth of a
// processor since it was last sampled, which happens at most every idleSampleEvery.
func (p *process) busy(now time.Time) bool {
	last := p.sampled
	if now.Sub(last.at) < idleSampleEvery {
		return false
	}
	cpu, _ := p.cpu()
	p.sampled = sample{now, cpu}
	return !last.at.IsZero() && cpu-last.cpu > now.Sub(last.at)/10
}
