// Package approval puts requests to people and settles each once.
//
// A call that policy wants a person to allow becomes a [Request]. The caller
// waits for the answer in [Broker.Ask]; whoever can reach a person watches for
// open requests ([Broker.Watch], [Broker.Changed]) and passes the [Verdict] to
// [Broker.Settle]. The first valid verdict wins, and later ones are told that they
// came too late. Silence is a verdict too: always a denial.
//
//	gate.Call ── Ask ──▶ Broker ◀── Settle ── elicitation at the client
//	    ◀── verdict ───                       (other channels the same way)
//
// Several processes, each with its own approvers, may share one store of
// requests: the process that asked judges which verdicts count (relay.go).
//
// An approval is bound to the exact call: profile, server, tool, the tool's
// definition, and the digest of the arguments. It covers more only if the
// person chose so, as a [Grant], and the risk permits it.
//
// The files, from the floor up:
//
//	request, verdict, edited     the question and the answer; arguments that a person wrote
//	credential, approvers        who may answer, and how they prove who they are
//	stored_request, relay        what a verdict does to a stored request, here or in another process
//	store, memory                the contract of stores, and the one in memory
//	cover, choices               which calls a wider approval covers; the answers that a request offers
//	grants, limits               calls that nobody needs to be asked about
//	questions, judging, resume   the open requests of this process, and verdicts from others
//	broker, ask, settle, waiting the Broker, its calls, its verdicts, and what waits
//	describe, field, suspicious  a request in words: its arguments, and what to beware of
//	prompt, phrase, columns      the same for a client's dialog, in bounded room
//	pending_config               configurations that wait, in the same store
package approval

// A Reason says why a call was refused. The words are part of the script API.
type Reason string

const (
	Denied                 Reason = "denied"                  // by policy
	ElicitationDeclined    Reason = "elicitation_declined"    // by the person at the client
	Declined               Reason = "declined"                // by a person on the page, in the terminal or through the API
	ElicitationUnsupported Reason = "elicitation_unsupported" // the client cannot ask
	NoApprover             Reason = "no_approver"             // nobody could be reached
	Timeout                Reason = "timeout"                 // nobody answered in time
	Expired                Reason = "expired"                 // the run ended before the answer
	RateLimited            Reason = "rate_limited"            // too many questions
	Stale                  Reason = "stale"                   // tool, policy or arguments changed since the yes
	AuditUnavailable       Reason = "audit_unavailable"       // the call could not be written down
	PolicyError            Reason = "policy_error"            // deciding failed, or the profile is gone
)

// A DeniedError is a call that was not sent because it may not be. In a
// script it is a ToolCallDeniedError.
type DeniedError struct {
	Tool   string // the script name
	Reason Reason
	// Final reports that the denial holds for the rest of the run, even if its
	// reason alone would suggest otherwise.
	Final   bool
	Message string
	Err     error // the cause, if it was not a decision; not for the script
}

func (e *DeniedError) Error() string { return e.Message }
func (e *DeniedError) Unwrap() error { return e.Err }

// Fields are what a script sees of the denial besides its message, in a run of a trace.
func (e *DeniedError) Fields(trace string) map[string]any {
	all := map[string]any{"toolName": e.Tool, "reason": e.Reason, "retryable": e.Retryable()}
	if trace != "" {
		all["traceId"] = trace
	}
	return all
}

// Retryable reports whether the same call may pass if its run makes it again
// later. If not, it is refused without asking.
func (e *DeniedError) Retryable() bool {
	switch e.Reason {
	case NoApprover, RateLimited, Stale, AuditUnavailable:
		return !e.Final
	}
	return false
}

// Rerunnable reports whether the same call may pass in another run: it was not
// refused by policy or by a person, nor because nobody can be asked.
func (e *DeniedError) Rerunnable() bool {
	switch e.Reason {
	case Timeout, Expired, Stale:
		return true
	}
	return e.Retryable()
}

// A StoppedError is the cause with which a run ends that somebody stopped. The
// run's open requests go unanswered, and their verdicts say who stopped it.
type StoppedError struct {
	By  string
	Why string // replaces the usual words, if not empty
}

func (e *StoppedError) Error() string {
	if e.Why != "" {
		return e.Why
	}
	return e.By + " stopped the run"
}
