package sso

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/ssotest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const back = "http://127.0.0.1:7421/login/done"

// A bench is a provider and who signs in with it.
type bench struct {
	*testing.T
	there *ssotest.Provider
	here  *Provider
	now   time.Time
}

func newBench(t *testing.T, claim string) *bench {
	b := &bench{T: t, there: ssotest.New(t), now: time.Now()}
	transport := &http.Transport{DisableKeepAlives: true}
	b.here = New(Options{Issuer: b.there.URL, ClientID: ssotest.ClientID, ClientSecret: ssotest.ClientSecret, RedirectURL: back, Claim: claim,
		Now: func() time.Time { return b.now }, Transport: transport})
	return b
}

// begin starts a sign-in, and returns what the browser brings back.
func (b *bench) begin() (keep string, brought url.Values) {
	b.Helper()
	address, keep, err := b.here.Begin("the state")
	if err != nil {
		b.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(address)
	if err != nil {
		b.Fatal(err)
	}
	res.Body.Close()
	to, err := res.Location()
	if err != nil {
		b.Fatalf("the provider answers %s", res.Status)
	}
	if !strings.HasPrefix(to.String(), back+"?") || to.Query().Get("state") != "the state" {
		b.Fatalf("the browser is sent to %s", to)
	}
	return keep, to.Query()
}

// signsIn signs in, and returns who it is.
func (b *bench) signsIn() (string, error) {
	b.Helper()
	keep, brought := b.begin()
	return b.here.Finish(b.Context(), keep, brought.Get("code"), brought.Get("iss"))
}

func TestWhoSignsIn(t *testing.T) {
	for name, row := range map[string]struct {
		claim  string
		claims map[string]any
		want   string // empty: nobody
	}{
		"email":                     {"email", nil, "ann@example.com"},
		"email, verified in words":  {"email", map[string]any{"email_verified": "true"}, "ann@example.com"},
		"email, not verified":       {"email", map[string]any{"email_verified": false}, ""},
		"email, nobody verifies":    {"email", map[string]any{"email_verified": nil}, ""},
		"no email":                  {"email", map[string]any{"email": nil}, ""},
		"subject":                   {"sub", nil, "user-1"},
		"a claim of one's own":      {"employee", map[string]any{"employee": "4711"}, "4711"},
		"a claim that is no text":   {"employee", map[string]any{"employee": 4711}, ""},
		"an empty claim":            {"employee", map[string]any{"employee": ""}, ""},
		"a claim that is not there": {"employee", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, row.claim)
			b.there.Claims = row.claims
			who, err := b.signsIn()
			if who != row.want || (row.want == "") != errors.Is(err, ErrNobody) {
				t.Errorf("it is %q, %v", who, err)
			}
		})
	}
}

// Whatever is wrong with what the provider, or somebody in its place, sends:
// nobody comes in.
func TestOddAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		change func(b *bench)
		want   string // part of the error
	}{
		"for another audience":          {func(b *bench) { b.there.Claims["aud"] = "another" }, "audience"},
		"for several, none authorized":  {func(b *bench) { b.there.Claims["aud"] = []string{ssotest.ClientID, "another"} }, "another client"},
		"for another authorized party":  {func(b *bench) { b.there.Claims["azp"] = "another" }, "another client"},
		"by another issuer":             {func(b *bench) { b.there.Claims["iss"] = "https://evil.example" }, "issue"},
		"expired":                       {func(b *bench) { b.there.Claims["exp"] = time.Now().Add(-time.Minute).Unix() }, "expired"},
		"without an end":                {func(b *bench) { b.there.Claims["exp"] = nil }, "expired"},
		"not good yet":                  {func(b *bench) { b.there.Claims["nbf"] = time.Now().Add(time.Hour).Unix() }, "nbf"},
		"with the nonce of another one": {func(b *bench) { b.there.Claims["nonce"] = "another" }, "another sign-in"},
		"without a nonce":               {func(b *bench) { b.there.Claims["nonce"] = nil }, "another sign-in"},
		"signed by somebody else":       {func(b *bench) { b.there.Key = ssotest.NewKey(b) }, "signature"},
		"signed with nothing": {func(b *bench) {
			b.there.Bend = func(token string) string {
				parts := strings.Split(token, ".")
				return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
			}
		}, "unexpected signature algorithm"},
		"signed with the client's secret": {func(b *bench) { b.there.Alg = "HS256" }, "unexpected signature algorithm"},
		"signed by nobody": {func(b *bench) {
			b.there.Bend = func(token string) string { return token[:strings.LastIndex(token, ".")+1] }
		}, ""},
		"bent": {func(b *bench) {
			b.there.Bend = func(token string) string { return strings.Replace(token, ".", ".e30", 1) }
		}, ""},
		"no token": {func(b *bench) { b.there.Bend = func(string) string { return "" } }, ""},
		"no text":  {func(b *bench) { b.there.Claims["iss"] = 7 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "sub")
			row.change(b)
			who, err := b.signsIn()
			if err == nil || who != "" || !strings.Contains(err.Error(), row.want) {
				t.Errorf("it is %q, %v; want %q", who, err, row.want)
			}
		})
	}
}

// A code is good once, for the sign-in that it was made in, at its provider.
func TestSignInIsBoundToItsBeginning(t *testing.T) {
	b := newBench(t, "sub")
	keep, brought := b.begin()
	other, another := b.begin()
	finish := func(keep, code, issuer string) {
		t.Helper()
		if who, err := b.here.Finish(t.Context(), keep, code, issuer); err == nil || who != "" {
			t.Errorf("it is %q", who)
		}
	}
	finish("", brought.Get("code"), b.there.URL)
	finish(other, brought.Get("code"), b.there.URL)       // whose verifier is another
	finish(other, another.Get("code"), "https://evil.ex") // RFC 9207: mixed up
	finish(other, another.Get("code"), "")                // this provider always says who it is
	if who, err := b.here.Finish(t.Context(), other, another.Get("code"), b.there.URL); err != nil || who != "user-1" {
		t.Errorf("it is %q, %v", who, err)
	}
	finish(other, another.Get("code"), b.there.URL) // once
	finish(keep, brought.Get("code"), b.there.URL)  // it was tried with another's
}

// The token of one sign-in is nobody's in another: its nonce is of the first.
func TestTokenIsNotUsedAgain(t *testing.T) {
	b := newBench(t, "sub")
	var first string
	b.there.Bend = func(token string) string {
		if first == "" {
			first = token
		}
		return first
	}
	if who, err := b.signsIn(); err != nil || who != "user-1" {
		t.Fatalf("it is %q, %v", who, err)
	}
	if who, err := b.signsIn(); err == nil || !strings.Contains(err.Error(), "another sign-in") {
		t.Errorf("it is %q, %v", who, err)
	}
}

func TestProviderIsNotThere(t *testing.T) {
	b := newBench(t, "sub")
	b.there.Down = true
	for range 3 { // it is not asked again and again
		if _, _, err := b.here.Begin("s"); !errors.Is(err, ErrUnreachable) {
			t.Errorf("begun: %v", err)
		}
	}
	b.there.Set(func() { b.there.Down = false })
	if _, _, err := b.here.Begin("s"); !errors.Is(err, ErrUnreachable) || b.there.Asked != 0 {
		t.Errorf("asked at once again: %v", err)
	}
	b.now = b.now.Add(quiet)
	keep, brought := b.begin()
	b.there.Set(func() { b.there.Down = true })
	if _, err := b.here.Finish(t.Context(), keep, brought.Get("code"), brought.Get("iss")); !errors.Is(err, ErrUnreachable) {
		t.Errorf("finished: %v", err)
	}
	b.there.Set(func() { b.there.Down = false })
	if who, err := b.signsIn(); err != nil || who != "user-1" || b.there.Asked != 1 {
		t.Errorf("it is %q, %v; asked %d times about itself", who, err, b.there.Asked)
	}
}

func TestProviderThatIsAnother(t *testing.T) {
	for name, says := range map[string]map[string]any{
		"another issuer":            {"issuer": "https://evil.example"},
		"an address in the clear":   {"token_endpoint": "http://login.example.com/token"},
		"an address that is script": {"authorization_endpoint": "javascript:alert(1)"},
		"no address":                {"token_endpoint": ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "sub")
			b.there.Discovery = says
			if address, _, err := b.here.Begin("s"); !errors.Is(err, ErrUnreachable) {
				t.Errorf("begun at %s, %v", address, err)
			}
		})
	}
}
