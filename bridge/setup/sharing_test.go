package setup

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"

	"github.com/google/go-cmp/cmp"
)

// Before a take-over gives other clients what only one had, or has one server twice, the
// person is asked; what they refuse stays with the client.
func TestTakeOverAsks(t *testing.T) {
	system, dir := home(t, map[string]string{
		".cursor/mcp.json": `{"mcpServers": {
			"both":  {"command": "npx", "args": ["notes-mcp@1.2.3"]},
			"mine":  {"command": "npx", "args": ["mail-mcp"]},
			"shell": {"command": "npx", "args": ["my-shell-server"]},
			"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@latest", "/srv/b"]},
			"there": {"url": "https://example.com/mcp?team=a"},
			"off":   {"command": "npx", "args": ["quiet-mcp"], "disabled": true}}}`,
		".claude.json": `{"mcpServers": {"codemode": {"command": "/opt/codemode-bridge", "args": ["run"]}, "notes": {"command": "npx", "args": ["notes-mcp@1.2.3"]}}}`,
	})
	client, _ := clients.Find("cursor")
	place, err := client.Place(system, clients.User)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(`{"servers": {"docs": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@2026.1.14", "/srv/a"]}, "api": {"url": "https://example.com/mcp/"}}}`)
	take := func(answer func(question string) (bool, error)) (moved, staying []string, questions []string, err error) {
		in, err := Install(place, clients.Records{Folder: filepath.Join(dir, "installs")})
		if err != nil {
			t.Fatal(err)
		}
		in.Choose = func(question string, _ []*Server) (bool, error) {
			questions = append(questions, question)
			return answer(question)
		}
		err = in.TakeOver(system, false, text, parse, func([]*Server, string) error { return nil })
		for _, s := range in.Moving {
			moved = append(moved, s.Name)
		}
		staying, _ = in.Staying()
		return moved, staying, questions, err
	}
	twins := "files is docs with other arguments or variables; there is api with other arguments or variables: have both?"
	ours := "Claude Code can then use mine, which only Cursor had: move them?"
	commands := "Claude Code can then run commands with shell, which only Cursor had: move them?"

	moved, staying, questions, err := take(func(string) (bool, error) { return false, nil })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{twins, ours, commands}, questions); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"both", "off"}, moved); diff != "" {
		t.Errorf("after noes there moves (-want +got):\n%s", diff)
	}
	if !slices.Contains(staying, "shell stays with Cursor: only Cursor is to have it") || !slices.Contains(staying, "files stays with Cursor: the bridge has it with other arguments or variables") {
		t.Errorf("staying: %q", staying)
	}
	moved, _, questions, err = take(func(q string) (bool, error) { return !strings.Contains(q, "run commands"), nil })
	if err != nil || !slices.Contains(moved, "files") || !slices.Contains(moved, "mine") || slices.Contains(moved, "shell") {
		t.Errorf("moved %q, %v", moved, err)
	}
	if want := strings.Replace(ours, "mine", "mine, files, there", 1); !slices.Contains(questions, want) {
		t.Errorf("twins that move are shared, too: %q, want %q", questions, want)
	}
	gone := errors.New("the terminal is gone")
	if _, _, _, err := take(func(string) (bool, error) { return false, gone }); !errors.Is(err, gone) {
		t.Errorf("without an answer: %v", err)
	}
}

// What a server is, however it is started.
func TestProgramOf(t *testing.T) {
	stdio := func(command string, args ...string) clients.Server {
		return clients.Server{Kind: clients.Stdio, Command: command, Args: args}
	}
	for _, row := range []struct {
		server clients.Server
		want   string
	}{
		{stdio("npx", "-y", "@scope/pkg@1.2.3", "/srv"), "@scope/pkg"},
		{stdio("npx.cmd", "@scope/pkg"), "@scope/pkg"},
		{stdio(`C:\bin\uvx.exe`, "mcp-server-git@latest"), "mcp-server-git"},
		{stdio("docker", "run", "-i", "--rm", "mcp/time"), "mcp/time"},
		{stdio("/opt/bin/own", "--x"), "own"},
		{stdio("node", "/srv/a.js"), "/srv/a.js"},
		{clients.Server{Kind: clients.HTTP, URL: "https://a.example/mcp/?x=1"}, "https://a.example/mcp"},
	} {
		if got := programOf(row.server); got != row.want {
			t.Errorf("%v is %q, want %q", row.server, got, row.want)
		}
	}
}

// In a first configuration, a twin is named, and says so in the table.
func TestTwinsAreNamed(t *testing.T) {
	i := NewImport(clients.System{OS: "linux", Env: func(string) (string, bool) { return "", false }})
	add := func(name, args string) *Server {
		return i.Add(clients.Server{Name: name, Kind: clients.Stdio, Command: "npx", Args: strings.Fields(args)}, clients.Place{})
	}
	add("files", "-y server-files@1.0.0 /a")
	same, twin, other := add("files", "-y server-files@1.0.0 /a"), add("files", "-y server-files@2.0.0 /b"), add("notes", "server-notes")
	if same.Twin != "" || other.Twin != "" || twin.Twin != "files" || !strings.Contains(twin.Remark(), "like files, with other arguments or variables") {
		t.Errorf("twins of %q, %q, %q; %s", same.Twin, other.Twin, twin.Twin, twin.Remark())
	}
	if got := Twins(i.New()); len(got) != 1 || got[0] != twin {
		t.Errorf("the twins are %v", got)
	}
}

// What runs commands, and only one of several clients has, is asked about.
func TestOneOnly(t *testing.T) {
	i := NewImport(clients.System{OS: "linux", Env: func(string) (string, bool) { return "", false }})
	add := func(client, name string, args ...string) {
		c, _ := clients.Find(client)
		i.Add(clients.Server{Name: name, Kind: clients.Stdio, Command: "npx", Args: args}, clients.Place{Client: c, Scope: clients.User})
	}
	add("cursor", "my-shell", "my-shell")
	if some, _ := OneOnly(i.New()); len(some) > 0 {
		t.Errorf("with one client: %v", some)
	}
	add("cursor", "notes", "notes-mcp")
	add("cursor", "term", "term-terminal-mcp")
	add("codex", "term", "term-terminal-mcp")
	some, question := OneOnly(i.New())
	if len(some) != 1 || some[0].Name != "my-shell" || question != "each client that starts the bridge can then run commands with my-shell, which only Cursor has: take that, too?" {
		t.Errorf("%v: %s", some, question)
	}
}
