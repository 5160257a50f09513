package main_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A bridge follows its overlay as it does its configuration: a good edit takes effect, a
// bad one changes nothing, and after an edit of the configuration the overlay still
// applies.
func TestOverlayIsFollowed(t *testing.T) {
	t.Parallel()
	const (
		file    = `{"servers": {"utils": {"type": "builtin", "builtin": "utils"}}, "evaluation": {"defaultProfile": "p", "profiles": {"p": {"timeout": "1m"}}}}`
		edited  = `{"servers": {"utils": {"type": "builtin", "builtin": "utils"}}, "evaluation": {"defaultProfile": "p", "profiles": {"p": {"timeout": "2m"}}}}`
		denies  = `{"evaluation": {"profiles": {"p": {"denylist": ["utils__*"]}}}}`
		allows  = `{"evaluation": {"profiles": {"p": {"denylist": ["nobody__*"]}}}}`
		wrong   = `{"evaluation": {"enabled": false}}`
		patient = 3 * time.Minute
	)
	s := serveOverlaid(t, file, denies)
	over := serving{file: filepath.Join(filepath.Dir(s.file), "config.prod.json")}
	c, err := s.connect(t, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	denied := func() bool {
		got, err := eval(t.Context(), c, `try { await codemode.utils__hash({text: "a"}); return "sent" } catch (e) { return e.name }`)
		if err != nil {
			t.Fatal(err)
		}
		return !strings.Contains(got, "sent")
	}
	until := func(want bool) {
		t.Helper()
		for end := time.Now().Add(patient); denied() != want; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("denied: %v, for %v", !want, patient)
			}
		}
	}
	if !denied() {
		t.Fatal("the overlay does not hold at the start")
	}
	over.write(t, allows)
	until(false)
	over.write(t, wrong)
	over.write(t, denies)
	until(true)
	s.write(t, edited)
	over.write(t, allows)
	until(false)
	over.write(t, denies)
	until(true)
}
