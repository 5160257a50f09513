package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A place is what was found out about logging in to a server.
type place struct {
	network  network // the server's own
	resource string
	issuer   *oauthex.AuthServerMeta
	scopes   []string // that the server names
}

// discover asks the server whether it wants a login and finds the authorization
// server that it names.
func (c *Client) discover(ctx context.Context) (*place, error) {
	u, err := checkURL(c.server.URL)
	if err != nil {
		return nil, fmt.Errorf("a login needs https: %w", err)
	}
	p := &place{}
	challenge, status, err := c.probe(ctx, p)
	if err != nil {
		return nil, err
	}
	meta, err := c.resourceMetadata(ctx, p, u, challenge)
	if err != nil {
		return nil, err
	}
	issuer := c.server.Issuer
	switch {
	case meta == nil && issuer == "":
		// "MCP clients that don't find metadata fall back": up to 2025-03-26
		// the authorization server was at the server's own origin.
		issuer = u.Scheme + "://" + u.Host
		p.resource = c.server.URL
	case meta == nil:
		p.resource = c.server.URL
	case len(meta.AuthorizationServers) == 0:
		return nil, errors.New("the server names no authorization server")
	case issuer == "":
		issuer = meta.AuthorizationServers[0]
	case !slices.ContainsFunc(meta.AuthorizationServers, func(s string) bool { return sameIssuer(s, issuer) }):
		return nil, fmt.Errorf("the server does not name %s (auth.issuer), but %s", c.keeper.said(issuer), c.keeper.said(strings.Join(meta.AuthorizationServers, ", ")))
	}
	if p.issuer, err = c.issuerMetadata(ctx, p, issuer); err != nil {
		return nil, err
	}
	if p.issuer == nil {
		if meta == nil && status != http.StatusUnauthorized {
			return nil, fmt.Errorf("the server wants no login: it answered without one (HTTP status %d)", status)
		}
		return nil, fmt.Errorf("the authorization server %s has no metadata (RFC 8414 or OpenID Connect discovery)", c.keeper.said(issuer))
	}
	if challenge != nil {
		p.scopes = strings.Fields(challenge.Params["scope"])
	}
	if len(p.scopes) == 0 && meta != nil {
		p.scopes = meta.ScopesSupported
	}
	return p, nil
}

// probe sends the server a message that has no effect, for its answer to the
// missing token. It also finds the network that the server is in, by the
// connection itself: a name could resolve to something else the next time.
func (c *Client) probe(ctx context.Context, p *place) (*oauthex.Challenge, int, error) {
	req, err := http.NewRequest(http.MethodPost, c.server.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return nil, 0, errNotURL
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range c.server.Headers {
		req.Header.Set(name, value)
	}
	// The configuration names the address, so it may be anywhere; a redirect to
	// another origin is not followed.
	req = req.WithContext(httptrace.WithClientTrace(context.WithValue(ctx, reachKey{}, anywhere), &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { p.network = networkAt(i.Conn.RemoteAddr().String()) },
	}))
	ctx, cancel := context.WithTimeout(req.Context(), patience)
	defer cancel()
	resp, err := c.keeper.guard.client.Do(req.WithContext(ctx))
	if err != nil {
		return nil, 0, fmt.Errorf("asking the server: %w", plain(err))
	}
	resp.Body.Close() // an event stream may have no end
	if proxy, err := http.ProxyFromEnvironment(req); proxy != nil || err != nil || p.network == reserved {
		p.network = public
	}
	return bearerChallenge(resp.Header), resp.StatusCode, nil
}

// resourceMetadata fetches what the server says of itself (RFC 9728), from where its
// answer says, for its path, or for its root. nil: it says nothing.
func (c *Client) resourceMetadata(ctx context.Context, p *place, server *url.URL, challenge *oauthex.Challenge) (*oauthex.ProtectedResourceMetadata, error) {
	var at []string
	if challenge != nil && challenge.Params["resource_metadata"] != "" {
		at = append(at, challenge.Params["resource_metadata"])
	}
	root := *server
	root.RawQuery, root.RawPath = "", ""
	root.Path = "/.well-known/oauth-protected-resource"
	if server.Path != "" && server.Path != "/" {
		below := root
		below.Path += server.Path
		at = append(at, below.String())
	}
	at = append(at, root.String())
	for _, address := range slices.Compact(at) {
		meta := &oauthex.ProtectedResourceMetadata{}
		found, err := c.keeper.guard.getJSON(ctx, p.network, address, meta)
		if err != nil {
			return nil, fmt.Errorf("reading the server's metadata: %w", err)
		}
		if !found {
			continue
		}
		// RFC 9728, section 3.3: the resource "MUST be identical" to what was
		// asked for, "else the data MUST NOT be used". Servers often name their
		// origin for all that is below it; another origin is never theirs.
		if !covers(meta.Resource, server) {
			return nil, fmt.Errorf("the server's metadata is of another resource: %s", c.keeper.said(meta.Resource))
		}
		p.resource = meta.Resource
		return meta, nil
	}
	return nil, nil
}

// covers reports whether a resource identifier is that of the server, or of
// something that the server is a part of.
func covers(resource string, server *url.URL) bool {
	r, err := checkURL(resource)
	if err != nil || origin(r) != origin(server) || r.Fragment != "" {
		return false
	}
	path := strings.TrimSuffix(r.Path, "/")
	return (server.Path+"/" == path+"/" || strings.HasPrefix(server.Path, path+"/") || path == "") && (r.RawQuery == "" || r.RawQuery == server.RawQuery)
}

// issuerMetadata fetches what an authorization server says of itself and checks
// what we rely on. nil: it says nothing.
func (c *Client) issuerMetadata(ctx context.Context, p *place, issuer string) (*oauthex.AuthServerMeta, error) {
	u, err := checkURL(issuer)
	if err != nil {
		return nil, fmt.Errorf("the authorization server that the server names: %w", err)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the authorization server that the server names has a query or a fragment")
	}
	var failure error
	for _, address := range metadataOf(u) {
		meta := &oauthex.AuthServerMeta{}
		found, err := c.keeper.guard.getJSON(ctx, p.network, address, meta)
		if err != nil {
			failure = fmt.Errorf("reading the metadata of the authorization server: %w", err)
			continue // another well-known place may have it
		}
		if !found {
			continue
		}
		return meta, c.checkIssuer(meta, issuer)
	}
	return nil, failure
}

// metadataOf are the well-known places of an issuer's metadata, as the MCP
// specification orders them.
func metadataOf(issuer *url.URL) []string {
	at := func(path string) string {
		u := *issuer
		u.Path, u.RawPath = path, ""
		return u.String()
	}
	path := strings.TrimSuffix(issuer.Path, "/")
	all := []string{at("/.well-known/oauth-authorization-server" + path), at("/.well-known/openid-configuration" + path)}
	if path != "" {
		all = append(all, at(path+"/.well-known/openid-configuration"))
	}
	return all
}

// checkIssuer checks the metadata of an authorization server. To prevent a mix-up,
// all that is used must be of one issuer, here and when the browser comes back. That
// is not enough if the client is configured and the server names the issuer: a
// hostile server could name its own, which has the person log in at the issuer that
// knows the client, and gets the code. So the endpoints must be at the issuer's own
// origin, and [Client.Begin] refuses another issuer than that of the last login. An
// issuer that redirects the browser is noticed only if the answer names its issuer;
// setting auth.issuer prevents that, too.
func (c *Client) checkIssuer(meta *oauthex.AuthServerMeta, issuer string) error {
	if !sameIssuer(meta.Issuer, issuer) {
		return fmt.Errorf("the metadata of the authorization server %s is that of another: %s", c.keeper.said(issuer), c.keeper.said(meta.Issuer))
	}
	for _, e := range []struct {
		name, address string
		needed        bool
	}{
		{"authorization_endpoint", meta.AuthorizationEndpoint, !c.server.Credentials}, {"token_endpoint", meta.TokenEndpoint, true},
		{"registration_endpoint", meta.RegistrationEndpoint, false}, {"revocation_endpoint", meta.RevocationEndpoint, false},
	} {
		if e.address == "" && !e.needed {
			continue
		}
		if _, err := checkURL(e.address); err != nil {
			return fmt.Errorf("the authorization server's %s: %w", e.name, err)
		}
		if e.needed && c.trusting() && !sameOrigin(e.address, issuer) {
			return fmt.Errorf("the authorization server %s has its %s elsewhere, at %s; if that is right, write the authorization server into auth.issuer",
				c.keeper.said(issuer), e.name, c.keeper.said(e.address))
		}
	}
	// The MCP specification: "If code_challenge_methods_supported is absent, the
	// authorization server does not support PKCE and MCP clients MUST refuse to
	// proceed."
	if !c.server.Credentials && !slices.Contains(meta.CodeChallengeMethodsSupported, "S256") {
		return fmt.Errorf("the authorization server %s does not announce PKCE with S256, without which a login could be stolen", c.keeper.said(issuer))
	}
	return nil
}

// trusting reports whether a person logs in with a configured client where the server
// says.
func (c *Client) trusting() bool {
	return c.server.ClientID != "" && c.server.Issuer == "" && !c.server.Credentials
}

func sameOrigin(a, b string) bool {
	one, err := url.Parse(a)
	other, err2 := url.Parse(b)
	return err == nil && err2 == nil && origin(one) == origin(other)
}

// method chooses how a client with a configured secret authenticates itself.
func (p *place) method(secret string) (string, error) {
	offered := p.issuer.TokenEndpointAuthMethodsSupported
	switch {
	case secret == "":
		return "none", nil
	case len(offered) == 0, slices.Contains(offered, "client_secret_basic"): // RFC 8414: the default is basic
		return "client_secret_basic", nil
	case slices.Contains(offered, "client_secret_post"):
		return "client_secret_post", nil
	}
	return "", fmt.Errorf("the authorization server takes no client secret, only %s", strings.Join(offered, ", "))
}

// record returns what is kept of a place.
func (p *place) record(s Server) *record {
	return &record{
		Server: s.URL, Resource: p.resource, Issuer: p.issuer.Issuer, Network: p.network,
		Token: p.issuer.TokenEndpoint, Revoke: p.issuer.RevocationEndpoint, Secrets: &confidential{},
	}
}
