package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/sandbox/racing"
)

// trifectaTwins is how many of the 60 twins have a question with the template trifecta: two call a server that nobody knows, one reads a
// file of secrets, two open an address that carries something, and two send what they have computed. The number may only fall.
const trifectaTwins = 7

// Without flows each attack succeeds; with the rules of the template trifecta none does, and at most one twin in ten
// has a question. The page says so.
func TestScenarios(t *testing.T) {
	all, err := read("scenarios")
	if err != nil {
		t.Fatal(err)
	}
	if racing.On { // which has seen all that meets after a few
		all = all[:6]
	}
	results, err := playAll(t.Context(), all, settings(), "../../../profiles/known/testdata/lists")
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*counts{}
	for _, r := range results {
		if by[r.setting.name] == nil {
			by[r.setting.name] = &counts{}
		}
		if r.scenario.unseen {
			continue
		}
		by[r.setting.name].add(r)
		switch {
		case r.setting.name == "without" && (!r.arrived || r.twin > 0 || r.failed != ""),
			slices.Contains([]string{"both", "trifecta", "coding"}, r.setting.name) && r.arrived:
			t.Error(r)
		}
	}
	if racing.On {
		return
	}
	if both := by["both"]; both.played < 60 || both.twins*10 > both.played {
		t.Errorf("both: %+v", both)
	}
	if trifecta := by["trifecta"]; trifecta.played < 60 || trifecta.twins > trifectaTwins {
		t.Errorf("trifecta: %+v", trifecta)
	}
	page, err := os.ReadFile("../../../docs/flows.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, rest, _ := strings.Cut(string(page), tableBegins); !strings.HasPrefix(rest, report(results)) {
		t.Errorf("docs/flows.md has another table (make bench-flows):\n%s", report(results))
	}
}

// Scenarios that say nothing are no scenarios, and a page without a place for the table stays as it is.
func TestWhatCannotBePlayed(t *testing.T) {
	dir := t.TempDir()
	if _, err := read(dir); err == nil {
		t.Error("an empty folder was read")
	}
	file := filepath.Join(dir, "a.json")
	if err := os.WriteFile(file, []byte(`{"attack": ["x"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(dir); err == nil || !strings.Contains(err.Error(), "must not be empty") {
		t.Errorf("half a scenario: %v", err)
	}
	if err := replace(file, "| table |\n"); err == nil {
		t.Error("a page without a place was written")
	}
	if err := os.WriteFile(file, []byte("before\n"+tableBegins+"old\n"+tableEnds+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replace(file, "| table |\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "before\n"+tableBegins+"| table |\n"+tableEnds+"after\n" {
		t.Errorf("%q, %v", text, err)
	}
}
