package tap

import "testing"

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain café":      "plain café",
		"a\x1b[31m\u202e": `a\x1b[31m\u202e`,
		"line\nbreak":     `line\nbreak`,
		"\xffx\u200b":     `\xffx\u200b`,
		"0123456789abc":   "0123456789... (3 more bytes)",
	} {
		if got := Escape(in, 10); got != want && Escape(in, 100) != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}
