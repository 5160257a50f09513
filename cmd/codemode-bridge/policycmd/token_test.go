package policycmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/policydoc"
)

func TestTokens(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "policy-token"), []byte("of the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := tokens(func(name string) (string, bool) {
		all := map[string]string{"POLICY_TOKEN": "sesame", "HOME": home}
		return all[name], all[name] != ""
	})
	for _, row := range []struct{ token, want, wrong string }{
		{"${POLICY_TOKEN}", "sesame", ""},
		{"${file:~/policy-token}", "of the file", ""},
		{"${POLICY_OTHER}", "", "POLICY_OTHER is not set"},
		{"${file:~/policy-other}", "", "policy-other"},
	} {
		got, err := read(t.Context(), policydoc.Include{Token: row.token})
		if got != row.want || (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s: %q, %v", row.token, got, err)
		}
	}
}
