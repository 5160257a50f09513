package storecmd

import (
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/pgstore"
)

// Who was signed in when the backup was made may have signed out since.
func TestSignInsAreNotRestored(t *testing.T) {
	cfg := &config.Config{Head: config.Head{ID: "a"}}
	all := func() []pgstore.Document {
		return []pgstore.Document{{Kind: kindFor(SignIns, cfg), Name: "login.x"}, {Kind: kindFor("pins", cfg), Name: "y"}}
	}
	if got := restored(all(), false); len(got) != 1 || got[0].Name != "y" {
		t.Errorf("restored %+v", got)
	}
	if got := restored(all(), true); len(got) != 2 {
		t.Errorf("with --continue restored %+v", got)
	}
}
