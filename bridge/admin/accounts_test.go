package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/login"
)

// An accountDesk connects accounts: what it wants to be kept says whose state it is.
type accountDesk struct {
	Accounts
	connected []string
}

func (d *accountDesk) Begin(_ context.Context, who approval.Approver, server, redirect, state string) (string, []byte, error) {
	if server != "mirror" {
		return "", nil, login.ErrNoLogin
	}
	return "https://login.example/?state=" + state + "&redirect_uri=" + redirect, []byte(who.Name + "'s verifier"), nil
}

func (d *accountDesk) Finish(_ context.Context, who approval.Approver, server string, kept []byte, returned string) error {
	if string(kept) != who.Name+"'s verifier" {
		return fmt.Errorf("%s finishes with %s", who.Name, kept)
	}
	d.connected = append(d.connected, who.Name+" at "+server)
	return nil
}

func (d *accountDesk) Person(who approval.Approver) string { return who.Name }

// begin begins to connect an account, and returns the body that finishes it.
func (v visitor) begin() string {
	v.b.t.Helper()
	var begun struct{ Link string }
	v.do("POST", "/api/accounts/connect", `{"server":"mirror"}`).want(200).into(&begun)
	_, rest, _ := strings.Cut(begun.Link, "state=")
	state, _, _ := strings.Cut(rest, "&")
	return fmt.Sprintf(`{"returned":"code=x&state=%s"}`, state)
}

// Whoever began to connect an account at one bridge finishes that at another, once, and
// nobody else does.
func TestAccountsAtAnyBridge(t *testing.T) {
	shared := &brokenStore{Store: documents.Memory()}
	desks := []*accountDesk{{}, {}}
	var benches []*bench
	for _, d := range desks {
		benches = append(benches, newBench(t, func(o *Options) { o.SignIns, o.Accounts = shared, d }))
	}
	one, two := benches[0], benches[1]
	ada, bob := one.atPage("ada"), one.atPage("bob")
	at := func(b *bench, v visitor) visitor { v.b = b; return v }
	const finish = "/api/accounts/finish"

	body := ada.begin()
	names, err := shared.Names(t.Context())
	if err != nil || len(names) != 3 { // two logins and the connection
		t.Fatalf("kept are %q, %v", names, err)
	}
	for _, name := range names {
		if state := strings.TrimSuffix(strings.SplitAfter(body, "state=")[1], `"}`); strings.Contains(name, strings.Split(state, ".")[0]) {
			t.Errorf("the state is in a name: %s", name)
		}
	}
	for _, b := range benches {
		at(b, bob).do("POST", finish, body).refused(403, "state") // and it stays ada's
	}
	at(two, ada).do("POST", finish, body).want(200).says(`"server":"mirror"`)
	for _, b := range benches {
		at(b, ada).do("POST", finish, body).refused(403, "state") // once
	}
	if len(desks[0].connected) != 0 || fmt.Sprint(desks[1].connected) != "[ada at mirror]" {
		t.Errorf("connected are %q at one and %q at two", desks[0].connected, desks[1].connected)
	}

	body = ada.begin()
	for _, b := range benches {
		b.later(flowTime + time.Second)
	}
	at(two, ada).do("POST", finish, body).refused(403, "state") // too late
	at(two, ada).do("POST", finish, at(one, ada).begin()).want(200)

	body = ada.begin()
	shared.broken = errors.New("the database is away")
	ada.with("Authorization", "Bearer "+tokenOf("ada")).do("POST", finish, body).want(500)
	shared.broken = nil
	at(two, ada).do("POST", finish, body).want(200)
	ada.do("POST", "/api/accounts/connect", `{"server":"other"}`).want(404)
}
