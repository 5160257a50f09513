package identity

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// wellKnown is where RFC 9728 has the metadata of a resource, with the resource's own
// path behind it.
const wellKnown = "/.well-known/oauth-protected-resource"

// Host is the host of the bridge's canonical address, with its port if it has one.
func (r *Resource) Host() string {
	u, err := url.Parse(Canonical(r.o.Resource))
	if err != nil {
		return ""
	}
	return u.Host
}

// MetadataURL is where clients find the metadata.
func (r *Resource) MetadataURL() string {
	u, err := url.Parse(Canonical(r.o.Resource))
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + wellKnown + u.EscapedPath()
}

// Handle serves the metadata: at the well-known address with the resource's path, with
// what lies below that, and, for clients that know no path, without.
func (r *Resource) Handle(mux *http.ServeMux) {
	metadata := auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: Canonical(r.o.Resource), AuthorizationServers: []string{r.o.Issuer}, ScopesSupported: r.o.Scopes,
		BearerMethodsSupported: []string{"header"}, ResourceName: "codemode-bridge",
	})
	mux.Handle(wellKnown, metadata)
	u, err := url.Parse(Canonical(r.o.Resource))
	if err != nil {
		return
	}
	// Behind a proxy the path may be another than the one that arrives here.
	for _, path := range slices.Compact([]string{"/mcp", u.Path}) {
		if path != "" {
			mux.Handle(wellKnown+path, metadata)
			mux.Handle(wellKnown+path+"/", metadata)
		}
	}
}

// Challenge is the WWW-Authenticate header of an answer; refusal is nil if there was
// no token.
func (r *Resource) Challenge(refusal *Refusal) string {
	params := []string{"resource_metadata=" + strconv.Quote(r.MetadataURL())}
	if len(r.o.Scopes) > 0 {
		params = append(params, "scope="+strconv.Quote(strings.Join(r.o.Scopes, " ")))
	}
	if refusal != nil && refusal.Code != "" {
		params = append(params, "error="+strconv.Quote(refusal.Code), "error_description="+strconv.Quote(refusal.Text))
	}
	return "Bearer " + strings.Join(params, ", ")
}

// Warm asks the issuer before the first token comes. What fails is logged.
func (r *Resource) Warm(ctx context.Context) { _, _ = r.issuer.current(ctx) }

// A Problem is something about the issuer that keeps clients out.
type Problem struct {
	Text, Do string
	Fatal    bool // no token can be checked; otherwise some clients cannot get one
}

// Check asks the issuer, and says what is wrong.
func (r *Resource) Check(ctx context.Context) (all []Problem) {
	k, err := r.issuer.current(ctx)
	if err != nil {
		do := "check http.auth.issuer: it is the address that the issuer's own metadata name, letter by letter"
		if quiet := (*silent)(nil); errors.As(err, &quiet) {
			do = "see that the issuer is up and this machine reaches it, by its name and its certificate; or check http.auth.issuer"
		}
		return []Problem{{err.Error(), do, true}}
	}
	if r.opaque != nil {
		if _, err := r.opaque.introspect(ctx, rand.Text()); err != nil {
			all = append(all, Problem{err.Error(), "check http.auth.introspection: its clientId and clientSecret are those of a client that may introspect", true})
		}
	}
	if !slices.Contains(k.Challenges, "S256") {
		all = append(all, Problem{"the issuer does not say that it supports PKCE with S256, which MCP clients demand", "turn PKCE on there", false})
	}
	if k.Registration == "" && !k.Documents {
		all = append(all, Problem{"clients cannot register with the issuer by themselves", "register each client there, and give the client its client ID; or turn dynamic registration or client ID metadata documents on", false})
	}
	return all
}
