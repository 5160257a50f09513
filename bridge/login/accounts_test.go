package login_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/logintest"
)

// An office is a server at which everybody has an account of their own.
type office struct {
	*person
	key []byte
}

func newOffice(t *testing.T, odd func(*logintest.Server)) *office {
	o := &office{newPerson(t, odd), bytes.Repeat([]byte{7}, 32)}
	o.fake.MCP = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(o.fake.Whose(r))) })
	return o
}

// accounts are those of a new process.
func (o *office) accounts() *login.AccountsAt { return o.accountsFor(o.server()) }

func (o *office) accountsFor(s login.Server) *login.AccountsAt {
	return o.keeper(nil).Accounts(login.AccountsOptions{
		Configuration: "c1",
		Open: func(context.Context) (documents.Store, []byte, error) {
			return documents.Folder(filepath.Join(o.dir, "accounts")), o.key, nil
		},
		Person: func(principal string) (string, error) {
			if principal == "nobody" {
				return "", errors.New("nobody has no accounts")
			}
			return principal, nil
		},
		Where: func(server, _ string) string {
			return "connect yours for " + server + " at https://page.example.com/accounts"
		},
	}).At(s)
}

func (o *office) connect(at *login.AccountsAt, who, account string) {
	o.Helper()
	o.fake.Do(func() { o.fake.Person = account })
	attempt, err := at.Begin(o.Context(), who, redirect, rand.Text())
	if err == nil {
		_, err = attempt.Finish(o.Context(), o.fake.Browse(o, attempt.Link()))
	}
	if err != nil {
		o.Fatal(err)
	}
}

// asks makes a request as a person, and returns whose account the server saw.
func (o *office) asks(at *login.AccountsAt, who string) (string, error) {
	c, err := at.Account(o.Context(), who)
	if err != nil {
		return "", err
	}
	return o.says(c)
}

func (o *office) says(c interface {
	Token(context.Context) (string, error)
}) (string, error) {
	token, err := c.Token(o.Context())
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(o.Context(), http.MethodPost, o.fake.URL, strings.NewReader("{}"))
	if err != nil {
		o.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		o.Fatal(err)
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.Status, nil
	}
	var text bytes.Buffer
	_, err = text.ReadFrom(resp.Body)
	return text.String(), err
}

func (o *office) wantAccount(at *login.AccountsAt, who, want string) {
	o.Helper()
	if got, err := o.asks(at, who); got != want || err != nil {
		o.Errorf("%s asks as %q, %v, want %s", who, got, err, want)
	}
}

func (o *office) wantNone(at *login.AccountsAt, who string) {
	o.Helper()
	var n *login.Needed
	if got, err := o.asks(at, who); !errors.As(err, &n) || !strings.Contains(err.Error(), "connect yours for linear at https://page.example.com/accounts") {
		o.Errorf("%s asks as %q, %v, want to be told where to connect", who, got, err)
	}
}

func TestEveryPersonHasAnAccount(t *testing.T) {
	o := newOffice(t, nil)
	at, other := o.accounts(), o.accounts()
	o.wantNone(at, "ann")
	o.connect(at, "ann", "ann@linear")
	o.wantNone(at, "bob")
	o.wantNone(at, "")
	o.connect(other, "bob", "robert@linear")
	for _, process := range []*login.AccountsAt{at, other} {
		o.wantAccount(process, "ann", "ann@linear")
		o.wantAccount(process, "bob", "robert@linear")
	}
	if _, err := at.Account(t.Context(), "nobody"); err == nil || err.Error() != "nobody has no accounts" {
		t.Errorf("whose calls have no account gets %v", err)
	}
	if c, ok, err := at.Connection(t.Context(), "ann"); !ok || err != nil || c.Person != "ann" || c.Ended || c.Since.IsZero() || c.Issuer != o.fake.Issuer {
		t.Errorf("ann's connection is %+v, %v, %v", c, ok, err)
	}
	if all, err := at.Connections(t.Context()); len(all) != 2 || err != nil {
		t.Errorf("the connections are %+v, %v", all, err)
	}

	// It is the same client as long as it is the same login.
	one, _ := at.Account(t.Context(), "ann")
	if two, err := at.Account(t.Context(), "ann"); one != two || err != nil {
		t.Errorf("another client for the same login, %v", err)
	}
	o.connect(other, "ann", "ann@elsewhere")
	if two, err := at.Account(t.Context(), "ann"); one == two || err != nil {
		t.Errorf("the same client for another login, %v", err)
	}
	if token, err := one.Token(t.Context()); err == nil {
		t.Errorf("the client of the old login has the token %q", token)
	}
	o.wantAccount(at, "ann", "ann@elsewhere")

	revoked, notRevoked, err := other.Disconnect(t.Context(), "ann")
	if !revoked || notRevoked != nil || err != nil {
		t.Errorf("disconnecting: %v, %v, %v", revoked, notRevoked, err)
	}
	o.wantNone(at, "ann")
	if _, _, err := at.Disconnect(t.Context(), "ann"); !errors.Is(err, login.ErrNoLogin) {
		t.Errorf("disconnecting again: %v", err)
	}
	o.wantAccount(at, "bob", "robert@linear")
	if n := len(o.fake.Requests("/revoke")); n == 0 {
		t.Error("nothing was revoked")
	}
}

// A login that one process began is finished by another, for the same person at the same
// server.
func TestAnAccountIsConnectedByAnotherProcess(t *testing.T) {
	o := newOffice(t, func(s *logintest.Server) {
		s.Metadata = func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = true }
		s.Back = func(q url.Values) { q.Set("iss", s.Issuer) }
	})
	one, two := o.accounts(), o.accounts()
	begin := func() (kept []byte, back string) {
		t.Helper()
		o.fake.Do(func() { o.fake.Person = "ann@linear" })
		attempt, err := one.Begin(t.Context(), "ann", redirect, rand.Text())
		if err != nil {
			t.Fatal(err)
		}
		if kept, err = attempt.Keep(); err != nil {
			t.Fatal(err)
		}
		return kept, o.fake.Browse(t, attempt.Link())
	}
	finish := func(at *login.AccountsAt, who string, kept []byte, back string) error {
		attempt, err := at.Continue(who, kept)
		if err == nil {
			_, err = attempt.Finish(t.Context(), back)
		}
		return err
	}
	kept, back := begin()
	if err := finish(two, "bob", kept, back); !errors.Is(err, login.ErrOther) {
		t.Errorf("bob finishes what ann began: %v", err)
	}
	if err := finish(two, "ann", []byte(`{"person":"ann"}`), back); !errors.Is(err, login.ErrOther) {
		t.Errorf("with half of what was kept: %v", err)
	}
	if _, other := begin(); !errors.Is(finish(two, "ann", kept, other), login.ErrOther) {
		t.Error("the answer to another attempt is taken")
	}
	strange := strings.Replace(back, url.QueryEscape(o.fake.Issuer), "https%3A%2F%2Fother.example", 1)
	if err := finish(two, "ann", kept, strange); err == nil || !strings.Contains(err.Error(), "of another issuer") {
		t.Errorf("an answer of another issuer: %v", err)
	}
	changed := o.server()
	changed.ClientID = "by-hand"
	if err := finish(o.accountsFor(changed), "ann", kept, back); err == nil || !strings.Contains(err.Error(), "configured in another way") {
		t.Errorf("with another client: %v", err)
	}
	o.wantNone(two, "ann")
	// An issuer that stands in the address as it is belongs to the answer, too.
	if err := finish(two, "ann", kept, strings.Replace(back[len(redirect):], url.QueryEscape(o.fake.Issuer), o.fake.Issuer, 1)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []*login.AccountsAt{one, two} {
		o.wantAccount(at, "ann", "ann@linear")
		o.wantNone(at, "bob")
	}
	if alone, err := o.client().Begin(t.Context(), redirect); err != nil {
		t.Error(err)
	} else if _, err := alone.Keep(); err == nil {
		t.Error("a login that all use goes on elsewhere")
	}
}

func TestAnAccountIsDisconnectedWhereItCannotBeRevoked(t *testing.T) {
	o := newOffice(t, nil)
	at := o.accounts()
	o.connect(at, "ann", "ann")
	o.fake.Do(func() {
		o.fake.Instead["/revoke"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	})
	if revoked, notRevoked, err := at.Disconnect(t.Context(), "ann"); revoked || notRevoked == nil || err != nil {
		t.Errorf("disconnecting: %v, %v, %v", revoked, notRevoked, err)
	}
	o.wantNone(at, "ann")
}

func TestAccountsAreEncrypted(t *testing.T) {
	o := newOffice(t, nil)
	at := o.accounts()
	o.connect(at, "ann", "ann")
	o.connect(at, "bob", "bob")
	files, err := filepath.Glob(filepath.Join(o.dir, "accounts", "*.*.*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	var bodies [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, text)
		for _, secret := range append(o.fake.Secrets(), "ann", "bob", o.fake.URL) {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s holds %q", file, secret)
			}
		}
	}
	for i, file := range files { // whoever may write the files gives nobody another's account
		if err := os.WriteFile(file, bodies[1-i], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, who := range []string{"ann", "bob"} {
		if got, err := o.asks(at, who); err == nil || !strings.Contains(err.Error(), "cannot be decrypted") {
			t.Errorf("%s asks as %q, %v", who, got, err)
		}
	}
	o.connect(at, "ann", "ann again") // replaces what cannot be read
	o.wantAccount(at, "ann", "ann again")
	if _, _, err := at.Disconnect(t.Context(), "bob"); err != nil { // removes it
		t.Error(err)
	}
	o.wantNone(at, "bob")
	o.key = bytes.Repeat([]byte{8}, 32)
	if got, err := o.asks(o.accounts(), "ann"); err == nil {
		t.Errorf("with another key ann asks as %q", got)
	}
}

func TestAnAccountIsRenewedOnce(t *testing.T) {
	o := newOffice(t, nil)
	o.connect(o.accounts(), "ann", "ann")
	before := len(o.fake.Requests("/token"))
	for round := range 3 {
		o.fake.Advance(2 * time.Hour)
		var all sync.WaitGroup
		for range 4 { // processes
			at := o.accounts()
			for range 3 {
				all.Go(func() { o.wantAccount(at, "ann", "ann") })
			}
		}
		all.Wait()
		if n := len(o.fake.Requests("/token")) - before; n != round+1 {
			t.Fatalf("%d renewals after %d hours, want %d", n, 2*(round+1), round+1)
		}
	}
}

func TestAnAccountIsDisconnectedWhileItIsRenewed(t *testing.T) {
	o := newOffice(t, nil)
	at, other := o.accounts(), o.accounts()
	o.connect(at, "ann", "ann")
	asked, answer := make(chan struct{}), make(chan struct{})
	o.fake.Do(func() {
		o.fake.Instead["/token"] = func(w http.ResponseWriter, _ *http.Request) {
			close(asked)
			<-answer
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"access_token": "late-access", "refresh_token": "late-refresh", "token_type": "Bearer"}`))
		}
	})
	o.fake.Advance(2 * time.Hour)
	failed := make(chan error)
	go func() {
		_, err := o.asks(at, "ann")
		failed <- err
	}()
	<-asked
	if revoked, _, err := other.Disconnect(t.Context(), "ann"); !revoked || err != nil { // waits for no renewal
		t.Errorf("disconnecting: %v, %v", revoked, err)
	}
	close(answer)
	if err := <-failed; err == nil {
		t.Error("a call was made with an account that was disconnected")
	}
	o.wantNone(at, "ann")
	var revoked []string
	for _, r := range o.fake.Requests("/revoke") {
		revoked = append(revoked, r.Form.Get("token"))
	}
	if all := strings.Join(revoked, " "); !strings.Contains(all, "late-refresh") || !strings.Contains(all, "late-access") {
		t.Errorf("revoked was %s, not what the renewal brought", all)
	}
}

func TestARenewalOfAnAccountFails(t *testing.T) {
	o := newOffice(t, nil)
	at := o.accounts()
	o.connect(at, "ann", "ann")
	o.fake.Advance(2 * time.Hour)
	o.fake.Do(func() {
		o.fake.Instead["/token"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	})
	var n *login.Needed
	if got, err := o.asks(at, "ann"); err == nil || errors.As(err, &n) {
		t.Errorf("while the authorization server is down ann asks as %q, %v", got, err)
	}
	o.fake.Do(func() { delete(o.fake.Instead, "/token") })
	o.wantAccount(at, "ann", "ann")

	o.fake.Revoked()
	o.fake.Advance(2 * time.Hour)
	o.wantNone(at, "ann")
	o.wantNone(at, "ann")
	if c, ok, err := at.Connection(t.Context(), "ann"); !ok || !c.Ended || err != nil {
		t.Errorf("the connection is %+v, %v, %v, want one that has ended", c, ok, err)
	}
	o.connect(at, "ann", "ann once more")
	o.wantAccount(at, "ann", "ann once more")
}

func TestWhoseAccountListsTools(t *testing.T) {
	o := newOffice(t, nil)
	at := o.accounts()
	lister := at.Lister()
	if token, err := lister.Token(t.Context()); token != "" || err != nil || !lister.Ready() {
		t.Fatalf("before the server was asked: %q, %v", token, err)
	}
	challenge := http.Header{"Www-Authenticate": {"Bearer"}}
	again, err := lister.Refused(t.Context(), "", http.StatusUnauthorized, challenge)
	var n *login.Needed
	if again || !errors.As(err, &n) || !strings.Contains(err.Error(), "/accounts") || lister.Ready() {
		t.Errorf("with no account at all: %v, %v", again, err)
	}
	o.connect(at, "bob", "bob")
	o.fake.Advance(time.Minute)
	o.connect(at, "ann", "ann")
	if got, err := o.says(lister); got != "bob" || err != nil || !lister.Ready() {
		t.Errorf("the list is asked for by %q, %v, want the one who connected first", got, err)
	}
	if _, _, err := at.Disconnect(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := lister.Token(t.Context()); !errors.As(err, &n) { // so the session of bob ends
		t.Errorf("after bob has gone: %v", err)
	}
	if got, err := o.says(lister); got != "ann" || err != nil {
		t.Errorf("then the list is asked for by %q, %v", got, err)
	}
}
