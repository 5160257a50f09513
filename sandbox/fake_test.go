package sandbox

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codemode-bridge/sandbox/racing"
	"codemode-bridge/sandbox/wire"
)

// TestMain is also the worker: the tests start this binary again, with
// "worker" for the real one or "fake" for one that does what a test asks.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "worker":
			workerMain()
		case "fake":
			f := &fake{conn: wire.New(os.Stdin, os.Stdout), raw: os.Stdout, exit: os.Exit, hello: os.Args[2]}
			f.serve()
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

// again returns a command that starts this binary with arguments.
func again(args ...string) func() *exec.Cmd {
	return func() *exec.Cmd { return exec.Command(racing.Program(), args...) }
}

// A fake speaks the worker's end of the wire, badly if asked to. The first
// word of a script's source says what it does.
type fake struct {
	conn  *wire.Conn
	raw   io.Writer
	exit  func(code int)
	hello string // how it greets: "ready", or in some wrong way
	run   wire.Run
	made  int
	taken int
	names []string // of the Names frames it got, "revision:count"
	words []string // of the source
	input []byte

	// In memory: the processor time it has used.
	burns atomic.Int64 // since when (Unix time in ns) it uses a processor
	burnt atomic.Int64 // before that, in ns
}

// burn uses a processor for a time, in memory.
func (f *fake) burn(d time.Duration) {
	f.burns.Store(time.Now().UnixNano())
	time.Sleep(d)
	f.burnt.Add(time.Now().UnixNano() - f.burns.Swap(0))
}

// cpu returns the processor time it has used, in memory.
func (f *fake) cpu() time.Duration {
	d := time.Duration(f.burnt.Load())
	if since := f.burns.Load(); since != 0 {
		d += time.Since(time.Unix(0, since))
	}
	return d
}

func (f *fake) serve() {
	if !f.greet() {
		return
	}
	for {
		frame, err := f.conn.Read()
		if err != nil {
			return
		}
		switch frame.Kind {
		case wire.KindNames:
			n, _ := wire.Decode[wire.Names](frame)
			f.names = append(f.names, fmt.Sprintf("%s:%d", n.Revision, len(strings.Split(string(frame.Body), "\x00"))))
		case wire.KindRun:
			run, err := wire.Decode[wire.Run](frame)
			if err != nil {
				f.exit(wire.ExitProtocol)
				return
			}
			f.run, f.made, f.taken = run, 0, 0
			f.input = frame.Body[:run.InputSize]
			f.words = strings.Fields(string(frame.Body[run.InputSize:]))
			act, ok := acts[f.words[0]]
			if !ok {
				panic("no such act: " + f.words[0])
			}
			act(f)
		}
	}
}

// identity tells processes apart: in a namespace of its own every worker is
// process 1.
var identity = rand.Text()

// spin uses a processor for ever.
func spin() {
	for n := 1; n != 0; n |= 1 {
	}
}

func (f *fake) greet() bool {
	frame, err := f.conn.Read()
	if err != nil || frame.Kind != wire.KindHello {
		return false
	}
	switch f.hello {
	case "ready":
		f.send(wire.KindReady, wire.Ready{Version: wire.Version, Hardening: map[string]string{"fake": "on"}})
	case "version":
		f.send(wire.KindReady, wire.Ready{Version: wire.Version + 1})
	case "garbage":
		f.raw.Write([]byte("hello, world\nhello, world\n"))
	case "wrong":
		f.send(wire.KindIdle, wire.Idle{})
	case "silent":
	case "exit":
		f.exit(3)
		return false
	case "memory":
		f.exit(wire.ExitMemory)
		return false
	}
	return true
}

func (f *fake) send(kind wire.Kind, header any, body ...[]byte) { f.conn.Send(kind, header, body...) }

// word returns the source's n-th word as a number.
func (f *fake) word(n int) int {
	if n >= len(f.words) {
		return 0
	}
	v, _ := strconv.Atoi(f.words[n])
	return v
}

func (f *fake) call(op wire.Op, name, args string) {
	f.made++
	f.send(wire.KindCall, wire.Call{Run: f.run.ID, Number: f.made, Op: op, Name: name}, []byte(args))
}

func (f *fake) idle() {
	f.send(wire.KindIdle, wire.Idle{Run: f.run.ID, Made: f.made, Taken: f.taken})
}

// reply waits for the next answer, saying Idle first.
func (f *fake) reply() (wire.Reply, string) {
	f.idle()
	return f.take()
}

func (f *fake) take() (wire.Reply, string) {
	frame, err := f.conn.Read()
	if err != nil {
		f.exit(0)
		runtime.Goexit() // not a process
	}
	r, _ := wire.Decode[wire.Reply](frame)
	f.taken++
	return r, string(frame.Body)
}

func (f *fake) done(value any) {
	body, _ := json.Marshal(value)
	calls := 0
	if f.words[0] != "timers" {
		calls = f.made
	}
	f.send(wire.KindDone, wire.Done{Run: f.run.ID, Calls: calls, Taken: f.taken}, body)
}

// acts are what a fake can do in a run. Well-behaved ones first.
var acts = map[string]func(*fake){
	"one":   func(f *fake) { f.done(1) },
	"input": func(f *fake) { f.done(json.RawMessage(f.input)) },
	"names": func(f *fake) { f.done(f.names) },
	"who":   func(f *fake) { f.done(identity) },
	// place: the process's number and user as it sees them, and its network
	"place": func(f *fake) {
		up := []string{}
		all, _ := net.Interfaces()
		for _, i := range all {
			if i.Flags&net.FlagUp != 0 {
				up = append(up, i.Name)
			}
		}
		f.done(map[string]any{"pid": os.Getpid(), "parent": os.Getppid(), "uid": os.Getuid(), "up": up})
	},
	"env":   func(f *fake) { f.done(os.Environ()) },
	"where": func(f *fake) { dir, _ := os.Getwd(); f.done(dir) },
	// sequence N: N calls, one after the other; the answers in order
	"sequence": func(f *fake) {
		var got []string
		for i := range f.word(1) {
			f.call(wire.OpTool, "t", fmt.Sprint(i))
			_, body := f.reply()
			got = append(got, body)
		}
		f.done(got)
	},
	// parallel N: N calls at once; the numbers of the answers in order
	"parallel": func(f *fake) {
		for i := range f.word(1) {
			f.call(wire.OpTool, "t", fmt.Sprint(i))
		}
		var got []int
		for range f.word(1) {
			r, _ := f.reply()
			got = append(got, r.Number)
		}
		f.done(got)
	},
	// timers MS MS ...: timers at once; the numbers of the answers in order
	"timers": func(f *fake) {
		for i := range f.words[1:] {
			f.call(wire.OpTimer, "", fmt.Sprintf(`{"ms":%d}`, f.word(i+1)))
		}
		var got []int
		for range f.words[1:] {
			r, _ := f.reply()
			got = append(got, r.Number)
		}
		f.done(got)
	},
	// nap MS: a timer beside a call, left when the call is answered
	"nap": func(f *fake) {
		f.call(wire.OpTimer, "", fmt.Sprintf(`{"ms":%d}`, f.word(1)))
		f.call(wire.OpTool, "t", "")
		f.reply()
		f.made-- // the timer
		f.done("woke")
	},
	// naps MS MS: a timer, a call, and another timer, one after the other
	"naps": func(f *fake) {
		f.call(wire.OpTimer, "", fmt.Sprintf(`{"ms":%d}`, f.word(1)))
		f.reply()
		f.call(wire.OpTool, "t", "")
		f.reply()
		f.call(wire.OpTimer, "", fmt.Sprintf(`{"ms":%d}`, f.word(2)))
		f.reply()
		f.made -= 2 // the timers
		f.done("woke")
	},
	// clock N: the times of N answers
	"clock": func(f *fake) {
		var got []time.Time
		for range f.word(1) {
			f.call(wire.OpTool, "t", "")
			r, _ := f.reply()
			got = append(got, r.Time)
		}
		f.done(got)
	},
	// waits: makes a call and says in the same write that it waits for it
	"waits": func(f *fake) {
		f.made++
		f.conn.Write(wire.KindCall, wire.Call{Run: f.run.ID, Number: f.made, Op: wire.OpTool, Name: "t"})
		_, body := f.reply()
		f.done(body)
	},
	// work MS: works, calls, and works again
	"work": func(f *fake) {
		f.burn(time.Duration(f.word(1)) * time.Millisecond)
		f.call(wire.OpTool, "t", "")
		f.reply()
		f.burn(time.Duration(f.word(1)) * time.Millisecond)
		f.done("worked")
	},
	// share N MS: works for MS, and has a processor for one N-th of the time
	"share": func(f *fake) {
		const turn = 10 * time.Millisecond
		for range f.word(2) / 10 {
			f.burn(turn)
			time.Sleep(time.Duration(f.word(1)-1) * turn)
		}
		f.done("worked")
	},
	// open N: makes calls and ends without their answers
	"open": func(f *fake) {
		for range f.word(1) {
			f.call(wire.OpTool, "t", "")
		}
		f.done("left")
	},
	// leave N M U: makes N calls and a timer, and ends after M answers, the last U of which came too late for the script
	"leave": func(f *fake) {
		for range f.word(1) {
			f.call(wire.OpTool, "t", "")
		}
		f.call(wire.OpTimer, "", `{"ms":1e9}`)
		for range f.word(2) {
			f.reply()
		}
		f.made-- // the timer
		f.taken -= f.word(3)
		f.done("left")
	},
	// result N: a result of N bytes
	"result": func(f *fake) { f.done(strings.Repeat("x", f.word(1)-2)) },
	"logs": func(f *fake) {
		f.send(wire.KindLog, wire.Log{Run: f.run.ID, Level: "warn", Text: "a line"})
		f.send(wire.KindDone, wire.Done{Run: f.run.ID, LogsDropped: 7, Notes: []string{"a note"},
			Err: &wire.Failure{Kind: wire.FailureError, Name: "TypeError", Message: "no",
				Cause: &wire.Failure{Kind: wire.FailureError, Name: "Error", Message: "deep"}}})
	},
	"limit": func(f *fake) {
		f.send(wire.KindDone, wire.Done{Run: f.run.ID,
			Err: &wire.Failure{Kind: wire.FailureLimit, Name: f.words[1] + map[bool]string{true: " time"}[f.words[1] == "cpu"]}})
	},

	// Limits, as a broken runtime breaks them.
	"spin": func(*fake) { spin() },
	"deaf": func(f *fake) { // until the pipe is closed
		f.burns.Store(time.Now().UnixNano())
		f.conn.Read()
	},
	"liar": func(f *fake) {
		f.call(wire.OpTool, "t", "")
		f.idle()
		spin()
	},
	"quiet-liar": func(f *fake) {
		f.call(wire.OpTool, "t", "")
		f.burns.Store(time.Now().UnixNano())
		f.idle()
		f.conn.Read()
	},
	"afterlife": func(f *fake) {
		f.burns.Store(time.Now().UnixNano())
		f.done("done, it says")
	},
	"exit": func(f *fake) { f.exit(f.word(1)) },
	"stderr": func(f *fake) {
		os.Stderr.WriteString(strings.Join(f.words[2:], " ") + "\n" + strings.Repeat("goroutine 1 [running]\n", 10_000))
		f.exit(f.word(1))
	},
	"overflow": func(*fake) {
		debug.SetMaxStack(1 << 20)
		var f func(int) int
		f = func(n int) int { return f(n+1) + f(n+2) }
		f(0)
	},
	"silence": func(f *fake) { f.conn.Read() },

	// Breaches of the protocol.
	"other-run":     func(f *fake) { f.run.ID++; f.done(1) },
	"earlier-run":   func(f *fake) { f.run.ID--; f.done(1) },
	"call-other":    func(f *fake) { f.run.ID += 5; f.call(wire.OpTool, "t", "") },
	"log-other":     func(f *fake) { f.send(wire.KindLog, wire.Log{Run: 99, Level: "log"}) },
	"preview-other": func(f *fake) { f.send(wire.KindPreview, wire.Preview{Run: 99}) },
	"preview-twice": func(f *fake) {
		f.send(wire.KindPreview, wire.Preview{Run: f.run.ID})
		f.send(wire.KindPreview, wire.Preview{Run: f.run.ID})
	},
	"preview-late": func(f *fake) {
		f.call(wire.OpTool, "t", "")
		f.send(wire.KindPreview, wire.Preview{Run: f.run.ID})
	},
	"call-skipped": func(f *fake) { f.made++; f.call(wire.OpTool, "t", "") },
	"call-reused":  func(f *fake) { f.call(wire.OpTool, "t", ""); f.made--; f.call(wire.OpTool, "t", "") },
	"call-nothing": func(f *fake) { f.call(wire.OpTool, "t", "{") },
	"call-idle":    func(f *fake) { f.call(wire.OpTool, "t", ""); f.idle(); f.call(wire.OpTool, "t", "") },
	"timer-odd":    func(f *fake) { f.call(wire.OpTimer, "", `"soon"`) },
	"op-odd":       func(f *fake) { f.rawFrame(wire.KindCall, "\x01\x63\x00\x00\x00", "") },
	"idle-ahead":   func(f *fake) { f.made = 3; f.idle() },
	"idle-taken": func(f *fake) {
		f.call(wire.OpTool, "t", "")
		f.call(wire.OpTool, "t", "")
		f.taken = 2
		f.idle()
	},
	"idle-stuck": func(f *fake) { f.idle() },
	"idle-flood": func(f *fake) {
		f.call(wire.OpTool, "t", "")
		for {
			f.idle()
		}
	},
	"call-flood": func(f *fake) {
		for {
			f.call(wire.OpTool, "t", "")
		}
	},
	"timer-flood": func(f *fake) {
		for {
			f.call(wire.OpTimer, "", `{"ms":1e300}`)
		}
	},
	"args-flood": func(f *fake) {
		for big := `"` + strings.Repeat("x", 8<<20) + `"`; ; {
			f.call(wire.OpTool, "t", big)
		}
	},
	"log-flood": func(f *fake) {
		for {
			f.send(wire.KindLog, wire.Log{Run: f.run.ID, Level: "log", Text: strings.Repeat("x", 1000)})
		}
	},
	"log-empty-flood": func(f *fake) {
		for {
			f.send(wire.KindLog, wire.Log{Run: f.run.ID, Level: "log"})
		}
	},
	"log-level":   func(f *fake) { f.rawFrame(wire.KindLog, "\x05\x00", "") },
	"ready-again": func(f *fake) { f.send(wire.KindReady, wire.Ready{Version: wire.Version}) },
	"speaks-up":   func(f *fake) { f.send(wire.KindReply, wire.Reply{Run: f.run.ID, Number: 1}) },
	"done-json":   func(f *fake) { f.rawFrame(wire.KindDone, emptyDone, "{]") },
	"done-calls":  func(f *fake) { f.call(wire.OpTool, "t", ""); f.made = 0; f.done(1) },
	"done-both": func(f *fake) {
		f.send(wire.KindDone, wire.Done{Run: f.run.ID, Err: &wire.Failure{Kind: wire.FailureError}}, []byte("1"))
	},
	"done-big": func(f *fake) {
		f.send(wire.KindDone, wire.Done{Run: f.run.ID}, []byte(`"`+strings.Repeat("x", 17<<20)+`"`))
	},
	"done-twice": func(f *fake) {
		f.conn.Write(wire.KindDone, wire.Done{Run: f.run.ID}, []byte("1"))
		f.done(1)
	},
	"long-number":  func(f *fake) { f.rawFrame(wire.KindDone, "\x80\x00\x00\x00\x00\x00\x00", "1") },
	"odd-flag":     func(f *fake) { f.rawFrame(wire.KindDone, "\x00\x00\x00\x00\x00\x07", "1") },
	"many-notes":   func(f *fake) { f.rawFrame(wire.KindDone, "\x00\x00\x00\x00\xff\x7f\x00", "1") },
	"long-note":    func(f *fake) { f.rawFrame(wire.KindDone, "\x00\x00\x00\x00\x01\xff\x7fx\x00", "1") },
	"not-utf8":     func(f *fake) { f.rawFrame(wire.KindDone, "\x00\x00\x00\x00\x01\x01\xff\x00", "1") },
	"short-header": func(f *fake) { f.rawFrame(wire.KindDone, "\x00\x00", "1") },
	"trailing":     func(f *fake) { f.rawFrame(wire.KindDone, emptyDone+"\x00", "1") },
	"unknown-kind": func(f *fake) { f.rawFrame(77, "", "") },
	"huge-length":  func(f *fake) { f.raw.Write([]byte{0xff, 0xff, 0xff, 0xff, 10}); hang() },
	"claimed-large": func(f *fake) {
		f.raw.Write([]byte{0, 0x90, 0, 0, byte(wire.KindDone), 0, 0, 0, 2, 1, 0})
		f.exit(0)
	},
	"half-frame":    func(f *fake) { f.raw.Write([]byte{0, 0, 0, 50, byte(wire.KindDone), 0, 0}); f.exit(0) },
	"half-silence":  func(f *fake) { f.raw.Write([]byte{0, 0, 0, 50, byte(wire.KindDone), 0, 0}); f.conn.Read() },
	"header-longer": func(f *fake) { f.raw.Write([]byte{0, 0, 0, 7, byte(wire.KindDone), 0, 0, 0, 9, 1, 0}); hang() },
	"closed-out":    func(*fake) { os.Stdout.Close(); hang() },
	"text":          func(f *fake) { io.WriteString(f.raw, "panic: this is not the protocol\n"); hang() },
}

// hang does nothing for ever. (With select{}, the runtime would see that
// nothing can happen any more, and end the process.)
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

// emptyDone is what follows the run's number in the header of a Done that
// says nothing: no calls, no time, no logs dropped, no notes, no error.
const emptyDone = "\x00\x00\x00\x00\x00\x00"

// rawFrame sends a frame as it is; its header is the run's number and rest.
func (f *fake) rawFrame(kind wire.Kind, rest, body string) {
	header := string(binary.AppendUvarint(nil, f.run.ID)) + rest
	n := len(header) + len(body) + 5
	b := []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), byte(kind)}
	n = len(header)
	b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	f.raw.Write(append(append(b, header...), body...))
}

// inMemory launches fakes as goroutines, so that their time can be a test's.
func inMemory(heap int64) (*process, error) {
	toR, toW := io.Pipe()
	fromR, fromW := io.Pipe()
	gone := make(chan ending, 1)
	var once sync.Once
	end := func(e ending) {
		once.Do(func() {
			gone <- e
			toR.CloseWithError(io.ErrClosedPipe)
			fromW.Close()
			toW.CloseWithError(io.EOF)
			fromR.CloseWithError(errors.New("killed"))
		})
	}
	f := &fake{conn: wire.New(toR, fromW), raw: fromW, hello: "ready"}
	f.exit = func(code int) { end(ending{code: code, status: fmt.Sprint("exit status ", code)}) }
	go func() {
		f.serve()
		f.exit(0)
	}()
	return &process{
		conn:   wire.New(fromR, toW),
		heap:   heap,
		exited: make(chan struct{}),
		kill:   func() { end(ending{code: -1, status: "signal: killed"}) },
		cpu:    func() (time.Duration, bool) { return f.cpu(), true },
		memory: func() (int64, bool) { return 10 << 20, true },
		wait:   func() ending { e := <-gone; return e },
	}, nil
}
