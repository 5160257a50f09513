package secrets

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Variables in a text:
//
//	${NAME}            the variable; it must be set
//	${env:NAME}        the same, as some clients write it
//	${NAME:-default}   the default where the variable is unset or empty
//	${keyring:NAME}    a secret, as are ${file:...} and ${exec:...}: see Parse
//	$$                 one "$"
//
// A "$" before anything else stands for itself. A default reaches to the next
// "}" and is taken as it is.
var variable = regexp.MustCompile(`(?s)^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?:(:-)(.*))?$`)

// A Slip is a mistake at one place of a text.
type Slip struct {
	Offset int // in bytes
	// Unset means that a variable is not set, rather than that a form is wrong.
	Unset bool
	Error
}

// Expanded is a text with its variables and secrets filled in.
type Expanded struct {
	// Text is empty while a secret is missing, or where there are slips.
	Text string
	// Origin is the text with references in the place of the secrets, which are Named.
	Origin string
	Named  []Reference
	// Missing means that a secret was not asked for, or is not to be had.
	Missing bool
}

// Expand fills in the variables of text, as env looks them up, and those secrets that
// were found.
func Expand(text string, env func(name string) (string, bool), found map[Reference]Secret) (x Expanded, slips []Slip) {
	var out, origin strings.Builder
	for rest := text; rest != ""; {
		i := strings.IndexByte(rest, '$')
		if i < 0 {
			i = len(rest)
		}
		out.WriteString(rest[:i])
		origin.WriteString(rest[:i])
		if i == len(rest) {
			break
		}
		offset := len(text) - len(rest) + i
		rest = rest[i:]
		switch {
		case strings.HasPrefix(rest, "$$"):
			out.WriteByte('$')
			origin.WriteByte('$')
			rest = rest[2:]
		case !strings.HasPrefix(rest, "${"):
			out.WriteByte('$')
			origin.WriteByte('$')
			rest = rest[1:]
		default:
			inner, after, closed := strings.Cut(rest[2:], "}")
			if !closed {
				return Expanded{}, append(slips, Slip{offset, false, Error{`"${" without its "}"`, `write "$$" for a plain "$"`}})
			}
			rest = after
			if r, ours, err := Parse(inner); ours && !strings.Contains(inner, "${") {
				secret, known := found[r]
				if wrong := (*Error)(nil); errors.As(err, &wrong) {
					slips = append(slips, Slip{offset, false, *wrong})
				} else if secret.Err != nil {
					slips = append(slips, Slip{offset, false, *secret.Err})
				}
				x.Named, x.Missing = append(x.Named, r), x.Missing || !known || secret.Err != nil
				out.WriteString(secret.Reveal())
				origin.WriteString(r.String())
				continue
			}
			value, unset, bad := lookUp(inner, env)
			if bad != nil {
				slips = append(slips, Slip{offset, unset, *bad})
			}
			out.WriteString(value)
			origin.WriteString(value)
		}
	}
	if x.Origin = origin.String(); !x.Missing && slips == nil {
		x.Text = out.String()
	}
	return x, slips
}

func lookUp(inner string, env func(string) (string, bool)) (value string, unset bool, _ *Error) {
	m := variable.FindStringSubmatch(inner)
	if m == nil || strings.Contains(m[3], "${") {
		return "", false, badReference(inner)
	}
	name, hasDefault, fallback := m[1], m[2] != "", m[3]
	var ok bool
	if env != nil {
		value, ok = env(name)
	}
	switch {
	case hasDefault && value == "":
		return fallback, false, nil
	case !ok:
		hint := fmt.Sprintf(`set it, or give a default: "${%s:-...}"`, name)
		if name == "workspaceFolder" || name == "userHome" || name == "cwd" {
			hint = "only an editor knows this; write the path"
		}
		return "", true, &Error{fmt.Sprintf("the variable %s is not set", name), hint}
	case strings.ContainsRune(value, 0):
		return "", false, &Error{fmt.Sprintf("the variable %s holds a NUL character", name), ""}
	}
	return value, false, nil
}

func badReference(inner string) *Error {
	const forms = `the forms are "${NAME}", "${NAME:-default}", "${env:NAME}", "${keyring:NAME}", "${file:PATH}", "${exec:COMMAND}", and "$$" for a plain "$"`
	switch {
	case strings.Contains(inner, "${"):
		return &Error{"a variable inside a variable", "a default is a plain text"}
	case strings.HasPrefix(inner, "input:"):
		return &Error{"there is nobody to ask for an input here", `use a variable: "${NAME}"`}
	}
	return &Error{`"${...}" does not name a variable`, forms}
}
