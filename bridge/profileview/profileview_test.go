package profileview

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
)

// office is a configuration of two profiles, of which careful extends base.
func office(t *testing.T) (*profiles.Set, Specs) {
	t.Helper()
	var spec profiles.Spec
	if err := json.Unmarshal([]byte(`{
		"profiles": {
			"base": {"denylist": ["fs__delete"], "default": "ask"},
			"careful": {"extends": "base", "asklist": ["fs__wirte"], "rules": [
				{"name": "temporary", "tools": ["fs__write"], "action": "allow", "when": [{"param": "path", "matches": "/tmp/*"}], "reason": "nobody needs it", "risk": "low"}
			]}
		}
	}`), &spec); err != nil {
		t.Fatal(err)
	}
	set, problems := profiles.Parse(spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return set, spec.Profiles
}

func view(set *profiles.Set) *gate.View {
	tools := []catalog.Definition{
		{Name: "write", Description: "writes", Input: json.RawMessage(`{"type": "object", "properties": {"path": {"type": "string"}}}`)},
		{Name: "delete", Input: json.RawMessage(`{"type": "object"}`)},
	}
	return &gate.View{Profiles: set, Catalog: catalog.Sources{Servers: []catalog.Server{{Name: "fs", Tools: tools}}, Order: []string{"fs", "off"}}.Build()}
}

func TestWrite(t *testing.T) {
	set, specs := office(t)
	careful, _ := set.Profile("careful")
	var out strings.Builder
	if err := Write(&out, set, specs, careful); err != nil {
		t.Fatal(err)
	}
	const want = `profile careful binds codemode_eval_careful
extends base

deny               fs__delete  (base)
ask                fs__wirte
rule temporary     allow: fs__write
                     when path matches /tmp/*
                     because nobody needs it
                     risk low
otherwise          ask
client cannot ask  deny
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	rows := Rows(set, specs)
	var names []string
	for _, r := range rows {
		names = append(names, r.Name+"/"+r.Extends+"/"+r.Default)
	}
	if !slices.Equal(names, []string{"//allow", "base//ask", "careful/base/ask"}) {
		t.Errorf("rows %q", names)
	}
}

func TestExplain(t *testing.T) {
	set, _ := office(t)
	careful, _ := set.Profile("careful")
	v := view(set)
	explain := func(tool, arguments string) (Explained, string) {
		t.Helper()
		args, err := canon.Parse([]byte(arguments))
		if err != nil {
			t.Fatal(err)
		}
		servers := Servers{
			Has:      func(server string) bool { return server == "fs" || server == "off" },
			Disabled: func(server string) bool { return server == "off" },
		}
		x, err := Explain(v, careful, tool, args, workspace.Workspace{}, servers, func(profiles.Decision) time.Duration { return time.Minute })
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		x.Write(&out, Called(careful))
		return x, out.String()
	}
	x, text := explain("fs__write", `{"path": "/tmp/x"}`)
	if !x.Known || !strings.HasPrefix(text, "allow: fs__write {\"path\":\"/tmp/x\"}\nprofile careful, ") || !strings.Contains(text, "WHY\n") || strings.Contains(text, "HOW IT IS ASKED") {
		t.Errorf("a call that is allowed: %+v\n%s", x, text)
	}
	if rows := x.TriedRows(); len(rows) < 2 || !slices.ContainsFunc(rows, func(row []string) bool { return row[0] == "rule temporary (allow)" && row[3] == "yes" }) {
		t.Errorf("tried %q", rows)
	}
	if _, text := explain("fs__write", `{"path": "/etc/x"}`); !strings.HasPrefix(text, "ask") || !strings.Contains(text, "1m to answer") {
		t.Errorf("a call that is asked about:\n%s", text)
	}
	if x, _ := explain("fs__wirte", `{}`); x.Known || !strings.Contains(x.Note, "no server lists fs__wirte") || !strings.Contains(x.Note, "did you mean fs__write?") {
		t.Errorf("a tool that nobody has: %q", x.Note)
	}
	if x, _ := explain("off__send", `{}`); x.Known || !strings.HasPrefix(x.Note, "server off is disabled") {
		t.Errorf("a server that is disabled: %q", x.Note)
	}
	if x, _ := explain("OFF__send", `{}`); x.Tool != "off__send" || !strings.HasPrefix(x.Note, "server off is disabled") {
		t.Errorf("a server that is disabled, in another spelling: %s, %q", x.Tool, x.Note)
	}
	if x, _ := explain("mail__send", `{}`); !strings.Contains(x.Note, `there is no server "mail"`) {
		t.Errorf("a server that nobody has: %q", x.Note)
	}
}

func TestCheck(t *testing.T) {
	set, _ := office(t)
	v := view(set)
	warnings, tools := Check(v, func(pointer string) (string, int, int) { return "config.json", 3, len(pointer) })
	if tools != len(v.Catalog.Tools()) || len(warnings) != 1 {
		t.Fatalf("%d tools, warnings %v", tools, warnings)
	}
	w := warnings[0]
	if w.Path != "/evaluation/profiles/careful/asklist/0" || !strings.HasPrefix(w.String(), "config.json:3:38: ") || !strings.Contains(w.String(), "fs__wirte") {
		t.Errorf("got %s (%s)", w, w.Path)
	}
}
