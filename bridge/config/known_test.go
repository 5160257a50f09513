package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
)

// What the person accepts holds for the program that it is about, and for no other.
func TestRecognize(t *testing.T) {
	t.Parallel()
	files, ok := known.Find("filesystem")
	if !ok || files.Verified == "" {
		t.Fatal("filesystem is not among the verified servers")
	}
	at := files.Verified
	npx := func(spec, more string) string {
		return fmt.Sprintf(`"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem%s", "/ws"]%s`, spec, more)
	}
	for _, row := range []struct {
		server, known string
		name          string
		accepted      bool
		why           string // part of it
	}{
		{npx("@"+at, ""), "filesystem@" + at, "filesystem", true, ""},
		{npx("@"+at, ""), "filesystem", "filesystem", true, ""},
		{npx("", ""), "filesystem", "filesystem", true, ""},
		{npx("@0.0.1", ""), "filesystem", "filesystem", true, ""},
		{npx("@"+at, ""), "", "filesystem", false, ""},
		{npx("", ""), "filesystem@" + at, "filesystem", false, "whichever is the latest is started"},
		{npx("@0.0.1", ""), "filesystem@" + at, "filesystem", false, "and 0.0.1 is started"},
		{npx("@0.0.1", ""), "filesystem@0.0.1", "filesystem", false, "this release knows it as of " + at},
		{npx("@"+at, ""), "memory", "filesystem", false, "it is started like filesystem"},
		{npx("@"+at, `, "env": {"NODE_OPTIONS": "-r /tmp/x"}`), "filesystem@" + at, "", false, "NODE_OPTIONS"},
		{npx("@"+at, `, "passEnv": ["npm_config_registry"]`), "filesystem@" + at, "", false, "npm_config_registry"},
		{npx("@"+at, `, "env": {"NODE_OPTIONS": "-r /tmp/x"}`), "", "", false, "NODE_OPTIONS"},
		{`"command": "/tmp/npx"`, "filesystem", "", false, "not started in a way in which filesystem is known"},
		{`"command": "mine"`, "", "", false, ""},
		{`"url": "https://mcp.context7.com/mcp"`, "context7", "context7", false, "not for what is started here"},
		{`"openapi": "api.yaml", "url": "https://mcp.context7.com/mcp"`, "", "", false, ""},
	} {
		said := ""
		if row.known != "" {
			said = fmt.Sprintf(`, "known": %q`, row.known)
		}
		text := `{"servers": {"a": {` + row.server + said + `}}}`
		r := mustParse(t, "c.json", text).Servers["a"].Recognize()
		if r.Server.Name != row.name || r.Accepted != row.accepted || (r.Why == "") != (row.why == "") || !strings.Contains(r.Why, row.why) {
			t.Errorf("%s: %q, accepted %t, because %q", text, r.Server.Name, r.Accepted, r.Why)
		}
	}
}

// What was not verified cannot be accepted.
func TestRecognizeUnverified(t *testing.T) {
	t.Parallel()
	for _, server := range known.All() {
		if server.Verified != "" || server.Launch[0].NPM == "" {
			continue
		}
		text := fmt.Sprintf(`{"servers": {"a": {"command": "npx", "args": ["-y", %q], "known": %q}}}`, server.Launch[0].NPM, server.Name)
		if r := mustParse(t, "c.json", text).Servers["a"].Recognize(); r.Accepted || !strings.Contains(r.Why, "nobody has verified it") {
			t.Errorf("%s: accepted %t, because %q", server.Name, r.Accepted, r.Why)
		}
	}
}

func TestWorkspace(t *testing.T) {
	t.Parallel()
	env := func(name string) (string, bool) {
		return filepath.FromSlash("/home/me"), name == "HOME" || name == "USERPROFILE"
	}
	here, err := filepath.Abs("in")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Folders{
		`{}`:                         nil,
		`{"workspace": "~/work"}`:    {"/home/me/work"},
		`{"workspace": "."}`:         {here},
		`{"workspace": "../in/a/"}`:  {filepath.Join(here, "a")},
		`{"workspace": ["/a", "b"]}`: {"/a", filepath.Join(here, "b")},
	} {
		c, err := Parse("in/c.json", []byte(`{"evaluation": `+text+`}`), env)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for i := range want {
			want[i] = filepath.FromSlash(want[i])
		}
		if diff := cmp.Diff(want, c.Evaluation.Workspace); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
