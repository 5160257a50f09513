package sandbox

import (
	"errors"
	"testing"

	"codemode-bridge/analysis"
)

// Check runs nothing of a script.
func TestCheck(t *testing.T) {
	pool := workers(t, Options{})
	if err := pool.Check(t.Context(), "for (;;) await codemode.a__echo({}); // not run, or it would call and call"); err != nil {
		t.Errorf("a good script: %v", err)
	}
	var script *ScriptError
	err := pool.Check(t.Context(), "// description: x\nconst = 1")
	if !errors.As(err, &script) {
		t.Fatalf("a bad script: %v", err)
	}
	if want := (analysis.Position{Line: 2, Column: 7}); script.Position != want || script.Message != `expected identifier but found "="` {
		t.Errorf("a bad script: %v", err)
	}
	err = pool.Check(t.Context(), "please make a report of it")
	if !errors.As(err, &script) || script.Position.Line != 0 || script.Message != "this looks like plain text, not JavaScript" {
		t.Errorf("no script: %v", err)
	}
}
