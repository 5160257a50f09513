package toolscmd

import (
	"strings"
	"testing"
	"unicode"

	"codemode-bridge/bridge/lockfile"
)

// A lock file may name servers as no configuration does. What people read before they
// accept has one line for each all the same, and nothing that moves the cursor.
func TestNamesOfALockAreShownEscaped(t *testing.T) {
	const name = "x\n  github  0 to accept, 40 accepted already\x1b[2J\u202e"
	digest := "sha256:" + strings.Repeat("01", 32)
	was := &lockfile.Lock{Servers: map[string]*lockfile.Server{name: {Identity: digest, Tools: map[string]lockfile.Tool{name: {Digest: digest, Script: "x__y"}}}}}
	read, err := lockfile.Parse("lock", was.Text())
	if err != nil {
		t.Fatal(err)
	}
	shown := proposed{digest: read.Digest(), absent: []string{name}}.lines("codemode.lock", func(text string) string { return text })
	for _, is := range []*lockfile.Lock{nil, {}, {Servers: map[string]*lockfile.Server{name: {Identity: digest}}}} {
		for _, c := range append(lockfile.Compare(read, is), lockfile.Compare(is, read)...) {
			shown = append(shown, changeText(c))
		}
	}
	if len(shown) < 8 {
		t.Fatalf("%d lines", len(shown))
	}
	for _, line := range shown {
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", line)
		}
	}
}
