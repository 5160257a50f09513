package config

import (
	"fmt"
	"regexp"
	"strings"
)

// Env looks a variable up, as os.LookupEnv does. A nil Env knows none.
type Env = func(name string) (string, bool)

// Variables in a text:
//
//	${NAME}            the variable; it must be set
//	${env:NAME}        the same, as some clients write it
//	${NAME:-default}   the default where the variable is unset or empty
//	$$                 one "$"
//
// A "$" before anything else stands for itself. A default reaches to the next
// "}" and is taken as it is.
var variable = regexp.MustCompile(`(?s)^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?:(:-)(.*))?$`)

// A slip is a mistake at one place of a text.
type slip struct {
	offset int
	// unset means that a variable is not set, rather than that a form is wrong.
	unset bool
	mistake
}

// expand fills in the variables of text. If there are slips, it returns no text.
func expand(text string, env Env) (string, []slip) {
	var out strings.Builder
	var slips []slip
	for rest := text; rest != ""; {
		i := strings.IndexByte(rest, '$')
		if i < 0 {
			out.WriteString(rest)
			break
		}
		out.WriteString(rest[:i])
		offset := len(text) - len(rest) + i
		rest = rest[i:]
		switch {
		case strings.HasPrefix(rest, "$$"):
			out.WriteByte('$')
			rest = rest[2:]
		case !strings.HasPrefix(rest, "${"):
			out.WriteByte('$')
			rest = rest[1:]
		default:
			inner, after, closed := strings.Cut(rest[2:], "}")
			if !closed {
				return "", append(slips, slip{offset, false, mistake{`"${" without its "}"`, `write "$$" for a plain "$"`}})
			}
			rest = after
			value, unset, bad := lookUp(inner, env)
			if bad != nil {
				slips = append(slips, slip{offset, unset, *bad})
			}
			out.WriteString(value)
		}
	}
	if slips != nil {
		return "", slips
	}
	return out.String(), nil
}

func lookUp(inner string, env Env) (value string, unset bool, _ *mistake) {
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
		return "", true, &mistake{fmt.Sprintf("the variable %s is not set", name), hint}
	case strings.ContainsRune(value, 0):
		return "", false, &mistake{fmt.Sprintf("the variable %s holds a NUL character", name), ""}
	}
	return value, false, nil
}

func badReference(inner string) *mistake {
	const forms = `the forms are "${NAME}", "${NAME:-default}", "${env:NAME}", and "$$" for a plain "$"`
	switch {
	case strings.Contains(inner, "${"):
		return &mistake{"a variable inside a variable", "a default is a plain text"}
	case strings.HasPrefix(inner, "input:"):
		return &mistake{"there is nobody to ask for an input here", `use a variable: "${NAME}"`}
	}
	return &mistake{`"${...}" does not name a variable`, forms}
}
