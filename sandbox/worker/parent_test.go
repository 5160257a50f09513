package worker

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"testing"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// A parent is the other end of a worker's pipes, in memory: it answers calls
// as a case says and writes down what the worker sent.
type parent struct {
	t      testing.TB
	conn   *wire.Conn
	in     *io.PipeWriter
	served chan error
	runs   uint64

	exits chan int
}

// start runs a worker in this process.
func start(t testing.TB) *parent {
	toWorker, in := io.Pipe()
	out, fromWorker := io.Pipe()
	p := &parent{t: t, conn: wire.New(out, in), in: in, served: make(chan error, 1), exits: make(chan int, 16)}
	w := newWorker(wire.New(toWorker, fromWorker),
		func(code int) { p.exits <- code; select {} },
		func(int64) map[string]string { return nil })
	w.clock.grace = time.Minute // nothing here may end the process of the tests, however busy the machine
	go func() {
		err := w.serve()
		fromWorker.CloseWithError(io.EOF)
		p.served <- err
	}()
	p.send(wire.KindHello, wire.Hello{Version: wire.Version, Heap: 1 << 30})
	if f := p.read(); f.Kind != wire.KindReady {
		t.Fatalf("got %s, want ready", f.Kind)
	}
	t.Cleanup(func() {
		in.Close()
		select {
		case err := <-p.served:
			if err != nil {
				t.Errorf("worker: %v", err)
			}
		case <-time.After(3 * time.Minute):
			t.Error("the worker did not end with its pipe")
		}
		select {
		case code := <-p.exits:
			t.Errorf("the worker would have ended itself with exit code %d", code)
		default:
		}
	})
	return p
}

func (p *parent) send(kind wire.Kind, header any, body ...[]byte) {
	p.t.Helper()
	if err := p.conn.Send(kind, header, body...); err != nil {
		p.t.Fatalf("sending %s: %v", kind, err)
	}
}

func (p *parent) read() wire.Frame {
	p.t.Helper()
	f, err := p.conn.Read()
	if err != nil {
		p.t.Fatalf("reading from the worker: %v", err)
	}
	return f
}

// testNames are the tools that the parent of the tests has.
var (
	testNames = []string{
		"chrome_devtools__click", "context7__query", "fs__read_file", "fs__write_file", "get_tool_schema", "get_tools", "github__create_issue",
		"github__list_issues", "mail__send", "my-server__do_it", "my_server__do_it", "search_tools", "time__now",
	}
	testServers = []string{"chrome_devtools", "context7", "fs", "github", "mail", "my-server", "time"}
	testStart   = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

func (p *parent) sendNames() {
	p.send(wire.KindNames, wire.Names{Revision: "r1", Servers: testServers}, []byte(strings.Join(testNames, "\x00")))
}

func testLimits() wire.Limits {
	return wire.Limits{CPU: 5 * time.Second, Calls: 1000, Parallel: 100, Logs: 64 << 10, Result: 1 << 20}
}

// A scriptedReply is one answer a case asks for.
type scriptedReply struct {
	number int
	reply  wire.Reply
	body   []byte
}

// parseReplies reads the lines of a case's answers:
//
//	1 json {"a":1}
//	2 text some text
//	3 undefined
//	4 throw ToolError {"fields":1} message
func parseReplies(t testing.TB, text string) (list []scriptedReply) {
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if line == "" {
			continue
		}
		var r scriptedReply
		number, rest, _ := strings.Cut(line, " ")
		if _, err := fmt.Sscan(number, &r.number); err != nil {
			t.Fatalf("bad reply line %q", line)
		}
		kind, rest, _ := strings.Cut(rest, " ")
		switch kind {
		case "json":
			r.body = []byte(rest)
		case "text":
			r.reply.Text = true
			s := strings.NewReplacer(`\n`, "\n").Replace(rest)
			r.body = []byte(s)
		case "undefined":
		case "throw":
			name, rest, _ := strings.Cut(rest, " ")
			e := &wire.Thrown{Name: name}
			if strings.HasPrefix(rest, "{") {
				fields, message, _ := strings.Cut(rest, "} ")
				e.Fields = json.RawMessage(fields + "}")
				rest = message
			}
			e.Message = rest
			r.reply.Err = e
		default:
			t.Fatalf("bad reply line %q", line)
		}
		list = append(list, r)
	}
	return list
}

// A scriptedRun is one run of a case.
type scriptedRun struct {
	script  string
	input   string
	replies []scriptedReply
	limits  wire.Limits
	names   bool // also write the preview
	idle    bool // also write idle frames
	seed    byte

	anywhere bool // leave out where the script was stopped
}

// run runs a script and returns what the worker sent, a line a frame.
// Calls without a scripted answer get {"tool": name, "args": args}, in the
// order of their numbers, when the worker says that it is idle; timers are
// answered in the order in which they are due.
func (p *parent) run(s scriptedRun) string {
	p.t.Helper()
	p.runs++
	if s.limits.CPU == 0 {
		s.limits = testLimits()
	}
	header := wire.Run{ID: p.runs, Revision: "r1", InputSize: len(s.input), Start: testStart, Limits: s.limits}
	header.Seed[0] = s.seed
	p.send(wire.KindRun, header, []byte(s.input), []byte(s.script))
	var out strings.Builder
	type openCall struct {
		wire.Call
		args []byte
		due  int64
	}
	open := map[int]openCall{}
	var clock int64
	answer := func(n int, r wire.Reply, body []byte) {
		delete(open, n)
		r.Run, r.Number, r.Time = p.runs, n, testStart.Add(time.Duration(clock)*time.Millisecond)
		p.send(wire.KindReply, r, body)
	}
	for {
		f := p.read()
		switch f.Kind {
		case wire.KindPreview:
			h := decode[wire.Preview](p.t, f)
			if s.names {
				text, _ := json.Marshal(h.Report)
				fmt.Fprintf(&out, "preview %s\n", text)
			}
		case wire.KindCall:
			h := decode[wire.Call](p.t, f)
			c := openCall{Call: h, args: f.Body}
			if h.Op == wire.OpTimer {
				var a struct{ MS int64 }
				json.Unmarshal(f.Body, &a)
				c.due = clock + a.MS
			}
			open[h.Number] = c
			line := fmt.Sprintf("call %d %s %s %s", h.Number, h.Op, h.Name, f.Body)
			fmt.Fprintf(&out, "%s (%d:%d)\n", strings.ReplaceAll(line, "  ", " "), h.Position.Line, h.Position.Column)
		case wire.KindLog:
			h := decode[wire.Log](p.t, f)
			fmt.Fprintf(&out, "%s: %s\n", h.Level, h.Text)
		case wire.KindIdle:
			h := decode[wire.Idle](p.t, f)
			if s.idle {
				fmt.Fprintf(&out, "idle made %d taken %d\n", h.Made, h.Taken)
			}
			if len(open) == 0 {
				p.t.Fatalf("idle with nothing open")
			}
			if len(s.replies) > 0 {
				r := s.replies[0]
				s.replies = s.replies[1:]
				clock += 10
				answer(r.number, r.reply, r.body)
				continue
			}
			var list []openCall
			for _, c := range open {
				list = append(list, c)
			}
			sort.Slice(list, func(i, j int) bool {
				a, b := list[i], list[j]
				if a.due != b.due {
					return a.due < b.due
				}
				return a.Number < b.Number
			})
			c := list[0]
			if c.Op == wire.OpTimer {
				clock = max(clock, c.due)
				answer(c.Number, wire.Reply{}, nil)
				continue
			}
			clock += 10
			body, _ := json.Marshal(map[string]any{"tool": c.Name, "args": json.RawMessage(c.args)})
			answer(c.Number, wire.Reply{}, body)
		case wire.KindDone:
			h := decode[wire.Done](p.t, f)
			if h.LogsDropped > 0 {
				fmt.Fprintf(&out, "dropped %d\n", h.LogsDropped)
			}
			for _, n := range h.Notes {
				fmt.Fprintf(&out, "note: %s\n", n)
			}
			if h.Err == nil {
				body := string(f.Body)
				if f.Body == nil {
					body = "undefined"
				} else if !json.Valid(f.Body) {
					p.t.Errorf("the result is no JSON: %s", f.Body)
				}
				fmt.Fprintf(&out, "result %s\n", body)
				return out.String()
			}
			if s.anywhere {
				h.Err.Position, h.Err.Frame, h.Err.Stack = analysis.Position{}, "", nil
			}
			writeFailure(&out, h.Err, "")
			return out.String()
		default:
			p.t.Fatalf("unexpected %s frame", f.Kind)
		}
	}
}

func writeFailure(out *strings.Builder, f *wire.Failure, indent string) {
	kind := ""
	if f.Kind == wire.FailureLimit {
		kind = "limit "
	}
	fmt.Fprintf(out, "%s%s%s: %s", indent, kind, f.Name, f.Message)
	if f.Position.Line > 0 {
		fmt.Fprintf(out, " (line %d, column %d)", f.Position.Line, f.Position.Column)
	}
	if f.Call > 0 {
		fmt.Fprintf(out, " [call %d]", f.Call)
	}
	out.WriteString("\n")
	if f.Frame != "" {
		for _, line := range strings.Split(f.Frame, "\n") {
			fmt.Fprintf(out, "%s  %s\n", indent, line)
		}
	}
	if len(f.Stack) > 1 {
		fmt.Fprintf(out, "%s  stack %s\n", indent, strings.Join(f.Stack, ", "))
	}
	if f.Fields != nil {
		fmt.Fprintf(out, "%s  fields %s\n", indent, f.Fields)
	}
	if f.Hint != "" {
		fmt.Fprintf(out, "%s  hint %s\n", indent, f.Hint)
	}
	if f.Cause != nil {
		fmt.Fprintf(out, "%s  cause\n", indent)
		writeFailure(out, f.Cause, indent+"    ")
	}
}

func decode[T any](t testing.TB, f wire.Frame) T {
	t.Helper()
	v, err := wire.Decode[T](f)
	if err != nil {
		t.Fatalf("decoding %s: %v", f.Kind, err)
	}
	return v
}
