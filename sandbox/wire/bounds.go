package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"codemode-bridge/analysis"
)

// Bounds on the parts of a header, in bytes unless stated otherwise.
const (
	MaxName   = 512       // of a tool, function, error or limit
	MaxText   = 64 << 10  // of an error's message or a log line
	MaxNote   = 8 << 10   // of a note, a hint or a code frame
	MaxStack  = 64        // lines of a stack
	MaxCauses = 8         // errors in a chain of causes, the first one included
	MaxNotes  = 32        // notes of a run
	MaxSites  = 1000      // call sites in a preview
	MaxArgs   = 16 << 20  // a call's arguments
	MaxFields = 512 << 10 // fields of an error, as json.Marshal writes them
	MaxTimers = 10_000    // timers of a run
)

// Exit codes with which a worker says why it ended itself.
const (
	ExitMemory   = 86 // the heap passed Hello.Heap
	ExitDeadline = 87 // the script did not stop when it was interrupted
	ExitStack    = 88 // native code nested too deep, where the worker can tell
	ExitProtocol = 89 // the parent spoke another protocol
)

// Names of limits, as Failure.Name has them when Kind is FailureLimit.
const (
	LimitCPU       = "cpu time"
	LimitMemory    = "memory"
	LimitRecursion = "recursion"
	LimitCalls     = "calls"
	LimitTimers    = "timers"
	LimitWaiting   = "waiting"
	LimitSource    = "source"
	LimitInput     = "input"
	LimitArgs      = "arguments"
	LimitResult    = "result"
)

// Values of Failure.Kind.
const (
	FailureError = "error"
	FailureLimit = "limit"
)

// String returns the kind's name, as errors use it.
func (k Kind) String() string {
	if int(k) < len(shapes) && shapes[k].name != "" {
		return shapes[k].name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// shapes says what a frame of a kind may look like. Only what a worker sends
// needs tight bounds; what it gets comes from a parent it trusts. A bound on a
// header holds the texts that it may have, each byte of them escaped to six.
var shapes = [...]struct {
	name      string
	maxHeader int64
	body      bool
}{
	KindHello:   {"hello", 4 << 10, false},
	KindReady:   {"ready", 64 << 10, false},
	KindNames:   {"names", 16 << 20, true},
	KindRun:     {"run", 64 << 10, true},
	KindReply:   {"reply", 16 << 20, true},
	KindPreview: {"preview", 1 << 20, false},
	KindCall:    {"call", 8 << 10, true},
	KindIdle:    {"idle", 1 << 10, false},
	KindLog:     {"log", 512 << 10, false},
	KindDone:    {"done", 16 << 20, true},
}

// A checker is a header with bounds of its own.
type checker interface{ check() error }

func (r Ready) check() error {
	if len(r.Hardening) > 64 {
		return errors.New("too many hardening steps")
	}
	for k, v := range r.Hardening {
		if len(k) > MaxName || len(v) > MaxName {
			return errors.New("a hardening step that is too long")
		}
	}
	return nil
}

func (c Call) check() error {
	switch {
	case c.Number < 1:
		return fmt.Errorf("call number %d", c.Number)
	case len(c.Name) > MaxName:
		return fmt.Errorf("a name of %d bytes", len(c.Name))
	case !c.Op.known():
		return fmt.Errorf("an unknown operation %q", clipText(string(c.Op), 32))
	}
	return checkPosition(c.Position)
}

func (o Op) known() bool {
	switch o {
	case OpTool, OpRaw, OpRead, OpEmit, OpTimer, OpRun, OpResource, OpPrompt:
		return true
	}
	return false
}

func (i Idle) check() error {
	if i.Made < 0 || i.Taken < 0 || i.Taken > i.Made {
		return errors.New("counts that cannot be")
	}
	return nil
}

func (l Log) check() error {
	switch l.Level {
	case "log", "info", "warn", "error", "debug":
	default:
		return fmt.Errorf("an unknown log level %q", clipText(l.Level, 32))
	}
	if len(l.Text) > MaxText {
		return fmt.Errorf("a log line of %d bytes", len(l.Text))
	}
	return nil
}

func (p Preview) check() error {
	if len(p.Report.Calls) > MaxSites {
		return fmt.Errorf("%d call sites", len(p.Report.Calls))
	}
	if p.Report.Unknown < 0 || p.Report.Unknown > len(p.Report.Calls) {
		return errors.New("a wrong count of unknown call sites")
	}
	for _, s := range p.Report.Calls {
		if len(s.Name) > MaxName || len(s.Args) > MaxText {
			return errors.New("a call site that is too long")
		}
		if err := checkPosition(s.Position); err != nil {
			return err
		}
	}
	return nil
}

func (d Done) check() error {
	if d.Calls < 0 || d.CPU < 0 || d.LogsDropped < 0 {
		return errors.New("counts that cannot be")
	}
	if len(d.Notes) > MaxNotes {
		return fmt.Errorf("%d notes", len(d.Notes))
	}
	for _, n := range d.Notes {
		if len(n) > MaxNote {
			return fmt.Errorf("a note of %d bytes", len(n))
		}
	}
	depth := 0
	for f := d.Err; f != nil; f = f.Cause {
		if depth++; depth > MaxCauses {
			return errors.New("a chain of causes that is too long")
		}
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

func (f *Failure) check() error {
	switch {
	case f.Kind != FailureError && f.Kind != FailureLimit:
		return errors.New("an unknown kind of failure")
	case len(f.Name) > MaxName:
		return fmt.Errorf("an error name of %d bytes", len(f.Name))
	case len(f.Message) > MaxText || len(f.Frame) > MaxNote || len(f.Hint) > MaxNote:
		return errors.New("an error text that is too long")
	case len(f.Stack) > MaxStack:
		return fmt.Errorf("a stack of %d lines", len(f.Stack))
	case f.Call < 0:
		return fmt.Errorf("call number %d", f.Call)
	case len(f.Fields) > MaxFields:
		return fmt.Errorf("error fields of %d bytes", len(f.Fields))
	case len(f.Fields) > 0 && f.Fields[0] != '{':
		return errors.New("error fields that are no object")
	}
	for _, s := range f.Stack {
		if len(s) > 2*MaxName {
			return errors.New("a stack line that is too long")
		}
	}
	return checkPosition(f.Position)
}

func checkPosition(p analysis.Position) error {
	if p.Line < 0 || p.Column < 0 {
		return errors.New("a negative position")
	}
	return nil
}

// clip returns the header with the texts cut that may be.
func clip(header any) any {
	switch h := header.(type) {
	case Log:
		h.Text = clipText(h.Text, MaxText)
		return h
	case *Log:
		return clip(*h)
	case Done:
		h.Notes = clipLines(h.Notes, MaxNotes, MaxNote)
		h.Err = h.Err.clip(1)
		return h
	case *Done:
		return clip(*h)
	case Preview:
		h.Report = clipReport(h.Report)
		return h
	case *Preview:
		return clip(*h)
	case Reply:
		if h.Err != nil {
			e := *h.Err
			e.Message = clipText(e.Message, MaxText)
			h.Err = &e
		}
		return h
	case *Reply:
		return clip(*h)
	}
	return header
}

func (f *Failure) clip(depth int) *Failure {
	if f == nil || depth > MaxCauses {
		return nil
	}
	c := *f
	c.Name = clipText(c.Name, MaxName)
	c.Message = clipText(c.Message, MaxText)
	c.Frame = clipText(c.Frame, MaxNote)
	c.Hint = clipText(c.Hint, MaxNote)
	c.Stack = clipLines(c.Stack, MaxStack, 2*MaxName)
	if len(c.Fields) > 0 {
		// The same escaping as in the frame, so that the size is the same.
		var err error
		if c.Fields, err = json.Marshal(c.Fields); err != nil || len(c.Fields) > MaxFields {
			c.Fields = nil
		}
	}
	c.Cause = c.Cause.clip(depth + 1)
	return &c
}

// maxSiteBytes bounds what the call sites of a preview say together, so that
// a preview's header stays within its bound however its texts are escaped.
const maxSiteBytes = 96 << 10

func clipReport(r analysis.Report) analysis.Report {
	var calls []analysis.CallSite
	total, unknown := 0, 0
	for _, s := range r.Calls {
		total += len(s.Name) + len(s.Args)
		if len(calls) == MaxSites || total > maxSiteBytes || len(s.Name) > MaxName {
			r.Truncated = true
			break
		}
		if s.Name == "" {
			unknown++
		}
		calls = append(calls, s)
	}
	r.Calls, r.Unknown = calls, min(r.Unknown, len(calls))
	return r
}

func clipLines(lines []string, n, size int) []string {
	if len(lines) > n {
		lines = lines[:n]
	}
	for i, s := range lines {
		if len(s) > size {
			// A copy, so that the caller's slice stays as it is.
			lines = append([]string(nil), lines...)
			for ; i < len(lines); i++ {
				lines[i] = clipText(lines[i], size)
			}
			break
		}
	}
	return lines
}

// clipText cuts s to n bytes, between characters, and marks the cut.
func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	cut := n - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	// Not a slice of s: the rest of a large text need not be kept.
	return strings.Clone(s[:cut]) + mark
}
