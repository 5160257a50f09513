package gate

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// withScripts is a gate with saved scripts and a profile that denies all tools.
func withScripts(t *testing.T, b *book) (*Gate, *fakeCaller) {
	t.Helper()
	set, problems := profiles.Parse(supervised(profiles.ProfileSpec{Denylist: []string{"*"}}))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	caller := &fakeCaller{reply: `{}`}
	return New(&View{Profiles: set, Catalog: catalog.Sources{Scripts: []catalog.Script{
		{Name: "report", Description: "Report", Digest: "sha256:1", Source: "return input.days // password=hunter22secret",
			Input: json.RawMessage(`{"type":"object","required":["days"],"additionalProperties":false,"properties":{"days":{"type":"number"}}}`)},
		{Name: "plain", Description: "Plain", Digest: "sha256:2", Source: "return 1"},
		{Name: "half", Digest: "sha256:3", Problem: "line 2: broken"},
	}}.Build()}, Options{Caller: caller, Recorder: b}), caller
}

func TestSavedScript(t *testing.T) {
	b := &book{}
	g, caller := withScripts(t, b)
	r := begin(t, g, "p")
	s, err := g.Saved(context.Background(), r, Call{Number: 1, Name: "report", Args: json.RawMessage(`{"days":7,"days":7}`)})
	if err == nil {
		t.Errorf("a key that is there twice went through: %v", s)
	}
	for number := 2; number < 4; number++ {
		s, err = g.Saved(context.Background(), r, Call{Number: number, Name: "report", Args: json.RawMessage(`{"days":7}`)})
		if err != nil || !strings.HasPrefix(s.Source, "return input.days") {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	if _, err := g.Saved(context.Background(), r, Call{Number: 4, Name: "plain", Args: json.RawMessage(`{}`)}); err != nil {
		t.Errorf("a script without input: %v", err)
	}
	if want := "run_started refusal:refused saved_script:done saved_script:done saved_script:done"; b.events() != want {
		t.Errorf("recorded %s\nwant     %s", b.events(), want)
	}
	first, second := b.records[2], b.records[3]
	want := ledger.Record{Event: ledger.SavedScript, Run: "r1", Session: "s1", Client: "test", Profile: "p", Call: 2, Trace: "r1.2",
		Name: "report", Tool: `run("report")`, ScriptHash: "sha256:1", Input: json.RawMessage(`{"days":7}`), Outcome: ledger.Done}
	if diff := cmp.Diff(want, first, cmpopts.IgnoreFields(ledger.Record{}, "Time", "Script")); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	if !strings.Contains(first.Script, "return input.days") || strings.Contains(first.Script, "hunter22secret") || second.Script != "" {
		t.Errorf("the script, once and redacted: %q, %q", first.Script, second.Script)
	}
	if len(caller.calls) != 0 {
		t.Errorf("something was sent: %v", caller.calls)
	}
}

func TestSavedScriptIsRefused(t *testing.T) {
	for _, row := range []struct {
		what, name, args, message, path string
	}{
		{"an input of another type", "report", `{"days":"7"}`, `run("report") was not sent: args.days must be number, got string`, "/days"},
		{"a missing input", "report", `{}`, "args.days is missing", ""},
		{"an input that is not taken", "plain", `{"a":1}`, "it takes no input", ""},
		{"a broken script", "half", `{}`, "saved script half can't be run: line 2: broken", ""},
		{"a name that is near", "reprot", `{}`, `there is no saved script run("reprot"); did you mean run("report")?`, ""},
		{"a path", "../report", `{}`, "there is no saved script", ""},
		{"a tool's name", "search_tools", `{}`, "there is no saved script", ""},
	} {
		b := &book{}
		g, _ := withScripts(t, b)
		r := begin(t, g, "p")
		_, err := g.Saved(context.Background(), r, Call{Number: 1, Name: row.name, Args: json.RawMessage(row.args)})
		if err == nil || !strings.Contains(err.Error(), row.message) {
			t.Errorf("%s: got %v, want %q", row.what, err, row.message)
		}
		var args *ArgumentError
		if errors.As(err, &args) && args.Path != row.path {
			t.Errorf("%s: path %q, want %q", row.what, args.Path, row.path)
		}
		if want := "run_started refusal:refused"; b.events() != want {
			t.Errorf("%s: recorded %s", row.what, b.events())
		}
	}
}

func TestSavedScriptThatCannotBeRecordedIsNotGivenAway(t *testing.T) {
	b := &book{refuse: ledger.SavedScript}
	g, _ := withScripts(t, b)
	r := begin(t, g, "p")
	s, err := g.Saved(context.Background(), r, Call{Number: 1, Name: "plain"})
	var denied *approval.DeniedError
	if !errors.As(err, &denied) || denied.Reason != approval.AuditUnavailable || s.Source != "" {
		t.Errorf("got %+v, %v", s, err)
	}
}
