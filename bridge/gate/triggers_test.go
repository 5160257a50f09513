package gate

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// A push only sets off what others have set up if it is certain where it goes, and that
// it brings nothing that runs.
func TestTriggers(t *testing.T) {
	t.Parallel()
	push, ok := known.Find("git-cyanheads")
	if !ok {
		t.Fatal("git is not known")
	}
	github, ok := known.Find("github")
	if !ok {
		t.Fatal("github is not known")
	}
	for _, row := range []struct {
		tool known.Tool
		args string
		want bool
	}{
		{push.Tools["git_push"], `{"remote":"origin","branch":"fix/rounding"}`, true},
		{push.Tools["git_push"], `{"branch":"fix","setUpstream":true}`, true},
		{push.Tools["git_push"], `{"branch":"maintenance"}`, true},
		{push.Tools["git_push"], `{}`, false}, // the branch that happens to be there
		{push.Tools["git_push"], `{"branch":"main"}`, false},
		{push.Tools["git_push"], `{"branch":"Master"}`, false},
		{push.Tools["git_push"], `{"branch":"release/2026"}`, false},
		{push.Tools["git_push"], `{"branch":"refs/heads/main"}`, false},
		{push.Tools["git_push"], `{"branch":"fix","remoteBranch":"main"}`, false},
		{push.Tools["git_push"], `{"branch":"+fix"}`, false},
		{push.Tools["git_push"], `{"branch":":fix"}`, false},
		{push.Tools["git_push"], `{"branch":"fix","remote":"https://git.example/x.git"}`, false},
		{push.Tools["git_push"], `{"branch":"fix","remote":"../other"}`, false},
		{push.Tools["git_push"], `{"branch":"fix","tags":true}`, false},
		{push.Tools["git_push"], `{"branch":"fix","more":true}`, false},
		{push.Tools["git_checkout"], `{"target":"main"}`, true},
		{push.Tools["git_rebase"], `{"upstream":"main"}`, false},
		{push.Tools["git_commit"], `{"message":"x"}`, false}, // it runs nothing
		{github.Tools["push_files"], `{"owner":"a","repo":"b","branch":"fix","files":[{"path":"src/main.go","content":"x"}]}`, true},
		{github.Tools["push_files"], `{"owner":"a","repo":"b","branch":"fix","files":[{"path":"a.go","content":"x"},{"path":".github/workflows/ci.yml","content":"x"}]}`, false},
		{github.Tools["push_files"], `{"owner":"a","repo":"b","branch":"fix","files":[{"path":"package.json","content":"x"}]}`, false},
		{github.Tools["push_files"], `{"owner":"a","repo":"b","branch":"fix","files":[{"path":".env","content":"x"}]}`, false},
		{github.Tools["push_files"], `{"owner":"a","repo":"b","files":[]}`, false},
		{github.Tools["merge_pull_request"], `{"owner":"a","repo":"b","pull_number":1}`, false},
	} {
		args, err := canon.Parse([]byte(row.args))
		if err != nil {
			t.Fatal(err)
		}
		if got := triggers(row.tool.Read(args.Value())); got != row.want {
			t.Errorf("%v %s: %v", row.tool.Effects, row.args, got)
		}
	}
}

// risks makes calls one after the other, each with a yes, and returns the risk of each
// as people were told.
func risks(t *testing.T, calls ...[2]string) (all []string) {
	synctest.Test(t, func(t *testing.T) {
		view := meantView(t, supervised(profiles.ProfileSpec{Default: new("ask")}), "/")
		b := &book{}
		run := beginMeant(t, New(view, Options{Caller: &fakeCaller{reply: okReply}, Recorder: b}), "s1", workspace.Workspace{})
		for _, c := range calls {
			run.asks(true, c[0], c[1])
		}
		for _, rec := range b.records {
			if rec.Event == "request" {
				all = append(all, rec.Risk)
			}
		}
	})
	return all
}

func TestRiskOfWhatIsNewHere(t *testing.T) {
	for _, row := range []struct {
		call, args, want string
	}{
		{"s__push", `{"owner":"acme","repo":"shop","branch":"fix"}`, "high"}, // nobody has approved a call to it
		{"s__branch", `{"owner":"acme","repo":"web","branch":"fix"}`, "medium"},
		{"s__push", `{"owner":"acme","repo":"web","branch":"fix"}`, "medium"},
		{"s__push", `{"owner":"Acme","repo":"web","branch":"fix"}`, "medium"},
		{"s__push", `{"owner":"acmes","repo":"web","branch":"fix"}`, "high"},
		{"s__push", `{"owner":"acme","repo":"web","branch":"fix","file":".github/workflows/ci.yml"}`, "high"},
		{"s__assign", `{"id":"1","to":"bob"}`, "medium"},
		{"s__assign", `{"id":"1","to":"bob","watchers":"eve"}`, "high"},
		{"s__fetch", `{"url":"https://one.example/a"}`, "medium"},
		{"s__fetch", `{"url":"https://two.example/a?q=b"}`, "high"},
		{"s__fetch", `{"url":"http://192.168.178.1/"}`, "high"},
		{"s__open", `{"url":"http://localhost:5173/"}`, "medium"},
		{"s__press", `{"button":"Reject all cookies"}`, "medium"},
		{"s__press", `{"button":"Jetzt verbindlich buchen"}`, "high"},
		{"s__press", `{"button":"Create and pay"}`, "high"},
		{"s__query", `{"db":"pay"}`, "low"}, // it only reads
	} {
		calls := [][2]string{{"s__branch", `{"owner":"acme","repo":"web","branch":"x"}`}, {"s__open", `{"url":"https://known.example"}`}, {row.call, row.args}}
		if got := risks(t, calls...); len(got) != 3 || got[2] != row.want {
			t.Errorf("%s %s: risks %v, want %s", row.call, row.args, got, row.want)
		}
	}
}

// What is new with one call of a plan is not new with the next. Everything else about a
// planned call stays as it is judged now.
func TestRiskOfPlannedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := meantView(t, supervised(profiles.ProfileSpec{Default: new("ask")}), "/")
		caller, b := &fakeCaller{reply: okReply}, &book{}
		var report analysis.Report
		for n, c := range [][2]string{
			{"s__open", `{"url":"https://new.example"}`}, {"s__press", `{"button":"Next"}`}, {"s__press", `{"button":"Buy"}`},
			{"s__mail", `{"to":"ann","text":"a"}`}, {"s__mail", `{"to":"ann","text":"b"}`},
			{"s__script", `{"code":"x()"}`}, {"s__press", `{"button":"Back"}`},
		} {
			report.Calls = append(report.Calls, analysis.CallSite{Name: c[0], Args: c[1], Position: analysis.Position{Line: n + 1, Column: 1}})
		}
		a := planned(t, New(view, Options{Caller: caller, Recorder: b}), caller, b, report, Call{Number: 1, Name: "s__open", Args: json.RawMessage(report.Calls[0].Args), Position: report.Calls[0].Position})
		type item struct {
			Tool, Risk string
			New        bool
		}
		var got []item
		for _, i := range a.question().Items {
			one := item{Tool: i.Tool, Risk: i.Decision.Risk.String()}
			for _, f := range i.About.Facts {
				one.New = one.New || f.New
			}
			got = append(got, one)
		}
		want := []item{{"open", "medium", true}, {"press", "medium", true}, {"press", "high", true}, {"mail", "high", true}, {"mail", "medium", true}, {"script", "high", true}, {"press", "high", true}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		a.answer(declined)
		<-a.done
		if a.g.met.Knows("s1", "host new.example") || a.g.met.At(provenance.Whose{Server: " s"}) != "" {
			t.Error("what is only planned was met")
		}
	})
}
