package clients

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// meaning is a text as data.
func meaning(t testing.TB, f format, text []byte) map[string]any {
	t.Helper()
	_, body := cutBOM(text)
	tree, err := f.decode(body)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return tree
}

// TestUndo takes nothing, each entry, and all entries out of every sample, and
// undoes that: as a whole, and entry by entry, as after an edit.
func TestUndo(t *testing.T) {
	for _, s := range samples(t) {
		servers, err := s.place.Servers(s.text)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, one := range servers {
			all = append(all, one.Name)
		}
		choices := [][]string{nil, all}
		for _, name := range all {
			choices = append(choices, []string{name})
		}
		for _, text := range [][]byte{s.text, windows(s.text), slices.Concat([]byte("\xef\xbb\xbf"), s.text), bytes.TrimRight(s.text, "\n")} {
			for i, out := range choices {
				t.Run(fmt.Sprintf("%s/%d", filepath.Base(s.path), i), func(t *testing.T) { undo(t, s.place, text, out) })
			}
		}
	}
}

func undo(t *testing.T, p Place, text []byte, out []string) {
	after, r, err := p.Install(text, true, "codemode", bridge, out, nil)
	if err != nil {
		t.Fatal(err)
	}
	there, same, err := p.Installed(after, "codemode", bridge)
	if err != nil || !there || !same {
		t.Fatalf("installed: %v %v %v\n%s", there, same, err, after)
	}
	left, err := p.Servers(after)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range left {
		if slices.Contains(out, one.Name) {
			t.Errorf("%s is still there:\n%s", one.Name, after)
		}
	}
	back, err := p.Uninstall(after, text, r)
	if err != nil || !bytes.Equal(back, text) {
		t.Fatalf("as a whole: %v\n%s", err, back)
	}

	// Somebody adds an entry: what was there comes back beside it.
	f := p.Client.format
	bom, body := cutBOM(after)
	edited, err := f.insert(body, p.keys(body), p.entry("later", bridge, false))
	if err != nil {
		t.Fatal(err)
	}
	back, err = p.Uninstall(slices.Concat(bom, edited), text, r)
	if err != nil {
		t.Fatal(err)
	}
	_, body = cutBOM(text)
	want, err := f.insert(body, p.keys(body), p.entry("later", bridge, false))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(meaning(t, f, want), meaning(t, f, back)); diff != "" {
		t.Errorf("beside an edit, without %q (-want +got):\n%s", out, diff)
	}

	// With nothing taken out, an edit leaves every other byte as it was.
	if len(out) == 0 {
		r.Before = ""
		if back, err = p.Uninstall(after, nil, r); err != nil || !bytes.Equal(bytes.TrimRight(back, "\r\n"), bytes.TrimRight(text, "\r\n")) {
			t.Errorf("by entry: %v\n%s", err, back)
		}
	}
}

func TestEmptyFiles(t *testing.T) {
	texts := map[string][]string{
		"cursor":      {"", "\n", "{}", "{}\n", "{ }", "{\n}\n", "// nothing\n{}\n", `{"a":1}`, `{"mcpServers":{}}`, "{\n  \"mcpServers\": {}\n}\n", "{\n  \"mcpServers\": {\n    // none\n  }\n}\n", "{\"a\": 1, // one\n}", "{\n\t\"a\": [1], // one\n}"},
		"claude-code": {"", "{}", "{\n  \"projects\": {}\n}"},
		"codex":       {"", "\n", "# nothing\n", "a = 1", "[mcp_servers]\n", "[a]\nb = 1\n", "mcp_servers.x.command = \"y\"\n"},
		"goose":       {"", "# nothing\n", "extensions:\n", "extensions: {}\n", "extensions: {} # none\n", "extensions: null", "a: 1", "a:\n  - 1\nextensions:\nb: 2\n", "extensions: ~\nb: 1\n"},
	}
	for name, all := range texts {
		c, _ := Find(name)
		for _, scope := range c.Scopes {
			p, err := c.Place(ann, scope)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range all {
				after, r, err := p.Install([]byte(text), text != "", "codemode", bridge, nil, nil)
				if err != nil {
					t.Errorf("%s %q: %v", p, text, err)
					continue
				}
				if there, same, err := p.Installed(after, "codemode", bridge); err != nil || !there || !same {
					t.Errorf("%s %q: %v\n%s", p, text, err, after)
				}
				back, err := p.Uninstall(after, []byte(text), r)
				if err != nil || (back == nil) != (text == "") || string(back) != text {
					t.Errorf("%s %q: undone as a whole: %q, %v", p, text, back, err)
				}
				r.Before = ""
				back, err = p.Uninstall(after, nil, r)
				if err != nil {
					t.Errorf("%s %q: %v", p, text, err)
					continue
				}
				old, now := meaning(t, c.format, []byte(text)), meaning(t, c.format, back)
				if len(r.Made) == 0 { // what was null may be empty
					members(old, p.keys(nil))
					members(now, p.keys(nil))
				}
				if diff := cmp.Diff(old, now); diff != "" {
					t.Errorf("%s %q: undone by entry: %q (-before +after)\n%s", p, text, back, diff)
				}
			}
		}
	}
}

// TestInstallAgain: the record of the first install is what is undone.
func TestInstallAgain(t *testing.T) {
	for _, s := range samples(t) {
		first, r1, err := s.place.Install(s.text, true, "codemode", []string{"/old/codemode-bridge", "run"}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		servers, err := s.place.Servers(first)
		if err != nil {
			t.Fatal(err)
		}
		out := []string{servers[0].Name}
		second, r2, err := s.place.Install(first, true, "codemode", bridge, out, r1)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := s.place.Uninstall(second, s.text, r2); err != nil || !bytes.Equal(back, s.text) {
			t.Errorf("%s: %v\n%s", s.path, err, back)
		}
		// With an edit between the two, no whole text comes back, but the entry does.
		between := bytes.Replace(first, []byte("/old/"), []byte("/odd/"), 1)
		third, r3, err := s.place.Install(between, true, "codemode", bridge, out, r1)
		if err != nil {
			t.Fatal(err)
		}
		back, err := s.place.Uninstall(third, s.text, r3)
		if err != nil {
			t.Fatalf("%s, edited between: %v", s.path, err)
		}
		if diff := cmp.Diff(meaning(t, s.place.Client.format, s.text), meaning(t, s.place.Client.format, back)); diff != "" {
			t.Errorf("%s, edited between (-want +got):\n%s", s.path, diff)
		}
	}
}

// TestSomebodyElses: an entry of our name that is not ours comes back too.
func TestSomebodyElses(t *testing.T) {
	c, _ := Find("cursor")
	p, err := c.Place(ann, User)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("{\n  \"mcpServers\": {\n    \"codemode\": {\"command\": \"other\"}, // mine\n    \"x\": {\"command\": \"y\"}\n  }\n}\n")
	after, r, err := p.Install(text, true, "codemode", bridge, nil, nil)
	if err != nil || bytes.Contains(after, []byte("other")) {
		t.Fatalf("%v\n%s", err, after)
	}
	r.Before = ""
	back, err := p.Uninstall(after, nil, r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(meaning(t, c.format, text), meaning(t, c.format, back)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGone: what the person has undone already stays undone.
func TestGone(t *testing.T) {
	for _, s := range samples(t) {
		servers, err := s.place.Servers(s.text)
		if err != nil {
			t.Fatal(err)
		}
		_, r, err := s.place.Install(s.text, true, "codemode", bridge, []string{servers[0].Name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := s.place.Uninstall(s.text, nil, r); err != nil || !bytes.Equal(back, s.text) {
			t.Errorf("%s: %v\n%s", s.path, err, back)
		}
	}
}

func TestRefusedEdits(t *testing.T) {
	for _, test := range []struct{ client, text, want string }{
		{"cursor", `[]`, "it is not a JSON object"},
		{"cursor", `{"mcpServers": []}`, "mcpServers is not an object"},
		{"cursor", `{"mcpServers": null}`, "mcpServers is not an object"},
		{"cursor", `{"mcpServers": {"codemode": {}, "codemode": {"command": "x"}}}`, "it is there twice"},
		{"cursor", "{\n \"token\": s3cret\n}", "it is not JSON: line 2, column 11"},
		{"cursor", strings.Repeat(`{"a":`, 5000), "nested deeper than 200 levels"},
		{"codex", "mcp_servers = {x = {command = \"y\"}}\n", "add it yourself:\n[mcp_servers.codemode]\ncommand = "},
		{"codex", "a = \"\nb = 1\n", "it is not TOML: line 1"},
		{"codex", "token = s3cret\n", "it is not TOML: line 1"},
		{"codex", "a = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper than 200 levels"},
		{"codex", "a = " + strings.Repeat("{b=", 5000) + "1" + strings.Repeat("}", 5000), "nested deeper than 200 levels"},
		{"codex", "a = " + strings.Repeat("[", 5000), "it is not TOML"},
		{"codex", "a = " + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20), "it is not TOML"},
		{"codex", "[a", "it is not TOML"},
		{"codex", "mcp_servers = 1\n", "mcp_servers is not a table"},
		{"goose", "extensions: {a: {type: stdio, cmd: x}}\n", "written on one line, in braces; add it yourself:\nextensions:\n  codemode:\n"},
		{"goose", "{extensions: {}}", "written on one line"},
		{"goose", "a: 1\n---\nb: 2\n", "more than one YAML document"},
		{"goose", "extensions: [1]\n", "extensions is not a mapping"},
		{"goose", "- 1\n", "it is not a YAML mapping"},
		{"goose", "a: [s3cret\nb", "it is not YAML: line"},
		{"goose", "a: &a [x, x]\nb: &b [*a, *a]\n" + strings.Repeat("c: 1\n", 2), "it is not YAML"},
	} {
		c, _ := Find(test.client)
		p, err := c.Place(ann, User)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = p.Install([]byte(test.text), true, "codemode", bridge, nil, nil)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s %.60q: %v", test.client, test.text, err)
		}
	}
}

// TestHostileNames: names that mean something to a format are only names.
func TestHostileNames(t *testing.T) {
	names := []string{"a.b", `q"uote`, "it's", "tab\t", "new\nline", "\x01\x1b[31m", "snow ☃", "true", "- x", "a: b", "#c", "{}", "__proto__", "del\x7f", ""}
	for _, c := range All() {
		for _, name := range names {
			p, err := c.Place(ann, User)
			if err != nil {
				t.Fatal(err)
			}
			after, r, err := p.Install(nil, false, name, bridge, nil, nil)
			if err != nil {
				t.Errorf("%s %q: %v", c.Name, name, err)
				continue
			}
			servers, err := p.Servers(after)
			if err != nil || len(servers) != 1 || servers[0].Name != name {
				t.Errorf("%s %q: %v %v\n%s", c.Name, name, servers, err, after)
			}
			r.Before, r.Existed = "", true
			if back, err := p.Uninstall(after, nil, r); err != nil || len(meaning(t, c.format, back)) != 0 {
				t.Errorf("%s %q: %v\n%s", c.Name, name, err, back)
			}
		}
	}
}

// TestJSONKeepsEverything: whatever an object looks like, an entry that is put
// in and taken out leaves it as it was.
func TestJSONKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gap := rapid.SampledFrom([]string{"", " ", "\n", "\n  ", "\n\t", " // c\n", " /* c */ ", "\n  // above\n  ", " /* two\n lines */ ", "\r\n", " // c\r\n\t"})
		space := func() string { return gap.Draw(t, "gap") }
		value := rapid.SampledFrom([]string{"1", `"x"`, "[]", "{}", `{"a": [1, 2,],}`, "null", "{\n  // in\n}"})
		var out strings.Builder
		out.WriteString(space() + "{" + space() + `"mcpServers"` + space() + ":" + space() + "{")
		n := rapid.IntRange(1, 4).Draw(t, "n")
		for i := range n {
			out.WriteString(space() + fmt.Sprintf("%q", fmt.Sprint("k", i)) + space() + ":" + space() + value.Draw(t, "value") + space())
			if i < n-1 || rapid.Bool().Draw(t, "comma") {
				out.WriteString(",")
			}
		}
		out.WriteString(space() + "}" + space() + "}" + space())
		text := []byte(out.String())
		p := Place{Client: known[0], Scope: User, File: "f", system: ann}
		after, r, err := p.Install(text, true, "codemode", bridge, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		for _, comment := range []string{"// c", "/* c */", "// above", "// in", "/* two\n lines */"} {
			if strings.Count(string(after), comment) != strings.Count(string(text), comment) {
				t.Fatalf("a comment is lost:\n%s\n-- after --\n%s", text, after)
			}
		}
		r.Before = ""
		back, err := p.Uninstall(after, nil, r)
		if err != nil || string(back) != string(text) {
			t.Fatalf("%v\n%q\n-- back --\n%q\n-- between --\n%q", err, text, back, after)
		}
		// Each that was there can be taken out, and what is left reads the same.
		name := fmt.Sprint("k", rapid.IntRange(0, n-1).Draw(t, "out"))
		if _, _, err := p.Install(text, true, "codemode", bridge, []string{name}, nil); err != nil {
			t.Fatalf("without %s: %v in\n%s", name, err, text)
		}
	})
}

func FuzzPlace(f *testing.F) {
	for _, s := range []string{"{}", `{"mcpServers": {"a": {"command": "b", "args": ["${X}", "$$"]}}}`, "[mcp_servers.a]\ncommand = 'x'\n", "mcp_servers.a = {url = \"\"\"\nx\"\"\"}", "extensions:\n  a:\n    cmd: x\n", "extensions: {}\n", "a: |\n  b\nextensions:\n  # c\n  x: {}\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, name := range []string{"claude-code", "codex", "goose", "opencode"} {
			c, _ := Find(name)
			p := Place{Client: c, Scope: User, File: "f", system: ann}
			servers, err := p.Servers(text)
			if err != nil {
				continue
			}
			var out []string
			for _, s := range servers {
				out = append(out, s.Name)
			}
			after, r, err := p.Install(text, true, "codemode", bridge, out, nil)
			if err != nil {
				continue // said, and nothing is changed
			}
			r.Before = ""
			back, err := p.Uninstall(after, nil, r)
			if err != nil {
				continue
			}
			_, was := cutBOM(text)
			_, now := cutBOM(back)
			old, err1 := c.format.decode(was)
			got, err2 := c.format.decode(now)
			members(old, p.keys(was))
			members(got, p.keys(was))
			if err1 != nil || err2 != nil || fmt.Sprint(old) != fmt.Sprint(got) {
				t.Errorf("%s: %q became %q", name, text, back)
			}
		}
	})
}

// With a PATH, too, what is installed is found again and undone to the byte, in each
// client's form.
func TestUndoWithPath(t *testing.T) {
	for _, s := range samples(t) {
		for _, text := range [][]byte{s.text, windows(s.text), bytes.TrimRight(s.text, "\n")} {
			p := s.place
			p.Path = "/home/ann/bin:/usr/bin"
			after, r, err := p.Install(text, true, "codemode", bridge, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", s.path, err)
			}
			there, same, err := p.Installed(after, "codemode", bridge)
			if !there || !same || err != nil || !bytes.Contains(after, []byte(p.Path)) {
				t.Errorf("%s: installed: %v %v %v\n%s", s.path, there, same, err, after)
			}
			if _, same, _ := p.Installed(bytes.Replace(after, []byte("/home/ann/bin"), []byte("/home/ann/old"), 1), "codemode", bridge); same {
				t.Errorf("%s: another PATH is the same", s.path)
			}
			if back, err := p.Uninstall(after, text, r); err != nil || !bytes.Equal(back, text) {
				t.Errorf("%s: %v\n%s", s.path, err, back)
			}
		}
	}
}
