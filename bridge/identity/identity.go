// Package identity says who a bearer token was issued to. The bridge is an OAuth 2.1
// resource server, as the authorization specification of MCP wants it:
//
//	client ── POST /mcp ──────────────────────▶ 401, WWW-Authenticate: Bearer resource_metadata="..."
//	client ── GET that (RFC 9728) ────────────▶ who issues tokens, and for which resource
//	client ── logs in there, with PKCE and "resource" (RFC 8707)
//	client ── POST /mcp, Authorization: Bearer ▶ Verify
//
// A token counts if the configured issuer signed it (a JWT) or calls it active (an
// opaque token, RFC 7662), if it was issued for this bridge and not for another
// resource, if it is in force, and if it has the scopes that are asked for. Whom it
// names is a [principal.Principal]. The bridge never passes a token on.
//
// An error of this package says what is wrong with a token, but repeats neither the
// token nor any claim of it: it may be shown and logged.
package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"codemode-bridge/bridge/principal"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Options name an issuer of tokens, and this bridge as the issuer knows it.
type Options struct {
	Issuer string // https, or http on this machine
	// Resource is the canonical address of the bridge's endpoint: "https://host/mcp".
	Resource string
	// Audiences are accepted beside Resource, for issuers that name it otherwise.
	Audiences []string
	// Scopes are those that every token must have.
	Scopes []string
	// Groups names the claim that lists a principal's groups, or is a JSON pointer to
	// it ("/realm_access/roles"); empty means that principals have none.
	Groups string
	// ClientID and ClientSecret are what the bridge asks with about opaque tokens;
	// without them only JWTs are accepted.
	ClientID, ClientSecret string
	// Introspection is where it asks; empty means where the issuer's metadata says.
	Introspection string

	Logger    *slog.Logger      // nil means slog.Default()
	Now       func() time.Time  // nil means time.Now
	Transport http.RoundTripper // nil means http.DefaultTransport
}

const (
	// maxToken bounds a token in bytes.
	maxToken = 16 << 10
	// leeway is how far the issuer's clock may be off.
	leeway = 30 * time.Second
)

// algorithms are the accepted signatures: neither "none" nor one made with a shared
// secret.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// A Resource is the bridge as a protected resource. Any number of goroutines may use
// it.
type Resource struct {
	o        Options
	issuer   *issuer
	verifier *oidc.IDTokenVerifier
	opaque   *introspector // nil without credentials
}

// New makes a resource. The issuer is not contacted before it is needed.
func New(o Options) *Resource {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	r := &Resource{o: o, issuer: newIssuer(o)}
	// What the library would check of claims, admit checks, for both kinds of tokens.
	r.verifier = oidc.NewVerifier(o.Issuer, r.issuer, &oidc.Config{
		SupportedSigningAlgs: algorithms, SkipClientIDCheck: true, SkipExpiryCheck: true, SkipIssuerCheck: true,
	})
	if o.ClientID != "" {
		r.opaque = newIntrospector(o, r.issuer)
	}
	return r
}

// A Caller is whom a token names.
type Caller struct {
	principal.Principal
	Expires time.Time // when the token does
}

// A Refusal is why a token does not let its bearer in.
type Refusal struct {
	// Status is 401 if another token may help, 403 if the token lacks a scope, 503 if
	// the token could not be checked.
	Status int
	Code   string // of RFC 6750: "invalid_token", "insufficient_scope"; "" for 503
	Text   string
}

func (r *Refusal) Error() string { return r.Text }

func invalid(format string, args ...any) *Refusal {
	return &Refusal{http.StatusUnauthorized, "invalid_token", fmt.Sprintf(format, args...)}
}

func unchecked(text string) *Refusal { return &Refusal{http.StatusServiceUnavailable, "", text} }

// Verify says whom a token names. The error is always a [*Refusal].
func (r *Resource) Verify(ctx context.Context, token string) (Caller, error) {
	if len(token) > maxToken {
		return Caller{}, invalid("the token is longer than %d bytes", maxToken)
	}
	var c claims
	var err error
	switch {
	case isJWT(token):
		c, err = r.signed(ctx, token)
	case r.opaque != nil:
		c, err = r.opaque.ask(ctx, token)
	default:
		err = invalid("the token is unknown, and no JWT")
	}
	if err != nil {
		return Caller{}, err
	}
	return r.admit(c)
}

// signed returns the claims of a JWT that the issuer signed.
func (r *Resource) signed(ctx context.Context, token string) (claims, error) {
	id, err := r.verifier.Verify(ctx, token)
	if err != nil {
		if down := r.issuer.unreachable(); down != nil {
			return nil, down
		}
		return nil, invalid("the token is not a JWT that the issuer signed, with a key and an algorithm that count")
	}
	var c claims
	if err := id.Claims(&c); err != nil {
		return nil, invalid("the claims of the token cannot be read")
	}
	if c["at_hash"] != nil || c["c_hash"] != nil {
		return nil, invalid("the token is an ID token, not an access token")
	}
	return c, nil
}

// isJWT reports whether a token has the form of a signed JWT, whose header says how
// it is signed; any other token is opaque.
func isJWT(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	var named struct {
		Algorithm *string `json:"alg"`
	}
	return err == nil && json.Unmarshal(header, &named) == nil && named.Algorithm != nil
}

// Canonical returns an address in the form in which it is compared: lower-case scheme
// and host, no default port, no slash at the end.
func Canonical(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if u.Scheme == "https" {
		u.Host = strings.TrimSuffix(u.Host, ":443")
	} else if u.Scheme == "http" {
		u.Host = strings.TrimSuffix(u.Host, ":80")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u.String()
}
