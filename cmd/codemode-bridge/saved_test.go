package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A running bridge notices when a saved script is added, changed, broken or removed, and
// says what is wrong with it although nobody has run it.
func TestSavedScriptsFollowTheirFiles(t *testing.T) {
	t.Parallel()
	s := serve(t, `{"servers": {"utils": {"builtin": "utils"}}, "scripts": {"dir": "saved"}}`)
	c, err := s.connect(t, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	file := filepath.Join(filepath.Dir(s.file), "saved", "answer.ts")
	gives := func(want string) {
		t.Helper()
		last := ""
		eventually(t, "it never gives "+want, func() bool {
			got, err := eval(t.Context(), c, `try { return await codemode.run("answer", {}) } catch (e) { return e.message }`)
			if err != nil {
				got = err.Error()
			}
			if got != last {
				t.Log(got)
			}
			last = got
			return strings.Contains(got, want)
		})
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".next", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".next", file); err != nil {
			t.Fatal(err)
		}
	}
	gives("there is no saved script")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write("// description: Gives the answer.\nreturn 41;")
	gives("41")
	write("// description: Gives the answer.\nreturn 42;")
	gives("42")
	write("// description: Gives the answer.\nconst = 42;")
	gives("can't be run: line 2, column 7: expected identifier")
	write("return 42;")
	gives("can't be run: line 1: the description is missing")
	write("// description: Gives the answer.\nreturn 43;")
	gives("43")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	gives("there is no saved script")
}
