package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// resource is the bridge in these tests.
const resource = "https://bridge.example/mcp"

// A fake is an issuer on a port of this machine, whose tokens the tests make.
type fake struct {
	*httptest.Server
	t   *testing.T
	now atomic.Pointer[time.Time]

	mu       sync.Mutex
	keys     []jose.JSONWebKey // that it publishes
	metadata map[string]any    // that it says besides, or instead
	down     bool
	plain    bool              // its metadata are where RFC 8414 has them, not OpenID Connect
	asked    map[string]int    // by path
	opaque   map[string]claims // that it knows
	hold     chan struct{}     // introspection answers once it is closed, if not nil
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, asked: map[string]int{}, opaque: map[string]claims{}}
	now := time.Now()
	f.now.Store(&now)
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[r.URL.Path]++
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			f.t.Error(err)
		}
	}
	at := "/.well-known/openid-configuration"
	if f.plain {
		at = "/.well-known/oauth-authorization-server"
	}
	switch {
	case f.down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == at:
		m := map[string]any{"issuer": f.URL, "jwks_uri": f.URL + "/keys", "introspection_endpoint": f.URL + "/introspect",
			"registration_endpoint": f.URL + "/register", "code_challenge_methods_supported": []string{"S256"}}
		maps.Copy(m, f.metadata)
		answer(m)
	case r.URL.Path == "/keys":
		answer(jose.JSONWebKeySet{Keys: f.keys})
	case r.URL.Path == "/introspect":
		if hold := f.hold; hold != nil {
			f.mu.Unlock()
			<-hold
			f.mu.Lock()
		}
		id, secret, _ := r.BasicAuth()
		if id != "the%2Fbridge" || secret != "a+secret%3A" || r.Method != http.MethodPost {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		c, ok := f.opaque[r.PostFormValue("token")]
		if !ok {
			answer(map[string]any{"active": false})
			return
		}
		answer(c)
	default:
		http.NotFound(w, r)
	}
}

// with changes the issuer.
func (f *fake) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) count(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[path]
}

func (f *fake) pass(d time.Duration) {
	now := f.now.Load().Add(d)
	f.now.Store(&now)
}

func (f *fake) options() Options {
	return Options{Issuer: f.URL, Resource: resource, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return *f.now.Load() }}
}

// A signer makes tokens with a key.
type signer struct {
	key any
	id  string
	alg jose.SignatureAlgorithm
}

func newSigner(t *testing.T, id string) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, id, jose.ES256}
}

func (s signer) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: s.key.(crypto.Signer).Public(), KeyID: s.id, Algorithm: string(s.alg), Use: "sig"}
}

// sign makes a token with claims, and headers as name and value.
func (s signer) sign(t *testing.T, c map[string]any, headers ...string) string {
	t.Helper()
	o := &jose.SignerOptions{}
	for i := 0; i < len(headers); i += 2 {
		o.WithHeader(jose.HeaderKey(headers[i]), headers[i+1])
	}
	made, err := jose.NewSigner(jose.SigningKey{Algorithm: s.alg, Key: jose.JSONWebKey{Key: s.key, KeyID: s.id}}, o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := made.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// good are the claims of a token that lets its bearer in, but for what more changes;
// nil removes a claim.
func (f *fake) good(more map[string]any) map[string]any {
	now := f.now.Load()
	c := map[string]any{"iss": f.URL, "sub": "u-4711", "aud": resource, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "email": "ann@example.com"}
	maps.Copy(c, more)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// none makes a token without a signature.
func none(t *testing.T, c map[string]any, alg string) string {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+alg+`","kid":"one"}`)) + "." + base64.RawURLEncoding.EncodeToString(text) + "."
}

// spki is a public key as a text file has it.
func spki(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func newRSA(t *testing.T, id string, bits int) signer {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, id, jose.RS256}
}

// tampered changes the last letter of a token's payload.
func tampered(token string) string {
	parts := strings.Split(token, ".")
	last := parts[1][:len(parts[1])-2] + "AA"
	if last == parts[1] {
		last = parts[1][:len(parts[1])-2] + "BB"
	}
	return parts[0] + "." + last + "." + parts[2]
}

func encoded(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
