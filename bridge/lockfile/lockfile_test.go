package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	one = "sha256:" + strings.Repeat("01", 32)
	two = "sha256:" + strings.Repeat("fe", 32)
)

func example() *Lock {
	return &Lock{Servers: map[string]*Server{
		"web":      {one, map[string]Tool{"get": {two, "web__get"}, "get-": {one, "web__get_"}, "": {one, "web___"}}},
		"empty":    {two, map[string]Tool{}},
		"odd_name": {two, map[string]Tool{"a b": {one, "odd_name__a_b"}, `"\`: {one, "q"}, "\xff\u202e": {two, "odd_name__r"}, "é": {two, "odd_name__é"}}},
	}}
}

func TestText(t *testing.T) {
	text := string(example().Text())
	want := header + "\n" +
		"server empty " + two + "\n" +
		"server odd_name " + two + "\n" +
		`tool odd_name "\"\\" ` + one + " q\n" +
		`tool odd_name "a\x20b" ` + one + " odd_name__a_b\n" +
		`tool odd_name "\u00e9" ` + two + ` "odd_name__\u00e9"` + "\n" +
		`tool odd_name "\xff\u202e" ` + two + " odd_name__r\n" +
		"server web " + one + "\n" +
		`tool web "" ` + one + " web___\n" +
		"tool web get " + two + " web__get\n" +
		"tool web get- " + one + " web__get_\n"
	if diff := cmp.Diff(want, text); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for name, form := range map[string]string{"as written": text, "with the line ends of Windows": strings.ReplaceAll(text, "\n", "\r\n")} {
		got, err := Parse("x", []byte(form))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(example(), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.Digest() != example().Digest() {
			t.Errorf("%s: another digest", name)
		}
	}
	if n := example().Count(); n != 7 {
		t.Errorf("%d tools", n)
	}
	other := example()
	other.Servers["web"].Tools["get"] = Tool{one, "web__get"}
	if other.Digest() == example().Digest() {
		t.Error("another lock has the same digest")
	}
	if got, ok := example().Tool("web", "get"); !ok || got != (Tool{two, "web__get"}) {
		t.Errorf("the line is %v", got)
	}
	for _, none := range [][2]string{{"web", "none"}, {"none", "get"}} {
		if got, ok := example().Tool(none[0], none[1]); ok {
			t.Errorf("%s has the line %v", none, got)
		}
	}
}

// What the reader does not know exactly, it refuses, and says where.
func TestMistakes(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"", "lock:1:1: the file is empty"},
		{"codemode.lock 2\n", "lock:1:1: this is not a codemode.lock that this program can read"},
		{header, "lock:1:85: the last line has no end"},
		{header + "\n\n", `lock:2:1: a line begins with "server" or "tool"`},
		{header + "\nTool a\n", `lock:2:1: a line begins with`},
		{header + "\n# a remark\n", `lock:2:1: a line begins with`},
		{header + "\n<<<<<<< HEAD\n", "lock:2:1: a merge left a conflict here"},
		{header + "\n=======\n", "lock:2:1: a merge left a conflict here"},
		{header + "\nserver a " + one, "lock:2:81: the last line has no end"},
		{header + "\nserver a\n", "lock:2:9: a line of a server has 3 words"},
		{header + "\nserver a " + one + " more\n", "lock:2:81: a line of a server has 3 words"},
		{header + "\nserver  " + one + "\n", "lock:2:8: a word is missing"},
		{header + "\nserver a " + strings.ToUpper(one) + "\n", "lock:2:10: SHA256:0101"},
		{header + "\nserver a " + one[:70] + "\n", "lock:2:10: "},
		{header + "\nserver \"a\" " + one + "\n", "lock:2:8: this name is written a"},
		{header + "\nserver \"a " + one + "\n", `lock:2:8: "\"a" is not a quoted name`},
		{header + "\nserver é " + one + "\n", `lock:2:8: this name is written "\u00e9"`},
		{header + "\nserver b " + one + "\nserver a " + one + "\n", "lock:3:8: the server a is out of order after b"},
		{header + "\nserver a " + one + "\nserver a " + one + "\n", "lock:3:8: the server a is out of order after a"},
		{header + "\ntool a b " + one + " a__b\n", "lock:2:6: this tool is not below the line of its server a"},
		{header + "\nserver a " + one + "\ntool b b " + one + " a__b\n", "lock:3:6: this tool is not below the line of its server b"},
		{header + "\nserver a " + one + "\ntool a b nothing a__b\n", "lock:3:10: nothing is no digest"},
		{header + "\nserver a " + one + "\ntool a b " + one + " a__b\ntool a b " + one + " a__c\n", "lock:4:8: the tool b is out of order after b"},
		{header + "\nserver a " + one + "\ntool a b " + one + " a__b\ntool a c " + one + " a__b\n", "lock:4:82: scripts call another tool a__b already, in line 3"},
		{header + "\nserver a " + one + "\r\r\n", "lock:2:10: "},
	} {
		got, err := Parse("lock", []byte(row.text))
		wrong := (*Error)(nil)
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%q is read as %v, %v; want %s", row.text, got, err, row.want)
		}
	}
}

func TestRead(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "codemode.lock")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile(path, example().Text(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Read(folder); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder is read: %v", err)
	}
}

func TestPath(t *testing.T) {
	folder := t.TempDir()
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	for config, want := range map[string]string{
		"config.json": "codemode.lock", "team.json": "team.codemode.lock", "a.b.json": "a.b.codemode.lock", "config": "config.codemode.lock", "config.jsonc": "config.jsonc.codemode.lock",
	} {
		if got := Path(filepath.Join(folder, config)); got != filepath.Join(folder, want) {
			t.Errorf("the lock of %s is %s, want %s", config, got, want)
		}
	}
	// A link has the lock of the file that it leads to.
	real, link := filepath.Join(folder, "dotfiles", "config.json"), filepath.Join(folder, "link.json")
	for _, err := range []error{os.Mkdir(filepath.Dir(real), 0o700), os.WriteFile(real, nil, 0o600), os.Symlink(real, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, want := Path(link), filepath.Join(folder, "dotfiles", "codemode.lock"); got != want {
		t.Errorf("the lock of a link is %s, want %s", got, want)
	}
}

// What is read prints back the same, but for the ends of its lines.
func FuzzParse(f *testing.F) {
	f.Add(example().Text())
	f.Add([]byte(header + "\r\nserver a " + one + "\r\n"))
	f.Add([]byte(header + "\nserver a " + one + "\ntool a \"\\x20\" " + two + " a___\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lock, err := Parse("lock", text)
		if err != nil {
			if wrong := (*Error)(nil); !errors.As(err, &wrong) || wrong.Line < 1 || wrong.Column < 1 {
				t.Fatalf("the error has no place: %v", err)
			}
			return
		}
		if got, want := string(lock.Text()), strings.ReplaceAll(string(text), "\r\n", "\n"); got != want {
			t.Fatalf("%q prints back as %q", want, got)
		}
	})
}

func TestCompare(t *testing.T) {
	is := example()
	is.Servers["web"].Tools = map[string]Tool{"get": {one, "web__get"}, "get-": {one, "web__get_a1"}, "new": {one, "web__new"}}
	is.Servers["odd_name"].Identity = one
	is.Servers["more"] = &Server{one, map[string]Tool{"x": {one, "more__x"}}}
	delete(is.Servers, "empty")
	var got []string
	for _, c := range Compare(example(), is) {
		got = append(got, c.Kind+" "+c.Server+" "+c.Tool)
	}
	want := []string{"- empty ", "+ more ", "+ more x", "~ odd_name ", "- web ", "~ web get", "~ web get-", "+ web new"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := Compare(is, is); c != nil {
		t.Errorf("a lock differs from itself: %v", c)
	}
	if c := Compare(nil, is); len(c) != 3+4+4 {
		t.Errorf("from nothing: %v", c)
	}
}

func TestCount(t *testing.T) {
	tool := func(digest string) Tool { return Tool{Digest: digest, Script: digest} }
	was := &Lock{Servers: map[string]*Server{
		"a":    {Identity: "1", Tools: map[string]Tool{"same": tool("1"), "differs": tool("1"), "gone": tool("1")}},
		"gone": {Identity: "1", Tools: map[string]Tool{"x": tool("1")}},
		"out":  {Identity: "1", Tools: map[string]Tool{"y": tool("1")}},
	}}
	is := &Lock{Servers: map[string]*Server{
		"a":   {Identity: "1", Tools: map[string]Tool{"same": tool("1"), "differs": tool("2"), "new": tool("1")}},
		"new": {Identity: "1", Tools: map[string]Tool{"z": tool("1")}},
		"out": {Identity: "1", Tools: map[string]Tool{}},
	}}
	for _, row := range []struct {
		was, is *Lock
		want    Counts
	}{
		{was.Without("out"), is.Without("out", "none"), Counts{Servers: 3, Tools: 6, Differ: 5}},
		{was, is, Counts{Servers: 4, Tools: 7, Differ: 6}},
		{is, was, Counts{Servers: 4, Tools: 7, Differ: 6}},
		{was, was, Counts{Servers: 3, Tools: 5}},
		{nil, is, Counts{Servers: 3, Tools: 4, Differ: 4}},
		{&Lock{}, nil, Counts{}},
	} {
		if got := Count(row.was, row.is); got != row.want {
			t.Errorf("%+v, want %+v", got, row.want)
		}
	}
	if was.Server("out") == nil {
		t.Error("the lock itself lost a server")
	}
}

func TestLoad(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.json")
	lock, path, err := Load(config)
	if lock != nil || err != nil || filepath.Base(path) != "codemode.lock" {
		t.Errorf("without one: %v, %s, %v", lock, path, err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if lock, _, err := Load(config); lock != nil || err == nil {
		t.Errorf("what is none is read as %v, %v", lock, err)
	}
}
