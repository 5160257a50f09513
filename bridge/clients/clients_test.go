package clients

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the expected parts of testdata anew")

// ann is the user whom all of testdata belongs to.
var ann = System{OS: "linux", Folder: "/home/ann/shop", Env: func(name string) (string, bool) { return "/home/ann", name == "HOME" }}

var bridge = []string{"/opt/bin/codemode-bridge", "run", "--config", "/home/ann/.config/codemode-bridge/config.json"}

// A sample is a file of testdata: CLIENT.txtar or CLIENT-SCOPE.txtar; CLIENT-second.txtar and
// CLIENT-sandbox.txtar are more of the first kind.
type sample struct {
	path    string
	archive *txtar.Archive
	place   Place
	text    []byte
}

func samples(t *testing.T) []sample {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	var all []sample
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		scope := User
		for _, s := range []Scope{Project, Local, "second", "sandbox"} {
			if rest, ok := strings.CutSuffix(name, "-"+string(s)); ok {
				name, scope = rest, s
			}
		}
		if scope == "second" || scope == "sandbox" {
			scope = User
		}
		client, ok := Find(name)
		if !ok {
			t.Fatalf("%s: no client %q", path, name)
		}
		place, err := client.Place(ann, scope)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sample{path, archive, place, archive.Files[0].Data})
	}
	return all
}

// windows is a text with the line ends of Windows.
func windows(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")) }

func TestSamples(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range samples(t) {
		t.Run(filepath.Base(s.path), func(t *testing.T) {
			seen[s.place.Client.Name] = true
			servers, err := s.place.Servers(s.text)
			if err != nil {
				t.Fatal(err)
			}
			installed, _, err := s.place.Install(s.text, true, "codemode", bridge, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.compare(t, "servers", describe(servers))
			s.compare(t, "installed", string(installed))
			if again, err := s.place.Servers(windows(s.text)); err != nil || describe(again) != describe(servers) {
				t.Errorf("with the line ends of Windows: %v\n%s", err, describe(again))
			}
			marked := slices.Concat([]byte("\xef\xbb\xbf"), s.text)
			after, _, err := s.place.Install(marked, true, "codemode", bridge, nil, nil)
			if want := slices.Concat([]byte("\xef\xbb\xbf"), installed); err != nil || !bytes.Equal(after, want) {
				t.Errorf("with a byte order mark: %v\n%s", err, after)
			}
		})
	}
	for _, c := range All() {
		if !seen[c.Name] {
			t.Errorf("testdata has no file of %s", c.Name)
		}
	}
}

// describe shows all of servers, one line for each thing.
func describe(servers []Server) string {
	var out strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&out, "%s: %s\n", s.Name, s.Kind)
		line := func(name string, v any) {
			if r := reflect.ValueOf(v); !r.IsZero() && (r.Kind() != reflect.Map && r.Kind() != reflect.Slice || r.Len() > 0) {
				if text, ok := v.(fmt.Stringer); ok {
					v = text.String()
				}
				var encoded bytes.Buffer
				e := json.NewEncoder(&encoded)
				e.SetEscapeHTML(false)
				e.Encode(v)
				fmt.Fprintf(&out, "  %s %s", name, encoded.String())
			}
		}
		line("command", s.Command)
		line("args", s.Args)
		line("env", s.Env)
		line("passEnv", s.PassEnv)
		line("cwd", s.Cwd)
		line("url", s.URL)
		line("headers", s.Headers)
		line("timeout", s.Timeout)
		line("connectTimeout", s.ConnectTimeout)
		line("allow", s.Allow)
		line("deny", s.Deny)
		line("disabled", s.Disabled)
		line("box", s.Box)
		line("variables", s.Variables)
		line("notes", s.Notes)
		line("problem", s.Problem)
		line("secrets", s.Secrets)
	}
	return out.String()
}

// compare compares a part of the archive with what came out, or writes it.
func (s sample) compare(t *testing.T, part, got string) {
	t.Helper()
	i := slices.IndexFunc(s.archive.Files, func(f txtar.File) bool { return f.Name == part })
	switch {
	case *update:
		if i < 0 {
			s.archive.Files = append(s.archive.Files, txtar.File{Name: part})
			i = len(s.archive.Files) - 1
		}
		s.archive.Files[i].Data = []byte(got)
		if err := os.WriteFile(s.path, txtar.Format(s.archive), 0o644); err != nil {
			t.Fatal(err)
		}
	case i < 0 || string(s.archive.Files[i].Data) != got:
		t.Errorf("%s of %s:\n%s", part, s.path, got)
	}
}
