package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the expected messages in testdata")

// A badFile is one file of testdata/bad: a configuration that must be refused,
// and the messages it must be refused with.
//
//	comment         what is wrong with it; a line "schema accepts: WHY" where
//	                the JSON Schema can't see that
//	config.json     the configuration, or
//	config.quoted   as a Go string, for bytes that an editor would spoil, or
//	config.repeat   a count, then three Go strings: before, repeated, after
//	env             variables, NAME=value
//	want            the messages
type badFile struct {
	name          string
	archive       *txtar.Archive
	data          []byte
	env           Env
	want          string
	schemaAccepts bool
}

func badFiles(tb testing.TB) []badFile {
	tb.Helper()
	names, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(names) < 60 {
		tb.Fatalf("found %d files to refuse, want at least 60 (%v)", len(names), err)
	}
	var files []badFile
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		f := badFile{name: strings.TrimSuffix(filepath.Base(name), ".txtar"), archive: archive}
		f.schemaAccepts = strings.Contains("\n"+string(archive.Comment), "\nschema accepts: ")
		vars := map[string]string{"HOME": "/home/me", "USERPROFILE": `C:\Users\me`}
		for _, part := range archive.Files {
			switch part.Name {
			case "config.json":
				f.data = part.Data
			case "config.quoted":
				f.data = []byte(unquote(tb, name, string(part.Data)))
			case "config.repeat":
				lines := strings.Split(strings.TrimSpace(string(part.Data)), "\n")
				n, err := strconv.Atoi(lines[0])
				if err != nil || len(lines) != 4 {
					tb.Fatalf("%s: bad config.repeat", name)
				}
				f.data = []byte(unquote(tb, name, lines[1]) + strings.Repeat(unquote(tb, name, lines[2]), n) + unquote(tb, name, lines[3]))
			case "env":
				for line := range strings.Lines(string(part.Data)) {
					k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
					vars[k] = v
				}
			case "want":
				f.want = string(part.Data)
			default:
				tb.Fatalf("%s: unknown part %s", name, part.Name)
			}
		}
		f.env = func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
		files = append(files, f)
	}
	return files
}

func unquote(tb testing.TB, name, text string) string {
	tb.Helper()
	s, err := strconv.Unquote(strings.TrimSpace(text))
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return s
}

func TestRefused(t *testing.T) {
	for _, f := range badFiles(t) {
		t.Run(f.name, func(t *testing.T) {
			if f.name == "confine-paths" && runtime.GOOS != "linux" {
				t.Skip("the folders that no box may have are elsewhere on other systems")
			}
			_, err := Parse("config.json", f.data, f.env)
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("not refused: %v", err)
			}
			got := problems.Error() + "\n"
			if *update {
				writeWant(t, f, got)
				return
			}
			if strings.Contains(got, "canary") {
				t.Errorf("a secret is shown:\n%s", got)
			}
			want := f.want
			if strings.HasPrefix(f.name, "policy-") {
				// The words are those of package profiles, and tested there.
				got, want = placesOf(got), placesOf(want)
			}
			if got != want {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
		})
	}
}

var message = regexp.MustCompile(`(?m)^([^:]*:\d+:\d+:).*$`)

func placesOf(messages string) string { return message.ReplaceAllString(messages, "$1") }

func writeWant(t *testing.T, f badFile, got string) {
	t.Helper()
	found := false
	for i := range f.archive.Files {
		if f.archive.Files[i].Name == "want" {
			f.archive.Files[i].Data, found = []byte(got), true
		}
	}
	if !found {
		f.archive.Files = append(f.archive.Files, txtar.File{Name: "want", Data: []byte(got)})
	}
	if err := os.WriteFile(filepath.Join("testdata/bad", f.name+".txtar"), txtar.Format(f.archive), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Half-written files are cut off somewhere. Whatever the place, what is left
// of this one is either refused with a place inside it or means the same.
func TestHalfWritten(t *testing.T) {
	whole, err := os.ReadFile("testdata/good/everything.json")
	if err != nil {
		t.Fatal(err)
	}
	end := strings.LastIndexByte(string(whole), '}')
	for n := range end {
		_, err := Parse("config.json", whole[:n], goodEnv)
		var problems Problems
		if !errors.As(err, &problems) {
			t.Fatalf("the first %d bytes are accepted: %v", n, err)
		}
		if lines := bytes.Split(whole[:n], []byte("\n")); len(problems) != 1 || !placedIn(problems[0], lines) {
			t.Fatalf("the first %d bytes: %v", n, problems)
		}
	}
}

// placedIn reports whether a problem's place is in a text of these lines.
func placedIn(p *FieldError, lines [][]byte) bool {
	if p.Line < 1 || p.Line > len(lines) {
		return false
	}
	return 1 <= p.Column && p.Column <= 1+utf8.RuneCount(lines[p.Line-1])
}

func goodEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"HOME": "/home/me", "USERPROFILE": `C:\Users\me`,
		"TOKEN": "canary-in-a-variable-0", "BRIDGE_TOKEN": "canary-in-a-variable-1",
		"APPROVER_TOKEN": "canary-in-a-variable-2", "HOOK_SECRET": "canary-in-a-variable-3",
		"HOST": "canary.example.com", "PORT": "7420", "EMPTY": "",
	}[name]
	return v, ok
}
