package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// ErrClosed is returned by runs of a session or pool that was closed.
var ErrClosed = errors.New("the sandbox is closed")

// A ScriptError is an error of the script itself: it could not be parsed, or
// it threw. Its texts come from the script and its tools, and are bounded.
type ScriptError struct {
	Name     string            // SyntaxError, TypeError, ToolError, ...
	Message  string            // without the name
	Position analysis.Position // in the script as it was written; zero if unknown
	Frame    string            // the lines around Position, with a caret
	Stack    []string          // "name (line:column)", innermost first
	Cause    *ScriptError      // the error's cause, if it has one
	Hint     string            // what to write instead
	Call     int               // number of the call whose error this is, 0 if none
	Fields   json.RawMessage   // properties of the thrown error, a JSON object
}

func (e *ScriptError) Error() string {
	s := e.Name
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Position.Line > 0 {
		s += fmt.Sprintf(" (line %d, column %d)", e.Position.Line, e.Position.Column)
	}
	return s
}

func (e *ScriptError) Unwrap() error {
	if e.Cause == nil {
		return nil // not a nil *ScriptError in an error
	}
	return e.Cause
}

// A LimitError says which limit ended a run.
type LimitError struct {
	Limit  string // one of wire's Limit constants
	Value  string // the limit, for people: "10 s", "256 MB", "1,000"; empty if it has no number
	Actual string // what there was instead, where that is known: "300 KB"
	Waited string // how long the run waited in vain to begin, if that is why: "30 s"

	// Where the script was, if known; see ScriptError.
	Position analysis.Position
	Frame    string
	Stack    []string
	Advice   string // what the worker says of the place, if it knows better than Hint
}

func (e *LimitError) Error() string {
	switch {
	case e.Waited != "":
		return fmt.Sprintf("the script could not begin within %s: the %s limit of %s is taken up by other scripts", e.Waited, e.Limit, e.Value)
	case e.Actual != "":
		return fmt.Sprintf("%s is %s; the limit is %s", e.Limit, e.Actual, e.Value)
	case e.Value == "":
		return e.Limit + " limit exceeded"
	case e.Limit == wire.LimitCPU:
		return fmt.Sprintf("script CPU time limit of %s exceeded", e.Value)
	case e.Limit == wire.LimitWall:
		return fmt.Sprintf("script wall time limit of %s exceeded: it had the processor for too little of that", e.Value)
	case e.Limit == wire.LimitWaiting:
		return fmt.Sprintf("waiting limit of %s exceeded: the script waited for nothing but its own timers", e.Value)
	case e.Limit == wire.LimitCalls, e.Limit == wire.LimitTimers:
		return fmt.Sprintf("limit of %s %s per run exceeded", e.Value, e.Limit)
	}
	return fmt.Sprintf("%s limit of %s exceeded", e.Limit, e.Value)
}

// Hint returns what to do about it, for whoever wrote the script; empty if
// there is nothing to say.
func (e *LimitError) Hint() string {
	if e.Advice != "" {
		return e.Advice
	}
	switch e.Limit {
	case wire.LimitCPU:
		return "look for a loop that does not end, and do less in one run; waiting for calls is not counted"
	case wire.LimitWall:
		return "this machine is busy: do less in one run, or try again later; waiting for calls is not counted"
	case wire.LimitMemory:
		return "hold less at a time: work through large data in parts, and let tools filter"
	case wire.LimitTotalMemory:
		return "try again when fewer scripts run, and hold less at a time; sandbox.memory in the configuration raises the limit"
	case wire.LimitRecursion:
		return "nest less: replace deep recursion by a loop"
	case wire.LimitCalls, wire.LimitTimers:
		return "do the rest in another run"
	case wire.LimitWaiting:
		return "return what is known so far, and look again in another run; waiting for calls is not counted"
	case wire.LimitSource:
		return "pass data as input, not inside the script"
	case wire.LimitInput, wire.LimitArgs:
		return "pass less, or in parts"
	case wire.LimitResult:
		return "return only what is needed: pick fields, slice lists, count"
	}
	return ""
}

// A WorkerError ends a run for a reason other than an error of the script or a limit:
// its worker ended, or broke the protocol and was killed. Other runs are not affected,
// and the same script may be run again.
type WorkerError struct {
	Reason string
}

func (e *WorkerError) Error() string { return "sandbox worker: " + e.Reason }

// size formats a number of bytes for messages about limits: 256 MB, 1.5 KB.
func size(n int64) string {
	units := []string{"bytes", "KB", "MB", "GB", "TB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f /= 1024
		u++
	}
	if u == 0 && n == 1 {
		return "1 byte"
	}
	s := strconv.FormatFloat(f, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0") + " " + units[u]
}

// count formats a number with thousands separators: 1,000.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// duration formats a time for messages about limits: 10 s, 60 s, 250 ms, 2 min.
func duration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if d%u.unit == 0 && (d > time.Minute || d >= u.unit && u.unit < time.Minute) {
			return fmt.Sprintf("%d %s", d/u.unit, u.name)
		}
	}
	if d >= time.Second {
		return strconv.FormatFloat(d.Seconds(), 'g', 4, 64) + " s"
	}
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'g', 4, 64) + " ms"
}
