package upstreams

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
)

// A box knows which folders of other boxes its own paths are in: programs there may make
// links in them.
func TestFoldersOfOtherBoxes(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(base, name) }
	server := func(box map[string]any) map[string]any { return map[string]any{"command": "x", "confine": box} }
	text, err := json.Marshal(map[string]any{"servers": map[string]any{
		"wide":   server(map[string]any{"write": at("ws")}),
		"narrow": server(map[string]any{"write": at("ws/sub")}),
		"reads":  server(map[string]any{"read": []string{at("ws/sub/deep"), at("apart")}}),
		"apart":  server(map[string]any{"write": at("notes")}),
		"off":    map[string]any{"command": "x", "disabled": true, "confine": map[string]any{"write": at("notes/in")}},
		"open":   map[string]any{"command": "x"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse(at("config.json"), text, nil, profiles.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, spec := range Specs(cfg, Options{Env: func(string) (string, bool) { return "", false }, Launcher: func() (string, error) { return "/worker", nil }}) {
		if spec.Box != nil {
			got[spec.Name] = spec.Box.Others
		}
	}
	want := map[string][]string{"wide": nil, "narrow": {at("ws")}, "reads": {at("ws/sub"), at("ws")}, "apart": nil, "off": {at("notes")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
