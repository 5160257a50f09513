package sandbox

import (
	"context"
	"encoding/json"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// A Script is what to run, and everything that its run depends on besides
// the answers to its calls: the same Script with the same answers in the same
// order makes the same calls and returns the same result.
type Script struct {
	// Source is JavaScript or TypeScript, as a model wrote it.
	Source string
	// Input is the JSON of the script's global `input`; nil leaves it undefined.
	Input json.RawMessage
	// Names are the tools that `codemode` shows; nil means none.
	Names *Names
	// Limits tighten the pool's own. A field that is zero, or looser than the
	// pool's, is ignored.
	Limits Limits
	// Seed is where the script's randomness comes from.
	Seed [32]byte
	// Start is the time that the script sees until its first answer. The zero
	// time means now.
	Start time.Time
}

// Names are the tools that a script may name. A value is shared by many
// runs and must not be changed; a worker is sent it once per Revision.
type Names struct {
	// Revision differs whenever the names do.
	Revision string
	// Names are what follows `codemode.`, sorted, without NUL bytes.
	Names []string
	// Servers are the objects of `codemode.server.tool(...)`.
	Servers []string
}

// A Host serves one run. Its methods are called while Session.Run is
// running, never after it returned.
type Host interface {
	// Preview passes the calls that could be read from the script before it ran. It
	// is called at most once, before the first Call, from the goroutine that reads
	// the worker's pipe: it must not block.
	Preview(analysis.Report)

	// Call makes one call of the script and answers it through answer. It may
	// block, or return before the answer is there. Run waits for it to return, so
	// it must obey ctx, which ends with the run. It runs in a goroutine of its own
	// or, while the script only waits for this call, in that of Run.
	//
	// answer does not wait for the script: it queues the answer, or writes it
	// where the worker has room for it. It may be called from any goroutine, even
	// one that holds locks, as long as Preview and Idle do not take them. The script
	// sees answers in the order in which they were given. Only the first
	// answer to a call counts, and only before the run has ended.
	//
	// Calls are started in the order of their numbers, at most Limits.Parallel
	// at a time; further ones wait until one of those is answered.
	Call(ctx context.Context, c Call, answer func(Reply))

	// Idle says that only answers can make the script continue, and how many calls
	// are open, that is unanswered, including timers and calls not started yet. A
	// host that knows its own open calls thus knows whether any timers run. It is
	// called like Preview and must not block.
	Idle(open int)
}

// A TimerHost is a Host that may serve the script's timers itself, for
// instance because it replays a run.
type TimerHost interface {
	Host
	// Timer is called for each timer, in the order in which they are set, and
	// reports whether the host answers it; if not, the run does when the time has
	// passed. It is called like Preview and must not block. Timers do not count
	// against Limits.Parallel.
	Timer(c Call, wait time.Duration, answer func(Reply)) bool
}

// A YieldHost is a Host some of whose calls wait for something that takes no part of
// this machine, such as a person.
type YieldHost interface {
	Host
	// Yields is called once, before the first Call, with a function by which the host
	// says that the call of a number waits: from then on it does not count against
	// Limits.Parallel. The function may be called like an answer, and more than once.
	Yields(yield func(call int))
}

// An OrderHost is a Host that is told in which order the script gets its
// answers, those of timers included.
type OrderHost interface {
	Host
	// Answered is called for each call when its answer is queued, with the time
	// that the script's clock will show. It must not block, nor take a lock that is
	// held while anything of this package is called.
	Answered(number int, at time.Time)
}

// A Call is one call of a script.
type Call struct {
	Number   int               // 1, 2, ... in the order in which the calls were made
	Op       wire.Op           // what is to be done
	Name     string            // which tool, for the operations that have one; at most wire.MaxName bytes
	Args     json.RawMessage   // valid JSON, as the script's runtime wrote it; nil if there is none
	Position analysis.Position // where in the script
}

// A Reply answers a call: with Err if it is set, else with Text if it is
// set, else with Value.
type Reply struct {
	Value json.RawMessage // JSON; nil is undefined
	Text  *string         // becomes a JavaScript string as it is
	Err   *ReplyError     // is thrown into the script
	// Time is what the script's clock shows from now on; zero means now. The clock
	// never goes back: an earlier time leaves it as it is.
	Time time.Time
}

// A ReplyError is an error that a call throws into the script.
type ReplyError struct {
	Name    string          // ToolError, ToolCallDeniedError, ...
	Message string          // cut to wire.MaxText bytes
	Fields  json.RawMessage // a JSON object whose members become properties; dropped beyond wire.MaxFields bytes
}

// A Result is what is known about a run. Run also returns one, without a Value, with
// every error: the logs so far, calls and time belong in the report of a failure, too.
type Result struct {
	Value       json.RawMessage // valid JSON; nil means undefined
	Logs        []Log           // what the script wrote with console.*
	LogsDropped int             // bytes of logs beyond Limits.Logs
	Notes       []string        // remarks about the script for whoever wrote it
	Calls       int             // how many calls reached the host, without timers
	CPU         time.Duration   // how long it ran, without waiting for answers
}

// A Log is a line that the script wrote with console.*.
type Log struct {
	Level string `json:"level"` // log, info, warn, error, debug
	Text  string `json:"text"`
}
