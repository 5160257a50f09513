// Package secrets fills in the variables of a configuration, and finds the secrets that it
// names instead of holding them:
//
//	${keyring:NAME}        the system's keyring
//	${file:PATH}           a file that only its owner may read
//	${exec:COMMAND ARGS}   what a program prints
//
// [Parse] judges the form alone and touches nothing. A [Resolver] gets the values. The
// errors say what was not found and what to do; they never hold a value.
package secrets

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Kind says where a secret is.
type Kind string

// The kinds.
const (
	Keyring Kind = "keyring"
	File    Kind = "file"
	Exec    Kind = "exec"
)

// A Reference names one secret. References are equal if they are written alike.
type Reference struct {
	Kind Kind
	Name string // the name, the path or the command, as it is written
}

// String returns the reference as a configuration has it.
func (r Reference) String() string { return "${" + string(r.Kind) + ":" + r.Name + "}" }

// NameForm is the form of the names of secrets in the keyring.
var NameForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// Parse reads what stands between "${" and "}". It is not ours if it does not begin with
// a kind and a colon. The error is an [Error].
func Parse(inner string) (r Reference, ours bool, err error) {
	kind, name, _ := strings.Cut(inner, ":")
	r = Reference{Kind(kind), name}
	if !strings.HasPrefix(inner, kind+":") {
		return Reference{}, false, nil
	}
	switch r.Kind {
	case Keyring:
		if !NameForm.MatchString(name) {
			err = &Error{`"${keyring:...}" does not name a secret`, `a name is made of letters, digits, ".", "_" and "-", 64 at most: "${keyring:GITHUB_TOKEN}"`}
		}
	case File:
		switch {
		case strings.TrimSpace(name) == "":
			err = &Error{`"${file:...}" names no file`, `write "${file:~/.secrets/token}"; a relative path starts from the configuration's folder`}
		case strings.HasPrefix(name, "//"):
			err = &Error{`"${file:...}" takes a path, not an address`, `write "${file:/path}" or "${file:~/path}"`}
		}
	case Exec:
		_, err = words(name)
	default:
		return Reference{}, false, nil
	}
	return r, true, err
}

// maxSecret is how long a secret may be, in bytes.
const maxSecret = 64 << 10

// A Secret is what became of a reference: a text, or an error.
type Secret struct {
	text *string // a pointer, so that no print shows what it leads to
	// Err, if not nil, says why there is no text.
	Err *Error
}

// Reveal returns the text itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Found returns the secret with a text.
func Found(text string) Secret { return Secret{text: &text} }

// checked removes the line break at the end of a secret, and refuses what can't be one.
func checked(r Reference, text string) (string, *Error) {
	if line, ok := strings.CutSuffix(text, "\n"); ok {
		text = strings.TrimSuffix(line, "\r")
	}
	what := fmt.Sprintf("the secret of %s", r)
	switch {
	case text == "":
		return "", &Error{what + " is empty", ""}
	case len(text) > maxSecret:
		return "", &Error{what + " is longer than 64 KB", "is that the right one?"}
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", &Error{what + " is not a text", "is that the right one?"}
	}
	return text, nil
}
