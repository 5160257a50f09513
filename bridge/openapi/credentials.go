package openapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"codemode-bridge/bridge/canon"
)

// A credential is one secret and its place in a request.
type credential struct{ in, name, value string }

// credentials are what the configuration sends with requests, whatever their
// arguments are.
type credentials struct {
	user    *url.Userinfo // of the base URL
	query   url.Values    // of the base URL
	headers http.Header
	schemes map[string]credential // by the document's names
}

// place learns from the document's security schemes where the secrets of the
// configuration belong.
func (c *credentials) place(doc *openapi3.T, secrets map[string]string) error {
	c.schemes = map[string]credential{}
	declared := openapi3.SecuritySchemes{}
	if doc.Components != nil {
		declared = doc.Components.SecuritySchemes
	}
	for _, scheme := range slices.Sorted(maps.Keys(secrets)) {
		ref := declared[scheme]
		if ref == nil || ref.Value == nil {
			return fmt.Errorf("there are credentials for %q, and the document has no such security scheme: it has %s",
				scheme, orNone(slices.Sorted(maps.Keys(declared))))
		}
		one, err := newCredential(ref.Value, secrets[scheme])
		if err != nil {
			return fmt.Errorf("placing the credentials for %q: %w", scheme, err)
		}
		c.schemes[scheme] = one
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return cut(strings.Join(names, ", "), maxNote)
}

// noHeader are headers that no argument can set: those of the connection, those that
// the document describes elsewhere than among the parameters, and those that make
// another request of it.
var noHeader = []string{
	"accept", "authorization", "connection", "content-length", "content-type", "cookie", "expect", "forwarded", "host", "keep-alive",
	"proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "via",
	"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-http-method", "x-http-method-override", "x-method-override", "x-original-url", "x-rewrite-url",
}

// newCredential puts a secret where a scheme says.
func newCredential(s *openapi3.SecurityScheme, secret string) (credential, error) {
	authorization := func(word, value string) (credential, error) {
		return credential{openapi3.ParameterInHeader, "Authorization", word + " " + value}, nil
	}
	switch scheme := strings.ToLower(s.Scheme); {
	case s.Type == "http" && scheme == "basic":
		if !strings.Contains(secret, ":") {
			return credential{}, errors.New(`for basic authentication they are "user:password"`)
		}
		return authorization("Basic", base64.StdEncoding.EncodeToString([]byte(secret)))
	case s.Type == "http" && scheme == "bearer", s.Type == "oauth2", s.Type == "openIdConnect":
		return authorization("Bearer", secret)
	case s.Type == "http" && headerName.MatchString(s.Scheme):
		return authorization(s.Scheme, secret)
	case s.Type == "apiKey" && s.In == openapi3.ParameterInHeader:
		if !headerName.MatchString(s.Name) || slices.Contains(noHeader, strings.ToLower(s.Name)) && !strings.EqualFold(s.Name, "Authorization") {
			return credential{}, fmt.Errorf("the document wants them in the header %q, where credentials do not belong", cut(s.Name, maxName))
		}
		return credential{s.In, s.Name, secret}, nil
	case s.Type == "apiKey" && s.Name != "" && (s.In == openapi3.ParameterInQuery || s.In == openapi3.ParameterInCookie):
		return credential{s.In, s.Name, secret}, nil
	}
	return credential{}, fmt.Errorf("schemes of the type %q are not supported", cut(s.Type+" "+s.Scheme, maxName))
}

// fixed reports whether the configuration sets a parameter, so that no argument can.
// Case does not count: many servers ignore it.
func (c *credentials) fixed(in, name string) bool {
	for _, one := range c.schemes {
		if one.in == in && strings.EqualFold(one.name, name) {
			return true
		}
	}
	switch in {
	case openapi3.ParameterInHeader:
		return len(c.headers.Values(name)) > 0
	case openapi3.ParameterInQuery:
		for set := range c.query {
			if strings.EqualFold(set, name) {
				return true
			}
		}
	case openapi3.ParameterInCookie:
		for _, line := range c.headers.Values("Cookie") {
			cookies, _ := http.ParseCookie(line) // a line that cannot be read sets none
			if slices.ContainsFunc(cookies, func(c *http.Cookie) bool { return strings.EqualFold(c.Name, name) }) {
				return true
			}
		}
	}
	return false
}

// choose returns the schemes whose credentials an operation is sent: those of the
// first alternative for which the configuration has them all. If there is none,
// wanting are those that the first alternative lacks. If the document says nothing
// about security, all credentials are sent.
func (c *credentials) choose(doc *openapi3.T, o *openapi3.Operation) (chosen, wanting []string) {
	all := slices.Sorted(maps.Keys(c.schemes))
	alternatives := doc.Security
	if o.Security != nil {
		alternatives = *o.Security
	} else if len(alternatives) == 0 {
		return all, nil
	}
	optional := false
	for i, alternative := range alternatives {
		var missing []string
		names := slices.Sorted(maps.Keys(alternative))
		for _, name := range names {
			if _, ok := c.schemes[name]; !ok {
				missing = append(missing, name)
			}
		}
		switch {
		case len(names) == 0:
			optional = true
		case len(missing) == 0:
			return names, nil
		case i == 0:
			wanting = missing
		}
	}
	if optional {
		wanting = nil
	}
	return nil, wanting
}

// authorize adds what the configuration sends with a request, with the credentials
// of some schemes. It replaces what the arguments have set.
func (c *credentials) authorize(req *http.Request, schemes []string) {
	query := req.URL.RawQuery
	add := func(name, value string) {
		if query != "" {
			query += "&"
		}
		query += escape(name, false) + "=" + escape(value, false)
	}
	for name, values := range c.query {
		for _, value := range values {
			add(name, value)
		}
	}
	if c.user != nil {
		password, _ := c.user.Password()
		req.SetBasicAuth(c.user.Username(), password)
	}
	for _, scheme := range schemes {
		switch one := c.schemes[scheme]; one.in {
		case openapi3.ParameterInHeader:
			req.Header.Set(one.name, one.value)
		case openapi3.ParameterInQuery:
			add(one.name, one.value)
		case openapi3.ParameterInCookie:
			addCookie(req, one.name, one.value)
		}
	}
	req.URL.RawQuery = query
	for name, values := range c.headers {
		if name == "Cookie" {
			req.Header["Cookie"] = []string{strings.Join(append(req.Header["Cookie"], values...), "; ")}
			continue
		}
		req.Header[name] = values
	}
}

func addCookie(req *http.Request, name, value string) {
	line := escape(name, false) + "=" + escape(value, false)
	if old := req.Header.Get("Cookie"); old != "" {
		line = old + "; " + line
	}
	req.Header.Set("Cookie", line)
}

// minSecret is the length from which a secret is hidden in answers: shorter ones are
// parts of ordinary words.
const minSecret = 6

// hider returns what replaces the secrets of the configuration, in the forms in which
// an API may repeat them.
func (c *credentials) hider(secrets map[string]string) *strings.Replacer {
	forms := map[string]bool{}
	add := func(value string) {
		if len(value) < minSecret {
			return
		}
		quoted, _ := json.Marshal(value) // of a string
		for _, form := range []string{
			value, url.QueryEscape(value), url.PathEscape(value), escape(value, false), string(quoted[1 : len(quoted)-1]), string(encode(value)[1 : len(encode(value))-1]),
		} {
			forms[form] = true
		}
	}
	addUser := func(user, password string) {
		add(password)
		add(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))
	}
	named := func(name, value string) {
		if canon.Redact(name+"="+value) == name+"="+value {
			return // neither its name nor its form is that of a secret
		}
		add(value)
		if word, token, ok := strings.Cut(value, " "); ok {
			add(strings.TrimSpace(token))
			if strings.EqualFold(word, "basic") {
				if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(token)); err == nil {
					user, password, _ := strings.Cut(string(plain), ":")
					addUser(user, password)
				}
			}
		}
	}
	for name, values := range c.headers {
		for _, value := range values {
			named(name, value)
		}
	}
	for name, values := range c.query {
		for _, value := range values {
			named(name, value)
		}
	}
	if c.user != nil {
		password, _ := c.user.Password()
		addUser(c.user.Username(), password)
	}
	for scheme, secret := range secrets {
		add(secret)
		add(c.schemes[scheme].value)
		if user, password, ok := strings.Cut(secret, ":"); ok && strings.HasPrefix(c.schemes[scheme].value, "Basic ") {
			addUser(user, password)
		}
	}
	// The first match at a place is replaced, so the longest comes first.
	all := slices.SortedFunc(maps.Keys(forms), func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, form := range all {
		pairs = append(pairs, form, "[hidden]")
	}
	return strings.NewReplacer(pairs...)
}
