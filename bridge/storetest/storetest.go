// Package storetest is the test suite that every ledger.Store must pass. A
// store's own tests call Run, and add tests for what only some stores can do:
// survive a kill, serve several processes, detect damage.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/bridge/ledger"
)

// A Place makes room for one test's store. It returns a function that opens the
// store: the same one each time if stores of its kind can be opened again, otherwise
// a new one. What was opened is closed when the test ends. A nil clock is the
// system's.
type Place func(t *testing.T) func(clock func() time.Time) ledger.Store

// Run runs the suite. reopens reports whether a store can be opened again.
func Run(t *testing.T, reopens bool, place Place) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, open)
	}{
		{"Order", order}, {"Everything", everything}, {"Concurrency", concurrency}, {"Paging", paging},
		{"TimeZones", timeZones}, {"Filters", filters}, {"Verify", verify}, {"Prune", prune},
		{"PruneAll", pruneAll}, {"Changed", changed}, {"Cancellation", cancellation}, {"Refusals", refusals},
		{"ClockGoesBack", clockGoesBack}, {"Bounds", bounds}, {"Links", linksAreRows},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, place(t)) })
	}
	if reopens {
		t.Run("Reopen", func(t *testing.T) { reopen(t, place(t)) })
	}
}

type open = func(clock func() time.Time) ledger.Store

var began = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// ticking returns a clock that moves on by a second each time it is read.
func ticking() func() time.Time {
	var mu sync.Mutex
	now := began
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
}

// rows reads the rows that q selects.
func rows(t *testing.T, s ledger.Store, q ledger.Query) []ledger.Row {
	t.Helper()
	var all []ledger.Row
	for row, err := range s.Rows(t.Context(), q) {
		if err != nil {
			t.Fatalf("reading rows: %v", err)
		}
		all = append(all, row)
	}
	return all
}

func numbers(rows []ledger.Row) []int64 {
	all := []int64{}
	for _, r := range rows {
		all = append(all, r.Seq)
	}
	return all
}

func fill(t *testing.T, s ledger.Store, n int) {
	t.Helper()
	for i := range n {
		record(t, s, ledger.Record{Event: ledger.Intent, Run: "r", Call: i + 1})
	}
}

func record(t *testing.T, s ledger.Store, r ledger.Record) {
	t.Helper()
	if err := s.Record(t.Context(), r); err != nil {
		t.Fatalf("recording: %v", err)
	}
}

func whole(t *testing.T, s ledger.Store, against *ledger.Checkpoint) ledger.Report {
	t.Helper()
	report, err := s.Verify(t.Context(), against)
	if err != nil || !report.Whole {
		t.Fatalf("verify: %+v, %v", report, err)
	}
	return report
}

func order(t *testing.T, open open) {
	s := open(nil)
	if seq, hash, err := s.Head(t.Context()); seq != 0 || hash != (ledger.Hash{}) || err != nil {
		t.Fatalf("head of an empty store: %d %s %v", seq, hash, err)
	}
	whole(t, s, nil)
	fill(t, s, 50)
	got := rows(t, s, ledger.Query{})
	if len(got) != 50 {
		t.Fatalf("%d rows, want 50", len(got))
	}
	for i, row := range got {
		if row.Seq != int64(i+1) || row.Record.Call != i+1 {
			t.Fatalf("row %d is number %d, call %d", i, row.Seq, row.Record.Call)
		}
	}
	if seq, hash, err := s.Head(t.Context()); seq != 50 || hash != got[49].Hash || err != nil {
		t.Errorf("head %d %s %v, last row %d %s", seq, hash, err, got[49].Seq, got[49].Hash)
	}
}

// Full has every field that a record can have.
var Full = ledger.Record{
	Event: ledger.Outcome, Time: began, Run: "run-1", Session: "s", Client: "client <&>", Profile: "supervised",
	Call: 7, Trace: "run-1.7", Server: "fs", Tool: "write", Args: json.RawMessage(`{"path":"/a","n":12345678901234567890}`),
	Digest: "sha256:00", Disposition: "ask", Risk: "high", Reasons: []string{"asklist fs__*", "“quoted”\n"}, Revision: "v1",
	Notify: true, Line: 3, Column: 9, Request: "q-1", Approver: "ann", Channel: "page", Answer: "yes", Grant: "g-1",
	Outcome: ledger.Failed, Error: "no such file", Wait: time.Minute, Duration: time.Second, Sent: 1, Received: 2,
	Name: "saved", Script: "return 1 // \u2028", ScriptHash: "sha256:11", Input: json.RawMessage(`[1,null]`),
	Preview: json.RawMessage(`{"calls":[]}`), Detail: json.RawMessage(`{"a":"b"}`),
}

// everything: what is given back is what was recorded, but for Durable.
func everything(t *testing.T, open open) {
	s := open(nil)
	sent := Full
	sent.Durable = true
	record(t, s, sent)
	want, _ := json.Marshal(Full)
	got, _ := json.Marshal(rows(t, s, ledger.Query{})[0].Record)
	if string(got) != string(want) {
		t.Errorf("recorded\n%s\ngot\n%s", want, got)
	}
}

// bounds: no text of a record is kept longer than ledger.MaxText, whoever wrote it.
func bounds(t *testing.T, open open) {
	s := open(nil)
	long := strings.Repeat("x", 1<<20)
	record(t, s, ledger.Record{Event: ledger.Refusal, Run: "r", Call: 1, Client: long, Tool: long, Error: long, Reasons: []string{long}, Args: json.RawMessage(`{"a":"` + long + `"}`)})
	r := rows(t, s, ledger.Query{})[0].Record
	for name, text := range map[string]string{"client": r.Client, "tool": r.Tool, "error": r.Error, "reason": r.Reasons[0], "arguments": string(r.Args)} {
		if len(text) > ledger.MaxText || !strings.Contains(text, "bytes left out") {
			t.Errorf("of the %s are kept %d bytes", name, len(text))
		}
	}
}

func concurrency(t *testing.T, open open) {
	s := open(nil)
	const writers, each = 8, 50
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := range each {
				r := ledger.Record{Event: ledger.Intent, Run: fmt.Sprint(w), Call: i + 1, Durable: i%10 == 0}
				if err := s.Record(t.Context(), r); err != nil {
					t.Errorf("recording: %v", err)
				}
			}
		})
	}
	wait.Go(func() { // readers are not disturbed
		for range 10 {
			last := int64(0)
			for row, err := range s.Rows(t.Context(), ledger.Query{}) {
				if err != nil || row.Seq != last+1 {
					t.Errorf("row %d after %d: %v", row.Seq, last, err)
				}
				last = row.Seq
			}
		}
	})
	wait.Wait()
	calls := make(map[string]int)
	for _, row := range rows(t, s, ledger.Query{}) {
		if calls[row.Record.Run]++; row.Record.Call != calls[row.Record.Run] {
			t.Fatalf("run %s: call %d is its record %d", row.Record.Run, row.Record.Call, calls[row.Record.Run])
		}
	}
	for w := range writers {
		if calls[fmt.Sprint(w)] != each {
			t.Errorf("writer %d has %d rows, want %d", w, calls[fmt.Sprint(w)], each)
		}
	}
	if report := whole(t, s, nil); report.Rows != writers*each {
		t.Errorf("verify read %d rows", report.Rows)
	}
}

func paging(t *testing.T, open open) {
	s := open(nil)
	const n = 25
	for i := range n {
		record(t, s, ledger.Record{Event: ledger.Intent, Run: fmt.Sprint(i % 2)})
	}
	var forth, back []int64
	for after := int64(0); ; {
		page := rows(t, s, ledger.Query{Runs: []string{"1"}, After: after, Limit: 5})
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].Seq
		forth = append(forth, numbers(page)...)
	}
	for before := int64(0); ; {
		page := rows(t, s, ledger.Query{Runs: []string{"1"}, Before: before, Newest: true, Limit: 5})
		if len(page) == 0 {
			break
		}
		before = page[len(page)-1].Seq
		back = append(back, numbers(page)...)
	}
	if len(forth) != n/2 || forth[0] != 2 || forth[len(forth)-1] != 24 {
		t.Errorf("paged forth: %d", forth)
	}
	slices.Reverse(back)
	if !slices.Equal(forth, back) {
		t.Errorf("paged back: %d", back)
	}
	if got := numbers(rows(t, s, ledger.Query{After: 3, Before: 6})); !slices.Equal(got, []int64{4, 5}) {
		t.Errorf("between 3 and 6: %d", got)
	}
	for row, err := range s.Rows(t.Context(), ledger.Query{}) { // a reader may stop
		if err != nil || row.Seq != 1 {
			t.Fatalf("row %d, %v", row.Seq, err)
		}
		break
	}
}

func timeZones(t *testing.T, open open) {
	s := open(nil)
	east, west := time.FixedZone("east", 11*3600), time.FixedZone("west", -7*3600)
	whens := []time.Time{began, began.Add(time.Second), began.Add(1500 * time.Millisecond), began.Add(1500*time.Millisecond + 1), began.Add(2 * time.Second)}
	for i, at := range whens {
		record(t, s, ledger.Record{Event: ledger.Intent, Time: at.In([]*time.Location{east, west}[i%2])})
	}
	for i, row := range rows(t, s, ledger.Query{}) {
		if got := row.Record.Time; !got.Equal(whens[i]) || got.Location() != time.UTC {
			t.Errorf("row %d: time %v, want %v in UTC", row.Seq, got, whens[i])
		}
	}
	for i, at := range whens {
		if got := numbers(rows(t, s, ledger.Query{Since: at.In(west)})); len(got) != len(whens)-i {
			t.Errorf("since %v: %d", at, got)
		}
		if got := numbers(rows(t, s, ledger.Query{Until: at.In(east), Newest: true})); len(got) != i {
			t.Errorf("until %v: %d", at, got)
		}
	}
}

func filters(t *testing.T, open open) {
	s := open(nil)
	odd := ledger.Record{
		Event: ledger.Intent, Time: began, Run: "o", Session: "o", Client: "o", Profile: "o", Server: "a", Tool: "b__c",
		Approver: "o", Channel: "o", Disposition: "allow", Outcome: ledger.Done, Risk: "low",
		Args: json.RawMessage(`{"path":"/b","deep":{"n":2},"yes":true}`),
	}
	record(t, s, odd)  // 1
	record(t, s, Full) // 2
	record(t, s, odd)  // 3
	record(t, s, ledger.Record{Event: ledger.BridgeStarted, Time: began.Add(time.Hour), Tool: "search_tools"})
	for _, r := range []ledger.Record{{Approver: "bob", OnBehalfOf: "cat"}, {Approver: "bob for cat"}, {Approver: "bob and dan", OnBehalfOf: "kim and eve"}} { // 5 to 7
		r.Event, r.Time = ledger.SignedIn, began
		record(t, s, r)
	}
	odds, full := []int64{1, 3}, []int64{2}
	for _, row := range []struct {
		name string
		q    ledger.Query
		want []int64
	}{
		{"everything", ledger.Query{}, []int64{1, 2, 3, 4, 5, 6, 7}},
		{"events", ledger.Query{Events: []ledger.Event{ledger.Outcome}}, full},
		{"two events", ledger.Query{Events: []ledger.Event{ledger.Outcome, ledger.Intent}}, []int64{1, 2, 3}},
		{"runs", ledger.Query{Runs: []string{"o"}}, odds},
		{"two runs", ledger.Query{Runs: []string{"run-1", "none", "o"}}, []int64{1, 2, 3}},
		{"no such run", ledger.Query{Runs: []string{"none"}}, []int64{}},
		{"a run that is SQL", ledger.Query{Runs: []string{"' OR 1=1 --"}}, []int64{}},
		{"sessions", ledger.Query{Sessions: []string{"s"}}, full},
		{"clients", ledger.Query{Clients: []string{"client <&>"}}, full},
		{"profiles", ledger.Query{Profiles: []string{"o"}}, odds},
		{"servers", ledger.Query{Servers: []string{"fs"}}, full},
		{"a server is no prefix", ledger.Query{Servers: []string{"a__b"}}, []int64{}},
		{"approvers", ledger.Query{Approvers: []string{"ann"}}, full},
		{"in whose name", ledger.Query{Approvers: []string{"cat"}}, []int64{5, 6}},
		{"who decided for others", ledger.Query{Approvers: []string{"bob"}}, []int64{5, 6, 7}},
		{"one of several", ledger.Query{Approvers: []string{"dan"}}, []int64{7}},
		{"in whose name one of several did", ledger.Query{Approvers: []string{"eve"}}, []int64{7}},
		{"part of a name of those", ledger.Query{Approvers: []string{"im"}}, []int64{}},
		{"part of a name", ledger.Query{Approvers: []string{"an"}}, []int64{}},
		{"an approver that is SQL", ledger.Query{Approvers: []string{"' OR 1=1 --"}}, []int64{}},
		{"channels", ledger.Query{Channels: []string{"page"}}, full},
		{"dispositions", ledger.Query{Dispositions: []string{"ask"}}, full},
		{"outcomes", ledger.Query{Outcomes: []string{ledger.Failed}}, full},
		{"risks", ledger.Query{Risks: []string{"low"}}, odds},
		{"a tool", ledger.Query{Tool: "fs__write"}, full},
		{"tools of a server", ledger.Query{Tool: "a__*"}, odds},
		{"tools by their end", ledger.Query{Tool: "*__c"}, odds},
		{"a tool without a server", ledger.Query{Tool: "search_*"}, []int64{4}},
		{"any tool", ledger.Query{Tool: "*"}, []int64{1, 2, 3, 4}},
		{"a tool with a sign of another language", ledger.Query{Tool: "fs__writ?"}, []int64{}},
		{"since", ledger.Query{Since: began.Add(time.Minute)}, []int64{4}},
		{"until", ledger.Query{Until: began.Add(time.Minute)}, []int64{1, 2, 3, 5, 6, 7}},
		{"a field", ledger.Query{Fields: map[string]string{"revision": "v1"}}, full},
		{"a number", ledger.Query{Fields: map[string]string{"line": "3"}}, full},
		{"a member of the arguments", ledger.Query{Fields: map[string]string{"args.path": "/b"}}, odds},
		{"deeper", ledger.Query{Fields: map[string]string{"args.deep.n": "2", "args.yes": "true"}}, odds},
		{"an integer beyond doubles", ledger.Query{Fields: map[string]string{"args.n": "12345678901234567890"}}, full},
		{"text with signs", ledger.Query{Fields: map[string]string{"client": "client <&>"}}, full},
		{"a field that nothing has", ledger.Query{Fields: map[string]string{"args.none.n": "2"}}, []int64{}},
		{"two that agree", ledger.Query{Runs: []string{"o"}, Risks: []string{"low"}, Tool: "a__*"}, odds},
		{"two that do not", ledger.Query{Runs: []string{"o"}, Risks: []string{"high"}}, []int64{}},
		{"newest", ledger.Query{Runs: []string{"o"}, Newest: true}, []int64{3, 1}},
		{"two runs, newest, limited", ledger.Query{Runs: []string{"o", "run-1"}, Newest: true, Limit: 2}, []int64{3, 2}},
	} {
		if got := numbers(rows(t, s, row.q)); !slices.Equal(got, row.want) {
			t.Errorf("%s: rows %d, want %d", row.name, got, row.want)
		}
	}
}

func verify(t *testing.T, open open) {
	s := open(ticking())
	fill(t, s, 10)
	early, err := s.Checkpoint(t.Context())
	if err != nil || early.Seq != 10 {
		t.Fatalf("checkpoint %v, %v", early, err)
	}
	if again, err := ledger.ParseCheckpoint(early.String()); err != nil || again != early {
		t.Fatalf("%q reads as %v, %v", early, again, err)
	}
	fill(t, s, 5)
	report := whole(t, s, &early)
	last := rows(t, s, ledger.Query{Newest: true, Limit: 1})[0]
	if diff := cmp.Diff(ledger.Report{Whole: true, Sealed: true, Rows: 15, First: 1, Last: 15, Hash: last.Hash}, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	for _, row := range []struct {
		name   string
		change func(*ledger.Checkpoint)
		kind   ledger.Kind
	}{
		{"of another store", func(c *ledger.Checkpoint) { c.Store = "0123" }, ledger.OtherStore},
		{"with another hash", func(c *ledger.Checkpoint) { c.Hash[0] ^= 1 }, ledger.OtherStore},
		{"with another number", func(c *ledger.Checkpoint) { c.Seq = 9 }, ledger.OtherStore},
		{"with another time", func(c *ledger.Checkpoint) { c.Time = c.Time.Add(1) }, ledger.OtherStore},
		{"not signed", func(c *ledger.Checkpoint) { c.MAC = ledger.Hash{} }, ledger.OtherStore},
	} {
		c := early
		row.change(&c)
		if report, err := s.Verify(t.Context(), &c); err != nil || report.Whole || report.Kind != row.kind {
			t.Errorf("a checkpoint %s: %+v, %v", row.name, report, err)
		}
	}
	other := open(nil)
	if seq, _, _ := other.Head(t.Context()); seq == 0 { // a store of its own
		if report, err := other.Verify(t.Context(), &early); err != nil || report.Kind != ledger.OtherStore {
			t.Errorf("another store's checkpoint: %+v, %v", report, err)
		}
	}
}

func prune(t *testing.T, open open) {
	s := open(ticking()) // rows 1 to 20 are of second 1 to 20
	fill(t, s, 20)
	early, err := s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Prune(t.Context(), began); n != 0 || err != nil {
		t.Fatalf("nothing is that old: %d, %v", n, err)
	}
	if seq, _, _ := s.Head(t.Context()); seq != 20 {
		t.Fatalf("pruning nothing wrote row %d", seq)
	}
	if n, err := s.Prune(t.Context(), began.Add(8*time.Second)); n != 7 || err != nil {
		t.Fatalf("pruned %d, %v; want 7", n, err)
	}
	got := rows(t, s, ledger.Query{})
	if got[0].Seq != 8 || got[len(got)-1].Record.Event != ledger.Pruned || len(got) != 14 {
		t.Fatalf("rows %d", numbers(got))
	}
	if report := whole(t, s, &early); report.First != 8 || report.Rows != 14 {
		t.Errorf("report %+v", report)
	}
	fill(t, s, 3)
	if n, err := s.Prune(t.Context(), began.Add(15*time.Second)); n != 7 || err != nil {
		t.Fatalf("pruned %d more, %v; want 7", n, err)
	}
	whole(t, s, &early)
}

func pruneAll(t *testing.T, open open) {
	s := open(ticking())
	fill(t, s, 5)
	early, err := s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Prune(t.Context(), began.Add(time.Hour)); n != 5 || err != nil {
		t.Fatalf("pruned %d, %v", n, err)
	}
	if got := rows(t, s, ledger.Query{}); len(got) != 1 || got[0].Seq != 6 {
		t.Fatalf("rows %d", numbers(got))
	}
	whole(t, s, &early)
	fill(t, s, 2)
	whole(t, s, nil)
}

func changed(t *testing.T, open open) {
	s := open(nil)
	for range 3 {
		c := s.Changed()
		fill(t, s, 1)
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatal("a change was not told")
		}
	}
}

func cancellation(t *testing.T, open open) {
	s := open(nil)
	fill(t, s, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Record(ctx, ledger.Record{Event: ledger.Intent}); !errors.Is(err, context.Canceled) {
		t.Errorf("recording: %v", err)
	}
	for row, err := range s.Rows(ctx, ledger.Query{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("reading: row %d, %v", row.Seq, err)
		}
	}
	if report, err := s.Verify(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("verify: %+v, %v", report, err)
	}
	if n, err := s.Prune(ctx, time.Now().Add(time.Hour)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("prune: %d, %v", n, err)
	}
	if got := rows(t, s, ledger.Query{}); len(got) != 3 {
		t.Errorf("%d rows are there, want 3", len(got))
	}
}

func refusals(t *testing.T, open open) {
	s := open(nil)
	if err := s.Record(t.Context(), ledger.Record{Event: ledger.Intent, Args: json.RawMessage(`{"a"`)}); err == nil {
		t.Error("recorded arguments that are no JSON")
	}
	if err := s.Record(t.Context(), ledger.Record{Script: string(make([]byte, ledger.MaxRecord))}); err == nil {
		t.Error("recorded more than MaxRecord")
	}
	if err := s.Err(); err != nil {
		t.Errorf("a record that is refused for itself makes the store unavailable: %v", err)
	}
	fill(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Record(t.Context(), ledger.Record{Event: ledger.Intent}); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("recording in a closed store: %v", err)
	}
	if err := s.Err(); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a closed store says %v", err)
	}
}

// clockGoesBack: numbers go on, whatever the clock does.
func clockGoesBack(t *testing.T, open open) {
	now := began
	s := open(func() time.Time { return now })
	for _, now = range []time.Time{began, began.Add(time.Hour), began, began.AddDate(1, 0, 0), began.Add(time.Minute)} {
		record(t, s, ledger.Record{Event: ledger.Intent})
	}
	whole(t, s, nil)
	if got := numbers(rows(t, s, ledger.Query{})); !slices.Equal(got, []int64{1, 2, 3, 4, 5}) {
		t.Errorf("rows %d", got)
	}
	if got := numbers(rows(t, s, ledger.Query{Since: began.Add(time.Minute), Until: began.Add(2 * time.Hour)})); !slices.Equal(got, []int64{2, 5}) {
		t.Errorf("within two hours: rows %d", got)
	}
	if n, err := s.Prune(t.Context(), began.Add(time.Minute)); n != 1 || err != nil { // row 2 is newer: the prefix ends
		t.Errorf("pruned %d, %v; want 1", n, err)
	}
}

func reopen(t *testing.T, open open) {
	s := open(nil)
	fill(t, s, 5)
	before := rows(t, s, ledger.Query{})
	early, err := s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(nil)
	if got := rows(t, s, ledger.Query{}); !slices.EqualFunc(got, before, func(a, b ledger.Row) bool { return a.Seq == b.Seq && a.Hash == b.Hash }) {
		t.Errorf("rows %d, before %d", numbers(got), numbers(before))
	}
	fill(t, s, 5)
	if report := whole(t, s, &early); report.Rows != 10 {
		t.Errorf("report %+v", report)
	}
}
