package knownview_test

import (
	"strings"
	"testing"

	"codemode-bridge/bridge/knownview"
	"codemode-bridge/profiles/known"
)

// A server that is known to keep state, or seems to by its name, command, tools or their
// descriptions, is told of; others are not.
func TestSharedState(t *testing.T) {
	playwright := known.Recognize("", known.Started{Command: "npx", Args: []string{"@playwright/mcp@latest"}})
	files := known.Recognize("", known.Started{Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/srv"}})
	nobody := known.Recognition{}
	for _, test := range []struct {
		server, started string
		is              known.Recognition
		listed          []knownview.Listed
		want            string // of the text; empty: nothing is said
	}{
		{"web", "npx", playwright, nil, "is known to keep state (browser_"},
		{"files", "npx", files, []knownview.Listed{{Name: "start_process"}}, ""}, // what is known counts
		{"my-browser", "prog", nobody, nil, "by its name (my-browser)"},
		{"x", "npx -y some-puppeteer-mcp", nobody, nil, "by its name (some-puppeteer-mcp)"},
		{"x", "npx -y @me/ssh_mcp", nobody, nil, "by its name (@me/ssh_mcp)"},
		{"x", "prog --shell", nobody, nil, ""},
		{"pshell", "prog", nobody, nil, ""},
		{"x", "/opt/tools/repl -i", nobody, nil, "by its name (repl)"},
		{"x", "/home/me/browser/bin/prog", nobody, nil, ""},
		{"x", "npx -y notes-mcp /srv/browser ssh", nobody, nil, ""},
		{"x", "prog", nobody, []knownview.Listed{{Name: "read"}, {Name: "set_working_directory"}}, "by its tool set_working_directory"},
		{"x", "prog", nobody, []knownview.Listed{{Name: "run", Description: "Runs code; variables persist."}}, "by what its tool run says of itself"},
		{"x", "prog", nobody, []knownview.Listed{{Name: "navigate_to_issue", Description: "Shows the current state of an issue"}}, ""},
		{"github", "https://api.githubcopilot.com/mcp/", nobody, []knownview.Listed{{Name: "create_branch"}}, ""},
	} {
		f, said := knownview.Shared(test.server, test.started, test.is, test.listed)
		if said != (test.want != "") || !strings.Contains(f.Text, test.want) || said && !strings.Contains(f.Do, `"perSession": true`) {
			t.Errorf("%s (%s): %v %s, want %q", test.server, test.started, said, f, test.want)
		}
	}
}
