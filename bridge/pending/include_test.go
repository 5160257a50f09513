package pending

import (
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/profiles"
)

// Which documents are included may loosen: another signer's are taken, or what one says holds no more.
func TestIncludesThatLoosen(t *testing.T) {
	parse := func(text string) *config.Config {
		cfg, err := config.Parse("/c.json", []byte(text), nil, profiles.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	sum := strings.Repeat("a", 64)
	one := `{"include": [{"url": "https://a.example", "sha256": "` + sum + `"}]}`
	for _, row := range []struct{ was, is, want string }{
		{one, one, ""},
		{`{}`, one, "policy is taken from https://a.example"},
		{one, `{}`, "does not hold any more"},
		{`{"include": ["team.json"]}`, `{}`, "does not hold any more"},
		{`{}`, `{"include": ["team.json"]}`, ""}, // what it says is judged itself
	} {
		got := strings.Join(Looser(parse(row.was), parse(row.is)), "; ")
		if row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s\n%s\n%q, want %q", row.was, row.is, got, row.want)
		}
	}
}
