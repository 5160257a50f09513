package upstream

import (
	"slices"
	"strings"
	"testing"
)

// Only what npx runs is fetched apart, from the registries that are configured.
func TestFetches(t *testing.T) {
	home := "HOME=" + t.TempDir()
	for _, row := range []struct {
		command string
		child   []string
		want    string
	}{
		{"/usr/bin/npx -y some-mcp@1.0.0", nil, "registry.npmjs.org:443"},
		{"npm exec some-mcp", []string{"npm_config_registry=https://npm.example:8443/"}, "npm.example:8443"},
		{"npx -y some-mcp", []string{"npm_config_registry=http://127.0.0.1:4873"}, "localhost:4873"},
		{"npx ./mine", nil, ""},
		{"node npx", nil, ""},
		{"uvx some-mcp", nil, ""},
	} {
		words := strings.Fields(row.command)
		if got := Fetches(words[0], words[1:], []string{home}, row.child); !slices.Equal(got, strings.Fields(row.want)) {
			t.Errorf("%s is fetched from %q, want %q", row.command, got, row.want)
		}
	}
}
