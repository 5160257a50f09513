package profileview

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
)

// What a call means is said, and decides, in the workspace of whoever asks.
func TestExplainMeaning(t *testing.T) {
	set, problems := profiles.Parse(profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"p": {Default: new("ask"),
		Rules: []profiles.RuleSpec{{Effects: []string{"write"}, Where: []string{"workspace"}, Action: new("allow")}}}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	policy, _ := set.Profile("p")
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "ws")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.New([]string{folder}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := known.Server{Name: "files", Tools: map[string]known.Tool{"write": {Effects: []known.Effect{known.Write}, Where: known.Workspace, Args: map[string]known.Role{"path": known.Path, "text": known.Content}}}}
	for _, row := range []struct {
		accepted bool
		args     string
		decision profiles.Disposition
		want     string
		box      gate.Box
	}{
		{true, `{"path":"a"}`, profiles.Allow, "effects: write|where: workspace|net: none|path: WS/a, in the workspace", gate.Box{}},
		{true, `{"path":"a"}`, profiles.Allow, "effects: write|where: workspace|net: none|the box of its server keeps it in the workspace|the box of its server keeps it on this machine|path: WS/a, in the workspace", gate.Box{Files: true, Write: []string{folder}, Net: true}},
		{true, `{"path":"a"}`, profiles.Allow, "effects: write|where: workspace|net: none|path: WS/a, in the workspace|its server is not confined: nothing keeps it in the workspace or on this machine, and policy counts on neither", gate.Box{Says: "not confined"}},
		{true, `{"path":"a"}`, profiles.Allow, "effects: write|where: workspace|net: none|the box of its server keeps it in the workspace|path: WS/a, in the workspace", gate.Box{Says: "confined to x", Files: true}},
		{true, `{"path":"../a"}`, profiles.Ask, "effects: write|where: workspace|net: none|path: ROOT/a, outside the workspace", gate.Box{}},
		{true, `{"path":"a","mode":1}`, profiles.Ask, "effects: write|where: workspace|net: none|path: WS/a, in the workspace|mode: nobody knows what this argument means, and so rules about meaning are undecided", gate.Box{}},
		{false, `{"path":"a"}`, profiles.Ask, "nobody has accepted what follows: it can only make the decision stricter|effects: write|where: workspace|net: none|path: WS/a, in the workspace", gate.Box{}},
	} {
		v := &gate.View{Profiles: set, Catalog: catalog.Build([]catalog.Server{{Name: "fs", Tools: []catalog.Definition{{Name: "write", Input: []byte(`{"type":"object","properties":{"path":{},"text":{}}}`)}}}}),
			Meanings: map[string]gate.Meant{"fs": {Server: server, Accepted: row.accepted, Folder: folder}}, Box: func(string) gate.Box { return row.box }}
		args, err := canon.Parse([]byte(row.args))
		if err != nil {
			t.Fatal(err)
		}
		x, err := Explain(v, policy, "fs__write", args, ws, Servers{Has: func(string) bool { return true }, Disabled: func(string) bool { return false }}, func(profiles.Decision) time.Duration { return time.Minute })
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.NewReplacer("WS", folder, "ROOT", root).Replace(row.want), "|")
		if x.Box != row.box.Says {
			t.Errorf("%s: the box is %q, want %q", row.args, x.Box, row.box.Says)
		}
		if diff := cmp.Diff(want, x.Means); diff != "" || x.Decision.Disposition != row.decision {
			t.Errorf("%s: %s, want %s; (-want +got)\n%s", row.args, x.Decision.Disposition, row.decision, diff)
		}
		var out strings.Builder
		x.Write(&out, "profile p")
		if !strings.Contains(out.String(), "\nWHAT IT MEANS\n  "+want[0]+"\n") {
			t.Error(out.String())
		}
	}
}
