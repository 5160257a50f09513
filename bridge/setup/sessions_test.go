package setup

import (
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
)

// A server that is known to keep state gets a process for each session, whichever client
// it is from; what the text says already stays.
func TestPerSession(t *testing.T) {
	for _, test := range []struct {
		text string
		want bool
	}{
		{`{"command": "npx", "args": ["-y", "@playwright/mcp@latest"]}`, true},
		{`{"command": "npx", "args": ["@modelcontextprotocol/server-sequential-thinking"]}`, true},
		{`{"command": "npx", "args": ["@playwright/mcp"], "perSession": false}`, false},
		{`{"command": "npx", "args": ["@playwright/mcp"], "perSession": true}`, true},
		{`{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"]}`, false},
		{`{"command": "my-browser"}`, false},
	} {
		next, set := PerSession(jsonc.Text(test.text))
		if set != test.want || strings.Contains(string(next), `"perSession": true`) != test.want || set == (string(next) == test.text) && !strings.Contains(test.text, "perSession") {
			t.Errorf("%s: %v\n%s", test.text, set, next)
		}
	}
	i := NewImport(clients.System{OS: "linux", Env: func(string) (string, bool) { return "", false }})
	one := i.Add(clients.Server{Name: "web", Kind: clients.Stdio, Command: "npx", Args: []string{"@playwright/mcp"}}, clients.Place{})
	if text := string(one.Text()); !strings.Contains(text, `"perSession": true`) {
		t.Errorf("an imported server is %s", text)
	}
	if words := SessionWords(i.New()); len(words) != 1 || !strings.HasPrefix(words[0], "web keeps state for whoever calls") {
		t.Errorf("the person is told %q", words)
	}
	// With or without that key, it is the same server.
	again := NewImport(clients.System{OS: "linux", Env: func(string) (string, bool) { return "", false }})
	text := []byte(`{"servers": {"mine": {"command": "npx", "args": ["@playwright/mcp"]}}}`)
	cfg, err := config.Parse("config.json", text, func(string) (string, bool) { return "", false })
	if err == nil {
		err = again.Configured(text, cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s := again.Add(clients.Server{Name: "web", Kind: clients.Stdio, Command: "npx", Args: []string{"@playwright/mcp"}}, clients.Place{}); !s.There || s.As != "mine" {
		t.Errorf("it is not the server that the configuration has: %+v", s)
	}
}
