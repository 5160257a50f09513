package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
	"codemode-bridge/sandbox/racing"
)

// A logbook keeps the records that a gate writes, as a store would give them back.
type logbook struct {
	mu   sync.Mutex
	rows []ledger.Row
}

func (b *logbook) Record(_ context.Context, all ...ledger.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range all {
		body, err := ledger.Encode(r, time.Now)
		if err != nil {
			return err
		}
		if r, err = ledger.Decode(body); err != nil {
			return err
		}
		b.rows = append(b.rows, ledger.Row{Seq: int64(len(b.rows) + 1), Record: r})
	}
	return nil
}

func (b *logbook) all() audit.Rows {
	return func(yield func(ledger.Row, error) bool) {
		for _, row := range b.rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// office answers calls: its files are private, and its web has text of others.
type office struct{ rand *rand.Rand }

func (o office) Call(_ context.Context, server, _, tool string, args json.RawMessage) (json.RawMessage, error) {
	text := fmt.Sprintf("what %s says of %s: a line that nobody would write by chance", server, tool)
	return json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "isError": o.rand.IntN(8) == 0})
}

// officeView is five servers: files, web and chat are known, mail is labelled, and of box nobody has said anything.
func officeView(set *profiles.Set) *gate.View {
	schema := func(names ...string) json.RawMessage {
		properties := map[string]any{}
		for _, name := range names {
			properties[name] = map[string]any{}
		}
		text, _ := json.Marshal(map[string]any{"type": "object", "properties": properties})
		return text
	}
	files := known.Server{Tools: map[string]known.Tool{
		"read":  {Effects: []known.Effect{known.Read}, Where: known.Workspace, Args: map[string]known.Role{"path": known.Path}, Labels: []known.Label{known.Private}},
		"write": {Effects: []known.Effect{known.Write}, Where: known.Workspace, Args: map[string]known.Role{"path": known.Path, "content": known.Content}, Labels: []known.Label{}},
	}}
	web := known.Server{Tools: map[string]known.Tool{
		"fetch": {Effects: []known.Effect{known.Read}, Where: known.Remote, Net: known.NetChosen, Args: map[string]known.Role{"url": known.Host}, Labels: []known.Label{known.Untrusted, known.External}},
	}}
	chat := known.Server{Tools: map[string]known.Tool{
		"post":   {Effects: []known.Effect{known.Send}, Where: known.Remote, Net: known.NetFixed, Args: map[string]known.Role{"to": known.Recipient, "cc": known.Recipient, "text": known.Content}, Labels: []known.Label{known.External}},
		"switch": {Effects: []known.Effect{known.Write}, Where: known.Local, Net: known.NetNone, Stateful: true, Args: map[string]known.Role{"mode": known.Place}, Labels: []known.Label{}},
		"clone":  {Effects: []known.Effect{known.Write}, Where: known.Workspace, Net: known.NetChosen, Args: map[string]known.Role{"from": known.PathOrHost, "path": known.Path}, Labels: []known.Label{known.External}},
		"page":   {Effects: []known.Effect{known.Read}, Where: known.Remote, Net: known.NetFixed, Args: map[string]known.Role{"id": known.Plain}, Labels: []known.Label{known.External}},
	}}
	return &gate.View{
		Profiles: set,
		Catalog: catalog.Build([]catalog.Server{
			{Name: "files", Tools: []catalog.Definition{{Name: "read", Input: schema("path")}, {Name: "write", Input: schema("path", "content")}}},
			{Name: "web", Tools: []catalog.Definition{{Name: "fetch", Input: schema("url")}}},
			{Name: "mail", Tools: []catalog.Definition{{Name: "send", Input: schema("to", "body", "token")}}},
			{Name: "chat", Tools: []catalog.Definition{{Name: "post", Input: schema("to", "cc", "text")}, {Name: "switch", Input: schema("mode")}, {Name: "clone", Input: schema("from", "path")}, {Name: "page", Input: schema("id")}}},
			{Name: "box", Tools: []catalog.Definition{{Name: "list", Input: schema("q")}, {Name: "delete_all", Input: schema("q")}}},
		}),
		Meanings: map[string]gate.Meant{
			"files": {Server: files, Accepted: true, Folder: "/w"}, "web": {Server: web, Accepted: true}, "chat": {Server: chat, Accepted: true, Folder: "/w"},
			"mail": {Labels: func(string) ([]string, bool) { return []string{"external"}, true }},
		},
	}
}

// officePolicies are profiles in which everything that a decision may look at is looked at.
func officePolicies(t testing.TB) []*profiles.Set {
	return parsed(t,
		`{"default": "risk"}`,
		`{"default": "allow", "asklist": ["mail__*"], "denylist": ["box__delete*"]}`,
		`{"default": "risk", "rules": [
			{"tools": ["*"], "when": "run.calls > 3 && run.tools.exists(t, t == 'files__read')", "action": "ask"},
			{"tools": ["*"], "when": "run.bytes > 900", "action": "manual"},
			{"tools": ["mail__send"], "when": "args.to.endsWith('@acme.com')", "action": "notify"},
			{"known": true, "effects": ["read"], "action": "allow"}]}`,
		`{"default": "risk", "flows": [{"from": "private", "to": "external", "action": "ask", "by": "content"}]}`,
		`{"default": "allow", "flows": [{"from": "private", "to": "external", "action": "ask", "by": "context"}],
			"rules": [{"tools": ["*"], "when": "flow.written", "action": "notify"}]}`,
		`{"extends": "builtin:coding@1"}`, `{"extends": "builtin:trifecta@1"}`,
	)
}

func parsed(t testing.TB, texts ...string) (all []*profiles.Set) {
	for _, text := range texts {
		if !strings.Contains(text, "builtin:") { // those ask nobody, and what asks is refused
			text = strings.Replace(text, "{", `{"elicitationFallback": "allow", `, 1)
		}
		cfg, err := config.Parse("config.json", []byte(`{"evaluation": {"defaultProfile": "p", "profiles": {"p": `+text+`}}}`), nil)
		if err != nil {
			t.Fatal(text, err)
		}
		all = append(all, cfg.Profiles)
	}
	return all
}

// officeCalls are calls that somebody may make there; some can be seen only in part in a log.
func officeCall(r *rand.Rand, plain bool) (tool string, args map[string]any) {
	one := func(all ...string) string { return all[r.IntN(len(all))] }
	read := "what files says of read: a line that nobody would write by chance"
	texts := []string{"hello", "FYI " + read, "what web says of fetch: a line that nobody would write by chance"}
	if !plain {
		texts = append(texts, strings.Repeat("long ", 900), "ghp_0123456789abcdefghijABCDEFGHIJ012345")
	}
	switch one("read", "write", "fetch", "send", "list", "delete") {
	case "read":
		return "files__read", map[string]any{"path": one("a.txt", "/etc/passwd", "b/c.txt", ".env")}
	case "write":
		return "files__write", map[string]any{"path": one("a.txt", "/etc/motd", "b/c.txt"), "content": one(texts...)}
	case "fetch":
		return "web__fetch", map[string]any{"url": one("https://example.com/", "https://docs.example.com/a?b=c", "http://localhost:8080/")}
	case "send":
		args := map[string]any{"to": one("ann@acme.com", "eve@evil.example"), "body": one(texts...)}
		if !plain && r.IntN(2) == 0 {
			args["token"] = "4711-0815"
		}
		return "mail__send", args
	case "list":
		return "box__list", map[string]any{"q": one(texts...)}
	}
	return "box__delete_all", map[string]any{}
}

func officeFacts(view *gate.View, ws workspace.Workspace) audit.Facts {
	return func(server, tool string, args map[string]any) (profiles.Call, bool) {
		t, ok := view.Catalog.Tool(catalog.ToolRef{Server: server, Tool: tool})
		if !ok {
			return profiles.Call{Server: server, Tool: tool}, false
		}
		call := view.Facts(t)[0]
		call.Meaning = view.Meaning(t, args, ws)
		return call, true
	}
}

// play makes a log: runs of several sessions make calls, one after the other.
func play(t testing.TB, set *profiles.Set, r *rand.Rand, plain bool) (*logbook, audit.Facts) {
	view, b := officeView(set), &logbook{}
	ws := workspace.Workspace{}
	g := gate.New(view, gate.Options{Caller: office{rand.New(rand.NewPCG(1, 1))}, Recorder: b})
	for n := range 4 {
		o := gate.Origin{ID: fmt.Sprint("r", n), Session: fmt.Sprint("s", n/2), Requester: "ann", Reach: gate.NoElicitation, Profile: "p", Brief: n%2 == 1 && r.IntN(2) == 0,
			Script: `files.read({path: "a.txt"}); mail.send({to: "ann@acme.com", body: "hello"}); web.fetch({url: "https://example.com/"})`}
		if o.Brief {
			o.Session = "brief" + o.ID
		}
		o.Workspace = ws
		run, err := g.Begin(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		for number := range 6 {
			tool, args := officeCall(r, plain)
			text, _ := json.Marshal(args)
			_, _ = g.Call(t.Context(), run, gate.Call{Number: number + 1, Name: tool, Args: text})
		}
		if err := run.End(t.Context(), ledger.Done, "", gate.Entries{}); err != nil {
			t.Fatal(err)
		}
	}
	return b, officeFacts(view, ws)
}

// What the very policy that wrote a log decides on it anew is what was decided. Where the log shows everything, it is
// known of each call.
func TestReplayByTheSamePolicyChangesNothing(t *testing.T) {
	racing.Alone(t)
	t.Parallel()
	for i, set := range officePolicies(t) {
		for seed := range uint64(12) {
			plain := seed%2 == 0
			b, facts := play(t, set, rand.New(rand.NewPCG(seed, uint64(i))), plain)
			got, err := audit.ReplayLog(b.all(), audit.ReplayOptions{Policy: set, Facts: facts})
			if err != nil {
				t.Fatal(err)
			}
			if got.Calls < 10 {
				t.Fatalf("policy %d, seed %d: %d calls", i, seed, got.Calls)
			}
			for _, c := range got.Changes {
				text, _ := json.Marshal(c)
				t.Errorf("policy %d, seed %d: %s", i, seed, text)
			}
			if plain {
				for _, u := range got.Undecided {
					text, _ := json.Marshal(u)
					t.Errorf("policy %d, seed %d, cannot be decided: %s", i, seed, text)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}

// What a replay says of a call is what the other policy would have decided: the same calls are made under it, too. Where it
// says that this cannot be known, something is missing: a log that says what was looked for, and shows every value, has no gaps.
func TestReplayByAnotherPolicyIsRight(t *testing.T) {
	racing.Alone(t)
	t.Parallel()
	const looks = `"flows": [{"from": "none", "to": "external", "action": "ask", "by": "content"}, {"from": "none", "to": "external", "action": "ask", "by": "context"}]`
	logs := parsed(t, `{"default": "allow"}`, `{"default": "allow", `+looks+`}`)
	others := append(officePolicies(t)[2:5], parsed(t,
		`{"default": "ask", "rules": [{"tools": ["mail__*"], "when": "args.body == 'hello'", "action": "allow"}, {"tools": ["*"], "paths": ["workspace"], "action": "allow"}]}`,
		`{"default": "allow", "rules": [{"tools": ["mail__*"], "when": "has(args.token)", "action": "ask"}, {"tools": ["box__*"], "when": "args.q.size() > 3000", "action": "ask"}]}`,
		`{"default": "risk", "rules": [{"tools": ["*"], "known": true, "action": "allow"}, {"tools": ["*"], "when": "'private' in flow.content", "action": "manual"}]}`)...)
	known, gaps := 0, map[string]int{}
	for i, log := range logs {
		for j, other := range others {
			for seed := range uint64(6) {
				random := func() *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(j))) }
				was, facts := play(t, log, random(), seed%2 == 0)
				is, _ := play(t, other, random(), seed%2 == 0)
				want := map[string]audit.Replayed{}
				each := func(o audit.Replayed) { want[fmt.Sprint(o.Run, o.Call)] = o }
				if _, err := audit.ReplayLog(is.all(), audit.ReplayOptions{Policy: other, Facts: facts, Each: each}); err != nil {
					t.Fatal(err)
				}
				_, err := audit.ReplayLog(was.all(), audit.ReplayOptions{Policy: other, Facts: facts, Each: func(o audit.Replayed) {
					really := want[fmt.Sprint(o.Run, o.Call)]
					switch {
					case o.Gap != "" && seed%2 == 0 && i == 1:
						t.Errorf("policy %d, seed %d: nobody can know (%s) what is decided of %s__%s %s", j, seed, o.Gap, o.Server, o.Tool, o.Args)
					case o.Gap != "":
						gaps[o.Gap]++
					case o.Is != really.Was:
						t.Errorf("policy %d, seed %d, log %d: %s__%s %.200s: %s, really %s: %v", j, seed, i, o.Server, o.Tool, o.Args, o.Is, really.Was, o.Decided.Reasons)
					default:
						known++
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if known < 800 || gaps[audit.GapHidden] == 0 || gaps[audit.GapCut] == 0 || gaps[audit.GapContent] == 0 || gaps[audit.GapWritten] == 0 {
		t.Errorf("known: %d, gaps: %v", known, gaps)
	}
}
