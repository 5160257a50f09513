package main_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tokenIssuer issues access tokens to whom the test names.
type tokenIssuer struct {
	*httptest.Server
	*testing.T
	up   atomic.Bool
	sign jose.Signer
}

func newTokenIssuer(t *testing.T) *tokenIssuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &tokenIssuer{T: t}
	if i.sign, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "one"}}, nil); err != nil {
		t.Fatal(err)
	}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := any(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "code_challenge_methods_supported": []string{"S256"}})
		switch {
		case !i.up.Load():
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		case r.URL.Path == "/keys":
			answer = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "one"}}}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *tokenIssuer) token(subject string) string {
	i.Helper()
	text, err := json.Marshal(map[string]any{"iss": i.URL, "aud": issuedFor, "sub": subject, "exp": time.Now().Add(time.Hour).Unix(), "email": "canary-of-" + subject})
	if err != nil {
		i.Fatal(err)
	}
	jws, err := i.sign.Sign(text)
	if err != nil {
		i.Fatal(err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		i.Fatal(err)
	}
	return token
}

const (
	issuedFor   = "https://bridge.example/mcp"
	staticToken = "a-static-token-long-enough"
)

// identityConfig lets in the issuer's principals and one static token; ann is subject
// u-1 there, and of bob nothing is known.
func identityConfig(i *tokenIssuer) string {
	sum := sha256.Sum256([]byte(staticToken))
	ann := strings.TrimSuffix(approverJSON("ann", "admin", annsToken), "}") + fmt.Sprintf(`, "principal": %q}`, i.URL+"#u-1")
	eve := strings.TrimSuffix(approverJSON("eve", "approver", mallorysToken), "}") + fmt.Sprintf(`, "principal": %q}`, i.URL+"#u-2")
	return fmt.Sprintf(`{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["utils__*"], "elicitationFallback": "queue"}}},
  "approvals": {"listen": "127.0.0.1:0", "separateApprover": true, "approvers": [%s, %s, %s]},
  "http": {"tokens": [{"name": "ci", "sha256": %q}], "auth": {"issuer": %q, "resource": %q}},
}
`, ann, approverJSON("bob", "approver", bobsToken), eve, hex.EncodeToString(sum[:]), i.URL, issuedFor)
}

// The bridge starts without the issuer, and lets its principals in once it answers. A
// question names who asks, and who that is as an approver cannot allow it.
func TestPrincipalsOfAnIssuer(t *testing.T) {
	t.Parallel()
	there := newTokenIssuer(t)
	b := &heldBench{commandLine: newCommandLine(t, identityConfig(there))}
	b.serving.file = b.commandLine.file
	said := new(talk)
	cmd := b.program("", "serve", "--listen", "127.0.0.1:0")
	cmd.Stderr = said
	b.serving.start(t, cmd)
	if out, _, _ := b.run("", "doctor"); !strings.Contains(out, "reading the issuer's metadata") || !strings.Contains(out, "check http.auth.issuer") {
		t.Errorf("doctor says: %s", out)
	}
	if _, err := b.connect(t, there.token("u-1")); err == nil || !strings.Contains(err.Error(), http.StatusText(http.StatusServiceUnavailable)) {
		t.Errorf("without the issuer: %v", err)
	}
	if c, err := b.connect(t, staticToken); err != nil {
		t.Errorf("a static token: %v", err)
	} else {
		c.Close()
	}
	if !strings.Contains(said.String(), "the issuer of tokens cannot be asked") {
		t.Errorf("the log does not say so: %s", said)
	}

	there.up.Store(true)
	var session *mcp.ClientSession
	eventually(t, "the issuer's tokens are refused", func() (ok bool) {
		var err error
		session, err = b.connect(t, there.token("u-1"))
		return err == nil
	})
	defer session.Close()
	if out, _, _ := b.run("", "doctor"); !strings.Contains(out, "can be checked") || !strings.Contains(out, "clients cannot register") {
		t.Errorf("doctor says: %s", out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := eval(ctx, session, `return (await codemode.utils__hash({text: "x"})) !== undefined`)
		ended <- err
	}()
	var q asked
	eventually(t, "nobody is asked", func() bool {
		all := b.open()
		if len(all) == 1 {
			q = all[0]
		}
		return len(all) == 1
	})
	if _, text := b.api(annsToken, "GET", "/api/pending", nil); !strings.Contains(text, there.URL+"#u-1") || strings.Contains(text, "canary-of") {
		t.Errorf("the question: %s", text)
	}
	for _, row := range []struct{ token, want string }{{annsToken, "ann asked for this call"}, {bobsToken, "nothing says who bob is there"}, {mallorysToken, ""}} {
		status, text := b.approve(row.token, q)
		if (status == http.StatusOK) != (row.want == "") || !strings.Contains(text, row.want) {
			t.Errorf("%d %s, want %q", status, text, row.want)
		}
	}
	cancel() // whether the client has its answer already or is told later
	<-ended
	eventually(t, "no record names the principal", func() bool {
		out, _, _ := b.run("", "audit", "export")
		return strings.Contains(out, there.URL+"#u-1") && !strings.Contains(out, "canary-of")
	})
	if text := said.String(); strings.Contains(text, there.token("u-1")[:20]+".") || strings.Contains(text, "canary-of") {
		t.Errorf("the log has a token or a claim: %s", text)
	}
}
