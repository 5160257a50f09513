package sqlstore

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
)

// A thawed is a copy of the stores that an earlier format wrote, and what is
// known of them: see cmd/codemode-bridge/testdata/frozen/README.md.
type thawed struct {
	folder         string // the frozen one
	dir            string
	Rows           int64
	Runs, Requests map[string]string // ids, by what became of the run
}

func thaw(t *testing.T, folder string) thawed {
	t.Helper()
	s := thawed{folder: folder, dir: t.TempDir()}
	for _, name := range []string{"audit.db", "audit.db.key", "audit-requests.db"} {
		content, err := os.ReadFile(filepath.Join(folder, "codemode-bridge", "state", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(s.dir, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What earlier formats wrote is read and written by today's.
func TestFrozen(t *testing.T) {
	all, err := filepath.Glob("../../cmd/codemode-bridge/testdata/frozen/*/manifest.json")
	if err != nil || len(all) == 0 {
		t.Fatalf("there are %d frozen folders: %v", len(all), err)
	}
	for _, file := range all {
		folder := filepath.Dir(file)
		t.Run(filepath.Base(folder)+"/records", func(t *testing.T) { thaw(t, folder).records(t) })
		t.Run(filepath.Base(folder)+"/journals", func(t *testing.T) { thaw(t, folder).journals(t) })
		t.Run(filepath.Base(folder)+"/requests", func(t *testing.T) { thaw(t, folder).requests(t) })
	}
}

func (s thawed) open(t *testing.T) *DB {
	t.Helper()
	db := open(t, Options{Path: filepath.Join(s.dir, "audit.db")})
	if err := db.Err(); err != nil {
		t.Fatal(err)
	}
	return db
}

func (s thawed) records(t *testing.T) {
	db := s.open(t)
	var events []ledger.Event
	for row, err := range db.Rows(t.Context(), ledger.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Seq != int64(len(events)+1) || row.Record.Time.IsZero() {
			t.Errorf("row %d is %+v", len(events)+1, row)
		}
		events = append(events, row.Record.Event)
	}
	for _, event := range []ledger.Event{ledger.RunStarted, ledger.Preview, ledger.Intent, ledger.Outcome, ledger.Refusal, ledger.Asked, ledger.Answered, ledger.Verdict,
		ledger.Granted, ledger.SavedScript, ledger.RunPaused, ledger.RunEnded, ledger.BridgeStarted, ledger.ToolChanged, ledger.ToolAccepted, ledger.ToolBlocked} {
		if !slices.Contains(events, event) {
			t.Errorf("no row is read as %q", event)
		}
	}
	q := ledger.Query{Runs: []string{s.Runs["edited"]}, Tool: "fake__*", Events: []ledger.Event{ledger.Intent}, Dispositions: []string{"ask"}, Risks: []string{"high"}}
	found := 0
	for row, err := range db.Rows(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		found++
		r := row.Record
		if string(r.Args) != `{"path":"c.txt"}` || r.Line != 1 || slices.Contains([]string{r.Session, r.Digest, r.Revision}, "") {
			t.Errorf("the call that was edited: %+v", r)
		}
	}
	if found != 1 {
		t.Errorf("%d rows are found by what is in them, want 1", found)
	}

	if err := db.Record(t.Context(), ledger.Record{Event: ledger.RunStarted, Run: "new", Durable: true}); err != nil {
		t.Fatal(err)
	}
	report, err := db.Verify(t.Context(), nil)
	if err != nil || int64(len(events)) != s.Rows {
		t.Errorf("%d rows, want %d; %v", len(events), s.Rows, err)
	}
	want := ledger.Report{Whole: true, Sealed: true, Rows: s.Rows + 1, First: 1, Last: s.Rows + 1}
	if diff := cmp.Diff(want, report, cmpopts.IgnoreFields(ledger.Report{}, "Hash")); diff != "" {
		t.Errorf("after one more row (-want +got):\n%s", diff)
	}
}

func (s thawed) journals(t *testing.T) {
	db := s.open(t)
	all, err := db.Runs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]ledger.JournalState{}
	for _, k := range all {
		states[k.Run] = k.State
		kept, entries, err := db.Read(t.Context(), k.Run)
		if err != nil {
			t.Fatalf("reading the journal of run %s: %v", k.Run, err)
		}
		if diff := cmp.Diff(k, kept); diff != "" {
			t.Errorf("run %s in the list, and read (-list +read):\n%s", k.Run, diff)
		}
		if k.Began.IsZero() || !k.Until.After(k.Began) {
			t.Errorf("run %s began at %s and expires at %s", k.Run, k.Began, k.Until)
		}
		if (k.Owner != "") != (k.State == ledger.Live) {
			t.Errorf("run %s is %s and its owner is %q", k.Run, k.State, k.Owner)
		}
		if len(entries) < 2 || entries[0].Kind != ledger.Began {
			t.Fatalf("the journal of run %s has %d entries: %+v", k.Run, len(entries), entries)
		}
		if first := entries[0]; len(first.Common) == 0 || !json.Valid(first.Body) {
			t.Errorf("the journal of run %s begins with %+v", k.Run, first)
		}
		bytes := int64(0)
		for _, e := range entries {
			bytes += int64(len(e.Body))
		}
		if bytes != k.Bytes {
			t.Errorf("the journal of run %s has %d bytes, want %d", k.Run, bytes, k.Bytes)
		}
	}
	for name, want := range map[string]ledger.JournalState{
		"finished": ledger.Finished, "paused": ledger.Paused, "allowed": ledger.Paused, "half": ledger.Paused, "interrupted": ledger.Live,
	} {
		if got := states[s.Runs[name]]; got != want {
			t.Errorf("the run %s is %q, want %q", name, got, want)
		}
	}

	// A run goes over to another bridge, which adds to its journal and ends it.
	for _, name := range []string{"paused", "interrupted"} {
		run := s.Runs[name]
		kept, err := db.ChangeRun(t.Context(), run, func(k *ledger.JournaledRun) error {
			k.Owner, k.State = "today", ledger.Live
			return nil
		})
		if err != nil || kept.Owner != "today" {
			t.Fatalf("%+v, %v", kept, err)
		}
		if err := db.Append(t.Context(), ledger.JournalEntry{Run: run, Owner: "gone", Kind: ledger.Noted}); !errors.Is(err, ledger.ErrNotOwner) {
			t.Errorf("a bridge that does not own it added to it: %v", err)
		}
		if err := db.Append(t.Context(), ledger.JournalEntry{Run: run, Owner: "today", Kind: ledger.Noted, Body: []byte("more")}); err != nil {
			t.Fatal(err)
		}
		_, entries, err := db.Read(t.Context(), run)
		if err != nil || string(entries[len(entries)-1].Body) != "more" {
			t.Errorf("after one more entry: %d, %v", len(entries), err)
		}
		if err := db.Append(t.Context(), ledger.JournalEntry{Run: run, Owner: "today", Kind: ledger.Ended}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := db.Read(t.Context(), run); !errors.Is(err, ledger.ErrNoJournal) {
			t.Errorf("after its end: %v", err)
		}
	}
	if err := db.Append(t.Context(), ledger.JournalEntry{Run: "new", Owner: "today", Kind: ledger.Began, Body: []byte("a new script")}); err != nil {
		t.Error(err)
	}
}

func (s thawed) requests(t *testing.T) {
	store, err := OpenRequests(t.Context(), filepath.Join(s.dir, "audit-requests.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	entries, err := store.Requests(t.Context(), approval.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]approval.StoredRequest{}
	for _, e := range entries {
		byID[e.ID] = e
		if len(e.Items) != 1 {
			t.Fatalf("the request %s is read as %+v", e.ID, e)
		}
		item := e.Items[0]
		if slices.Contains([]string{item.Key.Tool, item.Key.Session, e.Decision.Revision}, "") || !json.Valid(item.Shown.JSON) || len(e.Preview.Calls) == 0 {
			t.Errorf("the request %s is read as %+v", e.ID, e)
		}
	}
	for name, want := range map[string]string{"approved": "yes ann", "edited": "yes bob", "declined": "no bob", "agreed": "yes bob and carol", "allowed": "yes ann", "refused": "no bob", "paused": "", "half": "", "interrupted": ""} {
		e, ok := byID[s.Requests[name]]
		got := ""
		if v := e.Verdict; v != nil && v.Approve {
			got = "yes " + v.By
		} else if v != nil {
			got = "no " + v.By
		}
		if !ok || e.Run != s.Runs[name] {
			t.Errorf("%s: the request is %+v, want one of run %s", name, e, s.Runs[name])
		}
		if got != want || e.Open(e.Asked) != (want == "") {
			t.Errorf("%s: the verdict is %q, want %q: %+v", name, got, want, e)
		}
	}
	if e := byID[s.Requests["edited"]]; !e.Verdict.Edited || !e.Verdict.Strong || e.Verdict.Args != nil {
		t.Errorf("the edited verdict is %+v", e.Verdict)
	}
	half := byID[s.Requests["half"]]
	if len(half.Votes) != 1 || half.Votes[0].By != "bob" || half.Missing() != "1 of 2 yeses" {
		t.Errorf("half an answer is %+v, %q", half.Votes, half.Missing())
	}
	grants, err := store.Grants(t.Context())
	if err != nil || len(grants) != 1 {
		t.Fatalf("the grants are %+v, %v", grants, err)
	}
	grant := grants[0]
	want := approval.Grant{Key: approval.Key{Server: "web", Tool: "fetch"}, Script: "web__fetch", Profile: "careful", By: "ann", Left: 99}
	if filepath.Base(s.folder) != "e5a6b4b" { // whose grants said neither what they cover nor how many calls in all
		want.Uses, want.Cover = 100, approval.Cover{Kind: "fetch", Free: []string{"page"}}
	}
	ofItsTime := cmpopts.IgnoreFields(approval.Grant{}, "ID", "Bridge", "Key.Configuration", "Key.Identity", "Key.Session", "Key.Definition", "Key.Revision", "Key.Args", "Covers", "Client", "Configuration", "Made", "Until")
	if diff := cmp.Diff(want, grant, ofItsTime); diff != "" {
		t.Errorf("the grant (-want +got):\n%s", diff)
	}
	if !grant.Until.After(grant.Made) {
		t.Errorf("the grant is from %v until %v", grant.Made, grant.Until)
	}

	// It is answered today, and forgotten in its time.
	now := half.Asked.Add(time.Hour)
	if _, err := store.Update(t.Context(), half.ID, func(e *approval.StoredRequest) error {
		e.Verdict = &approval.Verdict{Reason: approval.Declined, By: "ann", Time: now}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if open, err := store.Requests(t.Context(), approval.Filter{Run: half.Run, Open: half.Asked}); err != nil || len(open) != 0 {
		t.Errorf("after its answer %d requests are open, %v", len(open), err)
	}
	if err := store.Forget(t.Context(), now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	left, err := store.Requests(t.Context(), approval.Filter{})
	if err != nil || slices.ContainsFunc(left, func(e approval.StoredRequest) bool { return e.Verdict != nil }) || len(left) == 0 {
		t.Errorf("what was answered is forgotten, and the rest is not: %d are left, %v", len(left), err)
	}
}
