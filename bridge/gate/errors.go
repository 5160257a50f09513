package gate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// An ArgumentError is a call that was not sent because the tool does not accept
// its arguments.
type ArgumentError struct {
	Tool        string
	Path        string // JSON pointer to what is wrong; empty for the whole
	Message     string
	Declaration string // the tool's, in TypeScript
}

func (e *ArgumentError) Error() string { return e.Message }

// An UnknownToolError is a call of a tool that does not exist.
type UnknownToolError struct {
	Name    string
	Near    []string // names that look like it
	Message string
	// Later reports that its server has not listed its tools yet: the same call may pass
	// in another run.
	Later bool
}

func (e *UnknownToolError) Error() string { return e.Message }

// An UnknownOutcomeError is a call that was sent to a tool that may have changed
// something, and whose answer did not arrive.
type UnknownOutcomeError struct {
	Tool, Server string
	Repeatable   bool // making the call again does no harm
	Err          error
}

func (e *UnknownOutcomeError) Error() string {
	next := "check before making it again"
	if e.Repeatable {
		next = "it does no harm to make it again"
	}
	return fmt.Sprintf("%s was sent and its answer did not arrive, so nobody can tell what it did; %s: %v", e.Tool, next, e.Err)
}
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// A CallError is a call that failed on its way without harm: it did not reach its
// server, or it only read something.
type CallError struct {
	Tool, Server string
	Err          error
}

func (e *CallError) Error() string { return fmt.Sprintf("%s: %v", e.Tool, e.Err) }
func (e *CallError) Unwrap() error { return e.Err }

// unknownTool says that no tool is called name, and which of those that the script
// sees have similar names.
func unknownTool(seen *catalog.View, name string) *UnknownToolError {
	e := &UnknownToolError{Name: name, Near: seen.Near(name, 3)}
	e.Message = fmt.Sprintf("there is no tool %q", name)
	if len(e.Near) > 0 {
		e.Message += "; did you mean " + strings.Join(e.Near, " or ") + "?"
	} else {
		e.Message += `; find one with await codemode.search_tools({query: "..."})`
	}
	return e
}

// denied says that c was not sent, and why. The text is what a person or the
// broker wrote, if anything.
func denied(c *call, reason approval.Reason, text string) *approval.DeniedError {
	return refused(c, reason, text, false)
}

// answered says that c was not sent because of a verdict. A stale verdict stays
// stale: the broker gives it to the same call again.
func answered(c *call, v approval.Verdict) *approval.DeniedError {
	return refused(c, v.Reason, v.Text, v.Final || v.Reason == approval.Stale)
}

// refused is denied with the error's field final.
func refused(c *call, reason approval.Reason, text string, final bool) *approval.DeniedError {
	why := c.decision.Because()
	var words string
	switch reason {
	case approval.Denied:
		if why.Kind == profiles.KindPolicyError {
			reason = approval.PolicyError
		}
		if why.Kind == profiles.KindQuarantine {
			words = why.Detail
			break
		}
		if why.Kind == profiles.KindAccess {
			words = why.Detail + "; whoever runs the bridge can give access"
			break
		}
		words = fmt.Sprintf("policy denies it (%s)", why)
	case approval.ElicitationDeclined:
		words = "a person was asked and said no"
	case approval.Declined:
		words = "an approver was asked and said no"
	case approval.ElicitationUnsupported:
		words = fmt.Sprintf("a person must allow it (%s), and this client cannot ask one; codemode-bridge install sets it up so that approvers answer", why)
	case approval.NoApprover:
		words = fmt.Sprintf("a person must allow it (%s), and nobody could be reached", why)
		if text != "" { // somebody may have been asked without success
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
	e := &approval.DeniedError{Tool: c.tool.Script, Reason: reason, Final: final}
	e.Message = fmt.Sprintf("%s was not sent: %s. %s", c.tool.Script, words, again(e))
	return e
}

// again says what happens if the same call is made again.
func again(e *approval.DeniedError) string {
	switch e.Reason {
	case approval.ElicitationDeclined, approval.Declined:
		return "The same call is refused without asking in this run; don't try another tool for it"
	case approval.ElicitationUnsupported, approval.NoApprover:
		if e.Final {
			return "The same call is refused again until somebody can be asked"
		}
		return "The same call may be made again: then a person is asked again"
	case approval.Timeout:
		return "The same call is refused without asking in this run; another run asks again"
	case approval.Expired:
		return "Another run may make the call"
	case approval.RateLimited:
		if e.Final {
			return "The same call is refused without asking in this run"
		}
		return "The same call may be made again later"
	case approval.Stale:
		if e.Final {
			return "Run the script again to make the call"
		}
		return "The same call may be made again: then it is judged anew"
	default:
		return "The same call is denied again"
	}
}

// unrecorded says that c was refused because it could not be recorded.
func unrecorded(c *call, err error) *approval.DeniedError {
	return &approval.DeniedError{Tool: c.tool.Script, Reason: approval.AuditUnavailable, Err: err,
		Message: c.tool.Script + " was not sent: its record could not be written, and what cannot be recorded is not done. The same call may be made again later"}
}

// ErrSuspended is returned by the calls of a suspended run: they are neither made
// nor refused, and nothing is recorded about them.
var ErrSuspended = errors.New("the run is suspended while it waits")
