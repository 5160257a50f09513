package lifecycle

import (
	"encoding/json"
	"time"
)

// A RunState is what is known of a run at one moment.
type RunState struct {
	ID        string
	Session   string
	Client    string // the client's own name for itself
	Requester string // whose token it came with
	Profile   string // that binds it; empty if none does
	State     string // one of the words below
	Started   time.Time
	Ended     time.Time
	Calls     int // made so far
	// Result is what an eval tool would answer, once the run is over. Only
	// Run fills it in.
	Result json.RawMessage
}

// How far a run is.
const (
	RunRunning = "running"
	RunWaiting = "waiting" // for a person
	RunPaused  = "paused"  // the same, without a worker: it goes on when it is resumed
	RunDone    = "done"
	RunFailed  = "failed"
	RunStopped = "stopped" // before its script ended
	// RunInterrupted is one whose bridge ended without a word: it goes on when it is
	// resumed.
	RunInterrupted = "interrupted"
)

// Over reports whether the run has ended.
func (s RunState) Over() bool {
	return s.State == RunDone || s.State == RunFailed || s.State == RunStopped
}
