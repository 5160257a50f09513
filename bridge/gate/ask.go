package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// ask asks people about c. After an approval it returns the view of that moment,
// on which c must be decided again, since minutes may have passed. The approval is
// void if the tool or its server is another one by then, or a path leads elsewhere.
// The arguments are those that the approver left.
func (r *Run) ask(ctx context.Context, c *call) (*View, error) {
	r.findSources(c)
	verdict, err := r.put(ctx, c)
	if err != nil {
		return nil, err
	}
	if !verdict.Approve {
		return nil, answered(c, verdict)
	}
	view := r.gate.View()
	if err := c.moved(r, view.Identities[c.tool.Server]); err != nil {
		return nil, err
	}
	tool, ok := view.Catalog.Tool(c.tool.Ref())
	if !ok || tool.Digest != c.tool.Digest {
		return nil, denied(c, approval.Stale, "the tool has changed")
	}
	if verdict.Args != nil {
		if err := c.edit(view, r.bound(view), verdict); err != nil {
			return nil, err
		}
	}
	if err := leadsElsewhere(r, c); err != nil {
		return nil, err
	}
	if verdict.Channel != "grant" { // those who gave it saw other calls
		c.met = c.names(view, r.meaning(view, c))
		r.gate.met.Meet(r.Session, c.met)
	}
	return view, nil
}

// mayAsk reports whether somebody can answer a question with this decision: the
// person at the client, or an approver. The questions of a client that cannot ask
// go to approvers only where the profile says so, or where nobody else may answer;
// those of a client that could ask but answers by itself always do.
func (r *Run) mayAsk(d profiles.Decision) bool {
	strong := r.gate.broker.NeedsApprover(d)
	switch {
	case r.Reach == ByElicitation && !strong && !r.host.AnswersItself():
		return true
	case !r.gate.approvers():
		return false
	default:
		return strong || r.Reach == ByApprovers || r.Reach == ByElicitation || d.Fallback == profiles.FallbackQueue
	}
}

// HasApprovers reports whether anybody could answer on an authenticated channel.
func (g *Gate) HasApprovers() bool { return g.approvers() }

// Queues reports whether approvers answer questions that nobody answers at the client.
func (g *Gate) Queues(d profiles.Decision) bool { return g.settler.queues(d) }

// Elsewhere continues the text that says why nobody answers at the client: it says
// who else could answer a question with this decision.
func (r *Run) Elsewhere(d profiles.Decision) string {
	switch at := r.host.ApproveAt(); {
	case r.gate.Queues(d):
		return "" // approvers are asked
	case !r.gate.approvers():
		return `; somebody else can answer once there are approvers (codemode-bridge approvers add) and the profile has "elicitationFallback": "queue"`
	case at != "":
		return fmt.Sprintf(`; approvers can answer at %s once the profile has "elicitationFallback": "queue"`, at)
	default:
		return `; approvers can answer once the profile has "elicitationFallback": "queue"`
	}
}

// unreachable says why nobody at the client can be asked, if the reason is not
// obvious.
func (r *Run) unreachable(d profiles.Decision) string {
	switch {
	case r.Reach == ByAddress:
		return "this client opens addresses and shows no forms, so that nobody can answer there" + r.Elsewhere(d)
	case r.Reach == ByElicitation && r.host.AnswersItself():
		return "this client answers questions by itself, before anybody can read them" + r.Elsewhere(d)
	default:
		return ""
	}
}

// put asks about c and records the question and the answer. If the answer is
// already known, nobody is asked and no question is recorded.
func (r *Run) put(ctx context.Context, c *call) (approval.Verdict, error) {
	asked, seen, question := r.gate.now(), c.seen, r.request(c)
	question.Plan = foresight{r}.plan(c)
	verdict, known, err := r.gate.broker.Precheck(ctx, question)
	if !known {
		if err := r.trail.Record(ctx, c.record(ledger.Asked), c.journal().Asking()); err != nil {
			return approval.Verdict{}, unrecorded(c, err)
		}
		r.host.Asks(c.Number)
		_, end := c.span(ctx, r, stepWait)
		verdict, err = r.gate.broker.Ask(ctx, question)
		end(verdict.Became(r.host.Suspended()))
	}
	c.unused()
	c.verdict = &verdict
	if r.host.Suspended() {
		return verdict, ErrSuspended
	}
	rec := c.verdictRecord(r)
	if !question.Again { // otherwise it was recorded before the run was suspended
		rec.Wait = r.gate.now().Sub(asked)
	}
	if lost := r.record(context.WithoutCancel(ctx), rec); lost != nil {
		return verdict, unrecorded(c, lost)
	}
	if verdict.Approve && verdict.Scope != approval.Once && verdict.Scope != "" {
		rec.Event, rec.Wait, rec.Counted = ledger.Granted, 0, nil
		if lost := r.record(context.WithoutCancel(ctx), rec); lost != nil {
			return verdict, unrecorded(c, lost)
		}
	}
	switch {
	case errors.Is(err, approval.ErrFlood):
		r.host.Stop(err)
	case err != nil && ctx.Err() == nil:
		return verdict, unrecorded(c, err)
	case verdict.Reason == approval.AuditUnavailable:
		return verdict, unrecorded(c, errors.New(verdict.Text)) // not for the script
	}
	if verdict.Reason == approval.Timeout && !r.host.Attended() {
		// No client waits for the run: it ends here rather than going on alone.
		r.host.Stop(errExpired)
		return verdict, denied(c, approval.Expired, "")
	}
	if verdict.Stop {
		r.host.Stop(verdict.StopsRun())
	}
	if verdict.Approve && verdict.Forget && c.decision.Context { // of several calls, those that were asked because of it
		if c.cleared = seen; question.Again && verdict.Time.Before(seen) {
			c.cleared = verdict.Time // what others have read since then, nobody has seen
		}
	}
	return verdict, nil
}

// unused gives back the use of a grant that was to allow c, if c is not sent.
func (c *call) unused() {
	if c.verdict != nil {
		c.gate.broker.Uses().GiveBack(c.verdict.Use)
		c.verdict.Use = approval.Use{}
	}
}

// usedUp makes a call anew whose grant was used up after all: a bridge was killed before
// it could tell the others of the last use. So people are asked.
func (g *Gate) usedUp(ctx context.Context, r *Run, c Call, made *call) (Answer, error) {
	if err := g.broker.Uses().UsedUp(ctx, made.verdict.Use); err != nil {
		return r.refuse(ctx, c, made, unrecorded(made, err))
	}
	made.unused()
	return g.Call(ctx, r, c)
}

// verdictRecord makes the record of the verdict on c.
func (c *call) verdictRecord(r *Run) ledger.Record {
	rec, v := c.record(ledger.Verdict), c.verdict
	rec.Request, rec.Grant = v.Request, v.Use.Grant
	said(&rec, *v, r.redact)
	if args, err := canon.Parse(v.Args); v.Args != nil && err == nil {
		rec.EditedArgs, rec.EditedDigest = c.recorded(args, hiddenBy(r.bound(r.gate.View()))), args.Digest().String()
	}
	if v.By != "" {
		rec.Counted = new(true)
	}
	return rec
}

// barred refuses a call that can no longer be allowed, whatever policy says now:
// its server is another one, or it was denied before the run made it.
func (r *Run) barred(ctx context.Context, view *View, c *call) error {
	if err := c.moved(r, view.Identities[c.tool.Server]); err != nil {
		if c.Again {
			err = errors.Join(err, r.gate.broker.EndStale(ctx, r.ID, c.Number, c.journal().Lease()))
		}
		return err
	}
	verdict, said, err := r.gate.broker.Refused(ctx, r.ID, c.Number, c.key(r), r.resumed || c.Again)
	switch {
	case errors.Is(err, approval.ErrFlood):
		r.host.Stop(err)
	case err != nil:
		return unrecorded(c, err)
	case !said:
		return nil
	}
	c.verdict = &verdict
	if lost := r.record(context.WithoutCancel(ctx), c.verdictRecord(r)); lost != nil {
		return unrecorded(c, lost)
	}
	if verdict.Stop {
		r.host.Stop(verdict.StopsRun())
	}
	return answered(c, verdict)
}

// fallBack answers for a person who cannot be asked. It allows only calls of a
// client that declared no elicitation, only where the profile says so, and never
// without a record.
func (r *Run) fallBack(ctx context.Context, c *call) error {
	d := c.decision
	verdict := approval.Verdict{Reason: approval.ElicitationUnsupported, Channel: "fallback"}
	switch {
	case r.Reach != NoElicitation, r.gate.broker.NeedsApprover(d), d.Fallback == profiles.FallbackQueue:
		verdict.Reason = approval.NoApprover
	case d.Fallback == profiles.FallbackAllow:
		verdict = approval.Verdict{Approve: true, Scope: approval.Once, Channel: "fallback"}
	}
	why := r.unreachable(d)
	if r.Reach == ByAddress {
		verdict.Reason = approval.ElicitationUnsupported
	}
	rec := c.record(ledger.Verdict)
	rec.Channel, rec.Answer = verdict.Channel, answerWord(verdict)
	if err := r.record(ctx, rec); err != nil {
		return unrecorded(c, err)
	}
	c.verdict = &verdict
	if !verdict.Approve {
		refusal := refused(c, verdict.Reason, why, true)
		r.host.Unasked(refusal)
		return refusal
	}
	return nil
}

var errExpired = errors.New("the run expired: nobody answered and no client was waiting")

// maxToolSays bounds a tool's description in a question, in bytes.
const maxToolSays = 4000

// request makes the question about c.
func (r *Run) request(c *call) approval.Request {
	view := r.gate.View()
	var checks []string // the rules' first: a prompt may not have room for all
	for _, check := range r.checks(view, c) {
		text := check.Expr
		if !check.Passed {
			text = "fails as of now: " + text
		}
		if !slices.Contains(checks, text) { // two profiles may have the same
			checks = append(checks, text)
		}
	}
	checks = append(checks, "arguments", "tool unchanged", "policy unchanged")
	sources := c.sources
	if c.edited != nil {
		sources = append([]string{c.edited.By + " has edited the arguments: the script wrote others"}, sources...)
	}
	hides := hiddenBy(r.bound(view))
	r.mu.Lock()
	preview := r.preview
	r.mu.Unlock()
	decision := c.decision
	decision.Timeout = r.gate.TimeToAnswer(decision)
	if !r.host.Attended() && !decision.TimeoutExplicit {
		decision.Timeout = view.Profiles.PausedFor() // the run is paused, and its client may come back at any time
	}
	unreviewed, _ := view.unreviewed(c.tool)
	request := approval.Request{
		Difference: unreviewed.Difference, Hides: hides,
		Run: r.ID, Configuration: r.gate.conf.Name, Folder: r.Folder, Client: r.Client, Requester: r.Requester, Server: c.tool.Server, Tool: c.tool.Name, Script: c.tool.Script,
		ToolSays: canon.Clip(c.tool.Description, maxToolSays),
		Decision: decision, Checks: checks,
		Preview: preview, Done: r.tally.made(), Number: approval.Number{MostCalls: mostCalls(r, view)}, Circumstances: approval.Circumstances{Again: c.Again && !c.Lost, Idle: r.host.Idle, MostOpen: mostOpen(r), Lease: c.journal().Lease()},
		Items: []approval.Item{{
			Call: c.Number, Server: c.tool.Server, Tool: c.tool.Name, Script: c.tool.Script, Decision: decision, Shown: approval.DisplayArgs(c.decision, c.args), Position: c.Position,
			Loop: foresight{r}.inLoop(c), Sources: sources, Cover: coverOf(r, view, c), Reads: c.reads, About: c.about(view, r.Workspace), Order: c.order(),
			Key: c.key(r), AtClient: r.Reach == ByElicitation && !r.host.AnswersItself(),
		}},
	}
	request.Items[0].Always = c.always(request.Items[0].Cover)
	return request
}

// key identifies c as a call of r, as it was decided.
func (c *call) key(r *Run) approval.Key {
	return approval.Key{Configuration: r.gate.conf.ID, Identity: c.identity, Session: r.Session, Profile: r.Profile, Server: c.tool.Server, Tool: c.tool.Name,
		Definition: c.tool.Digest, Revision: cmp.Or(c.decision.Grounds, c.decision.Revision) + c.decision.Flows(), Args: c.args.Digest()}
}

// TimeToAnswer returns how long people may take for a question with this
// decision, while its run is not paused.
func (g *Gate) TimeToAnswer(d profiles.Decision) time.Duration {
	if !d.TimeoutExplicit && d.Fallback == profiles.FallbackQueue && g.approvers() {
		return g.View().Profiles.PausedFor() // an approver may come at any time
	}
	return d.Timeout
}
