package pending

import (
	"crypto/sha256"
	"strings"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"

	"github.com/google/go-cmp/cmp"
)

func someone(name string, role config.ApproverRole, risk config.RiskLevel, groups ...string) config.Approver {
	return config.Approver{Name: name, Role: role, Risk: risk, Groups: groups, Digest: sha256.Sum256([]byte(name))}
}

// What a change gives waits for somebody who may confirm it; what it takes is
// gone at once, also while the rest of it waits.
func TestRightsThatAChangeGivesAndTakes(t *testing.T) {
	t.Parallel()
	const confirmer = config.ApproverRole(approval.Confirmer)
	ann, bob := someone("ann", config.RoleAdmin, ""), someone("bob", config.RoleApprover, config.RiskMedium, "ops")
	lent := config.Delegation{From: "ann", To: "bob", Until: "2999-12-31"}
	was := config.Approvals{Approvers: []config.Approver{ann, bob}, Delegations: []config.Delegation{lent}}
	anew := func(one config.Approver) config.Approver {
		one.Digest = sha256.Sum256([]byte("another token"))
		return one
	}
	signsIn := func(one config.Approver) config.Approver {
		one.Digest, one.Login = config.Digest{}, one.Name+"@example"
		return one
	}
	for name, row := range map[string]struct {
		is        config.Approvals
		why       string           // of what waits; empty: nothing does
		meanwhile config.Approvals // who may answer
	}{
		"nothing": {was, "", was},
		"one is gone": {
			config.Approvals{Approvers: []config.Approver{ann}}, "",
			config.Approvals{Approvers: []config.Approver{ann}}},
		"less risk, no group, no delegation": {
			config.Approvals{Approvers: []config.Approver{ann, someone("bob", config.RoleApprover, config.RiskLow)}}, "",
			config.Approvals{Approvers: []config.Approver{ann, someone("bob", config.RoleApprover, config.RiskLow)}}},
		"a lower role": {
			config.Approvals{Approvers: []config.Approver{ann, someone("bob", config.RoleViewer, config.RiskMedium, "ops")}, Delegations: was.Delegations}, "",
			config.Approvals{Approvers: []config.Approver{ann, someone("bob", config.RoleViewer, config.RiskMedium, "ops")}, Delegations: was.Delegations}},
		"nobody may confirm": {
			config.Approvals{Approvers: []config.Approver{someone("ann", config.RoleViewer, ""), bob}, Delegations: was.Delegations}, "nobody would be left who may confirm",
			config.Approvals{Approvers: []config.Approver{bob, someone("ann", confirmer, "")}, Delegations: was.Delegations}},
		"nobody may answer": {
			config.Approvals{Approvers: []config.Approver{someone("bob", config.RoleViewer, config.RiskMedium)}}, "nobody would be left who may answer",
			config.Approvals{Approvers: []config.Approver{someone("bob", config.RoleViewer, config.RiskMedium), someone("ann", confirmer, "")}}},
		"nobody is left": {config.Approvals{}, "nobody would be left who may answer", config.Approvals{Approvers: []config.Approver{someone("ann", confirmer, "")}}},
		"another admin in the place of the only one": {
			config.Approvals{Approvers: []config.Approver{bob, someone("eve", config.RoleAdmin, "")}}, "eve is new: admin",
			config.Approvals{Approvers: []config.Approver{bob, someone("ann", confirmer, "")}}},
		"nobody allows their own": {
			config.Approvals{Approvers: was.Approvers, Delegations: was.Delegations, SeparateApprover: true}, "",
			config.Approvals{Approvers: was.Approvers, Delegations: was.Delegations, SeparateApprover: true}},
		"one is new and one is gone": {
			config.Approvals{Approvers: []config.Approver{ann, someone("eve", config.RoleAdmin, "")}}, "eve is new: admin",
			config.Approvals{Approvers: []config.Approver{ann}}},
		"a higher role": {config.Approvals{Approvers: []config.Approver{ann, someone("bob", config.RoleAdmin, config.RiskMedium, "ops")}, Delegations: was.Delegations}, "bob is changed: admin", was},
		"a higher risk": {config.Approvals{Approvers: []config.Approver{ann, someone("bob", config.RoleApprover, config.RiskHigh, "ops")}, Delegations: was.Delegations}, "bob is changed", was},
		"another group": {config.Approvals{Approvers: []config.Approver{ann, someone("bob", config.RoleApprover, config.RiskMedium, "ops", "cfo")}, Delegations: was.Delegations}, "in ops, cfo", was},
		"another token": {config.Approvals{Approvers: []config.Approver{anew(ann), bob}, Delegations: was.Delegations}, "ann is changed", was},
		"another token, and a lower role": {
			config.Approvals{Approvers: []config.Approver{ann, anew(someone("bob", config.RoleViewer, config.RiskLow))}}, "bob is changed: viewer",
			config.Approvals{Approvers: []config.Approver{ann, someone("bob", config.RoleViewer, config.RiskLow)}}},
		"a login in the place of the token": {
			config.Approvals{Approvers: []config.Approver{ann, signsIn(bob)}}, "bob is changed",
			config.Approvals{Approvers: []config.Approver{ann, {Name: "bob", Role: config.RoleApprover, Risk: config.RiskMedium, Groups: []string{"ops"}}}}},
		"a login in the place of the only admin's token": {
			config.Approvals{Approvers: []config.Approver{signsIn(ann), bob}}, "ann is changed",
			config.Approvals{Approvers: []config.Approver{bob, someone("ann", confirmer, "")}}},
		"lent for longer": {config.Approvals{Approvers: was.Approvers, Delegations: []config.Delegation{{From: "ann", To: "bob", Until: "3000-01-01"}}}, "bob may decide in the name of ann", was},
		"lent on":         {config.Approvals{Approvers: was.Approvers, Delegations: append([]config.Delegation{{From: "bob", To: "ann", Until: "2999-01-01"}}, lent)}, "ann may decide in the name of bob", was},
	} {
		if got := strings.Join(widened(was, row.is), "; "); (got == "") != (row.why == "") || !strings.Contains(got, row.why) {
			t.Errorf("%s: waits because %q, want %q", name, got, row.why)
		}
		if diff := cmp.Diff(row.meanwhile, meanwhile(was, row.is), cmp.AllowUnexported(config.Value{})); diff != "" {
			t.Errorf("%s: meanwhile (-want +got)\n%s", name, diff)
		}
	}
	both := ann
	both.Login = "ann@example"
	if got := widened(config.Approvals{Approvers: []config.Approver{both}}, config.Approvals{Approvers: []config.Approver{signsIn(ann)}}); len(got) > 0 {
		t.Errorf("who has a token less waits: %q", got)
	}
	if got := widened(config.Approvals{SeparateApprover: true}, config.Approvals{}); len(got) != 1 {
		t.Errorf("their own yes counts again, and nothing waits: %q", got)
	}
}

// Who confirms a change says why where most depends on it.
func TestGraveChanges(t *testing.T) {
	t.Parallel()
	policy := func(text string) *config.Config {
		t.Helper()
		cfg, err := config.Parse("config.json", []byte(`{"evaluation": `+text+`}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	before := policy(`{"defaultProfile": "p", "profiles": {"p": {"denylist": ["a__*"], "asklist": ["b__*"], "rules": [{"tools": ["c__*"], "action": "deny"}]}}}`)
	for text, want := range map[string]bool{
		`{"defaultProfile": "p", "profiles": {"p": {"denylist": ["a__*"], "rules": [{"tools": ["c__*"], "action": "deny"}]}}}`:                              false,
		`{"defaultProfile": "p", "profiles": {"p": {"denylist": ["a__x"], "asklist": ["b__*"], "rules": [{"tools": ["c__*"], "action": "deny"}]}}}`:         true,
		`{"defaultProfile": "p", "profiles": {"p": {"denylist": ["a__*"], "asklist": ["b__*"]}}}`:                                                           true,
		`{"defaultProfile": "p", "profiles": {"p": {"denylist": ["a__*"], "asklist": ["b__*"], "rules": [{"tools": ["c__*"], "action": "ask"}]}}}`:          true,
		`{"profiles": {"p": {"denylist": ["a__*"], "asklist": ["b__*"], "rules": [{"tools": ["c__*"], "action": "deny"}]}}}`:                                true,
		`{"enabled": false, "defaultProfile": "p", "profiles": {"p": {"denylist": ["a__*"], "rules": [{"tools": ["c__*"], "action": "deny"}]}}}`:            true,
		`{"defaultProfile": "p", "profiles": {"p": {"denylist": ["a__*", "d__*"], "rules": [{"name": "now named", "tools": ["c__*"], "action": "deny"}]}}}`: false,
	} {
		if got := grave(before, policy(text)); got != want {
			t.Errorf("%s: grave is %t", text, got)
		}
	}
	after := *before
	after.Approvals.Approvers = []config.Approver{someone("eve", config.RoleViewer, "")}
	if !grave(before, &after) {
		t.Error("somebody is let in, and nobody says why")
	}
}
