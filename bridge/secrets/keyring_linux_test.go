package secrets_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"codemode-bridge/bridge/secrets"
	"codemode-bridge/bridge/secretstest"
)

// The library keeps one connection to the bus for the whole process, so one test has the
// service.
func TestSystemKeyring(t *testing.T) {
	service, err := secretstest.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", service.Address())
	keys := secrets.System(secrets.Service)
	if err := keys.Set("GITHUB", "first"); err != nil {
		t.Fatal(err)
	}
	if err := keys.Set("GITHUB", "a secret\nof two lines"); err != nil {
		t.Fatal(err)
	}
	service.Put(secrets.Logins, "GITHUB", "a login") // of the same name
	if text, err := keys.Get("GITHUB"); err != nil || text != "a secret\nof two lines" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := secrets.System(secrets.Logins).Get("GITHUB"); err != nil || text != "a login" {
		t.Errorf("the login of that name: %q, %v", text, err)
	}
	r := secrets.Resolver{Keyring: keys}
	github, absent := secrets.Reference{Kind: secrets.Keyring, Name: "GITHUB"}, secrets.Reference{Kind: secrets.Keyring, Name: "ABSENT"}
	asked := service.Asked()
	found := r.Resolve(t.Context(), []secrets.Reference{github, absent, github})
	if found[github].Reveal() != "a secret\nof two lines" || service.Asked() != asked+1 {
		t.Errorf("%v, asked %d times", found[github].Err, service.Asked()-asked)
	}
	if err := found[absent].Err; err == nil || err.Message != `the keyring has no secret "ABSENT"` || err.Hint != "codemode-bridge secrets set ABSENT" {
		t.Errorf("absent: %+v", err)
	}
	service.Lock(true)
	if err := r.Resolve(t.Context(), []secrets.Reference{github})[github].Err; err == nil || !strings.Contains(err.Message, "cannot be used: failed to unlock") || !strings.Contains(err.Hint, "${file:PATH}") {
		t.Errorf("locked: %+v", err)
	}
	service.Lock(false)
	if err := keys.Delete("GITHUB"); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Get("GITHUB"); !errors.Is(err, secrets.ErrNoKey) {
		t.Errorf("after it was removed: %v", err)
	}
	if err := keys.Delete("GITHUB"); !errors.Is(err, secrets.ErrNoKey) {
		t.Errorf("removed twice: %v", err)
	}

	// Without a bus nothing is started to make one.
	if _, err := os.Stat("/run/user/" + strconv.Itoa(os.Getuid()) + "/bus"); err == nil {
		return // there is one, which is the person's own
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	if _, err := keys.Get("GITHUB"); err == nil || !strings.Contains(err.Error(), "no D-Bus") {
		t.Errorf("without a bus: %v", err)
	}
}
