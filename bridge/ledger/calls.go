package ledger

import (
	"context"
	"fmt"
	"iter"
)

// Sending is the state of a call whose intent is recorded and that has no outcome
// yet; all other states are outcomes.
const Sending = "sending"

// A CallState is how far a call has got, according to its run's records.
type CallState struct {
	State string // Sending, Done, Failed, Refused or Unknown
	Error string
}

// A Reader reads rows, as [Store.Rows] does.
type Reader interface {
	Rows(context.Context, Query) iter.Seq2[Row, error]
}

// CallStates reads what became of the calls of a run, by number. A call that has
// been neither sent nor refused is not among them.
func CallStates(ctx context.Context, s Reader, run string) (map[int]CallState, error) {
	states := map[int]CallState{}
	q := Query{Runs: []string{run}, Events: []Event{Intent, Outcome, Refusal}}
	for row, err := range s.Rows(ctx, q) {
		if err != nil {
			return nil, fmt.Errorf("reading the records of run %s: %w", run, err)
		}
		switch r := row.Record; r.Event {
		case Intent:
			states[r.Call] = CallState{State: Sending}
		default:
			states[r.Call] = CallState{r.Outcome, r.Error}
		}
	}
	return states, nil
}

// Waiting is the state of a call that was approved and has no records yet.
const Waiting = "waiting"

// A CallOutcome says how people answered a call and what became of it, in the
// words of the API and the command line.
type CallOutcome struct {
	Call   int    `json:"call"`
	Answer string `json:"answer"` // approved, denied or unanswered
	// State is what the records say of the call: sending, done, failed, refused or
	// unknown. If they say nothing yet, it is waiting after an approval and refused
	// after anything else; it is empty if nobody has read them.
	State string `json:"state,omitempty"`
	Error string `json:"error,omitempty"`
}

// NewCallOutcome says what became of a call that was answered, from what CallStates
// has read; nil states mean that nothing was read.
func NewCallOutcome(call int, answer string, states map[int]CallState) CallOutcome {
	o := CallOutcome{Call: call, Answer: answer}
	known, ok := states[call]
	switch {
	case ok:
		o.State, o.Error = known.State, known.Error
	case states == nil:
	case answer == "approved":
		o.State = Waiting
	default:
		o.State = Refused
	}
	return o
}
