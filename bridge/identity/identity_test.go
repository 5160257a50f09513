package identity

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/sandbox/racing"

	"github.com/go-jose/go-jose/v4"
)

// refusedWith checks how Verify refuses a token.
func refusedWith(t *testing.T, r *Resource, what, token string, status int, code, text string) {
	t.Helper()
	c, err := r.Verify(t.Context(), token)
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Errorf("%s: lets %+v in, error %v", what, c, err)
		return
	}
	if refusal.Status != status || refusal.Code != code || !strings.Contains(refusal.Text, text) {
		t.Errorf("%s: %d %q %q, want %d %q and %q in it", what, refusal.Status, refusal.Code, refusal.Text, status, code, text)
	}
	if c.Name != "" || c.Groups != nil {
		t.Errorf("%s: refused, but a caller is named: %+v", what, c)
	}
}

func letIn(t *testing.T, r *Resource, what, token string) Caller {
	t.Helper()
	c, err := r.Verify(t.Context(), token)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	return c
}

func TestWhichTokensLetTheirBearerIn(t *testing.T) {
	f := newFake(t)
	ec, rsa, weak, stranger := newSigner(t, "one"), newRSA(t, "two", 2048), newRSA(t, "weak", 1024), newSigner(t, "one")
	f.keys = []jose.JSONWebKey{ec.public(), rsa.public(), weak.public(), {Key: []byte(strings.Repeat("s", 32)), KeyID: "shared", Algorithm: "HS256"}}
	o := f.options()
	o.Audiences, o.Scopes, o.Groups = []string{"api://bridge"}, []string{"mcp"}, "groups"
	r := New(o)
	now := f.now.Load()
	type is = map[string]any
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	token := func(more is) string {
		c := f.good(is{"scope": "openid mcp"})
		for name, v := range more {
			if c[name] = v; v == nil {
				delete(c, name)
			}
		}
		return ec.sign(t, c)
	}
	for _, row := range []struct {
		what   string
		claims is
	}{
		{"as it should be", is{}},
		{"one of several resources", is{"aud": []string{"https://other.example", resource}}},
		{"the resource in another spelling", is{"aud": "HTTPS://Bridge.example:443/mcp/"}},
		{"the configured other name", is{"aud": "api://bridge"}},
		{"expired within the leeway", is{"exp": at(-20 * time.Second)}},
		{"begins within the leeway", is{"nbf": at(20 * time.Second), "iat": at(20 * time.Second)}},
		{"scopes as a list in scp", is{"scope": nil, "scp": []string{"x", "mcp"}}},
		{"scopes as a text in scp", is{"scope": nil, "scp": "x mcp"}},
		{"no groups", is{"groups": nil}},
	} {
		if c := letIn(t, r, row.what, token(row.claims)); c.Name != f.URL+"#u-4711" {
			t.Errorf("%s: the principal is %q", row.what, c.Name)
		}
	}
	letIn(t, r, "RS256", rsa.sign(t, f.good(is{"scope": "mcp"}), "typ", "at+jwt"))
	letIn(t, r, "no key id", signer{ec.key, "", ec.alg}.sign(t, f.good(is{"scope": "mcp"}), "typ", "JWT"))
	if c := letIn(t, r, "groups", token(is{"groups": []string{"sre", "dev"}})); !slices.Equal(c.Groups, []string{"sre", "dev"}) {
		t.Errorf("groups %q", c.Groups)
	}
	if c := letIn(t, r, "an end", token(is{"exp": at(time.Minute)})); !c.Expires.Equal(time.Unix(at(time.Minute), 0).Add(leeway)) {
		t.Errorf("expires %v", c.Expires)
	}

	for _, row := range []struct {
		what, text string
		claims     is
	}{
		{"another resource", "another resource", is{"aud": "https://other.example/mcp"}},
		{"another path", "another resource", is{"aud": "https://bridge.example"}},
		{"a resource that begins so", "another resource", is{"aud": resource + "/more"}},
		{"no audience", "another resource", is{"aud": nil}},
		{"an empty audience", "another resource", is{"aud": []string{}}},
		{"another issuer", "another issuer", is{"iss": "https://evil.example"}},
		{"the issuer and a slash", "another issuer", is{"iss": f.URL + "/"}},
		{"no issuer", "another issuer", is{"iss": nil}},
		{"the issuer in capitals of the name", "another issuer", is{"iss": nil, "ISS": f.URL}},
		{"expired", "expired", is{"exp": at(-leeway)}},
		{"no end", "when it expires", is{"exp": nil}},
		{"begins later", "not valid yet", is{"nbf": at(leeway + 2*time.Second)}},
		{"issued later", "not valid yet", is{"iat": at(leeway + 2*time.Second)}},
		{"an ID token", "ID token", is{"at_hash": "x"}},
		{"bound to a key", "bound to a key", is{"cnf": is{"jkt": "x"}}},
		{"no subject", "names nobody", is{"sub": nil}},
		{"an empty subject", "names nobody", is{"sub": ""}},
		{"a long subject", "names nobody", is{"sub": strings.Repeat("s", 256)}},
		{"a subject of two lines", "names nobody", is{"sub": "a\nb"}},
		{"a subject that looks like another", "names nobody", is{"sub": "u‑4711"}},
		{"groups that are no list", "groups", is{"groups": is{"a": 1}}},
		{"groups without a name", "groups", is{"groups": []string{""}}},
		{"too many groups", "groups", is{"groups": slices.Repeat([]string{"g"}, maxGroups+1)}},
	} {
		refusedWith(t, r, row.what, token(row.claims), http.StatusUnauthorized, "invalid_token", row.text)
	}
	refusedWith(t, r, "no scope", token(is{"scope": nil}), http.StatusForbidden, "insufficient_scope", "mcp is needed")
	refusedWith(t, r, "a scope that begins so", token(is{"scope": "mcp:read"}), http.StatusForbidden, "insufficient_scope", "mcp is needed")

	good := f.good(is{"scope": "mcp"})
	signature := "not a JWT that the issuer signed"
	for what, token := range map[string]string{
		"none":                      none(t, good, "none"),
		"None":                      none(t, good, "None"),
		"HS256 with the public key": signer{spki(t, ec.public().Key), "one", jose.HS256}.sign(t, good),
		"HS256 with a shared key":   signer{[]byte(strings.Repeat("s", 32)), "shared", jose.HS256}.sign(t, good),
		"another's key":             stranger.sign(t, good),
		"a weak key":                weak.sign(t, good),
		"a changed claim":           tampered(ec.sign(t, good)),
		"no signature":              ec.sign(t, good)[:strings.LastIndex(ec.sign(t, good), ".")+1],
		"another kind of JWT":       ec.sign(t, good, "typ", "logout+jwt"),
		"an unknown critical part":  ec.sign(t, good, "crit", "x"),
	} {
		refusedWith(t, r, what, token, http.StatusUnauthorized, "invalid_token", signature)
	}
	refusedWith(t, r, "a huge token", ec.sign(t, f.good(is{"x": strings.Repeat("x", maxToken)})), http.StatusUnauthorized, "invalid_token", "longer than")
	for _, junk := range []string{"", "x", "a.b", "a.b.c", "....", strings.Repeat("a", maxToken), "e30.e30.e30"} {
		refusedWith(t, r, "junk", junk, http.StatusUnauthorized, "invalid_token", "no JWT")
	}
}

func TestAPointerFindsGroups(t *testing.T) {
	c := claims{"realm_access": []byte(`{"roles": ["a", "b"], "x/y": "one"}`), "https://example.com/groups": []byte(`["c"]`)}
	for _, row := range []struct {
		from string
		want []string
		ok   bool
	}{
		{"", nil, true}, {"/realm_access/roles", []string{"a", "b"}, true}, {"/realm_access/x~1y", []string{"one"}, true},
		{"https://example.com/groups", []string{"c"}, true}, {"/missing/roles", nil, true}, {"/realm_access/missing", nil, true},
		{"/realm_access/roles/0", nil, false}, {"realm_access", nil, false},
	} {
		if groups, ok := c.groups(row.from); !slices.Equal(groups, row.want) || ok != row.ok {
			t.Errorf("%q: %q, %v", row.from, groups, ok)
		}
	}
}

// Keys are rotated: an unknown one is asked for, but not as often as anybody likes.
func TestRotatedKeys(t *testing.T) {
	f := newFake(t)
	before, after, stranger := newSigner(t, "one"), newSigner(t, "two"), newSigner(t, "three")
	f.keys = []jose.JSONWebKey{before.public()}
	r := New(f.options())
	letIn(t, r, "the first key", before.sign(t, f.good(nil)))
	f.with(func() { f.keys = []jose.JSONWebKey{after.public()} })
	f.pass(quiet)
	letIn(t, r, "the second key", after.sign(t, f.good(nil)))
	if n := f.count("/keys"); n != 2 {
		t.Fatalf("the keys were read %d times", n)
	}
	refusedWith(t, r, "the key that is gone", before.sign(t, f.good(nil)), http.StatusUnauthorized, "invalid_token", "")
	for range 100 {
		refusedWith(t, r, "a stranger's key", stranger.sign(t, f.good(nil)), http.StatusUnauthorized, "invalid_token", "")
	}
	if n := f.count("/keys"); n != 2 {
		t.Errorf("strangers made the keys be read %d times", n-2)
	}
	f.pass(quiet)
	for range 100 {
		refusedWith(t, r, "a stranger's key", stranger.sign(t, f.good(nil)), http.StatusUnauthorized, "invalid_token", "")
	}
	if n := f.count("/keys"); n != 3 {
		t.Errorf("the keys were read %d times", n)
	}
	// A key that is taken back is gone after a while, without any other token.
	f.with(func() { f.keys = []jose.JSONWebKey{before.public()} })
	f.pass(renewAfter)
	refusedWith(t, r, "the key that was taken back", after.sign(t, f.good(nil)), http.StatusUnauthorized, "invalid_token", "")
}

// Where nobody answers, that is what to look at, and not the spelling of the issuer. The texts stand
// apart from the address, whose words look like the name of a secret to whoever hides those.
func TestNobodyAnswers(t *testing.T) {
	f := newFake(t)
	o := f.options()
	f.Close()
	got := New(o).Check(t.Context())
	if len(got) != 1 || !got[0].Fatal || !strings.HasPrefix(got[0].Do, "see that the issuer is up") {
		t.Fatalf("Check says %+v", got)
	}
	if text := canon.Redact(got[0].Text); strings.Contains(text, "hidden") || !strings.Contains(text, "(asked: "+f.URL) {
		t.Errorf("it is shown as %s", text)
	}
}

func TestTheIssuerIsDown(t *testing.T) {
	f := newFake(t)
	key := newSigner(t, "one")
	f.keys = []jose.JSONWebKey{key.public()}
	f.down = true
	var log bytes.Buffer
	o := f.options()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r := New(o)
	if n := f.count("/.well-known/openid-configuration"); n != 0 {
		t.Errorf("New asked the issuer %d times", n)
	}
	good := func() string { return key.sign(t, f.good(nil)) }
	for range 50 {
		refusedWith(t, r, "down from the start", good(), http.StatusServiceUnavailable, "", "cannot be asked; try again later")
	}
	if n := f.count("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("asked %d times in no time", n)
	}
	if got := r.Check(t.Context()); len(got) != 1 || !got[0].Fatal || !strings.Contains(got[0].Text, "503") {
		t.Errorf("Check says %+v", got)
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "cannot be asked") {
		t.Errorf("the log says %q", text)
	}
	f.with(func() { f.down = false })
	f.pass(quietFailed)
	letIn(t, r, "up again", good())

	f.with(func() { f.down = true })
	f.pass(renewAfter + time.Hour)
	letIn(t, r, "keys that are kept", good())
	f.pass(keepFor)
	refusedWith(t, r, "keys that are too old", good(), http.StatusServiceUnavailable, "", "cannot be asked")
	if strings.Contains(log.String(), "u-4711") {
		t.Errorf("the log names the subject: %s", &log)
	}
}

func TestWhatTheIssuerMaySay(t *testing.T) {
	for _, row := range []struct {
		what     string
		metadata map[string]any
		keys     []jose.JSONWebKey
		text     string
	}{
		{"another issuer", map[string]any{"issuer": "https://other.example"}, nil, "of the issuer"},
		{"no keys' address", map[string]any{"jwks_uri": ""}, nil, "not https"},
		{"keys that anybody can change", map[string]any{"jwks_uri": "http://keys.example/"}, nil, "not https"},
		{"no keys", nil, []jose.JSONWebKey{}, "no public keys"},
		{"only keys for encryption", nil, []jose.JSONWebKey{{Key: newSigner(t, "e").public().Key, Use: "enc"}}, "no public keys"},
	} {
		f := newFake(t)
		key := newSigner(t, "one")
		if f.keys = row.keys; row.keys == nil {
			f.keys = []jose.JSONWebKey{key.public()}
		}
		f.metadata = row.metadata
		r := New(f.options())
		refusedWith(t, r, row.what, key.sign(t, f.good(nil)), http.StatusServiceUnavailable, "", "cannot be asked")
		if got := r.Check(t.Context()); len(got) != 1 || !strings.Contains(got[0].Text, row.text) {
			t.Errorf("%s: Check says %+v", row.what, got)
		}
	}
	f := newFake(t)
	key := newSigner(t, "one")
	f.keys, f.plain = []jose.JSONWebKey{key.public()}, true
	r := New(f.options())
	letIn(t, r, "metadata of OAuth alone", key.sign(t, f.good(nil)))
	if got := r.Check(t.Context()); len(got) != 0 {
		t.Errorf("Check says %+v", got)
	}
	f.with(func() {
		f.metadata = map[string]any{"registration_endpoint": "", "code_challenge_methods_supported": nil}
	})
	f.pass(renewAfter)
	if got := r.Check(t.Context()); len(got) != 2 || got[0].Fatal || got[1].Fatal {
		t.Errorf("Check says %+v", got)
	}
}

func TestOpaqueTokens(t *testing.T) {
	f := newFake(t)
	f.keys = []jose.JSONWebKey{newSigner(t, "one").public()}
	says := func(more map[string]any) claims {
		c := claims{}
		for name, v := range f.good(map[string]any{"active": true, "token_type": "Bearer"}) {
			c[name] = encoded(t, v)
		}
		for name, v := range more {
			if c[name] = encoded(t, v); v == nil {
				delete(c, name)
			}
		}
		return c
	}
	type is = map[string]any
	f.opaque = map[string]claims{
		"good": says(nil), "short": says(is{"iss": nil, "exp": nil, "token_type": nil}), "other": says(is{"aud": "https://other.example"}),
		"nowhere": says(is{"aud": nil}), "expired": says(is{"exp": f.now.Load().Add(-time.Hour).Unix()}), "bound": says(is{"token_type": "DPoP"}),
		"stranger": says(is{"iss": "https://evil.example"}), "refresh": says(is{"token_type": "refresh_token"}), "ended": says(is{"active": false}),
		"soon": says(is{"exp": f.now.Load().Add(10*time.Second - leeway).Unix()}),
	}
	refusedWith(t, New(f.options()), "nobody to ask with", "good", http.StatusUnauthorized, "invalid_token", "no JWT")
	o := f.options()
	o.ClientID, o.ClientSecret = "the/bridge", "a secret:"
	r := New(o)
	for _, token := range []string{"good", "short"} {
		if c := letIn(t, r, token, token); c.Name != f.URL+"#u-4711" {
			t.Errorf("%s: the principal is %q", token, c.Name)
		}
	}
	for token, text := range map[string]string{"unknown": "does not know", "ended": "does not know", "bound": "does not know", "refresh": "does not know",
		"other": "another resource", "nowhere": "another resource", "expired": "expired", "stranger": "another issuer"} {
		refusedWith(t, r, token, token, http.StatusUnauthorized, "invalid_token", text)
	}

	before := f.count("/introspect")
	for range 20 {
		letIn(t, r, "again", "good")
	}
	if n := f.count("/introspect"); n != before {
		t.Errorf("asked %d times about one token", n-before+1)
	}
	letIn(t, r, "ends soon", "soon")
	f.pass(answerFor / 2)
	refusedWith(t, r, "a kept answer does not outlive its token", "soon", http.StatusUnauthorized, "invalid_token", "expired")
	f.with(func() { delete(f.opaque, "good") }) // revoked
	f.pass(answerFor)
	refusedWith(t, r, "revoked", "good", http.StatusUnauthorized, "invalid_token", "revoked")
	f.with(func() { f.down = true })
	refusedWith(t, r, "down", "another", http.StatusServiceUnavailable, "", "cannot be asked about it")
	if len(r.Check(t.Context())) == 0 {
		t.Error("Check finds nothing wrong with an issuer that does not answer")
	}
	f.with(func() { f.down = false })
	o.ClientSecret = "wrong"
	if got := New(o).Check(t.Context()); len(got) != 1 || !got[0].Fatal || !strings.Contains(got[0].Text, "clientSecret") {
		t.Errorf("with a wrong secret, Check says %+v", got)
	}
	refusedWith(t, New(o), "a wrong secret", "short", http.StatusServiceUnavailable, "", "cannot be asked about it")
}

// Many requests with one new token are one question.
func TestOneQuestionPerToken(t *testing.T) {
	f := newFake(t)
	f.hold = make(chan struct{})
	f.opaque["good"] = claims{}
	for name, v := range f.good(map[string]any{"active": true}) {
		f.opaque["good"][name] = encoded(t, v)
	}
	o := f.options()
	o.ClientID, o.ClientSecret, o.Introspection = "the/bridge", "a secret:", f.URL+"/introspect"
	r := New(o)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { letIn(t, r, "at once", "good") })
	}
	close(f.hold)
	all.Wait()
	if n := f.count("/introspect"); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if n := f.count("/.well-known/openid-configuration"); n != 0 {
		t.Errorf("the metadata were read, but the address is configured")
	}
}

func TestKeptAnswersAreBounded(t *testing.T) {
	racing.Alone(t)
	f := newFake(t)
	n := newIntrospector(f.options(), nil)
	for i := range 2*maxAnswers + 10 {
		a, mine := n.answer([32]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		if !mine {
			t.Fatalf("token %d has the answer of another", i)
		}
		a.until = f.now.Load().Add(answerFor)
	}
	if len(n.answers) > maxAnswers {
		t.Errorf("%d answers are kept", len(n.answers))
	}
}

func TestMetadataAndChallenge(t *testing.T) {
	r := New(Options{Issuer: "https://login.example/", Resource: "https://Bridge.example:443/tools/mcp/", Scopes: []string{"mcp", "more"}})
	if got, want := r.MetadataURL(), "https://bridge.example/.well-known/oauth-protected-resource/tools/mcp"; got != want {
		t.Errorf("the metadata are at %s, want %s", got, want)
	}
	if got := r.Host(); got != "bridge.example" {
		t.Errorf("host %q", got)
	}
	if got, want := r.Challenge(nil), `Bearer resource_metadata="https://bridge.example/.well-known/oauth-protected-resource/tools/mcp", scope="mcp more"`; got != want {
		t.Errorf("the challenge is %s, want %s", got, want)
	}
	if got := r.Challenge(invalid("it is %s", "bad")); !strings.HasSuffix(got, `, error="invalid_token", error_description="it is bad"`) {
		t.Errorf("the challenge is %s", got)
	}
	mux := http.NewServeMux()
	r.Handle(mux)
	for path, status := range map[string]int{"": 200, "/tools/mcp": 200, "/mcp": 200, "/mcp/p/dev": 200, "/other": 404, "/mcpx": 404} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/.well-known/oauth-protected-resource"+path, nil))
		if w.Code != status {
			t.Errorf("%q: status %d, want %d", path, w.Code, status)
		}
		want := `{"resource":"https://bridge.example/tools/mcp","authorization_servers":["https://login.example/"],"scopes_supported":["mcp","more"],"bearer_methods_supported":["header"],"resource_name":"codemode-bridge"}`
		if got := strings.TrimSpace(w.Body.String()); status == 200 && got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}
