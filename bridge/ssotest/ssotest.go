// Package ssotest is an OpenID Connect provider for tests, on a port of this
// machine. It signs somebody in without asking, and can be told to misbehave.
package ssotest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// The program under test, as the provider knows it.
const (
	ClientID     = "codemode"
	ClientSecret = "a client's secret"
)

// A Provider is the provider. Its fields may be changed between sign-ins.
type Provider struct {
	*httptest.Server
	// Claims change what the next ID tokens say; a nil value removes a claim.
	Claims map[string]any
	// Key signs them in place of the provider's own key, if not nil. Alg, if not
	// empty, is the algorithm that their header names.
	Key *ecdsa.PrivateKey
	Alg string
	// Bend changes an ID token after it was signed; nil leaves it.
	Bend func(token string) string
	// Discovery changes what the provider says of itself.
	Discovery map[string]any
	// Down makes it answer everything with 503.
	Down bool

	key *ecdsa.PrivateKey
	mu  sync.Mutex
	// open are the sign-ins whose code has not been used, by code.
	open  map[string]url.Values
	Asked int // how often its discovery document was read
}

// New starts a provider that ends with the test.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{key: NewKey(t), open: map[string]url.Values{}, Claims: map[string]any{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.Down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Server.Close)
	return p
}

// NewKey makes a key that tokens can be signed with.
func NewKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Set changes the provider while it may be in use.
func (p *Provider) Set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.Asked++
	about := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"ES256"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"authorization_response_iss_parameter_supported": true,
	}
	maps.Copy(about, p.Discovery)
	reply(w, about)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	point, err := p.key.PublicKey.Bytes() // 4, and both coordinates
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	reply(w, map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "k1",
		"x": encoded(point[1:33]), "y": encoded(point[33:])}}})
}

// authorize signs everybody in at once.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	asked := [3]string{q.Get("client_id"), q.Get("response_type"), q.Get("code_challenge_method")}
	if asked != [3]string{ClientID, "code", "S256"} || q.Get("nonce") == "" || q.Get("state") == "" {
		http.Error(w, "this is no sign-in: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.open[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token gives an ID token for a code, once, to whoever has the verifier.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	q, ok := p.open[r.FormValue("code")]
	delete(p.open, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	secret, err := url.QueryUnescape(secret)
	sent := [4]string{id, secret, encoded(sum[:]), r.FormValue("redirect_uri")}
	if !ok || err != nil || sent != [4]string{ClientID, ClientSecret, q.Get("code_challenge"), q.Get("redirect_uri")} {
		w.WriteHeader(http.StatusBadRequest)
		reply(w, map[string]any{"error": "invalid_grant"})
		return
	}
	now := time.Now()
	claims := map[string]any{"iss": p.URL, "sub": "user-1", "aud": ClientID, "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(),
		"nonce": q.Get("nonce"), "email": "ann@example.com", "email_verified": true}
	for name, value := range p.Claims {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	token := p.signed(claims)
	if p.Bend != nil {
		token = p.Bend(token)
	}
	reply(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": token})
}

func (p *Provider) signed(claims map[string]any) string {
	key, alg := p.key, "ES256"
	if p.Key != nil {
		key = p.Key
	}
	if p.Alg != "" {
		alg = p.Alg
	}
	text := encodedJSON(map[string]any{"alg": alg, "kid": "k1", "typ": "JWT"}) + "." + encodedJSON(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		panic(err) // a generated key can sign
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + encoded(signature)
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func encodedJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // claims of a test are JSON
	}
	return encoded(text)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}
