package setup

import (
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
)

// verified is the version of filesystem that was verified.
func verified(t *testing.T) string {
	t.Helper()
	s, ok := known.Find("filesystem")
	if !ok || s.Verified == "" {
		t.Fatal("filesystem is not among the verified servers")
	}
	return s.Verified
}

// What is accepted is the exact version, and nothing else of the text changes.
func TestAccept(t *testing.T) {
	t.Parallel()
	v := verified(t)
	files := "@modelcontextprotocol/server-filesystem"
	for _, row := range []struct{ text, accepted, words string }{
		{`{"command": "npx", /* ours */ "args": ["-y", "FILES", "/ws"]}`, `{"command": "npx", /* ours */ "args": ["-y", "FILES@V", "/ws"], "known": "filesystem@V"}`, "known as filesystem@V"},
		{`{"command": "npx", "args": ["-y", "FILES@latest", "/ws"]}`, `{"command": "npx", "args": ["-y", "FILES@V", "/ws"], "known": "filesystem@V"}`, "known as filesystem@V"},
		{`{"command": "npx", "args": ["FILES@V", "/ws"]}`, `{"command": "npx", "args": ["FILES@V", "/ws"], "known": "filesystem@V"}`, "known as filesystem@V"},
		{`{"command": "npx", "args": ["FILES@0.1.0", "/ws"]}`, "", "known as filesystem as of V and pinned to another version"},
		{`{"command": "npx", "args": ["FILES"], "env": {"NODE_OPTIONS": "-r x"}}`, "", "NODE_OPTIONS is not one that it is known with"},
		{`{"command": "npx", "args": ["FILES"], "passEnv": ["npm_config_registry"]}`, "", "npm_config_registry is not one"},
		{`{"command": "npx", "args": ["FILES@V"], "known": "filesystem@V"}`, "", "known as filesystem@V"},
		{`{"url": "https://mcp.context7.com/mcp"}`, "", "known as context7 from its documentation alone"},
		{`{"url": "https://mcp.context7.com/mcp", "openapi": "a.yaml"}`, "", "not known"},
		{`{"command": "mine"}`, "", "not known"},
		{`[]`, "", "not known"},
	} {
		fill := strings.NewReplacer("FILES", files, "@V", "@"+v, "of V", "of "+v).Replace
		text := jsonc.Text(fill(row.text))
		words, says := Known(text)
		if !strings.Contains(words, fill(row.words)) || (says != "") != (row.accepted != "") {
			t.Errorf("%s: %q, %q", text, words, says)
		}
		next, err := Accept(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := fill(row.accepted)
		if want == "" {
			want = string(text)
		}
		flat := strings.ReplaceAll(strings.Join(strings.Fields(string(next)), " "), " }", "}")
		if diff := cmp.Diff(want, flat); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// What cannot be accepted says why, and what to do.
func TestNothingToAccept(t *testing.T) {
	t.Parallel()
	v := verified(t)
	for _, row := range []struct{ text, words string }{
		{`{"command": "npx", "args": ["@modelcontextprotocol/server-filesystem@0.1.0", "/ws"]}`,
			"known as filesystem as of " + v + " and pinned to another version, so its calls are guessed; to accept it, start version " + v},
		{`{"url": "https://mcp.context7.com/mcp"}`, "known as context7 from its documentation alone, so its calls are guessed or judged more strictly"},
		{`{"type": "builtin", "builtin": "time"}`, "it is part of the bridge, which knows what its calls do"},
		{`{"command": "mine"}`, "not known, so its calls are guessed"},
		{`{"command": "npx", "args": ["@modelcontextprotocol/server-filesystem@` + v + `", "/ws"], "known": "filesystem@` + v + `"}`, "known as filesystem@" + v},
	} {
		text := []byte(`{"servers": {"x": ` + row.text + `}}`)
		next, words, says, err := AcceptIn(text, "/servers/x")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{string(text), row.words, ""}, []string{string(next), words, says}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.text, diff)
		}
	}
}

// Whether arguments limit what is offered goes by how many of the tools are known.
func TestOfferLimits(t *testing.T) {
	t.Parallel()
	for want, offers := range map[string][]*Offer{
		"":                         {{Tools: []string{"a__b"}, meant: []string{"a__b"}}},
		", whatever the arguments": {{Tools: []string{"a__b"}}, {Tools: []string{"c__d"}}},
		", whatever the arguments where nothing else is said": {{Tools: []string{"a__b"}, meant: []string{"a__b"}}, {Tools: []string{"c__d"}}},
	} {
		if got := (&Import{Offers: offers}).OfferLimits(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A server that was accepted is pinned and says so, and is the same server as the one
// that the client has.
func TestAcceptedServer(t *testing.T) {
	t.Parallel()
	v := verified(t)
	system, _ := home(t, nil)
	s := clients.Server{Name: "files", Kind: clients.Stdio, Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/ws"}}
	found := NewFirst(system)
	one := found.Add(s, clients.Place{})
	some, question := Acceptable(found.New())
	if len(some) != 1 || some[0] != one || !strings.Contains(question, "accept what the bridge knows of files?") {
		t.Errorf("%v, %q", some, question)
	}
	if row := Rows(found.Servers)[0]; row.Acceptable != "filesystem@"+v || row.Known != "" {
		t.Errorf("not accepted yet: %+v", row)
	}
	one.Accepted = true
	text, err := First(found, plan, good)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if r := cfg.Servers["files"].Recognize(); !r.Accepted || r.Version != v {
		t.Errorf("accepted %t, version %q, because %q:\n%s", r.Accepted, r.Version, r.Why, text)
	}
	if row := Rows(found.Servers)[0]; row.Acceptable != "" || row.Known != "filesystem@"+v {
		t.Errorf("accepted: %+v", row)
	}
	again := NewImport(system)
	if err := again.Configured(text, cfg); err != nil {
		t.Fatal(err)
	}
	if same := again.Add(s, clients.Place{}); !same.There {
		t.Errorf("the client's is another server: %+v", same)
	}
	s.Args = []string{"-y", "@modelcontextprotocol/server-filesystem@0.1.0", "/ws"}
	if other := again.Add(s, clients.Place{}); other.There {
		t.Error("another version is the same server")
	}
}

// The workspace of a new configuration is the folder, unless it cannot be one.
func TestPlannedWorkspace(t *testing.T) {
	system, dir := home(t, nil)
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	here := filepath.Join(dir, "work")
	for _, row := range []struct{ folder, own, why string }{
		{here, filepath.Join(dir, "config.json"), ""},
		{here, filepath.Join(here, "config.json"), "the bridge's own file"},
		{dir, "/elsewhere", "a home folder is no workspace"},
		{"", "/elsewhere", "not an absolute path"},
	} {
		p := plan
		p.NoWorkspace = ""
		p.WorkspaceIn(row.folder, []string{row.own})
		text, err := First(NewFirst(system), p, good)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			t.Fatal(err)
		}
		var want config.Folders
		if row.why == "" {
			want = config.Folders{filepath.Join(real, "work")}
		}
		if diff := cmp.Diff(want, cfg.Evaluation.Workspace); diff != "" || row.why != "" && !strings.Contains(string(text), row.why) {
			t.Errorf("%s: %s\n%s", row.folder, diff, text)
		}
	}
}
