package known_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
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

// list reads the listing of a verified server.
func list(t *testing.T, name string) (is listing) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "lists", name+".json"))
	if err != nil {
		t.Fatalf("%s is verified by nothing: %v", name, err)
	}
	if err := json.Unmarshal(text, &is); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return is
}

func TestFiles(t *testing.T) {
	t.Parallel()
	all := known.All()
	if listed := known.Names(); len(all) != len(listed) || !slices.IsSorted(listed) ||
		!slices.EqualFunc(all, listed, func(s known.Server, name string) bool { return s.Name == name }) {
		t.Errorf("the names of %d servers are %q", len(all), listed)
	}
	names := make(map[string]string)
	for _, s := range all {
		for _, l := range s.Launch {
			for kind, form := range map[string]string{"npm": l.NPM, "pypi": l.PyPI, "docker": l.Docker, "url": l.URL} {
				if form == "" {
					continue
				}
				if other := names[kind+form]; other != "" {
					t.Errorf("%s and %s are started alike: %s", s.Name, other, form)
				}
				names[kind+form] = s.Name
			}
		}
	}
}

// TestVersions is what is said of several releases: another one of a verified package
// is as good, tool by tool.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"notion-mcp-server", "notion-mcp-server@2.5.2", "notion-mcp-server@2.9.0", "notion-mcp-server@1.0.0"} {
		m, why := known.Identify(known.Started{Command: "npx", Args: []string{"-y", "@notionhq/" + spec}})
		if !m.Verified {
			t.Errorf("%s: it is not verified: %s", spec, why)
		}
	}
}

// TestPretends holds a server that is started like a known one to its tools: of one
// that is another in its list, nothing is known, and of the others everything.
func TestPretends(t *testing.T) {
	t.Parallel()
	s, _ := known.Find("github")
	is := list(t, s.Name)
	change := map[string]func(properties map[string]json.RawMessage, required *[]string){
		"add_issue_comment":   func(p map[string]json.RawMessage, _ *[]string) { delete(p, "repo") },
		"create_issue":        func(p map[string]json.RawMessage, r *[]string) { p["visibility"] = nil; *r = append(*r, "visibility") },
		"create_repository":   func(p map[string]json.RawMessage, _ *[]string) { delete(p, "private") }, // by which it is told whether it is public
		"get_issue":           func(p map[string]json.RawMessage, _ *[]string) { p["verbose"] = nil },   // new, and nobody must have it
		"search_repositories": func(p map[string]json.RawMessage, _ *[]string) { delete(p, "perPage") }, // says neither where nor what
	}
	var unknown []string
	for _, tool := range is.Tools {
		if f := change[tool.Name]; f != nil {
			f(tool.InputSchema.Properties, &tool.InputSchema.Required)
		}
		if !s.Tools[tool.Name].Describes(slices.Sorted(maps.Keys(tool.InputSchema.Properties)), tool.InputSchema.Required) {
			unknown = append(unknown, tool.Name)
		}
	}
	slices.Sort(unknown)
	if diff := cmp.Diff([]string{"add_issue_comment", "create_issue", "create_repository"}, unknown); diff != "" {
		t.Errorf("tools that are not as the file says:\n%s", diff)
	}
	if r := s.Tools["get_issue"].Read(map[string]any{"owner": "o", "repo": "r", "verbose": true}); !slices.Equal(r.Unknown, []string{"verbose"}) {
		t.Errorf("a call with the new argument: unknown are %q", r.Unknown)
	}
	if _, ok := s.Tools["delete_everything"]; ok {
		t.Error("a tool is known that the file does not have")
	}
}

// TestSessions holds the files to the sessions of the benchmark: each server that is
// started there is known, and each of its ordinary calls.
func TestSessions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../bridge/bench/asking/sessions/*.jsonc")
	if err != nil || len(files) < 8 {
		t.Fatalf("there are %d sessions: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("${WORKSPACE}"), []byte("/ws"))
		if text, err = hujson.Standardize(text); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var session struct {
			Servers map[string]struct {
				Command string            `json:"command"`
				Args    []string          `json:"args"`
				Env     map[string]string `json:"env"`
			} `json:"servers"`
			Evals []struct {
				Calls []struct {
					Tool string         `json:"tool"`
					Args map[string]any `json:"args"`
				} `json:"calls"`
			} `json:"evals"`
		}
		if err := json.Unmarshal(text, &session); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found := map[string]known.Server{}
		for name, s := range session.Servers {
			m, why := known.Identify(known.Started{Command: s.Command, Args: s.Args, Env: slices.Sorted(maps.Keys(s.Env))})
			if !m.Verified {
				t.Errorf("%s: %s is not known: %s", filepath.Base(file), name, why)
			}
			found[name] = m.Server
		}
		for _, eval := range session.Evals {
			for _, c := range eval.Calls {
				server, name, _ := strings.Cut(c.Tool, "__")
				tool, ok := found[server].Tools[name]
				if r := tool.Read(c.Args); !ok || len(r.Unknown) > 0 {
					t.Errorf("%s: it is not known what %s %v means: %v", filepath.Base(file), c.Tool, c.Args, r.Unknown)
				}
			}
		}
	}
}

// TestTheFormatIsDocumented holds the page about the format to the program: it has each
// key and each word, and its example is a file.
func TestTheFormatIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/known.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	_, example, _ := strings.Cut(page, "```jsonc\n")
	example, _, _ = strings.Cut(example, "```")
	s, err := known.Parse("notes", []byte(example))
	if err != nil {
		t.Errorf("its example: %v", err)
	}
	if got := meant(s.Tools["save"].Read(arguments(t, `{"notebook": "n", "text": "x", "attachment": "/a"}`))); got != "write+read+send remote fixed" {
		t.Errorf("its example means %s", got)
	}
	words := strings.Fields("read write delete execute send spend workspace local remote none fixed chosen private untrusted external " +
		"hooks ci path host path\\|host recipient member store command sql amount place content plain")
	for _, of := range []reflect.Type{reflect.TypeFor[known.Server](), reflect.TypeFor[known.Launch](), reflect.TypeFor[known.Box](), reflect.TypeFor[known.Browser](), reflect.TypeFor[known.Tool]()} {
		for i := range of.NumField() {
			if key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); key != "-" {
				words = append(words, key)
			}
		}
	}
	for _, word := range words {
		if !strings.Contains(page, "`"+word+"`") && !strings.Contains(example, `"`+word+`":`) {
			t.Errorf("it does not explain %s", word)
		}
	}
}

// TestMistakesInFiles says what is wrong with a file, and where.
func TestMistakesInFiles(t *testing.T) {
	t.Parallel()
	const launch = `"title": "T", "verified": "1.0.0", "launch": [{"npm": "x"}]`
	tool := func(text string) string { return "{" + launch + `,` + "\n" + `"tools": {"a/b": {` + text + "}}}" }
	boxed := func(head, launch string) string {
		return `{"title": "T", ` + head + `, "launch": [{` + launch + `}], "tools": {"a": {"effects": ["read"], "where": "local"}}}`
	}
	for text, want := range map[string]string{
		"{\n  \"title\": }":                    "hujson: line 2, column 12: ",
		"{\n  // what\n  \"titel\": \"T\"}":    `line 3, column 3: no such key: "titel"`,
		"{\"title\": 7}":                       "line 1, column 11: cannot unmarshal number",
		"{}":                                   "line 1, column 1: title: missing",
		`{"title": "T"}`:                       `line 1, column 1: neither "verified"`,
		`{"title": "T", "verified": "new"}`:    `line 1, column 28: verified: "new" is not a version`,
		`{"title": "T", "source": "http://x"}`: "line 1, column 26: source: ",
		`{"title": "T", "verified": "1.0.0"}`:  "line 1, column 1: launch: missing",
		"{" + launch + "}":                     "line 1, column 1: tools: missing",
		`{"title": "T", "verified": "1.0.0", "launch": [{}], "tools": {"a": {}}}`:                                                   "launch: 0: want one of",
		`{"title": "T", "verified": "1.0.0", "launch": [{"npm": "x", "url": "https://x"}], "tools": {"a": {}}}`:                     "launch: 0: want one of",
		`{"title": "T", "verified": "1.0.0", "launch": [{"npm": "X Y"}], "tools": {"a": {}}}`:                                       `launch: 0: npm: "X Y" is not exact`,
		`{"title": "T", "verified": "1.0.0", "launch": [{"npm": "x", "flags": ["x"]}], "tools": {"a": {}}}`:                         "launch: 0: flags: 0: ",
		`{"title": "T", "verified": "1.0.0", "launch": [{"npm": "x", "env": ["Node_Options"]}], "tools": {"a": {}}}`:                `env: 0: "Node_Options" may not be given`,
		`{"title": "T", "verified": "1.0.0", "launch": [{"npm": "x", "args": ["path...", "path"]}], "tools": {"a": {}}}`:            "args: 0: only the last may be several",
		boxed(`"source": "https://x"`, `"npm": "x", "confine": {}`):                                                                 "launch: 0: confine: only a package of npm",
		boxed(`"verified": "1.0.0"`, `"docker": "x", "confine": {}`):                                                                "launch: 0: confine: only a package of npm",
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"writes": []}`):                                                       `no such key: "writes"`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"write": ["args"]}`):                                                  "confine: write: 0: no argument of the program is a path",
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"write": ["env:HOME"]}`):                                              `"HOME" is not a variable that it may be given`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"write": ["/etc"]}`):                                                  `confine: write: 0: want "workspace"`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"write": ["~/"]}`):                                                    `want "workspace"`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"read": ["~/../etc"]}`):                                               `confine: read: 0: want "workspace"`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"read": ["~/a/../.."]}`):                                              `confine: read: 0: want "workspace"`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"write": ["workspace", "workspace"]}`):                                "is there twice",
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"net": "some"}`):                                                      `want "none", "any" or a list of hosts`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"net": ["https://x.example"]}`):                                       `confine: net: 0: "https://x.example" is not exact`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"run": ["/bin/sh"]}`):                                                 `confine: run: 0: "/bin/sh" is not the name of a program`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"write": ["flag:--db"]}`):                                             `confine: write: 0: "--db" is no flag with a value`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "flags": ["--db"], "confine": {"write": ["flag:--db"]}`):                          `"--db" is no flag with a value`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "boxedFlags": ["-b"], "confine": {"with": ["-b"]}`):                               `confine: with: 0: "-b" is not one of its flags`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "env": ["A"], "confine": {"with": ["A"]}`):                                        `confine: with: 0: "A" is not one of its flags`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "confine": {"without": ["A"]}`):                                                   `confine: without: 0: "A" is not one of its flags or variables`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "boxedFlags": ["-p="], "confine": {"browser": {"path": "-p="}}`):                  `confine: browser: adds: no flag leaves the sandbox`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "boxedFlags": ["-b"], "confine": {"browser": {"path": "-p", "adds": ["-b"]}}`):    `confine: browser: path: want a flag with a value`,
		boxed(`"verified": "1.0.0"`, `"npm": "x", "flags": ["-p=", "-b"], "confine": {"browser": {"path": "-p=", "adds": ["-b"]}}`): `confine: browser: 0: "-p=" is not one of boxedFlags`,
		tool(``):                    "line 2, column 18: tools: a/b: effects: missing",
		tool(`"effects": ["reed"]`): "tools: a/b: where: missing",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "plain"}, "home": "x"`):                                                   "home: want an argument that is a path",
		tool(`"effects": ["reed"], "where": "local"`):                                                                                        `line 2, column 31: tools: a/b: effects: 0: no such effect: "reed"`,
		tool(`"effects": ["read"], "where": "here"`):                                                                                         "tools: a/b: where: want one of",
		tool(`"effects": ["read"], "where": "local", "net": "any"`):                                                                          "tools: a/b: net: want one of",
		tool(`"effects": ["read"], "where": "workspace"`):                                                                                    "where: workspace, but no argument is a path",
		tool(`"effects": ["read"], "where": "remote"`):                                                                                       "where: remote, but it talks to no host",
		tool(`"effects": ["read"], "where": "local", "labels": ["x"]`):                                                                       "labels: 0: no such label",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "y"}`):                                                                    `args: x: no such role: "y"`,
		tool(`"effects": ["read"], "where": "local", "args": {"x": "plain", "x.y": "path"}`):                                                 `args: x.y: "x" already has a role as a whole`,
		tool(`"effects": ["read"], "where": "local", "adds": {"x": {"effects": ["write"]}}`):                                                 "adds: x: no such argument",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "plain"}, "adds": {"x": {"where": "remote"}}`):                            "adds: x: where: remote, but it talks to no host",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "plain"}, "adds": {"x": {"effects": ["all"]}}`):                           "adds: x: effects: 0: no such effect",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "path"}, "adds": {"x": {"args": {"x": "plain"}}}`):                        "adds: x: args: x: want an argument of the tool",
		tool(`"effects": ["read"], "where": "local", "adds": {"x": {"args": {"x": "path"}}}`):                                                "adds: x: no such argument",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "plain"}, "when": {"y": {}}`):                                             "when: y: no such argument",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "plain"}, "when": {"x": {"a": {"effects": ["write"]}}}`):                  "when: x: a: it is more than the tool does otherwise",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "plain"}, "when": {"x": {"a": {"where": "remote"}}}`):                     "when: x: a: it is more",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "plain"}, "when": {"x": {"a": {"net": "fixed"}}}`):                        "when: x: a: it is more",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "plain", "y": "plain"}, "when": {"x": {}, "y": {}}`):                      "when: two arguments at once",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "plain"}, "values": {"x": []}`):                                           "values: x: no values",
		tool(`"effects": ["read"], "where": "local", "values": {"x": ["a"]}`):                                                                "values: x: no such argument",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "plain"}, "under": {"x": ""}`):                                            "under: x: want a path",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "path"}, "under": {"x": "x"}`):                                            "under: x: want a path",
		tool(`"effects": ["read"], "where": "local", "args": {"x": "path", "y": "path"}, "under": {"x": "y", "y": "x"}`):                     "under: x: want a path",
		tool(`"effects": ["read"], "where": "local", "runs": "hooks"`):                                                                       "runs: it runs nothing",
		tool(`"effects": ["execute"], "where": "local", "runs": "tests"`):                                                                    "runs: want one of",
		tool(`"effects": ["execute"], "where": "local", "runs": "ci", "args": {"to": "place"}`):                                              "runs: it has no branch",
		tool(`"effects": ["execute"], "where": "local", "runs": "hooks", "args": {"x": "command"}`):                                          "runs: it can be given a command",
		tool(`"effects": ["execute"], "where": "local", "runs": "hooks", "args": {"x": "plain"}, "adds": {"x": {"args": {"x": "command"}}}`): "runs: it can be given a command",
		tool(`"effects": ["read"], "where": "local", "more": true`):                                                                          `line 2, column 58: no such key: "more"`,
	} {
		if _, err := known.Parse("t", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := known.Parse("t", []byte(tool(`"effects": ["read"], "where": "local"`))); err != nil {
		t.Errorf("a file without a mistake: %v", err)
	}
}

// TestVerifiedFiles holds every verified file to what its server listed: it has each of
// its tools and each of their arguments, and no others.
func TestVerifiedFiles(t *testing.T) {
	t.Parallel()
	for _, s := range known.All() {
		if s.Verified == "" {
			continue
		}
		is := list(t, s.Name)
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
	docker := func(args ...string) known.Started {
		return known.Started{Command: "docker", Args: append([]string{"run"}, args...)}
	}
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

		{npx("-y", "@playwright/mcp@0.0.83", "--headless", "--no-sandbox"), "", ""},
		{npx("-y", "@playwright/mcp@0.0.83", "--executable-path", "/usr/bin/chromium"), "", ""},
		{known.Started{Command: "npx", Args: []string{"-y", "@playwright/mcp@0.0.83", "--no-sandbox", "--executable-path", "/usr/bin/chromium"}, Boxed: true}, "playwright", "0.0.83"},
		{known.Started{Command: "npx", Args: []string{"-y", "@playwright/mcp@0.0.83", "--user-data-dir", "/p"}, Boxed: true}, "", ""},
		{known.Started{Command: "npx", Args: []string{"-y", "chrome-devtools-mcp", "--chrome-arg=--no-sandbox"}, Boxed: true}, "chrome-devtools", ""},
		{known.Started{Command: "npx", Args: []string{"-y", "chrome-devtools-mcp", "--chrome-arg=--no-zygote"}, Boxed: true}, "", ""},
		{known.Started{Command: "npx", Args: []string{"-y", "chrome-devtools-mcp", "--chrome-arg", "--no-sandbox"}, Boxed: true}, "", ""},
		{npx("-y", "chrome-devtools-mcp", "--chrome-arg=--no-sandbox"), "", ""},

		{npx("-y", "@bytebase/dbhub", "--transport", "stdio", "--dsn", "sqlite:///ws/app.db"), "sqlite-dbhub", ""},
		{npx("-y", "@bytebase/dbhub", "--dsn=sqlite:///ws/app.db", "--transport=stdio"), "sqlite-dbhub", ""},
		{npx("-y", "@bytebase/dbhub", "--dsn", "postgres://db.example/shop"), "", ""},
		{npx("-y", "@bytebase/dbhub", "--dsn=postgres://db.example/sqlite:///a"), "", ""},
		{npx("-y", "@bytebase/dbhub", "--dsn", "sqlite:///ws/app.db", "--transport", "http"), "", ""},
		{npx("-y", "@bytebase/dbhub", "--dsn", "sqlite:///ws/app.db", "--transport"), "", ""},
		{npx("-y", "@bytebase/dbhub", "--dsn"), "", ""},

		{known.Started{Command: "bunx", Args: []string{"@modelcontextprotocol/server-memory@2026.8.31"}}, "memory", "2026.8.31"},
		{known.Started{Command: "pnpm", Args: []string{"dlx", "@modelcontextprotocol/server-memory@2026.8.31"}}, "memory", "2026.8.31"},
		{known.Started{Command: "pnpm", Args: []string{"dlx", "--package=evil", "@modelcontextprotocol/server-memory"}}, "", ""},
		{known.Started{Command: "pnpm", Args: []string{"exec", "@modelcontextprotocol/server-memory"}}, "", ""},
		{known.Started{Command: "uvx", Args: []string{"mcp-server-git"}}, "git", ""},
		{known.Started{Command: "uvx", Args: []string{"mcp-server-git==2026.1.14", "--repository", "/ws"}}, "git", "2026.1.14"},
		{known.Started{Command: "uvx", Args: []string{"mcp-server-git@2026.1.14"}}, "git", "2026.1.14"},
		{known.Started{Command: "uvx", Args: []string{"mcp-server-git>=1"}}, "", ""},
		{known.Started{Command: "uvx", Args: []string{"--from", "evil", "mcp-server-git"}}, "", ""},
		{known.Started{Command: "uvx", Args: []string{"@modelcontextprotocol/server-memory"}}, "", ""},
		{known.Started{Command: "uvx", Args: []string{"mcp-server-fetch", "--ignore-robots-txt"}}, "fetch-reference", ""},
		{known.Started{Command: "uvx", Args: []string{"mcp-server-fetch", "--proxy-url", "http://proxy.example"}}, "", ""},
		{known.Started{Command: "uvx", Args: []string{"mcp-server-git"}, Env: []string{"UV_INDEX_URL"}}, "", ""},
		{npx("-y", "mcp-remote", "https://mcp.context7.com/mcp"), "context7", ""},
		{npx("-y", "mcp-remote@0.1.29", "https://mcp.context7.com/mcp", "--transport", "http-only"), "context7", ""},
		{npx("-y", "mcp-remote", "https://mcp.context7.com/mcp", "--header", "Authorization: Bearer x"), "context7", ""},
		{npx("-y", "mcp-remote", "https://mcp.context7.com/mcp", "--header", "--allow-http"), "", ""},
		{npx("-y", "mcp-remote", "https://mcp.context7.com/mcp", "8080"), "", ""},
		{npx("-y", "mcp-remote", "https://mcp.context7.com.evil.example/mcp"), "", ""},
		{npx("-y", "mcp-remote-evil", "https://mcp.context7.com/mcp"), "", ""},
		{docker("-i", "--rm", "mcp/notion"), "notion", ""},
		{docker("-i", "--pull=always", "-e", "NOTION_TOKEN=x", "--env=NOTION_TOKEN", "mcp/notion:2.5"), "notion", "2.5"},
		{docker("--pull", "always", "--env", "NOTION_TOKEN", "mcp/notion"), "notion", ""},
		{docker("--pull=x", "mcp/notion"), "", ""},
		{docker("-e", "NODE_OPTIONS=--require=/x", "mcp/notion"), "", ""},
		{docker("--env=LD_PRELOAD=/x", "mcp/notion"), "", ""},
		{docker("-v", "/:/ws", "mcp/notion"), "", ""},
		{docker("--entrypoint=sh", "mcp/notion"), "", ""},
		{docker("--rm=x", "mcp/notion"), "", ""},
		{docker("-e"), "", ""},
		{docker(), "", ""},
	} {
		got, why := known.Identify(test.started)
		if got.Server.Name != test.name || got.Version != test.version {
			t.Errorf("%+v is %q %q (%s), want %q %q", test.started, got.Server.Name, got.Version, why, test.name, test.version)
		}
		isPackage := got.Server.Verified != "" && test.started.URL == "" && test.started.Command != "docker" && !slices.ContainsFunc(test.started.Args, func(arg string) bool { return strings.HasPrefix(arg, "mcp-remote") })
		if got.Server.Name != "" && got.Verified != isPackage {
			t.Errorf("%+v: verified is %v", test.started, got.Verified)
		}
	}
}

// A server that is started by a path is none that is known, whatever the path is called: it
// is said how it would be.
func TestByPath(t *testing.T) {
	seems := func(name, fetched string) string {
		return "it seems to be " + name + ", but is started by a name or path and not as " + fetched + ", and any program can be there, whatever a package.json beside it says"
	}
	filesystem := seems("filesystem", "npx -y @modelcontextprotocol/server-filesystem@2026.8.31")
	for _, row := range []struct {
		command string
		args    []string
		why     string
	}{
		{"node", []string{"/usr/lib/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", "/home/me"}, filesystem},
		{"/usr/bin/node", []string{"--no-warnings", "/p/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"}, filesystem},
		{"bun", []string{"run", "/p/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"}, filesystem},
		{`C:\node\node.exe`, []string{`C:\p\node_modules\@modelcontextprotocol\server-filesystem\dist\index.js`}, filesystem},
		{"/home/me/shop/node_modules/.bin/mcp-server-filesystem", nil, filesystem},
		{"mcp-server-filesystem", []string{"/home/me"}, filesystem},
		{"/opt/venv/bin/mcp-server-fetch", nil, seems("fetch-reference", "uvx mcp-server-fetch")},
		{"/p/node_modules/.bin/mcp", nil, ""},
		{"node", []string{"server.js", "/usr/lib/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"}, ""},
		{"node", []string{"--inspect"}, ""},
		{"node", nil, ""},
		{"/p/node_modules/@modelcontextprotocol/server-filesystem-evil/dist/index.js", nil, ""},
	} {
		m, why := known.Identify(known.Started{Command: row.command, Args: row.args})
		if m.Server.Name != "" || why != row.why {
			t.Errorf("%s %q is %q, and why is %q, want %q", row.command, row.args, m.Server.Name, why, row.why)
		}
		if r := known.Recognize("filesystem@2026.8.31", known.Started{Command: row.command, Args: row.args}); r.Accepted || r.Verified || r.Why == "" {
			t.Errorf("%s %q is accepted: %+v", row.command, row.args, r)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	tool := known.Tool{Effects: []known.Effect{known.Write}, Where: known.Workspace, Args: map[string]known.Role{
		"path": known.Path, "paths": known.Path, "to.address": known.Recipient, "to.name": known.Plain, "edits": known.Content, "n": known.Plain, "id": known.Place, "assignee": known.Member,
	}}
	for text, want := range map[string]known.Reading{
		`{"path": "/a", "n": 1}`:                                  {Values: []known.Value{{Param: "path", Role: known.Path, Text: "/a"}}},
		`{"paths": ["/a", "/b"]}`:                                 {Values: []known.Value{{Param: "paths.0", Role: known.Path, Text: "/a"}, {Param: "paths.1", Role: known.Path, Text: "/b"}}},
		`{"to": {"address": "a@b.example", "name": "Ann"}}`:       {Values: []known.Value{{Param: "to.address", Role: known.Recipient, Text: "a@b.example"}}},
		`{"to": [{"address": "a@b.example"}]}`:                    {Values: []known.Value{{Param: "to.0.address", Role: known.Recipient, Text: "a@b.example"}}},
		`{"edits": [{"path": "/x", "deep": {"to": 1}}], "n": {}}`: {},
		`{"assignee": "u-1"}`:                                     {Values: []known.Value{{Param: "assignee", Role: known.Recipient, Text: "u-1", Member: true}}},
		`{"assignee": 7}`:                                         {Values: []known.Value{{Param: "assignee", Role: known.Recipient, Text: "7", Member: true}}},
		`{"assignee": true}`:                                      {Unknown: []string{"assignee"}},
		`{"id": 7}`:                                               {Values: []known.Value{{Param: "id", Role: known.Place, Text: "7"}}},
		`{"path": 7}`:                                             {Unknown: []string{"path"}},
		`{"path": {"a": "/b"}}`:                                   {Unknown: []string{"path"}},
		`{"mode": "x"}`:                                           {Unknown: []string{"mode"}},
		`{"to.address": "a@b.example"}`:                           {Unknown: []string{"to.address"}},
		`{"to": {"address": "a", "cc": "b"}}`:                     {Values: []known.Value{{Param: "to.address", Role: known.Recipient, Text: "a"}}, Unknown: []string{"to.cc"}},
		`{"to": "a@b.example"}`:                                   {Unknown: []string{"to"}},
		`{"path": null}`:                                          {},
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

// A box is for what was tried: with the flags that it needs, without those that it does not
// fit.
func TestBoxFits(t *testing.T) {
	t.Parallel()
	browser := known.Box{With: []string{"--headless", "--profile="}, Without: []string{"--browser=", "BROWSER"}, Browser: &known.Browser{Path: "--path=", Adds: []string{"--bare"}}}
	plain := known.Box{With: []string{"--quiet"}}
	for _, row := range []struct {
		box     known.Box
		args    string
		env     []string
		why, do string
	}{
		{browser, "pkg --headless --profile /p", nil, "", ""},
		{browser, "pkg --profile=/p --headless", []string{"OTHER"}, "", ""},
		{browser, "pkg", nil, "shows no window", "add --headless and --profile= to its args"},
		{browser, "pkg --headless --profile /p --browser=webkit", nil, "no box was tried with --browser", "leave --browser out"},
		{browser, "pkg --headless --profile /p", []string{"BROWSER"}, "no box was tried with BROWSER", "leave BROWSER out"},
		{plain, "pkg --quiet", nil, "", ""},
		{plain, "pkg --quieter", nil, "no box was tried without --quiet", "add that to its args"},
		{known.Box{}, "pkg --anything", []string{"ANY"}, "", ""},
	} {
		why, do := row.box.Fits(strings.Fields(row.args), row.env)
		if !strings.Contains(why, row.why) || !strings.Contains(do, row.do) || (why == "") != (row.why == "") {
			t.Errorf("%s %v: %q, %q; want %q, %q", row.args, row.env, why, do, row.why, row.do)
		}
	}
	b := browser.Browser
	if got := b.Own(append([]string{"pkg", "--bare", "--headless"}, b.Flags("/usr/bin/b")...)); !slices.Equal(got, []string{"pkg", "--bare", "--headless"}) {
		t.Errorf("without the flags that were added it is %q", got)
	}
}
