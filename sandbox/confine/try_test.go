package confine

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "box" {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

func TestTry(t *testing.T) {
	dir := t.TempDir()
	env := []string{"PATH=/usr/bin:/bin", "HOME=/tmp/lead/home", "npm_config_offline=true","npm_config_cache=/tmp/lead/cache1"}
	prog := "/usr/bin/npx"
	needs := Needs(prog, env)
	t.Log(needs)
	p, err := Box{Write: []string{dir,"/tmp/lead/cache1"}, Read: needs, Net: Net{}}.Start(os.Args[0], func() *exec.Cmd {
		c := exec.Command(prog, "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", dir)
		c.Args[0] = "npx"
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"` + dir + `/x","content":"hi"}}}
`)
		c.Env = env
		return c
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(p.Steps, p.Cmd.Wait())
}
