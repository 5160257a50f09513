//go:build real && long

package main

import "testing"

// mostLearnt is how often a person is asked at most in the second half of a session, by a
// profile that was learnt from the first.
const mostLearnt = 2

// notLearnt are the sessions in which that is more, with how often it is: in their first half nothing was changed, and
// their second half changes things. A number here may only fall.
var notLearnt = map[string]int{"second/backend": 4, "second/day": 3, "triage": 3}

// What is learnt from the first half of a session asks rarely in the second, refuses
// nothing, and lets no twin pass.
func TestLongLearnt(t *testing.T) {
	h, cells := built(t), cellsFor(t)
	if err := each(cells, func(c *cell) error { return h.playLearning(t.Context(), c) }); err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		name, l := c.Session.Name, c.Learnt
		asked, before := len(l.After.dialogs()), len(l.Before.dialogs())
		t.Logf("%s: %d calls, %d questions with %s, %d with what was learnt", name, l.Calls, before, c.Setting.Name, asked)
		if asked > max(mostLearnt, notLearnt[name]) {
			t.Errorf("%s: %d questions with\n%s", name, asked, l.Says)
			for _, d := range l.After.dialogs() {
				t.Logf("%s -> %s", firstLine(d.Text), d.Answer)
			}
		}
		if l.After.sent() != l.Calls {
			t.Errorf("%s: %d of %d calls were sent: %q", name, l.After.sent(), l.Calls, l.After.refused())
		}
		if len(l.Verdicts) != len(c.Session.Twins) {
			t.Errorf("%s: %d of %d twins were played", name, len(l.Verdicts), len(c.Session.Twins))
		}
		for _, v := range passed(l.Verdicts) {
			t.Errorf("%s: %s (%s): %s\n%s", name, v.Why, v.Kind, v.By, l.Says)
		}
	}
}
