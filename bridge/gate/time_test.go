package gate

import (
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/profiles"
)

// A time that a rule, a risk or the profile sets holds whoever answers, and over
// a pause. Only the section's gives way to pausedFor.
func TestTimeThatHolds(t *testing.T) {
	const week = 168 * time.Hour
	second := func(n int) *profiles.Duration {
		d := profiles.Duration(time.Duration(n) * time.Second)
		return &d
	}
	queue := "queue"
	for _, row := range []struct {
		name           string
		set            func(*profiles.Spec, *profiles.ProfileSpec)
		noApprovers    bool
		asked, onPause time.Duration
	}{
		{"the section's, under queue", func(s *profiles.Spec, p *profiles.ProfileSpec) { s.Timeout, p.ElicitationFallback = second(20), &queue }, false, week, week},
		{"the section's, where no approver is", func(s *profiles.Spec, p *profiles.ProfileSpec) { s.Timeout, p.ElicitationFallback = second(20), &queue }, true, 20 * time.Second, week},
		{"none, without queue", func(*profiles.Spec, *profiles.ProfileSpec) {}, false, 300 * time.Second, week},
		{"the profile's", func(_ *profiles.Spec, p *profiles.ProfileSpec) { p.Timeout, p.ElicitationFallback = second(9), &queue }, false, 9 * time.Second, 9 * time.Second},
		{"a risk's", func(s *profiles.Spec, p *profiles.ProfileSpec) {
			s.Risk, p.ElicitationFallback = &profiles.RiskSpec{High: &profiles.RiskPolicySpec{Timeout: second(8)}}, &queue
		}, false, 8 * time.Second, 8 * time.Second},
		{"a rule's", func(_ *profiles.Spec, p *profiles.ProfileSpec) {
			p.ElicitationFallback = &queue
			p.Rules = []profiles.RuleSpec{{Tools: []string{"fs__delete"}, Timeout: second(4)}}
		}, false, 4 * time.Second, 4 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := asksFs
				spec := supervised(p)
				row.set(&spec, spec.Profiles["p"])
				g := newGate(t, spec, &fakeCaller{reply: okReply}, &book{})
				g.approvers = func() bool { return !row.noApprovers }
				r, err := g.Begin(t.Context(), Origin{ID: "r1", Session: "s1", Client: "test", Profile: "p", Reach: ByElicitation}, nil)
				if err != nil {
					t.Fatal(err)
				}
				a := &asking{T: t, g: g, r: r, caller: &fakeCaller{}, book: &book{}, done: make(chan error, 1)}
				go func() {
					_, err := g.Call(t.Context(), r, deletion)
					a.done <- err
				}()
				q := a.question()
				if got := q.Until.Sub(q.Asked); got != row.asked || q.Decision.Timeout != row.asked {
					t.Errorf("asked for %v (%v), want %v", got, q.Decision.Timeout, row.asked)
				}
				g.Broker().Extend("r1", q.Asked.Add(week))
				time.Sleep(row.onPause - time.Millisecond)
				if now := a.question(); now.Until.Sub(q.Asked) != row.onPause {
					t.Errorf("the pause gives %v, want %v", now.Until.Sub(q.Asked), row.onPause)
				}
				time.Sleep(time.Millisecond)
				a.refused(approval.Timeout)
			})
		})
	}
}
