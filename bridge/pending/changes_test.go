package pending

import (
	"slices"
	"testing"

	"codemode-bridge/bridge/config"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	read := func(text text) *config.Config {
		t.Helper()
		cfg, err := config.Parse("config.json", []byte(text.String()), nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	first := confirmedText()
	documents := map[*config.Config]string{}
	runAs := func(cfg *config.Config) map[string]any {
		all := map[string]any{}
		for _, name := range cfg.ServerNames() {
			all[name] = documents[cfg]
		}
		return all
	}
	old := read(first)
	for _, row := range []struct {
		edits []turn
		want  []string
	}{
		{nil, []string{"nothing but the text changed"}},
		{[]turn{drop("servers", "kept"), set(server(nil), "servers", "new")}, []string{"server kept removed", "server new added"}},
		{[]turn{set("https://other.example", "servers", "kept", "url"), set("deny", "evaluation", "profiles", "p", "default")}, []string{"profile p changed", "server kept changed"}},
		{[]turn{set("relaxed", "evaluation", "defaultProfile"), set(5, "approvals", "budget"), drop("http")}, []string{"evaluation changed", "http changed", "approvals changed"}},
	} {
		if got := Changes(old, read(first.with(row.edits...)), runAs); !slices.Equal(got, row.want) {
			t.Errorf("changed is %q, want %q", got, row.want)
		}
	}
	same := read(first)
	documents[same] = "another document"
	if got, want := Changes(old, same, runAs), []string{"server kept changed", "server time changed", "server trusted changed"}; !slices.Equal(got, want) {
		t.Errorf("of other documents changed is %q, want %q", got, want)
	}
}
