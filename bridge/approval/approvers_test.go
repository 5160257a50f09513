package approval

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
)

func approvers(t *testing.T, all []Approver, delegations ...Delegation) *Approvers {
	t.Helper()
	a, err := NewApprovers(Realm{}, all, delegations)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRolesAndVerbs(t *testing.T) {
	all := []Verb{Look, Answer, Revoke, Stop, Start, Edit}
	for role, want := range map[Role]string{
		Viewer:    "look",
		Decide:    "look answer stop start",
		Admin:     "look answer revoke stop start edit",
		Role(""):  "",
		"Admin":   "",
		"anybody": "",
	} {
		var may []string
		for _, v := range all {
			if (Approver{Name: "x", Role: role}).May(v) {
				may = append(may, string(v))
			}
		}
		if got := strings.Join(may, " "); got != want {
			t.Errorf("%q may %q, want %q", role, got, want)
		}
	}
}

func TestWhoMayAllowWhichRisk(t *testing.T) {
	now := time.Now()
	junior, senior := Approver{Name: "jo", Role: Decide, Risk: profiles.Medium}, Approver{Name: "sen", Role: Decide, Groups: []string{"security"}}
	boss, guest := Approver{Name: "boss", Role: Admin}, Approver{Name: "guest", Role: Viewer}
	people := []Approver{junior, senior, boss, guest}
	lent := approvers(t, people,
		Delegation{"boss", "sen", now.Add(time.Hour)}, Delegation{"sen", "jo", now.Add(time.Hour)}, Delegation{"boss", "guest", now})
	none := approvers(t, people)
	for _, row := range []struct {
		a    *Approvers
		who  Approver
		risk profiles.Risk
		want string // in whose name, or "-" for not at all
	}{
		{none, junior, profiles.Medium, ""},
		{none, junior, profiles.High, "-"},
		{none, senior, profiles.High, ""},
		{none, senior, profiles.Critical, "-"},
		{none, boss, profiles.Critical, ""},
		{none, Owner, profiles.Critical, ""},
		{none, guest, profiles.Low, "-"},
		{lent, junior, profiles.High, "sen"},
		{lent, junior, profiles.Critical, "boss"}, // by a chain
		{lent, senior, profiles.Critical, "boss"},
		{lent, guest, profiles.Low, "-"}, // it has just ended
	} {
		v, err := row.a.Sign(row.who, question(1, risk(row.risk)), Verdict{Approve: true, By: "forged", Strong: false, Rights: Rights{Roles: []string{"forged"}}}, "page", now)
		got := v.For
		if err != nil {
			got = "-"
		}
		if got != row.want {
			t.Errorf("%s at %s: %q, %v; want %q", row.who.Name, row.risk, got, err, row.want)
		}
		if err != nil {
			continue
		}
		if slices.Contains(v.Roles, "forged") {
			t.Errorf("%s has the roles %q", row.who.Name, v.Roles)
		}
		v.For, v.Roles, v.Lent, v.Credential = "", nil, nil, ""
		if diff := cmp.Diff(Verdict{Approve: true, By: row.who.Name, Strong: true, Channel: "page"}, v); diff != "" {
			t.Errorf("signed by %s (-want +got):\n%s", row.who.Name, diff)
		}
	}
	if _, err := none.Sign(junior, question(1, risk(profiles.Critical)), Verdict{}, "page", now); err != nil {
		t.Errorf("a no needs no right to say yes: %v", err)
	}
	if _, err := none.Sign(guest, question(1), Verdict{}, "page", now); err == nil {
		t.Error("a viewer has said no")
	}
}

func TestTokens(t *testing.T) {
	token, sum := NewToken()
	other, _ := NewToken()
	if token == other || sha256.Sum256([]byte(token)) != sum {
		t.Fatal("a token is not its own")
	}
	a := approvers(t, []Approver{{Name: "none", Role: Admin}, {Name: "ann", Role: Decide, Token: sum}})
	if who, ok := a.Authenticate(token); !ok || who.Name != "ann" {
		t.Errorf("her token is %+v's, %v", who, ok)
	}
	for _, wrong := range []string{"", other, token[:len(token)-1], token + " ", strings.ToUpper(token), "none"} {
		if who, ok := a.Authenticate(wrong); ok {
			t.Errorf("%q is %s's", wrong, who.Name)
		}
	}
	if _, ok := (*Approvers)(nil).Authenticate(token); ok {
		t.Error("where there are no approvers, somebody is one")
	}
}

func TestApproversThatMakeNoSense(t *testing.T) {
	ann := Approver{Name: "ann", Role: Admin}
	for name, try := range map[string]func() error{
		"no name": func() error { _, err := NewApprovers(Realm{}, []Approver{{Role: Admin}}, nil); return err },
		"twice":   func() error { _, err := NewApprovers(Realm{}, []Approver{ann, ann}, nil); return err },
		"no role": func() error { _, err := NewApprovers(Realm{}, []Approver{{Name: "bob"}}, nil); return err },
		"a role for a name": func() error {
			_, err := NewApprovers(Realm{}, []Approver{{Name: "admin", Role: Admin}}, nil)
			return err
		},
		"a role for a group": func() error {
			_, err := NewApprovers(Realm{}, []Approver{{Name: "bob", Role: Admin, Groups: []string{"viewer"}}}, nil)
			return err
		},
		"a name for a group": func() error {
			_, err := NewApprovers(Realm{}, []Approver{ann, {Name: "bob", Role: Admin, Groups: []string{"ann"}}}, nil)
			return err
		},
		"lent to nobody": func() error {
			_, err := NewApprovers(Realm{}, []Approver{ann}, []Delegation{{From: "ann", To: "bob"}})
			return err
		},
		"lent to themselves": func() error {
			_, err := NewApprovers(Realm{}, []Approver{ann}, []Delegation{{From: "ann", To: "ann"}})
			return err
		},
	} {
		if try() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
