package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"codemode-bridge/docs/reference"
)

// The repository's documents make pages whose links all lead somewhere, with an address
// for each key of the configuration and each command.
func TestPages(t *testing.T) {
	out := t.TempDir()
	if err := write(filepath.Join("..", ".."), out); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"index.html":                         {`<a href="docs/install.html"`, "<details><summary>With several bridges"},
		"docs/reference/config.html":         {`<tr id="key-http.listen">`, `id="key-servers.NAME.command"`, `id="key-access.limits.`, `id="servers-in-a-box"`, `aria-current="page">The configuration file`},
		"docs/reference/cli.html":            {`id="command-servers-add"`, `id="command-servers-enable"`, `id="command-approvers-delegate"`},
		"docs/examples/index.html":           {`href="../../index.html"`},
		"github/contributing.html":           {"<h1"},
		"docs/deploy/metrics/index.html":     {`href="prometheus.yml"`},
		"docs/deploy/metrics/prometheus.yml": nil,
	} {
		text, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
		if regexp.MustCompile(`<script|\]\([^)]*\.md`).Match(text) {
			t.Errorf("%s has a script, or Markdown that was not rendered", name)
		}
	}
	for name, anchors := range map[string][]string{"config.html": keyAnchors(), "cli.html": commandAnchors(t)} {
		text, err := os.ReadFile(filepath.Join(out, "docs", "reference", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, anchor := range anchors {
			if n := strings.Count(string(text), ` id="`+anchor+`"`); n != 1 {
				t.Errorf("%s has %d places that are called #%s", name, n, anchor)
			}
		}
	}
	if err := write(filepath.Join("..", ".."), out); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("written over: %v", err)
	}
}

// keyAnchors are those that `config explain` names: of each object, and of each of its keys.
func keyAnchors() (all []string) {
	for i := range reference.Sections {
		s := &reference.Sections[i]
		all = append(all, s.Slug())
		for _, k := range s.Keys {
			all = append(all, reference.KeyAnchor(s.Path, k.Name))
		}
	}
	return all
}

// commandAnchors are those of the commands in the tables of the reference.
func commandAnchors(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	row, within := regexp.MustCompile("^\\| `([a-z][^`]*)`"), false
	for line := range strings.Lines(string(text)) {
		if within = strings.HasPrefix(line, "|") && (within || strings.HasPrefix(line, "| command |")); !within {
			continue
		}
		if is := row.FindStringSubmatch(line); is != nil {
			all = append(all, reference.CommandAnchor(is[1]))
		}
	}
	if len(all) < 50 {
		t.Errorf("the reference has only the commands %q", all)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// What leads nowhere is found, whatever it is.
func TestBroken(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"[a](docs/a.md#one), [b](LICENSE)", ""},
		{"[a](docs/b.md)", "index.html: docs/b.md: there is no such file"},
		{"[a](docs/a.md#two)", "index.html: docs/a.html#two: there is no such place"},
		{"[a](#here)", "index.html: #here: there is no such place"},
		{"![a](https://example.com/a.png)", "index.html: a page loads nothing from elsewhere, and this one has https://example.com/a.png"},
		{"[a](https://example.com/)", ""},
		{`<p id="x">a</p> <p id="x">b</p>`, "index.html: two places are called #x"},
	} {
		s, err := newSite(fstest.MapFS{"README.md": {Data: []byte("# Top\n\n" + row.text + "\n")}, "docs/a.md": {Data: []byte("# A\n\n## One\n")}, "LICENSE": {Data: []byte("l")}}, "README.md")
		if err != nil {
			t.Fatal(err)
		}
		files, err := s.files()
		if err != nil {
			t.Fatal(err)
		}
		if bad := strings.Join(broken(files), "\n"); bad != row.want {
			t.Errorf("%s: %q, want %q", row.text, bad, row.want)
		}
	}
}

// The navigation is the README's list of documents, in its groups; what is in none comes
// last.
func TestNavigation(t *testing.T) {
	s, err := newSite(fstest.MapFS{
		"README.md": {Data: []byte("# Top\n\n[first](b.md)\n\n## Documents\n\n**Using it**\n\n- [a](a.md), [again](a.md#x)\n\n## Else\n\n- [c](c/README.md)\n")},
		"a.md":      {Data: []byte("# Title of `a`\n\n## X\n")}, "b.md": {Data: []byte("no title")}, "c/README.md": {Data: []byte("# C\n")},
	}, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []group{{"Start", []link{{"Top", "README.md"}}}, {"Using it", []link{{"Title of a", "a.md"}}}, {"More", []link{{"b.md", "b.md"}, {"C", "c/README.md"}}}}
	if !slices.EqualFunc(s.groups, want, func(a, b group) bool { return a.Title == b.Title && slices.Equal(a.links, b.links) }) {
		t.Errorf("got %v, want %v", s.groups, want)
	}
}

func TestRelative(t *testing.T) {
	for _, row := range [][3]string{{"index.html", "a.html", "a.html"}, {"docs/a.html", "index.html", "../index.html"}, {"docs/x/a.html", "docs/b.html", "../b.html"}, {"a.html", "docs/b.html", "docs/b.html"}, {"docs/a.html", "docs/a.html", "a.html"}, {"a/b/c.html", "d/e.html", "../../d/e.html"}} {
		if got := relative(row[0], row[1]); got != row[2] {
			t.Errorf("from %s to %s: %s, want %s", row[0], row[1], got, row[2])
		}
	}
}

// Headings have the anchors of GitHub.
func TestSlugs(t *testing.T) {
	s := &slugs{has: map[string]bool{}}
	for _, row := range [][2]string{{"`servers.NAME`", "serversname"}, {"What's in a release", "whats-in-a-release"}, {"A [link](x.md) here", "a-link-here"}, {"Twice", "twice"}, {"Twice", "twice-1"}} {
		if got := string(s.Generate([]byte(row[0]), 0)); got != row[1] {
			t.Errorf("%s: %s, want %s", row[0], got, row[1])
		}
	}
}
