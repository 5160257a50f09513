package setup

import (
	"os"
	"path/filepath"
	"testing"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
)

// offered writes files into a home folder and a folder in it, finds servers, and
// returns the import with what it offers. Each server lists the same tools.
func offered(t *testing.T, files map[string]string, from ...string) *Import {
	t.Helper()
	home := t.TempDir()
	for name, text := range files {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n, name := range from {
		if _, ok := clients.Find(name); !ok {
			from[n] = filepath.Join(home, name)
		}
	}
	i := NewFirst(clients.System{OS: "linux", Folder: filepath.Join(home, "work"), Env: func(name string) (string, bool) { return home, name == "HOME" }})
	if err := i.Find(from, func(clients.Place, error) {}); err != nil {
		t.Fatal(err)
	}
	for _, s := range i.New() {
		s.Accepted = s.As == "files"
		for _, tool := range []string{"get_issue", "create_issue", "delete_issue", "add_note", "issue_publish", "odd*", "edit_file", "create_directory", "fetch_it"} {
			c := profiles.Call{Server: s.As, Tool: tool}
			if tool == "edit_file" {
				c.Annotations.Destructive = new(true)
			}
			s.Listed = append(s.Listed, c)
		}
	}
	i.Offer(from, offeredTo(t, i, Plan{Profile: "coding", Extends: "builtin:coding@1"}))
	return i
}

// offeredTo returns the profile of the configuration that a plan makes.
func offeredTo(t *testing.T, i *Import, plan Plan) *profiles.Profile {
	t.Helper()
	var cfg *config.Config
	_, err := First(i, plan, func(text []byte) (err error) {
		cfg, err = config.Parse("config.json", text, func(string) (string, bool) { return "", false })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Profiles.Default()
}

const (
	oneHub   = `{"mcpServers": {"hub": {"command": "hub-server"}}}`
	hubRules = `{"permissions": {"allow": ["mcp__hub__create_issue", "mcp__hub__add_note"]}}`
)

func TestOffer(t *testing.T) {
	t.Parallel()
	some := []*Offer{{Client: "Claude Code", Tools: []string{"hub__create_issue", "hub__add_note"}}}
	for _, test := range []struct {
		name  string
		files map[string]string
		from  []string
		want  []*Offer
	}{
		{"two tools", map[string]string{".claude.json": oneHub, ".claude/settings.json": hubRules}, nil, some},
		{
			"a wildcard", map[string]string{".claude.json": oneHub, ".claude/settings.json": `{"permissions": {"allow": ["mcp__hub__*"], "ask": ["mcp__hub__fetch_it"]}}`}, nil,
			[]*Offer{{
				Client: "Claude Code", Tools: []string{"hub__create_issue", "hub__add_note", "hub__create_directory"},
				LeftOut: []string{
					"hub__delete_issue: its risk is high", `hub__issue_publish: "publish" is in its name`, "hub__odd*: its name is unusual",
					"hub__edit_file: its server calls it destructive", "hub__fetch_it: a client denies it or asks",
				},
			}},
		},
		{"another client's server", map[string]string{".cursor/mcp.json": oneHub, ".claude/settings.json": hubRules}, nil, nil},
		{"another client's deny", map[string]string{".claude.json": oneHub, ".cursor/mcp.json": oneHub, ".cursor/permissions.json": `{"mcpAllowlist": ["hub:add_note"]}`,
			".claude/settings.json": `{"permissions": {"deny": ["mcp__hub"]}}`}, nil, []*Offer{{Client: "Cursor", Tools: []string{}, LeftOut: []string{"hub__add_note: a client denies it or asks"}}}},
		{"a folder's file", map[string]string{".claude.json": oneHub, "work/.claude/settings.json": hubRules, "work/.claude/settings.local.json": hubRules}, nil, nil},
		{"a folder's file, named", map[string]string{".claude.json": oneHub, "work/.claude/settings.json": hubRules}, []string{"claude-code", "work/.claude/settings.json"}, some},
		{"a folder's deny", map[string]string{".claude.json": oneHub, ".claude/settings.json": hubRules, "work/.claude/settings.local.json": `{"permissions": {"deny": ["mcp__hub__add_*"]}}`}, nil,
			[]*Offer{{Client: "Claude Code", Tools: []string{"hub__create_issue"}, LeftOut: []string{"hub__add_note: a client denies it or asks"}}}},
		{"a folder's server", map[string]string{"work/.mcp.json": oneHub, ".claude/settings.json": hubRules}, []string{"claude-code", "work/.mcp.json"}, nil},
		{"a client that was not named", map[string]string{".cursor/mcp.json": oneHub, ".claude.json": oneHub, ".claude/settings.json": hubRules}, []string{"cursor"}, nil},
		{
			"in the server's own entry", map[string]string{".kiro/settings/mcp.json": `{"mcpServers": {"hub": {"command": "hub-server", "disabledTools": ["add_note"], "autoApprove": ["add_note", "create_issue", "delete_issue"]}}}`}, nil,
			[]*Offer{{Client: "Kiro", Tools: []string{"hub__create_issue"}, LeftOut: []string{"hub__delete_issue: its risk is high"}}},
		},
		{"in an entry of the folder", map[string]string{"work/.kiro/settings/mcp.json": `{"mcpServers": {"hub": {"command": "hub-server", "autoApprove": ["create_issue"]}}}`}, []string{"work/.kiro/settings/mcp.json"}, nil},
		{"a broken file", map[string]string{".claude.json": oneHub, ".claude/settings.json": hubRules, "work/.claude/settings.json": "{"}, nil, nil},
	} {
		i := offered(t, test.files, test.from...)
		if diff := cmp.Diff(test.want, i.Offers, cmp.AllowUnexported(Offer{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// What is taken is allowed, and nothing besides: where it is known what a tool does, only
// that.
func TestTakeOffers(t *testing.T) {
	t.Parallel()
	i := offered(t, map[string]string{
		".claude.json":          `{"mcpServers": {"hub": {"command": "hub-server"}, "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/work"]}}}`,
		".claude/settings.json": `{"permissions": {"allow": ["mcp__hub__create_issue", "mcp__files"]}}`,
	})
	before := offeredTo(t, i, Plan{Profile: "coding", Extends: "builtin:coding@1"})
	after := offeredTo(t, i, Plan{Profile: "coding", Extends: "builtin:coding@1", Rules: i.TakeOffers()})
	if len(i.Offers) != 1 || !i.Offers[0].Taken {
		t.Fatalf("taken: %+v", i.Offers)
	}
	folder := func(path profiles.PathFact) *profiles.Meaning {
		return &profiles.Meaning{Accepted: true, Effects: []string{"write"}, Where: "workspace", Net: "none", Paths: []profiles.PathFact{path}}
	}
	inside := profiles.PathFact{Param: "path", Path: "/work/a", Inside: true}
	for _, test := range []struct {
		name, server, tool string
		meaning            *profiles.Meaning
		want               profiles.Disposition
	}{
		{"taken", "hub", "create_issue", nil, profiles.Allow},
		{"another tool", "hub", "add_note", nil, profiles.Ask},
		{"taken, now known", "hub", "create_issue", folder(inside), profiles.Ask},
		{"in the workspace", "files", "create_directory", folder(inside), profiles.Allow},
		{"outside", "files", "create_directory", folder(profiles.PathFact{Param: "path", Path: "/etc/a"}), profiles.Ask},
		{"runs later", "files", "create_directory", folder(profiles.PathFact{Param: "path", Path: "/work/.git/hooks", Inside: true, RunsLater: "git runs it"}), profiles.Ask},
		{"nothing known", "files", "create_directory", nil, profiles.Ask},
		{"its risk is high", "files", "edit_file", folder(inside), profiles.Ask},
	} {
		c := profiles.Call{Server: test.server, Tool: test.tool, Args: map[string]any{}, Meaning: test.meaning}
		if d := before.Decide(c); d.Disposition != profiles.Ask {
			t.Errorf("%s: before, %v", test.name, d.Disposition)
		}
		if d := after.Decide(c); d.Disposition != test.want {
			t.Errorf("%s: %v, want %v: %v", test.name, d.Disposition, test.want, d.Reasons)
		}
	}
}

// A take-over offers what its own client allows for the servers that move. What another
// client forbids is not offered, nor is anything for servers that a folder brought along.
func TestTakeOverOffers(t *testing.T) {
	t.Parallel()
	system, dir := home(t, map[string]string{
		".cursor/mcp.json":         oneHub,
		".cursor/permissions.json": `{"mcpAllowlist": ["hub:create_issue", "hub:add_note", "hub:delete_issue"]}`,
		".claude/settings.json":    `{"permissions": {"allow": ["mcp__hub__create_directory"], "deny": ["mcp__hub__add_note"]}}`,
		"work/.cursor/mcp.json":    oneHub,
	})
	system.Folder = filepath.Join(dir, "work")
	text := []byte(`{"servers": {}, "evaluation": {"defaultProfile": "p", "profiles": {"p": {"default": "risk"}}, "risk": {"unknown": "medium", "medium": {}}}}`)
	cfg, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for scope, want := range map[clients.Scope][]*Offer{
		clients.User:    {{Client: "Cursor", Tools: []string{"hub__create_issue"}, LeftOut: []string{"hub__delete_issue: its risk is high", "hub__add_note: a client denies it or asks"}}},
		clients.Project: nil,
	} {
		client, _ := clients.Find("cursor")
		place, err := client.Place(system, scope)
		if err != nil {
			t.Fatal(err)
		}
		in, err := Install(place, clients.Records{Folder: filepath.Join(dir, "installs")})
		if err != nil {
			t.Fatal(err)
		}
		if err := in.TakeOver(system, false, text, parse, nil); err != nil {
			t.Fatal(err)
		}
		for _, s := range in.Moving {
			for _, tool := range []string{"create_issue", "delete_issue", "add_note", "create_directory"} {
				s.Listed = append(s.Listed, profiles.Call{Server: s.As, Tool: tool})
			}
		}
		found := in.Offer(cfg.Profiles.Default())
		if diff := cmp.Diff(want, found.Offers, cmp.AllowUnexported(Offer{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", scope, diff)
		}
		if err := in.Allow("p", found.TakeOffers(), parse); err != nil {
			t.Fatal(err)
		}
		after, err := parse(in.After)
		if err != nil {
			t.Fatal(err)
		}
		call := profiles.Call{Server: "hub", Tool: "create_issue", Args: map[string]any{}}
		if got := after.Profiles.Default().Decide(call).Disposition == profiles.Allow; got != (want != nil) {
			t.Errorf("%s: create_issue is allowed: %v", scope, got)
		}
		if err := in.Allow("nobody", []profiles.RuleSpec{{}}, parse); err == nil {
			t.Errorf("%s: a profile that is not there gets a rule", scope)
		}
	}
}
