package main_test

// Single sign-on with the real binary and a provider on this machine.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"codemode-bridge/bridge/ssotest"
)

// signOnConfig lets ann in only by single sign-on, and bob by his token.
func signOnConfig(there *ssotest.Provider) string {
	return fmt.Sprintf(`{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["utils__*"], "elicitationFallback": "queue"}}},
  "approvals": {
    "listen": "127.0.0.1:0",
    "oidc": {"issuer": %q, "clientId": %q, "clientSecret": %q},
    "approvers": [{"name": "ann", "role": "admin", "login": "ann@example.com"}, %s],
  },
}
`, there.URL, ssotest.ClientID, ssotest.ClientSecret, approverJSON("bob", "approver", bobsToken))
}

// A signingOn is as much of a browser as signing on takes.
type signingOn struct {
	*testing.T
	client *http.Client
	page   string
}

func newSigningOn(t *testing.T, page string) signingOn {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return signingOn{t, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, page}
}

func (s signingOn) post(path string, body any) (code int, answer map[string]any) {
	s.Helper()
	res, text := request(s.T, s.client, "POST", s.page+path, nil, body)
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		s.Fatal(err)
	}
	return res.StatusCode, answer
}

// signIn goes to the provider and comes back.
func (s signingOn) signIn() (code int, answer map[string]any) {
	s.Helper()
	code, answer = s.post("/api/login/begin", map[string]any{})
	if code != 200 {
		return code, answer
	}
	res, err := s.client.Get(answer["go"].(string))
	if err != nil {
		s.Fatal(err)
	}
	res.Body.Close()
	back, err := url.Parse(res.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(back.String(), s.page+"/login/done?") {
		s.Fatalf("the provider answers %s and sends back to %s, %v", res.Status, back, err)
	}
	q := back.Query()
	return s.post("/api/login", map[string]any{"state": q.Get("state"), "granted": q.Get("code"), "issuer": q.Get("iss")})
}

func TestSingleSignOn(t *testing.T) {
	t.Parallel()
	there := ssotest.New(t)
	b := serves(t, signOnConfig(there))
	code, answer := newSigningOn(t, b.page).signIn()
	if code != 200 || answer["name"] != "ann" || answer["role"] != "admin" || answer["secret"] == "" {
		t.Fatalf("%d %v", code, answer)
	}

	there.Set(func() { there.Claims["email"] = "mallory@example.com" })
	code, answer = newSigningOn(t, b.page).signIn()
	if text := fmt.Sprint(answer); code != 403 || !strings.Contains(text, "mallory@example.com is no approver here") {
		t.Errorf("%d %s", code, text)
	}
	there.Set(func() { there.Claims["email"], there.Claims["email_verified"] = "ann@example.com", false })
	if code, answer = newSigningOn(t, b.page).signIn(); code != 401 {
		t.Errorf("an address that nobody verified: %d %v", code, answer)
	}
	log := b.does("", "audit", "query", "--event-type", "sign_in", "--json")
	for _, words := range []string{"mallory@example.com", "single sign-on", "ann"} {
		if !strings.Contains(log, words) {
			t.Errorf("the audit log has no %s:\n%s", words, log)
		}
	}
	if strings.Contains(log, ssotest.ClientSecret) {
		t.Error("the client's secret is in the log")
	}

	// While the provider is down, a token still works.
	there.Set(func() { there.Down = true })
	if code, answer := newSigningOn(t, b.page).post("/api/login", map[string]any{"token": bobsToken}); code != 200 || answer["name"] != "bob" {
		t.Errorf("%d %v", code, answer)
	}
	if code, _ := b.api(bobsToken, "GET", "/api/pending", nil); code != 200 {
		t.Errorf("the API answers %d", code)
	}
}

// A bridge starts to serve whether or not the provider is up.
func TestProviderThatIsDown(t *testing.T) {
	t.Parallel()
	there := ssotest.New(t)
	there.Down = true
	b := serves(t, signOnConfig(there))
	s := newSigningOn(t, b.page)
	if code, answer := s.signIn(); code != 502 || !strings.Contains(fmt.Sprint(answer), "sign in with a token") {
		t.Errorf("%d %v", code, answer)
	}
	if code, _ := s.post("/api/login", map[string]any{"token": bobsToken}); code != 200 {
		t.Errorf("a token is answered with %d", code)
	}
}
