// Package logintest is a server for tests that wants a login, with the
// authorization server that gives it, on this machine. It does everything as the
// specifications say unless a test changes that, and lets everybody in who does the
// same: PKCE, redirect addresses, clients, resources and refresh tokens are
// checked, and a refresh token that is used twice ends the login.
package logintest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Server is both servers. Its fields are set before it is asked for anything, or
// by Do.
type Server struct {
	URL    string // of the MCP endpoint
	Issuer string // of the authorization server

	// Person is who sits at the browser: logins from now on are theirs. See [Server.Whose].
	Person string
	// MCP answers the requests that have a token; nil: with an empty object.
	MCP http.Handler
	// Needs is the scope that a tools/call needs; empty: none.
	Needs string
	// Lifetime of the tokens; 0: they do not expire, and nothing is said of it.
	Lifetime time.Duration
	// Clients are those that were registered by hand: secrets by id.
	Clients map[string]string

	// Each changes a document before it is sent; nil: nothing is changed.
	Resource, Metadata, Registration, Token func(map[string]any)
	// Back changes what the browser comes back with.
	Back func(url.Values)
	// Challenge replaces the header WWW-Authenticate; nil: it is as it should be,
	// empty: there is none.
	Challenge *string
	// Instead has handlers that replace ours, by path.
	Instead map[string]http.HandlerFunc

	mu      sync.Mutex
	web     *httptest.Server
	now     time.Duration // by which the clock was moved
	clients map[string]client
	codes   map[string]code
	tokens  map[string]token
	refresh map[string]refresh
	seen    []Request
	secrets []string
}

type client struct {
	secret    string
	redirects []string // nil: any on this machine
}

type code struct {
	login
	person string
	scopes []string
}

// A login is what a code was given for. Whoever wants tokens for it must know it all.
type login struct{ client, redirect, challenge, resource string }

type token struct {
	family string // all tokens that came of one login
	person string
	scopes []string
	ends   time.Time // zero: never
}

type refresh struct {
	family, person, client, resource string
	scopes                           []string
	used                             bool
}

// A Request is one that the server got.
type Request struct {
	Method, Path string
	Header       http.Header
	Form         url.Values // of the query and of a form
	Body         string
}

// New starts a Server, which ends with the test.
func New(t testing.TB) *Server {
	s := &Server{clients: map[string]client{}, codes: map[string]code{}, tokens: map[string]token{}, refresh: map[string]refresh{}, Instead: map[string]http.HandlerFunc{}}
	s.web = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.web.Close)
	s.Issuer = s.web.URL
	s.URL = s.web.URL + "/mcp"
	return s
}

// Do runs change while no request is served.
func (s *Server) Do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Advance moves the server's clock.
func (s *Server) Advance(d time.Duration) { s.Do(func() { s.now += d }) }

// Now is the server's clock, for the client to use too.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nowLocked()
}

func (s *Server) nowLocked() time.Time { return time.Now().Add(s.now) }

// Requests returns the requests so far for a path, or all for an empty one.
func (s *Server) Requests(path string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.seen), func(r Request) bool { return path != "" && r.Path != path })
}

// Secrets returns every token, code and client secret that was given out.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.secrets)
}

// Whose says who logged in for the token of a request to the MCP endpoint.
func (s *Server) Whose(r *http.Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return s.tokens[text].person
}

// Revoked forgets every token of every login.
func (s *Server) Revoked() { s.Do(func() { clear(s.tokens); clear(s.refresh) }) }

// Expired forgets every access token, and keeps the refresh tokens.
func (s *Server) Expired() { s.Do(func() { clear(s.tokens) }) }

func (s *Server) secretLocked(kind string) string {
	text := kind + "-canary-" + rand.Text()
	s.secrets = append(s.secrets, text)
	return text
}

// Browse does what a browser with a person does at the link of a login: it follows
// it and returns the address that it is sent back to.
func (s *Server) Browse(t testing.TB, link string) string {
	t.Helper()
	web := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := web.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	back := resp.Header.Get("Location")
	if back == "" {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("the login page said %d %s", resp.StatusCode, body)
	}
	return back
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	form := r.URL.Query()
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, _ = url.ParseQuery(string(body))
	}
	s.mu.Lock()
	s.seen = append(s.seen, Request{r.Method, r.URL.Path, r.Header.Clone(), form, string(body)})
	instead := s.Instead[r.URL.Path]
	s.mu.Unlock()
	if instead != nil {
		instead(w, r)
		return
	}
	switch r.URL.Path {
	case "/mcp":
		s.mcp(w, r, string(body))
	case "/.well-known/oauth-protected-resource/mcp":
		s.document(w, http.StatusOK, s.Resource, map[string]any{"resource": s.URL, "authorization_servers": []string{s.Issuer}, "scopes_supported": []string{"read"}})
	case "/.well-known/oauth-authorization-server":
		s.document(w, http.StatusOK, s.Metadata, map[string]any{
			"issuer": s.Issuer, "authorization_endpoint": s.Issuer + "/authorize", "token_endpoint": s.Issuer + "/token",
			"registration_endpoint": s.Issuer + "/register", "revocation_endpoint": s.Issuer + "/revoke",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"plain", "S256"},
			"token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic", "client_secret_post"},
		})
	case "/register":
		s.register(w, body)
	case "/authorize":
		s.authorize(w, r, form)
	case "/token":
		s.token(w, r, form)
	case "/revoke":
		s.revoke(w, form)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) document(w http.ResponseWriter, status int, edit func(map[string]any), doc map[string]any) {
	s.mu.Lock()
	if edit != nil {
		edit(doc)
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc) // the client may be gone
}

func (s *Server) mcp(w http.ResponseWriter, r *http.Request, body string) {
	text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	t, ok := s.tokens[text]
	ok = ok && (t.ends.IsZero() || s.nowLocked().Before(t.ends))
	needs, challenge, inner := s.Needs, s.Challenge, s.MCP
	s.mu.Unlock()
	refuse := func(status int, header string) {
		if challenge != nil {
			header = *challenge
		}
		if header != "" {
			w.Header().Set("WWW-Authenticate", header)
		}
		http.Error(w, "no: "+text, status) // as some do, it repeats what it got
	}
	metadata := `resource_metadata="` + s.Issuer + `/.well-known/oauth-protected-resource/mcp"`
	switch {
	case !ok:
		refuse(http.StatusUnauthorized, `Bearer realm="x", scope="read", `+metadata)
	case needs != "" && strings.Contains(body, `"tools/call"`) && !slices.Contains(t.scopes, needs):
		refuse(http.StatusForbidden, `Bearer error="insufficient_scope", scope="`+needs+`", `+metadata)
	case inner != nil:
		inner.ServeHTTP(w, r)
	default:
		s.document(w, http.StatusOK, nil, map[string]any{})
	}
}

func (s *Server) register(w http.ResponseWriter, body []byte) {
	var asked struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	if json.Unmarshal(body, &asked) != nil || len(asked.Redirects) == 0 {
		s.document(w, http.StatusBadRequest, nil, map[string]any{"error": "invalid_redirect_uri"})
		return
	}
	s.mu.Lock()
	id := "client-" + rand.Text()
	c := client{redirects: asked.Redirects}
	doc := map[string]any{"client_id": id, "redirect_uris": asked.Redirects, "token_endpoint_auth_method": asked.Method}
	if asked.Method != "none" {
		c.secret = s.secretLocked("secret")
		doc["client_secret"] = c.secret
	}
	s.clients[id] = c
	s.mu.Unlock()
	s.document(w, http.StatusCreated, s.Registration, doc)
}

// clientLocked finds a client, however it was registered.
func (s *Server) clientLocked(id string) (client, bool) {
	if secret, ok := s.Clients[id]; ok {
		return client{secret: secret}, true
	}
	c, ok := s.clients[id]
	return c, ok
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request, form url.Values) {
	s.mu.Lock()
	c, ok := s.clientLocked(form.Get("client_id"))
	redirect := form.Get("redirect_uri")
	switch {
	case !ok, form.Get("response_type") != "code", form.Get("code_challenge_method") != "S256", form.Get("state") == "",
		c.redirects != nil && !slices.Contains(c.redirects, redirect), !strings.HasPrefix(redirect, "http://127.0.0.1:"):
		s.mu.Unlock()
		http.Error(w, "this is no login: "+form.Encode(), http.StatusBadRequest)
		return
	}
	text := s.secretLocked("code")
	s.codes[text] = code{login{form.Get("client_id"), redirect, form.Get("code_challenge"), form.Get("resource")}, s.Person, strings.Fields(form.Get("scope"))}
	back := url.Values{"code": {text}, "state": {form.Get("state")}}
	if s.Back != nil {
		s.Back(back)
	}
	s.mu.Unlock()
	http.Redirect(w, r, redirect+"?"+back.Encode(), http.StatusFound)
}

// provenLocked says who the client is, and what is wrong with its proof of that.
func (s *Server) provenLocked(r *http.Request, form url.Values) (id, problem string) {
	id, secret := form.Get("client_id"), form.Get("client_secret")
	if user, password, ok := r.BasicAuth(); ok {
		id, _ = url.QueryUnescape(user)
		secret, _ = url.QueryUnescape(password)
	}
	c, ok := s.clientLocked(id)
	if !ok || c.secret != secret {
		return id, "invalid_client"
	}
	return id, ""
}

func (s *Server) token(w http.ResponseWriter, r *http.Request, form url.Values) {
	s.mu.Lock()
	id, problem := s.provenLocked(r, form)
	var t token
	resource := form.Get("resource")
	old := form.Get("refresh_token")
	switch form.Get("grant_type") {
	case "authorization_code":
		c, ok := s.codes[form.Get("code")]
		delete(s.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		sent := login{client: id, redirect: form.Get("redirect_uri"), resource: resource, challenge: base64.RawURLEncoding.EncodeToString(sum[:])}
		if problem == "" && (!ok || sent != c.login) {
			problem = "invalid_grant"
		}
		t = token{family: rand.Text(), person: c.person, scopes: c.scopes}
	case "refresh_token":
		f, ok := s.refresh[old]
		if problem == "" && (!ok || f.used || f.client != id || f.resource != resource) {
			problem = "invalid_grant"
			s.endLocked(f.family)
		} else if problem == "" {
			f.used = true
			s.refresh[old] = f
		}
		t = token{family: f.family, person: f.person, scopes: f.scopes}
	case "client_credentials":
		if problem == "" && s.Clients[id] == "" {
			problem = "unauthorized_client"
		}
		t = token{family: rand.Text(), scopes: strings.Fields(form.Get("scope"))}
	default:
		problem = "unsupported_grant_type"
	}
	if problem != "" {
		s.mu.Unlock()
		s.document(w, http.StatusBadRequest, s.Token, map[string]any{"error": problem, "error_description": "it was " + form.Encode()})
		return
	}
	doc := map[string]any{"access_token": s.secretLocked("access"), "token_type": "Bearer", "scope": strings.Join(t.scopes, " ")}
	if s.Lifetime > 0 {
		t.ends = s.nowLocked().Add(s.Lifetime)
		doc["expires_in"] = int(s.Lifetime.Seconds())
	}
	s.tokens[doc["access_token"].(string)] = t
	if form.Get("grant_type") != "client_credentials" {
		next := s.secretLocked("refresh")
		s.refresh[next] = refresh{family: t.family, person: t.person, client: id, resource: resource, scopes: t.scopes}
		doc["refresh_token"] = next
	}
	s.mu.Unlock()
	s.document(w, http.StatusOK, s.Token, doc)
}

// endLocked ends all that came of a login.
func (s *Server) endLocked(family string) {
	for text, t := range s.tokens {
		if t.family == family {
			delete(s.tokens, text)
		}
	}
	for text, f := range s.refresh {
		if f.family == family {
			delete(s.refresh, text)
		}
	}
}

func (s *Server) revoke(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := form.Get("token")
	if f, ok := s.refresh[text]; ok {
		s.endLocked(f.family)
	}
	delete(s.tokens, text)
	w.WriteHeader(http.StatusOK)
}
