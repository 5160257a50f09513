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

// Secrets are the values that servers are given, in their environment, headers,
// addresses and arguments, whose name or look says that they are secret. If a server
// repeats one in an answer or an error, it must not get into the log. The zero value
// knows none.
type Secrets struct {
	mu      sync.RWMutex
	secrets []string // in all forms, the longest first
	hide    *strings.Replacer
	logins  func(string) string // hides the tokens of logins; may be nil
}

// HideLogins has Scrub also apply logins, which hides the tokens that logins have at
// the time.
func (s *Secrets) HideLogins(logins func(string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins = logins
}

// minSecret is the length from which a secret is hidden in other texts: shorter ones
// occur within ordinary words.
const minSecret = 8

// A Server is what one server is given, in clear.
type Server struct {
	Env     map[string]string
	PassEnv []string // the variables of our own environment that are passed on to it
	Headers map[string]string
	URL     string
	Secrets []string // further secrets: those in its arguments, see ArgSecrets
}

// Learn adds the secrets of servers. None is ever forgotten: an edit of the
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
			return // neither its name nor its look says that it is a secret
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
	// Of several that match at one place the replacer takes the first, which has to be
	// the longest.
	slices.SortFunc(s.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.secrets = slices.Compact(s.secrets)
	var pairs []string
	for _, secret := range s.secrets {
		pairs = append(pairs, secret, "[hidden]")
	}
	s.hide = strings.NewReplacer(pairs...)
}

// Hide returns text without known secrets.
func (s *Secrets) Hide(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.hide == nil {
		return text
	}
	return s.hide.Replace(text)
}

// Scrub removes known secrets from the parts of a record that a script, a server or a
// client wrote.
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
		if !json.Valid([]byte(clean)) { // the secret reached beyond a string
			clean = `"[hidden]"`
		}
		*text = json.RawMessage(clean)
	}
}
