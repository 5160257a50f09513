package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNetHosts(t *testing.T) {
	for text, want := range map[string]NetHost{
		"api.example.com":          {"api.example.com", 443},
		"API.Example.Com:8443":     {"api.example.com", 8443},
		"*.Example.com":            {"*.example.com", 443},
		"*.b.example.com:80":       {"*.b.example.com", 80},
		"localhost:5432":           {"localhost", 5432},
		"127.0.0.1:5432":           {"localhost", 5432},
		"[::1]:5432":               {"localhost", 5432},
		"10.1.2.3":                 {"10.1.2.3", 443},
		"[::ffff:10.1.2.3]:65535":  {"10.1.2.3", 65535},
		"[2001:DB8:0::1]":          {"2001:db8::1", 443},
		"xn--bcher-kva.example:1":  {"xn--bcher-kva.example", 1},
		"database":                 {"database", 443},
		"3scale.example-1.example": {"3scale.example-1.example", 443},
	} {
		got, err := ParseNetHost(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
		if again, err := ParseNetHost(got.String()); err != nil || again != got {
			t.Errorf("%s is written as %s, which is %+v (%v)", text, got, again, err)
		}
	}
}

func TestNetHostCovers(t *testing.T) {
	wild := NetHost{"*.example.com", 443}
	for host, want := range map[NetHost]bool{
		wild: true, {"a.example.com", 443}: true, {"a.b.example.com", 443}: true, {"*.b.example.com", 443}: true,
		{"example.com", 443}: false, {"a.example.com", 80}: false, {"aexample.com", 443}: false, {"*.com", 443}: false,
	} {
		if got := wild.Covers(host); got != want {
			t.Errorf("%s covers %s: %v", wild, host, got)
		}
	}
	if (NetHost{"a.example.com", 443}).Covers(wild) {
		t.Error("a name covers all its neighbours")
	}
}

// boxed parses a configuration in a folder, with one server "a" in a box.
func boxed(t *testing.T, folder, box, rest string) (*Config, error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of other systems")
	}
	text := fmt.Sprintf(`{"servers": {"a": {"command": "x", "confine": %s}}, "audit": {"path": "/nowhere/audit.db"}%s}`, box, rest)
	return Parse(filepath.Join(folder, "c.json"), []byte(text), goodEnv)
}

func TestBoxInTheWorkspace(t *testing.T) {
	folder := t.TempDir()
	box := func(box, rest, here string) (*Confine, error) {
		t.Helper()
		c, err := boxed(t, folder, box, rest)
		if err != nil {
			t.Fatal(err)
		}
		return c.Box(c.Servers["a"], here)
	}
	app, notes := filepath.Join(folder, "app"), filepath.Join(folder, "notes")
	const both = `{"write": ["workspace", "app/data"], "read": ["workspace", "notes"]}`

	got, err := box(both, `, "evaluation": {"workspace": ["app", "site"]}`, notes)
	want := &Confine{Write: Folders{app, filepath.Join(folder, "site")}, Read: Folders{notes}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("the configuration's workspace: %v (-want +got):\n%s", err, diff)
	}
	got, err = box(both, "", app)
	want = &Confine{Write: Folders{app}, Read: Folders{notes}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("where the bridge was started: %v (-want +got):\n%s", err, diff)
	}
	for here, why := range map[string]string{"": "nobody has said", "/": "all there is", "/home/me": "the home folder is in it", folder: "this configuration is in it"} {
		got, err := box(both, "", here)
		if err == nil || got != nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "set evaluation.workspace") {
			t.Errorf("started in %q: %+v, %v", here, got, err)
		}
	}
	if got, err := box(`{"read": "workspace"}`, "", folder); err != nil || len(got.Read) != 1 {
		t.Errorf("it may read the configuration: %+v, %v", got, err)
	}
	c := mustParse(t, "c.json", `{"servers": {"a": {"command": "x"}}}`)
	if got, err := c.Box(c.Servers["a"], ""); got != nil || err != nil {
		t.Errorf("a server without a box has %+v, %v", got, err)
	}
}

// Of several paths around one the nearest counts, and what it says already goes.
func TestTidyBoxes(t *testing.T) {
	for box, want := range map[string]Confine{
		`{"write": ["/srv/a", "/srv/a/b", "/srv/a"]}`:                                       {Write: Folders{"/srv/a"}},
		`{"write": ["/srv/a/b", "/srv/a"], "read": ["/srv/a/b"]}`:                           {Write: Folders{"/srv/a"}},
		`{"write": ["/srv/a"], "read": ["/srv/a/b", "/srv/a/b/c"]}`:                         {Write: Folders{"/srv/a"}, Read: Folders{"/srv/a/b"}},
		`{"write": ["/srv/a", "/srv/a/b/c"], "read": ["/srv/a/b"]}`:                         {Write: Folders{"/srv/a", "/srv/a/b/c"}, Read: Folders{"/srv/a/b"}},
		`{"write": ["/srv/a/b"], "read": ["/srv/a", "/srv/a/b/c", "/srv/a/d"]}`:             {Write: Folders{"/srv/a/b"}, Read: Folders{"/srv/a", "/srv/a/b/c"}},
		`{"write": ["workspace"], "read": ["/srv/a", "/srv/a/b", "workspace"]}`:             {Write: Folders{"workspace"}, Read: Folders{"/srv/a", "/srv/a/b"}},
		`{"write": ["/srv/a", "/srv/a/b"], "read": ["workspace"], "run": [], "net": "any"}`: {Write: Folders{"/srv/a", "/srv/a/b"}, Read: Folders{"workspace"}, Run: Programs{}, Net: Net{Any: true}},
	} {
		c, err := boxed(t, "/srv/conf", box, "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, c.Servers["a"].Confine); diff != "" {
			t.Errorf("%s (-want +got):\n%s", box, diff)
		}
	}
}

// What a link makes of a path counts, and a link that the server could change is refused.
func TestBoxOfLinks(t *testing.T) {
	folder := t.TempDir()
	app := filepath.Join(folder, "app")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(app, "inner"), 0o700),
		os.Symlink(folder, filepath.Join(folder, "wide")),
		os.Symlink("app", filepath.Join(folder, "alias")),
		os.Symlink("/", filepath.Join(folder, "all")),
		os.Symlink(filepath.Join(app, "inner"), filepath.Join(app, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for box, why := range map[string]string{
		`{"write": "wide"}`:       "this configuration is in it",
		`{"write": "wide/new"}`:   "",
		`{"read": "all"}`:         "it is all there is",
		`{"read": "all/proc/1"}`:  "sockets and devices",
		`{"write": "alias"}`:      "",
		`{"write": "app/link/a"}`: "",
	} {
		_, err := boxed(t, folder, box, "")
		if got := fmt.Sprint(err); why == "" && err != nil || !strings.Contains(got, why) {
			t.Errorf("%s: %s", box, got)
		}
	}
	for box, refused := range map[string]bool{
		`{"write": "app", "read": "app/link"}`:        true,
		`{"write": "app", "read": "app/link/deeper"}`: true,
		`{"write": "app", "read": "alias/link"}`:      true,
		`{"write": "alias", "read": "app/link"}`:      true,
		`{"write": "app", "read": "alias"}`:           true,
		`{"write": "app", "read": "app/inner"}`:       false,
		`{"write": "alias", "read": "app/inner"}`:     true,
		`{"write": "app/inner", "read": "alias"}`:     true,
		`{"write": "alias", "read": "alias/inner"}`:   false,
		`{"write": "alias", "read": "other"}`:         false,
		`{"read": ["app", "app/link"]}`:               false,
	} {
		c, err := boxed(t, folder, box, "")
		if err != nil {
			t.Fatalf("%s: %v", box, err)
		}
		if _, err := c.Box(c.Servers["a"], ""); (err != nil) != refused {
			t.Errorf("%s: %v", box, err)
		}
		if got := strings.Join(c.BoxRemarks(), "\n"); strings.Contains(got, "a link") != refused {
			t.Errorf("%s: the remarks are %q", box, got)
		}
	}
}

func TestMissingFolders(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "there"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := boxed(t, folder, `{"write": ["there", "gone", "workspace"], "read": ["there/file"]}`, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		fmt.Sprintf(`server a: its box may write %s, which is not there: make it, or take it out of "write"; until then the server does not start`, filepath.Join(folder, "gone")),
		fmt.Sprintf(`server a: its box may read %s, which is not there: make it, or take it out of "read"`, filepath.Join(folder, "there", "file")),
	}
	if diff := cmp.Diff(want, c.BoxRemarks()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nor may a box change what makes boxes.
func TestBoxWithTheProgram(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(program)
	if _, err := boxed(t, t.TempDir(), fmt.Sprintf(`{"write": %q}`, folder), ""); err == nil || !strings.Contains(err.Error(), "the bridge's own program is in it") {
		t.Errorf("it may write %s: %v", folder, err)
	}
	if _, err := boxed(t, t.TempDir(), fmt.Sprintf(`{"write": %q}`, filepath.Join(folder, "codemode-worker"+filepath.Ext(program))), ""); err == nil || !strings.Contains(err.Error(), "it is the bridge's own worker") {
		t.Errorf("it may write the worker: %v", err)
	}
	if _, err := boxed(t, t.TempDir(), fmt.Sprintf(`{"read": %q}`, folder), ""); err != nil {
		t.Errorf("it may not read %s: %v", folder, err)
	}
}

// An overlay decides too, so no box may change it.
func TestBoxWithAnOverlay(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of other systems")
	}
	const text = `{"servers": {"a": {"command": "x", "confine": {"write": "/srv/over"}}}, "audit": {"path": "/nowhere/audit.db"}}`
	over := Overlay{Name: "/srv/over/c.prod.json", Data: []byte(`{}`)}
	if _, err := ParseOverlaid("/srv/conf/c.json", []byte(text), over, goodEnv); err == nil || !strings.Contains(err.Error(), "the overlay is in it") {
		t.Errorf("the box may write the overlay: %v", err)
	}
	over.Name = "/srv/conf/c.prod.json"
	if _, err := ParseOverlaid("/srv/conf/c.json", []byte(text), over, goodEnv); err != nil {
		t.Error(err)
	}
}

// What is tighter, or the same in other words, is not looser.
func TestLooserBoxes(t *testing.T) {
	folder := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(folder, "app", "inner"), 0o700),
		os.Symlink("/srv", filepath.Join(folder, "app", "out")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	box := func(text string) *Confine {
		t.Helper()
		if text == "" {
			return nil
		}
		c, err := boxed(t, folder, text, "")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return c.Servers["a"].Confine
	}
	for _, row := range []struct{ was, is, why string }{
		{"", "", ""},
		{"", `{"net": "any", "write": "app"}`, ""},
		{`{}`, "", "it is not confined any more"},
		{`{}`, `{}`, ""},
		{`{}`, `{"require": true, "run": ["git"]}`, ""},
		{`{"require": true}`, `{}`, "it starts even where its box can't be enforced"},

		{`{"write": "app"}`, `{}`, ""},
		{`{"write": "app"}`, `{"write": "app/inner"}`, ""},
		{`{"write": "app"}`, `{"read": "app"}`, ""},
		{`{"write": "app"}`, `{"write": "app", "read": "app/inner"}`, ""},
		{`{"write": "app"}`, `{"write": ["app", "app/inner"]}`, ""},
		{`{"write": "app/inner"}`, `{"write": "app"}`, "its box lets it write APP"},
		{`{"write": "app"}`, `{"write": "apple"}`, "its box lets it write APPle"},
		{`{"read": "app"}`, `{"write": "app"}`, "its box lets it write APP"},
		{`{"write": "app", "read": "app/inner"}`, `{"write": "app"}`, "its box lets it write APP/inner"},
		{`{"write": "app", "read": "app/inner"}`, `{"write": "app", "read": "app/inner/deeper"}`, "its box lets it write APP/inner"},
		{`{"write": "app", "read": "app/inner/deeper"}`, `{"write": "app", "read": "app/inner"}`, ""},
		{`{"write": "app", "read": "app/inner"}`, `{"write": "app/inner"}`, "its box lets it write APP/inner"},
		{`{"write": "app", "read": "app/inner"}`, `{"write": "app/other"}`, ""},
		{`{"write": "app", "read": "app/inner"}`, `{"write": ["app", "app/inner/deeper"], "read": "app/inner"}`, "its box lets it write APP/inner/deeper"},
		{`{"write": ["app", "app/inner/deeper"], "read": "app/inner"}`, `{"write": "app", "read": "app/inner"}`, ""},
		{`{"read": ["app", "app/inner/deeper"], "write": "app/inner"}`, `{"read": "app", "write": "app/inner"}`, "its box lets it write APP/inner/deeper"},
		{`{"read": ["app", "notes"], "write": "app/inner"}`, `{"read": "app", "write": "app/inner"}`, ""},

		{`{"read": "app"}`, `{"read": "app/inner"}`, ""},
		{`{"read": "app"}`, `{"read": "app/out"}`, "its box lets it read APP/out"},
		{`{"read": "app/inner"}`, `{"read": "app"}`, "its box lets it read APP"},

		{`{"write": "workspace"}`, `{"write": "workspace", "read": "workspace"}`, ""},
		{`{"write": "workspace"}`, `{"read": "workspace"}`, ""},
		{`{"read": "workspace"}`, `{"write": "workspace"}`, "its box lets it write workspace"},
		{`{"write": "workspace"}`, `{"write": "app"}`, "its box lets it write APP"},
		{`{"write": "workspace", "read": "app/inner"}`, `{"write": "workspace"}`, "its box lets it write APP/inner"},
		{`{"write": "workspace", "read": "app/inner"}`, `{"write": "workspace", "read": "app"}`, "its box lets it write APP/inner, its box lets it read APP"},
		{`{"write": "app", "read": "workspace"}`, `{"write": "app"}`, "its box lets it write workspace"},
		{`{"read": "app/inner"}`, `{"read": "workspace"}`, "its box lets it read workspace"},

		{`{"net": "any"}`, `{"net": ["a.example"]}`, ""},
		{`{"net": ["*.a.example", "b.example"]}`, `{"net": ["x.a.example"]}`, ""},
		{`{"net": ["a.example"]}`, `{"net": "none"}`, ""},
		{`{"net": ["a.example"]}`, `{"net": "any"}`, "its box lets it reach any host"},
		{`{}`, `{"net": ["a.example", "b.example:80"]}`, "its box lets it reach a.example, b.example:80"},
		{`{"net": ["a.example"]}`, `{"net": ["a.example:80", "*.a.example"]}`, "its box lets it reach *.a.example, a.example:80"},

		{`{"run": ["git", "rg"]}`, `{"run": ["git"]}`, ""},
		{`{"run": ["git"]}`, `{"run": []}`, ""},
		{`{"run": []}`, `{"run": ["git"]}`, "its box lets it start git"},
		{`{"run": ["git"]}`, `{}`, "its box lets it start any program"},
	} {
		got := strings.ReplaceAll(strings.Join(box(row.is).Looser(box(row.was)), ", "), filepath.Join(folder, "app"), "APP")
		if got != row.why {
			t.Errorf("%s after %s:\ngot  %q\nwant %q", row.is, row.was, got, row.why)
		}
	}
}

// A yes that was given for a server in a box is none for the server without it.
func TestIdentityHasTheBox(t *testing.T) {
	usual := func(string) bool { return false }
	identity := func(box string) string {
		t.Helper()
		c := mustParse(t, "/srv/c.json", `{"servers": {"a": {"command": "x"`+box+`}}}`)
		return c.Servers["a"].Identity([]byte("key"), goodEnv, usual)
	}
	// As releases without boxes had it: paused runs and grants of theirs go on.
	if got := identity(""); got != "8cbecc98cdcbd490b4cfa7cb6574e49d" {
		t.Errorf("without a box it is %s", got)
	}
	seen := map[string]string{identity(""): "no box"}
	for _, box := range []string{`{}`, `{"write": "a"}`, `{"write": "workspace"}`, `{"read": "a"}`, `{"net": "any"}`, `{"net": ["a.example"]}`, `{"run": []}`, `{"require": true}`} {
		id := identity(`, "confine": ` + box)
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s have one identity", box, other)
		}
		seen[id] = box
	}
	if identity(`, "confine": {"write": ["a", "b"], "net": "none"}`) != identity(`, "confine": {"net": [], "write": ["b", "./a", "a"]}`) {
		t.Error("the same box in other words is another identity")
	}
}

// A word that was most likely meant to be workspace is no folder beside the file, unless
// there is one.
func TestAlmostTheWorkspace(t *testing.T) {
	dir := t.TempDir()
	const want = `there is no folder "worksapce" beside this file (hint: did you mean "workspace"?)`
	if _, err := boxed(t, dir, `{"write": ["worksapce"]}`, ""); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if err := os.Mkdir(filepath.Join(dir, "worksapce"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := boxed(t, dir, `{"read": ["worksapce"]}`, ""); err != nil {
		t.Error(err)
	}
}
