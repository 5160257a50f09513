package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const asklist = `asklist: "fs__*" [profile work]`

// asked returns the records of one question about a call and of its answer, which comes
// after wait. What follows the verdict is left out.
func asked(n int, tool, args, answer, channel string, wait time.Duration, reasons ...string) []ledger.Record {
	if len(reasons) == 0 {
		reasons = []string{asklist}
	}
	start := time.Date(2026, 3, 1, 10, 0, n, 0, time.UTC)
	r := ledger.Record{Event: ledger.Asked, Time: start, Run: "r", Call: n, Profile: "work", Server: "fs", Tool: tool,
		Args: json.RawMessage(args), Disposition: "ask", Risk: "medium", Reasons: reasons}
	v := r
	v.Event, v.Time, v.Answer, v.Channel, v.Approver = ledger.Verdict, start.Add(wait), answer, channel, "ann"
	return []ledger.Record{r, v}
}

func measure(t testing.TB, records ...[]ledger.Record) *Stats {
	t.Helper()
	var all []ledger.Record
	for _, r := range records {
		all = append(all, r...)
	}
	s, err := Measure(rowsOf(all...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMeasure(t *testing.T) {
	run := func(id string, outcome string) []ledger.Record {
		all := []ledger.Record{{Event: ledger.RunStarted, Run: id}}
		if outcome != "" {
			all = append(all, ledger.Record{Event: ledger.RunEnded, Run: id, Outcome: outcome})
		}
		return all
	}
	call := func(n int, outcome string) []ledger.Record {
		all := []ledger.Record{{Event: ledger.Intent, Run: "r", Call: n}}
		if outcome != "" {
			all = append(all, ledger.Record{Event: ledger.Outcome, Run: "r", Call: n, Outcome: outcome})
		}
		return all
	}
	refused := func(n int, r ledger.Record) []ledger.Record {
		r.Event, r.Run, r.Call, r.Server, r.Tool, r.Outcome = ledger.Refusal, "r", n, "fs", "write", ledger.Refused
		return []ledger.Record{r}
	}
	s := measure(t,
		run("a", ledger.Done), run("b", ledger.Failed), run("c", ledger.Stopped), run("d", ""),
		call(1, ledger.Done), call(2, ledger.Failed), call(3, ledger.Unknown), call(4, ""),
		asked(10, "write", `{}`, "yes, once", "elicitation", time.Second),
		asked(11, "write", `{}`, "yes, session", "page", 3*time.Second),
		asked(12, "write", `{}`, "no, elicitation_declined", "elicitation", 5*time.Second, "rule careful (ask): think first [profile work]"),
		[]ledger.Record{{Event: ledger.Verdict, Run: "r", Call: 12, Answer: "yes, once", Channel: "page", Outcome: ledger.Refused}}, // too late
		refused(12, ledger.Record{Disposition: "ask"}),
		asked(13, "write", `{}`, "no, timeout", "timeout", time.Minute),
		refused(13, ledger.Record{Disposition: "ask"}),
		asked(14, "write", `{}`, "yes, session", "grant", 0),
		asked(15, "write", `{}`, "yes, once", "fallback", 0),
		refused(16, ledger.Record{Disposition: "deny", Reasons: []string{`rule gone (deny): never [profile work]`}}),
		refused(17, ledger.Record{Disposition: "deny", Reasons: []string{`rule gone (deny): never [profile work]`}}),
		refused(18, ledger.Record{}),
		refused(19, ledger.Record{Disposition: "allow", Answer: "no, audit_unavailable"}),
	)
	for _, row := range []struct{ got, want any }{
		{s.Runs, Runs{All: 4, Done: 1, Failed: 1, Stopped: 1, Open: 1}},
		{s.Calls, Calls{All: 10, Done: 1, Failed: 1, Unknown: 2, Refused: 6}},
		{s.Questions, Questions{Asked: 6, Yes: 2, No: 1, Remembered: 1, Fallback: 1, Rate: 2.0 / 3, Median: 3 * time.Second, P90: 5 * time.Second}},
		{s.Rules, []RuleStats{{asklist, 5, 2, 0}, {"rule careful [profile work]", 1, 0, 1}}},
		{s.Denials, []Denial{
			{"fs__write", "rule gone [profile work]", 2}, {"fs__write", "audit_unavailable", 1}, {"fs__write", "elicitation_declined", 1},
			{"fs__write", "no such tool, or arguments that could not be read", 1}, {"fs__write", "timeout", 1},
		}},
		{s.Failures, map[string]int{"timeout": 1, "audit_unavailable": 1}},
	} {
		if diff := cmp.Diff(row.want, row.got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestUnused(t *testing.T) {
	spec := profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"work": {
		Denylist: []string{"fs__rm"}, Asklist: []string{"fs__*"},
		Rules: []profiles.RuleSpec{{Name: new("careful"), Tools: []string{"*"}, Action: new("ask")}, {Tools: []string{"x"}, Action: new("deny")}},
	}}}
	s := measure(t, asked(1, "write", `{}`, "yes, once", "page", 0, asklist, "rule careful (ask) [profile work]"))
	want := []string{`denylist: "fs__rm" [profile work]`, "rule rules/1 [profile work]"}
	if diff := cmp.Diff(want, s.Unused(spec)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Unused and decisions name rules in the same way.
func TestRuleOf(t *testing.T) {
	spec := profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{
		"base": {Asklist: []string{"a__*"}, Denylist: []string{"a__[x]*"}, Rules: []profiles.RuleSpec{
			{Name: new("odd (ask) name"), Tools: []string{"a__b"}, Action: new("ask"), Reason: new("because (deny) of [profile x]")},
			{Tools: []string{"a__b"}, When: &profiles.When{Expr: "args.missing == 1"}, Action: new("deny")},
		}},
		"work": {Extends: new("base"), Allowlist: []string{"a__b"}},
	}}
	set, problems := profiles.Parse(spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, _ := set.Profile("work")
	var records []ledger.Record
	for _, tool := range []string{"b", "x1"} {
		var reasons []string
		for _, r := range p.Decide(profiles.Call{Server: "a", Tool: tool}).Reasons {
			reasons = append(reasons, r.String())
		}
		records = append(records, ledger.Record{Event: ledger.Refusal, Reasons: reasons})
	}
	s := measure(t, records)
	delete(spec.Profiles, "none")
	if unused := s.Unused(spec); len(unused) > 0 {
		t.Errorf("these spoke: %q; the log says %v", unused, s.used)
	}
}

func TestSuggest(t *testing.T) {
	times := func(n int, f func(i int) []ledger.Record) (all []ledger.Record) {
		for i := range n {
			all = append(all, f(i)...)
		}
		return all
	}
	page := func(n int, tool, args, answer string, reasons ...string) []ledger.Record {
		return asked(n, tool, args, answer, "page", time.Second, reasons...)
	}
	rows := []struct {
		what    string
		records []ledger.Record
		when    string // of the suggested rule; "" for no suggestion
		cover   int
		through int
		note    string
	}{
		{"one folder", times(6, func(i int) []ledger.Record {
			return page(i, "write", fmt.Sprintf(`{"path":"/home/me/notes/%d/a.md","mode":"create"}`, i), "yes, once")
		}), `args.all(name, name in ["mode", "path"]) && args.mode == "create" && clean(args.path).startsWith("/home/me/notes/")`, 6, 0,
			`an ask outweighs an allow: take "fs__*" off the asklist`},
		{"one host, by default", times(5, func(i int) []ledger.Record {
			return page(i, "get", fmt.Sprintf(`{"url":"https://Docs.example.com:8443/%d","n":%d}`, i, i), "yes, once", "the profile asks by default [profile work]")
		}), `args.all(name, name in ["n", "url"]) && host(args.url) == "docs.example.com"`, 5, 0, ""},
		{"no arguments", times(5, func(i int) []ledger.Record { return page(i, "sync", `{}`, "yes, once") }), `size(args) == 0`, 5, 0,
			`an ask outweighs an allow: take "fs__*" off the asklist`},
		{"keys that need quotes, numbers, nesting", times(5, func(i int) []ledger.Record {
			return page(i, "go", `{"for":true,"a-b":7,"in":{"x":"1"},"list":[1,2]}`, "yes, once", "rule careful (ask) [profile work]")
		}), `args.all(name, name in ["a-b", "for", "in", "list"]) && args["a-b"] == 7 && args["for"] == true && args["in"].x == "1"`, 5, 0,
			"an ask outweighs an allow: narrow rule careful [profile work]"},
		{"a no that it would let through", append(times(12, func(i int) []ledger.Record {
			return page(i, "write", fmt.Sprintf(`{"path":"/w/%d"}`, i), "yes, once")
		}), page(20, "write", `{"path":"/w/secret"}`, "no, declined")...),
			`args.all(name, name in ["path"]) && clean(args.path).startsWith("/w/")`, 12, 1, `an ask outweighs an allow: take "fs__*" off the asklist`},
		{"a no that it would not", append(times(12, func(i int) []ledger.Record {
			return page(i, "write", fmt.Sprintf(`{"path":"/w/%d"}`, i), "yes, once")
		}), page(20, "write", `{"path":"/etc/x"}`, "no, declined")...),
			`args.all(name, name in ["path"]) && clean(args.path).startsWith("/w/")`, 12, 0, `an ask outweighs an allow: take "fs__*" off the asklist`},
		{"a no that the log does not show", append(times(12, func(i int) []ledger.Record {
			return page(i, "write", fmt.Sprintf(`{"path":"/w/%d"}`, i), "yes, once")
		}), page(20, "write", `{"path":"[hidden: looks like a secret]"}`, "no, declined")...),
			`args.all(name, name in ["path"]) && clean(args.path).startsWith("/w/")`, 12, 1, `an ask outweighs an allow: take "fs__*" off the asklist`},
		{"hidden values bind nothing", times(5, func(i int) []ledger.Record {
			return page(i, "login", `{"token":"[hidden fp:00]","user":"me"}`, "yes, once")
		}), `args.all(name, name in ["token", "user"]) && args.user == "me"`, 5, 0, `an ask outweighs an allow: take "fs__*" off the asklist`},
		{"too few", times(4, func(i int) []ledger.Record { return page(i, "write", `{"path":"/w/1"}`, "yes, once") }), "", 0, 0, ""},
		{"too often no", append(times(5, func(i int) []ledger.Record { return page(i, "write", `{"path":"/w/1"}`, "yes, once") }), page(9, "write", `{}`, "no, declined")...), "", 0, 0, ""},
		{"not by a person", times(9, func(i int) []ledger.Record { return asked(i, "write", `{}`, "yes, once", "fallback", 0) }), "", 0, 0, ""},
		{"typed names", times(9, func(i int) []ledger.Record {
			return page(i, "write", `{}`, "yes, once", "rule x (manual) [profile work]")
		}), "", 0, 0, ""},
		{"arguments that were cut", times(9, func(i int) []ledger.Record {
			return page(i, "write", `{"a":1,"…":"… 75 members in all"}`, "yes, once")
		}), "", 0, 0, ""},
	}
	for _, row := range rows {
		got := measure(t, row.records).Suggest()
		if row.when == "" {
			if len(got) > 0 {
				t.Errorf("%s: got %+v", row.what, got)
			}
			continue
		}
		if len(got) != 1 {
			t.Errorf("%s: %d suggestions", row.what, len(got))
			continue
		}
		s := got[0]
		if s.Rule.When.Expr != row.when || s.Cover != row.cover || len(s.LetThrough) != row.through || s.Note != row.note {
			t.Errorf("%s:\ngot  %s, %d, %d, %q\nwant %s, %d, %d, %q", row.what, s.Rule.When.Expr, s.Cover, len(s.LetThrough), s.Note, row.when, row.cover, row.through, row.note)
		}
	}
	critical := times(9, func(i int) []ledger.Record { return page(i, "write", `{}`, "yes, once") })
	for i := range critical {
		critical[i].Risk = "critical"
	}
	if got := measure(t, critical).Suggest(); len(got) > 0 {
		t.Errorf("a suggestion for critical calls: %+v", got)
	}
}

// Whatever was asked: with the suggestion pasted in, the policy allows exactly the approved
// calls that it counts, and no denied call that it does not list, and asks for the rest.
func TestSuggestionsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(
			rapid.SampledFrom([]string{`"/a/b/c"`, `"/a/b/../../etc"`, `"/a/b/d/e"`, `"/a"`, `"https://h.example/x"`, `"https://h.example:1/"`, `"https://h.example@evil.example/"`, `"plain"`, `"[hidden]"`, `"cut …"`, `7`, `true`, `null`, `[1]`, `{"k":"v"}`, `{"k":"/a/b"}`, `"C:\\x"`, `"'\" && true"`}),
			rapid.Map(rapid.StringN(0, 8, -1), quote),
		)
		args := rapid.Custom(func(t *rapid.T) string {
			var parts []string
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"path", "url", "a-b", "in", "…"}), 0, 3, rapid.ID).Draw(t, "keys") {
				parts = append(parts, quote(key)+":"+value.Draw(t, key))
			}
			return "{" + strings.Join(parts, ",") + "}"
		})
		var records []ledger.Record
		var yes, no []string
		like := args.Draw(t, "like") // what most approved calls look like
		for i := range rapid.IntRange(5, 12).Draw(t, "yeses") {
			text := like
			if rapid.Bool().Draw(t, "other") {
				text = args.Draw(t, "yes")
			}
			yes = append(yes, text)
			records = append(records, asked(i, "write", text, "yes, once", "page", 0)...)
		}
		if len(yes) >= 9 {
			no = append(no, args.Draw(t, "no"))
			records = append(records, asked(50, "write", no[0], "no, declined", "page", 0)...)
		}
		for _, s := range measureIn(t, records).Suggest() {
			base := &profiles.ProfileSpec{Default: new("ask"), Rules: append([]profiles.RuleSpec{s.Rule}, s.Instead...)}
			set, problems := profiles.Parse(profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"work": base}})
			if len(problems) > 0 {
				t.Fatalf("the suggestion is not legal: %v", problems)
			}
			p, _ := set.Profile("work")
			allows := func(text string) bool {
				tree, ok := tree(json.RawMessage(text))
				return ok && p.Decide(profiles.Call{Server: "fs", Tool: "write", Args: tree}).Disposition == profiles.Allow
			}
			n := 0
			for _, text := range yes {
				if allows(text) {
					n++
				}
			}
			if n != s.Cover {
				t.Errorf("%s allows %d of %q, not %d", s.Rule.When.Expr, n, yes, s.Cover)
			}
			for _, text := range no {
				if allows(text) && len(s.LetThrough) == 0 {
					t.Errorf("%s lets %s through", s.Rule.When.Expr, text)
				}
			}
			if other := p.Decide(profiles.Call{Server: "fs", Tool: "other", Args: map[string]any{}}); other.Disposition != profiles.Ask {
				t.Errorf("another tool: %v", other.Disposition)
			}
		}
	})
}

func measureIn(t *rapid.T, records []ledger.Record) *Stats {
	s, err := Measure(rowsOf(records...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReport(t *testing.T) {
	golden(t, "testdata/report/*.txtar", func(t *testing.T, records []ledger.Record, out *bytes.Buffer) {
		o := ReportOptions{From: records[0].Time, Now: time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC),
			Verified: ledger.Report{Whole: true, First: 1, Last: int64(len(records)), Rows: int64(len(records))}}
		if err := WriteReport(out, rowsOf(records...), o); err != nil {
			t.Fatal(err)
		}
	})
}

// An approval that did not count is among the verdicts, as one that decided nothing.
func TestReportCountsWhatWasTaken(t *testing.T) {
	yes := ledger.Record{Event: ledger.Verdict, Run: "r", Call: 1, Answer: "yes, once", Approver: "ann", Channel: "api"}
	late := yes
	late.Outcome, late.Error = ledger.Refused, "somebody else must allow it"
	var out bytes.Buffer
	if err := WriteReport(&out, rowsOf(yes, late, late), ReportOptions{}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "| ann | api | 1 | 0 |") || strings.Count(text, "somebody else must allow it") != 2 {
		t.Error(text)
	}
}

// If nobody could be reached, or no answer counted, the record names the client that was
// asked. Its person did not deny anything.
func TestNobodySaidNoWhereNoAnswerCounted(t *testing.T) {
	no := ledger.Record{Event: ledger.Verdict, Run: "r", Call: 1, Answer: "no, no_approver", Approver: "the person at cursor", Channel: "elicitation", Comment: "a yes to this call needs a reason"}
	var out bytes.Buffer
	if err := WriteReport(&out, rowsOf(no), ReportOptions{}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "| nobody | elicitation | 0 | 1 |") || strings.Contains(text, "cursor") {
		t.Error(text)
	}
	if got, want := answer(no), "no, no_approver (elicitation)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A call that an earlier answer covers was not answered itself.
func TestAnEarlierYes(t *testing.T) {
	t.Parallel()
	r := ledger.Record{Event: ledger.Verdict, Answer: "yes, once", Channel: "grant", Approver: "ann"}
	if got, want := answer(r), "an earlier yes by ann (grant)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Answers that did not count are listed apart from the verdicts. Each says who decided, in
// whose name, and what they wrote.
func TestReportKeepsApartWhatDidNotCount(t *testing.T) {
	record := func(who, name, comment string, counted bool) ledger.Record {
		return ledger.Record{Event: ledger.Verdict, Run: "r", Call: 1, Answer: "yes, once", Approver: who, OnBehalfOf: name, Channel: "page", Comment: comment, Counted: new(counted), Disposition: "ask", Risk: "high"}
	}
	void := record("eve", "", "let me", false)
	void.Outcome, void.Error = ledger.Refused, "nobody here"
	vote := record("dan", "", "", true)
	vote.Outcome, vote.Error = ledger.Vote, "1 of 2 yeses"
	var out bytes.Buffer
	if err := WriteReport(&out, rowsOf(void, vote, record("bob", "cat", "fine", true)), ReportOptions{}); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(out.String(), "## Verdicts\n")
	verdicts, rest, found := strings.Cut(rest, "## Verdicts that did not count\n")
	others, _, _ := strings.Cut(rest, "##")
	if !found {
		t.Errorf("the verdicts that did not count are missing in\n%s", out.String())
	}
	for _, row := range []struct {
		part, text string
		want       bool
	}{
		{verdicts, "| bob for cat | page | fine |", true},
		{verdicts, "1 of 2 yeses", true},
		{verdicts, "eve", false},
		{others, "| eve | page | let me; nobody here |", true},
		{others, "bob", false},
	} {
		if got := strings.Contains(row.part, row.text); got != row.want {
			t.Errorf("says %q: %t, want %t, in%s", row.text, got, row.want, row.part)
		}
	}
	if actedOn(void) || actedOn(vote) || !actedOn(record("bob", "cat", "", true)) {
		t.Error("another verdict than the last settles the request")
	}
}

func TestReportOfAnEditedLog(t *testing.T) {
	var out bytes.Buffer
	o := ReportOptions{Verified: ledger.Report{Bad: 7, Kind: ledger.Edited, Message: "row 7 is not what was written"}, Against: true}
	if err := WriteReport(&out, rowsOf(), o); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "**The log is not what was written**: row 7 is not what was written.") || !strings.Contains(text, "compared with a checkpoint kept elsewhere.") {
		t.Error(text)
	}
}

// A cell of the report holds no mark-up, tag, link or other cell.
func TestMarkdownIsInert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := markdown(hostile(t))
		if strings.ContainsFunc(text, unseen) || strings.ContainsAny(text, "<@") || strings.Contains(text, "://") {
			t.Errorf("%q", text)
		}
		for i, c := range text {
			if strings.ContainsRune("`*_[]()|~#", c) && !oddBackslashes(text[:i]) && !strings.HasSuffix(text[:i], "&") {
				t.Errorf("%q has a bare %c", text, c)
			}
		}
	})
}
