package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
)

// A fullStore cannot be written to while full is set.
type fullStore struct {
	*memstore.Store
	full bool
}

func (s *fullStore) Record(ctx context.Context, all ...ledger.Record) error {
	if s.full {
		return ledger.ErrUnavailable
	}
	return s.Store.Record(ctx, all...)
}

func (s *fullStore) Err() error {
	if s.full {
		return ledger.ErrUnavailable
	}
	return nil
}

func open(t *testing.T) (*Recorder, *fullStore, *bytes.Buffer) {
	t.Helper()
	store, log := &fullStore{Store: memstore.New(nil)}, new(bytes.Buffer)
	r := New(Options{Store: store, Log: slog.New(slog.NewTextHandler(log, nil))})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, store, log
}

func names(t *testing.T, s ledger.Store) (all []string) {
	t.Helper()
	for row, err := range s.Rows(t.Context(), ledger.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row.Record.Name)
	}
	return all
}

// What happened while the store could not be written is recorded before anything that
// follows, and as long as that fails nothing else is recorded.
func TestBacklogComesFirst(t *testing.T) {
	t.Parallel()
	r, store, log := open(t)
	store.full = true
	r.Enqueue(t.Context(), ledger.Record{Event: ledger.ConfigChanged, Name: "edit 1"})
	r.Enqueue(t.Context(), ledger.Record{Event: ledger.ConfigChanged, Name: "edit 2"})
	if err := r.Record(t.Context(), ledger.Record{Event: ledger.Intent, Name: "call"}); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a call is recorded before the edit: %v", err)
	}
	if !strings.Contains(log.String(), "calls are refused until") || r.Unavailable() == "" {
		t.Errorf("nobody is told: %s", log)
	}
	store.full = false
	if err := r.Record(t.Context(), ledger.Record{Event: ledger.Intent, Name: "call"}); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, store), []string{"edit 1", "edit 2", "call"}; !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
	if why := r.Unavailable(); why != "" {
		t.Error(why)
	}
}

func TestRefusingRecorder(t *testing.T) {
	t.Parallel()
	why, store := errors.New("this command calls no tool"), memstore.New(nil)
	r := New(Options{Store: store, Refuse: why})
	if err := r.Record(t.Context(), ledger.Record{Event: ledger.Intent}); !errors.Is(err, why) || !r.Refuses() {
		t.Errorf("it is recorded: %v", err)
	}
	if r.Journal() != nil {
		t.Error("runs are kept where nothing is recorded")
	}
	if got := names(t, store); len(got) > 0 {
		t.Errorf("recorded %q", got)
	}
}

// Secrets are hidden in the store, and the log has the decisions without arguments.
func TestRecordsAreScrubbedAndLogged(t *testing.T) {
	t.Parallel()
	r, store, log := open(t)
	r.Secrets().Learn([]Server{{Env: map[string]string{"API_KEY": "key-9f2c41aa"}}}, func(string) (string, bool) { return "", false })
	r.Secrets().HideLogins(func(text string) string { return strings.ReplaceAll(text, "login-77", "[login]") })
	for _, rec := range []ledger.Record{
		{Event: ledger.Asked, Server: "files", Tool: "write", Args: json.RawMessage(`{"a":"key-9f2c41aa"}`)},
		{Event: ledger.Verdict, Answer: "yes, once", Approver: "ann", Comment: "login-77"},
		{Event: ledger.Verdict, Answer: "yes, once", Channel: "fallback"},
		{Event: ledger.Verdict, Answer: "no"},
		{Event: ledger.Verdict, Answer: "no", Outcome: ledger.Refused},
		{Event: ledger.Outcome},
	} {
		if err := r.Record(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	for row, err := range store.Rows(t.Context(), ledger.Query{}) {
		if text := string(row.Record.Args) + row.Record.Comment; err != nil || strings.Contains(text, "9f2c41aa") || strings.Contains(text, "login-77") {
			t.Errorf("recorded %s, %v", text, err)
		}
	}
	var said []string
	for line := range strings.Lines(log.String()) {
		_, message, _ := strings.Cut(line, " msg=")
		message, _, _ = strings.Cut(message, " trace=")
		said = append(said, strings.Trim(message, `"`))
	}
	if want := []string{"requested", "approved", "allowed by fallback", "denied", "verdict refused"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	if strings.Contains(log.String(), "hidden") {
		t.Errorf("an argument is in the log: %s", log)
	}
}

// Rows that are too old or too many are removed; without a limit, none are.
func TestPrune(t *testing.T) {
	t.Parallel()
	r, store, _ := open(t)
	now := time.Now()
	for i, name := range []string{"old", "older than an hour", "new", "newest"} {
		rec := ledger.Record{Event: ledger.ConfigChanged, Name: name, Time: now.Add(time.Duration(i-2) * 2 * time.Hour).Add(time.Minute)}
		if err := r.Record(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if at, err := TimeOfNewest(t.Context(), store, 9); err != nil || !at.IsZero() {
		t.Errorf("of nine rows the first is of %v, %v", at, err)
	}
	if n, err := r.prune(t.Context(), 0, 9); n != 0 || err != nil {
		t.Errorf("%d rows were removed, %v", n, err)
	}
	if n, err := r.prune(t.Context(), 3*time.Hour, 0); n != 1 || err != nil {
		t.Errorf("%d rows were too old, %v", n, err)
	}
	if n, err := r.prune(t.Context(), 0, 2); n != 2 || err != nil { // one of the two that stay is the record of what was removed
		t.Errorf("%d rows were too many, %v", n, err)
	}
}

// An observer is told of every record, written or not, with its secrets taken out, and
// how many wait.
func TestObserver(t *testing.T) {
	t.Parallel()
	r, store, _ := open(t)
	var told []string
	r.Observe(func(all []ledger.Record, took time.Duration, err error) {
		for _, rec := range all {
			told = append(told, rec.Name)
		}
		if err != nil {
			told = append(told, "not written")
		} else if took <= 0 {
			told = append(told, "in no time")
		}
	})
	if err := r.Record(t.Context(), ledger.Record{Name: "one"}, ledger.Record{Name: "two"}); err != nil {
		t.Fatal(err)
	}
	store.full = true
	r.Enqueue(t.Context(), ledger.Record{Name: "edit"})
	if n := r.Backlog(); n != 1 {
		t.Errorf("%d records wait", n)
	}
	store.full = false
	if err := r.Record(t.Context(), ledger.Record{Name: "three"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"one", "two", "edit", "not written", "edit", "three"}; !slices.Equal(told, want) || r.Backlog() != 0 {
		t.Errorf("told of %q, want %q", told, want)
	}
	none := New(Options{})
	none.Observe(func(all []ledger.Record, took time.Duration, err error) {
		if len(all) != 1 || took != 0 || err != nil {
			t.Errorf("without a store: %d records in %v, %v", len(all), took, err)
		}
		told = nil
	})
	if err := none.Record(t.Context(), ledger.Record{Name: "four"}); err != nil || told != nil {
		t.Errorf("without a store nobody is told: %v", err)
	}
}
