package known_test

import (
	"testing"

	"codemode-bridge/profiles/known"
)

// A browser is confined to this machine only by a flag that names nothing else.
func TestConfined(t *testing.T) {
	t.Parallel()
	for args, want := range map[[2]string]bool{
		{"--headless"}: false,
		{"--allowed-origins=http://localhost:3000"}:                          true,
		{"--allowed-origins", "http://localhost:3000"}:                       true,
		{"--allowed-origins=http://127.0.0.1:*;https://[::1]"}:               true,
		{"--allowed-origins=http://localhost:3000;https://example.com"}:      false,
		{"--allowed-origins=http://localhost.example.com"}:                   false,
		{"--allowed-origins=http://localhost@example.com"}:                   false,
		{"--allowed-origins=*"}:                                              false,
		{"--allowed-origins="}:                                               false,
		{"--blocked-origins=http://localhost"}:                               false,
		{"--allowed-origins=http://localhost", "--allowed-origins=http://a"}: false,
	} {
		started := known.Started{Command: "npx", Args: []string{"-y", "@playwright/mcp@0.0.83"}}
		for _, arg := range args {
			if arg != "" {
				started.Args = append(started.Args, arg)
			}
		}
		m, why := known.Identify(started)
		if m.Server.Name != "playwright" || m.Confined != want || m.Remote {
			t.Errorf("%q: %s, confined %v, remote %v (%s)", args, m.Server.Name, m.Confined, m.Remote, why)
		}
	}
	if m, _ := known.Identify(known.Started{URL: "https://mcp.context7.com/mcp"}); m.Server.Name == "" || !m.Remote {
		t.Errorf("%q at an address is remote: %v", m.Server.Name, m.Remote)
	}
}
