//go:build real && linux

package main_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealBox has the real filesystem server in a box that writes the workspace alone,
// though its own arguments let it write more, and a server that connects to hosts.
func TestRealBox(t *testing.T) {
	r := newReal(t)
	base, err := os.MkdirTemp("/var/tmp", "box") // a box has a /tmp of its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	work, kept := filepath.Join(base, "work"), filepath.Join(base, "canary")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(work, "a.txt"), "inside")
	mustWrite(t, kept, "untouched")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port

	reach := []string{filepath.Join(r.npm, "reach.mjs")}
	config, err := json.Marshal(map[string]any{
		"evaluation": map[string]any{"workspace": []string{work}, "defaultProfile": "all", "profiles": map[string]any{"all": map[string]any{"allowlist": []string{"**"}}}},
		"servers": map[string]any{
			"files": map[string]any{
				"command": "node", "args": []string{filepath.Join(r.npm, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"), work, base},
				"confine": map[string]any{"write": []string{"workspace"}, "net": "none", "require": true}},
			"alone": map[string]any{"command": "node", "args": reach, "confine": map[string]any{"net": "none", "require": true}},
			"some":  map[string]any{"command": "node", "args": reach, "confine": map[string]any{"net": []string{fmt.Sprintf("localhost:%d", port)}, "require": true}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, r.config, string(config))

	j := r.job(t, "stdio")
	j.Steps = []clientStep{evalStep(`
const said = [];
const tried = async (what, f) => { try { said.push(what + ": " + await f()) } catch (e) { said.push(what + ": failed: " + e.message) } };
await tried("read", async () => (await codemode.files__read_text_file({path: input.work + "/a.txt"})).content);
await tried("write", async () => (await codemode.files__write_file({path: input.work + "/b.txt", content: "new"})) && "done");
await tried("write outside", () => codemode.files__write_file({path: input.kept, content: "changed"}));
await tried("read outside", () => codemode.files__read_text_file({path: input.kept}));
await tried("move outside", () => codemode.files__move_file({source: input.work + "/a.txt", destination: input.base + "/moved"}));
await tried("alone", () => codemode.alone__reach({host: "127.0.0.1", port: input.port}));
await tried("alone by name", () => codemode.alone__reach({host: "registry.npmjs.org", port: 443}));
await tried("some", () => codemode.some__reach({host: "localhost", port: input.port}));
await tried("some by name", () => codemode.some__reach({host: "registry.npmjs.org", port: 443}));
return said;`, map[string]any{"work": work, "kept": kept, "base": base, "port": port})}
	a := r.client(t, "sdk", j)
	var said []string
	if err := json.Unmarshal([]byte(a.Steps[0].value(t, "eval")), &said); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"read: inside", "write: done", "write outside: failed: ", "read outside: failed: ", "move outside: failed: ",
		"alone: ECONNREFUSED", "alone by name: E", "some: connected", "some by name: ENOTFOUND",
	} {
		if i >= len(said) || !strings.HasPrefix(said[i], want) {
			t.Errorf("want %q first:\n%s", want, strings.Join(said, "\n"))
			break
		}
	}
	for path, want := range map[string]string{kept: "untouched", filepath.Join(work, "b.txt"): "new", filepath.Join(work, "a.txt"): "inside"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, want %q", path, got, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(base, "moved")); err == nil {
		t.Error("a file was moved out of the box")
	}
}
