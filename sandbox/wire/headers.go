package wire

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"codemode-bridge/analysis"
)

// A header is one of this package's structs, by its address.
type header interface {
	kind() Kind
	// code writes or reads the struct. Bounds on what only a parent sends are
	// wide: a worker trusts its parent.
	code(*coder)
}

func (*Hello) kind() Kind   { return KindHello }
func (*Ready) kind() Kind   { return KindReady }
func (*Names) kind() Kind   { return KindNames }
func (*Run) kind() Kind     { return KindRun }
func (*Reply) kind() Kind   { return KindReply }
func (*Preview) kind() Kind { return KindPreview }
func (*Call) kind() Kind    { return KindCall }
func (*Idle) kind() Kind    { return KindIdle }
func (*Log) kind() Kind     { return KindLog }
func (*Done) kind() Kind    { return KindDone }

// headerOf returns a header that was passed by value; nil if v is none.
func headerOf(v any) header {
	switch v := v.(type) {
	case Hello:
		return &v
	case Ready:
		return &v
	case Names:
		return &v
	case Run:
		return &v
	case Reply:
		return &v
	case Preview:
		return &v
	case Call:
		return &v
	case Idle:
		return &v
	case Log:
		return &v
	case Done:
		return &v
	}
	return nil
}

func (h *Hello) code(c *coder) {
	number(c, "a version", &h.Version, 0, math.MaxInt)
	number(c, "a heap limit", &h.Heap, 0, math.MaxInt64)
}

func (h *Ready) code(c *coder) {
	number(c, "a version", &h.Version, 0, math.MaxInt)
	steps := slices.Sorted(maps.Keys(h.Hardening)) // one form, whatever the order of the map
	last := ""
	list(c, "hardening steps", &steps, maxSteps, func(step *string) {
		c.name("a hardening step", step, MaxName)
		if c.reading && len(h.Hardening) > 0 && *step <= last {
			c.fail("hardening steps out of order")
		}
		last = *step
		state := h.Hardening[*step]
		c.prose("the state of a hardening step", &state, MaxName)
		if c.reading && c.err == nil {
			if h.Hardening == nil {
				h.Hardening = make(map[string]string)
			}
			h.Hardening[*step] = state
		}
	})
}

func (h *Names) code(c *coder) {
	c.name("a revision", &h.Revision, MaxName)
	list(c, "servers", &h.Servers, math.MaxInt32, func(s *string) { c.name("a server", s, math.MaxInt32) })
}

func (h *Run) code(c *coder) {
	number(c, "a run", &h.ID, 0, math.MaxUint64)
	c.name("a revision", &h.Revision, MaxName)
	number(c, "an input size", &h.InputSize, 0, MaxFrame)
	if c.reading {
		copy(h.Seed[:], c.take(len(h.Seed)))
	} else {
		c.b = append(c.b, h.Seed[:]...)
	}
	c.time(&h.Start)
	l := &h.Limits
	number(c, "a limit of cpu time", &l.CPU, 0, math.MaxInt64)
	number(c, "a limit of calls", &l.Calls, 0, math.MaxInt)
	number(c, "a limit of parallel calls", &l.Parallel, 0, math.MaxInt)
	number(c, "a limit of logs", &l.Logs, 0, math.MaxInt64)
	number(c, "a limit of the result", &l.Result, 0, math.MaxInt64)
}

func (h *Reply) code(c *coder) {
	number(c, "a run", &h.Run, 0, math.MaxUint64)
	number(c, "a call number", &h.Number, 1, math.MaxInt)
	c.flag(&h.Text)
	c.time(&h.Time)
	optional(c, &h.Err, func(e *Thrown) {
		c.prose("an error name", &e.Name, MaxName)
		c.prose("an error message", &e.Message, MaxText)
		c.json("error fields", &e.Fields, MaxFields)
	})
}

func (h *Preview) code(c *coder) {
	number(c, "a run", &h.Run, 0, math.MaxUint64)
	report := &h.Report
	if !c.reading {
		cut := clipReport(h.Report)
		report = &cut
	}
	list(c, "call sites", &report.Calls, MaxSites, func(s *analysis.CallSite) {
		c.name("a name", &s.Name, MaxName)
		position(c, &s.Position)
		c.name("arguments", &s.Args, MaxText)
		c.flag(&s.Loop)
		c.flag(&s.Branch)
	})
	number(c, "a count of unknown call sites", &report.Unknown, 0, len(report.Calls))
	c.flag(&report.Truncated)
}

// In a frame, an operation or a level is its index in these lists.
var (
	ops    = []Op{OpTool, OpRaw, OpRead, OpEmit, OpTimer, OpRun, OpResource, OpPrompt}
	levels = []string{"log", "info", "warn", "error", "debug"}
)

func (h *Call) code(c *coder) {
	number(c, "a run", &h.Run, 0, math.MaxUint64)
	number(c, "a call number", &h.Number, 1, math.MaxInt)
	word(c, "operation", &h.Op, ops)
	c.name("a name", &h.Name, MaxName)
	position(c, &h.Position)
}

func (h *Idle) code(c *coder) {
	number(c, "a run", &h.Run, 0, math.MaxUint64)
	number(c, "a count of calls", &h.Made, 0, math.MaxInt)
	number(c, "a count of answers", &h.Taken, 0, h.Made)
}

func (h *Log) code(c *coder) {
	number(c, "a run", &h.Run, 0, math.MaxUint64)
	word(c, "log level", &h.Level, levels)
	c.prose("a log line", &h.Text, MaxText)
}

func (h *Done) code(c *coder) {
	number(c, "a run", &h.Run, 0, math.MaxUint64)
	number(c, "a count of calls", &h.Calls, 0, math.MaxInt)
	number(c, "a processor time", &h.CPU, 0, time.Duration(math.MaxInt64))
	number(c, "a count of bytes", &h.LogsDropped, 0, math.MaxInt)
	number(c, "a count of answers", &h.Taken, 0, math.MaxInt)
	lines(c, "notes", &h.Notes, MaxNotes, MaxNote)
	optional(c, &h.Err, func(f *Failure) { f.code(c, 1) })
}

// code codes a failure that is the depth-th of a chain of causes.
func (f *Failure) code(c *coder, depth int) {
	word(c, "kind of failure", &f.Kind, []string{FailureError, FailureLimit})
	c.prose("an error name", &f.Name, MaxName)
	c.prose("an error message", &f.Message, MaxText)
	position(c, &f.Position)
	c.prose("a code frame", &f.Frame, MaxNote)
	lines(c, "stack lines", &f.Stack, MaxStack, 2*MaxName)
	c.prose("a hint", &f.Hint, MaxNote)
	number(c, "a call number", &f.Call, 0, math.MaxInt)
	fields := f.Fields
	if !c.reading && (len(fields) > MaxFields || !isObject(fields)) {
		fields = nil
	}
	if c.json("error fields", &fields, MaxFields); c.reading {
		if f.Fields = fields; len(fields) > 0 && fields[0] != '{' {
			c.fail("error fields that are no object")
		}
	}
	cause := f.Cause
	if !c.reading && depth == MaxCauses {
		cause = nil
	}
	optional(c, &cause, func(f *Failure) {
		if depth == MaxCauses {
			c.fail("a chain of causes that is too long")
			return
		}
		f.code(c, depth+1)
	})
	if c.reading {
		f.Cause = cause
	}
}

func isObject(b json.RawMessage) bool {
	return len(b) > 0 && b[0] == '{' && json.Valid(b)
}

// lines codes texts that someone will read, as prose does.
func lines(c *coder, what string, p *[]string, most, size int) {
	all := *p
	if !c.reading && len(all) > most {
		all = all[:most]
	}
	list(c, what, &all, most, func(s *string) { c.prose(what, s, size) })
	if c.reading {
		*p = all
	}
}

func position(c *coder, p *analysis.Position) {
	number(c, "a line", &p.Line, 0, math.MaxInt)
	number(c, "a column", &p.Column, 0, math.MaxInt)
}
