package wire

import (
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
	MaxFields = 512 << 10 // fields of an error
	MaxTimers = 10_000    // timers of a run

	maxSteps = 64 // hardening steps
)

// Exit codes with which a worker says why it ended itself.
const (
	ExitMemory   = 86 // the heap passed Hello.Heap
	ExitDeadline = 87 // the script did not stop when it was interrupted
	ExitStack    = 88 // native code nested too deep, where the worker can tell
	ExitProtocol = 89 // the parent spoke another protocol
	ExitWall     = 90 // as ExitDeadline, where the limit was LimitWall
)

// Names of limits, as Failure.Name has them when Kind is FailureLimit.
const (
	LimitCPU       = "cpu time"
	LimitWall      = "wall time"
	LimitMemory    = "memory"
	LimitRecursion = "recursion"
	LimitCalls     = "calls"
	LimitTimers    = "timers"
	LimitWaiting   = "waiting"
	LimitSource    = "source"
	LimitInput     = "input"
	LimitArgs      = "arguments"
	LimitResult    = "result"
	// LimitTotalMemory is for all workers together; only the parent reports it.
	LimitTotalMemory = "total memory"
)

// WallFactor times Limits.CPU is the wall time for which a script may run, without
// waiting.
const WallFactor = 4

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

// shapes says what a frame of each kind may look like. These bounds only keep
// what is read from the pipe within reason; coding a header checks its parts one
// by one.
var shapes = [...]struct {
	name      string
	maxHeader int64
	body      bool
}{
	KindHello:   {"hello", 1 << 10, false},
	KindReady:   {"ready", 128 << 10, false},
	KindNames:   {"names", 16 << 20, true},
	KindRun:     {"run", 4 << 10, true},
	KindReply:   {"reply", 1 << 20, true},
	KindPreview: {"preview", 256 << 10, false},
	KindCall:    {"call", 1 << 10, true},
	KindIdle:    {"idle", 64, false},
	KindLog:     {"log", MaxText + 64, false},
	KindDone:    {"done", 8 << 20, true},
}

// maxSiteBytes bounds the names and arguments of a preview's call sites together,
// so that the preview's header stays within its bound.
const maxSiteBytes = 96 << 10

// clipReport cuts a report to what a frame may carry.
func clipReport(r analysis.Report) analysis.Report {
	var calls []analysis.CallSite
	total, unknown := 0, 0
	for _, s := range r.Calls {
		s.Name, s.Args = strings.ToValidUTF8(s.Name, "\ufffd"), strings.ToValidUTF8(s.Args, "\ufffd")
		total += len(s.Name) + len(s.Args)
		if len(calls) == MaxSites || total > maxSiteBytes || len(s.Name) > MaxName || len(s.Args) > MaxText {
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
	// Not a slice of s, which would keep all of a large text in memory.
	return strings.Clone(s[:cut]) + mark
}
