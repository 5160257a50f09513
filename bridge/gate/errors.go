package gate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// An ArgumentError is a call that was not sent because its arguments are not
// what the tool takes.
type ArgumentError struct {
	Tool        string
	Path        string // JSON pointer to what is wrong; empty for the whole
	Message     string
	Declaration string // the tool's, in TypeScript
}

func (e *ArgumentError) Error() string { return e.Message }

// An UnknownToolError is a call of a name that no tool has.
type UnknownToolError struct {
	Name    string
	Near    []string // names that look like it
	Message string
}

func (e *UnknownToolError) Error() string { return e.Message }

// An UnknownOutcomeError is a call that was sent, of a tool that may have
// changed something, and whose answer did not arrive.
type UnknownOutcomeError struct {
	Tool, Server string
	Err          error
}

func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("%s was sent and its answer did not arrive, so nobody can tell what it did: %v", e.Tool, e.Err)
}
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// A CallError is a call that failed on its way: it did not reach its server,
// or only asked for something.
type CallError struct {
	Tool, Server string
	Err          error
}

func (e *CallError) Error() string { return fmt.Sprintf("%s: %v", e.Tool, e.Err) }
func (e *CallError) Unwrap() error { return e.Err }

// unknownTool says that nothing is called name, and what is.
func unknownTool(view *View, r *Run, name string) *UnknownToolError {
	e := &UnknownToolError{Name: name, Near: view.Sees(r.Profile).Near(name, 3)}
	e.Message = fmt.Sprintf("there is no tool %q", name)
	if len(e.Near) > 0 {
		e.Message += "; did you mean " + strings.Join(e.Near, " or ") + "?"
	} else {
		e.Message += `; find one with await codemode.search_tools({query: "..."})`
	}
	return e
}

// newArgumentError says what is wrong with the arguments of a call to tool.
func newArgumentError(tool *catalog.Tool, wrong string) *ArgumentError {
	return &ArgumentError{Tool: tool.Script, Declaration: tool.Declaration(),
		Message: fmt.Sprintf("%s was not sent: %s. Declaration: %s", tool.Script, wrong, tool.Declaration())}
}

// unfit says why the arguments of a call to tool could not be frozen.
func unfit(tool *catalog.Tool, err error, by []*profiles.Profile) *ArgumentError {
	e := newArgumentError(tool, unread(err, by))
	var frozen *canon.Error
	if errors.As(err, &frozen) {
		e.Path = pointer(steps(frozen.Path))
	}
	return e
}

// unread is an error of canon.Parse in words, without what the profiles hide.
func unread(err error, by []*profiles.Profile) string {
	var frozen *canon.Error
	if !errors.As(err, &frozen) || frozen.Path == "" {
		return err.Error()
	}
	return "reading " + canon.Visible(placeText(steps(frozen.Path), canon.DisplayOptions{Hidden: hiddenBy(by)})) + ": " + frozen.Reason
}

// denied says that c was not sent, and why. The text is what a person or the
// broker wrote, if anybody wrote something.
func denied(c *call, reason approval.Reason, text string) *approval.DeniedError {
	why := c.decision.Because()
	var words string
	switch reason {
	case approval.Denied:
		if c.decision.Because().Kind == profiles.KindQuarantine {
			words = c.decision.Because().Detail
			break
		}
		words = fmt.Sprintf("policy denies it (%s)", why)
	case approval.ElicitationDeclined:
		words = "a person was asked and said no"
	case approval.Declined:
		words = "an approver was asked and said no"
	case approval.ElicitationUnsupported:
		words = fmt.Sprintf("a person must allow it (%s), and this client cannot ask one", why)
	case approval.NoApprover:
		words = fmt.Sprintf("a person must allow it (%s), and nobody could be reached", why)
		if text != "" { // somebody may have been, in vain
			words = fmt.Sprintf("a person must allow it (%s), and nobody has", why)
		}
	case approval.Timeout:
		words = "a person was asked and did not answer in time"
	case approval.Expired:
		words = "the run has ended"
	case approval.RateLimited:
		words = "too much is asked"
	case approval.Stale:
		words = "what was allowed is not what would be sent now"
	default:
		words = string(reason)
	}
	switch {
	case text == "":
	case reason == approval.ElicitationDeclined || reason == approval.Declined:
		words += "; they wrote: " + strconv.Quote(text)
	default:
		words += ": " + text
	}
	if reason == approval.ElicitationDeclined || reason == approval.Declined {
		words += ". The same call will be refused without asking; don't try another tool for it"
	}
	return &approval.DeniedError{Tool: c.tool.Script, Reason: reason, Message: fmt.Sprintf("%s was not sent: %s", c.tool.Script, words)}
}

// unrecorded says that c was refused because it could not be written down.
func unrecorded(c *call, err error) *approval.DeniedError {
	return &approval.DeniedError{Tool: c.tool.Script, Reason: approval.AuditUnavailable, Err: err,
		Message: c.tool.Script + " was not sent: its record could not be written, and what cannot be recorded is not done"}
}
