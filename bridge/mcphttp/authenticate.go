package mcphttp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"regexp"
	"time"

	"codemode-bridge/bridge/identity"
	"codemode-bridge/bridge/principal"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// authorization is the header of a bearer token (RFC 6750, section 2.1).
var authorization = regexp.MustCompile(`^(?i:bearer) +([A-Za-z0-9._~+/-]+=*)$`)

// authenticate demands a bearer token, if there are any, and attaches its principal to
// the request: the SDK then refuses a session to anyone but the principal that opened
// it.
func (o Options) authenticate(next http.Handler) http.Handler {
	if o.Tokens == nil && o.Resource == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, refusal := o.caller(r)
		if refusal != nil {
			o.Logger.Debug("a request is refused", "status", refusal.Status, "why", refusal.Text)
			switch refusal.Status {
			case http.StatusUnauthorized, http.StatusForbidden:
				w.Header().Set("WWW-Authenticate", o.challenge(r, refusal))
			case http.StatusServiceUnavailable:
				w.Header().Set("Retry-After", "5")
			}
			http.Error(w, refusal.Text, refusal.Status)
			return
		}
		if r.Method == http.MethodGet { // a stream that nothing else would end
			ctx, cancel := context.WithDeadline(r.Context(), caller.Expires)
			defer cancel()
			r = r.WithContext(ctx)
		}
		known := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{UserID: caller.Name, Expiration: caller.Expires, Extra: map[string]any{groupsKey: caller.Groups}}, nil
		}
		auth.RequireBearerToken(known, nil)(next).ServeHTTP(w, r)
	})
}

// caller says who makes a request. There is one place for a token, and one token.
func (o Options) caller(r *http.Request) (identity.Caller, *identity.Refusal) {
	refuse := func(status int, text string) (identity.Caller, *identity.Refusal) {
		return identity.Caller{}, &identity.Refusal{Status: status, Text: text}
	}
	headers := r.Header.Values("Authorization")
	switch {
	case r.URL.Query().Has("access_token"):
		return refuse(http.StatusBadRequest, "a token does not belong into the address, where logs keep it: send it as \"Authorization: Bearer ...\"")
	case len(headers) > 1:
		return refuse(http.StatusBadRequest, "the request has more than one Authorization header")
	case len(headers) == 0:
		return refuse(http.StatusUnauthorized, "no bearer token: send \"Authorization: Bearer ...\"")
	}
	parts := authorization.FindStringSubmatch(headers[0])
	if parts == nil {
		return refuse(http.StatusUnauthorized, "the Authorization header is not \"Bearer\" and one token")
	}
	if o.Tokens != nil {
		sum := sha256.Sum256([]byte(parts[1]))
		var who Token
		found := false
		for _, t := range o.Tokens() { // all of them, so that the time is always the same
			if subtle.ConstantTimeCompare(sum[:], t.SHA256[:]) == 1 {
				who, found = t, true
			}
		}
		if found {
			return identity.Caller{Principal: principal.Principal{Name: who.Name, Groups: who.Groups}, Expires: o.Now().Add(tokenLasts)}, nil
		}
	}
	if o.Resource == nil {
		return identity.Caller{}, &identity.Refusal{Status: http.StatusUnauthorized, Code: "invalid_token", Text: "unknown token: it is none of http.tokens"}
	}
	caller, err := o.Resource.Verify(r.Context(), parts[1])
	if err != nil {
		var refusal *identity.Refusal
		if !errors.As(err, &refusal) {
			refusal = &identity.Refusal{Status: http.StatusUnauthorized, Code: "invalid_token", Text: "the token cannot be checked"}
		}
		return identity.Caller{}, refusal
	}
	return caller, nil
}

// tokenLasts is how long a stream to the bearer of a configured token lasts, which does
// not expire: clients open the next one.
const tokenLasts = 24 * time.Hour

// challenge is the WWW-Authenticate header of a refusal.
func (o Options) challenge(r *http.Request, refusal *identity.Refusal) string {
	if o.Resource == nil {
		return `Bearer realm="codemode-bridge"`
	}
	if len(r.Header.Values("Authorization")) == 0 {
		refusal = nil // RFC 6750, section 3.1: then no error is named
	}
	return o.Resource.Challenge(refusal)
}

// groupsKey is where a token's extra members have its principal's groups.
const groupsKey = "groups"

// named gives the handlers of messages the principal that their request comes from:
// see [principal.From].
func named(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
			groups, _ := extra.TokenInfo.Extra[groupsKey].([]string)
			ctx = principal.With(ctx, principal.Principal{Name: extra.TokenInfo.UserID, Groups: groups})
		}
		return next(ctx, method, req)
	}
}
