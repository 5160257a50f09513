package replica

import (
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"db-1":                            "db-1-abcdefghij",
		"Web7.prod.example.com":           "web7-abcdefghij",
		"Anna's Mac":                      "anna-s-mac-abcdefghij",
		"":                                "bridge-abcdefghij",
		"ü":                               "bridge-abcdefghij",
		"-x-":                             "x-abcdefghij",
		"0123456789012345678-0123456789b": "0123456789012345678-abcdefghij",
	} {
		if got := named(host, "ABCDEFGHIJKLMNOP"); got != want || !ValidName(got) {
			t.Errorf("on %q a replica is %q, want %q", host, got, want)
		}
	}
	if a, b := NewName(), NewName(); a == b || !ValidName(a) || !ValidName(b) {
		t.Errorf("two processes are %q and %q", a, b)
	}
}

func TestValidName(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "-a", "a-", "A", "a.b", "a/b", "a b", "../a", "é", strings.Repeat("a", 41)} {
		if ValidName(bad) {
			t.Errorf("%q is a name", bad)
		}
	}
}
