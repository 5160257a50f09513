// Package approval puts requests to people and settles each once.
//
// A call that policy wants a person to allow becomes a [Request]. The caller
// waits for the answer in [Broker.Ask]; whoever can reach a person watches
// [Broker.Pending] and passes the [Verdict] to [Broker.Settle]. The first valid
// verdict wins, and later ones are told that they came too late. Silence is a
// verdict too: always a denial.
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
package approval

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// unanswered returns the verdict on a question whose run ended first, and why
// it did.
func unanswered(why error) Verdict {
	v := Verdict{Reason: Expired, Channel: "run"}
	if stop := (*StoppedError)(nil); errors.As(why, &stop) {
		v.Stopped = stop.By
	}
	return v
}

// A Key identifies a call: an approval of one call holds for any call with an
// equal key.
type Key struct {
	// Configuration is the id of the configuration that asks. Identity says what
	// the server is, beyond its name there.
	Configuration string       `json:"configuration,omitempty"`
	Identity      string       `json:"identity,omitempty"`
	Session       string       `json:"session"`
	Profile       string       `json:"profile"`
	Server        string       `json:"server"`
	Tool          string       `json:"tool"`       // the raw name
	Definition    string       `json:"definition"` // digest of the tool's definition
	Revision      string       `json:"revision"`   // of the policy
	Args          canon.Digest `json:"args"`
}

// A Request is a question put to people, made only from frozen calls. It is
// about one call, or about calls that one loop made together.
type Request struct {
	ID  string `json:"id"`
	Run string `json:"run"`
	// Configuration is the name, for people, of the configuration that asks.
	// Verdicts are judged by that configuration's approvers alone.
	Configuration string `json:"configuration,omitempty"`
	// Folder is the working directory of those of the run's servers that have
	// none of their own; empty if all have one.
	Folder string `json:"folder,omitempty"`
	Client string `json:"client"` // the client's own name for itself, untrusted
	// Requester is who makes the call, as far as the bridge knows: the name of
	// the client's token, empty if it has none.
	Requester string `json:"requester,omitempty"`
	Server    string `json:"server"`
	Tool      string `json:"tool"`   // the raw name
	Script    string `json:"script"` // the tool's name in scripts
	// Summary is one line about it, if it is not ours: see [Options.Summarise].
	Summary string `json:"summary,omitempty"`
	// Says is the model summary of long arguments, once there is one: see
	// [Broker.SetModelSummary]. An approval does not cover it.
	Says string `json:"says,omitempty"`
	// ToolSays is the tool's description as its server gave it at the time of the
	// request, unchecked and cut if it is long. An approval does not cover it; it
	// covers the digest of the definition.
	ToolSays string `json:"tool_says,omitempty"`
	// Hides are the argument names that any rule for the run hides, each with what
	// is shown instead. Decision has only those of the rules that the call matched;
	// edited arguments may match others. An approval does not cover it.
	Hides map[string]string `json:"hides,omitempty"`
	// Items are the calls, in the order they were made. There is at least one.
	Items []Item `json:"items"`
	// Decision says why people are asked, with the risk and the time they have to
	// answer. It holds for every item.
	Decision profiles.Decision `json:"decision"`
	// Checks are the safety checks that run after an approval.
	Checks []string `json:"checks,omitempty"`
	// Difference is how the tool's definition differs from the accepted one, in
	// lines that a person may see; empty if it does not.
	Difference []string `json:"difference,omitempty"`
	// Preview is what could be read from the script before it ran. A model wrote
	// the script.
	Preview analysis.Report `json:"preview"`
	// Done counts the calls that the run had already sent.
	Done int `json:"done"`
	// Separate reports that the requester's own approval does not count.
	Separate bool `json:"separate,omitempty"`
	// Again says that the run may have asked about this call before it was
	// suspended; if so, that request is reused.
	Again bool `json:"-"`
	// Asked is when the request was opened, Grown when the last call joined it,
	// and Until when it is denied for want of an answer.
	Asked time.Time `json:"asked"`
	Grown time.Time `json:"grown"`
	Until time.Time `json:"until"`
}

// An Item is one call of a Request.
type Item struct {
	Call int `json:"call"` // its number in its run
	Key  Key `json:"key"`
	// Shown are the arguments as a person may see them.
	Shown canon.Shown `json:"shown"`
	// Position is where in the script the call was made; calls of one loop
	// share it.
	Position analysis.Position `json:"position"`
	// Sources say in words which bytes of the arguments the run has read before,
	// and where.
	Sources []string `json:"sources,omitempty"`
}

// NeedsApprover reports whether only somebody who proves who they are may
// approve: on the page, in the terminal or through the API.
func (r Request) NeedsApprover() bool {
	return r.Decision.Manual || r.needsAnother()
}

// needsAnother reports whether somebody other than the requester must approve.
func (r Request) needsAnother() bool { return r.Separate || len(r.Decision.Quorums) > 0 }

// SelfApproval returns an error if v is the requester's own approval and
// somebody else must give it; nil if v may count.
func (r Request) SelfApproval(v Verdict) error {
	switch {
	case !r.needsAnother():
		return nil
	case v.byOwner():
		return errors.New("the owner runs the bridge and counts as who asked for this call; somebody else must allow it, a configured approver")
	case r.Requester != "" && v.For == r.Requester:
		return fmt.Errorf("%s asked for this call, and %s decides in their name; somebody else must allow it", r.Requester, v.By)
	case r.Requester != "" && v.By == r.Requester:
		return fmt.Errorf("%s asked for this call; somebody else must allow it", r.Requester)
	}
	return nil
}

// ConfigurationID is the id of the configuration that asks.
func (r Request) ConfigurationID() string { return r.Items[0].Key.Configuration }

// SameCalls reports whether two requests are about the same calls with the
// same arguments, of whatever run and session.
func (r Request) SameCalls(o Request) bool {
	return slices.EqualFunc(r.Items, o.Items, func(a, b Item) bool {
		x, y := a.Key, b.Key
		x.Session, y.Session = "", ""
		return x == y
	})
}

// Editable reports whether a person who edits the arguments sees all that will
// be sent: there is one call, one person allows it, and none of its arguments
// are hidden, cut or escaped.
func (r Request) Editable() bool {
	if len(r.Items) != 1 || len(r.Decision.Quorums) > 0 {
		return false
	}
	args, err := canon.Parse(r.Items[0].Shown.JSON)
	return err == nil && args.Digest() == r.Items[0].Key.Args
}

// Digest returns the digest of everything that an approval would cover. A
// verdict must carry the digest of the request that the person saw.
func (r Request) Digest() canon.Digest {
	h := sha256.New()
	for _, i := range r.Items {
		fmt.Fprintf(h, "%d %q %q %q %q %q %q %q %q %s\n", i.Call, i.Key.Configuration, i.Key.Identity, i.Key.Session, i.Key.Profile, i.Key.Server, i.Key.Tool, i.Key.Definition, i.Key.Revision, i.Key.Args)
	}
	return canon.Digest(h.Sum(nil))
}

// A Scope is how much an approval covers.
type Scope string

const (
	Once    Scope = "once"        // this call
	Same    Scope = "session"     // this call again, in this session
	AnyArgs Scope = "session_any" // this tool with any arguments, in this session
)

// A Verdict is the person's answer, or what stands in for one.
type Verdict struct {
	Request string `json:"request,omitempty"` // the id of what it settled
	Approve bool   `json:"approve"`
	Scope   Scope  `json:"scope,omitempty"`  // of an approval; empty means Once
	Reason  Reason `json:"reason,omitempty"` // of a denial
	Stop    bool   `json:"stop,omitempty"`   // of a denial: the run is to end
	// Final says of a denial that no person gave that its reason holds for the
	// rest of the run.
	Final bool `json:"-"`
	// Stopped says who stopped the run, where that is why nobody answered.
	Stopped string `json:"stopped,omitempty"`
	// Rows are the numbers of the calls that an approval is for; nil means all
	// calls of the request. The others are refused.
	Rows []int `json:"rows,omitempty"`
	// Args, if not nil, are sent instead of the arguments that were shown, once
	// policy has decided on them anew. Only an approval of one call has them.
	Args json.RawMessage `json:"args,omitempty"`
	// Edited says that there were such arguments: Args are dropped as soon as the
	// call has them. EditedArgs, what others may see of them, remain.
	Edited     bool        `json:"edited,omitempty"`
	EditedArgs *EditedArgs `json:"edited_args,omitempty"`
	// Typed is the tool's name as the person typed it.
	Typed string `json:"typed,omitempty"`
	Text  string `json:"text,omitempty"` // what the person wrote, for the script and the record
	By    string `json:"by,omitempty"`   // who decided; empty for nobody
	For   string `json:"for,omitempty"`  // in whose name, if By has no right of their own
	// Roles are the approver's, Lent those of each approver in whose name they
	// may decide; Strong says that they proved who they are, and Credential how.
	// The channel sets all four, never the person.
	Roles      []string            `json:"roles,omitempty"`
	Lent       map[string][]string `json:"lent,omitempty"`
	Strong     bool                `json:"strong,omitempty"`
	Credential Credential          `json:"credential,omitempty"`
	Channel    string              `json:"channel,omitempty"` // elicitation, page, terminal, api; or fallback, grant, timeout, limit, run
	Time       time.Time           `json:"time"`              // when it was given; once it counts, when it did
}

// Shown returns the verdict as others may see it: without its author's
// credential, and with edited arguments only in their display form.
func (v Verdict) Shown() Verdict {
	v.Edited = v.Edited || v.Args != nil
	v.Args, v.Credential = nil, ""
	v.By, v.For, v.Stopped, v.Text = canon.Escape(v.By), canon.Escape(v.For), canon.Escape(v.Stopped), canon.EscapeLines(canon.Redact(v.Text))
	return v
}

// byOwner reports whether the owner of any configuration gave the verdict.
func (v Verdict) byOwner() bool { return strings.HasPrefix(string(v.Credential), "owner:") }

// Who names who decided, and in whose name.
func (v Verdict) Who() string {
	if v.For != "" {
		return v.By + " for " + v.For
	}
	return v.By
}

// minReadTime is how long a critical call must have been shown before an
// approval counts: nobody reads it faster.
const minReadTime = 2 * time.Second

// Valid returns what is wrong with the verdict for r, given at that time; nil if
// it can settle r, or count as one of several approvals.
func (v Verdict) Valid(r Request, at time.Time) error {
	d := r.Decision
	remembered := v.Scope == Same || v.Scope == AnyArgs
	switch {
	case !v.Approve && v.Reason == "":
		return fmt.Errorf("a no needs a reason")
	case !v.Approve:
		return nil
	case v.Scope != "" && v.Scope != Once && !remembered:
		return fmt.Errorf("there is no scope %q", v.Scope)
	case remembered && !d.Remember:
		return fmt.Errorf("this call is allowed once only")
	case remembered && (v.Rows != nil || v.Args != nil):
		return fmt.Errorf("only a yes to everything as it was shown can be remembered")
	case d.RequireReason && strings.TrimSpace(v.Text) == "":
		return fmt.Errorf("a yes to this call needs a reason")
	case d.Risk == profiles.Critical && at.Before(r.Grown.Add(minReadTime)):
		return fmt.Errorf("a yes to a critical call counts %v after it was shown, not sooner: read it first", minReadTime)
	case r.NeedsApprover() && !v.Strong:
		return fmt.Errorf("this call needs an approver on the page, in the terminal or through the API")
	case d.Manual && v.Args == nil && v.Typed != r.Tool:
		return fmt.Errorf("a yes to this call needs the tool's name typed: %s", r.Tool)
	case r.SelfApproval(v) != nil:
		return r.SelfApproval(v)
	case v.Args != nil && (len(r.Items) != 1 || len(d.Quorums) > 0):
		return fmt.Errorf("arguments can be edited for one call that one person allows")
	case v.Rows != nil && (len(v.Rows) == 0 || len(d.Quorums) > 0):
		return fmt.Errorf("a yes to some of the calls names at least one, and is one person's")
	}
	for _, row := range v.Rows {
		if !slices.ContainsFunc(r.Items, func(i Item) bool { return i.Call == row }) {
			return fmt.Errorf("call %d is not part of this request", row)
		}
	}
	return v.edited(r)
}

// edited returns what is wrong with arguments that a person wrote: they cannot
// be parsed, or they contain a mark that stands for a hidden value, which would
// then be sent literally.
func (v Verdict) edited(r Request) error {
	if v.Args == nil {
		return nil
	}
	args, err := canon.Parse(v.Args)
	if err != nil {
		return fmt.Errorf("the edited arguments cannot be read: %w", err)
	}
	if !r.Editable() && holdsMark(args.Value()) {
		return fmt.Errorf("the edited arguments hold a mark such as [hidden], which would be sent as it stands: write the value that is meant")
	}
	return nil
}

func holdsMark(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "[hidden") || strings.Contains(v, "…")
	case []any:
		return slices.ContainsFunc(v, holdsMark)
	case map[string]any:
		for name, value := range v {
			if holdsMark(name) || holdsMark(value) {
				return true
			}
		}
	}
	return false
}

// About returns the verdict on one call of the request.
func (v Verdict) About(call int) Verdict {
	if v.Approve && v.Rows != nil && !slices.Contains(v.Rows, call) {
		v.Approve, v.Scope, v.Reason = false, "", Declined
	}
	return v
}

// Answer says in a word how one call of the request was answered: approved,
// denied, or unanswered if nobody did.
func (v Verdict) Answer(call int) string {
	switch one := v.About(call); {
	case one.Approve:
		return "approved"
	case one.By == "":
		return "unanswered"
	default:
		return "denied"
	}
}
