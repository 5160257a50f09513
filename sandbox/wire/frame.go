// Package wire defines the frames that a worker and its parent exchange, and
// the limits on them.
//
// A frame on the pipe is
//
//	uint32  length of what follows, big endian, at most MaxFrame
//	uint8   kind
//	uint32  length of the header
//	header  JSON, one of the structs of this package
//	body    raw bytes: a script, arguments, a reply, a result
//
// The body stands apart from the header so that large values cross the pipe
// without being escaped inside another JSON text, and are copied once.
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
//	  Reply                 ─▶                        in the order the script shall see
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
const Version = 1

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
	Version int   `json:"version"`
	Heap    int64 `json:"heap"` // bytes of Go heap after which the worker ends itself
}

// Ready answers Hello.
type Ready struct {
	Version int `json:"version"`
	// Hardening says, step by step, what confines the worker ("landlock":
	// "on", "seccomp": "not permitted", ...).
	Hardening map[string]string `json:"hardening,omitempty"`
}

// Names tells the worker which names `codemode` has. The body holds the
// names that a script may call, separated by NUL, in sorted order. It is
// kept until the next Names frame and used by runs with the same Revision.
type Names struct {
	Revision string   `json:"revision"`
	Servers  []string `json:"servers"` // for codemode.server.tool(...)
}

// Run starts a run. The body holds the input's JSON (InputSize bytes, none
// if there is no input) followed by the script's source.
type Run struct {
	ID        uint64    `json:"id"` // counts up within a worker; every frame of a run carries it
	Revision  string    `json:"revision"`
	InputSize int       `json:"input_size"`
	Seed      [32]byte  `json:"seed"`
	Start     time.Time `json:"start"` // the script's clock stands at this until the first answer
	Limits    Limits    `json:"limits"`
}

// Limits bound one run inside the worker. All are positive. The parent
// enforces them a second time, from outside.
type Limits struct {
	CPU      time.Duration `json:"cpu"`   // running JavaScript, waiting not counted
	Calls    int           `json:"calls"` // timers not counted: of these, MaxTimers
	Parallel int           `json:"parallel"`
	Logs     int64         `json:"logs"`   // bytes of text; also the number of lines
	Result   int64         `json:"result"` // bytes of the result that may cross the pipe
}

// An Op is what a call asks the parent to do.
type Op string

const (
	OpTool     Op = "tool"     // codemode.server__tool(args), codemode["..."](args), codemode.search_tools(args)
	OpRaw      Op = "raw"      // codemode.raw(name, args): the whole CallToolResult
	OpRead     Op = "read"     // codemode.read(handle, path): Args is {"handle":..., "path":...}
	OpEmit     Op = "emit"     // emit(handle): Args is {"handle":...}
	OpTimer    Op = "timer"    // setTimeout and its like: Args is {"ms":...}
	OpRun      Op = "run"      // codemode.run(name, input)
	OpResource Op = "resource" // codemode.resources.<method>(args): Name is the method
	OpPrompt   Op = "prompt"   // codemode.prompts.<method>(args): Name is the method
)

// Call is one call of the script. Numbers count from 1 in the order in which
// the calls were made, all Ops together. The body holds the arguments.
type Call struct {
	Run      uint64            `json:"run"`
	Number   int               `json:"number"`
	Op       Op                `json:"op"`
	Name     string            `json:"name,omitempty"`
	Position analysis.Position `json:"position"`
}

// Reply answers a call. The body is the value: JSON, or plain UTF-8 text
// when Text is set (it becomes a JavaScript string as it is), or nothing for
// undefined. With Err set there is no body.
type Reply struct {
	Run    uint64    `json:"run"`
	Number int       `json:"number"`
	Text   bool      `json:"text,omitempty"`
	Time   time.Time `json:"time"` // the script's clock from now on
	Err    *Thrown   `json:"err,omitempty"`
}

// Thrown is an error that a call throws into the script. Fields become
// properties of the error object.
type Thrown struct {
	Name    string          `json:"name"` // ToolError, ToolCallDeniedError, ...
	Message string          `json:"message"`
	Fields  json.RawMessage `json:"fields,omitempty"` // a JSON object
}

// Preview reports what could be read from the script before it ran.
type Preview struct {
	Run    uint64          `json:"run"`
	Report analysis.Report `json:"report"`
}

// Idle says that only answers can move the script on. It is out of date, and
// must be ignored, unless Made and Taken are the newest numbers.
type Idle struct {
	Run   uint64 `json:"run"`
	Made  int    `json:"made"`  // calls made so far
	Taken int    `json:"taken"` // answers taken so far
}

// Log is one line written by console.*.
type Log struct {
	Run   uint64 `json:"run"`
	Level string `json:"level"` // log, info, warn, error, debug
	Text  string `json:"text"`
}

// Done ends a run. The body is the result as JSON; no body means undefined.
type Done struct {
	Run         uint64        `json:"run"`
	Calls       int           `json:"calls"` // made by the script, timers not counted; some may never have been sent
	CPU         time.Duration `json:"cpu"`
	LogsDropped int           `json:"logs_dropped,omitempty"` // bytes beyond the limit
	// Notes are remarks for the model, such as a promise that was never
	// awaited or a Map that was turned into an object.
	Notes []string `json:"notes,omitempty"`
	Err   *Failure `json:"err,omitempty"`
}

// Failure is how a script ended that did not return.
type Failure struct {
	// Kind is FailureError (the script threw, or could not be parsed) or
	// FailureLimit.
	Kind     string            `json:"kind"`
	Name     string            `json:"name"` // SyntaxError, TypeError, ToolError, ...; with FailureLimit one of the Limit constants
	Message  string            `json:"message"`
	Position analysis.Position `json:"position"`
	Frame    string            `json:"frame,omitempty"` // the lines around Position, with a caret
	Stack    []string          `json:"stack,omitempty"` // "name (line:column)", innermost first
	Cause    *Failure          `json:"cause,omitempty"`
	Hint     string            `json:"hint,omitempty"`
	// Call is the number of the call whose error this is, 0 if none.
	Call   int             `json:"call,omitempty"`
	Fields json.RawMessage `json:"fields,omitempty"` // of the thrown error, a JSON object
}
