package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
)

// stated is a known server with a few tools of each kind.
const stated = `{
  "title": "Stated", "verified": "1.0.0", "launch": [{"npm": "stated"}],
  "tools": {
    "read": {"effects": ["read"], "where": "workspace", "args": {"path": "path", "paths": "path", "head": "plain"}, "repeatable": true},
    "write": {"effects": ["write"], "where": "workspace", "args": {"path": "path", "text": "content"}},
    "fetch": {"effects": ["read"], "where": "remote", "net": "chosen", "args": {"url": "host"}},
    "query": {"effects": ["read"], "where": "remote", "net": "fixed", "args": {"db": "place"}},
    "mail": {"effects": ["send"], "where": "remote", "net": "fixed", "args": {"to": "recipient", "text": "content", "fee": "amount"}},
    "shell": {"effects": ["execute"], "where": "local", "args": {"line": "command"}},
    "home": {"effects": ["read"], "where": "workspace", "stateful": true, "home": "folder", "args": {"folder": "path"}},
    "log": {"effects": ["read"], "where": "workspace", "stateful": true, "under": {"repo": "", "file": "repo"}, "args": {"repo": "path", "file": "path"}},
    "open": {"effects": ["read"], "where": "remote", "net": "chosen", "stateful": true, "args": {"url": "host"}},
    "back": {"effects": ["read"], "where": "remote", "net": "chosen", "stateful": true},
    "click": {"effects": ["write", "send"], "where": "remote", "net": "chosen", "stateful": true, "args": {"target": "plain"}},
    "branch": {"effects": ["write"], "where": "remote", "net": "fixed", "args": {"owner": "place", "repo": "place", "branch": "place"}},
    "push": {"effects": ["write", "execute"], "runs": "ci", "where": "remote", "net": "fixed", "args": {"owner": "place", "repo": "place", "branch": "place", "file": "place"}},
    "assign": {"effects": ["write", "send"], "where": "remote", "net": "fixed", "args": {"id": "place", "to": "member", "watchers": "recipient"}},
    "press": {"effects": ["write", "send"], "where": "remote", "net": "chosen", "stateful": true, "args": {"button": "place"}},
    "script": {"effects": ["read", "execute"], "where": "remote", "net": "chosen", "stateful": true, "args": {"code": "command"}}
  }
}`

// meantView is a view of a server "s" that is the one that stated is about, and lists
// its tools with the arguments of the file and those of extra ("tool.argument").
func meantView(t *testing.T, spec profiles.Spec, folder string, extra ...string) *View {
	t.Helper()
	set, problems := profiles.Parse(spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	server, err := known.Parse("stated", []byte(stated))
	if err != nil {
		t.Fatal(err)
	}
	var tools []catalog.Definition
	for name, tool := range server.Tools {
		properties := map[string]any{}
		for arg := range tool.Args {
			properties[arg] = true
		}
		var required []string
		for _, one := range extra {
			switch of, arg, _ := strings.Cut(one, "."); {
			case of != name:
			case strings.HasPrefix(arg, "-"):
				delete(properties, arg[1:])
			case strings.HasSuffix(arg, "!"):
				arg = strings.TrimSuffix(arg, "!")
				properties[arg], required = true, append(required, arg)
			default:
				properties[arg] = true
			}
		}
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": append([]string{}, required...)})
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, catalog.Definition{Name: name, Input: schema})
	}
	tools = append(tools, catalog.Definition{Name: "unheard_of", Input: json.RawMessage(`true`)})
	return &View{Profiles: set, Catalog: catalog.Build([]catalog.Server{{Name: "s", Tools: tools}, {Name: "pretender", Tools: tools}}),
		Meanings: map[string]Meant{"s": {Server: server, Accepted: true, Folder: folder}}}
}

// playground is a folder with a workspace "ws" in it, where its links lead.
func playground(t *testing.T) (root, ws string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws = filepath.Join(root, "ws")
	for _, dir := range []string{"ws/src", "ws/.git/hooks", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link(t, filepath.Join(root, "elsewhere"), filepath.Join(ws, "out"))
	link(t, "src", filepath.Join(ws, "same"))
	return root, ws
}

// link makes a link, or replaces one.
func link(t *testing.T, target, name string) {
	t.Helper()
	if _, err := os.Lstat(name); err == nil {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(target, name); err != nil {
		t.Skip("no links here: ", err)
	}
}

func inWorkspace(t *testing.T, folders ...string) workspace.Workspace {
	t.Helper()
	w, err := workspace.New(folders, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// What a call means, in a line: whether it is accepted, what is unknown, and each value.
func line(m *profiles.Meaning) string {
	if m == nil {
		return "nothing is known"
	}
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if !m.Accepted {
		say("not accepted")
	}
	for _, p := range m.Paths {
		words := []string{"outside"}
		if p.Inside {
			words[0] = "inside"
		}
		for i, is := range []string{p.Secret, p.RunsLater, p.Doubt} {
			if is != "" {
				words = append(words, []string{"secret", "later", "doubt"}[i])
			}
		}
		say("%s is %s", p.Param, strings.Join(words, " "))
	}
	for _, h := range m.Hosts {
		say("%s is %s%s", h.Param, h.Name, map[bool]string{true: "?"}[h.Doubt != ""])
	}
	for _, r := range m.Recipients {
		say("%s is %s", r.Param, r.Name)
	}
	for _, c := range m.Commands {
		say("runs %s", c)
	}
	if m.Spends {
		say("spends")
	}
	for _, u := range m.Unknown {
		say("who knows %s", u)
	}
	return strings.Join(all, ", ")
}

func TestMeaning(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of other systems")
	}
	root, ws := playground(t)
	view := meantView(t, profiles.Spec{}, ws, "shell.new", "mail.-to", "write.must!")
	remote := meantView(t, profiles.Spec{}, ws)
	remote.Meanings["s"] = Meant{Server: remote.Meanings["s"].Server, Accepted: true, Folder: ws, Remote: true}
	several := meantView(t, profiles.Spec{}, ws)
	several.Meanings["s"] = Meant{Server: several.Meanings["s"].Server, Accepted: true, Folder: ws, Starts: []string{ws, root}}
	unreviewed := meantView(t, profiles.Spec{}, ws)
	unreviewed.Unreviewed = map[ToolName]UnreviewedTool{{"s", "read"}: {Why: "it changed"}}
	for _, row := range []struct {
		view             *View
		tool, args, want string
	}{
		{view, "s__read", `{"path":"WS/src/a.go"}`, "path is inside"},
		{view, "s__read", `{"path":"src/a.go"}`, "path is inside"},
		{view, "s__read", `{"path":"ROOT/other"}`, "path is outside"},
		{view, "s__read", `{"path":"WS/../other"}`, "path is outside"},
		{view, "s__read", `{"path":"../other"}`, "path is outside"},
		{view, "s__read", `{"path":"src/../../other"}`, "path is outside"},
		{view, "s__read", `{"path":"WS-evil/a"}`, "path is outside"},
		{view, "s__read", `{"path":"out/a"}`, "path is outside"},
		{view, "s__read", `{"path":"same/a"}`, "path is inside"},
		{view, "s__read", `{"path":"out/../a"}`, "path is outside doubt"},
		{view, "s__read", `{"path":"~/a"}`, "path is outside doubt"},
		{view, "s__read", `{"path":"%2e%2e/a"}`, "path is outside doubt"},
		{view, "s__read", `{"path":"file:///etc/passwd"}`, "path is outside doubt"},
		{view, "s__read", `{"path":".env"}`, "path is inside secret"},
		{view, "s__read", `{"path":".git/hooks/pre-commit"}`, "path is inside later"},
		{view, "s__read", `{"path":"out/.env"}`, "path is outside secret"},
		{view, "s__read", `{"paths":["src/a","ROOT/b"]}`, "paths.0 is inside, paths.1 is outside"},
		{view, "s__read", `{"path":7}`, "who knows path"},
		{view, "s__read", `{"path":["src/a",7]}`, "path.0 is inside, who knows path.1"},
		{view, "s__read", `{"path":"src/a","encoding":"x"}`, "path is inside, who knows encoding"},
		{view, "s__read", `{}`, ""},
		{view, "s__query", `{"db":"shop_eu-1.orders@main"}`, ""},
		{view, "s__query", `{"db":-100123}`, ""},
		{view, "s__query", `{"db":"--host=evil.example"}`, "who knows db"},
		{view, "s__query", `{"db":"shop; rm -r x"}`, "who knows db"},
		{view, "s__query", `{"db":"shop$(id)"}`, "who knows db"},
		{view, "s__unheard_of", `{"path":"src/a"}`, "nothing is known"},
		{view, "pretender__read", `{"path":"src/a"}`, "nothing is known"},
		{view, "s__write", `{"path":"src/a","must":"x"}`, "not accepted, path is inside, who knows must"},
		{view, "s__mail", `{"to":"ann@example.com"}`, "not accepted, to is ann@example.com"},
		{view, "s__shell", `{"line":"ls"}`, "runs ls"},
		{view, "s__shell", `{"line":"ls","new":"x"}`, "runs ls, who knows new"},
		{view, "s__fetch", `{"url":"https://Example.com:8080/x"}`, "url is example.com"},
		{view, "s__fetch", `{"url":"https://example.com@evil.net/x"}`, "url is ?"},
		{view, "s__click", `{"target":"Buy"}`, "page is ?"},
		{remote, "s__read", `{"path":"WS/src/a.go"}`, "path is outside doubt"},
		{remote, "s__read", `{"path":"/srv/.env"}`, "path is outside secret doubt"},
		{remote, "s__mail", `{"to":"ann@example.com","fee":5}`, "to is ann@example.com, spends"},
		{several, "s__read", `{"path":"WS/src/a"}`, "path is inside"},
		{several, "s__read", `{"path":"src/a"}`, "path is outside doubt"},
		{unreviewed, "s__read", `{"path":"src/a"}`, "not accepted, path is inside"},
	} {
		args, err := canon.Parse([]byte(strings.NewReplacer("WS", ws, "ROOT", root).Replace(row.args)))
		if err != nil {
			t.Fatal(err)
		}
		tool, ok := row.view.Catalog.Lookup(row.tool)
		if !ok {
			t.Fatalf("no tool %s", row.tool)
		}
		if diff := cmp.Diff(row.want, line(row.view.Meaning(tool, args.Value(), inWorkspace(t, ws)))); diff != "" {
			t.Errorf("%s %s:\n%s", row.tool, row.args, diff)
		}
	}
	tool, _ := view.Catalog.Lookup("s__read")
	if m := view.Meaning(tool, map[string]any{"path": ws + "/src/a"}, workspace.Workspace{}); line(m) != "path is outside" {
		t.Errorf("without a workspace: %s", line(m))
	}
}

// What the policy of these tests says: reading inside is allowed, and so is what goes to
// hosts and recipients that are not new; the rest asks.
func meaningly() profiles.Spec {
	return supervised(profiles.ProfileSpec{Default: new("ask"), Rules: []profiles.RuleSpec{
		{Effects: []string{"read"}, Where: []string{"workspace"}, Action: new("allow")},
		{Effects: []string{"read", "write", "send"}, Net: []string{"chosen", "fixed"}, Action: new("allow")},
		{Hosts: []string{"new"}, Action: new("ask")},
		{Recipients: []string{"new"}, Action: new("ask")},
	}})
}

// meantGate is a gate before meantView.
func meantGate(t *testing.T, folder string) (*Gate, *fakeCaller, *book) {
	caller, b := &fakeCaller{reply: okReply}, &book{}
	return New(meantView(t, meaningly(), folder), Options{Caller: caller, Recorder: b}), caller, b
}

// A meantRun is a run whose questions are all answered in the same way.
type meantRun struct {
	*testing.T
	g     *Gate
	r     *Run
	calls int
}

func beginMeant(t *testing.T, g *Gate, session string, ws workspace.Workspace) *meantRun {
	t.Helper()
	r, err := g.Begin(t.Context(), Origin{ID: "r" + session, Session: session, Profile: "p", Reach: ByElicitation, Surroundings: Surroundings{Workspace: ws}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &meantRun{T: t, g: g, r: r}
}

// call makes a call, says yes if somebody is asked, and reports whether somebody was.
// It must run in a bubble. Meanwhile runs while the question is open.
func (m *meantRun) call(name, args string, meanwhile func()) (asked bool, err error) {
	m.Helper()
	m.calls++
	done := make(chan error, 1)
	go func() {
		_, err := m.g.Call(m.Context(), m.r, Call{Number: m.calls, Name: name, Args: json.RawMessage(args)})
		done <- err
	}()
	synctest.Wait()
	for _, q := range m.g.Broker().Take(m.r.ID) {
		asked = true
		if meanwhile != nil {
			meanwhile()
		}
		if _, err := m.g.Settle(m.Context(), q.ID, q.Digest(), approval.Verdict{Approve: true, By: "ann", Channel: "elicitation"}); err != nil {
			m.Fatal(err)
		}
	}
	synctest.Wait()
	select {
	case err := <-done:
		return asked, err
	default:
		m.Fatalf("%s %s asks a second time", name, args)
		return
	}
}

// asks makes a call that must ask, or must not, and then be sent.
func (m *meantRun) asks(want bool, name, args string) {
	m.Helper()
	asked, err := m.call(name, args, nil)
	if asked != want || err != nil {
		m.Errorf("%s %s: asked %v, want %v; %v", name, args, asked, want, err)
	}
}

// A path that leads elsewhere once the answer is there is not sent, whatever the
// answer was; one that leads where it led is.
func TestLeadsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, ws := playground(t)
		moved := filepath.Join(ws, "moved")
		link(t, "src", moved)
		g, caller, b := meantGate(t, ws)
		run := beginMeant(t, g, "s1", inWorkspace(t, ws))
		run.asks(true, "s__write", `{"path":"moved/a","text":"x"}`)
		run.asks(false, "s__read", `{"path":"moved/a"}`)
		sent := len(caller.calls)
		asked, err := run.call("s__write", `{"path":"moved/a","text":"x"}`, func() { link(t, filepath.Join(root, "elsewhere"), moved) })
		var denied *approval.DeniedError
		if !asked || !errors.As(err, &denied) || denied.Reason != approval.Stale || !strings.Contains(denied.Message, "path leads elsewhere now") {
			t.Errorf("asked %v, ended with %v", asked, err)
		}
		if len(caller.calls) != sent {
			t.Errorf("sent %q", caller.calls[sent:])
		}
		if got := b.records[len(b.records)-1]; got.Outcome != "refused" {
			t.Errorf("recorded %+v", got)
		}
		run.asks(true, "s__read", `{"path":"moved/a"}`) // it is outside now
	})
}

// A noticing book tells of each record that it keeps.
type noticing struct {
	*book
	notice func(ledger.Record)
}

func (n noticing) Record(ctx context.Context, all ...ledger.Record) error {
	for _, r := range all {
		n.notice(r)
	}
	return n.book.Record(ctx, all...)
}

// A path is looked at once more right before the call is sent, whether or not somebody
// was asked.
func TestLeadsElsewhereAtLast(t *testing.T) {
	root, ws := playground(t)
	moved := filepath.Join(ws, "moved")
	spec := supervised(profiles.ProfileSpec{Default: new("ask"), ElicitationFallback: new("allow")})
	for _, moves := range []bool{false, true} {
		link(t, "src", moved)
		caller := &fakeCaller{reply: okReply}
		g := New(meantView(t, spec, ws), Options{Caller: caller, Recorder: noticing{&book{}, func(r ledger.Record) {
			if r.Event == ledger.Verdict && moves {
				link(t, filepath.Join(root, "elsewhere"), moved)
			}
		}}})
		r, err := g.Begin(t.Context(), Origin{ID: "r1", Profile: "p", Reach: NoElicitation, Surroundings: Surroundings{Workspace: inWorkspace(t, ws)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = g.Call(t.Context(), r, Call{Number: 1, Name: "s__write", Args: json.RawMessage(`{"path":"moved/a","text":"x"}`)})
		var denied *approval.DeniedError
		if stale := errors.As(err, &denied) && denied.Reason == approval.Stale; stale != moves || len(caller.calls) > 0 == moves {
			t.Errorf("moves %v: ended with %v, sent %q", moves, err, caller.calls)
		}
	}
}

// What people accept while a run is under way counts for later runs; what they take back
// counts at once.
func TestAcceptedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ws := playground(t)
		g, _, _ := meantGate(t, ws)
		accepted := g.View()
		unaccepted := meantView(t, meaningly(), ws)
		unaccepted.Meanings["s"] = Meant{Server: unaccepted.Meanings["s"].Server, Folder: ws}
		before := beginMeant(t, g, "s1", inWorkspace(t, ws))
		g.Replace(unaccepted)
		before.asks(true, "s__read", `{"path":"src/a"}`)
		during := beginMeant(t, g, "s2", inWorkspace(t, ws))
		g.Replace(accepted)
		during.asks(true, "s__read", `{"path":"src/a"}`)
		before.asks(false, "s__read", `{"path":"src/b"}`)
	})
}

// A host and a recipient are new until a person has approved a call to them, in each
// session anew.
func TestNewOncePerSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ws := playground(t)
		g, _, _ := meantGate(t, ws)
		run := beginMeant(t, g, "s1", inWorkspace(t, ws))
		run.asks(true, "s__fetch", `{"url":"https://example.com/a"}`)
		run.asks(false, "s__fetch", `{"url":"https://EXAMPLE.com:443/b"}`)
		run.asks(true, "s__fetch", `{"url":"https://example.com.evil.net/a"}`)
		run.asks(true, "s__fetch", `{"url":"https://user@example.com/a"}`)
		run.asks(true, "s__fetch", `{"url":"https://user@example.com/a"}`) // nobody meets who is in doubt
		run.asks(true, "s__mail", `{"to":"ann@example.com","text":"hi"}`)
		run.asks(false, "s__mail", `{"to":"Ann@example.com","text":"again"}`)
		run.asks(true, "s__mail", `{"to":["ann@example.com","bob@example.com"],"text":"hi"}`)
		run.asks(false, "s__mail", `{"to":"bob@example.com","text":"hi"}`)
		run.asks(true, "s__fetch", `{"url":"https://ann@example.com/"}`)

		other := beginMeant(t, g, "s2", inWorkspace(t, ws))
		other.asks(true, "s__fetch", `{"url":"https://example.com/a"}`)
		if err := g.EndSession("s1"); err != nil {
			t.Fatal(err)
		}
		again := beginMeant(t, g, "s1", inWorkspace(t, ws))
		again.asks(true, "s__fetch", `{"url":"https://example.com/a"}`)
		other.asks(false, "s__fetch", `{"url":"https://example.com/a"}`)
	})
}

// A run that is resumed elsewhere knows whom a person has approved before.
func TestMetBeforeTheRunWasResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ws := playground(t)
		g, _, _ := meantGate(t, ws)
		var pasts []Past
		run := beginMeant(t, g, "s1", inWorkspace(t, ws))
		done := make(chan error, 1)
		go func() {
			_, err := g.Call(t.Context(), run.r, Call{Number: 1, Name: "s__fetch", Args: json.RawMessage(`{"url":"https://example.com/a"}`), Journal: pastsOf{&pasts}})
			done <- err
		}()
		synctest.Wait()
		for _, q := range g.Broker().Take(run.r.ID) {
			if _, err := g.Settle(t.Context(), q.ID, q.Digest(), approval.Verdict{Approve: true, By: "ann", Channel: "page"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil || len(pasts) != 1 {
			t.Fatal(err, pasts)
		}
		elsewhere, _, _ := meantGate(t, ws)
		again := beginMeant(t, elsewhere, "s1", inWorkspace(t, ws))
		text, err := json.Marshal(pasts[0])
		if err != nil {
			t.Fatal(err)
		}
		var kept Past
		if err := json.Unmarshal(text, &kept); err != nil {
			t.Fatal(err)
		}
		again.r.Recall(analysis.Position{}, kept, nil, nil)
		again.asks(false, "s__fetch", `{"url":"https://example.com/b"}`)
		again.asks(true, "s__fetch", `{"url":"https://example.org/b"}`)
	})
}

// pastsOf is a journal that keeps the pasts.
type pastsOf struct{ all *[]Past }

func (pastsOf) Asking() Entries                    { return Entries{} }
func (pastsOf) Sending() Entries                   { return Entries{} }
func (pastsOf) Lease() int64                       { return 0 }
func (p pastsOf) Ended(_ Reply, past Past) Entries { *p.all = append(*p.all, past); return Entries{} }

// What is done on a page counts for its host, which is the last that a call opened.
func TestPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ws := playground(t)
		g, caller, _ := meantGate(t, ws)
		run := beginMeant(t, g, "s1", inWorkspace(t, ws))
		run.asks(true, "s__click", `{"target":"Buy"}`) // nobody knows where
		run.asks(true, "s__open", `{"url":"https://example.com"}`)
		run.asks(false, "s__click", `{"target":"Buy"}`)
		run.asks(false, "s__click", `{"target":"Sell"}`)
		run.asks(false, "s__open", `{"url":"https://example.com/2"}`)
		run.asks(false, "s__back", `{}`)
		run.asks(true, "s__click", `{"target":"Buy"}`) // nobody knows where back led
		run.asks(false, "s__open", `{"url":"https://example.com"}`)
		run.asks(true, "s__script", `{"code":"location = 'https://evil.net'"}`)
		run.asks(true, "s__click", `{"target":"Buy"}`)

		run.asks(false, "s__open", `{"url":"https://example.com"}`)
		other := beginMeant(t, g, "s2", inWorkspace(t, ws))
		other.asks(true, "s__open", `{"url":"https://other.example"}`) // the same browser
		run.asks(true, "s__click", `{"target":"Buy"}`)

		caller.reply = `{"isError":true,"content":[]}`
		run.asks(false, "s__open", `{"url":"https://example.com"}`)
		run.asks(true, "s__click", `{"target":"Buy"}`) // who knows what the server shows
	})
}

// What names no folder is about the one that the server was told last, if a call told it.
func TestHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outside, ws := playground(t)
		g, caller, _ := meantGate(t, ws)
		run := beginMeant(t, g, "s1", inWorkspace(t, ws))
		home := func(folder string) string { return fmt.Sprintf(`{"folder":%q}`, folder) }
		run.asks(true, "s__log", `{"file":"src/a"}`) // nobody knows where
		run.asks(false, "s__home", home(ws))
		run.asks(false, "s__log", `{"file":"src/a"}`)
		run.asks(false, "s__log", `{"repo":".","file":"src/a"}`)
		run.asks(false, "s__log", `{}`)
		run.asks(true, "s__log", `{"file":"../a"}`)
		run.asks(true, "s__log", `{"file":".env"}`)
		run.asks(true, "s__log", `{"repo":"src","file":"a"}`) // nobody knows where other relative ones start
		run.asks(true, "s__log", `{"repo":"./","file":"src/a"}`)

		run.asks(true, "s__home", home(outside))
		run.asks(true, "s__log", `{}`)
		run.asks(true, "s__log", `{"file":"a"}`)
		run.asks(false, "s__log", fmt.Sprintf(`{"repo":%q,"file":"src/a"}`, ws))

		run.asks(false, "s__home", home(ws))
		other := beginMeant(t, g, "s2", inWorkspace(t, ws))
		other.asks(false, "s__log", `{"file":"src/a"}`) // the same server
		other.asks(false, "s__home", home("src"))
		run.asks(true, "s__log", `{"file":"a"}`) // nobody knows where a relative home is

		run.asks(false, "s__home", home(ws))
		caller.reply = `{"isError":true,"content":[]}`
		run.asks(false, "s__home", home(ws))
		run.asks(true, "s__log", `{"file":"src/a"}`) // who knows what the server did
	})
}

// A browser is not on localhost unless it can be nowhere else.
func TestLocalhost(t *testing.T) {
	for _, confined := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			spec := supervised(profiles.ProfileSpec{Default: new("ask"), Rules: []profiles.RuleSpec{{Hosts: []string{"localhost"}, Action: new("allow")}}})
			view := meantView(t, spec, "/")
			meant := view.Meanings["s"]
			meant.Confined = confined
			view.Meanings["s"] = meant
			g := New(view, Options{Caller: &fakeCaller{reply: okReply}, Recorder: &book{}})
			run := beginMeant(t, g, "s1", workspace.Workspace{})
			run.asks(false, "s__fetch", `{"url":"http://localhost:3000"}`)
			run.asks(true, "s__fetch", `{"url":"http://localhost.evil.net"}`)
			run.asks(!confined, "s__open", `{"url":"http://localhost:3000"}`)
			run.asks(!confined, "s__click", `{"target":"x"}`)
		})
	}
}
