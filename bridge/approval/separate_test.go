package approval

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"
)

// Whom an issuer names is somebody else than an approver only if it is known who the
// approver is there.
func TestWhoAskedByAnIssuersName(t *testing.T) {
	const asker = "https://login.example#u-1"
	one := func(name, principal string, role Role) Approver {
		return Approver{Name: name, Role: role, Principal: principal, Token: sha256.Sum256([]byte(name))}
	}
	ann, bob, cyd := one("ann", asker, Decide), one("bob", "https://login.example#u-2", Decide), one("cyd", "", Admin)
	dee := one("dee", "https://login.example/#u-4", Decide)
	guest := one("guest", "https://login.example#u-3", Viewer)
	separate := func(requester string) Request {
		return question(1, func(r *Request) { r.Separate, r.Requester = true, requester })
	}
	for name, row := range map[string]struct {
		who  Approver
		lent string // who lends their right to who
		r    Request
		deny bool
		want string // part of the error; empty: it counts
	}{
		"their own call":                        {who: ann, r: separate(asker), want: "ann asked for this call"},
		"their own call, denied":                {who: ann, r: separate(asker), deny: true},
		"somebody else's":                       {who: bob, r: separate(asker)},
		"by whom nobody knows there":            {who: cyd, r: separate(asker), want: `nothing says who cyd is there; an admin adds "principal"`},
		"by whom another issuer knows":          {who: dee, r: separate(asker), want: `nothing says who dee is there; an admin adds "principal"`},
		"denied by whom nobody knows there":     {who: cyd, r: separate(asker), deny: true},
		"for the bearer of a static token":      {who: cyd, r: separate("ci")},
		"where one's own counts":                {who: ann, r: question(1, func(r *Request) { r.Requester = asker })},
		"in the name of who asked":              {who: guest, lent: "ann", r: separate(asker), want: "guest may look and not decide"},
		"in the name of somebody else":          {who: guest, lent: "bob", r: separate(asker)},
		"in the name of whom nobody knows":      {who: guest, lent: "cyd", r: separate(asker), want: "guest may look and not decide"},
		"who asked, in the name of one other":   {who: ann, lent: "bob", r: separate(asker), want: "ann asked for this call"},
		"another subject that begins like ours": {who: ann, r: separate(asker + "1")},
	} {
		now := time.Now()
		var lent []Delegation
		if row.lent != "" {
			lent = []Delegation{{From: row.lent, To: row.who.Name, Until: now.Add(time.Hour)}}
		}
		people, err := NewApprovers(Realm{}, []Approver{ann, bob, cyd, dee, guest}, lent)
		if err != nil {
			t.Fatal(err)
		}
		v, err := people.Sign(row.who, row.r, Verdict{Approve: !row.deny}, "page", now)
		if row.want == "" && (err != nil || v.By != row.who.Name) || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %+v, %v; want %q", name, v, err, row.want)
		}
	}
}
