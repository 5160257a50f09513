package clients

import "testing"

// What a client's file says never names a secret of ours, least of all a command.
func TestNoTextOfAClientNamesASecret(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"${A:-b}":               "${A:-b}",
		"${exec:-touch /tmp/x}": "$${exec:-touch /tmp/x}",
		"${exec:touch /tmp/x}":  "$${exec:touch /tmp/x}",
		"x${file:-a}":           "x$${file:-a}",
		"${keyring:A}":          "$${keyring:A}",
	} {
		var one translator
		if got := one.text(text); got != want || (one.problem == "") != (text == want) {
			t.Errorf("%s becomes %s (problem %q), want %s", text, got, one.problem, want)
		}
	}
}
