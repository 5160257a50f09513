package sqlstore

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"codemode-bridge/bridge/ledger"
)

// various makes a log in which some things are rare.
func various(t testing.TB, db *DB, n int) {
	t.Helper()
	for i := range n {
		r := ledger.Record{
			Event: ledger.Intent, Time: began.Add(time.Duration(i) * time.Second), Run: fmt.Sprintf("run-%d", i/10), Session: fmt.Sprint(i % 3),
			Server: fmt.Sprintf("s%d", i%7), Tool: fmt.Sprintf("t%d", i%11), Disposition: "allow", Risk: "low",
		}
		if i%97 == 0 {
			r.Disposition, r.Risk, r.Approver, r.Event = "deny", "critical", "ann", ledger.Refusal
		}
		if i%2 == 1 {
			r.Event, r.Outcome = ledger.Outcome, ledger.Done
		}
		if i%101 == 0 {
			r.Time = began
		}
		if err := db.Record(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// Each kind of question goes by an index and sorts nothing.
func TestPlans(t *testing.T) {
	db := open(t, Options{Path: filepath.Join(t.TempDir(), "audit.db")})
	various(t, db, 2500)
	settled(t, db)
	f, err := db.reading()
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.read.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, row := range []struct {
		q    ledger.Query
		plan string
	}{
		{ledger.Query{}, "SCAN rows"},
		{ledger.Query{After: 5}, `SEARCH rows USING INTEGER PRIMARY KEY \(rowid>\?\)`},
		{ledger.Query{Runs: []string{"run-1"}}, "rows_run"},
		{ledger.Query{Runs: []string{"run-1", "run-2"}}, "rows_run.*rows_run"},
		{ledger.Query{Runs: []string{"run-1"}, Dispositions: []string{"allow"}, Tool: "s1__*"}, "rows_run"},
		{ledger.Query{Dispositions: []string{"deny"}, Events: []ledger.Event{ledger.Intent}}, "rows_disposition"},
		{ledger.Query{Outcomes: []string{ledger.Done}, Approvers: []string{"ann"}}, "rows_approver"},
		{ledger.Query{Events: []ledger.Event{ledger.Refusal}}, "rows_event"},
		{ledger.Query{Risks: []string{"critical"}}, "rows_risk"},
		{ledger.Query{Outcomes: []string{ledger.Done}}, "rows_outcome"},
		{ledger.Query{Tool: "s1__t1"}, "rows_tool"},
		{ledger.Query{Tool: "*t1"}, "rows_tool"},
		{ledger.Query{Servers: []string{"s3"}}, "rows_tool"},
		{ledger.Query{Since: began.Add(2400 * time.Second)}, `SEARCH rows USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)`},
		{ledger.Query{Sessions: []string{"1"}}, "SCAN rows"},
	} {
		for _, newest := range []bool{false, true} {
			row.q.Newest = newest
			text, args, err := planned(t.Context(), c, row.q, 100)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := c.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
			if err != nil {
				t.Fatal(err)
			}
			var plan strings.Builder
			for rows.Next() {
				var id, parent, unused int
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					t.Fatal(err)
				}
				plan.WriteString(detail + "; ")
			}
			rows.Close()
			if !regexp.MustCompile(row.plan).MatchString(plan.String()) || strings.Contains(plan.String(), "TEMP B-TREE") {
				t.Errorf("%+v: %s, want %s", row.q, plan.String(), row.plan)
			}
		}
	}
}

// Whatever is asked, SQL and Query.Selects agree.
func TestQueriesAgree(t *testing.T) {
	db := open(t, Options{Path: filepath.Join(t.TempDir(), "audit.db")})
	various(t, db, 400)
	settled(t, db)
	various(t, db, 200) // which may settle while we ask
	everything := all(t, db)
	pick := func(t *rapid.T, name string, from ...string) []string {
		if !rapid.Bool().Draw(t, name+"?") {
			return nil
		}
		return rapid.SliceOfN(rapid.SampledFrom(from), 1, 3).Draw(t, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		q := ledger.Query{
			Runs: pick(t, "runs", "run-1", "run-9", "run-12", "none"), Sessions: pick(t, "sessions", "0", "1"),
			Servers: pick(t, "servers", "s1", "s2", "s"), Approvers: pick(t, "approvers", "ann", "bob"),
			Dispositions: pick(t, "dispositions", "allow", "deny"), Outcomes: pick(t, "outcomes", ledger.Done), Risks: pick(t, "risks", "low", "critical"),
			Newest: rapid.Bool().Draw(t, "newest"), Limit: rapid.IntRange(0, 30).Draw(t, "limit"),
			After: rapid.Int64Range(0, 300).Draw(t, "after"), Before: rapid.SampledFrom([]int64{0, 350, 600}).Draw(t, "before"),
			Tool: rapid.SampledFrom([]string{"", "*", "s1__*", "*t1*", "s2__t2", "x*"}).Draw(t, "tool"),
		}
		for _, e := range pick(t, "events", "intent", "outcome", "refusal") {
			q.Events = append(q.Events, ledger.Event(e))
		}
		if rapid.Bool().Draw(t, "since?") {
			q.Since = began.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "since")) * time.Second)
		}
		if rapid.Bool().Draw(t, "until?") {
			q.Until = began.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "until")) * time.Second)
		}
		if rapid.Bool().Draw(t, "fields?") {
			q.Fields = map[string]string{"session": "1"}
		}
		var want []int64
		for _, row := range everything {
			if q.Selects(row) {
				want = append(want, row.Seq)
			}
		}
		if q.Newest {
			slices.Reverse(want)
		}
		if q.Limit > 0 && len(want) > q.Limit {
			want = want[:q.Limit]
		}
		var got []int64
		for row, err := range db.Rows(background, q) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row.Seq)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: rows %d, want %d", q, got, want)
		}
	})
}
