package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// An OAuth is an authorization server whose tokens are accepted over HTTP, and this
// bridge as that server knows it.
type OAuth struct {
	Issuer Value `json:"issuer,omitzero"`
	// Resource is the bridge's endpoint as clients reach it, which tokens are issued for.
	Resource Value `json:"resource,omitzero"`
	// Audiences are other names of it.
	Audiences []string `json:"audiences,omitempty" expand:"no"`
	// Scopes are those that every token must have.
	Scopes []string `json:"scopes,omitempty" expand:"no"`
	// Groups names the claim with a principal's groups, or is a JSON pointer to it.
	Groups string `json:"groups,omitempty" expand:"no"`
	// Introspection says how opaque tokens are checked; its zero value refuses them.
	Introspection Introspection `json:"introspection,omitzero"`
}

// An Introspection is how the bridge asks about a token.
type Introspection struct {
	// URL is where; empty means where the issuer's metadata say.
	URL          Value `json:"url,omitzero"`
	ClientID     Value `json:"clientId,omitzero"`
	ClientSecret Value `json:"clientSecret,omitzero" show:"never"`
}

// IsZero reports whether there is no authorization server.
func (o OAuth) IsZero() bool {
	return o.Issuer.IsZero() && o.Resource.IsZero() && o.Audiences == nil && o.Scopes == nil && o.Groups == "" && o.Introspection.IsZero()
}

// IsZero reports whether opaque tokens are refused.
func (i Introspection) IsZero() bool { return i == Introspection{} }

// AsksForTokens reports whether whoever connects over HTTP needs a token.
func (h *HTTP) AsksForTokens() bool { return len(h.Tokens) > 0 || !h.Auth.IsZero() }

// plainPath is a path that proxies and clients do not write in two ways.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// principalForm is the form of a principal's name: see package identity.
var principalForm = regexp.MustCompile(`^https?://[^#]+#[ -~]{1,255}$`)

func (c *checker) oauth(o *OAuth) {
	const at = "/http/auth"
	if !c.has(at) || c.unusable[at] {
		return
	}
	for _, one := range []struct {
		key   string
		value Value
		need  string // the hint if it is missing; "" if it may be
	}{
		{"issuer", o.Issuer, `add "issuer": "https://login.example.com"`},
		{"resource", o.Resource, `add "resource": "https://bridge.example.com/mcp", the address that clients connect to`},
		{"introspection/url", o.Introspection.URL, ""},
	} {
		key := at + "/" + one.key
		u, _ := url.Parse(one.value.Reveal())
		switch {
		case !c.has(key) && one.need != "":
			c.at(at, fmt.Sprintf("an issuer of tokens needs %q", one.key), one.need)
		case !c.has(key), !c.sound(key):
		case !httpsOrLocal(one.value.Reveal()):
			c.at(key, fmt.Sprintf("%q starts with https://", one.key), "http:// is for this machine alone")
		case u.RawQuery != "" || u.ForceQuery || strings.Contains(one.value.Reveal(), "#") || u.User != nil:
			c.at(key, fmt.Sprintf("%q is an address without a query, a fragment or a user", one.key), "")
		case one.key == "resource" && !plainPath.MatchString(u.Path):
			c.at(key, `"resource" is the whole address of the endpoint`, `write "https://bridge.example.com/mcp"`)
		}
	}
	for i, scope := range o.Scopes {
		if item := fmt.Sprintf("%s/scopes/%d", at, i); c.sound(item) && !scopeToken(scope) {
			c.at(item, fmt.Sprintf("%q can't be a scope", scope), "one scope an entry, without spaces")
		}
	}
	if i := slices.Index(o.Audiences, ""); i >= 0 {
		c.at(fmt.Sprintf("%s/audiences/%d", at, i), "an audience is empty", "")
	}
	if c.sound(at+"/groups") && o.Groups == "" {
		c.at(at+"/groups", `"groups" is empty`, `write the name of a claim, such as "groups", or a pointer to it: "/realm_access/roles"`)
	}
	c.introspection(&o.Introspection, at+"/introspection")
}

func (c *checker) introspection(i *Introspection, at string) {
	if !c.has(at) || c.unusable[at] {
		return
	}
	if !c.has(at+"/clientId") || c.sound(at+"/clientId") && i.ClientID.Reveal() == "" {
		c.at(at, "introspection needs the client ID that the issuer knows this bridge by", `add "clientId": "..."`)
	}
	switch secret := at + "/clientSecret"; {
	case !c.has(secret):
		c.at(at, "introspection needs a client secret: nobody else may ask about tokens", `add "clientSecret": "${keyring:BRIDGE_CLIENT}"`)
	case (c.sound(secret) || i.ClientSecret.missing) && !reference.MatchString(written(c.places[secret])):
		c.at(secret, "a secret may not stand in the file", `name a variable or a secret: "clientSecret": "${CLIENT_SECRET}"`)
	}
}
