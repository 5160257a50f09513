package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// auth checks how to log in to a server, and fills in the type of login.
func (c *checker) auth(s *Server, at string) {
	if s.Type == KindStdio {
		tokenVariable(c, s, at+"/auth")
	}
	if s.Type != KindHTTP && s.Type != KindSSE {
		return
	}
	a, at := &s.Auth, at+"/auth"
	if c.has(at + "/env") {
		c.key(at+"/env", `"env" is for a server with a "command"`, "leave it out: each person logs in, in the browser")
	}
	if c.has(at) && !c.sound(at) || c.has(at+"/type") && a.Type == "" {
		return
	}
	header := slices.ContainsFunc(slices.Collect(maps.Keys(s.Headers)), func(name string) bool { return strings.EqualFold(name, "Authorization") })
	if a.Type == "" {
		a.Type = AuthPerson
		if header && !c.has(at) {
			a.Type = AuthNone
		}
	}
	if header && a.Type != AuthNone {
		c.at(at, `"auth" and the header "Authorization" are both there`, `keep one of them, or say "auth": {"type": "none"}`)
	}
	if a.Type == AuthNone {
		for _, key := range []string{"per", "clientId", "clientSecret", "scopes", "issuer", "redirectPort"} {
			if c.has(at + "/" + key) {
				c.key(at+"/"+key, fmt.Sprintf("%q does nothing where the type is %q", key, AuthNone), "leave it out")
			}
		}
		return
	}
	for key, text := range map[string]Value{"clientId": a.ClientID, "clientSecret": a.ClientSecret} {
		if c.sound(at+"/"+key) && strings.TrimSpace(text.Reveal()) == "" {
			c.at(at+"/"+key, fmt.Sprintf("%q is empty", key), "")
		}
	}
	if c.has(at+"/clientSecret") && !c.has(at+"/clientId") {
		c.at(at+"/clientSecret", `"clientSecret" is there without "clientId"`, "add the id of the client that it belongs to")
	}
	if a.Type == AuthCredentials {
		if a.Per == AuthPrincipal {
			c.key(at+"/per", fmt.Sprintf("no person logs in where the type is %q", a.Type), fmt.Sprintf("leave it out, or let the type be %q", AuthPerson))
		}
		for _, key := range []string{"clientId", "clientSecret"} {
			if !c.has(at + "/" + key) {
				c.key(at, fmt.Sprintf("type %q needs %q", a.Type, key), "both come from whoever runs the authorization server")
			}
		}
		if c.has(at + "/redirectPort") {
			c.key(at+"/redirectPort", fmt.Sprintf(`"redirectPort" does nothing where the type is %q`, a.Type), "leave it out")
		}
	}
	if (c.sound(at+"/clientSecret") || a.ClientSecret.missing) && !reference.MatchString(written(c.places[at+"/clientSecret"])) {
		c.at(at+"/clientSecret", "a secret may not stand in the file", `name a variable or a secret: "clientSecret": "${CLIENT_SECRET}"`)
	}
	if c.sound(at+"/issuer") && !httpsOrLocal(a.Issuer.Reveal()) {
		c.at(at+"/issuer", `"issuer" is not the https address of an authorization server`, `write "https://host"`)
	}
	for i, scope := range a.Scopes {
		if item := fmt.Sprintf("%s/scopes/%d", at, i); c.sound(item) && !scopeToken(scope) {
			c.at(item, fmt.Sprintf("%q can't be a scope", scope), "one scope an entry, without spaces")
		}
	}
}

// variableForm is the form of the name of a variable.
var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// runsCode are the variables that would let whoever pastes a token have code run here.
var runsCode = regexp.MustCompile(`^(?i:PATH|LD_\w+|DYLD_\w+|\w+_OPTIONS|NODE_PATH|NPM_CONFIG_\w+|PYTHON(PATH|HOME|STARTUP|BREAKPOINT)|PERL5(LIB|OPT|DB)|RUBY(LIB|OPT)|BASH_ENV|SHELL|COMSPEC|PATHEXT|HOME|CLASSPATH|GIT_\w*(COMMAND|CONFIG\w*|ASKPASS|EDITOR))$`)

// tokenVariable checks how the program of a stdio server gets each person's token.
func tokenVariable(c *checker, s *Server, at string) {
	a := &s.Auth
	if !c.has(at) || !c.sound(at) {
		return
	}
	for _, key := range []string{"type", "clientId", "clientSecret", "scopes", "issuer", "redirectPort"} {
		if c.has(at + "/" + key) {
			c.key(at+"/"+key, fmt.Sprintf("%q does nothing for a server with a \"command\"", key), `leave it out: each person pastes a token, and "env" names the variable for it`)
		}
	}
	_, given := s.Env[a.Env]
	switch {
	case c.has(at+"/per") && !c.sound(at+"/per") || c.has(at+"/env") && !c.sound(at+"/env"):
	case a.Per != AuthPrincipal:
		c.key(at, `"auth" of a server with a "command" is for tokens of each person`, `add "per": "principal"; a token that all use belongs into "env" of the server`)
	case a.Env == "":
		c.key(at, `"auth" of a server with a "command" needs "env"`, `name the variable in which its program expects a token: "env": "GITHUB_TOKEN"`)
	case !variableForm.MatchString(a.Env):
		c.at(at+"/env", fmt.Sprintf("%q can't be the name of a variable", a.Env), "letters, digits and _")
	case runsCode.MatchString(a.Env):
		c.at(at+"/env", a.Env+" says what programs run or load, and would be whatever somebody pastes", "name the variable in which the program expects a token")
	case given || slices.Contains(s.PassEnv, a.Env):
		c.at(at+"/env", fmt.Sprintf("%q is the same for everybody, too, by \"env\" or \"passEnv\" of the server", a.Env), "leave it out there")
	}
	a.Type = AuthPerson
}

// scopeToken reports whether a text is one scope as OAuth writes it (RFC 6749,
// section 3.3).
func scopeToken(s string) bool {
	outside := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"\`, r) }
	return s != "" && !strings.ContainsFunc(s, outside)
}
