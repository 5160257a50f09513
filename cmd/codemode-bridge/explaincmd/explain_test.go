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
	there := Documents{"https://example.com/x"}
	for path, want := range map[string]struct{ hint, at string }{
		"/servers/a/comand": {"codemode-bridge config explain servers.NAME says what can stand there", "serversname"},
		"/http/listen":      {"codemode-bridge config explain http.listen says what can stand there", "key-http.listen"},
		"/nothing":          {"codemode-bridge config explain lists the keys", ""},
		"":                  {},
	} {
		if got := (Documents{}).Hint(config.Problems{{Path: path}}); got != want.hint {
			t.Errorf("%q: %q, want %q", path, got, want.hint)
		}
		if want.at != "" {
			want.hint += ", and so does https://example.com/x/docs/reference/config.html#" + want.at
		}
		if got := there.Hint(config.Problems{{Path: path}}); got != want.hint {
			t.Errorf("%q: %q, want %q", path, got, want.hint)
		}
	}
}

// The documents that a hint names have their addresses, and files of others do not.
func TestHintsNameAddresses(t *testing.T) {
	there := Documents{"https://example.com/$1"}
	for hint, want := range map[string]string{
		"start that release again: docs/install.md, Going back":          "start that release again: https://example.com/$1/docs/install.html, Going back",
		"docs/deploy/push.md says what it gets (docs/deploy/tls.md)":     "https://example.com/$1/docs/deploy/push.html says what it gets (https://example.com/$1/docs/deploy/tls.html)",
		"look at /home/ann/docs/install.md, my-docs/a.md and docs/a.mdx": "look at /home/ann/docs/install.md, my-docs/a.md and docs/a.mdx",
		"": "",
	} {
		if got := there.In(hint); got != want {
			t.Errorf("%q: %q, want %q", hint, got, want)
		}
		if got := (Documents{}).In(hint); got != hint {
			t.Errorf("%q: %q without an address", hint, got)
		}
	}
}
