//go:build real

package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// docs/reference/openapi.yaml passes strict readers: Redocly's recommended rules, without
// a warning, and Swagger's parser. Both refuse a document with a fault.
func TestRealOpenAPI(t *testing.T) {
	r := newReal(t)
	folder := filepath.Join(r.npm, "openapi")
	script, err := os.ReadFile(filepath.Join("testdata", "real", "openapi", "validate.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(folder, "validate.mjs"), string(script)) // beside node_modules, where it finds its imports
	good := filepath.Join(moduleRoot(t), "docs", "reference", "openapi.yaml")
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	comma := filepath.Join(t.TempDir(), "openapi.yaml")
	mustWrite(t, comma, strings.Replace(string(text), `description: "with the cookie, for everything but GET"`, `description: with the cookie, for everything but GET`, 1))
	for name, args := range map[string][]string{
		"redocly": {"node_modules/@redocly/cli/bin/cli.js", "lint", "--max-problems", "1"},
		"swagger": {"validate.mjs"},
	} {
		read := func(file string) (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "node", append(args, file)...)
			cmd.Dir, cmd.Env = folder, append(r.env, "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if said, err := read(good); err != nil || strings.Contains(said, "arning") {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
		if said, err := read(comma); err == nil {
			t.Errorf("%s takes an unquoted comma:\n%s", name, said)
		}
	}
}
