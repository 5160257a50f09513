package gate

import (
	"errors"
	"fmt"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// A Reason says why a call was denied. The words are part of the script API.
type Reason string

const (
	Denied           Reason = "denied"            // by policy
	NoApprover       Reason = "no_approver"       // a person should decide and none could be reached
	AuditUnavailable Reason = "audit_unavailable" // the call could not be written down
	PolicyError      Reason = "policy_error"      // deciding failed
)

// A DeniedError is a call that was not sent because it may not be. In a
// script it is a ToolCallDeniedError.
type DeniedError struct {
	Tool    string // the script name
	Reason  Reason
	Message string
	Err     error // what stood in the way, if it was no decision; not for the script
}

func (e *DeniedError) Error() string { return e.Message }
func (e *DeniedError) Unwrap() error { return e.Err }

// Retryable reports whether the same call might be allowed later.
func (e *DeniedError) Retryable() bool { return e.Reason == AuditUnavailable }

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
	e.Message = fmt.Sprintf("there is no tool %q", canon.Visible(name))
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
func unfit(tool *catalog.Tool, err error) *ArgumentError {
	e := newArgumentError(tool, err.Error())
	var frozen *canon.Error
	if errors.As(err, &frozen) {
		e.Path = frozen.Path
	}
	return e
}

// denied says that policy refuses c, and why.
func denied(c *call, reason Reason) *DeniedError {
	e := &DeniedError{Tool: c.tool.Script, Reason: reason}
	why := because(c.decision)
	switch reason {
	case NoApprover:
		e.Message = fmt.Sprintf("%s was not sent: a person must allow it (%s) and none can be asked here", c.tool.Script, why)
	default:
		e.Message = fmt.Sprintf("%s was not sent: policy denies it (%s)", c.tool.Script, why)
	}
	return e
}

// because puts a decision's reasons into words, the strictest first.
func because(d profiles.Decision) string {
	var words []string
	for _, reason := range d.Reasons {
		if reason.Disposition == d.Disposition {
			words = append(words, reason.String())
		}
	}
	if len(words) == 0 {
		return "no reason was given"
	}
	return strings.Join(words, "; ")
}

// unrecorded says that c was refused because it could not be written down.
func unrecorded(c *call, err error) *DeniedError {
	return &DeniedError{Tool: c.tool.Script, Reason: AuditUnavailable, Err: err,
		Message: c.tool.Script + " was not sent: its record could not be written, and what cannot be recorded is not done"}
}
