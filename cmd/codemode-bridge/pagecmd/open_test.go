package pagecmd

import (
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
)

// An approver's token leaves the machine only over TLS.
func TestPageOf(t *testing.T) {
	for at, want := range map[string]string{
		"http://127.0.0.1:7421/":      "http://127.0.0.1:7421",
		"http://[::1]:7421":           "http://[::1]:7421",
		"http://localhost:7421":       "http://localhost:7421",
		"https://approve.example":     "https://approve.example",
		"http://approve.example":      "",
		"http://10.0.0.5:7421":        "",
		"http://127.0.0.1.example":    "",
		"http://localhost.example":    "",
		"https://ann@approve.example": "",
		"https://approve.example/x":   "",
		"file:///etc":                 "",
	} {
		got, err := new(Bridge).pageOf(new(config.Config), at)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", at, got, err)
		}
		if strings.HasPrefix(at, "http://10.") && !strings.Contains(err.Error(), "in the clear") {
			t.Errorf("%s: %v", at, err)
		}
	}
}
