//go:build real && linux

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/sandbox/confine"

	"github.com/google/go-cmp/cmp"
)

// A real server works in the box that was learned from its calls, and reaches nothing
// besides.
func TestRealLearn(t *testing.T) {
	r := newReal(t)
	g := newPremises(t)
	args := []string{filepath.Join(r.npm, "node_modules", "@modelcontextprotocol/server-filesystem/dist/index.js"), g.home}
	texts, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	file := filepath.Join(elsewhere, "config.json")
	mustWrite(t, file, fmt.Sprintf(`{"servers": {"files": {"command": "node", "args": %s}}, "evaluation": {"workspace": %q}}`, texts, g.workspace))
	learn := exec.Command(r.bin, "--config", file, "servers", "learn", "files", "--apply", "--json",
		"--call", "write_file", "--args", g.fill(`{"path": "$W/new.txt", "content": "a line"}`),
		"--call", "read_text_file", "--args", g.fill(`{"path": "$K"}`))
	learn.Env = append(os.Environ(), "HOME="+g.home, "XDG_STATE_HOME="+elsewhere, "XDG_CACHE_HOME="+elsewhere, "XDG_CONFIG_HOME="+elsewhere)
	out, err := learn.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := `{"what":"` + g.key + `","why":"keys"}`; !strings.Contains(string(out), want) {
		t.Errorf("the key is not told of: %s", out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse(file, text, func(name string) (string, bool) { return g.home, name == "HOME" })
	if err != nil {
		t.Fatal(err)
	}
	c, err := cfg.Box(cfg.Servers["files"], "")
	if err != nil {
		t.Fatal(err)
	}
	want := &config.Confine{Write: config.Folders{g.workspace}, Read: config.Folders{filepath.Join(r.npm, "node_modules")}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	session := g.start(t, r, confine.Box{Write: c.Write, Read: c.Read}, nil, "node", args...)
	for _, call := range []boxedCall{
		{"write_file", `{"path": "$W/new.txt", "content": "another"}`, "wrote"},
		{"read_text_file", `{"path": "$W/new.txt"}`, "another"},
	} {
		if text, failed := g.call(t, session, call); failed || !strings.Contains(text, call.says) {
			t.Errorf("%s: %s", call.tool, text)
		}
	}
	if text, failed := g.call(t, session, boxedCall{tool: "read_text_file", args: `{"path": "$K"}`}); !failed {
		t.Errorf("it read the key: %s", text)
	}
	// In the box this is a file of a home of its own.
	g.call(t, session, boxedCall{tool: "write_file", args: `{"path": "$C", "content": "overwritten"}`})
	g.untouched(t)
}
