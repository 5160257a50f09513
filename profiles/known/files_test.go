package known

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHeads holds what a server is found by, and the one that is found, to what the whole
// file says.
func TestHeads(t *testing.T) {
	t.Parallel()
	for i, s := range All() {
		h := heads()[i]
		if diff := cmp.Diff(s.Launch, h.Launch); diff != "" || h.name != s.Name || h.Verified != s.Verified {
			t.Errorf("%s (file) and %s (head): %q, %q:\n%s", s.Name, h.name, s.Verified, h.Verified, diff)
		}
		if found, ok := Find(s.Name); !ok || !cmp.Equal(s, found) {
			t.Errorf("%s is found otherwise than it is listed:\n%s", s.Name, cmp.Diff(s, found))
		}
	}
	if s, ok := Find("../servers/fetch"); ok || s.Name != "" {
		t.Errorf("found %q", s.Name)
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"// a\n{\"b\": 1, // c\n\"d\": [2, ], /* , \" */ }": "\n{\"b\": 1, \n\"d\": [2]}",
		`{"a": "// no \" /* , } ] */", }`:                   `{"a": "// no \" /* , } ] */"}`,
		`{"a": "\\"} // "`:                                  `{"a": "\\"} `,
		`"`:                                                 `"`, `"\`: `"\`, `/*`: ``, `//`: ``, `/`: `/`, ``: ``,
	} {
		if got := string(appendPlain(nil, []byte(text))); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// What one server's name asks for reads no other file: all of them take 14 MB, and a
// bridge that starts knows few of its servers.
func TestOneServerIsRead(t *testing.T) {
	heads()
	found.Lock()
	found.servers = nil
	found.Unlock()
	m, _ := Identify(Started{Command: "npx", Args: []string{"-y", "@upstash/context7-mcp"}})
	found.Lock()
	defer found.Unlock()
	if m.Server.Name != "context7" || len(found.servers) != 1 {
		t.Errorf("%q, after reading %d files", m.Server.Name, len(found.servers))
	}
}
