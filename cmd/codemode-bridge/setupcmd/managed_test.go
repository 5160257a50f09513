package setupcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// Who may not write the settings of the machine is told what to do; other errors stay.
func TestAdministrator(t *testing.T) {
	con := &Bridge{Typed: func(command string) string { return "codemode-bridge " + command }, Refuse: func(err error, hint string) error { return fmt.Errorf("%w; hint: %s", err, hint) }}
	denied := fmt.Errorf("writing /etc/x: %w", fs.ErrPermission)
	err := installOptions{managed: true}.administrator(con, "install claude-code", denied)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "only an administrator may change it: writing /etc/x") || !strings.Contains(err.Error(), "hint: sudo codemode-bridge install claude-code --managed") {
		t.Error(err)
	}
	if err := (installOptions{}).administrator(con, "install claude-code", denied); err != denied {
		t.Error(err)
	}
	if other := errors.New("full"); (installOptions{managed: true}).administrator(con, "install claude-code", other) != other {
		t.Error("another error is changed")
	}
}
