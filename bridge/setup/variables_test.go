package setup

import (
	"strings"
	"testing"
)

func TestDiffShowsVariablesAndNoSecrets(t *testing.T) {
	t.Parallel()
	for value, shown := range map[string]bool{
		"Bearer ${GITHUB_TOKEN}":            true,
		"${SCHEME}${TOKEN}":                 true,
		"Basic ${env:LOGIN}":                true,
		"Bearer ghp_0123456789abcdefghijkl": false,
		"Bearer ${keyring:GITHUB.TOKEN}":    true,
		"${file:~/.secrets/token}":          true,
		"${file:-hunter2}":                  false,
		"${exec:echo hunter2}":              false,
		"Bearer x${TOKEN}":                  false,
		"Bearer ${TOKEN}x":                  false,
		"hunter2 ${TOKEN}":                  false,
		"Bearer ${TOKEN:-hunter2}":          false,
		"${TOKEN:-hunter2}":                 false,
	} {
		for _, form := range []string{"\n  \"headers\": {\n    \"Authorization\": \"%\"\n  }\n", `"headers": {"X-Plain": "${PLAIN}", "Authorization": "%"}`} {
			after := []byte(`{"servers": {"a": {"url": "https://a.example/mcp", ` + strings.Replace(form, "%", value, 1) + "}}}\n")
			text := strings.Join(Diff("config.json", nil, after, Secrets(after)), "\n")
			if got := strings.Contains(text, `"Authorization": "`+value+`"`); got != shown {
				t.Errorf("%s is shown: %t, want %t:\n%s", value, got, shown, text)
			}
			for _, secret := range []string{"hunter2", "ghp_"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s is shown:\n%s", secret, text)
				}
			}
		}
	}
}
