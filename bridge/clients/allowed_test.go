package clients

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What clients keep of a person's permissions is read entry by entry, and a doubtful
// entry allows nothing.
func TestAllowance(t *testing.T) {
	t.Parallel()
	tools := []string{"git hub/get_issue", "git hub/get.repo", "git hub/create_issue", "mail/send"}
	for _, test := range []struct{ name, client, text, allows, denies string }{
		{"a tool", "claude-code", `{"permissions": {"allow": ["Bash(ls)", "mcp__git_hub__create_issue"]}}`, "git hub/create_issue", ""},
		{"a server", "claude-code", `{"permissions": {"allow": ["mcp__git_hub"]}}`, "git hub/get_issue git hub/get.repo git hub/create_issue", ""},
		{"a wildcard", "claude-code", `{"permissions": {"allow": ["mcp__git_hub__*"]}}`, "git hub/get_issue git hub/get.repo git hub/create_issue", ""},
		{"a part", "claude-code", `{"permissions": {"allow": ["mcp__git_hub__get_*"]}}`, "git hub/get_issue git hub/get.repo", ""},
		{"no server", "claude-code", `{"permissions": {"allow": ["mcp__*", "*", "mcp__git*", "mcp__mail__send(x)", "mcp__ma", 5]}}`, "", ""},
		{"denied", "claude-code", `{"permissions": {"allow": ["mcp__git_hub"], "deny": ["mcp__git*__create*"], "ask": ["mcp__mail(x)"]}}`, "git hub/get_issue git hub/get.repo git hub/create_issue", "git hub/create_issue mail/send"},
		{"all denied", "claude-code", `{"permissions": {"deny": ["mcp__*"]}}`, "", strings.Join(tools, " ")},
		{"another shape", "claude-code", `{"permissions": ["mcp__mail"]}`, "", ""},
		{"cursor", "cursor", `{"mcpAllowlist": ["mail:*", "git hub:get.repo", "create_issue",], /* more */}`, "git hub/get.repo mail/send", ""},
		{"cursor, all", "cursor", `{"mcpAllowlist": ["*:*"]}`, strings.Join(tools, " "), ""},
		{"gemini", "gemini", `{"mcpServers": {"mail": {"trust": true}, "git hub": {"trust": "true"}}}`, "mail/send", ""},
		{
			"zed", "zed", `{"agent": {"tool_permissions": {"default": "allow", "tools": {
				"mcp:mail:send": {"default": "deny"}, "mcp:git hub:get_issue": {"default": "allow"}, "terminal": {"default": "allow"}}}}}`,
			"git hub/get_issue", "mail/send",
		},
		{"cline", "cline", `{"mcpServers": {"mail": {"autoApprove": ["send", "*"]}, "git hub": {"disabled": true, "autoApprove": ["get_issue", "get*", 5]}, "git": {"autoApprove": ["create_issue"]}}}`, "git hub/get_issue mail/send", ""},
		{"cline, another shape", "cline", `{"mcpServers": {"mail": {"autoApprove": "send"}, "git hub": {"autoApprove": {"get_issue": true}}}, "autoApprove": ["send"]}`, "", ""},
		{"kiro", "kiro", `{"mcpServers": {"git hub": {"autoApprove": ["*"]}, "mail": {"autoApprove": ["s*"]}}}`, "git hub/get_issue git hub/get.repo git hub/create_issue", ""},
	} {
		client, _ := Find(test.client)
		a, err := Permissions{Client: client}.Read([]byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var allows, denies []string
		for _, tool := range tools {
			server, name, _ := strings.Cut(tool, "/")
			if a.Allows(server, name) {
				allows = append(allows, tool)
			}
			if a.Denies(server, name) {
				denies = append(denies, tool)
			}
		}
		if diff := cmp.Diff([]string{test.allows, test.denies}, []string{strings.Join(allows, " "), strings.Join(denies, " ")}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	client, _ := Find("claude-code")
	if _, err := (Permissions{Client: client}).Read([]byte("{")); err == nil {
		t.Error("a broken file was read")
	}
}

// Only a file outside the folder is a person's own.
func TestPermissionFiles(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := func(name string) (string, bool) { return home, name == "HOME" }
	list := func(folder string) (all []string) {
		for _, p := range PermissionFiles(System{OS: "linux", Env: env, Folder: folder}) {
			rel, err := filepath.Rel(home, p.File)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p.String()+" "+filepath.ToSlash(rel))
		}
		return all
	}
	want := []string{
		"Claude Code (user) .claude/settings.json", "Claude Code (project) work/.claude/settings.json", "Claude Code (local) work/.claude/settings.local.json",
		"Cursor (user) .cursor/permissions.json", "Gemini CLI (user) .gemini/settings.json", "Zed (user) .config/zed/settings.json",
		"Cline (user) .config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "Kiro (user) .kiro/settings/mcp.json",
	}
	if diff := cmp.Diff(want, list(filepath.Join(home, "work"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = append([]string{want[0], "Claude Code (local) .claude/settings.local.json"}, want[3:]...)
	if diff := cmp.Diff(want, list(home)); diff != "" {
		t.Errorf("in the home folder (-want +got):\n%s", diff)
	}
}

// A server whose tools somebody has allowed is found by its name, and not by a part of it.
func TestAllowedServers(t *testing.T) {
	c, _ := Find("claude-code")
	a, err := Permissions{Client: c}.Read([]byte(`{"permissions": {"allow": ["Bash(ls)", "mcp__github__create_issue", "mcp__my_server"], "deny": ["mcp__slack"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string]bool{"github": true, "my.server": true, "hub": false, "git": false, "slack": false} {
		if got := a.Names(server); got != want {
			t.Errorf("%s is named: %v", server, got)
		}
	}
}
