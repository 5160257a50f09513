package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on text of a server that is shown to people: names, lines of its log,
// messages.
const (
	maxName    = 200
	maxLine    = 500
	maxMessage = 1000
	maxLink    = 4000
)

// visible returns s cut after limit characters, with everything that does not
// print (control, bidi, zero-width and tag characters, broken UTF-8) written as
// Go escapes it, so that a terminal or a log shows it and does not obey it.
func visible(s string, limit int) string {
	clean, count := true, 0
	for _, r := range s {
		count++
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			clean = false
		}
	}
	if clean && count <= limit {
		return s
	}
	var b strings.Builder
	for i, n := 0, 0; i < len(s); n++ {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case n == limit:
			fmt.Fprintf(&b, "... (%d more bytes)", len(s)-i)
			return b.String()
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// A redactor takes the secrets of one Spec out of texts.
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

// newRedactor knows the values of the variables and headers of spec, with and
// without the word Bearer, and what its URL carries besides host and path, in
// the forms that error messages quote them in.
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
	for _, value := range spec.Env {
		add(value)
	}
	for _, name := range spec.PassEnv {
		if value, ok := lookup(environ, name); ok {
			add(value)
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
	// At one place the first that matches is replaced: the longest comes first.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, secret := range slices.Compact(secrets) {
		pairs = append(pairs, secret, "[hidden]")
	}
	return redactor{strings.NewReplacer(pairs...), spec.Auth}
}

// show makes text of a server fit to be shown.
func (r redactor) show(text string, limit int) string {
	return visible(r.Replace(text), limit)
}

// A shownError has a text that is fit to be shown, and the error it stands for.
type shownError struct {
	text string
	err  error
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.err }

// showError is show for an error. Of an error of net/http only the cause is
// shown: the address may carry secrets, and the SDK's words around it say less.
func (r redactor) showError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	var web *url.Error
	if errors.As(err, &web) {
		text = "the HTTP request broke off: " + web.Err.Error()
	}
	return &shownError{text: r.show(text, maxMessage), err: err}
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
