package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Every field of a record must reach the log: a field that is forgotten in
// attrs would be lost without a trace.
func TestLogWritesEveryField(t *testing.T) {
	full := Record{
		Event: Outcome, Time: time.Unix(1, 0), Run: "r", Session: "s", Client: "c", Profile: "p", Configuration: "cf", Principal: "pr", TraceID: "t",
		Call: 7, Trace: "r.7", Line: 3, Column: 4, Server: "sv", Tool: "tl", Identity: "i", Repeatable: true, Looked: LookedAll, Written: new(bool), Brief: true, Sources: []SourceMatch{{Call: 1, Argument: "a", Length: 24, Labels: []string{"private"}}}, Args: json.RawMessage(`{"a":1}`), Digest: "d",
		Disposition: "allow", Risk: "low", Reasons: []string{"why"}, Revision: "rev", Notify: true,
		Request: "q", Approver: "me", OnBehalfOf: "you", Comment: "fine", Counted: new(bool), EditedArgs: json.RawMessage(`{"a":2}`), EditedDigest: "d2", EditedBy: "me", Channel: "page", Answer: "yes", Grant: "g", GrantUses: 1, Box: "files network", Would: "ask",
		Outcome: Failed, Error: "e", Wait: time.Minute, Duration: time.Second, Sent: 1, Received: 2,
		Name: "n", Script: "return 1", ScriptHash: "h", Input: json.RawMessage(`1`), Preview: json.RawMessage(`[]`),
		Detail: json.RawMessage(`{}`), Durable: true, Journal: []JournalEntry{{Run: "r", Kind: Sent, Body: []byte("in the clear")}},
	}
	v := reflect.ValueOf(full)
	var out bytes.Buffer
	if err := (Log{slog.NewJSONHandler(&out, nil)}).Record(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if v.Field(i).IsZero() {
			t.Errorf("the test leaves %s empty", field.Name)
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch name {
		case "event":
			name = "msg"
		case "duration_ns":
			name = "duration"
		case "wait_ns":
			name = "wait"
		case "-":
			continue // asks something of the recorder, says nothing
		}
		if line[name] == nil {
			t.Errorf("%s is missing from %s", name, out.String())
		}
	}
	if strings.Contains(out.String(), "in the clear") {
		t.Errorf("an entry of the journal is in the log: %s", out.String())
	}
	if line["level"] != "WARN" {
		t.Errorf("a failed call is logged at %v, want WARN", line["level"])
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestRecordThatCannotBeWrittenIsAnError(t *testing.T) {
	err := (Log{slog.NewJSONHandler(fullDisk{}, nil)}).Record(t.Context(), Record{Event: Intent})
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v", err)
	}
}

// What became of a call that was answered: what the records say, or else what the
// answer lets one expect, or nothing where nobody has read them.
func TestCallOutcomes(t *testing.T) {
	states := map[int]CallState{1: {State: Failed, Error: "no such file"}}
	for _, row := range []struct {
		call   int
		answer string
		states map[int]CallState
		want   CallOutcome
	}{
		{1, "approved", states, CallOutcome{Call: 1, Answer: "approved", State: Failed, Error: "no such file"}},
		{2, "approved", states, CallOutcome{Call: 2, Answer: "approved", State: Waiting}},
		{3, "denied", states, CallOutcome{Call: 3, Answer: "denied", State: Refused}},
		{3, "unanswered", states, CallOutcome{Call: 3, Answer: "unanswered", State: Refused}},
		{2, "approved", nil, CallOutcome{Call: 2, Answer: "approved"}},
		{3, "denied", nil, CallOutcome{Call: 3, Answer: "denied"}},
	} {
		if got := NewCallOutcome(row.call, row.answer, row.states); got != row.want {
			t.Errorf("call %d, %s, of %v: %+v, want %+v", row.call, row.answer, row.states, got, row.want)
		}
	}
}
