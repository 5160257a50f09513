package canon

import "testing"

func TestTextsOfAnyLengthFit(t *testing.T) {
	for _, row := range []struct {
		text        string
		fit, cut, b string // with 3 characters, 3 and a mark, 3 bytes and a mark
	}{
		{"", "", "", ""},
		{"abc", "abc", "abc", "abc"},
		{"abcd", "ab…", "abc…", "abc…"},
		{"äöü", "äöü", "äöü", "ä…"},
		{"äöüß", "äö…", "äöü…", "ä…"},
	} {
		if got := Fit(row.text, 3); got != row.fit {
			t.Errorf("Fit(%q) is %q, want %q", row.text, got, row.fit)
		}
		if got := Cut(row.text, 3); got != row.cut {
			t.Errorf("Cut(%q) is %q, want %q", row.text, got, row.cut)
		}
		if got := CutBytes(row.text, 3); got != row.b {
			t.Errorf("CutBytes(%q) is %q, want %q", row.text, got, row.b)
		}
	}
}

func TestCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 values", 1: "1 value", 999: "999 values", 1482: "1,482 values", 1234567: "1,234,567 values"} {
		if got := Counted(n, "value"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
