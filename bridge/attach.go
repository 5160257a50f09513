package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An attachment is a request's hold on a run. The run goes on without it; what
// the attachment brings is a person: it puts the run's questions to the client,
// in the way of the client's protocol.
//
//	sessions (old protocol)         stateless (2026-07-28)
//	  question ──▶ Elicit             all questions of the run ──▶ answer
//	  answer   ──▶ Settle             "input required"; the client calls again
//	  ... until the run is done       ──▶ Settle, attach again
//
// Either way it lets go, with "paused", before the client loses patience.
type attachment struct {
	s     *Server
	req   *mcp.CallToolRequest
	r     *run
	round int // of the stateless protocol
	asked map[string]bool
}

// Bounds on how a run is held and asked about.
const (
	gather    = 50 * time.Millisecond // questions that come together are put together
	quietFor  = time.Second           // and no longer than this is waited for more
	maxRounds = 7                     // clients answer nine or ten, then fail
	stateFor  = 30 * time.Minute      // a sealed state is good for
	instant   = 300 * time.Millisecond
)

// wait holds the run until it is done, must be asked about by answering, or
// the client would lose patience; and returns what to answer.
func (a *attachment) wait(ctx context.Context) *mcp.CallToolResult {
	ctx, let := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer let() // ends what is still being asked of the client; the run is not ended by it
	broker := a.s.o.Gate.Broker()
	changed, end := broker.Watch(a.r.id)
	defer end()
	stateless := a.req.ProtocolVersion() >= statelessProtocol
	a.asked = map[string]bool{}

	var patience <-chan time.Time // runs while a person is waited for
	ask := time.NewTimer(0)       // fires when it is time to ask; at once for what is open already
	defer ask.Stop()
	var since time.Time // of the first question that has not been put
	floor := a.r.session.floor
	if !stateless {
		defer floor.forget(a.r) // what is still being asked is not, from here on
	}
	turned := floor.watch() // always from before the last look: nothing is missed
	for {
		select {
		case <-a.r.done:
			if errors.Is(a.r.err, errPutAway) {
				return a.paused("a person has not answered yet")
			}
			a.s.deliver(ctx, a.r)
			return a.r.answer()
		case <-ctx.Done():
			a.clientGone()
			return failure(errClientGone.Error())
		case <-changed:
			if since.IsZero() {
				since = time.Now()
			}
			ask.Reset(min(gather, max(0, quietFor-time.Since(since))))
			continue
		case <-turned:
			turned = floor.watch()
			if since.IsZero() { // else what is being gathered is put soon
				ask.Reset(0)
			}
			continue
		case <-patience:
			return a.paused("a person has not answered yet")
		case <-ask.C:
		}
		// A stateless client hears of all questions in one answer, so wait
		// until the script can make no more of them, or not for long.
		if stateless && !since.IsZero() && time.Since(since) < quietFor && !a.r.quiet(broker) {
			ask.Reset(gather)
			continue
		}
		since = time.Time{}
		open := broker.Take(a.r.id)
		clear := floor.mayAsk(a.r, a.answerable(open))
		if q := floor.take(a.r); q != nil {
			switch {
			case !stateless:
				asking.Go(func() { a.askTheirs(ctx, q) })
			case a.round < maxRounds:
				return a.theirsRequired(q)
			default:
				q.settle(answered{err: errTooManyRounds})
			}
		}
		if len(open) == 0 {
			patience = nil
			continue
		}
		if patience == nil {
			patience = time.After(a.s.o.Gate.View().Profiles.ClientPatience(a.r.session.client))
		}
		if !clear {
			continue // a server's question is before the person
		}
		fresh, others := a.fresh(open)
		for _, q := range others {
			asking.Go(func() { a.say(ctx, q) })
		}
		if len(fresh) == 0 {
			continue
		}
		if stateless {
			return a.inputRequired(fresh)
		}
		for _, q := range fresh {
			asking.Go(func() { a.elicit(ctx, a.say(ctx, q)) })
		}
	}
}

// answerable counts the requests that the person at the client may answer.
func (a *attachment) answerable(all []approval.Request) int {
	n := 0
	for _, q := range all {
		if a.r.gate.Reach == gate.ByElicitation && !q.NeedsApprover() {
			n++
		}
	}
	return n
}

// clientGone lets go of a run whose request is over. A client that cancels
// means the script to end, if nobody else holds it. One that is simply gone
// leaves a run that waits for approvers to them.
func (a *attachment) clientGone() {
	switch {
	case !a.s.lastHolder(a.r):
	case a.queued() && a.disconnected():
		a.s.park(a.r)
	default:
		a.r.stop(errClientGone)
		<-a.r.done
	}
}

// queued reports whether the run waits for approvers who come when they come.
func (a *attachment) queued() bool {
	return slices.ContainsFunc(a.s.o.Gate.Broker().Take(a.r.id), func(q approval.Request) bool {
		return q.Decision.Fallback == profiles.FallbackQueue
	})
}

// disconnected reports whether the client's connection is over. A stateless
// client has none that lasts: it ends its request when it cancels.
func (a *attachment) disconnected() bool {
	if a.req.ProtocolVersion() >= statelessProtocol {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), pingFor)
	defer cancel()
	return a.req.Session.Ping(ctx, nil) != nil && ctx.Err() == nil
}

// pingFor is how long a client may take to show that it is there.
const pingFor = time.Second

// fresh are the requests that this attachment has not seen before: those that
// it can put to the person at the client, and those for approvers alone.
func (a *attachment) fresh(all []approval.Request) (fresh, others []approval.Request) {
	for _, q := range all {
		switch {
		case a.asked[q.ID]:
			continue
		case a.r.gate.Reach == gate.ByElicitation && !q.NeedsApprover():
			fresh = append(fresh, q)
		default:
			others = append(others, q)
		}
		a.asked[q.ID] = true
	}
	return fresh, others
}

// elicit asks the person at a client with a session. When ctx ends, the
// question stays open for whoever attaches next.
func (a *attachment) elicit(ctx context.Context, q approval.Request) {
	asked := time.Now()
	res, err := a.req.Session.Elicit(ctx, a.question(q))
	if ctx.Err() != nil {
		return
	}
	verdict := approval.Verdict{Reason: approval.NoApprover, Channel: "elicitation", Text: "the client could not ask"}
	if err == nil {
		verdict = verdictOf(q, res, time.Since(asked) < instant, true)
	}
	a.settle(q.ID, q.Digest(), verdict)
}

// settle brings a verdict to the broker. One that comes too late, or twice,
// changes nothing.
func (a *attachment) settle(id string, about canon.Digest, v approval.Verdict) {
	v.By = "the person at " + canon.Visible(clipRunes(a.client(), 100))
	ctx := context.Background() // what a person said counts even if the request ends now
	if _, err := a.s.o.Gate.Settle(ctx, id, about, v); err != nil {
		a.s.o.Logger.Info("a verdict settled nothing", "run", a.r.id, "request", id, "why", err)
		var settled *approval.SettledError
		if v.Approve && !errors.As(err, &settled) { // a yes that does not count must not leave the question open
			v = approval.Verdict{Reason: approval.NoApprover, Channel: v.Channel, By: v.By, Text: err.Error()}
			_, _ = a.s.o.Gate.Settle(ctx, id, about, v) // it may be settled: then so be it
		}
	}
}

// client is what the client of this request calls itself, and whose token it
// has.
func (a *attachment) client() string {
	name := "an unnamed client"
	if info := a.req.ClientInfo(); info != nil && info.Name != "" {
		name = info.Name
	}
	if p := principal(a.req); p != "" {
		name += " (" + p + ")"
	}
	return name
}

// inputRequired asks the person at a stateless client, by answering.
func (a *attachment) inputRequired(all []approval.Request) *mcp.CallToolResult {
	if a.round >= maxRounds {
		return a.paused("the script has more questions than one call may ask")
	}
	st := state{Run: a.r.id, Principal: principal(a.req), Call: callDigest(a.req), Asked: map[string]string{}, Round: a.round + 1, Expires: time.Now().Add(stateFor)}
	inputs := mcp.InputRequestMap{}
	for _, q := range all {
		st.Asked[q.ID] = q.Digest().String()
		inputs[q.ID] = a.question(q)
	}
	sealed, err := a.s.seal.close(st)
	if err != nil {
		return failure("sealing the request state: " + err.Error())
	}
	a.s.park(a.r)
	return &mcp.CallToolResult{InputRequests: inputs, RequestState: sealed}
}

// answered settles what a stateless client answers: only questions that the
// state names, about what they showed.
func (a *attachment) answered(ctx context.Context, st state) {
	a.round = st.Round
	a.theirsAnswered(st)
	open := map[string]approval.Request{}
	for _, q := range a.s.o.Gate.Broker().Take(a.r.id) {
		open[q.ID] = q
	}
	if a.r.replay != nil { // which may not be where it was yet, when it asked
		kept, err := a.s.o.Gate.Broker().Entries(ctx, approval.Filter{Run: a.r.id, Open: a.s.o.Now()})
		if err != nil {
			a.s.o.Logger.Error("reading the requests of a run", "run", a.r.id, "err", err) // it is asked again
		}
		for _, e := range kept {
			open[e.ID] = e.Request
		}
	}
	for id, response := range a.req.Params.InputResponses {
		q, ok := open[id]
		res, form := response.(*mcp.ElicitResult)
		if !ok || !form || st.Asked[id] != q.Digest().String() {
			continue // asked again, or never asked
		}
		a.settle(id, q.Digest(), verdictOf(q, res, false, false))
	}
}

// paused lets go of a run that waits for a person.
func (a *attachment) paused(why string) *mcp.CallToolResult {
	body := map[string]any{"status": "paused", "run": a.r.id, "why": why,
		"next": "tell the user that their answer is needed; when they are ready, call eval_resume with " + a.names() + ", which asks them again"}
	if a.r.principal == "" && a.r.secret != "" {
		body["resume"] = a.r.secret
	}
	if at := a.s.o.ApproveAt(a.r.id); at != "" {
		body["approve_at"] = at
		body["next"] = "give the user approve_at and stop; call eval_resume with " + a.names() + " only after they say that it is done"
	}
	if !a.r.journal.usable() {
		body["lasts"] = "until the bridge ends, not longer: more was answered than runs.journal keeps, or there is no audit log to keep it in"
	}
	text, err := marshal(body)
	if err != nil {
		return failure(err.Error())
	}
	a.s.park(a.r)
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(text), Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}
}

// names says in a paused answer which of its members eval_resume takes.
func (a *attachment) names() string {
	if a.r.principal == "" && a.r.secret != "" {
		return "the run and resume of this answer"
	}
	return fmt.Sprintf("run %q", a.r.id)
}

// question is a request as an elicitation: the text, and a form whose one
// required field is the decision. "No" comes first.
func (a *attachment) question(q approval.Request) *mcp.ElicitParams {
	protocol := a.req.ProtocolVersion()
	choices := []choice{{"no", "No"}, {"stop", "No, and stop the script"}, {"once", "Yes, once"}}
	if q.Decision.Remember && protocol < statelessProtocol { // a stateless client has no session
		choices = append(choices, choice{string(approval.Same), "Yes, and again in this session with the same arguments"},
			choice{string(approval.AnyArgs), "Yes, and again in this session with any arguments"})
	}
	decision := map[string]any{"type": "string", "title": "Decision"}
	if protocol >= newestSessionProtocol {
		var one []any
		for _, c := range choices {
			one = append(one, map[string]any{"const": c.value, "title": c.title})
		}
		decision["oneOf"] = one
	} else {
		var values, titles []any
		for _, c := range choices {
			values, titles = append(values, c.value), append(titles, c.title)
		}
		decision["enum"], decision["enumNames"] = values, titles
	}
	reason := map[string]any{"type": "string", "title": "Reason", "description": "for a no: the script can read it"}
	if q.Decision.RequireReason {
		reason["description"] = "a yes to this call needs one"
	}
	return &mcp.ElicitParams{Message: approval.Describe(q, a.s.o.ReadAt(q.ID)).Prompt(), RequestedSchema: map[string]any{"type": "object",
		"properties": map[string]any{"decision": decision, "reason": reason}, "required": []any{"decision"}}}
}

type choice struct{ value, title string }

// verdictOf reads an elicitation's result. Only an accepted form with one of
// the choices that were offered can be a yes; a form that is dismissed the
// moment it is shown was seen by nobody.
func verdictOf(q approval.Request, res *mcp.ElicitResult, atOnce, session bool) approval.Verdict {
	v := approval.Verdict{Reason: approval.ElicitationDeclined, Channel: "elicitation"}
	reason, _ := res.Content["reason"].(string)
	v.Text = canon.Visible(clipRunes(reason, 500))
	switch res.Action {
	case "accept":
		decision, _ := res.Content["decision"].(string)
		switch scope := approval.Scope(decision); {
		case decision == "no", decision == "stop":
			v.Stop = decision == "stop"
			return v
		case scope == approval.Once, session && q.Decision.Remember && (scope == approval.Same || scope == approval.AnyArgs):
			return approval.Verdict{Approve: true, Scope: scope, Channel: v.Channel, Text: v.Text}
		default:
			v.Reason, v.Text = approval.NoApprover, "the client sent no decision"
		}
	case "decline":
		if atOnce {
			v.Reason, v.Text = approval.NoApprover, "the client declined before anybody could read the question"
		}
	default: // cancel: the question was dismissed, not answered
		v.Reason, v.Text = approval.NoApprover, "the question was dismissed"
	}
	return v
}

func clipRunes(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return s
}

// reach says how the client of a request can reach a person. Only what the
// client declared counts; a declaration of URLs alone is no form.
func reach(req *mcp.CallToolRequest) gate.Reach {
	caps := req.ClientCapabilities()
	switch {
	case caps == nil || caps.Elicitation == nil:
		return gate.NoElicitation
	case caps.Elicitation.Form == nil && caps.Elicitation.URL != nil:
		return gate.Nobody // it has a person, and we have no form for them
	default:
		return gate.ByElicitation
	}
}

// principal is who a request comes from: the bearer of a token, or nobody in
// particular.
func principal(req *mcp.CallToolRequest) string {
	if req.Extra != nil && req.Extra.TokenInfo != nil {
		return req.Extra.TokenInfo.UserID
	}
	return ""
}

// callDigest is over the tool and the arguments that a state belongs to.
func callDigest(req *mcp.CallToolRequest) string {
	args, err := canon.Parse(req.Params.Arguments)
	text := args.Bytes()
	if err != nil {
		text = req.Params.Arguments
	}
	sum := sha256.Sum256(append([]byte(req.Params.Name+"\x00"), text...))
	return hex.EncodeToString(sum[:])
}

// resume attaches to a run that was let go. It can approve nothing: it only
// lets the person be asked again.
func (s *Server) resume(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct {
		Run    string `json:"run"`
		Resume string `json:"resume"`
	}
	if err := readArguments(req.Params.Arguments, &args); err != nil {
		return failure("eval_resume: " + err.Error() + `; it takes {"run": "...", "resume"?: "..."}`), nil
	}
	r, err := s.runOf(ctx, args.Run, s.claimOf(req, args.Resume))
	switch {
	case errors.Is(err, ErrNoRun):
		return failure(fmt.Sprintf("there is no run %q that could be resumed here; it ended long ago, never was, or began in another session: then eval_resume takes the resume of its paused answer as well", args.Run)), nil
	case err != nil:
		return failure(fmt.Sprintf("run %s does not go on: %v", args.Run, err)), nil
	}
	return s.attach(ctx, req, r)
}

// attach holds a run for a request, after the answers that the request brings.
func (s *Server) attach(ctx context.Context, req *mcp.CallToolRequest, r *run) (*mcp.CallToolResult, error) {
	a := &attachment{s: s, req: req, r: r}
	if req.Params.RequestState != "" {
		st, err := s.seal.open(req.Params.RequestState, principal(req), callDigest(req), time.Now())
		if err != nil || st.Run != r.id {
			return failure(errState.Error()), nil
		}
		a.answered(ctx, st)
	}
	s.hold(r)
	defer s.letGo(r)
	defer s.report(ctx, req, r)()
	return a.wait(ctx), nil
}
