package approvalview

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/wording"
)

// A Row is a request in a list, as programs read it.
type Row struct {
	ID string `json:"id"`
	wording.Description
	Asked   time.Time         `json:"asked"`
	Ends    time.Time         `json:"ends"`
	Verdict *approval.Verdict `json:"verdict,omitempty"`
	// Unjudged are answers that wait for the bridge that asked to judge them.
	Unjudged []approval.Verdict `json:"unjudged,omitempty"`
	// Outcomes are the calls of a settled request, and Edited how its call was
	// changed by whoever allowed it.
	Outcomes []ledger.CallOutcome `json:"outcomes,omitempty"`
	Edited   *wording.EditedCall  `json:"edited,omitempty"`
}

// NewRow describes a request; known is what the audit log has of its run's calls, in
// display form.
func NewRow(e approval.StoredRequest, known map[int]ledger.CallState) Row {
	row := Row{ID: e.ID, Description: wording.Describe(e.Request, wording.DescribeOptions{Votes: e.Votes}), Asked: e.Asked, Ends: e.Until, Unjudged: e.Unjudged(), Edited: wording.Edited(&e)}
	if e.Verdict != nil {
		v := e.Verdict.Shown()
		row.Verdict, row.Outcomes = &v, Outcomes(e, known)
	}
	return row
}

// Outcomes says how each call of a settled request was answered and what became of
// it.
func Outcomes(e approval.StoredRequest, known map[int]ledger.CallState) []ledger.CallOutcome {
	var all []ledger.CallOutcome
	for _, item := range e.Items {
		all = append(all, ledger.NewCallOutcome(item.Call, e.Verdict.Answer(item.Call), known))
	}
	return all
}

// Lines describes a request with all of its arguments, for a terminal. own is the id
// of one's own configuration.
func Lines(e approval.StoredRequest, own string, now time.Time) []string {
	d := wording.Describe(e.Request, wording.DescribeOptions{Votes: e.Votes})
	lines := []string{fmt.Sprintf("%s  %s", e.ID, d.Headline)}
	if says := strings.TrimLeft(strings.Join(d.Facts, " ")+" "+d.RiskWhy, " "); says != "" {
		lines = append(lines, "  "+strings.TrimRight(says, " "))
	}
	lines = append(lines, "  tool     "+d.Tool)
	if d.Box != "" {
		lines = append(lines, "  runs     "+d.Box)
	}
	if asks := Elsewhere(e.Request, own); asks != "" {
		lines = append(lines, "  asked by "+asks+": its bridge judges whether an answer counts, by its own approvers")
	}
	for _, call := range d.Calls {
		if len(d.Calls) > 1 {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("  call %d  %s", call.Number, call.Tool)+toCome[call.Planned], " "))
		}
		lines = append(lines, fieldLines(call.Fields)...)
		for _, s := range call.Sources {
			lines = append(lines, "  ! "+s)
		}
	}
	lines = append(lines, editedLines(e)...)
	for _, w := range d.Warnings {
		lines = append(lines, "  ! "+w)
	}
	lines = append(lines, "  why      "+strings.Join(d.Why, "; "), "  a yes    "+d.Covers)
	if wider := e.WiderWords(); wider != "" {
		lines = append(lines, "  wider    "+wider)
	}
	for _, n := range d.Needs {
		lines = append(lines, "  needs    "+n)
	}
	if d.Next != "" {
		lines = append(lines, "  next     "+d.Next)
	}
	if d.Missing != "" {
		lines = append(lines, "  so far   "+d.Missing)
	}
	if len(d.Difference) > 0 {
		lines = append(lines, "  how the tool differs from what was accepted:")
		for _, line := range d.Difference {
			lines = append(lines, "    "+line)
		}
	}
	if d.ToolSays != "" {
		lines = append(lines, "  the server says of this tool, unchecked:")
		for line := range strings.SplitSeq(d.ToolSays, "\n") {
			lines = append(lines, "    | "+line)
		}
	}
	if checks := d.OwnChecks(); len(checks) > 0 {
		lines = append(lines, "  checked  before sending: "+strings.Join(checks, ", "))
	}
	lines = append(lines, fmt.Sprintf("  run      %s of %s, %s before", d.Run, OrUnnamed(d.Client), calls(d.Done)))
	if d.Folder != "" {
		lines = append(lines, "  folder   "+d.Folder)
	}
	if len(d.Model.Calls) > 0 {
		lines = append(lines, "  written by the model, unchecked: its script has "+strings.Join(d.Model.Calls, ", "))
	}
	if d.Model.Says != "" {
		lines = append(lines, "  written by a model, unchecked: of long arguments it says: "+d.Model.Says)
	}
	for _, v := range e.Unjudged() {
		lines = append(lines, "  brought  "+unjudgedWords(v))
	}
	switch {
	case e.Verdict != nil:
		lines = append(lines, "  settled  "+VerdictWords(e.Request, *e.Verdict))
	case !e.Open(now):
		lines = append(lines, "  settled  nobody answered in time: not sent")
	default:
		lines = append(lines, fmt.Sprintf("  no answer by %s means no", d.Until))
	}
	return lines
}

// toCome marks a call that the script has not made yet.
var toCome = map[bool]string{true: "  (to come)"}

// editedLines shows the arguments with which whoever allowed a call replaced its own;
// none if they did not.
func editedLines(e approval.StoredRequest) []string {
	edited := wording.Edited(&e)
	switch {
	case edited == nil:
		return nil
	case edited.Args == nil: // an older release answered it
		return []string{"  edited by " + edited.By + ", who was asked about other arguments: runs show has those that took their place"}
	}
	lines := []string{"  edited by " + edited.By + ": these arguments take the place of those that were asked about:"}
	return append(lines, fieldLines(edited.Fields)...)
}

// AsEdited shows the arguments with which somebody is about to replace a call's own.
func AsEdited(e approval.StoredRequest, args json.RawMessage) []string {
	e.Verdict = &approval.Verdict{Approve: true, Args: args, By: "you"}
	return editedLines(e)
}

// fieldLines shows arguments in full.
func fieldLines(fields []wording.Field) (lines []string) {
	for _, f := range fields {
		if len(f.Lines) <= 1 {
			lines = append(lines, fmt.Sprintf("  %-12s %s", f.Name, strings.Join(f.Lines, "")))
			continue
		}
		lines = append(lines, fmt.Sprintf("  %-12s %d characters, %d lines:", f.Name, f.Characters, len(f.Lines)))
		for _, l := range f.Lines {
			lines = append(lines, "    | "+l)
		}
	}
	return lines
}

// OutcomeLine says what became of a call.
func OutcomeLine(o ledger.CallOutcome) string {
	text := fmt.Sprintf("  call %-3d  %s", o.Call, o.Answer)
	if o.State != "" {
		text += ", " + o.State
	}
	if o.Error != "" {
		text += ": " + o.Error
	}
	return text
}

// OrUnnamed returns the name of a client, or words for a client without one.
func OrUnnamed(name string) string {
	if name == "" {
		return "an unnamed client"
	}
	return name
}

// unjudgedWords describes a verdict that nobody has judged yet.
func unjudgedWords(v approval.Verdict) string {
	word := "no"
	if v.Approve {
		word = "yes"
	}
	return fmt.Sprintf("%s said %s at %s; the bridge that asked has not judged it yet", v.Who(), word, v.Time.Local().Format("15:04:05"))
}

// VerdictWords describes a request's verdict in a few words.
func VerdictWords(r approval.Request, v approval.Verdict) string {
	if v.Stopped != "" {
		return fmt.Sprintf("not answered: %s stopped the run (%s)", canon.Escape(v.Stopped), v.Time.Local().Format("15:04:05"))
	}
	word := "no"
	switch {
	case v.Approve && v.Rows != nil:
		word = fmt.Sprintf("yes to %d of %s", len(v.Rows), calls(len(r.Items)))
	case v.Approve && (v.Edited || v.Args != nil):
		word = "yes, with edited arguments"
	case v.Approve:
		word = "yes"
	}
	if v.Approve && v.Forget {
		word += ", and what was read before is forgotten"
	}
	by := v.Who()
	if by == "" {
		by = "nobody, " + v.Channel
	}
	text := fmt.Sprintf("%s (%s, %s)", word, canon.Escape(by), v.Time.Local().Format("15:04:05"))
	if v.Text != "" {
		text += ": " + canon.Escape(canon.Redact(v.Text))
	}
	return text
}

// A Reader is a store of requests.
type Reader interface {
	Requests(context.Context, approval.Filter) ([]approval.StoredRequest, error)
}

// A FindError says why an id names no request.
type FindError struct{ text string }

func (e *FindError) Error() string { return e.text }

// Find finds a request by its id, or by the beginning of it. The error is a
// [FindError] or the store's.
func Find(ctx context.Context, store Reader, id string) (approval.StoredRequest, error) {
	found, err := store.Requests(ctx, approval.Filter{ID: id})
	if err != nil {
		return approval.StoredRequest{}, err
	}
	if len(found) == 0 && len(id) >= 3 {
		if found, err = store.Requests(ctx, approval.Filter{Newest: 1000}); err != nil {
			return approval.StoredRequest{}, err
		}
		found = slices.DeleteFunc(found, func(e approval.StoredRequest) bool { return !strings.HasPrefix(e.ID, id) })
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return approval.StoredRequest{}, &FindError{fmt.Sprintf("there is no request %q; approvals list names those that wait", id)}
	default:
		return approval.StoredRequest{}, &FindError{fmt.Sprintf("%d requests begin with %q: write more of it", len(found), id)}
	}
}

// WithIdentical adds the open requests that are about the same calls as one of
// entries.
func WithIdentical(ctx context.Context, store Reader, entries []approval.StoredRequest) ([]approval.StoredRequest, error) {
	open, err := store.Requests(ctx, approval.Filter{Open: time.Now()})
	if err != nil {
		return nil, err
	}
	all := slices.Clone(entries)
	for _, o := range open {
		same := func(e approval.StoredRequest) bool { return e.SameCalls(o.Request) }
		known := func(e approval.StoredRequest) bool { return e.ID == o.ID }
		if slices.ContainsFunc(entries, same) && !slices.ContainsFunc(all, known) {
			all = append(all, o)
		}
	}
	return all, nil
}

// Answered says in a word what a verdict does.
func Answered(v approval.Verdict) string {
	if v.Approve {
		return "approved"
	}
	return "denied"
}

// Elsewhere names the configuration that asks if it is not one's own: its bridge
// judges whether an answer counts. Otherwise it is empty.
func Elsewhere(r approval.Request, own string) string {
	if r.ConfigurationID() == own {
		return ""
	}
	if r.Configuration == "" {
		return "another configuration"
	}
	return canon.Escape(r.Configuration)
}

func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}
