package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

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

// maxComplaint is how much of a command's standard error an error shows, in characters.
const maxComplaint = 300

// exec runs a command, and returns what it printed.
func (r *Resolver) exec(ctx context.Context, command string) (string, *Error) {
	all, err := words(command)
	if err != nil {
		var wrong *Error
		errors.As(err, &wrong)
		return "", wrong
	}
	program := all[0]
	if strings.ContainsRune(program, '/') || strings.ContainsRune(program, filepath.Separator) {
		path, wrong := r.path(program)
		if wrong != nil {
			return "", wrong
		}
		program = path
	}
	timeout := r.timeout()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it did not end within %v", timeout))
	defer cancel()
	c := exec.CommandContext(ctx, program, all[1:]...)
	out, complaint := &bounded{limit: maxSecret + 2, whole: true}, &bounded{limit: 4 * maxComplaint}
	c.Stdout, c.Stderr, c.Dir, c.Env = out, complaint, r.Folder, r.Environ
	alone(c)
	c.WaitDelay = time.Second // for what it started, and left with its output
	err = c.Run()
	name := quoted(all[0])
	switch {
	case err == nil:
		return out.String(), nil
	case out.over:
		return "", &Error{fmt.Sprintf("the command %s printed more than 64 KB", name), "is that the right one?"}
	case ctx.Err() != nil:
		return "", &Error{fmt.Sprintf("the command %s gave no secret: %v", name, context.Cause(ctx)), `it cannot ask you anything here; "secrets": {"timeout": "30s"} waits longer`}
	case errors.Is(err, exec.ErrNotFound):
		return "", &Error{fmt.Sprintf("the command %s is not in PATH", name), "install it, or write its whole path"}
	}
	message := fmt.Sprintf("the command %s gave no secret: %s", name, reason(err))
	if said := complained(complaint.String(), out.String()); said != "" {
		message += ": " + said
	}
	return "", &Error{message, ""}
}

// complained is what a command wrote to its standard error, on one line and without what
// it printed, which may be a secret.
func complained(text, printed string) string {
	for _, part := range append(strings.Split(printed, "\n"), strings.Fields(printed)...) {
		if part = strings.TrimSpace(part); len(part) >= 4 { // shorter ones are parts of words
			text = strings.ReplaceAll(text, part, "[hidden]")
		}
	}
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))), " ")
	if runes := []rune(text); len(runes) > maxComplaint {
		text = string(runes[:maxComplaint]) + "..."
	}
	return text
}

// quoted is a word as a person would type it.
func quoted(word string) string {
	if word == "" || strings.ContainsFunc(word, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(operators+`'"`, r) }) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// A bounded keeps the beginning of what is written to it. If it is to have the whole, it
// refuses more.
type bounded struct {
	kept  bytes.Buffer
	limit int
	whole bool
	over  bool
}

func (b *bounded) String() string { return b.kept.String() }

func (b *bounded) Write(data []byte) (int, error) {
	room := b.limit - b.kept.Len()
	if len(data) <= room {
		return b.kept.Write(data)
	}
	b.over = true
	b.kept.Write(data[:room])
	if b.whole {
		return 0, errors.New("too much output")
	}
	return len(data), nil
}
