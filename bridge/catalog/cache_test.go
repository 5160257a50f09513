package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func save(t *testing.T, servers []Server) (dir string, c *Catalog) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "new", "cache")
	c = Build(servers)
	if err := c.Save(dir); err != nil {
		t.Fatal(err)
	}
	return dir, c
}

func TestSaveAndLoad(t *testing.T) {
	yes := true
	servers := append(sample(t), Server{Name: "odd", Tools: []Definition{
		{Name: "ünï</code>", Title: "\u2028", Description: "a\x00b\u202e", Input: []byte("{ \"x\" :\n1.0e5, \"y\": \"<\\u0041&\" }")},
		{Name: "none"},
	}})
	servers[0].Tools[0].Annotations.ReadOnly = &yes
	dir, c := save(t, servers)

	loaded, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	again := Build(loaded)
	if again.Revision() != c.Revision() {
		t.Error("what was loaded is not what was saved")
	}
	for _, tool := range again.Tools()[again.own:] {
		if !tool.Stale {
			t.Errorf("%s is not stale", tool.Script)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the cache folder has %v, %v", entries, err)
	}
	if runtime.GOOS != "windows" {
		info, err := os.Stat(filepath.Join(dir, cacheFile))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file has mode %v, %v", info.Mode(), err)
		}
	}

	// Saving what was loaded changes nothing, and replaces the file.
	if err := again.Save(dir); err != nil {
		t.Fatal(err)
	}
	if loaded, err = Load(dir); err != nil || Build(loaded).Revision() != c.Revision() {
		t.Errorf("saved twice: %v", err)
	}
}

func TestSaveLeavesOutWhatItCannotKeep(t *testing.T) {
	dir, _ := save(t, []Server{{Name: "s", Tools: []Definition{
		{Name: "good"}, {Name: "bad\xff"}, {Name: "schema", Input: []byte("{")}, {Name: "text", Description: "\xff"},
	}}})
	loaded, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Server{{Name: "s", Stale: true, Tools: []Definition{{Name: "good"}}}}, loaded); diff != "" {
		t.Errorf("what was loaded differs (-want +got):\n%s", diff)
	}
}

func TestLoadNothing(t *testing.T) {
	if _, err := Load(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, cacheFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a folder is loaded")
	}
}

// Any damage to the file is noticed, and nothing of a damaged file is used.
func TestLoadDamaged(t *testing.T) {
	dir, _ := save(t, sample(t)[:2])
	path := filepath.Join(dir, cacheFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	row := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if servers, err := Load(dir); err == nil || servers != nil {
			t.Errorf("%s: %d servers, %v", name, len(servers), err)
		}
	}
	row("empty", "")
	row("null", "null")
	row("cut", string(good[:len(good)-1]))
	row("something after it", string(good)+"{}")
	row("another version", strings.Replace(string(good), `"version":1`, `"version":2`, 1))
	row("an unknown key", strings.Replace(string(good), `"version":1`, `"version":1,"x":1`, 1))
	row("another digest", strings.Replace(string(good), `"digest":"sha256:`, `"digest":"sha256:0`, 1))
	row("a changed description", strings.Replace(string(good), "Resolves", "resolves", 1))
	for i := 0; i < len(good); i += 97 {
		flipped := []byte(string(good))
		flipped[i] ^= 1
		row("a bit flipped", string(flipped))
	}
}

// Files with a right digest but wrong content: made by someone, not damaged.
func TestLoadForged(t *testing.T) {
	row := func(name, servers, want string) {
		t.Helper()
		file := `{"version":1,"digest":"` + digestOf([]byte(servers)) + `","servers":` + servers + `}`
		if _, err := parseCache([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	row("no name", `[{"name":"","tools":[]}]`, "without a name of its own")
	row("the same server twice", `[{"name":"a","tools":[]},{"name":"a","tools":[]}]`, "without a name of its own")
	row("an unknown key", `[{"name":"a","tools":[{"name":"x","command":"rm"}]}]`, "unknown field")
	row("a wrong type", `[{"name":"a","tools":[{"name":1}]}]`, "cannot unmarshal")
	row("no list", `{}`, "cannot unmarshal")
	row("too many tools", `[{"name":"a","tools":[`+strings.Repeat(`{},`, maxCached)+`{}]}]`, "more than 100000 tools")
}

func TestSaveIntoAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Build(nil).Save(path); err == nil {
		t.Error("a file is a cache folder")
	}
}

func FuzzLoad(f *testing.F) {
	servers := `[{"name":"a","tools":[{"name":"x","inputSchema":{"type":"object"},"readOnlyHint":true}]}]`
	f.Add([]byte(`{"version":1,"digest":"` + digestOf([]byte(servers)) + `","servers":` + servers + `}`))
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		loaded, err := parseCache(raw)
		if err != nil {
			return
		}
		c := Build(loaded)
		dir := t.TempDir()
		if err := c.Save(dir); err != nil {
			t.Fatal(err)
		}
		again, err := Load(dir)
		if err != nil || Build(again).Revision() != c.Revision() {
			t.Fatalf("%s does not survive: %v", raw, err)
		}
	})
}
