package main

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/upstream"
)

// known are the secrets of the configuration: what servers are given under a
// telling name in their environment, headers, addresses and arguments. A server that
// repeats one in an answer or an error must not bring it into the log.
type known struct {
	mu      sync.RWMutex
	secrets []string // in all forms, the longest first
	hide    *strings.Replacer
	logins  func(string) string // hides what changes as logins do; may be nil
}

// follow has known also hide what logins knows.
func (k *known) follow(logins func(string) string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.logins = logins
}

// minKnown is the length from which a secret is looked for in other texts:
// shorter ones are parts of ordinary words.
const minKnown = 8

// learn adds the secrets of servers. It forgets none: an edit of the
// configuration does not make the old ones public.
func (k *known) learn(specs []upstream.Spec, env func(string) (string, bool)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	add := func(value string) {
		if len(value) < minKnown {
			return
		}
		forms := []string{value, url.QueryEscape(value), url.PathEscape(value)}
		if quoted, err := json.Marshal(value); err == nil {
			forms = append(forms, string(quoted[1:len(quoted)-1]))
		}
		k.secrets = append(k.secrets, forms...)
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
	for _, s := range specs {
		for name, value := range s.Env {
			named(name, value)
		}
		for _, name := range s.PassEnv {
			if value, ok := env(name); ok {
				named(name, value)
			}
		}
		for _, value := range s.Secrets {
			add(value)
		}
		for name, value := range s.Headers {
			named(name, value)
		}
		u, err := url.Parse(s.URL)
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
	slices.SortFunc(k.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	k.secrets = slices.Compact(k.secrets)
	var pairs []string
	for _, secret := range k.secrets {
		pairs = append(pairs, secret, "[hidden]")
	}
	k.hide = strings.NewReplacer(pairs...)
}

// hidden is a text without the secrets that are known.
func (k *known) hidden(text string) string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.hide == nil {
		return text
	}
	return k.hide.Replace(text)
}

// scrub takes known secrets out of what a script, a server or a client wrote
// of a record.
func (k *known) scrub(r *ledger.Record) {
	k.mu.RLock()
	fixed, logins := k.hide, k.logins
	k.mu.RUnlock()
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
