package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// elsewhere is a provider whose codes are the logins of who signs in.
type elsewhere struct{ down bool }

func (e *elsewhere) Begin(state string) (address, keep string, err error) {
	if e.down {
		return "", "", errors.New("no route to host")
	}
	return "https://login.example/?state=" + state, "kept " + state, nil
}

func (e *elsewhere) Finish(_ context.Context, keep, code, issuer string) (string, error) {
	if !strings.HasPrefix(keep, "kept ") || issuer != "https://login.example" || code == "" {
		return "", fmt.Errorf("not taken: %q %q %q", keep, code, issuer)
	}
	return code, nil
}

func newSignOnBench(t *testing.T) (*bench, *elsewhere) {
	there := &elsewhere{}
	b := newBench(t, func(o *Options) { o.SignOn, o.SignOnReturn = there, "http://"+host+"/login/done" })
	b.appoint([]approval.Approver{{Name: "ada", Role: approval.Admin, Login: "ada@example.com"}, {Name: "vic", Role: approval.Viewer}})
	return b, there
}

// goThere begins a sign-in in a browser of its own.
func (b *bench) goThere() (browser visitor, state string) {
	b.t.Helper()
	browser = visitor{b: b}
	res := browser.do("POST", "/api/login/begin", "{}").want(200)
	var out struct{ Go string }
	res.into(&out)
	state, ok := strings.CutPrefix(out.Go, "https://login.example/?state=")
	if !ok {
		b.t.Fatalf("sent to %q", out.Go)
	}
	set := res.header.Get("Set-Cookie")
	cookie, err := http.ParseSetCookie(set)
	if err != nil {
		b.t.Fatal(err)
	}
	want := &http.Cookie{Name: "codemode_sign_in_7421", Path: "/", MaxAge: 600, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if diff := cmp.Diff(want, cookie, cmpopts.IgnoreFields(http.Cookie{}, "Value", "Raw")); diff != "" {
		b.t.Fatalf("the cookie (-want +got):\n%s", diff)
	}
	browser.cookie = strings.Split(set, ";")[0]
	return browser, state
}

func brought(state, code string) string {
	return fmt.Sprintf(`{"state":%q,"granted":%q,"issuer":"https://login.example"}`, state, code)
}

func TestSingleSignOn(t *testing.T) {
	b, _ := newSignOnBench(t)
	(visitor{b: b}).do("GET", "/login", "").want(200).says(`data-do="sign-on"`)
	(visitor{b: b}).do("GET", "/login/done?code=x&state=y", "").want(200).says(`id="login"`)
	browser, state := b.goThere()
	in := browser.signIn(brought(state, "ada@example.com"))
	in.do("GET", "/api/me", "").want(200).says(`"name":"ada"`, `"role":"admin"`)
	if rec := b.recorded(ledger.SignedIn); len(rec) != 1 || rec[0].Approver != "ada" || !strings.Contains(string(rec[0].Detail), "single sign-on") {
		t.Errorf("recorded %+v", rec)
	}
	e, verdicts := b.ask(question{})
	in.do("POST", "/api/decide/"+e.ID, decision(e, "approve")).want(200)
	want := approval.Verdict{Request: e.ID, Approve: true, By: "ada", Rights: approval.Rights{Roles: []string{"admin"}}, Channel: "page", Strong: true}
	if diff := cmp.Diff(want, <-verdicts, cmpopts.IgnoreFields(approval.Verdict{}, "Time", "Credential")); diff != "" {
		t.Errorf("the verdict (-want +got):\n%s", diff)
	}
	b.as("vic").do("GET", "/api/me", "").want(200) // a token is as good as before

	// Who is no approver under that login any more is out at once.
	b.appoint([]approval.Approver{{Name: "ada", Role: approval.Admin, Login: "eve@example.com"}})
	in.do("GET", "/api/me", "").refused(401, "unauthorized")
}

func TestSignOnIsRefused(t *testing.T) {
	b, there := newSignOnBench(t)
	b.stopped()
	browser, state := b.goThere()
	_, others := b.goThere()
	in := func(v visitor, body string) response { return v.do("POST", "/api/login", body) }
	in(browser, brought(others, "ada@example.com")).refused(401, "unauthorized") // of another browser: nobody is made to come in as another
	in(visitor{b: b}, brought(state, "ada@example.com")).refused(401, "unauthorized")
	in(browser, brought(state, "ada@example.com")).refused(401, "unauthorized") // it was tried, and is used up
	in(browser, brought("guessed", "ada@example.com")).refused(401, "unauthorized")

	browser, state = b.goThere()
	in(browser, fmt.Sprintf(`{"state":%q,"granted":"ada@example.com","issuer":"https://evil.example"}`, state)).refused(401, "unauthorized")

	for _, login := range []string{"mallory@example.com", "ADA@example.com", "ada", "ada@example.com ", "<b>\u202e"} {
		browser, state = b.goThere()
		res := in(browser, brought(state, login)).refused(403, "no_approver").says("is no approver here", "login")
		if strings.Contains(res.body, "\u202e") || len(res.header["Set-Cookie"]) != 1 {
			t.Errorf("%q is told %s %v", login, res.body, res.header)
		}
	}
	rec := b.recorded(ledger.SignedIn)
	if len(rec) != 10 || rec[5].Outcome != ledger.Refused || !strings.Contains(string(rec[5].Detail), "mallory@example.com") {
		t.Errorf("recorded %d: %+v", len(rec), rec)
	}
	browser, state = b.goThere()
	in(browser, brought(state, "mallory@example.com")).refused(429, "too_many")
	b.later(time.Minute)

	browser, state = b.goThere()
	b.later(flowTime + 2*time.Minute)
	in(browser, brought(state, "ada@example.com")).refused(401, "unauthorized") // too late

	there.down = true
	(visitor{b: b}).do("POST", "/api/login/begin", "{}").refused(502, "provider")
	(visitor{b: b}).do("POST", "/api/login/begin", `{"to":"https://evil.example"}`).refused(422, "invalid")
	b.atPage("ada").do("GET", "/api/me", "").want(200) // tokens still work
}

// Under another name of this machine the cookie would not come back: the
// browser goes to the right one first.
func TestSignOnAtTheRightAddress(t *testing.T) {
	b, _ := newSignOnBench(t)
	res := (visitor{b: b}).with("Host", "localhost:7421").do("POST", "/api/login/begin", "{}").want(200)
	if res.says(`"go":"http://` + host + `/login#sign-on"`); res.header.Get("Set-Cookie") != "" {
		t.Errorf("a cookie is left at the wrong address: %v", res.header)
	}
}

func TestSignOnsAreBounded(t *testing.T) {
	b, _ := newSignOnBench(t)
	first, state := b.goThere()
	for range maxFlows {
		b.goThere()
	}
	if n := b.kept(signOns); n != maxFlows {
		t.Errorf("%d sign-ins are kept", n)
	}
	first.do("POST", "/api/login", brought(state, "ada@example.com")).refused(401, "unauthorized")
}

func TestNoSignOn(t *testing.T) {
	b := newBench(t)
	if res := (visitor{b: b}).do("GET", "/login", "").want(200); strings.Contains(res.body, "sign-on") {
		t.Error("the page offers what there is not")
	}
	(visitor{b: b}).do("POST", "/api/login/begin", "{}").refused(404, "not_found")
	(visitor{b: b}).do("POST", "/api/login", brought("s", "ada")).refused(404, "not_found")
}
