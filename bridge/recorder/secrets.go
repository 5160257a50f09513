package recorder

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

// Secrets are those of the configuration: what servers are given under a
// telling name in their environment, headers, addresses and arguments. A server that
// repeats one in an answer or an error must not bring it into the log. The zero
// value knows none.
type Secrets struct {
	mu      sync.RWMutex
	secrets []string // in all forms, the longest first
	hide    *strings.Replacer
	logins  func(string) string // hides what changes as logins do; may be nil
}

// HideLogins has Scrub also hide what logins knows, which changes as logins do.
func (s *Secrets) HideLogins(logins func(string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins = logins
}

// minSecret is the length from which a secret is looked for in other texts:
// shorter ones are parts of ordinary words.
const minSecret = 8

// A Server is what one server is given, in clear.
type Server struct {
	Env     map[string]string
	PassEnv []string // variables of our own environment that it gets
	Headers map[string]string
	URL     string
	Secrets []string // secrets whatever their name: of its arguments, see ArgSecrets
}

// Learn adds the secrets of servers. It forgets none: an edit of the
// configuration does not make the old ones public.
func (s *Secrets) Learn(servers []Server, env func(string) (string, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add := func(value string) {
		if len(value) < minSecret {
			return
		}
		forms := []string{value, url.QueryEscape(value), url.PathEscape(value)}
		if quoted, err := json.Marshal(value); err == nil {
			forms = append(forms, string(quoted[1:len(quoted)-1]))
		}
		s.secrets = append(s.secrets, forms...)
	}
	named := func(name, value string) {
		if canon.Redact(name+"="+value) == name+"="+value {
			return // neither its name nor its look is that of a secret
		}
		add(value)
		if _, token, ok := strings.Cut(value, " "); ok { // Bearer TOKEN
			add(strings.TrimSpace(token))
		}
	}
	for _, server := range servers {
		for name, value := range server.Env {
			named(name, value)
		}
		for _, name := range server.PassEnv {
			if value, ok := env(name); ok {
				named(name, value)
			}
		}
		for _, value := range server.Secrets {
			add(value)
		}
		for name, value := range server.Headers {
			named(name, value)
		}
		u, err := url.Parse(server.URL)
		if err != nil {
			continue
		}
		if password, ok := u.User.Password(); ok {
			add(password)
		}
		for name, values := range u.Query() {
			for _, value := range values {
				named(name, value)
			}
		}
	}
	// At one place the first that matches is replaced.
	slices.SortFunc(s.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.secrets = slices.Compact(s.secrets)
	var pairs []string
	for _, secret := range s.secrets {
		pairs = append(pairs, secret, "[hidden]")
	}
	s.hide = strings.NewReplacer(pairs...)
}

// Hide returns text without the secrets that are known.
func (s *Secrets) Hide(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.hide == nil {
		return text
	}
	return s.hide.Replace(text)
}

// Scrub takes known secrets out of what a script, a server or a client wrote
// of a record.
func (s *Secrets) Scrub(r *ledger.Record) {
	s.mu.RLock()
	fixed, logins := s.hide, s.logins
	s.mu.RUnlock()
	if fixed == nil && logins == nil {
		return
	}
	hide := func(text string) string {
		if fixed != nil {
			text = fixed.Replace(text)
		}
		if logins != nil {
			text = logins(text)
		}
		return text
	}
	for _, text := range []*string{&r.Client, &r.Tool, &r.Answer, &r.Comment, &r.Error, &r.Script, &r.Name} {
		*text = hide(*text)
	}
	for _, text := range []*json.RawMessage{&r.Args, &r.EditedArgs, &r.Input, &r.Preview, &r.Detail} {
		if len(*text) == 0 {
			continue
		}
		clean := hide(string(*text))
		if !json.Valid([]byte(clean)) { // it was more than part of a string
			clean = `"[hidden]"`
		}
		*text = json.RawMessage(clean)
	}
}
