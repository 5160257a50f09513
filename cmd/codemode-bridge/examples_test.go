//go:build !race

package main_test

// Each example in docs/examples ends with the commands to try it and what they print. The
// test runs those commands.

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A session is the comment at the end of an example. Lines that begin with "$ " are typed
// into one shell at the top of the repository; the lines below are what it prints,
// standard error included. "[exit code N]" stands for an exit code that is not 0.
type session struct {
	example string // the text before
	typed   []string
	printed []string // by each command in typed
}

func readSession(text string) (s session) {
	at := strings.Index("\n"+text, "\n// $ ")
	if at < 0 {
		return session{example: text}
	}
	s.example = text[:at]
	for line := range strings.Lines(text[at:]) {
		line = strings.TrimPrefix(strings.TrimPrefix(line, "//"), " ")
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			s.typed, s.printed = append(s.typed, strings.TrimSuffix(command, "\n")), append(s.printed, "")
			continue
		}
		s.printed[len(s.printed)-1] += line
	}
	return s
}

func (s session) String() string {
	var b strings.Builder
	b.WriteString(s.example)
	for i, command := range s.typed {
		for line := range strings.Lines("$ " + command + "\n" + s.printed[i]) {
			b.WriteString(strings.TrimRight("// "+line, " \n") + "\n")
		}
	}
	return b.String()
}

// runID matches the id of a run in an error, which differs each time.
var runID = regexp.MustCompile(`\bRun r[a-z0-9]{5,}\.`)

// types types the commands into one shell and keeps what is printed.
func (s session) types(t *testing.T, dir string, env []string) session {
	t.Helper()
	const mark = "end-of-what-is-printed"
	var script strings.Builder
	for _, command := range s.typed {
		fmt.Fprintf(&script, "%s\ncode=$?; [ $code = 0 ] || echo \"[exit code $code]\"; echo %s\n", command, mark)
	}
	cmd := exec.Command("sh", "-c", script.String())
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	printed := strings.Split(runID.ReplaceAllString(string(out), "Run r4pwo6."), mark+"\n")
	if len(printed) != len(s.typed)+1 {
		t.Fatalf("%d commands ended, %d were typed:\n%s", len(printed)-1, len(s.typed), out)
	}
	// A line of a picture of code may end in blanks, a comment does not.
	s.printed = slices.Clone(printed[:len(s.typed)])
	for i, text := range s.printed {
		s.printed[i] = regexp.MustCompile(`(?m)[ \t]+$`).ReplaceAllString(text, "")
	}
	return s
}

// examples returns the paths, within docs/examples, of the files that have a session.
func examples(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"scripts/*", "saved/*", "profiles/*"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "docs", "examples", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			all = append(all, strings.Split(pattern, "/")[0]+"/"+filepath.Base(f))
		}
	}
	return all
}

// TestExamples runs every example. With -update it writes what is printed.
func TestExamples(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell to type into")
	}
	bin, work := programs(t), t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(work, "bin")+string(filepath.Separator), "./docs/examples/shop")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the shop: %v\n%s", err, out)
	}
	source := filepath.Join("..", "..", "docs", "examples")
	if err := os.CopyFS(filepath.Join(work, "docs", "examples"), os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{filepath.Join(work, "bin"), bin, os.Getenv("PATH")}, string(filepath.ListSeparator))
	for _, name := range examples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			s := readSession(string(text))
			if len(s.typed) == 0 {
				t.Fatal("it does not say how to try it")
			}
			home := t.TempDir()
			got := s.types(t, work, []string{"PATH=" + path, "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
				"XDG_STATE_HOME=" + filepath.Join(home, "state"), "XDG_CACHE_HOME=" + filepath.Join(home, "cache")})
			if *update {
				if err := os.WriteFile(filepath.Join(source, filepath.FromSlash(name)), []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if s.String() != string(text) {
				t.Error("its session is written in another way than -update writes it")
			}
			for i, command := range s.typed {
				if got.printed[i] != s.printed[i] {
					t.Errorf("$ %s\nprints\n%s\nand the example says\n%s", command, got.printed[i], s.printed[i])
				}
			}
		})
	}
}

// The index has a line for each example, and says how many there are.
func TestExamplesAreIndexed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, name := range examples(t) {
		kind, _, _ := strings.Cut(name, "/")
		count[kind]++
		if n := strings.Count(string(text), "]("+name+")"); n != 1 {
			t.Errorf("the index has %s %d times", name, n)
		}
	}
	if !strings.Contains(string(text), "twelve scripts") || count["scripts"] != 12 || !strings.Contains(string(text), "six profiles") || count["profiles"] != 6 {
		t.Errorf("the index promises twelve scripts and six profiles, there are %v", count)
	}
}
