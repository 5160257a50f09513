package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Ranks are how many calls were decided, and of how many the risk is high, as it is
// shown: a server's own hint on a call of which more is known does not count.
type ranks struct{ Calls, High int }

// A decided is what a row of the audit log has of a call.
type decided struct {
	Run     string
	Call    int
	Event   string
	Risk    string
	Reasons []string
}

// ranked reads from the audit log how risky the calls are that were sent so far. Once a
// call was approved, where it goes is not new any more, so what it was when people
// were asked counts as well.
func (st *stage) ranked(ctx context.Context) (all ranks, err error) {
	rows, err := st.exported(ctx, "request,verdict,intent")
	if err != nil {
		return all, err
	}
	type one struct {
		run  string
		call int
	}
	high := map[one]bool{}
	for line := range bytes.Lines(rows) {
		var d decided
		if err := json.Unmarshal(line, &d); err != nil {
			return all, fmt.Errorf("%s: a row of the audit log: %w", st.Name, err)
		}
		if d.Event == "intent" {
			all.Calls++
		}
		if d.high() {
			high[one{d.Run, d.Call}] = true
		}
	}
	all.High = len(high)
	return all, nil
}

// exported reads rows of the audit log, one a line.
func (st *stage) exported(ctx context.Context, events string) ([]byte, error) {
	export := st.command(ctx, "audit", "export", "--config", st.config, "--event-type", events)
	var problem bytes.Buffer
	export.Stderr = &problem
	rows, err := export.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: reading the audit log: %w\n%s", st.Name, err, problem.String())
	}
	return rows, nil
}

// high reports whether a person is told that the risk is high. What is known of a call
// stands among its reasons; a guess is about its words.
func (d decided) high() bool {
	if d.Risk != "high" && d.Risk != "critical" {
		return false
	}
	hint, known := false, false
	for _, reason := range d.Reasons {
		text, ok := strings.CutPrefix(reason, "risk ")
		if !ok {
			continue
		}
		risk, why, _ := strings.Cut(text, ": ")
		switch {
		case why == hinted:
			hint = true
		case strings.HasPrefix(why, "passes on "): // said beside the risk
		case risk == d.Risk:
			return true
		default:
			known = known || !slices.Contains(guesses, why)
		}
	}
	return !hint || !known
}

// How the reasons of a risk read that come from what a server says of itself.
const hinted = "destructiveHint"

var guesses = []string{"openWorldHint", "nothing is known of the tool", "readOnlyHint of a trusted server"}

func (r ranks) String() string {
	if r.Calls == 0 {
		return "–"
	}
	return fmt.Sprintf("%d of %d, %d %%", r.High, r.Calls, 100*r.High/r.Calls)
}
