// Package approval puts requests to people and settles each once.
//
// A call that policy wants a person to allow becomes a Request. Whoever wants
// the answer waits in [Broker.Ask]; whoever can reach a person watches
// [Broker.Pending] and brings the answer to [Broker.Settle]. The first valid
// verdict wins and everyone else is told that it came too late. Silence is a
// verdict too, and it is always no.
//
//	gate.Call ── Ask ──▶ Broker ◀── Settle ── elicitation at the client
//	    ◀── verdict ───                       (other channels the same way)
//
// A yes is bound to the exact call: profile, server, tool, the tool's
// definition, and the digest of the arguments. It covers more only where the
// person chose so, as a Grant, and where the risk allows that.
package approval

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// A Reason says why a call was refused. The words are part of the script API.
type Reason string

const (
	Denied                 Reason = "denied"                  // by policy
	ElicitationDeclined    Reason = "elicitation_declined"    // by the person at the client
	ElicitationUnsupported Reason = "elicitation_unsupported" // the client cannot ask
	NoApprover             Reason = "no_approver"             // nobody could be reached
	Timeout                Reason = "timeout"                 // nobody answered in time
	Expired                Reason = "expired"                 // the run ended before the answer
	RateLimited            Reason = "rate_limited"            // too many questions
	Stale                  Reason = "stale"                   // tool, policy or arguments changed since the yes
	AuditUnavailable       Reason = "audit_unavailable"       // the call could not be written down
	PolicyError            Reason = "policy_error"            // deciding failed
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
func (e *DeniedError) Retryable() bool {
	return e.Reason == AuditUnavailable || e.Reason == NoApprover || e.Reason == ElicitationUnsupported
}

// A Key names a call exactly enough that a yes to one is a yes to another.
type Key struct {
	Session    string
	Profile    string
	Server     string
	Tool       string // the raw name
	Definition string // digest of the tool's definition
	Revision   string // of the policy
	Args       canon.Digest
}

// A Request is a question put to a person, made only from frozen calls. It is
// about one call, or about the calls of one loop that were made together.
type Request struct {
	ID     string
	Run    string
	Client string // the client's own name for itself, untrusted
	Server string
	Tool   string // the raw name
	Script string // the tool's name in scripts
	// Items are the calls, in the order they were made. There is at least one.
	Items []Item
	// Decision is why it is asked, with the risk and the time to answer. It
	// holds for every item.
	Decision profiles.Decision
	// Checks are the safety checks that will run after a yes.
	Checks []string
	// Preview is what could be read from the script, which a model wrote.
	Preview analysis.Report
	// Done counts the calls that the run had made before.
	Done int
	// Asked is when the question was opened, Until when it is answered no.
	Asked, Until time.Time
}

// An Item is one call of a Request.
type Item struct {
	Call int // its number in its run
	Key  Key
	// Shown are the arguments as a person may see them.
	Shown canon.Shown
	// Position is where in the script the call was made; calls of one loop
	// share it.
	Position analysis.Position
}

// Digest is over everything that a yes would cover: a verdict must carry the
// digest of the request that the person saw.
func (r Request) Digest() canon.Digest {
	h := sha256.New()
	for _, i := range r.Items {
		fmt.Fprintf(h, "%d %q %q %q %q %q %q %s\n", i.Call, i.Key.Session, i.Key.Profile, i.Key.Server, i.Key.Tool, i.Key.Definition, i.Key.Revision, i.Key.Args)
	}
	return canon.Digest(h.Sum(nil))
}

// A Scope is how much a yes covers.
type Scope string

const (
	Once    Scope = "once"        // this call
	Same    Scope = "session"     // this call again, in this session
	AnyArgs Scope = "session_any" // this tool with any arguments, in this session
)

// A Verdict is the person's answer, or what stands in for one.
type Verdict struct {
	Approve bool
	Scope   Scope  // of a yes; empty means Once
	Reason  Reason // of a no
	Stop    bool   // of a no: the run is to end
	Text    string // what the person wrote, for the script and the record
	By      string // who decided; empty for nobody
	Channel string // elicitation, fallback, grant, timeout, limit
	Time    time.Time
}

// Valid reports what is wrong with a verdict for a request; nil if it can
// settle it.
func (v Verdict) Valid(r Request) error {
	switch {
	case !v.Approve && v.Reason == "":
		return fmt.Errorf("a no needs a reason")
	case !v.Approve:
		return nil
	case v.Scope != "" && v.Scope != Once && v.Scope != Same && v.Scope != AnyArgs:
		return fmt.Errorf("there is no scope %q", v.Scope)
	case (v.Scope == Same || v.Scope == AnyArgs) && !r.Decision.Remember:
		return fmt.Errorf("a call of %s risk is allowed once only", r.Decision.Risk)
	case r.Decision.RequireReason && strings.TrimSpace(v.Text) == "":
		return fmt.Errorf("a yes to this call needs a reason")
	case r.Decision.Manual:
		return fmt.Errorf("this call needs the tool's name typed, on the page or in the terminal")
	case len(r.Decision.Quorums) > 0:
		return fmt.Errorf("this call needs more than one yes")
	}
	return nil
}
