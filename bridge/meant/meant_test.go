package meant

import (
	"strings"
	"testing"
)

func TestBy(t *testing.T) {
	keys := []string{"allowlist", "denylist", "asklist", "cwd", "command", "url", "env", "args", "maxBody", "labels", "branch"}
	for word, want := range map[string]string{
		"denlist": "denylist", "deny_list": "denylist", "denylsit": "denylist", "DenyList": "denylist",
		"comand": "command", "max_body": "maxBody", "ulr": "url", "lable": "labels",
		// By meaning, before what is spelt alike.
		"cmd": "command", "CMD": "command", "uri": "url", "dir": "cwd", "workDir": "cwd", "environment": "env", "params": "args", "arguments": "args",
		// An abbreviation, or the word that one is short for.
		"brnch": "branch", "br": "", "lbls": "labels", "label": "labels",
		"": "", "x": "", "zzz": "", "completelydifferent": "",
	} {
		if got := By(word, keys); got != want {
			t.Errorf("%q is taken for %q, want %q", word, got, want)
		}
	}
	for _, long := range []string{strings.Repeat("denylist", 1000), strings.Repeat("c", 65)} {
		if got := By(long, keys); got != "" {
			t.Errorf("a long word is taken for %q", got)
		}
		if got := By("denylist", []string{long}); got != "" {
			t.Errorf("a word is taken for a long one, %q", got)
		}
	}
}

// A name in two groups would mean two things.
func TestMeaningsAreApart(t *testing.T) {
	seen := map[string]bool{}
	for _, group := range meanings {
		for _, name := range group {
			if seen[name] || name != Fold(name) {
				t.Errorf("%s stands twice, or not as it is compared", name)
			}
			seen[name] = true
		}
	}
}

func TestDistance(t *testing.T) {
	row := func(a, b string, limit, want int) {
		t.Helper()
		if got := Distance(a, b, limit); got != want {
			t.Errorf("distance of %q and %q: %d, want %d", a, b, got, want)
		}
		if got := Distance(b, a, limit); got != want {
			t.Errorf("distance of %q and %q: %d, want %d", b, a, got, want)
		}
	}
	row("", "", 3, 0)
	row("abc", "abc", 0, 0)
	row("abc", "abd", 3, 1)
	row("abc", "acb", 3, 1)
	row("abc", "ab", 3, 1)
	row("kitten", "sitting", 5, 3)
	row("kitten", "sitting", 2, 3)
	row("short", "muchlonger", 2, 3)
}
