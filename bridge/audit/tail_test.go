package audit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
)

// logOf is a log with two runs. The second has one call that was sent and one that was
// refused.
func logOf(t *testing.T) *memstore.Store {
	t.Helper()
	s := memstore.New(nil)
	for _, r := range []ledger.Record{
		{Event: ledger.RunStarted, Run: "r1-first", Client: "claude"},
		{Event: ledger.RunEnded, Run: "r1-first", Outcome: ledger.Failed, Error: "one line\nand another", Duration: time.Second},
		{Event: ledger.RunStarted, Run: "r2-second", Configuration: "other"},
		{Event: ledger.Intent, Run: "r2-second", Call: 1, Server: "fs", Tool: "read"},
		{Event: ledger.Outcome, Run: "r2-second", Call: 1, Server: "fs", Tool: "read", Outcome: ledger.Done},
		{Event: ledger.Refusal, Run: "r2-second", Call: 2, Server: "fs", Tool: "write"},
		{Event: ledger.ConfigChanged},
	} {
		if err := s.Record(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestTail(t *testing.T) {
	t.Parallel()
	s := logOf(t)
	var seen []string
	follow := func(tail Tail) []string {
		t.Helper()
		seen = nil
		tail.Once, tail.Print = true, func(row ledger.Row) error {
			seen = append(seen, string(row.Record.Event))
			return nil
		}
		if err := tail.Follow(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	if got, want := follow(Tail{Back: 2}), []string{string(ledger.Outcome), string(ledger.Refusal)}; !slices.Equal(got, want) {
		t.Errorf("the last two are %q, want %q", got, want)
	}
	if got, want := follow(Tail{Back: 2, All: true}), []string{string(ledger.Refusal), string(ledger.ConfigChanged)}; !slices.Equal(got, want) {
		t.Errorf("the last two of all are %q, want %q", got, want)
	}
	if got, want := follow(Tail{Back: 9, Run: "r1"}), []string{string(ledger.RunStarted), string(ledger.RunEnded)}; !slices.Equal(got, want) {
		t.Errorf("of the first run there is %q, want %q", got, want)
	}
}

// Until the context ends, every row that is written meanwhile is printed once.
func TestTailFollows(t *testing.T) {
	t.Parallel()
	s := logOf(t)
	ctx, stop := context.WithCancel(t.Context())
	var seen []string
	tail := Tail{Back: 1, All: true, Print: func(row ledger.Row) error {
		if seen = append(seen, TailLine(row)[len("15:04:05 "):]); len(seen) == 2 {
			stop()
		}
		return nil
	}, Following: func() {
		if err := s.Record(t.Context(), ledger.Record{Event: ledger.RunStarted, Run: "r3", Client: "later"}); err != nil {
			t.Error(err)
		}
	}}
	if err := tail.Follow(ctx, s); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 || !strings.HasPrefix(seen[1], "r3 ") {
		t.Errorf("seen: %q", seen)
	}
}

func TestReadRuns(t *testing.T) {
	t.Parallel()
	s := logOf(t)
	q := ledger.Query{Events: []ledger.Event{ledger.RunStarted}, Newest: true}
	rows, left, err := ReadRuns(t.Context(), s, q, 0, func(configuration string) bool { return configuration == "" })
	if err != nil || left != 1 || len(rows) != 1 || rows[0].State != ledger.Failed {
		t.Errorf("of this configuration there are %+v, and %d more, %v", rows, left, err)
	}
	rows, left, err = ReadRuns(t.Context(), s, q, 0, func(string) bool { return true })
	if err != nil || left != 0 || len(rows) != 2 {
		t.Fatalf("there are %+v, and %d more, %v", rows, left, err)
	}
	table := RunTable(rows, true)
	if got, want := table[1][4:], []string{Open, "-", "2 (1 refused)", "", "other"}; !slices.Equal(got, want) {
		t.Errorf("the second is shown as %q, want %q", got, want)
	}
	if got, want := table[2][4:], []string{ledger.Failed, "1s", "0", "one line", "-"}; !slices.Equal(got, want) {
		t.Errorf("the first is shown as %q, want %q", got, want)
	}
}

// Whose runs are and which bridge has them are columns where that says something.
func TestRunTable(t *testing.T) {
	t.Parallel()
	rows := []RunRow{{Run: "r1", Principal: "ann"}, {Run: "r2", Principal: "ann"}}
	ends := func(want ...[]string) {
		t.Helper()
		for i, line := range RunTable(rows, false) {
			if got := line[8:]; !slices.Equal(got, want[i]) {
				t.Errorf("line %d ends with %q, want %q", i, got, want[i])
			}
		}
	}
	ends([]string{}, []string{}, []string{})
	rows[1].Bridge = "web-a"
	ends([]string{"bridge"}, []string{"-"}, []string{"web-a"})
	rows[0].Principal = "bob"
	ends([]string{"who", "bridge"}, []string{"bob", "-"}, []string{"ann", "web-a"})
	if got := RunTable(nil, false); len(got) != 1 || len(got[0]) != 8 {
		t.Errorf("no runs are %q", got)
	}
}

func TestSelection(t *testing.T) {
	t.Parallel()
	s, now := logOf(t), time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	q, err := (&Selection{Decisions: []string{"denied"}, Outcomes: []string{"denied"}, Runs: []string{"r2"}, Since: "2h", Until: "2026-11-20T11:30", Filters: []string{"args.path=/a=b"}}).Query(t.Context(), s, now)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(q.Runs, []string{"r2-second"}) || !slices.Equal(q.Outcomes, []string{ledger.Refused}) || len(q.Dispositions) > 0 {
		t.Errorf("selected is %+v", q)
	}
	if q.Fields["event"] != string(ledger.Refusal) || q.Fields["args.path"] != "/a=b" {
		t.Errorf("the fields are %q", q.Fields)
	}
	if !q.Since.Equal(now.Add(-2*time.Hour)) || !q.Until.Equal(now.Add(-30*time.Minute)) {
		t.Errorf("the period is %v to %v", q.Since, q.Until)
	}
	for wrong, s2 := range map[string]*Selection{
		"--risk must be one of": {Risks: []string{"huge"}},
		"--filter must be":      {Filters: []string{"args"}},
		"rows have no field":    {Filters: []string{"colour=red"}},
		"--since must be":       {Since: "-2h"},
		"--until must be":       {Until: "tomorrow"},
	} {
		_, err := s2.Query(t.Context(), s, now)
		if input := (*InputError)(nil); !errors.As(err, &input) || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if _, err := FindRun(t.Context(), s, "r"); err == nil || !strings.Contains(err.Error(), " or ") {
		t.Errorf("a beginning of two runs names one: %v", err)
	}
}
