package recorder

import (
	"slices"
	"testing"
)

func TestArgSecrets(t *testing.T) {
	for _, row := range []struct {
		args []string
		want []string
	}{
		{[]string{"--api-key", "s3cret-value"}, []string{"s3cret-value"}},
		{[]string{"--token=s3cret-value"}, []string{"s3cret-value"}},
		{[]string{"--password", "two w0rds"}, []string{"two w0rds"}},
		{[]string{"-token", "s3cret-value", "--verbose"}, []string{"s3cret-value"}},
		{[]string{"--key", "s3cret-value"}, []string{"s3cret-value"}},
		{[]string{"-H", "Authorization: Bearer s3cret-value"}, []string{"Bearer s3cret-value", "s3cret-value"}},
		{[]string{"-HX-Api-Key: s3cret-value"}, []string{"s3cret-value"}},
		{[]string{"--header=Authorization: Basic YW5uOnMzY3JldA=="}, []string{"Basic YW5uOnMzY3JldA==", "YW5uOnMzY3JldA=="}},
		{[]string{"-u", "ann:s3cret-value"}, []string{"ann:s3cret-value", "s3cret-value"}},
		{[]string{"-e", "GITHUB_TOKEN=s3cret-value"}, []string{"s3cret-value"}},
		{[]string{"--env=GITHUB_TOKEN=s3cret-value"}, []string{"s3cret-value"}},
		{[]string{"postgres://postgres:s3cret%21value@db/x"}, []string{"postgres:s3cret%21value", "s3cret%21value", "s3cret!value"}},
		{[]string{"--url", "https://example.com/mcp?api_key=s3cret-value&version=2026-01-01"}, []string{"s3cret-value"}},
		{[]string{"ghp_0123456789abcdef0123456789abcdef0123"}, []string{"ghp_0123456789abcdef0123456789abcdef0123"}},
		{[]string{"--password", "correct-horse-battery-staple"}, []string{"correct-horse-battery-staple"}},

		{args: []string{"--token", "short1"}},
		{args: []string{"--token", "--verbose2024"}},
		{args: []string{"--token"}},
		{args: []string{"--auth", "keychain"}},
		{args: []string{"--password-store", "/home/ann/notes2"}},
		{args: []string{"--credentials", "./keys2/creds.json"}},
		{args: []string{"--credentials", `C:\keys2\creds.json`}},
		{args: []string{"--token-file", "tokens2024.txt"}},
		{args: []string{"--max-tokens", "128000000"}},
		{args: []string{"--auth", "https://login2.example.com/realm"}},
		{args: []string{"postgres://postgres:postgres@localhost/postgres"}},
		{args: []string{"-H", "Accept: application/json"}},
		{args: []string{"-y", "@modelcontextprotocol/server-filesystem@2026.1.14", "/home/ann/notes2"}},
	} {
		got := ArgSecrets(row.args)
		for _, want := range row.want {
			if !slices.Contains(got, want) {
				t.Errorf("%q has %q, want %q among them", row.args, got, want)
			}
		}
		if len(row.want) == 0 && len(got) > 0 {
			t.Errorf("%q has %q, want none", row.args, got)
		}
	}
}
