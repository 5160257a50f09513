package main

import "testing"

// A call is high if people are told so: for another reason than its server's own hint, or
// where nothing more is known of it.
func TestHighCalls(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		risk    string
		reasons []string
		want    bool
	}{
		{"low", []string{"risk low: it only reads"}, false},
		{"medium", []string{"default: risk [profile p]", "risk medium: it changes something"}, false},
		{"high", []string{"risk high: it runs code"}, true},
		{"critical", []string{"rule pay (ask)"}, true},
		{"high", []string{"risk high: destructiveHint", "risk medium: it changes something"}, false},
		{"high", []string{"risk high: destructiveHint", "risk low: it only reads"}, false},
		{"high", []string{"risk high: destructiveHint", "risk high: what it deletes is gone"}, true},
		{"high", []string{"risk high: destructiveHint", "risk medium: it changes something", "risk high: passes on what was read from mail"}, false},
		{"high", []string{"risk high: destructiveHint"}, true},
		{"high", []string{"risk high: destructiveHint", "risk medium: openWorldHint"}, true},
		{"high", []string{"risk high: \"delete\" in the name", "risk medium: it changes something"}, true},
	} {
		if got := (decided{Risk: row.risk, Reasons: row.reasons}).high(); got != row.want {
			t.Errorf("%s for %q: high is %v", row.risk, row.reasons, got)
		}
	}
}

func TestRanks(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		ranks
		want string
	}{{ranks{}, "–"}, {ranks{Calls: 303, High: 13}, "13 of 303, 4 %"}} {
		if got := row.String(); got != row.want {
			t.Errorf("%+v: %s", row.ranks, got)
		}
	}
}
