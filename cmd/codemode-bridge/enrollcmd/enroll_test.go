package enrollcmd

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/enrolment"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

// The centre's policy is included once, the change is shown first, and a configuration that
// cannot be changed stays as it is, with what is to be done said.
func TestIncludesThePolicy(t *testing.T) {
	var said bytes.Buffer
	file := []byte("{\n  // ours\n  \"servers\": {}\n}\n")
	var refuses error
	l := &Laptop{Console: &cli.Console{In: strings.NewReader(""), Out: &said, Err: &said, Env: func(string) (string, bool) { return "", false }}}
	l.Edit = func(edit func([]byte, *config.Config) ([]byte, error)) error {
		next, err := edit(file, &config.Config{File: "/home/ann/config.json"})
		if err == nil && refuses == nil {
			file = next
		}
		return errors.Join(err, refuses)
	}
	e := enrolment.Enrolment{Centre: "https://centre.example.com", PolicyKey: "ed25519:abc"}

	refuses = errors.New("the file is read-only")
	if l.include(e) || !strings.Contains(said.String(), "read-only") || !strings.Contains(said.String(), "https://centre.example.com/laptops/v1/policy, key ed25519:abc") {
		t.Errorf("a file that cannot be changed: %s", &said)
	}
	refuses = nil
	said.Reset()
	if !l.include(e) {
		t.Fatal(said.String())
	}
	if text := string(file); !strings.Contains(text, "// ours") || strings.Count(text, `"https://centre.example.com/laptops/v1/policy"`) != 1 || !strings.Contains(text, `"include"`) || !strings.Contains(text, `"ed25519:abc"`) {
		t.Errorf("the file: %s", text)
	}
	if !strings.Contains(said.String(), "\n+") || !strings.Contains(said.String(), "laptops/v1/policy") {
		t.Errorf("the change is not shown: %s", &said)
	}
	once := string(file)
	if !l.include(e) || string(file) != once {
		t.Errorf("again: %s", file)
	}
}
