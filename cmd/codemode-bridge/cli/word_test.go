package cli

import (
	"os/exec"
	"runtime"
	"testing"
)

func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		"": "''", "work": "work", "/srv/a-b_c.json": "/srv/a-b_c.json", "/my files/c.json": "'/my files/c.json'",
		"it's": `'it'\''s'`, "$(rm -rf x)": "'$(rm -rf x)'", "a;b": "'a;b'", "~/c.json": "~/c.json", "~/my files/c.json": "~/'my files/c.json'", "~ann": "'~ann'",
		"größe": "'größe'", "a\nb": "'a\nb'", `a\b`: `'a\b'`,
	} {
		if got := word(text, false); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
		if sh, err := exec.LookPath("sh"); err == nil && runtime.GOOS != "windows" && text != "~/c.json" && text != "~/my files/c.json" {
			if out, err := exec.Command(sh, "-c", "printf %s "+word(text, false)).Output(); err != nil || string(out) != text {
				t.Errorf("a shell reads %s as %q, %v", word(text, false), out, err)
			}
		}
	}
	for text, want := range map[string]string{`C:\bridge\c.json`: `C:\bridge\c.json`, `C:\Users\Ann B\c.json`: `"C:\Users\Ann B\c.json"`, "": `""`} {
		if got := word(text, true); got != want {
			t.Errorf("on Windows %q is %s, want %s", text, got, want)
		}
	}
}
