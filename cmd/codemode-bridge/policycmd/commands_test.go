package policycmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/policydoc"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	b := &Bridge{Console: &cli.Console{Out: &out, Err: &out}}
	c := b.Command()
	c.SetArgs(args)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestKeygenAndSign(t *testing.T) {
	folder := t.TempDir()
	key, doc := filepath.Join(folder, "key"), write(t, folder, "policy.json", `{"newTools": "quarantine"}`)
	said, err := command(t, "keygen", key)
	public := strings.TrimSpace(said)
	if _, bad := policydoc.ParseKey(public); err != nil || bad != nil {
		t.Fatal(said, err, bad)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is %v, %v", info.Mode(), err)
	}
	if _, err := command(t, "keygen", key); err == nil {
		t.Error("a key was overwritten")
	}
	if _, err := command(t, "sign", doc, "--key", key, "--serial", "2", "--expires", "2999-01-01T00:00:00Z"); err != nil {
		t.Fatal(err)
	}
	variable := write(t, folder, "variable.json", `{"servers": {"web": {"url": "https://web.example.com/mcp", "headers": {"Authorization": "Bearer ${NOT_SET_WHERE_IT_IS_SIGNED}"}}}}`)
	if _, err := command(t, "sign", variable, "--key", key, "--serial", "1"); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(doc + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	e, err := policydoc.ParseEnvelope(text)
	if err != nil || e.Serial != 2 || e.Expires == nil || e.Verify([]byte(`{"newTools": "quarantine"}`), public) != nil {
		t.Errorf("%s\n%v", text, err)
	}
	for want, args := range map[string][]string{
		"--key and --serial": {"sign", doc}, "sign with --serial 3": {"sign", doc, "--key", key, "--serial", "1"}, "is a time": {"sign", doc, "--key", key, "--serial", "3", "--expires", "soon"},
		`unknown key "newTols"`: {"sign", write(t, folder, "wrong.json", `{"newTols": "allow"}`), "--key", key, "--serial", "3"},
		"private key":           {"sign", doc, "--key", doc, "--serial", "3"}, "include nothing": {"sign", write(t, folder, "more.json", `{"include": ["x"]}`), "--key", key, "--serial", "3"},
	} {
		if _, err := command(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}
