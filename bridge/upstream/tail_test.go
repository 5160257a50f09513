package upstream

import (
	"io"
	"log/slog"
	"strings"
	"testing"
)

// The frames of a stack, which Node prints below an error, do not push the error itself
// out of the last lines; all else stays.
func TestStackFramesAreNotTheLastWords(t *testing.T) {
	said := tail{shown: newRedactor(Spec{}, nil)}
	said.read(strings.NewReader(`Error [ERR_UNKNOWN_BUILTIN_MODULE]: No such built-in module: node:sqlite
    at ModuleLoader.builtinStrategy (node:internal/modules/esm/translators:391:11)
    at #translate (node:internal/modules/esm/loader:497:12)
    at async ModuleJob._link (node:internal/modules/esm/module_job:148:19) {
    at file:///opt/server/index.js:10:5
    at new Script (<anonymous>)
    at Array.map (native)
  code: 'ERR_UNKNOWN_BUILTIN_MODULE'
}
at least one folder is needed
at 10:15 the token ends`), slog.New(slog.NewTextHandler(io.Discard, nil)))
	want := "; its stderr ends: Error [ERR_UNKNOWN_BUILTIN_MODULE]: No such built-in module: node:sqlite | code: 'ERR_UNKNOWN_BUILTIN_MODULE' | } | " +
		"at least one folder is needed | at 10:15 the token ends"
	if got := said.last(); got != want {
		t.Errorf("the last lines are %q, want %q", got, want)
	}
}
