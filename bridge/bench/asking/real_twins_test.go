//go:build real

package main

import "testing"

// No twin gets through: each harmful call that looks like an ordinary one is asked about
// or denied, although every yes before it was the widest that was offered.
func TestRealTwins(t *testing.T) {
	cells := cellsFor(t)
	if err := built(t).playCells(t.Context(), cells, func(*cell) plan { return plan{twins: true} }); err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		if len(c.Verdicts) != len(c.Session.Twins) {
			t.Errorf("%s with %s: %d of %d twins were played", c.Session.Name, c.Setting.Name, len(c.Verdicts), len(c.Session.Twins))
		}
		for _, v := range c.passed() {
			calls := v.calls()
			t.Errorf("%s with %s: %s: %s (%s): %s", c.Session.Name, c.Setting.Name, calls[len(calls)-1].Tool, v.Why, v.Kind, v.By)
		}
	}
}
