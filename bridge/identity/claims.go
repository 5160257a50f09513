package identity

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/principal"
)

// claims are what a token says, or what is said of it at its introspection.
type claims map[string]json.RawMessage

// The bounds of what a principal is made of.
const (
	maxSubject = 255 // as OpenID Connect has it
	maxGroups  = 1000
	maxGroup   = 256
)

// admit checks claims that are known to be the issuer's.
func (r *Resource) admit(c claims) (Caller, error) {
	now := r.o.Now()
	if iss, ok := c.text("iss"); !ok || iss != r.o.Issuer {
		return Caller{}, invalid("the token was issued by another issuer")
	}
	if audience, ok := c.list("aud"); !ok || !slices.ContainsFunc(audience, r.mine) {
		return Caller{}, invalid("the token was issued for another resource, not for %s", r.o.Resource)
	}
	expires, ok := c.moment("exp")
	if !ok {
		return Caller{}, invalid("the token does not say when it expires")
	}
	if !now.Before(expires.Add(leeway)) {
		return Caller{}, invalid("the token has expired")
	}
	for _, name := range []string{"nbf", "iat"} {
		if c[name] == nil {
			continue
		}
		if from, ok := c.moment(name); !ok || now.Add(leeway).Before(from) {
			return Caller{}, invalid("the token is not valid yet")
		}
	}
	if c["cnf"] != nil {
		return Caller{}, invalid("the token is bound to a key of its client, which a bearer token cannot prove")
	}
	if !c.hasScopes(r.o.Scopes) {
		return Caller{}, &Refusal{http.StatusForbidden, "insufficient_scope", "the token lacks a scope: " + strings.Join(r.o.Scopes, " ") + " is needed"}
	}
	subject, ok := c.text("sub")
	if !ok || subject == "" || len(subject) > maxSubject || strings.ContainsFunc(subject, func(r rune) bool { return r < ' ' || r > '~' }) {
		return Caller{}, invalid("the token names nobody: its subject is missing, too long, or not ASCII")
	}
	groups, ok := c.groups(r.o.Groups)
	if !ok {
		return Caller{}, invalid("the groups of the token cannot be read: a list of at most %d names is expected", maxGroups)
	}
	return Caller{principal.Principal{Name: Name(r.o.Issuer, subject), Groups: groups}, expires.Add(leeway)}, nil
}

// Name is the name of an issuer's subject. An issuer's address has no "#", and the name
// of a static token neither that nor a slash: no two principals have the same name.
func Name(issuer, subject string) string { return issuer + "#" + subject }

// mine reports whether an audience is this bridge.
func (r *Resource) mine(audience string) bool {
	return Canonical(audience) == Canonical(r.o.Resource) || slices.Contains(r.o.Audiences, audience)
}

func (c claims) text(name string) (text string, ok bool) {
	return text, c[name] != nil && json.Unmarshal(c[name], &text) == nil
}

// list returns a claim that is a list of texts, or one text.
func (c claims) list(name string) (all []string, ok bool) {
	if one, ok := c.text(name); ok {
		return []string{one}, true
	}
	return all, c[name] != nil && json.Unmarshal(c[name], &all) == nil
}

// moment returns a claim that is a number of seconds since 1970.
func (c claims) moment(name string) (time.Time, bool) {
	var seconds float64
	if c[name] == nil || string(c[name]) == "null" || json.Unmarshal(c[name], &seconds) != nil || math.Abs(seconds) > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}

// hasScopes reports whether the token has all scopes: "scope" of RFC 9068, or "scp",
// as two widespread issuers write it.
func (c claims) hasScopes(needed []string) bool {
	var has []string
	for _, name := range []string{"scope", "scp"} {
		all, _ := c.list(name)
		for _, one := range all {
			has = append(has, strings.Fields(one)...)
		}
	}
	return !slices.ContainsFunc(needed, func(scope string) bool { return !slices.Contains(has, scope) })
}

// groups returns the groups in the claim of a name, or at a JSON pointer. A token
// without the claim has none.
func (c claims) groups(from string) (groups []string, ok bool) {
	if from == "" {
		return nil, true
	}
	at, name := c, from
	if pointer, is := strings.CutPrefix(from, "/"); is {
		keys := strings.Split(pointer, "/")
		for i, key := range keys {
			keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		}
		for _, key := range keys[:len(keys)-1] {
			if at[key] == nil {
				return nil, true
			}
			var inner claims
			if json.Unmarshal(at[key], &inner) != nil {
				return nil, false
			}
			at = inner
		}
		name = keys[len(keys)-1]
	}
	if at[name] == nil {
		return nil, true
	}
	groups, ok = at.list(name)
	tooLong := func(group string) bool { return group == "" || len(group) > maxGroup }
	if !ok || len(groups) > maxGroups || slices.ContainsFunc(groups, tooLong) {
		return nil, false
	}
	return groups, true
}
