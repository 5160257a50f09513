// Package worker is the child process in which a script runs: it has one engine
// per run, one event loop, and the limits.
//
// A worker serves one parent over one pair of pipes, in the frames of package
// wire. It holds no secrets and can reach nothing: all that a script can do to the
// world is send a Call frame, which the parent may or may not answer.
//
//	stdin ──▶ inbox ──▶ ┌──────────────────────────────┐
//	                    │ serve: Hello, Names, Run     │ ──▶ stdout
//	                    │   run: load, begin,          │
//	                    │        (wait, answer)*, Done │
//	                    └──────────────────────────────┘
//	         clock, watch: deadline and heap, end the process
//
// One goroutine owns the engine, reads and writes: nothing changes threads between
// a script and the pipe. The clock and the monitor only interrupt the engine or end
// the process; while a script runs without a pause, another goroutine reads, to
// notice the end of the pipe. A turn of the loop runs until the engine has no
// microtask left; then the script's requests are sent, and exactly one answer is
// taken. So answers reach the script in the order in which they arrived, and the
// same answers in the same order give the same run (to which seeded randomness, a
// clock that stands still between answers, and JSON text in both directions
// contribute).
//
// The package knows the protocol and the limits, but no JavaScript: package realm
// has the engine. worker.go greets the parent and takes its runs, inbox.go reads,
// loop.go serves one run and is the engine's host. clock.go, monitor.go and
// limits_*.go enforce the limits; seccomp_linux.go confines the process.
package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"codemode-bridge/sandbox/realm"
	"codemode-bridge/sandbox/wire"
)

// maxStack bounds Go's stack: a script that nests deep in native code, where
// the engine's own limit does not count, ends the process at this size instead
// of filling the memory of the machine.
const maxStack = 64 << 20

// scriptZone is a script's local time, by the name that Node gives it.
var scriptZone = time.FixedZone("Coordinated Universal Time", 0)

// Main runs a worker on stdin and stdout and does not return. It ends the
// process with 0 when the parent closes the pipe, and with one of wire's exit
// codes when a limit is passed that can only be kept by ending.
func Main() {
	closeInherited()
	time.Local = scriptZone // a script must not learn, or depend on, where it runs
	debug.SetMaxStack(maxStack)
	// The monitor must run while native code loops. Once the number is set, the
	// runtime no longer reads the control group's files to adjust it.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	conn := wire.New(os.Stdin, os.Stdout)
	w := newWorker(conn, os.Exit, harden)
	w.clock.cpu = processorTime
	w.inbox.lost = func(why error) {
		// Nobody is left to work for, and the script that runs would go on.
		os.Exit(verdict(why))
	}
	os.Exit(verdict(w.serve()))
}

// Serve runs a worker on any pair of pipes until in ends, for tests that have their
// workers in their own process: nothing confines it, and the limits that can only be
// enforced by ending the process do not apply.
func Serve(in io.Reader, out io.Writer) error {
	w := newWorker(wire.New(in, out), func(int) {}, func(int64) map[string]string { return nil })
	w.guest = true
	return w.serve()
}

// verdict returns the exit code of a worker that stops serving for a reason,
// nil if the pipe closed between runs, and says on stderr what it was.
func verdict(why error) int {
	if why == nil || errors.Is(why, errGone) {
		return 0
	}
	fmt.Fprintln(os.Stderr, "codemode-worker:", why)
	return wire.ExitProtocol
}

// A pipe is what the worker needs of a wire.Conn.
type pipe interface {
	Read() (wire.Frame, error)
	Buffered() int
	Write(kind wire.Kind, header any, body ...[]byte) error
	Flush() error
}

// A worker serves runs, one after the other, until the pipe closes.
type worker struct {
	conn   pipe
	exit   func(code int)                     // ends the process
	harden func(heap int64) map[string]string // confines it, step by step
	names  *realm.Names                       // of the newest Names frame
	inbox  *inbox
	spare  *run // the next one; nil: not prepared
	more   bool // it has served a run
	clock  *clock
	watch  *monitor
	guest  bool // in somebody else's process: it watches no memory and prepares no run
}

func newWorker(conn pipe, exit func(code int), harden func(heap int64) map[string]string) *worker {
	w := &worker{conn: conn, exit: exit, harden: harden, names: new(realm.Names), inbox: newInbox(conn)}
	w.clock = newClock(func() {
		w.inbox.readAhead()
		_ = w.conn.Flush() // the loop meets the error too
	}, func(limit string) {
		code := wire.ExitDeadline
		if limit == wire.LimitWall {
			code = wire.ExitWall
		}
		w.watch.end(code, "the script did not stop at its deadline")
	})
	return w
}

// serve greets the parent and serves its runs. It returns nil when the pipe
// closes, and an error when the parent does not keep to the protocol.
func (w *worker) serve() error {
	hello, err := w.readHello()
	if err != nil {
		return notGone(err)
	}
	w.watch = newMonitor(hello.Heap, w.exit, w.conn.Flush)
	if !w.guest {
		w.watch.start()
	}
	defer w.watch.close()
	defer w.clock.close()
	ready := wire.Ready{Version: wire.Version, Hardening: w.harden(hello.Heap)}
	if err := w.send(wire.KindReady, ready); err != nil {
		return err
	}
	if !w.guest {
		w.prepare()
	}
	for {
		f, err := w.inbox.next()
		if err != nil {
			return notGone(err)
		}
		switch f.Kind {
		case wire.KindNames:
			if err := w.readNames(f); err != nil {
				return err
			}
		case wire.KindRun:
			if err := w.serveRun(f); err != nil {
				return err
			}
		case wire.KindReply:
			// The answer to a call that a run did not wait for.
		default:
			return fmt.Errorf("a %s frame that no worker expects", f.Kind)
		}
	}
}

func (w *worker) readHello() (wire.Hello, error) {
	f, err := w.inbox.next()
	if err != nil {
		return wire.Hello{}, err
	}
	if f.Kind != wire.KindHello {
		return wire.Hello{}, fmt.Errorf("the first frame is a %s frame, not hello", f.Kind)
	}
	hello, err := wire.Decode[wire.Hello](f)
	if err == nil && hello.Version != wire.Version {
		err = fmt.Errorf("the parent speaks version %d, this worker %d", hello.Version, wire.Version)
	}
	return hello, err
}

// serveRun serves the run that a Run frame starts.
func (w *worker) serveRun(f wire.Frame) error {
	h, err := wire.Decode[wire.Run](f)
	if err != nil {
		return err
	}
	if h.InputSize < 0 || h.InputSize > len(f.Body) {
		return fmt.Errorf("an input of %d bytes in a body of %d", h.InputSize, len(f.Body))
	}
	return w.run(h, f.Body[:h.InputSize], string(f.Body[h.InputSize:]))
}

// readNames keeps the names of a Names frame for the runs to come.
func (w *worker) readNames(f wire.Frame) error {
	h, err := wire.Decode[wire.Names](f)
	if err != nil {
		return err
	}
	w.names = realm.ReadNames(h, f.Body)
	return nil
}

// notGone returns err, but nil for the end of the pipe: between runs, that is how a
// worker is told to end.
func notGone(err error) error {
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

func (w *worker) send(kind wire.Kind, header any, body ...[]byte) error {
	if err := w.conn.Write(kind, header, body...); err != nil {
		return err
	}
	return w.conn.Flush()
}
