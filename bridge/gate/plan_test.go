package gate

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/profiles"
)

// at is a site of a script: a deletion at that line.
func at(line int, args string, changes ...func(*analysis.CallSite)) analysis.CallSite {
	site := analysis.CallSite{Name: "fs__delete", Args: args, Position: analysis.Position{Line: line, Column: 1}}
	for _, change := range changes {
		change(&site)
	}
	return site
}

// The question about the first call has the others that people would be asked about,
// if the preview tells all of them.
func TestPlannedCalls(t *testing.T) {
	looped := func(s *analysis.CallSite) { s.Loop = true }
	maybe := func(s *analysis.CallSite) { s.Branch = true }
	read := func(s *analysis.CallSite) { s.Name = "fs__read" }
	mail := func(s *analysis.CallSite) { s.Name = "mail__send" }
	nowhere := func(s *analysis.CallSite) { s.Name = "nowhere__send" }
	spec := profiles.ProfileSpec{Asklist: []string{"fs__delete"}, Denylist: []string{"mail__*"}, Rules: []profiles.RuleSpec{
		{Tools: []string{"fs__delete"}, When: &profiles.When{Expr: `args.path == "/"`}, Action: new("ask"), Risk: new("critical")}}}
	first := at(1, `{"path":"1"}`)
	for name, row := range map[string]struct {
		report analysis.Report
		want   []string // the arguments of what is planned
	}{
		"two more":                 {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{"path":"2"}`), at(3, `{ "path": "3" }`)}}, []string{`{"path":"2"}`, `{"path":"3"}`}},
		"one that may not come":    {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{"path":"2"}`, maybe)}}, []string{`{"path":"2"}`}},
		"one that is allowed":      {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{"path":"2"}`, read), at(3, `{"path":"3"}`)}}, []string{`{"path":"3"}`}},
		"one that is denied":       {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{"path":"2"}`, mail), at(3, `{"path":"3"}`)}}, []string{`{"path":"3"}`}},
		"one that does not fit":    {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{"pth":"2"}`), at(3, `{"path":"3"}`)}}, []string{`{"path":"3"}`}},
		"one that is critical":     {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{"path":"/"}`), at(3, `{"path":"3"}`)}}, []string{`{"path":"3"}`}},
		"reads in a loop":          {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{"path":"2"}`, read, looped), at(3, `{"path":"3"}`)}}, []string{`{"path":"3"}`}},
		"one in a loop":            {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{"path":"2"}`, looped), at(3, `{"path":"3"}`)}}, nil},
		"the first in a loop":      {analysis.Report{Calls: []analysis.CallSite{at(1, `{"path":"1"}`, looped), at(2, `{"path":"2"}`)}}, nil},
		"arguments to be computed": {analysis.Report{Calls: []analysis.CallSite{first, at(2, ""), at(3, `{"path":"3"}`)}}, nil},
		"arguments that are none":  {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{`)}}, nil},
		"a tool that is not there": {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{"path":"2"}`, nowhere)}}, nil},
		"a name to be computed":    {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{"path":"2"}`)}, Unknown: 1}, nil},
		"too many":                 {analysis.Report{Calls: []analysis.CallSite{first, at(2, `{"path":"2"}`)}, Truncated: true}, nil},
		"a call that is not in it": {analysis.Report{Calls: []analysis.CallSite{at(2, `{"path":"2"}`)}}, nil},
		"no preview":               {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caller, b := &fakeCaller{reply: okReply}, &book{}
				p := planned(t, newGate(t, supervised(spec), caller, b), caller, b, row.report, Call{Number: 1, Name: "fs__delete", Args: json.RawMessage(`{"path":"1"}`), Position: analysis.Position{Line: 1, Column: 1}})
				var got []string
				for _, i := range p.question().Items {
					if i.Planned {
						got = append(got, string(i.Shown.JSON))
					}
				}
				if diff := cmp.Diff(row.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				p.answer(declined)
			})
		})
	}
}

// A call that an earlier part of the run made is not among those to come.
func TestPlanLeavesOutCallsThatAreOver(t *testing.T) {
	spec := profiles.ProfileSpec{Asklist: []string{"fs__delete"}}
	report := analysis.Report{Calls: []analysis.CallSite{at(1, `{"path":"1"}`), at(2, `{"path":"2"}`), at(3, `{"path":"3"}`)}}
	synctest.Test(t, func(t *testing.T) {
		caller, b := &fakeCaller{reply: okReply}, &book{}
		p := planned(t, newGate(t, supervised(spec), caller, b), caller, b, report,
			Call{Number: 2, Name: "fs__delete", Args: json.RawMessage(`{"path":"2"}`), Position: at(2, "").Position}, at(1, "").Position)
		var got []string
		for _, i := range p.question().Items {
			got = append(got, string(i.Shown.JSON))
		}
		if diff := cmp.Diff([]string{`{"path":"2"}`, `{"path":"3"}`}, got); diff != "" {
			t.Errorf("asked and to come (-want +got):\n%s", diff)
		}
		p.answer(declined)
	})
}

// planned makes a call of a run that has a preview, up to the question. Calls at the
// places before were made by an earlier part of the run.
func planned(t *testing.T, g *Gate, caller *fakeCaller, b *book, report analysis.Report, c Call, before ...analysis.Position) *asking {
	t.Helper()
	a := &asking{T: t, g: g, caller: caller, book: b, done: make(chan error, 1), cancel: func(error) {}}
	var err error
	if a.r, err = g.Begin(t.Context(), Origin{ID: "r1", Session: "s1", Client: "test", Profile: "p", Reach: ByElicitation}, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.r.Preview(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	for _, place := range before {
		a.r.Recall(place, Past{}, nil, nil)
	}
	a.next(c)
	return a
}

// next makes a further call.
func (a *asking) next(c Call) {
	go func() {
		_, err := a.g.Call(a.Context(), a.r, c)
		a.done <- err
	}()
	synctest.Wait()
}

// A preview that is wrong, since the script's own process made it, has nothing allowed
// but what people saw, as they saw it; what they allowed and does not come is recorded.
func TestWrongPreview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, b := &fakeCaller{reply: okReply}, &book{}
		call := func(number int, path string) Call {
			return Call{Number: number, Name: "fs__delete", Args: fmt.Appendf(nil, `{"path":%q}`, path), Position: analysis.Position{Line: number, Column: 1}}
		}
		a := planned(t, newGate(t, supervised(asksFs), caller, b), caller, b,
			analysis.Report{Calls: []analysis.CallSite{at(1, `{"path":"1"}`), at(2, `{"path":"harmless"}`), at(3, `{"path":"3"}`)}}, call(1, "1"))
		a.answer(agreed)
		if err := <-a.done; err != nil {
			t.Fatal(err)
		}
		a.next(call(2, "/")) // at the place where it was to be harmless
		if q := a.question(); len(q.Items) != 1 || string(q.Items[0].Shown.JSON) != `{"path":"/"}` {
			t.Errorf("asked about %+v", q.Items)
		}
		a.answer(declined)
		<-a.done
		a.next(call(3, "3"))
		if err := <-a.done; err != nil {
			t.Errorf("what was planned and came: %v", err)
		}
		if want := []string{`fs|delete|{"path":"1"}`, `fs|delete|{"path":"3"}`}; cmp.Diff(want, caller.calls) != "" {
			t.Errorf("sent %q", caller.calls)
		}
		if err := a.r.End(t.Context(), "done", "", Entries{}); err != nil {
			t.Fatal(err)
		}
		var lapsed []string
		for _, rec := range b.records {
			if rec.Event == "lapsed" {
				lapsed = append(lapsed, string(rec.Args))
			}
		}
		if diff := cmp.Diff([]string{`{"path":"harmless"}`}, lapsed); diff != "" {
			t.Errorf("lapsed (-want +got):\n%s", diff)
		}
	})
}

// A plan says of a call that comes after one which leads its browser elsewhere that
// nobody knows the page, and has it sent on whichever page that is.
func TestPlanThatLeavesThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ws := playground(t)
		g, _, _ := meantGate(t, ws)
		call := func(line int, name, args string) Call {
			return Call{Number: line, Name: name, Args: json.RawMessage(args), Position: analysis.Position{Line: line, Column: 1}}
		}
		calls := []Call{
			call(1, "s__open", `{"url":"https://example.com"}`),
			call(2, "s__script", `{"code":"location = 'https://evil.net'"}`),
			call(3, "s__script", `{"code":"document.title"}`),
			call(4, "s__click", `{"target":"Buy"}`),
		}
		var report analysis.Report
		for _, c := range calls {
			report.Calls = append(report.Calls, analysis.CallSite{Name: c.Name, Args: string(c.Args), Position: c.Position})
		}
		run := beginMeant(t, g, "s1", inWorkspace(t, ws))
		run.asks(true, "s__open", `{"url":"https://example.com"}`)
		if err := run.r.Preview(t.Context(), report); err != nil {
			t.Fatal(err)
		}
		var pages []string
		for _, c := range calls {
			done := make(chan error, 1)
			go func() {
				_, err := g.Call(t.Context(), run.r, c)
				done <- err
			}()
			synctest.Wait()
			for _, q := range g.Broker().Take(run.r.ID) {
				for _, i := range q.Calls() {
					pages = append(pages, fmt.Sprintf("%d %s: %s%s", c.Number, i.Tool, i.About.Facts[0].Leads, i.About.Facts[0].Doubt))
				}
				if _, err := g.Settle(t.Context(), q.ID, q.Digest(), approval.Verdict{Approve: true, By: "ann", Channel: "page"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				t.Errorf("call %d: %v", c.Number, err)
			}
		}
		want := []string{"2 script: example.com", "2 script: " + unknownPage, "2 click: " + unknownPage}
		if diff := cmp.Diff(want, pages); diff != "" {
			t.Errorf("asked about (-want +got):\n%s", diff)
		}
	})
}

// Policy may be stricter by the time that a planned call is made: then people are asked
// again, or it is denied.
func TestPlannedCallUnderAnotherPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, b := &fakeCaller{reply: okReply}, &book{}
		a := planned(t, newGate(t, supervised(asksFs), caller, b), caller, b,
			analysis.Report{Calls: []analysis.CallSite{at(1, `{"path":"1"}`), at(2, `{"path":"2"}`)}}, Call{Number: 1, Name: "fs__delete", Args: json.RawMessage(`{"path":"1"}`), Position: analysis.Position{Line: 1, Column: 1}})
		a.answer(agreed)
		<-a.done
		a.replace(supervised(profiles.ProfileSpec{Denylist: []string{"fs__delete"}}))
		caller.calls = nil
		a.next(Call{Number: 2, Name: "fs__delete", Args: json.RawMessage(`{"path":"2"}`), Position: analysis.Position{Line: 2, Column: 1}})
		a.refused(approval.Denied)
	})
}

// What was refused as planned is not sent when policy comes to allow it.
func TestRefusedPlannedCallThatPolicyAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, b := &fakeCaller{reply: okReply}, &book{}
		call := func(number int, path string) Call {
			return Call{Number: number, Name: "fs__delete", Args: fmt.Appendf(nil, `{"path":%q}`, path), Position: analysis.Position{Line: number, Column: 1}}
		}
		allows := profiles.ProfileSpec{Allowlist: []string{"fs__delete"}}
		g := newGate(t, supervised(allows), caller, b)
		a := &asking{T: t, g: g, caller: caller, book: b, done: make(chan error, 1), cancel: func(error) {}}
		var err error
		if a.r, err = g.Begin(t.Context(), Origin{ID: "r1", Session: "s1", Client: "test", Profile: "p", Reach: ByElicitation}, nil); err != nil {
			t.Fatal(err)
		}
		if err := a.r.Preview(t.Context(), analysis.Report{Calls: []analysis.CallSite{at(1, `{"path":"1"}`), at(2, `{"path":"2"}`), at(3, `{"path":"3"}`)}}); err != nil {
			t.Fatal(err)
		}
		a.replace(supervised(asksFs))
		a.next(call(1, "1"))
		some := agreed
		some.Rows = []int{1, 3}
		a.answer(some)
		if err := <-a.done; err != nil {
			t.Fatal(err)
		}
		caller.calls = nil
		a.replace(supervised(allows))
		a.next(call(2, "2"))
		a.refused(approval.Declined)
		a.next(call(3, "3"))
		a.sent()
	})
}
