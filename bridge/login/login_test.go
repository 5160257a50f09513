package login_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/logintest"
	"codemode-bridge/bridge/secrets"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A person is somebody with a server to log in to.
type person struct {
	*testing.T
	fake *logintest.Server
	dir  string
}

func newPerson(t *testing.T, odd func(*logintest.Server)) *person {
	p := &person{t, logintest.New(t), t.TempDir()}
	p.fake.Lifetime = time.Hour
	if odd != nil {
		odd(p.fake)
	}
	return p
}

// client is the client of a new process.
func (p *person) client(change ...func(*login.Server)) *login.Client {
	return p.keeper(nil).Client(p.server(change...))
}

func (p *person) keeper(ring secrets.Keys) *login.Keeper {
	k := login.Open(login.Options{Dir: p.dir, Keyring: ring, Now: p.fake.Now})
	p.Cleanup(k.Close)
	return k
}

func (p *person) server(change ...func(*login.Server)) login.Server {
	s := login.Server{Name: "linear", URL: p.fake.URL}
	for _, f := range change {
		f(&s)
	}
	return s
}

const redirect = "http://127.0.0.1:1/callback"

// logIn logs in without a port of our own.
func (p *person) logIn(c *login.Client) (login.Info, error) {
	p.Helper()
	a, err := c.Begin(p.Context(), redirect)
	if err != nil {
		return login.Info{}, err
	}
	return a.Finish(p.Context(), p.fake.Browse(p, a.Link()))
}

func (p *person) mustLogIn(c *login.Client) login.Info {
	p.Helper()
	info, err := p.logIn(c)
	if err != nil {
		p.Fatal(err)
	}
	return info
}

// ask makes a request to the server with the client's token.
func (p *person) ask(c *login.Client, body string) (status int, header http.Header, token string, err error) {
	p.Helper()
	token, err = c.Token(p.Context())
	if err != nil {
		return 0, nil, token, err
	}
	req, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.fake.URL, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		p.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return resp.StatusCode, resp.Header, token, nil
}

func (p *person) wantStatus(c *login.Client, want int) {
	p.Helper()
	if status, _, _, err := p.ask(c, "{}"); err != nil || status != want {
		p.Errorf("the server answers %d (%v), want %d", status, err, want)
	}
}

func needed(t *testing.T, err error, with string) {
	t.Helper()
	var n *login.Needed
	if !errors.As(err, &n) || !strings.HasSuffix(err.Error(), ": run codemode-bridge servers login linear") || !strings.Contains(err.Error(), with) {
		t.Errorf("the error is %v, want a needed login (%s)", err, with)
	}
}

func TestLogin(t *testing.T) {
	p := newPerson(t, nil)
	c := p.client()
	if token, err := c.Token(t.Context()); token != "" || err != nil || c.Ready() {
		t.Fatalf("before the login there is a token %q, %v", token, err)
	}
	status, header, token, _ := p.ask(c, "{}")
	again, err := c.Refused(t.Context(), token, status, header)
	needed(t, err, "the server needs a login")
	if again || c.Ready() {
		t.Error("the request would be sent again")
	}
	other := p.client() // in another process
	info := p.mustLogIn(other)
	if !c.Ready() {
		t.Error("the login of another process is not noticed")
	}
	p.wantStatus(c, http.StatusOK)
	if want := p.fake.Now().Add(time.Hour); !info.Renews || !slices.Equal(info.Scopes, []string{"read"}) || info.Expires.Sub(want).Abs() > time.Minute {
		t.Errorf("the login is %+v", info)
	}
	registered, asked := p.fake.Requests("/register"), p.fake.Requests("/authorize")
	if len(registered) != 1 || len(asked) != 1 || asked[0].Form.Get("resource") != p.fake.URL || p.fake.Requests("/token")[0].Form.Get("resource") != p.fake.URL {
		t.Errorf("asked %v", asked)
	}
	// The next login uses the same client.
	p.mustLogIn(other)
	if n := len(p.fake.Requests("/register")); n != 1 {
		t.Errorf("registered %d times", n)
	}
	files, _ := filepath.Glob(filepath.Join(p.dir, "*.json"))
	if len(files) != 1 {
		t.Fatalf("the folder has %v", files)
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
		t.Errorf("the file is %v, %v", st.Mode(), err)
	}
}

// What is sent with a login, such as a header of the configuration and the secret
// of a client, stays at the origin that it is for, whatever a redirect wants.
func TestRedirectsCarryNoSecrets(t *testing.T) {
	var mu sync.Mutex
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		stolen = append(stolen, r.Method+" "+r.Header.Get("X-Api-Key")+" "+r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	away := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, http.StatusFound) }
	for path, instead := range map[string]map[string]http.HandlerFunc{
		"/mcp": {"/mcp": away}, "/token": {"/token": away},
	} {
		p := newPerson(t, func(f *logintest.Server) {
			f.Clients = map[string]string{"ours": "client-secret"}
			f.Instead = instead
		})
		c := p.client(func(s *login.Server) {
			s.Headers = map[string]string{"X-Api-Key": "api-secret"}
			s.ClientID, s.ClientSecret, s.Credentials = "ours", "client-secret", true
		})
		if token, err := c.Token(t.Context()); err == nil && path == "/token" {
			t.Errorf("%s: there is a token, %q", path, token)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(stolen) > 0 {
		t.Errorf("another origin was sent %q", stolen)
	}
}

// Every server here is odd in one way. Most are refused, with a reason; some must
// be let through.
func TestOddServers(t *testing.T) {
	elsewhere := func(t *testing.T) string {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			t.Errorf("%s was reached", r.URL)
		}))
		t.Cleanup(web.Close)
		return web.URL
	}
	const resourceAt, issuerAt = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"
	document := func(s *logintest.Server, path string, edit func(map[string]any)) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			doc := map[string]any{
				"issuer": s.Issuer, "authorization_endpoint": s.Issuer + "/authorize", "token_endpoint": s.Issuer + "/token", "registration_endpoint": s.Issuer + "/register",
				"code_challenge_methods_supported": []string{"S256"},
			}
			if edit != nil {
				edit(doc)
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(doc)
		}
	}
	set := func(key string, value any) func(map[string]any) { return func(doc map[string]any) { doc[key] = value } }
	text := func(s string) *string { return &s }
	for _, row := range []struct {
		what  string
		odd   func(*testing.T, *logintest.Server)
		wrong string // is in the error; empty: the login succeeds
	}{
		{"nothing", func(*testing.T, *logintest.Server) {}, ""},
		{"no challenge", func(_ *testing.T, s *logintest.Server) { s.Challenge = text("") }, ""},
		{"a challenge of another kind", func(_ *testing.T, s *logintest.Server) { s.Challenge = text(`Basic realm="x"`) }, ""},
		{"a challenge that cannot be read", func(_ *testing.T, s *logintest.Server) { s.Challenge = text(`Bearer "`) }, ""},
		{"the server without metadata", func(_ *testing.T, s *logintest.Server) {
			s.Challenge, s.Instead[resourceAt] = text("Bearer"), http.NotFound
		}, ""},
		{"no metadata at all", func(_ *testing.T, s *logintest.Server) {
			s.Challenge, s.Instead[resourceAt], s.Instead[issuerAt] = text("Bearer"), http.NotFound, http.NotFound
		}, "has no metadata"},
		{"a server that wants no login", func(_ *testing.T, s *logintest.Server) {
			s.Instead["/mcp"] = func(http.ResponseWriter, *http.Request) {}
			s.Instead[resourceAt], s.Instead[issuerAt] = http.NotFound, http.NotFound
		}, "the server wants no login"},
		{"the resource is the origin", func(_ *testing.T, s *logintest.Server) { s.Resource = set("resource", s.Issuer) }, ""},
		{"the resource is elsewhere", func(_ *testing.T, s *logintest.Server) { s.Resource = set("resource", "https://other.example/mcp") }, "of another resource"},
		{"the resource is beside it", func(_ *testing.T, s *logintest.Server) { s.Resource = set("resource", s.Issuer+"/mc") }, "of another resource"},
		{"no resource", func(_ *testing.T, s *logintest.Server) { s.Resource = set("resource", "") }, "of another resource"},
		{"no authorization server", func(_ *testing.T, s *logintest.Server) { s.Resource = set("authorization_servers", []string{}) }, "names no authorization server"},
		{"its authorization server is a script", func(_ *testing.T, s *logintest.Server) {
			s.Resource = set("authorization_servers", []string{"javascript:alert(1)"})
		}, "an address has the character '('"},
		{"its authorization server is on a private address", func(_ *testing.T, s *logintest.Server) {
			s.Resource = set("authorization_servers", []string{"https://10.0.0.1"})
		}, "it leads to 10.0.0.1:443, a private address"},
		{"its authorization server is a cloud's metadata", func(_ *testing.T, s *logintest.Server) {
			s.Resource = set("authorization_servers", []string{"https://169.254.169.254/latest"})
		}, "a link-local address"},
		{"its authorization server is not https", func(_ *testing.T, s *logintest.Server) {
			s.Resource = set("authorization_servers", []string{"http://auth.example"})
		}, "is not https"},
		{"the metadata is that of another issuer", func(_ *testing.T, s *logintest.Server) { s.Metadata = set("issuer", "https://other.example") }, "is that of another: https://other.example"},
		{"the issuer has one more slash", func(_ *testing.T, s *logintest.Server) { s.Metadata = set("issuer", s.Issuer+"/") }, ""},
		{"only OpenID Connect", func(_ *testing.T, s *logintest.Server) {
			s.Instead[issuerAt] = http.NotFound
			s.Instead["/.well-known/openid-configuration"] = document(s, "", nil)
		}, ""},
		{"the issuer has a path", func(_ *testing.T, s *logintest.Server) {
			s.Resource = set("authorization_servers", []string{s.Issuer + "/tenant"})
			s.Instead[issuerAt+"/tenant"] = document(s, "", set("issuer", s.Issuer+"/tenant"))
		}, ""},
		{"OpenID Connect below the issuer's path", func(_ *testing.T, s *logintest.Server) {
			s.Resource = set("authorization_servers", []string{s.Issuer + "/tenant"})
			s.Instead["/tenant/.well-known/openid-configuration"] = document(s, "", set("issuer", s.Issuer+"/tenant"))
		}, ""},
		{"the metadata breaks in one place and is in another", func(_ *testing.T, s *logintest.Server) {
			s.Instead[issuerAt] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
			s.Instead["/.well-known/openid-configuration"] = document(s, "", nil)
		}, ""},
		{"no PKCE", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = func(doc map[string]any) { delete(doc, "code_challenge_methods_supported") }
		}, "does not announce PKCE"},
		{"PKCE in plain only", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = set("code_challenge_methods_supported", []string{"plain"})
		}, "does not announce PKCE"},
		{"a login that is a program", func(_ *testing.T, s *logintest.Server) { s.Metadata = set("authorization_endpoint", "file:///bin/sh") }, "must begin with https://"},
		{"a login with a shell's words", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = set("authorization_endpoint", s.Issuer+"/$(touch x)")
		}, "an address has the character '$'"},
		{"a login with a quote", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = set("authorization_endpoint", s.Issuer+`/?x="&calc`)
		}, `an address has the character '"'`},
		{"a login that looks like a flag", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = set("authorization_endpoint", "--incognito")
		}, "must begin with https://"},
		{"no login page", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = func(doc map[string]any) { delete(doc, "authorization_endpoint") }
		}, "authorization_endpoint"},
		{"tokens on a private address", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = set("token_endpoint", "https://192.168.0.1/token")
		}, "a private address"},
		{"registration on a private address", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = set("registration_endpoint", "https://[fd00::1]/register")
		}, "a private address"},
		{"no registration", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = func(doc map[string]any) { delete(doc, "registration_endpoint") }
		}, "registers nobody by itself"},
		{"registration that is refused", func(_ *testing.T, s *logintest.Server) {
			s.Instead["/register"] = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error":"invalid_client_metadata","error_description":"\u001b[31mno"}`))
			}
		}, `invalid_client_metadata: \u{1B}`},
		{"registration without an id", func(_ *testing.T, s *logintest.Server) { s.Registration = set("client_id", "") }, "no client id"},
		{"registration for a method that we lack", func(_ *testing.T, s *logintest.Server) {
			s.Registration = set("token_endpoint_auth_method", "private_key_jwt")
		}, "private_key_jwt"},
		{"registration for a secret that is not there", func(_ *testing.T, s *logintest.Server) {
			s.Registration = set("token_endpoint_auth_method", "client_secret_post")
		}, "no client secret"},
		{"only clients with a secret", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = set("token_endpoint_auth_methods_supported", []string{"client_secret_basic"})
		}, ""},
		{"only clients with a secret in the form", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = set("token_endpoint_auth_methods_supported", []string{"client_secret_post"})
		}, ""},
		{"metadata that leads on within the server", func(_ *testing.T, s *logintest.Server) {
			s.Instead[resourceAt] = http.RedirectHandler("/.well-known/moved", http.StatusFound).ServeHTTP
			s.Instead["/.well-known/moved"] = document(s, "", func(doc map[string]any) {
				doc["resource"], doc["authorization_servers"] = s.URL, []string{s.Issuer}
			})
		}, ""},
		{"metadata that leads to another port of this machine", func(t *testing.T, s *logintest.Server) {
			s.Instead[resourceAt] = http.RedirectHandler(elsewhere(t)+"/x", http.StatusFound).ServeHTTP
		}, "a loopback address, which this server may not name"},
		{"metadata that leads to a cloud's metadata", func(_ *testing.T, s *logintest.Server) {
			s.Instead[issuerAt] = http.RedirectHandler("https://169.254.169.254/", http.StatusFound).ServeHTTP
			s.Instead["/.well-known/openid-configuration"] = s.Instead[issuerAt]
		}, "a link-local address"},
		{"metadata that leads to a file", func(_ *testing.T, s *logintest.Server) {
			s.Instead[resourceAt] = http.RedirectHandler("file:///etc/passwd", http.StatusFound).ServeHTTP
		}, "must begin with https://"},
		{"metadata that leads in circles", func(_ *testing.T, s *logintest.Server) {
			s.Instead[resourceAt] = http.RedirectHandler(resourceAt, http.StatusFound).ServeHTTP
		}, "more than 3 redirects"},
		{"a token endpoint that leads on", func(t *testing.T, s *logintest.Server) {
			s.Instead["/token"] = http.RedirectHandler(elsewhere(t), http.StatusTemporaryRedirect).ServeHTTP
		}, "HTTP status 307"},
		{"a registration that leads on", func(t *testing.T, s *logintest.Server) {
			s.Instead["/register"] = http.RedirectHandler(elsewhere(t), http.StatusTemporaryRedirect).ServeHTTP
		}, "HTTP status 307"},
		{"metadata without end", func(_ *testing.T, s *logintest.Server) { s.Resource = set("x", strings.Repeat("x", 2<<20)) }, "larger than"},
		{"metadata that is a page", func(_ *testing.T, s *logintest.Server) {
			s.Instead[resourceAt] = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
		}, "the answer is not JSON"},
		{"metadata that is a list", func(_ *testing.T, s *logintest.Server) {
			s.Instead[resourceAt] = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte("[]"))
			}
		}, "not the JSON object"},
		{"a token of another type", func(_ *testing.T, s *logintest.Server) { s.Token = set("token_type", "DPoP") }, "not a bearer token"},
		{"no token", func(_ *testing.T, s *logintest.Server) { s.Token = set("access_token", "") }, "no token"},
		{"a token with a line break", func(_ *testing.T, s *logintest.Server) { s.Token = set("access_token", "a\r\nX-Evil: 1") }, "no token that can be used"},
		{"a lifetime as a text", func(_ *testing.T, s *logintest.Server) { s.Token = set("expires_in", "3600") }, ""},
		{"a lifetime in words", func(_ *testing.T, s *logintest.Server) { s.Token = set("expires_in", "soon") }, "no lifetime"},
		{"a lifetime without end", func(_ *testing.T, s *logintest.Server) { s.Token = set("expires_in", 1e300) }, ""},
		{"no refresh token", func(_ *testing.T, s *logintest.Server) {
			s.Token = func(doc map[string]any) { delete(doc, "refresh_token") }
		}, ""},
		{"no state", func(_ *testing.T, s *logintest.Server) { s.Back = func(q url.Values) { q.Del("state") } }, "not the answer to the login"},
		{"another state", func(_ *testing.T, s *logintest.Server) { s.Back = func(q url.Values) { q.Set("state", "x") } }, "not the answer to the login"},
		{"two states", func(_ *testing.T, s *logintest.Server) { s.Back = func(q url.Values) { q.Add("state", "x") } }, "not the answer to the login"},
		{"no code", func(_ *testing.T, s *logintest.Server) { s.Back = func(q url.Values) { q.Del("code") } }, "without a code"},
		{"another code", func(_ *testing.T, s *logintest.Server) { s.Back = func(q url.Values) { q.Set("code", "guessed-code") } }, "invalid_grant"},
		{"the person says no", func(_ *testing.T, s *logintest.Server) {
			s.Back = func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }
		}, "the authorization server refuses: access_denied"},
		{"its own issuer, announced", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = set("authorization_response_iss_parameter_supported", true)
			s.Back = func(q url.Values) { q.Set("iss", s.Issuer) }
		}, ""},
		{"its own issuer, not announced", func(_ *testing.T, s *logintest.Server) { s.Back = func(q url.Values) { q.Set("iss", s.Issuer) } }, ""},
		{"the issuer is announced and missing", func(_ *testing.T, s *logintest.Server) {
			s.Metadata = set("authorization_response_iss_parameter_supported", true)
		}, "does not name its issuer"},
		{"mix-up: another issuer", func(_ *testing.T, s *logintest.Server) {
			s.Back = func(q url.Values) { q.Set("iss", "https://other.example") }
		}, "of another issuer: https://other.example"},
		{"mix-up: two issuers", func(_ *testing.T, s *logintest.Server) {
			s.Back = func(q url.Values) { q["iss"] = []string{s.Issuer, "https://other.example"} }
		}, "of another issuer"},
	} {
		t.Run(row.what, func(t *testing.T) {
			p := newPerson(t, func(s *logintest.Server) { row.odd(t, s) })
			c := p.client()
			_, err := p.logIn(c)
			if row.wrong == "" {
				if err != nil {
					t.Fatal(err)
				}
				p.wantStatus(c, http.StatusOK)
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.wrong) {
				t.Fatalf("the error is %v, want %q in it", err, row.wrong)
			}
			if files, _ := filepath.Glob(filepath.Join(p.dir, "*.json")); len(files) != 0 {
				t.Error("a login was kept")
			}
			for _, secret := range p.fake.Secrets() {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error has %q in it: %v", secret, err)
				}
			}
		})
	}
}

// A state is good once, for its own attempt.
func TestState(t *testing.T) {
	p := newPerson(t, nil)
	first, err := p.client().Begin(t.Context(), redirect)
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.client().Begin(t.Context(), redirect)
	if err != nil {
		t.Fatal(err)
	}
	one, two := p.fake.Browse(t, first.Link()), p.fake.Browse(t, second.Link())
	for what, wrong := range map[string]string{
		"nothing": "", "the other's answer": two, "no address of ours": "https://a.example/callback?" + strings.SplitN(one, "?", 2)[1], "words": "%zz",
	} {
		if _, err := first.Finish(t.Context(), wrong); !errors.Is(err, login.ErrOther) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := first.Finish(t.Context(), "  "+one+"\n"); err != nil {
		t.Error(err)
	}
	if _, err := first.Finish(t.Context(), one); err == nil || errors.Is(err, login.ErrOther) {
		t.Errorf("the same answer again: %v", err)
	}
	if _, err := second.Finish(t.Context(), strings.SplitN(two, "?", 2)[1]); err != nil {
		t.Errorf("the query alone: %v", err)
	}
}

func TestBound(t *testing.T) {
	p := newPerson(t, nil)
	p.mustLogIn(p.client())
	p.wantStatus(p.client(), http.StatusOK)
	for what, change := range map[string]func(*login.Server){
		"another address": func(s *login.Server) { s.URL += "/" },
		"another issuer":  func(s *login.Server) { s.Issuer = "https://other.example" },
		"another client":  func(s *login.Server) { s.ClientID = "by-hand" },
		"no person":       func(s *login.Server) { s.Credentials, s.ClientID = true, "by-hand" },
	} {
		c := p.client(change)
		if _, held := c.Stored(); held || c.Ready() {
			t.Errorf("with %s, the login still counts", what)
		}
	}
	if c := p.client(func(s *login.Server) { s.Issuer = p.fake.Issuer + "/" }); !c.Ready() {
		t.Error("with its own issuer, the login does not count")
	}
	// A file that somebody has cut or moved does not count as a login.
	files, _ := filepath.Glob(filepath.Join(p.dir, "*.json"))
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if c := p.client(); c.Ready() {
		t.Error("half a file is a login")
	}
	p.mustLogIn(p.client())
}

func TestRenewal(t *testing.T) {
	p := newPerson(t, nil)
	c := p.client()
	p.mustLogIn(c)
	p.fake.Advance(59*time.Minute + 45*time.Second) // it is renewed before it ends
	p.wantStatus(c, http.StatusOK)
	p.fake.Advance(3 * time.Hour)
	p.wantStatus(c, http.StatusOK)
	if n := len(p.fake.Requests("/token")); n != 3 {
		t.Errorf("asked for tokens %d times, want 3", n)
	}
	for _, r := range p.fake.Requests("/token") {
		if r.Form.Get("resource") != p.fake.URL {
			t.Errorf("asked for a token without the resource: %v", r.Form.Get("grant_type"))
		}
	}
	// One that the server refuses before its time is renewed as well.
	p.fake.Expired()
	status, header, token, _ := p.ask(c, "{}")
	again, err := c.Refused(t.Context(), token, status, header)
	if !again || err != nil {
		t.Errorf("after a refusal: %v, %v", again, err)
	}
	p.wantStatus(c, http.StatusOK)
	// One that cannot be renewed needs a login, and is not tried again.
	p.fake.Revoked()
	status, header, token, _ = p.ask(c, "{}")
	again, err = c.Refused(t.Context(), token, status, header)
	needed(t, err, "invalid_grant")
	before := len(p.fake.Requests("/token"))
	for range 3 {
		_, err := c.Token(t.Context())
		needed(t, err, "")
	}
	if again || c.Ready() || len(p.fake.Requests("/token")) != before {
		t.Error("it is tried again")
	}
	p.mustLogIn(c)
	p.wantStatus(c, http.StatusOK)
}

// No login is lost while an authorization server fails for a while.
func TestRenewalFails(t *testing.T) {
	p := newPerson(t, nil)
	c := p.client()
	p.mustLogIn(c)
	p.fake.Do(func() {
		p.fake.Instead["/token"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	})
	p.fake.Advance(59*time.Minute + 45*time.Second)
	p.wantStatus(c, http.StatusOK) // it still holds
	p.fake.Advance(time.Hour)
	_, err := c.Token(t.Context())
	var n *login.Needed
	if err == nil || errors.As(err, &n) || !strings.Contains(err.Error(), "HTTP status 502") {
		t.Errorf("the error is %v", err)
	}
	p.fake.Do(func() { delete(p.fake.Instead, "/token") })
	p.wantStatus(c, http.StatusOK)
}

// However many ask at once, in however many processes, a refresh token is used
// once: the authorization server takes a second use for theft.
func TestRenewalRace(t *testing.T) {
	p := newPerson(t, nil)
	p.mustLogIn(p.client())
	var clients []*login.Client
	for range 4 {
		clients = append(clients, p.client())
	}
	for round := range 3 {
		p.fake.Advance(2 * time.Hour)
		tokens := make([]string, 24)
		var all sync.WaitGroup
		for i := range tokens {
			all.Go(func() {
				token, err := clients[i%len(clients)].Token(t.Context())
				if err != nil {
					t.Error(err)
				}
				tokens[i] = token
			})
		}
		all.Wait()
		if len(slices.Compact(slices.Clone(tokens))) != 1 {
			t.Error("they have different tokens")
		}
		if n := len(p.fake.Requests("/token")); n != round+2 {
			t.Errorf("asked for tokens %d times, want %d", n, round+2)
		}
	}
	// The same with a token that the server refuses.
	p.fake.Expired()
	status, header, token, _ := p.ask(clients[0], "{}")
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			if again, err := clients[i%len(clients)].Refused(t.Context(), token, status, header); !again || err != nil {
				t.Errorf("%v, %v", again, err)
			}
		})
	}
	all.Wait()
	if n := len(p.fake.Requests("/token")); n != 5 {
		t.Errorf("asked for tokens %d times, want 5", n)
	}
	p.wantStatus(clients[3], http.StatusOK)
}

// A renewal is kept even if nobody waits for it any more.
func TestRenewalOutlivesItsCaller(t *testing.T) {
	p := newPerson(t, nil)
	c := p.client()
	p.mustLogIn(c)
	asked, answer := make(chan struct{}), make(chan struct{})
	p.fake.Do(func() {
		p.fake.Instead["/token"] = func(w http.ResponseWriter, r *http.Request) {
			close(asked)
			<-answer
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"access_token":"the-new-one","token_type":"bearer","refresh_token":"the-next-one"}`))
		}
	})
	p.fake.Advance(2 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := c.Token(ctx)
		gone <- err
	}()
	<-asked
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller gets %v", err)
	}
	close(answer)
	if token, err := c.Token(t.Context()); token != "the-new-one" || err != nil {
		t.Errorf("then it is %q, %v", token, err)
	}
}

func TestStepUp(t *testing.T) {
	p := newPerson(t, func(s *logintest.Server) { s.Needs = "write" })
	c := p.client()
	p.mustLogIn(c)
	status, header, token, _ := p.ask(c, `{"method":"tools/call"}`)
	again, err := c.Refused(t.Context(), token, status, header)
	needed(t, err, "with more rights (write)")
	if again || status != http.StatusForbidden {
		t.Errorf("%d, again %v", status, again)
	}
	p.wantStatus(c, http.StatusOK) // for all else it is good
	info := p.mustLogIn(p.client())
	if !slices.Equal(info.Scopes, []string{"read", "write"}) {
		t.Errorf("the scopes are %v", info.Scopes)
	}
	if status, _, _, err := p.ask(c, `{"method":"tools/call"}`); status != http.StatusOK || err != nil {
		t.Errorf("then %d, %v", status, err)
	}
	// Another refusal is not about a login.
	if again, err := c.Refused(t.Context(), token, http.StatusForbidden, http.Header{}); again || err != nil {
		t.Errorf("%v, %v", again, err)
	}
}

func TestConfiguredClient(t *testing.T) {
	for secret, methods := range map[string][]string{
		"s3cret:with %&": {"client_secret_basic"}, "s3cret: with %&": {"client_secret_post"}, "s3cret": nil, "": {"none"},
	} {
		p := newPerson(t, func(s *logintest.Server) {
			s.Clients = map[string]string{"by hand": secret}
			s.Metadata = func(doc map[string]any) {
				delete(doc, "registration_endpoint")
				if delete(doc, "token_endpoint_auth_methods_supported"); methods != nil {
					doc["token_endpoint_auth_methods_supported"] = methods
				}
			}
		})
		c := p.client(func(s *login.Server) { s.ClientID, s.ClientSecret, s.Scopes = "by hand", secret, []string{"a", "b"} })
		info := p.mustLogIn(c)
		p.fake.Advance(2 * time.Hour)
		p.wantStatus(c, http.StatusOK)
		if !slices.Equal(info.Scopes, []string{"a", "b"}) {
			t.Errorf("the scopes are %v", info.Scopes)
		}
		for name, text := range files(t, p.dir) {
			if secret != "" && strings.Contains(text, secret) {
				t.Errorf("%s has the configuration's secret", name)
			}
		}
	}
}

func TestCredentials(t *testing.T) {
	p := newPerson(t, func(s *logintest.Server) {
		s.Clients = map[string]string{"robot": "robot-secret"}
		s.Metadata = func(doc map[string]any) { // nobody can log in there
			delete(doc, "authorization_endpoint")
			delete(doc, "code_challenge_methods_supported")
		}
	})
	robot := func(s *login.Server) {
		s.ClientID, s.ClientSecret, s.Credentials, s.Scopes = "robot", "robot-secret", true, []string{"read"}
	}
	c := p.client(robot)
	p.wantStatus(c, http.StatusOK)
	p.wantStatus(p.client(robot), http.StatusOK)
	if n := len(p.fake.Requests("/token")); n != 1 {
		t.Errorf("asked for tokens %d times", n)
	}
	p.fake.Advance(2 * time.Hour)
	p.wantStatus(c, http.StatusOK)
	p.fake.Expired()
	status, header, token, _ := p.ask(c, "{}")
	if again, err := c.Refused(t.Context(), token, status, header); !again || err != nil {
		t.Errorf("after a refusal: %v, %v", again, err)
	}
	p.wantStatus(c, http.StatusOK)
	if _, err := c.Begin(t.Context(), redirect); err == nil {
		t.Error("a person can log in")
	}
	wrong := p.client(robot, func(s *login.Server) { s.ClientSecret, s.Scopes = "another-secret", nil })
	_, err := wrong.Token(t.Context())
	var lasting interface{ NeedsLogin() }
	if !errors.As(err, &lasting) || !strings.Contains(err.Error(), "invalid_client") || strings.Contains(err.Error(), "another-secret") {
		t.Errorf("with a wrong secret: %v", err)
	}
}

func TestLogout(t *testing.T) {
	p := newPerson(t, nil)
	c := p.client()
	if _, _, err := c.Logout(t.Context()); !errors.Is(err, login.ErrNoLogin) {
		t.Errorf("without a login: %v", err)
	}
	p.mustLogIn(c)
	running := p.client()
	p.wantStatus(running, http.StatusOK)
	old, _ := running.Token(t.Context())
	if revoked, why, err := c.Logout(t.Context()); !revoked || why != nil || err != nil {
		t.Errorf("%v, %v, %v", revoked, why, err)
	}
	p.wantStatus(running, http.StatusUnauthorized) // it has no token any more
	req, _ := http.NewRequest(http.MethodPost, p.fake.URL, nil)
	req.Header.Set("Authorization", "Bearer "+old)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the token is still good: %d", resp.StatusCode)
	}
	// What cannot be revoked is deleted all the same.
	p.mustLogIn(c)
	p.fake.Do(func() { p.fake.Instead["/revoke"] = http.NotFound })
	if revoked, why, err := c.Logout(t.Context()); revoked || why == nil || err != nil {
		t.Errorf("%v, %v, %v", revoked, why, err)
	}
	p.fake.Do(func() { p.fake.Metadata = func(doc map[string]any) { delete(doc, "revocation_endpoint") } })
	p.mustLogIn(c)
	if revoked, why, err := c.Logout(t.Context()); revoked || why != nil || err != nil {
		t.Errorf("%v, %v, %v", revoked, why, err)
	}
	for name, text := range files(t, p.dir) {
		if text != "" {
			t.Errorf("%s has %q", name, text)
		}
	}
}

// The secret that is configured now is not sent to the authorization server of an
// older login.
func TestLogoutOfAnotherIssuer(t *testing.T) {
	p := newPerson(t, func(s *logintest.Server) { s.Clients = map[string]string{"by hand": "first-secret"} })
	first := func(s *login.Server) { s.ClientID, s.ClientSecret = "by hand", "first-secret" }
	for what, change := range map[string]func(*login.Server){
		"another issuer": func(s *login.Server) { s.ClientSecret, s.Issuer = "canary-secret", "https://other.example" },
		"another client": func(s *login.Server) { s.ClientSecret, s.ClientID = "canary-secret", "another" },
	} {
		p.mustLogIn(p.client(first))
		if revoked, why, err := p.client(first, change).Logout(t.Context()); revoked || why == nil || err != nil {
			t.Errorf("%s: %v, %v, %v", what, revoked, why, err)
		}
		if n := len(p.fake.Requests("/revoke")); n != 0 {
			t.Errorf("%s: %d tokens were revoked", what, n)
		}
		if _, held := p.client(first).Stored(); held {
			t.Errorf("%s: the login is still there", what)
		}
	}
	p.mustLogIn(p.client(first))
	if revoked, why, err := p.client(first).Logout(t.Context()); !revoked || why != nil || err != nil {
		t.Errorf("its own: %v, %v, %v", revoked, why, err)
	}
}

// If the client is configured and the issuer is not, no other authorization server
// gets a code of the one that knows the client.
func TestMixUpWithAConfiguredClient(t *testing.T) {
	honest := logintest.New(t)
	honest.Clients = map[string]string{"by hand": "s3cret-s3cret"}
	byHand := func(s *login.Server) { s.ClientID, s.ClientSecret = "by hand", "s3cret-s3cret" }
	for _, endpoint := range []string{"authorization_endpoint", "token_endpoint"} {
		p := newPerson(t, func(s *logintest.Server) {
			s.Clients = honest.Clients
			s.Metadata = func(doc map[string]any) { doc[endpoint] = honest.Issuer + "/authorize" }
		})
		if _, err := p.client(byHand).Begin(t.Context(), redirect); err == nil || !strings.Contains(err.Error(), "has its "+endpoint+" elsewhere, at "+honest.Issuer) {
			t.Errorf("%s: %v", endpoint, err)
		}
		for what, change := range map[string]func(*login.Server){
			"with the issuer":         func(s *login.Server) { byHand(s); s.Issuer = p.fake.Issuer },
			"with a client of no one": func(*login.Server) {},
		} {
			if _, err := p.client(change).Begin(t.Context(), redirect); err != nil && strings.Contains(err.Error(), "elsewhere") {
				t.Errorf("%s, %s: %v", endpoint, what, err)
			}
		}
	}
	// The server names another one than before.
	p := newPerson(t, func(s *logintest.Server) { s.Clients = honest.Clients })
	p.mustLogIn(p.client(byHand))
	p.mustLogIn(p.client(byHand)) // the same again
	p.fake.Do(func() {
		p.fake.Resource = func(doc map[string]any) { doc["authorization_servers"] = []string{p.fake.Issuer + "/tenant"} }
		p.fake.Instead["/.well-known/oauth-authorization-server/tenant"] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{
				"issuer": p.fake.Issuer + "/tenant", "authorization_endpoint": p.fake.Issuer + "/authorize", "token_endpoint": p.fake.Issuer + "/token",
				"code_challenge_methods_supported": []string{"S256"},
			})
		}
	})
	if _, err := p.client(byHand).Begin(t.Context(), redirect); err == nil || !strings.Contains(err.Error(), "another authorization server than at the last login") {
		t.Errorf("another issuer than before: %v", err)
	}
	p.mustLogIn(p.client(byHand, func(s *login.Server) { s.Issuer = p.fake.Issuer + "/tenant" }))
}

// A server that asks for ever more rights does not fill the disk.
func TestWantedRightsAreBounded(t *testing.T) {
	p := newPerson(t, nil)
	c := p.client()
	p.mustLogIn(c)
	size := func() (n int) {
		for _, text := range files(t, p.dir) {
			n += len(text)
		}
		return n
	}
	before := size()
	for i := range 40 {
		scopes := make([]string, 5)
		for j := range scopes {
			scopes[j] = fmt.Sprintf("s%d-%d-%s", i, j, strings.Repeat("x", 30*i))
		}
		header := http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="` + strings.Join(scopes, " ") + `"`}}
		_, err := c.Refused(t.Context(), "a token", http.StatusForbidden, header)
		needed(t, err, "with more rights")
	}
	if grown := size() - before; grown < 1<<10 || grown > 8<<10 {
		t.Errorf("the login's file has grown by %d bytes", grown)
	}
	a, err := p.client().Begin(t.Context(), redirect)
	if err != nil || !strings.Contains(a.Link(), "s0-0-") {
		t.Errorf("the next login does not ask for the first of them: %v", err)
	}
}

// files are the files in a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

// A ring is a keyring in memory.
type ring struct {
	mu      sync.Mutex
	secrets map[string]string
	broken  error
	full    error // what it says to more secrets
}

func (r *ring) Set(name, secret string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full != nil {
		return r.full
	}
	r.secrets[name] = secret
	return nil
}

func (r *ring) Get(name string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if secret, ok := r.secrets[name]; ok || r.broken != nil {
		return secret, r.broken
	}
	return "", errors.New("there is no such secret")
}

func (r *ring) Delete(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken == nil {
		delete(r.secrets, name)
	}
	return r.broken
}

func TestKeyring(t *testing.T) {
	p := newPerson(t, nil)
	r := &ring{secrets: map[string]string{}}
	c := p.keeper(r).Client(p.server())
	if info := p.mustLogIn(c); !info.Keyring {
		t.Error("it is not in the keyring")
	}
	p.fake.Advance(2 * time.Hour)
	p.wantStatus(c, http.StatusOK)
	for name, text := range files(t, p.dir) {
		for _, secret := range p.fake.Secrets() {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s", name, secret)
			}
		}
	}
	p.wantStatus(p.keeper(r).Client(p.server()), http.StatusOK)
	if _, err := p.client().Token(t.Context()); err == nil {
		t.Error("without the keyring, there is a login")
	}
	r.broken = errors.New("it is locked")
	_, err := p.keeper(r).Client(p.server()).Token(t.Context())
	if err == nil || !strings.Contains(err.Error(), "it is locked") {
		t.Errorf("with a locked keyring: %v", err)
	}
	r.broken, r.full = nil, errors.New("it is full") // so that goes into the file
	p.fake.Advance(2 * time.Hour)
	p.wantStatus(c, http.StatusOK)
	p.wantStatus(p.client(), http.StatusOK)
	if _, _, err := c.Logout(t.Context()); err != nil {
		t.Error(err)
	}
	if len(r.secrets) != 0 {
		t.Errorf("the keyring still has %d secrets", len(r.secrets))
	}
}

// No error, and nothing that is said of a login, has a secret in it, whatever the
// servers repeat.
func TestNothingLeaks(t *testing.T) {
	p := newPerson(t, func(s *logintest.Server) {
		s.Metadata = func(doc map[string]any) {
			doc["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
		}
	})
	k := p.keeper(nil)
	c := k.Client(p.server())
	info := p.mustLogIn(c)
	said := fmt.Sprintf("%+v", info)
	note := func(err error) {
		if err == nil {
			t.Error("there is no error")
		}
		said += fmt.Sprintf("\n%v\n%+v\n%#v", err, err, err)
	}
	p.fake.Do(func() { // a refusal that repeats all that it was sent
		p.fake.Instead["/token"] = func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "temporarily_unavailable", "error_description": r.PostForm.Encode()})
		}
	})
	p.fake.Advance(2 * time.Hour)
	_, err := c.Token(t.Context())
	note(err)
	a, err := c.Begin(t.Context(), redirect)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Finish(t.Context(), p.fake.Browse(t, a.Link()))
	note(err)
	for _, secret := range p.fake.Secrets() {
		if strings.Contains(said, secret) {
			t.Errorf("%s is said: %s", secret, said)
		}
	}
	for _, secret := range append(p.fake.Secrets()[:1], p.fake.Secrets()[2:4]...) {
		if text := k.Hide("x " + secret + " y"); text != "x [hidden] y" {
			t.Errorf("hidden, it is %q", text)
		}
	}
}

// The browser comes back to a port of this machine.
func TestCallback(t *testing.T) {
	p := newPerson(t, nil)
	back, err := login.Listen(false)
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.client().Begin(t.Context(), back.URL())
	if err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		info login.Info
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		info, err := back.Wait(t.Context(), a)
		done <- outcome{info, err}
	}()
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(method, address, host string) int {
		req, err := http.NewRequest(method, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	home := p.fake.Browse(t, a.Link())
	for _, row := range []struct {
		method, address, host string
		want                  int
	}{
		{"GET", back.URL(), "", 400},
		{"GET", back.URL() + "?state=" + rand.Text() + "&code=x", "", 400},
		{"GET", strings.Replace(home, "/callback", "/other", 1), "", 404},
		{"POST", home, "", 404},
		{"GET", home, "rebound.example", 404},
		{"GET", home, "", 200},
	} {
		if got := get(row.method, row.address, row.host); got != row.want {
			t.Errorf("%s %s for %q: %d, want %d", row.method, strings.SplitN(row.address, "?", 2)[0], row.host, got, row.want)
		}
	}
	if o := <-done; o.err != nil || !o.info.Renews {
		t.Errorf("%+v", o)
	}
	// The port is closed, and the next login asks for it again.
	c := p.client()
	again, err := login.Listen(true, c.Redirect())
	if err != nil || again.URL() != back.URL() {
		t.Fatalf("%v", err)
	}
	if _, err := login.Listen(true, c.Redirect()); err == nil {
		t.Error("a port that is taken is opened")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err = c.Begin(t.Context(), again.URL()); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Wait(ctx, a); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody came: %v", err)
	}
}

func TestOpenBrowserRefuses(t *testing.T) {
	for _, link := range []string{"--help", "file:///bin/sh", "https://a.example/$(id)", "http://a.example/", ""} {
		if err := login.OpenBrowser(link); err == nil {
			t.Errorf("%q is opened", link)
		}
	}
}
