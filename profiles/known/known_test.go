package known_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
)

// A listing is what a server said of itself: testdata/lists has one for each verified
// file, as tools/list gave it.
type listing struct {
	Version string `json:"version"`
	Tools   []struct {
		Name        string `json:"name"`
		InputSchema struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		} `json:"inputSchema"`
	} `json:"tools"`
}

func TestFiles(t *testing.T) {
	t.Parallel()
	all := known.All()
	names := make(map[string]string)
	for _, s := range all {
		for _, l := range s.Launch {
			for _, form := range []string{l.NPM, l.Docker, l.URL} {
				if other := names[form]; form != "" && other != "" {
					t.Errorf("%s and %s are started alike: %s", s.Name, other, form)
				}
				names[form] = s.Name
			}
		}
	}
	delete(names, "")
}

// TestVerifiedFiles holds every verified file to what its server listed: it has each of
// its tools and each of their arguments, and no others.
func TestVerifiedFiles(t *testing.T) {
	t.Parallel()
	for _, s := range known.All() {
		if s.Verified == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("testdata", "lists", s.Name+".json"))
		if err != nil {
			t.Errorf("%s is verified by nothing: %v", s.Name, err)
			continue
		}
		var is listing
		if err := json.Unmarshal(text, &is); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if is.Version != s.Verified {
			t.Errorf("%s is verified as %s, and listed as %s", s.Name, s.Verified, is.Version)
		}
		listed := make(map[string][]string)
		for _, tool := range is.Tools {
			listed[tool.Name] = slices.Sorted(maps.Keys(tool.InputSchema.Properties))
			if !s.Tools[tool.Name].Describes(listed[tool.Name], tool.InputSchema.Required) {
				t.Errorf("%s does not describe %s", s.Name, tool.Name)
			}
		}
		has := make(map[string][]string)
		for name, tool := range s.Tools {
			outer := make(map[string]bool)
			for arg := range tool.Args {
				first, _, _ := strings.Cut(arg, ".")
				outer[first] = true
			}
			has[name] = slices.Sorted(maps.Keys(outer))
		}
		if diff := cmp.Diff(listed, has); diff != "" {
			t.Errorf("%s, listed and in the file:\n%s", s.Name, diff)
		}
	}
}
