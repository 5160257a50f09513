package known_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
)

// A listing is what a server said of itself: testdata/lists has one for each verified
// file, as tools/list gave it.
type listing struct {
	Version string `json:"version"`
	Tools   []struct {
		Name        string `json:"name"`
		InputSchema struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		} `json:"inputSchema"`
	} `json:"tools"`
}

func TestFiles(t *testing.T) {
	t.Parallel()
	all := known.All()
	names := make(map[string]string)
	for _, s := range all {
		for _, l := range s.Launch {
			for _, form := range []string{l.NPM, l.Docker, l.URL} {
				if other := names[form]; form != "" && other != "" {
					t.Errorf("%s and %s are started alike: %s", s.Name, other, form)
				}
				names[form] = s.Name
			}
		}
	}
	delete(names, "")
}

// TestVerifiedFiles holds every verified file to what its server listed: it has each of
// its tools and each of their arguments, and no others.
func TestVerifiedFiles(t *testing.T) {
	t.Parallel()
	for _, s := range known.All() {
		if s.Verified == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("testdata", "lists", s.Name+".json"))
		if err != nil {
			t.Errorf("%s is verified by nothing: %v", s.Name, err)
			continue
		}
		var is listing
		if err := json.Unmarshal(text, &is); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if is.Version != s.Verified {
			t.Errorf("%s is verified as %s, and listed as %s", s.Name, s.Verified, is.Version)
		}
		listed := make(map[string][]string)
		for _, tool := range is.Tools {
			listed[tool.Name] = slices.Sorted(maps.Keys(tool.InputSchema.Properties))
			if !s.Tools[tool.Name].Describes(listed[tool.Name], tool.InputSchema.Required) {
				t.Errorf("%s does not describe %s", s.Name, tool.Name)
			}
		}
		has := make(map[string][]string)
		for name, tool := range s.Tools {
			outer := make(map[string]bool)
			for arg := range tool.Args {
				first, _, _ := strings.Cut(arg, ".")
				outer[first] = true
			}
			has[name] = slices.Sorted(maps.Keys(outer))
		}
		if diff := cmp.Diff(listed, has); diff != "" {
			t.Errorf("%s, listed and in the file:\n%s", s.Name, diff)
		}
	}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	npx := func(args ...string) known.Started { return known.Started{Command: "npx", Args: args} }
	for _, test := range []struct {
		started known.Started
		name    string // empty: none
		version string
	}{
		{npx("-y", "@modelcontextprotocol/server-filesystem", "/ws"), "filesystem", ""},
		{npx("@modelcontextprotocol/server-filesystem@2026.8.31", "/a", "/b"), "filesystem", "2026.8.31"},
		{npx("-y", "@modelcontextprotocol/server-filesystem@latest"), "filesystem", ""},
		{known.Started{Command: "bunx", Args: []string{"-y", "@modelcontextprotocol/server-memory"}}, "memory", ""},
		{known.Started{URL: "https://mcp.context7.com/mcp"}, "context7", ""},
		{npx("-y", "@upstash/context7-mcp", "--api-key", "ctx7sk-1"), "context7", ""},
		{npx("-y", "@upstash/context7-mcp", "--api-key=ctx7sk-1"), "context7", ""},

		{npx("-y", "@upstash/context7-mcp", "--api-key"), "", ""},
		{npx("-y", "@upstash/context7-mcp", "--api-key", "--transport=http"), "", ""},
		{npx("-y", "@upstash/context7-mcp", "--transport", "http"), "", ""},
		{npx("-y", "@modelcontextprotocol/server-filesystem@^2026.8.31"), "", ""},
		{npx("-y", "@modelcontextprotocol/server-filesystem@next"), "", ""},
		{npx("-y", "@modelcontextprotocol/server-filesystem@npm:evil@1.0.0"), "", ""},
		{npx("-y", "@modelcontextprotocol/server-filesystem-evil"), "", ""},
		{npx("-y", "@modelcontextprotoco1/server-filesystem"), "", ""},
		{npx("--registry=https://evil.example", "@modelcontextprotocol/server-filesystem"), "", ""},
		{npx("-y", "-p", "evil", "@modelcontextprotocol/server-filesystem"), "", ""},
		{npx("-y", "@modelcontextprotocol/server-filesystem", "--inspect"), "", ""},
		{npx("-y", "@modelcontextprotocol/server-memory", "/ws"), "", ""},
		{known.Started{Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-memory"}, Env: []string{"NODE_OPTIONS"}}, "", ""},
		{known.Started{Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-memory"}, Env: []string{"npm_config_registry"}}, "", ""},
		{known.Started{Command: "/tmp/npx", Args: []string{"-y", "@modelcontextprotocol/server-memory"}}, "", ""},
		{known.Started{URL: "https://mcp.context7.com/mcp?x=1"}, "", ""},
		{known.Started{URL: "https://mcp.context7.com.evil.example/mcp"}, "", ""},
		{known.Started{URL: "http://mcp.context7.com/mcp"}, "", ""},
		{known.Started{Command: "npx", URL: "https://mcp.context7.com/mcp"}, "", ""},
		{known.Started{Command: "node", Args: []string{"server.js"}}, "", ""},
	} {
		got, why := known.Identify(test.started)
		if got.Server.Name != test.name || got.Version != test.version {
			t.Errorf("%+v is %q %q (%s), want %q %q", test.started, got.Server.Name, got.Version, why, test.name, test.version)
		}
		if got.Server.Name != "" && got.Verified != (test.started.URL == "") {
			t.Errorf("%+v: verified is %v", test.started, got.Verified)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	tool := known.Tool{Effects: []known.Effect{known.Write}, Where: known.Workspace, Args: map[string]known.Role{
		"path": known.Path, "paths": known.Path, "to.address": known.Recipient, "to.name": known.Plain, "edits": known.Content, "n": known.Plain, "id": known.Place,
	}}
	for text, want := range map[string]known.Reading{
		`{"path": "/a", "n": 1}`:                                  {Values: []known.Value{{Param: "path", Role: known.Path, Text: "/a"}}},
		`{"paths": ["/a", "/b"]}`:                                 {Values: []known.Value{{Param: "paths.0", Role: known.Path, Text: "/a"}, {Param: "paths.1", Role: known.Path, Text: "/b"}}},
		`{"to": {"address": "a@b.example", "name": "Ann"}}`:       {Values: []known.Value{{Param: "to.address", Role: known.Recipient, Text: "a@b.example"}}},
		`{"to": [{"address": "a@b.example"}]}`:                    {Values: []known.Value{{Param: "to.0.address", Role: known.Recipient, Text: "a@b.example"}}},
		`{"edits": [{"path": "/x", "deep": {"to": 1}}], "n": {}}`: {},
		`{"id": 7}`:                           {Values: []known.Value{{Param: "id", Role: known.Place, Text: "7"}}},
		`{"path": 7}`:                         {Unknown: []string{"path"}},
		`{"path": {"a": "/b"}}`:               {Unknown: []string{"path"}},
		`{"mode": "x"}`:                       {Unknown: []string{"mode"}},
		`{"to.address": "a@b.example"}`:       {Unknown: []string{"to.address"}},
		`{"to": {"address": "a", "cc": "b"}}`: {Values: []known.Value{{Param: "to.address", Role: known.Recipient, Text: "a"}}, Unknown: []string{"to.cc"}},
		`{"to": "a@b.example"}`:               {Unknown: []string{"to"}},
		`{"path": null}`:                      {},
	} {
		var args map[string]any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&args); err != nil {
			t.Fatal(err)
		}
		want.Tool = tool
		if diff := cmp.Diff(want, tool.Read(args)); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}
