package config

import (
	"slices"
	"testing"
)

func TestServersAreInTheOrderOfTheFile(t *testing.T) {
	const text = `{"mcpServers": {
		"zebra": {"command": "a"}, "apple": {"command": "b", "disabled": true},
		"mango": {"command": "c"}
	}}`
	c := mustParse(t, "c.json", text)
	if got, want := c.ServerOrder(), []string{"zebra", "apple", "mango"}; !slices.Equal(got, want) {
		t.Errorf("the servers are in the order %q, want %q", got, want)
	}
	delete(c.Servers, "zebra") // for a command that looks at one server
	if got, want := c.ServerOrder(), []string{"zebra", "apple", "mango"}; !slices.Equal(got, want) {
		t.Errorf("without one, the servers are in the order %q, want %q", got, want)
	}
	if got := mustParse(t, "c.json", `{}`).ServerOrder(); len(got) != 0 {
		t.Errorf("without servers: %q", got)
	}
}
