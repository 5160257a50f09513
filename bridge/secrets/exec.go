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

// maxComplaint is how much of a command's standard error an error shows, in characters.
const maxComplaint = 300

// surroundings are what a command runs in.
type surroundings struct {
	place   place
	environ []string
	timeout time.Duration
}

// run runs a command, and returns what it printed.
func run(ctx context.Context, command string, in surroundings) (string, *Error) {
	all, err := words(command)
	if err != nil {
		var wrong *Error
		errors.As(err, &wrong)
		return "", wrong
	}
	program := all[0]
	if strings.ContainsRune(program, '/') || strings.ContainsRune(program, filepath.Separator) {
		path, wrong := in.place.path(program)
		if wrong != nil {
			return "", wrong
		}
		program = path
	}
	ctx, cancel := context.WithTimeoutCause(ctx, in.timeout, fmt.Errorf("it did not end within %v", in.timeout))
	defer cancel()
	c := exec.CommandContext(ctx, program, all[1:]...)
	out, complaint := &bounded{limit: maxSecret + 2, whole: true}, &bounded{limit: 4 * maxComplaint}
	c.Stdout, c.Stderr, c.Dir, c.Env = out, complaint, in.place.folder, in.environ
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
