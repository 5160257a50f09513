// Package wire defines the frames that a worker and its parent exchange, and
// the limits on them.
//
// A frame on the pipe is
//
//	uint32  length of what follows, big endian, at most MaxFrame
//	uint8   kind
//	uint32  length of the header
//	header  one of the structs of this package, its fields in their order
//	body    raw bytes: a script, arguments, a reply, a result
//
// In a header,
//
//	a number    is an unsigned varint (as in encoding/binary) in its shortest form
//	a flag      is one byte, 0 or 1
//	a word      of a fixed set (an operation, a level) is one byte, its place in the set
//	a text      is its length in bytes, a number, and as many bytes of UTF-8
//	JSON        is the same, with length 0 for none
//	a time      is two numbers: seconds since the year 1, and nanoseconds
//	a list      is a number of items, and the items
//	an option   is a flag, and if it is 1 the value
//
// so every header has exactly one form: reading it and writing it again yields
// the same bytes. Each struct's method code defines this once for both directions
// (headers.go); the same lines check what is written and what is read.
//
// The body is separate from the header so that large values cross the pipe as
// they are and are copied only once.
//
// The parent speaks first with Hello and ends a worker by closing the pipe.
// Then, for each run:
//
//	parent                    worker
//	  Names (when changed)  ─▶
//	  Run                   ─▶
//	                        ◀─  Preview
//	                        ◀─  Call 1, Call 2, ...   numbered as they are made
//	                        ◀─  Idle                  only answers can move it
//	  Reply                 ─▶                        in the order in which the script sees them
//	                        ◀─  Log
//	                        ◀─  Done
//
// The parent treats a worker as hostile: every frame from it is bounded,
// decoded strictly, and checked against what may come at that moment.
package wire

import (
	"encoding/json"
	"time"

	"codemode-bridge/analysis"
)

// Version is the version of this protocol. Parent and worker are built
// together; a Hello with another version is refused.
const Version = 2

// Engine names what scripts run in. It changes with everything that could make
// a script do something else with the same answers (goja, the TypeScript front
// end, the worker's own objects): a run that began in one engine does not go on
// in another.
const Engine = "3"

// MaxFrame bounds a frame in either direction, its header included.
const MaxFrame = 64 << 20

// A Kind says which struct the header of a frame holds.
type Kind uint8

const (
	KindHello   Kind = 1 + iota // parent to worker: Hello; worker to parent: Ready
	KindReady                   // worker to parent
	KindNames                   // parent to worker, body: NUL-separated names
	KindRun                     // parent to worker, body: the script's source
	KindReply                   // parent to worker, body: JSON value or text
	KindPreview                 // worker to parent
	KindCall                    // worker to parent, body: arguments as JSON
	KindIdle                    // worker to parent
	KindLog                     // worker to parent
	KindDone                    // worker to parent, body: result as JSON
)

// Hello is the first frame a worker gets. Its limits hold for the worker's
// whole life and cannot be raised later.
type Hello struct {
	Version int
	Heap    int64 // bytes of Go heap after which the worker ends itself
}

// Ready answers Hello.
type Ready struct {
	Version int
	// Hardening says, step by step, what confines the worker ("landlock":
	// "on", "seccomp": "not permitted", ...).
	Hardening map[string]string
}

// Names tells the worker which names `codemode` has. The body holds the
// names that a script may call, separated by NUL, in sorted order. It is
// kept until the next Names frame and used by runs with the same Revision.
type Names struct {
	Revision string
	Servers  []string // for codemode.server.tool(...)
}

// Run starts a run. The body holds the input's JSON (InputSize bytes, none
// if there is no input) followed by the script's source.
type Run struct {
	ID        uint64 // counts up within a worker; every frame of a run carries it
	Revision  string
	InputSize int
	Seed      [32]byte
	Start     time.Time // what the script's clock shows until the first answer
	Limits    Limits
}

// Limits bound one run inside the worker. All are positive. The parent
// enforces them a second time, from outside.
type Limits struct {
	CPU      time.Duration // of running the script; see WallFactor
	Calls    int           // without timers, which MaxTimers bounds
	Parallel int
	Logs     int64 // bytes of text; also the number of lines
	Result   int64 // bytes of the result that may cross the pipe
}

// An Op is what a call asks the parent to do. The list ops holds them all.
type Op string

const (
	OpTool     Op = "tool"     // codemode.server__tool(args), codemode["..."](args), codemode.search_tools(args)
	OpRaw      Op = "raw"      // codemode.raw(name, args): the whole CallToolResult
	OpRead     Op = "read"     // codemode.read(handle, path): Args is {"handle":..., "path":...}
	OpEmit     Op = "emit"     // emit(handle): Args is {"handle":...}
	OpTimer    Op = "timer"    // setTimeout and the like: Args is {"ms":...}
	OpRun      Op = "run"      // codemode.run(name, input)
	OpResource Op = "resource" // codemode.resources.<method>(args): Name is the method
	OpPrompt   Op = "prompt"   // codemode.prompts.<method>(args): Name is the method
)

// Call is one call of the script. Numbers count from 1 in the order in which
// the calls were made, all Ops together. The body holds the arguments.
type Call struct {
	Run      uint64
	Number   int
	Op       Op
	Name     string
	Position analysis.Position
}

// Reply answers a call. The body is the value: JSON, or plain UTF-8 text
// when Text is set (it becomes a JavaScript string as it is), or nothing for
// undefined. With Err set there is no body.
type Reply struct {
	Run    uint64
	Number int
	Text   bool
	Time   time.Time // the script's clock from now on
	Err    *Thrown
}

// Thrown is an error that a call throws into the script. Fields become
// properties of the error object.
type Thrown struct {
	Name    string // ToolError, ToolCallDeniedError, ...
	Message string
	Fields  json.RawMessage // a JSON object
}

// Preview reports what could be read from the script before it ran.
type Preview struct {
	Run    uint64
	Report analysis.Report
}

// Idle says that only answers can move the script on. It is outdated, and must be
// ignored, unless Made and Taken are the newest numbers.
type Idle struct {
	Run   uint64
	Made  int // calls made so far
	Taken int // answers taken so far
}

// Log is one line written by console.*.
type Log struct {
	Run   uint64
	Level string // log, info, warn, error, debug
	Text  string
}

// Done ends a run. The body is the result as JSON; no body means undefined.
type Done struct {
	Run         uint64
	Calls       int // made by the script, without timers; some may never have been sent
	CPU         time.Duration
	LogsDropped int // bytes beyond the limit
	Taken       int // replies that the script was given; those after them came too late
	// Notes are remarks for the model, such as a promise that was never
	// awaited or a Map that was turned into an object.
	Notes []string
	Err   *Failure
}

// Failure is how a script ended that did not return.
type Failure struct {
	// Kind is FailureError (the script threw, or could not be parsed) or
	// FailureLimit.
	Kind     string
	Name     string // SyntaxError, TypeError, ToolError, ...; with FailureLimit one of the Limit constants
	Message  string
	Position analysis.Position
	Frame    string   // the lines around Position, with a caret
	Stack    []string // "name (line:column)", innermost first
	Cause    *Failure
	Hint     string
	// Call is the number of the call whose error this is, 0 if none.
	Call   int
	Fields json.RawMessage // of the thrown error, a JSON object
}
