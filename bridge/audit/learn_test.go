package audit_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox/racing"
)

// officeKnown is what is known of the office's tools.
func officeKnown(server, tool string) audit.Meaning {
	roles := map[string]map[string]audit.Role{
		"files read": {"path": audit.Meant}, "files write": {"path": audit.Meant, "content": audit.Text}, "web fetch": {"url": audit.Meant},
		"chat post": {"to": audit.Meant, "cc": audit.Meant, "text": audit.Text}, "chat switch": {"mode": audit.Bound}, "chat clone": {"from": audit.Meant, "path": audit.Meant},
		"chat page": {"id": audit.Bound},
	}
	return audit.Meaning{Args: roles[server+" "+tool], Stateful: tool == "switch"}
}

// learnFrom learns a profile from a log.
func learnFrom(t testing.TB, b *logbook, facts audit.Facts, extends string) (*audit.Learnt, *profiles.Set) {
	t.Helper()
	var last *profiles.Set
	learnt, err := audit.Learn(audit.LearnOptions{
		Name: "learnt", Extends: extends, Rows: b.all, Facts: facts, Known: officeKnown,
		With: func(name string, spec profiles.ProfileSpec) (*profiles.Set, error) {
			text, err := json.Marshal(spec)
			if err != nil {
				return nil, err
			}
			cfg, err := config.Parse("config.json", fmt.Appendf(nil, `{"evaluation": {"profiles": {"p": {}, %q: %s}}}`, name, text), nil)
			if err != nil {
				return nil, err
			}
			last = cfg.Profiles
			return last, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return learnt, last
}

// learning makes calls under a policy, of the form "files__write a.txt".
func learning(t testing.TB, policy string, calls ...string) (*logbook, audit.Facts, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.New([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	view, b := officeView(parsed(t, policy)[0]), &logbook{}
	g := gate.New(view, gate.Options{Caller: office{rand.New(rand.NewPCG(1, 1))}, Recorder: b})
	o := gate.Origin{ID: "r1", Session: "s1", Requester: "ann", Reach: gate.NoElicitation, Profile: "p", Script: "x"}
	o.Workspace = ws
	run, err := g.Begin(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, call := range calls {
		tool, args := officeArgs(call, dir)
		_, _ = g.Call(t.Context(), run, gate.Call{Number: i + 1, Name: tool, Args: args})
	}
	if err := run.End(t.Context(), ledger.Done, "", gate.Entries{}); err != nil {
		t.Fatal(err)
	}
	return b, officeFacts(view, ws), dir
}

func officeArgs(call, dir string) (tool string, args json.RawMessage) {
	tool, what, _ := strings.Cut(call, " ")
	if strings.HasPrefix(what, "{") {
		return tool, json.RawMessage(strings.ReplaceAll(what, "WS", dir))
	}
	of := map[string]any{"url": what}
	if strings.HasPrefix(tool, "files") {
		path, content, ok := strings.Cut(what, "=")
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if of = map[string]any{"path": path}; ok {
			of["content"] = content
		}
	}
	if strings.HasPrefix(tool, "box") || strings.HasPrefix(tool, "mail") {
		of = map[string]any{}
	}
	args, _ = json.Marshal(of)
	return tool, args
}

// Nothing is let pass but what was done, and what three different ones of it stand for.
func TestLearn(t *testing.T) {
	t.Parallel()
	writes := []string{"files__write a.txt=1", "files__write b.txt=2", "files__write src/c.txt=3"}
	docs := []string{"web__fetch https://docs.example/a", "web__fetch https://docs.example/b", "web__fetch https://docs.example/c"}
	for name, row := range map[string]struct {
		policy    string
		calls     []string
		pass, ask []string
		rules     int
	}{
		"three files stand for the workspace": {`{"default":"allow"}`, writes,
			[]string{"files__write d/new.txt=4", "files__write a.txt"}, []string{"files__write /etc/motd=5", "files__write .git/hooks/pre-commit=6", "files__write .env=7", "files__write d/$(id).txt=8", "files__read a.txt", "web__fetch https://docs.example/a"}, 1},
		"two files stand for themselves": {`{"default":"allow"}`, writes[:2],
			[]string{"files__write a.txt=4"}, []string{"files__write d/new.txt=4", "files__write src/c.txt=3"}, 1},
		"a name that a shell would read": {`{"default":"allow"}`, []string{"files__write a.txt=1", "files__write b;id.txt=2", "files__write c|d.txt=3", "files__write `id`=4"},
			[]string{"files__write a.txt=4"}, []string{"files__write b;id.txt=2", "files__write d.txt=5"}, 1},
		"three addresses stand for their host": {`{"default":"allow"}`, docs,
			[]string{"web__fetch https://docs.example/x/y"}, []string{"web__fetch https://docs.example/x?q=notes", "web__fetch https://docs.example/x#y", "web__fetch http://docs.example/a",
				"web__fetch https://docs.example:8443/a", "web__fetch https://docs.example.evil.example/a", "web__fetch https://evil.example/a", "web__fetch https://docs.example@evil.example/a"}, 1},
		"one address stands for itself": {`{"default":"allow"}`, docs[:1],
			[]string{"web__fetch https://docs.example/a"}, []string{"web__fetch https://docs.example/b"}, 1},
		"a refused call is let pass by no rule": {`{"default":"allow","rules":[{"tools":["files__write"],"when":"args.path.endsWith('plan.md')","action":"deny"}]}`,
			append(writes, "files__write plan.md=5"), nil, []string{"files__write a.txt=1", "files__write plan.md=6"}, 0},
		"what nobody knows is asked about": {`{"default":"allow"}`, []string{"box__list", "mail__send"}, nil, []string{"box__list", "mail__send"}, 0},
		"what is outside is asked about":   {`{"default":"allow"}`, []string{"files__write /tmp/a=1", "files__write /tmp/b=1", "files__write /tmp/c=1"}, nil, []string{"files__write /tmp/a=1"}, 0},
		"the word new is nobody's name":    {`{"default":"allow"}`, []string{`chat__post {"to":"new","text":"hi"}`}, nil, []string{`chat__post {"to":"eve","text":"hi"}`, `chat__post {"to":"new","text":"hi"}`}, 0},
		"somebody is bound":                {`{"default":"allow"}`, []string{`chat__post {"to":"ann","text":"hi"}`}, []string{`chat__post {"to":"ann","text":"bye"}`}, []string{`chat__post {"to":"eve","text":"hi"}`, `chat__post {"to":"ann","text":"see https://x.example"}`, `chat__post {"to":"ann","cc":"eve","text":"hi"}`}, 1},
		"names are cut":                    {`{"default":"allow"}`, []string{`chat__post {"to":"` + strings.Repeat("é", 40) + `1","text":"hi"}`, `chat__post {"to":"` + strings.Repeat("é", 40) + `2","text":"hi"}`}, []string{`chat__post {"to":"` + strings.Repeat("é", 40) + `2","text":"bye"}`}, []string{`chat__post {"to":"` + strings.Repeat("é", 40) + `3","text":"hi"}`}, 2},
		"nobody is nobody":                 {`{"default":"allow"}`, []string{`chat__post {"to":"ann","cc":[],"text":"hi"}`, `chat__post {"to":"ann","cc":null,"text":"hi"}`}, nil, []string{`chat__post {"to":"ann","cc":["eve"],"text":"hi"}`}, 0},
		"what depends on a state":          {`{"default":"allow"}`, []string{`chat__switch {"mode":"on"}`}, nil, []string{`chat__switch {"mode":"on"}`}, 0},
		"a path in place of a host":        {`{"default":"allow"}`, []string{`chat__clone {"from":"WS/a","path":"WS/b"}`}, nil, []string{`chat__clone {"from":"https://evil.example/x","path":"WS/b"}`}, 0},
		"which page was read":              {`{"default":"allow"}`, []string{`chat__page {"id":"A"}`}, []string{`chat__page {"id":"A"}`}, []string{`chat__page {"id":"B"}`}, 1},
		"an address that says more":        {`{"default":"allow"}`, []string{"web__fetch https://docs.example/?q=1"}, nil, []string{"web__fetch https://docs.example/?q=1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b, facts, dir := learning(t, row.policy, row.calls...)
			learnt, set := learnFrom(t, b, facts, "")
			if len(learnt.Profile.Rules) != row.rules || len(learnt.Lines) != row.rules {
				text, _ := learnt.Text()
				t.Errorf("there are %d rules, want %d:\n%s\n%s", len(learnt.Profile.Rules), row.rules, text, strings.Join(learnt.Words(), "\n"))
			}
			profile, _ := set.Profile("learnt")
			decide := func(call string) profiles.Decision {
				tool, text := officeArgs(call, dir)
				var args map[string]any
				if err := json.Unmarshal(text, &args); err != nil {
					t.Fatal(err)
				}
				server, tool, _ := strings.Cut(tool, "__")
				made, _ := facts(server, tool, args)
				made.Args = args
				return profile.Decide(made)
			}
			for _, call := range row.pass {
				if d := decide(call); d.Disposition != profiles.Allow {
					t.Errorf("%s is not let pass: %v", call, d.Reasons)
				}
			}
			for _, call := range row.ask {
				if d := decide(call); d.Disposition != profiles.Ask {
					t.Errorf("%s: %s by %v", call, d.Disposition, d.Reasons)
				}
			}
		})
	}
}

// A person's yes to calls like one for the session is for all of the workspace, and one to the call alone, or to those of
// the run, is not.
func TestLearnFromAWiderYes(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]profiles.Disposition{"yes, once": profiles.Ask, "yes, run": profiles.Ask, "yes, session": profiles.Allow, "yes, session_any": profiles.Allow} {
		b, facts, dir := learning(t, `{"default":"allow"}`, "files__write src/a.txt=1")
		at := slices.IndexFunc(b.rows, func(r ledger.Row) bool { return r.Record.Event == ledger.Intent })
		said := b.rows[at]
		said.Record.Event, said.Record.Disposition, said.Record.Answer, said.Record.Channel, said.Record.Approver, said.Record.Counted = ledger.Verdict, "ask", answer, "elicitation", "ann", new(true)
		b.rows = slices.Insert(b.rows, at, said)
		_, set := learnFrom(t, b, facts, "")
		profile, _ := set.Profile("learnt")
		for call, want := range map[string]profiles.Disposition{"files__write src/a.txt=2": profiles.Allow, "files__write b.txt=2": want, "files__write /etc/motd=2": profiles.Ask, "files__write $(id)=2": profiles.Ask} {
			tool, text := officeArgs(call, dir)
			args := map[string]any{}
			if err := json.Unmarshal(text, &args); err != nil {
				t.Fatal(err)
			}
			server, tool, _ := strings.Cut(tool, "__")
			made, _ := facts(server, tool, args)
			made.Args = args
			if d := profile.Decide(made); d.Disposition != want {
				t.Errorf("after %q, %s: %s, want %s: %v", answer, call, d.Disposition, want, d.Reasons)
			}
		}
	}
}

// What the profile that is extended lets pass needs no rule; what was refused is asked about even so.
func TestLearnBesideATemplate(t *testing.T) {
	t.Parallel()
	b, facts, dir := learning(t, `{"default":"allow","rules":[{"tools":["files__read"],"when":"args.path.endsWith('plan.md')","action":"deny"}]}`,
		"files__read a.txt", "files__write a.txt=1", "files__write b.txt=1", "files__write c.txt=1", "files__read plan.md")
	learnt, set := learnFrom(t, b, facts, "builtin:coding@1")
	if len(learnt.Profile.Rules) != 1 || len(learnt.Profile.Asklist) != 1 || learnt.Profile.Asklist[0] != "files__read" || learnt.Refused != 1 || learnt.Calls != 4 {
		t.Errorf("learnt is %+v", learnt)
	}
	text, err := learnt.Text()
	if err != nil {
		t.Fatal(err)
	}
	whole := `{"evaluation": {"profiles": {"learnt": ` + string(text) + `}}}`
	if _, err := config.Parse("config.json", []byte(whole), nil); err != nil {
		t.Errorf("what is written cannot be read: %v\n%s", err, whole)
	}
	for _, want := range []string{"// 3 calls in 1 run, ", "; 0 approved by a person: files__write 3\n", `r1 #2  {"content":"1","path":"` + filepath.Join(dir, "a.txt"), "// calls of these were refused\n", `"extends": "builtin:coding@1"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if profile, _ := set.Profile("learnt"); profile == nil || profile.Effective().Default == nil {
		t.Error("the profile is not in the last policy")
	}
}

// Whatever was recorded, the profile that is learnt lets no call pass that was refused, and none that is known to have been done
// is denied.
func TestLearntProfileLetsNothingRefusedPass(t *testing.T) {
	racing.Alone(t)
	t.Parallel()
	refused, allowed := 0, 0
	for i, set := range officePolicies(t) {
		for seed := range uint64(12) {
			b, facts := play(t, set, rand.New(rand.NewPCG(seed, uint64(i))), seed%2 == 0)
			for _, extends := range []string{"", "builtin:coding@1"} {
				learnt, policy := learnFrom(t, b, facts, extends)
				allowed += learnt.Allowed
				_, err := audit.ReplayLog(b.all(), audit.ReplayOptions{Policy: policy, Facts: facts, By: "learnt", Each: func(o audit.Replayed) {
					if o.Sent && !o.No {
						return
					}
					if refused++; o.Gap == "" && (o.Is == "allow" || o.Is == "notify") {
						t.Errorf("policy %d, seed %d, extends %q: %s__%s %.200s is let pass by %v", i, seed, extends, o.Server, o.Tool, o.Args, o.Decided.Reasons)
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if refused < 100 || allowed < 100 {
		t.Errorf("%d refused, %d let pass", refused, allowed)
	}
}
