package realm

import (
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// A Host is what an engine asks of the run around it.
type Host interface {
	// Call numbers a call and sends it, now or when fewer are open. A
	// *LimitReached says that the script may make no more.
	Call(op wire.Op, name string, args []byte, at analysis.Position) (number int, err error)
	// Drop says that nobody waits for the answer of a timer any more.
	Drop(number int)
	// Log writes one line of the console.
	Log(level, text string)
	// Now is the script's clock.
	Now() time.Time
	// Limits returns the run's limits.
	Limits() wire.Limits
	// Seed returns the run's seed.
	Seed() [32]byte
}

// A LimitReached says which limit a script has reached. It reaches the script
// as a LimitError that it can catch.
type LimitReached struct {
	Limit string
	Value string
}

func (e *LimitReached) Error() string { return "the limit of " + e.Value + " is reached" }
