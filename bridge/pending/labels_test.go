package pending

import (
	"testing"

	"codemode-bridge/bridge/config"
)

// A tool that no pattern matches may have any label: a pattern in the place of another may say that it has none.
func TestAnotherPatternOfLabels(t *testing.T) {
	with := func(labels map[string][]string) *config.Server {
		return &config.Server{Tools: config.Tools{Labels: labels}}
	}
	was := with(map[string][]string{"read_*": {}})
	if !otherLabels(was, with(map[string][]string{"*": {}})) {
		t.Error("all tools have no labels now, and it is not noticed")
	}
	if otherLabels(was, with(nil)) || otherLabels(was, with(map[string][]string{"read_*": {"private"}})) {
		t.Error("labels that are stricter wait")
	}
}
