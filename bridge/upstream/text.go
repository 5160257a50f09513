package upstream

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"codemode-bridge/bridge/upstream/tap"
)

// maxLink bounds the link of a login.
const maxLink = 4000

// A redactor removes the secrets of one Spec from texts.
type redactor struct {
	fixed *strings.Replacer
	auth  Authorizer // knows those that change; may be nil
}

// Replace returns text without the secrets.
func (r redactor) Replace(text string) string {
	text = r.fixed.Replace(text)
	if r.auth != nil {
		text = r.auth.Hide(text)
	}
	return text
}

// minSecret is the length from which a value counts as a secret. Shorter ones,
// such as "1" and "true", are parts of ordinary words.
const minSecret = 6

// newRedactor makes a redactor for the values of spec's variables and headers, with and
// without the word Bearer, and for what its URL carries besides host and path, in the
// forms in which error messages quote them.
func newRedactor(spec Spec, environ []string) redactor {
	var secrets []string
	add := func(value string) {
		if len(value) < minSecret {
			return
		}
		secrets = append(secrets, value, url.QueryEscape(value))
		if quoted, err := json.Marshal(value); err == nil {
			secrets = append(secrets, string(quoted[1:len(quoted)-1]))
		}
	}
	if !spec.Own {
		for _, value := range spec.Env {
			add(value)
		}
		for _, name := range spec.PassEnv {
			if value, ok := lookup(environ, name); ok {
				add(value)
			}
		}
	}
	for _, value := range spec.Secrets {
		add(value)
	}
	for _, value := range spec.Headers {
		add(value)
		if _, token, ok := strings.Cut(value, " "); ok {
			add(strings.TrimSpace(token))
		}
	}
	if u, err := url.Parse(spec.URL); err == nil {
		if u.User != nil {
			add(u.User.Username())
			if password, ok := u.User.Password(); ok {
				add(password)
			}
		}
		for _, values := range u.Query() {
			for _, value := range values {
				add(value)
			}
		}
	}
	// The first match at a place is replaced, so the longest comes first.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, secret := range slices.Compact(secrets) {
		pairs = append(pairs, secret, "[hidden]")
	}
	return redactor{strings.NewReplacer(pairs...), spec.Auth}
}

// show makes a server's text safe to show.
func (r redactor) show(text string, limit int) string {
	return tap.Escape(r.Replace(text), limit)
}

// A shownError has a text that is safe to show, and wraps the error it stands for.
type shownError struct {
	text  string
	plain string // as much of it as is our own; empty if none is, or nobody asks for it
	err   error
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.err }

// showError is show for an error. For an error of net/http, only the cause is shown:
// the address may contain secrets, and the SDK's words around it add nothing.
func (r redactor) showError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	var web *url.Error
	if errors.As(err, &web) {
		text = "the HTTP request broke off: " + web.Err.Error()
	}
	return &shownError{text: r.show(text, tap.MaxMessage), err: err}
}

// lookup returns the value of a variable in environ, which has the form of
// os.Environ. The last entry of a name counts.
func lookup(environ []string, name string) (string, bool) {
	for _, entry := range slices.Backward(environ) {
		if key, value, ok := strings.Cut(entry, "="); ok && sameVariable(key, name) {
			return value, true
		}
	}
	return "", false
}
