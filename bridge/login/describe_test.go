package login

import (
	"testing"
	"time"
)

func TestDescribe(t *testing.T) {
	day := time.Date(2026, 3, 1, 9, 0, 0, 0, time.Local)
	for want, stored := range map[string]Info{
		"does not say when it expires": {},
		"expires 2026-03-01 09:00:00, renews itself, scopes read write, kept in the keyring": {Expires: day, Renews: true, Scopes: []string{"read", "write"}, Keyring: true},
	} {
		if got := stored.Describe(); got != want {
			t.Errorf("%+v: %q, want %q", stored, got, want)
		}
	}
}
