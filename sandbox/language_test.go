package sandbox

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLanguage runs testdata/language: ordinary scripts, as models write them,
// with the answers that Node gives. Each begins with comment lines:
//
//	// returns: JSON of the result, as JSON.stringify writes it in Node
//	// logs: JSON array of what it logs, left out if that is nothing
//	// input: JSON of the global input
//	// node: the first version of Node that can run it, if later than 22
//
// testdata/language/tools.json says what the tools answer. `make test-real`
// runs the same scripts in Node and compares.
func TestLanguage(t *testing.T) {
	root := filepath.Join("testdata", "language")
	text, err := os.ReadFile(filepath.Join(root, "tools.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tools map[string][]scriptedAnswer
	if err := json.Unmarshal(text, &tools); err != nil {
		t.Fatal(err)
	}
	names := &Names{Revision: "language"}
	servers := map[string]bool{}
	for _, name := range sortedKeys(tools) {
		names.Names = append(names.Names, name)
		if server, _, _ := strings.Cut(name, "__"); !servers[server] {
			servers[server] = true
			names.Servers = append(names.Servers, server)
		}
	}
	s := workers(t, Options{}).Session()
	count := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".json" {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		count++
		name, _ := filepath.Rel(root, path)
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			head := scriptHead(string(source))
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			r, err := s.Run(ctx, Script{Source: string(source), Names: names, Input: json.RawMessage(head["input"])},
				&scriptedHost{tools: tools, calls: map[string]int{}})
			if err != nil {
				t.Fatalf("failed: %v", err)
			}
			if got := string(r.Value); got != head["returns"] {
				t.Errorf("returned\n%s\nNode returns\n%s", got, head["returns"])
			}
			var got, want []string
			for _, l := range r.Logs {
				got = append(got, l.Text)
			}
			if logs := head["logs"]; logs != "" {
				if err := json.Unmarshal([]byte(logs), &want); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("logged, beside what Node logs (-want +got):\n%s", diff)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 150 {
		t.Errorf("%d scripts, want at least 150", count)
	}
}

// scriptHead reads the comment lines that a script begins with.
func scriptHead(source string) map[string]string {
	head := map[string]string{}
	for line := range strings.Lines(source) {
		key, value, ok := strings.Cut(strings.TrimPrefix(line, "// "), ": ")
		if !ok || !strings.HasPrefix(line, "// ") {
			break
		}
		head[key] = strings.TrimSuffix(value, "\n")
	}
	return head
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// A scriptedAnswer is what a tool of tools.json answers when its arguments have
// the given members: an error the first fails times, or always if fails is
// zero and there is one.
type scriptedAnswer struct {
	Args  map[string]any  `json:"args"`
	JSON  json.RawMessage `json:"json"`
	Text  *string         `json:"text"`
	Error string          `json:"error"`
	Fails int             `json:"fails"`
}

type scriptedHost struct {
	recorder
	tools map[string][]scriptedAnswer

	mu    sync.Mutex
	calls map[string]int
}

func (h *scriptedHost) Call(_ context.Context, c Call, settle func(Reply)) {
	h.mu.Lock()
	h.calls[c.Name]++
	n := h.calls[c.Name]
	h.mu.Unlock()
	fail := func(message string) { settle(Reply{Err: &ReplyError{Name: "ToolError", Message: message}}) }
	var args map[string]any
	if err := json.Unmarshal(c.Args, &args); err != nil {
		fail(err.Error())
		return
	}
	for _, a := range h.tools[c.Name] {
		fits := true
		for k, v := range a.Args {
			fits = fits && cmp.Equal(args[k], v)
		}
		switch {
		case !fits:
			continue
		case a.Error != "" && (a.Fails == 0 || n <= a.Fails):
			fail(a.Error)
		default:
			settle(Reply{Value: a.JSON, Text: a.Text})
		}
		return
	}
	fail(c.Name + " has no answer to " + string(c.Args))
}
