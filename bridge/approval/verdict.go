package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// A Scope is how much an approval covers.
type Scope string

const (
	Once         Scope = "once"    // this call
	RunScope     Scope = "run"     // calls like it in this run, as many as Verdict.Count says
	SessionScope Scope = "session" // calls like it in this session

	// AnyArgs is what earlier releases also wrote. It is never offered, and covers
	// nothing.
	AnyArgs Scope = "session_any"
)

// A Verdict is the person's answer, or what stands in for one.
type Verdict struct {
	Request string `json:"request,omitempty"` // the id of what it settled
	Approve bool   `json:"approve"`
	Scope   Scope  `json:"scope,omitempty"` // of an approval; empty means Once
	Count   int    `json:"count,omitempty"` // of RunScope: how many calls, with those that it was asked about
	// Forget says of an approval with the scope Once that what was read before the calls were decided
	// is no reason any more to ask about later ones: see profiles.Decision.Context.
	Forget bool   `json:"forget,omitempty"`
	Reason Reason `json:"reason,omitempty"` // of a denial
	Stop   bool   `json:"stop,omitempty"`   // of a denial: the run is to end
	// NoMore says of a denial that it is one of every further call of the request's
	// tools in this run.
	NoMore bool `json:"no_more,omitempty"`
	// List says, of a verdict on a request with Spent, that what the session asks
	// from now on is to be collected while people answer, and put as one list.
	List bool `json:"list,omitempty"`
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
	Rights
	// Strong says that they proved who they are, and Credential how. The channel sets
	// both, and the rights, never the person.
	Strong     bool       `json:"strong,omitempty"`
	Credential Credential `json:"credential,omitempty"`
	Use        Use        `json:"-"`                 // of the grant that answered
	Channel    string     `json:"channel,omitempty"` // elicitation, page, terminal, api; or fallback, grant, timeout, limit, run
	Time       time.Time  `json:"time"`              // when it was given; once it counts, when it did
}

// Rights are what lets an approver decide: their roles, and those of each approver in whose
// name they may.
type Rights struct {
	Roles []string            `json:"roles,omitempty"`
	Lent  map[string][]string `json:"lent,omitempty"`
}

// Shown returns the verdict as others may see it: without its author's
// credential, and with edited arguments only in their display form.
func (v Verdict) Shown() Verdict {
	v.Edited = v.Edited || v.Args != nil
	v.Args, v.Credential = nil, ""
	v.By, v.For, v.Stopped, v.Text = canon.Escape(v.By), canon.Escape(v.For), canon.Escape(v.Stopped), canon.EscapeLines(canon.Redact(v.Text))
	return v
}

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
	remembered := v.Scope == SessionScope || v.Scope == RunScope
	switch {
	case !v.Approve && v.Reason == "":
		return fmt.Errorf("a no needs a reason")
	case !v.Approve:
		return nil
	case v.Scope != "" && v.Scope != Once && !remembered:
		return fmt.Errorf("there is no scope %q", v.Scope)
	case remembered && len(r.wider(RunScope).kinds) == 0:
		return fmt.Errorf("a yes to this call counts only once%s", r.whyOnce())
	case v.Scope == SessionScope && len(r.wider(SessionScope).kinds) == 0:
		return fmt.Errorf("what the call changes is elsewhere: a yes to more than this call is for this run, up to a number")
	case v.Scope == RunScope && (v.Count < len(r.Items) || v.Count > r.MaxCount()):
		return fmt.Errorf("a yes for this run says for how many calls, from %d to %d", len(r.Items), r.MaxCount())
	case v.Scope != RunScope && v.Count != 0:
		return fmt.Errorf("only a yes for this run says for how many calls")
	case v.Forget && remembered:
		return fmt.Errorf("only a yes to this call alone can have forgotten what was read before")
	case v.Forget && !d.MayForget():
		return fmt.Errorf("nobody is asked about this call because of what was read before, or it takes more than one yes: nothing is forgotten with it")
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
	return r.checkEdit(v.Args)
}

// SelfApproval returns an error if v is the requester's own approval and
// somebody else must give it; nil if v may count.
func (r Request) SelfApproval(v Verdict) error {
	switch {
	case !r.NeedsAnother():
		return nil
	case v.Credential.isOwner():
		return errors.New("the owner runs the bridge and counts as who asked for this call; somebody else must allow it, a configured approver")
	case r.Requester != "" && v.For == r.Requester:
		return fmt.Errorf("%s asked for this call, and %s decides in their name; somebody else must allow it", r.Requester, v.By)
	case r.Requester != "" && v.By == r.Requester:
		return fmt.Errorf("%s asked for this call; somebody else must allow it", r.Requester)
	}
	return nil
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

// unanswered returns the verdict on a question whose run ended first, and why
// it did.
func unanswered(why error) Verdict {
	v := Verdict{Reason: Expired, Channel: "run"}
	if stop := (*StoppedError)(nil); errors.As(why, &stop) {
		v.Stopped = stop.By
	}
	return v
}

// withdrawn reports whether it is of a question that ended with its run. If the run goes on
// all the same, at another bridge, it is no answer.
func (v Verdict) withdrawn() bool {
	return v.Reason == Expired && v.Channel == "run" && v.Stopped == ""
}

// withEdit returns the verdict with what others may see of its arguments, computed
// here and not taken from whoever sent the verdict.
func (v Verdict) withEdit(r Request) Verdict {
	v.EditedArgs, v.Edited = r.EditedArgs(v.Args), v.Args != nil
	return v
}

// StopsRun is why a run ends whose person denied a call and stopped the run.
func (v Verdict) StopsRun() error {
	why := "the person who was asked said no and stopped the script"
	if v.Text != "" {
		why += "; they wrote: " + strconv.Quote(v.Text)
	}
	return &StoppedError{By: v.Who(), Why: why}
}

// Became says in a word what became of a question with this verdict, whose run may have been
// suspended meanwhile.
func (v Verdict) Became(suspended bool) string {
	switch {
	case suspended:
		return "suspended"
	case v.Approve:
		return "approved"
	}
	return "denied"
}
