package ledger

import (
	"context"
	"fmt"
	"iter"
)

// Sending is the state of a call that was announced and has no outcome yet; all
// others are outcomes.
const Sending = "sending"

// A CallState is how far a call is, as far as its run's records say.
type CallState struct {
	State string // Sending, Done, Failed, Refused or Unknown
	Error string
}

// A Reader reads rows, as [Store.Rows] does.
type Reader interface {
	Rows(context.Context, Query) iter.Seq2[Row, error]
}

// CallStates reads what became of the calls of a run, by number. A call that was
// neither sent nor refused yet is not among them.
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

// Waiting is the state of a call that was approved, and of which the records say
// nothing yet.
const Waiting = "waiting"

// A CallOutcome is how a call that was put to people was answered, and what became
// of it, as the API and the command line say it.
type CallOutcome struct {
	Call   int    `json:"call"`
	Answer string `json:"answer"` // approved, denied or unanswered
	// State is what the records say of the call: sending, done, failed, refused or
	// unknown. Where they say nothing yet, it is waiting after an approval, and
	// refused after anything else; it is empty where nobody has read them.
	State string `json:"state,omitempty"`
	Error string `json:"error,omitempty"`
}

// NewCallOutcome says what became of a call that got an answer, by what CallStates
// has read; nil states say that nothing was read.
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
