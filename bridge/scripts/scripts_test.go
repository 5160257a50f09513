package scripts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// write puts a file into the folder as editors do: by renaming.
func write(t *testing.T, dir, name, content string) {
	t.Helper()
	temporary := filepath.Join(dir, "."+name+".tmp")
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestHeader(t *testing.T) {
	for _, row := range []struct{ what, source, description, input, output, problem string }{
		{"the description alone", "// description: Says hello.\nreturn 1", "Says hello.", "", "", ""},
		{"everything, on several lines", "// description: Issues that nobody\n//   has answered.\n// input: {\"type\": \"object\",\n//   \"properties\": {\"repo\": {\"type\": \"string\"}}}\n// output: {\"type\": \"array\"}\n\nreturn 1",
			"Issues that nobody has answered.", `{"type":"object","properties":{"repo":{"type":"string"}}}`, `{"type":"array"}`, ""},
		{"a mark, CRLF and blank lines before it", "\ufeff\r\n\r\n// description: Says hello.\r\nreturn 1", "Says hello.", "", "", ""},
		{"a line for the shell", "#!/usr/bin/env node\n//description: Says hello.\nreturn 1", "Says hello.", "", "", ""},
		{"comments behind it", "// description: Says hello.\n\n// note: this is no header\nreturn 1", "Says hello.", "", "", ""},
		{"none", "return 1", "", "", "", "line 1: the description is missing"},
		{"nothing at all", "", "", "", "", "line 1: the description is missing"},
		{"an empty description", "// description:\nreturn 1", "", "", "", "line 1: the description is missing"},
		{"a mistyped key", "// description: x\n// inputs: {}\n", "x", "", "", `line 2: unknown key "inputs"`},
		{"a key in another case", "// Description: x\n", "", "", "", `line 1: unknown key "Description"`},
		{"a key twice", "// description: x\n// description: y\n", "x", "", "", "line 2: description is there twice"},
		{"an input that is no JSON", "// description: x\n// input: {\"type\": \"object\",\n//   \"properties\": {a}}\n", "x", "", "", "line 3: input: it must be a JSON Schema"},
		{"an input that is no object", "// description: x\n// input: {\"type\": \"string\"}\n", "x", "", "", "line 2: input: the input of a script is an object"},
		{"an input of no type", "// description: x\n// input: {}\n", "x", "", "", "line 2: input: the input of a script is an object"},
		{"a schema with a mistake", "// description: x\n// input: {\"type\": \"object\", \"properties\": 1}\n", "x", "", "", "line 2: input: it is not a valid JSON Schema"},
		{"a schema from elsewhere", "// description: x\n// input: {\"type\": \"object\", \"$ref\": \"https://example.com/s.json\"}\n", "x", "", "", "line 2: input: it is not a valid JSON Schema"},
		{"an output that is no schema", "// description: x\n// output: 5\n", "x", "", "", "line 2: output: it must be a JSON Schema"},
		{"something that is no text", "// description: x\n\xff", "", "", "", "it is not UTF-8 text"},
		{"a header without end", "// description: x\n" + strings.Repeat("//   more\n", maxHeader/8), "", "", "", "the header has more than"},
	} {
		s := Parse([]byte(row.source))
		if s.Description != row.description || string(s.Input) != row.input || string(s.Output) != row.output {
			t.Errorf("%s: got %q, %s, %s", row.what, s.Description, s.Input, s.Output)
		}
		switch {
		case row.problem == "" && s.Problem != nil:
			t.Errorf("%s: %v", row.what, s.Problem)
		case row.problem != "" && (s.Problem == nil || !strings.Contains(s.Problem.Error(), row.problem)):
			t.Errorf("%s: got %v, want %q", row.what, s.Problem, row.problem)
		}
		if s.Source != row.source || !strings.HasPrefix(s.Digest, "sha256:") {
			t.Errorf("%s: the source was not kept as it is", row.what)
		}
	}
}

const good = "// description: x\nreturn 1"

func TestRead(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside, "secret.ts", good)
	for name, content := range map[string]string{
		"b.ts": good, "a.js": good, "twice.ts": good, "twice.js": good, "odd name.ts": good, strings.Repeat("n", 65) + ".ts": good,
		"large.ts": good + strings.Repeat(" ", 2000), "half.ts": "return", "notes.md": "x", "types.d.ts": "x",
	} {
		write(t, dir, name, content)
	}
	if err := os.WriteFile(filepath.Join(dir, ".hidden.ts"), []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.ts"), 0o700); err != nil {
		t.Fatal(err)
	}
	links := runtime.GOOS != "windows" // where making one takes a privilege
	if links {
		for link, target := range map[string]string{"escape.ts": filepath.Join(outside, "secret.ts"), "up.ts": "../" + filepath.Base(outside) + "/secret.ts", "gone.ts": "nowhere.ts", "inside.ts": "b.ts"} {
			if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := Read(dir, 1000)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range all {
		got[s.File] = ""
		if s.Problem != nil {
			got[s.File] = s.Problem.Error()
			if s.Source != "" && s.File == "escape.ts" {
				t.Error("what a link outside leads to was read")
			}
		}
	}
	want := map[string]string{
		"a.js": "", "b.ts": "", "twice.ts": "have the same name", "twice.js": "have the same name", "odd name.ts": "can't be called",
		strings.Repeat("n", 65) + ".ts": "can't be called", "large.ts": "more than 1000 bytes", "half.ts": "line 1: the description",
	}
	if links {
		for name, problem := range map[string]string{"escape.ts": "reading it", "up.ts": "reading it", "gone.ts": "reading it", "inside.ts": ""} {
			want[name] = problem
		}
	}
	for name, problem := range want {
		if text, there := got[name]; !there || problem == "" && text != "" || !strings.Contains(text, problem) {
			t.Errorf("%s: %q (%v), want %q", name, text, there, problem)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("taken for scripts: %v", got)
	}
	if none, err := Read(filepath.Join(dir, "nowhere"), 0); err != nil || none != nil {
		t.Errorf("a folder that is not there: %v, %v", none, err)
	}
	if _, err := Read(filepath.Join(dir, "b.ts"), 0); err == nil {
		t.Error("a file was read as a folder")
	}
}

func TestTooManyScripts(t *testing.T) {
	dir := t.TempDir()
	for i := range MaxScripts + 1 {
		write(t, dir, fmt.Sprintf("s%03d.ts", i), good)
	}
	all, err := Read(dir, 0)
	if err != nil || len(all) != MaxScripts+1 {
		t.Fatalf("%d scripts, %v", len(all), err)
	}
	if all[MaxScripts-1].Problem != nil || all[MaxScripts].Problem == nil {
		t.Errorf("the last that may be run: %v; the one behind it: %v", all[MaxScripts-1].Problem, all[MaxScripts].Problem)
	}
}

// watching tells what Watch says, one call after the other.
func watching(t *testing.T, dir string, o WatchOptions) (next func() string) {
	t.Helper()
	o.Quiet, o.Poll = time.Millisecond, 20*time.Millisecond
	told := make(chan string, 100)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Watch(ctx, dir, func(all []Script) {
			var parts []string
			for _, s := range all {
				part := s.Name + "=" + strings.TrimPrefix(s.Source, "// description: x\n")
				if s.Problem != nil {
					part += "!" + s.Problem.Message
				}
				parts = append(parts, part)
			}
			told <- strings.Join(parts, " ")
		}, o)
	}()
	t.Cleanup(func() { stop(); <-ended })
	return func() string {
		t.Helper()
		select {
		case text := <-told:
			return text
		case <-time.After(3 * time.Minute):
			t.Fatal("nothing was told")
			return ""
		}
	}
}

func TestWatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "scripts")
	next := watching(t, dir, WatchOptions{})
	expect := func(what, want string) {
		t.Helper()
		if got := next(); got != want {
			t.Fatalf("%s: told of %q, want %q", what, got, want)
		}
	}
	expect("no folder", "")
	fresh := filepath.Join(filepath.Dir(dir), "fresh") // made elsewhere, so that it comes together with its file
	if err := os.Mkdir(fresh, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, fresh, "a.ts", "// description: x\none")
	if err := os.Rename(fresh, dir); err != nil {
		t.Fatal(err)
	}
	expect("the folder comes", "a=one")
	write(t, dir, "a.ts", "// description: x\ntwo")
	expect("a file changes", "a=two")
	write(t, dir, "a.ts", "// description: x\ntwo") // no change
	write(t, dir, "b.js", "// description: x\nthree")
	expect("a file comes", "a=two b=three")
	if err := os.Remove(filepath.Join(dir, "a.ts")); err != nil {
		t.Fatal(err)
	}
	expect("a file goes", "b=three")
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	expect("the folder goes", "")
}

// Each content is checked once, and its problem is told of after the script.
func TestWatchChecks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.ts", "// description: x\nfine")
	checks := make(chan string, 100)
	next := watching(t, dir, WatchOptions{Check: func(_ context.Context, s Script) *Problem {
		checks <- s.Name
		if strings.Contains(s.Source, "broken") {
			return &Problem{Line: 2, Message: "broken"}
		}
		return nil
	}})
	for i, want := range []string{"a=fine", "a=broken", "a=broken!broken", "a=broken!broken b=fine"} {
		if got := next(); got != want {
			t.Fatalf("told of %q, want %q", got, want)
		}
		switch i {
		case 0:
			write(t, dir, "a.ts", "// description: x\nbroken")
		case 2:
			write(t, dir, "b.ts", "// description: x\nfine")
		}
	}
	write(t, dir, "a.ts", "// description: x\nfine") // the content that b.ts has been checked with, or is now
	if got := next(); got != "a=fine b=fine" {
		t.Fatalf("told of %q", got)
	}
	if n := len(checks); n != 3 {
		t.Errorf("%d checks, want one for each content", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{good, "// description: x\n// input: {\"type\":\"object\"}\n", "#!x\n\n// a: b", "// input: {\n//   \n", "\ufeff// description:\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		s := Parse([]byte(source))
		if s.Problem == nil && s.Description == "" {
			t.Errorf("%q has neither a description nor a problem", source)
		}
		if p := s.Problem; p != nil && p.Line > 1+strings.Count(source, "\n") {
			t.Errorf("%q has a problem in line %d", source, p.Line)
		}
	})
}
