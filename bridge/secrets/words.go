package secrets

import (
	"fmt"
	"strings"
	"unicode"
)

// An Error says why a reference means nothing, or why its secret could not be had, and
// what to do about it.
type Error struct{ Message, Hint string }

func (e *Error) Error() string { return e.Message }

// operators mean something to a shell. Nothing here does that, so that they must be
// quoted: else somebody expects it.
const operators = "|&;<>()$`*?"

// words splits a command like a shell that expands nothing: at blanks, except within
// quotes. Nothing is special in single quotes; in double quotes a backslash makes a quote
// or a backslash plain, and elsewhere it is plain itself. The error is an [Error].
func words(command string) ([]string, error) {
	var all []string
	var word strings.Builder
	begun := false
	var quote rune
	runes := []rune(command)
	for i := 0; i < len(runes); i++ {
		c := runes[i]
		switch {
		case c == 0:
			return nil, &Error{`"${exec:...}" holds a NUL character`, ""}
		case quote != 0 && c == quote:
			quote = 0
		case quote == '"' && c == '\\' && i+1 < len(runes) && (runes[i+1] == '"' || runes[i+1] == '\\'):
			i++
			word.WriteRune(runes[i])
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case unicode.IsSpace(c):
			if begun {
				all = append(all, word.String())
				word.Reset()
				begun = false
			}
		case strings.ContainsRune("|&;<>`$", c):
			return nil, &Error{fmt.Sprintf(`"${exec:...}" has %q, and no shell runs the command`, c), "put it in single quotes, or write a script and name that"}
		default:
			begun = true
			word.WriteRune(c)
		}
	}
	if quote != 0 {
		return nil, &Error{fmt.Sprintf(`"${exec:...}" has a %c without its end`, quote), ""}
	}
	if begun {
		all = append(all, word.String())
	}
	if len(all) == 0 || all[0] == "" {
		return nil, &Error{`"${exec:...}" names no program`, `write "${exec:op read op://vault/item/field}"`}
	}
	return all, nil
}

// quoted is a word as a person would type it.
func quoted(word string) string {
	if word == "" || strings.ContainsFunc(word, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(operators+`'"`, r) }) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}
