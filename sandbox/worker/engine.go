package worker

import (
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// An engine runs one script. It is used by one goroutine, except for
// interrupt, which any may call at any time. begin and answer return when
// only another answer can move the script, or when it ended.
type engine interface {
	// load reads the script, which may name tools by names, and its input (nil
	// for none); nothing runs yet.
	load(names *names, source string, input []byte) (analysis.Report, *wire.Failure)
	// begin starts the script.
	begin()
	// answer settles a call and runs what waited for it. The reply's body is
	// the engine's to keep.
	answer(number int, r wire.Reply, body []byte)
	// ended reports whether the script has returned or thrown.
	ended() bool
	// stuck ends a script that waits although no call is open.
	stuck()
	// finish returns the result as JSON (nil for undefined), or how the
	// script failed, and remarks for the model. It may run script code.
	finish() (result []byte, notes []string, fail *wire.Failure)
	// interrupt makes the script stop soon; finish then reports the reason.
	interrupt(reason *wire.Failure)
}

// A host is what an engine asks of the loop.
type host interface {
	// call numbers a call and sends it, now or when fewer are open. A
	// *limitError says that the script may make no more.
	call(op wire.Op, name string, args []byte, at analysis.Position) (number int, err error)
	// drop says that nobody waits for the answer of a timer any more.
	drop(number int)
	// log writes one line of the console.
	log(level, text string)
	// now is the script's clock.
	now() time.Time
	// limits returns the run's limits.
	limits() wire.Limits
	// seed returns the run's seed.
	seed() [32]byte
}

// A limitError says which limit a script has reached. It reaches the script
// as a LimitError that it can catch.
type limitError struct {
	limit string
	value string
}

func (e *limitError) Error() string { return "the limit of " + e.value + " is reached" }
