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
