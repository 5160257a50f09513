package explaincmd

import (
	"os"
	"path/filepath"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/docs/reference"

	"github.com/spf13/cobra"
)

// The documents are named where they are: at an address of the release's, as pages of a
// package, or as the repository has them.
func TestDocuments(t *testing.T) {
	usr := filepath.ToSlash(t.TempDir())
	pages := filepath.Join(usr, "share", "doc", "codemode-bridge", "html")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pages, "index.html"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root, group, add := &cobra.Command{Use: "codemode-bridge"}, &cobra.Command{Use: "servers"}, &cobra.Command{Use: "add name", Run: func(*cobra.Command, []string) {}}
	root.AddCommand(group)
	group.AddCommand(add)
	s, key, _ := reference.Find("http.listen")
	packaged := "file://" + usr + "/share/doc/codemode-bridge/html"
	for _, row := range []struct{ stamped, program, key, section, command, group string }{
		{"", usr + "/else/bin/codemode-bridge", "docs/reference/config.md#http", "docs/reference/config.md#http", "docs/reference/cli.md", "docs/reference/cli.md"},
		{"", "", "docs/reference/config.md#http", "docs/reference/config.md#http", "docs/reference/cli.md", "docs/reference/cli.md"},
		{"", usr + "/bin/codemode-bridge", packaged + "/docs/reference/config.html#key-http.listen", packaged + "/docs/reference/config.html#http",
			packaged + "/docs/reference/cli.html#command-servers-add", packaged + "/docs/reference/cli.html"},
		{"https://example.com/x/", usr + "/bin/codemode-bridge", "https://example.com/x/docs/reference/config.html#key-http.listen", "https://example.com/x/docs/reference/config.html#http",
			"https://example.com/x/docs/reference/cli.html#command-servers-add", "https://example.com/x/docs/reference/cli.html"},
	} {
		d := Of(row.stamped, row.program)
		if got := d.Key(s, key); got != row.key {
			t.Errorf("%+v: a key is at %s", row, got)
		}
		if got := d.Key(s, nil); got != row.section {
			t.Errorf("%+v: a section is at %s", row, got)
		}
		if got := d.Command(add); got != row.command {
			t.Errorf("%+v: a command is at %s", row, got)
		}
		if got := d.Command(group); got != row.group {
			t.Errorf("%+v: a group is at %s", row, got)
		}
	}
}

func TestHint(t *testing.T) {
	for path, want := range map[string]string{
		"/servers/a/comand": "codemode-bridge config explain servers.NAME says what can stand there",
		"/http/listen":      "codemode-bridge config explain http.listen says what can stand there",
		"/nothing":          "codemode-bridge config explain lists the keys",
		"":                  "",
	} {
		if got := Hint(config.Problems{{Path: path}}); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
