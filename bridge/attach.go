package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An attachment is a request that waits at a run. The run goes on without it; what
// the attachment brings is a person: it puts the run's questions to the client,
// in the way of the client's protocol.
//
//	sessions (old protocol)         stateless (2026-07-28)
//	  question ──▶ Elicit             all questions of the run ──▶ answer
//	  answer   ──▶ Settle             "input required"; the client calls again
//	  ... until the run is done       ──▶ Settle, attach again
//
// Either way it leaves, with "paused", before the client loses patience. One
// that takes progress does not lose it as long as a question is before its person.
type attachment struct {
	s       *Server
	req     *mcp.CallToolRequest
	r       *run
	resumed bool // by eval_resume
	asked   map[string]bool

	withdrew atomic.Int64 // dialogs before they were answered

	// Of the stateless protocol.
	round  int
	missed map[string]string // by request: what an answer lacked, for which it is asked once more
	left   []string          // requests that are left to approvers
}

// Bounds on how people are asked about a run.
const (
	gather    = 50 * time.Millisecond // questions that come together are put together
	quietFor  = time.Second           // and no longer than this is waited for more
	maxRounds = 7                     // clients answer nine or ten, then fail
	stateFor  = 30 * time.Minute      // a sealed state is good for, unless its questions have longer
)

// wait stays at the run until it is done, must be asked about by answering, or
// the client would lose patience; and returns what to answer.
func (a *attachment) wait(ctx context.Context) *mcp.CallToolResult {
	request, withdrawn := ctx, a.s.withdrawals.of(a.req.Session.ID())
	ctx, let := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer func() { // ends what the client is asked on the way of this request; the run is not ended by it
		let()
		asking.Wait()
		if n := int(a.withdrew.Load()); n > 0 && !a.pipe() {
			a.s.withdrawals.wait(request, a.req.Session.ID(), withdrawn+n)
		}
	}()
	broker := a.s.o.Gate.Broker()
	changed, end := broker.Watch(a.r.id)
	defer end()
	stateless := a.req.ProtocolVersion() >= statelessProtocol
	a.asked = map[string]bool{}
	for _, id := range a.left {
		a.asked[id] = true
	}

	var patience <-chan time.Time // runs while a person is waited for
	ask := time.NewTimer(0)       // fires when it is time to ask; at once for what is open already
	defer ask.Stop()
	var since time.Time // of the first question that has not been put
	prompts := a.r.session.prompts
	if !stateless {
		defer prompts.Forget(a.r.id) // what is still being asked is not, from here on
	}
	turned := prompts.Changed() // always from before the last look: nothing is missed
	for {
		select {
		case <-a.r.done:
			if at := a.r.now(); at.phase == suspended && !at.leaseLost {
				return a.paused("a person has not answered yet")
			}
			if ctx.Err() == nil {
				a.r.update(event{kind: delivers})
			}
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
			turned = prompts.Changed()
			if since.IsZero() { // else what is being gathered is put soon
				ask.Reset(0)
			}
			continue
		case <-patience:
			if broker.Waiting(a.r.id) > 0 {
				return a.paused("a person has not answered yet")
			}
			patience = nil // the answer has come in this moment
			continue
		case <-ask.C:
		}
		// A stateless client hears of all questions in one answer, so wait
		// until the script can make no more of them, or not for long.
		if stateless && !since.IsZero() && time.Since(since) < quietFor && !a.r.quiet() {
			ask.Reset(gather)
			continue
		}
		since = time.Time{}
		open := broker.Take(a.r.id)
		answerable := 0
		for _, q := range open {
			if a.answerable(q) {
				answerable++
			}
		}
		clear := prompts.MayAsk(a.r.id, answerable)
		if q := prompts.Take(a.r.id); q != nil {
			switch {
			case !stateless:
				asking.Go(func() { a.putServerRequest(ctx, q) })
			case a.round < maxRounds:
				return a.serverRequestRequired(q)
			default:
				q.Refuse(errTooManyRounds)
			}
		}
		if clear { // else a server's question is before the person
			fresh, others := a.fresh(ctx, open)
			for _, q := range others {
				asking.Go(func() { a.say(ctx, q) })
			}
			if stateless && len(fresh) > 0 {
				if res := a.inputRequired(fresh); res != nil {
					return res
				}
				continue
			}
			for _, q := range fresh {
				if a.pipe() {
					go a.converse(q) // dialogs.close waits for it
				} else {
					asking.Go(func() { a.converse(q) })
				}
			}
		}
		switch {
		case len(open) == 0, a.req.Params.GetProgressToken() != nil && !a.s.dialogs.of(a.req.Session, a.r.id).IsZero():
			patience = nil
		case patience == nil:
			patience = time.After(a.s.o.Gate.View().Profiles.ClientPatience(a.r.session.client))
		}
	}
}

// clientGone leaves a run whose request is over. A client that cancels means the
// script to end, if no other request waits at it. One that is simply gone
// leaves a run that waits for approvers to them.
func (a *attachment) clientGone() {
	switch {
	case a.r.now().attached > 1:
	case a.queued() && a.disconnected():
		a.s.leave(a.r)
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
// it can put to the person at the client, and those for approvers alone. What is
// before the person already is neither.
func (a *attachment) fresh(ctx context.Context, all []approval.Request) (fresh, others []approval.Request) {
	stateless := a.req.ProtocolVersion() >= statelessProtocol
	for _, q := range all {
		switch {
		case a.asked[q.ID]:
			continue
		case !a.answerable(q):
			others = append(others, q)
		case stateless || a.begin(ctx, q):
			fresh = append(fresh, q)
		default:
			continue
		}
		a.asked[q.ID] = true
	}
	return fresh, others
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

// inputRequired asks the person at a stateless client, by answering. They have as
// long as a paused run has, since the client need not come back before.
func (a *attachment) inputRequired(all []approval.Request) *mcp.CallToolResult {
	if a.round >= maxRounds {
		return a.paused("the script has more questions than one call may ask")
	}
	a.s.leave(a.r)
	now := time.Now()
	st := state{Run: a.r.id, Principal: principal(a.req), Call: callDigest(a.req), Asked: map[string]string{}, Round: a.round + 1,
		Missed: map[string]string{}, Left: a.left, Given: a.s.o.Now(), Expires: now.Add(stateFor)}
	inputs := mcp.InputRequestMap{}
	for _, q := range a.s.o.Gate.Broker().Take(a.r.id) { // again: they have more time now
		if !slices.ContainsFunc(all, func(had approval.Request) bool { return had.ID == q.ID }) {
			continue
		}
		st.Asked[q.ID] = q.Digest().String()
		if missing := a.missed[q.ID]; missing != "" {
			st.Missed[q.ID] = missing
		}
		if q.Until.After(st.Expires) {
			st.Expires = q.Until
		}
		inputs[q.ID] = a.question(q, a.missed[q.ID])
	}
	if len(inputs) == 0 { // all were answered elsewhere meanwhile
		return nil
	}
	sealed, err := a.s.seal.close(st)
	if err != nil {
		return failure("sealing the request state: " + err.Error())
	}
	return &mcp.CallToolResult{InputRequests: inputs, RequestState: sealed}
}

// answered settles what a stateless client answers: only questions that the
// state names, about what they showed. One that has no answer was dismissed. The
// first answer counts: a yes does not undo what was dismissed with the same state.
func (a *attachment) answered(ctx context.Context, st state) {
	u := a.s.seal.use(st)
	u.once.Do(func() { a.settleAnswers(ctx, st, u) })
	a.round, a.left, a.missed = st.Round, slices.Clone(u.left), maps.Clone(u.missed)
}

func (a *attachment) settleAnswers(ctx context.Context, st state, u *use) {
	u.left = slices.Clone(st.Left)
	after := a.s.o.Now().Sub(st.Given)
	a.serverRequestAnswered(st)
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
	for id, digest := range st.Asked {
		q, ok := open[id]
		if !ok || digest != q.Digest().String() {
			continue // answered elsewhere, or a server's question, or another one by now
		}
		res, form := a.req.Params.InputResponses[id].(*mcp.ElicitResult)
		if !form {
			res = &mcp.ElicitResult{Action: "cancel"}
		}
		if missing := a.take(q, readAnswer(q, res, after, a.lasting()), st.Missed[id] != ""); missing != "" {
			u.missed[id] = missing
		} else {
			u.left = append(u.left, id) // if it is open still, approvers answer it
		}
	}
}

// paused leaves a run that waits for people, and says how it goes on.
func (a *attachment) paused(why string) *mcp.CallToolResult {
	a.s.leave(a.r)
	body := map[string]any{"status": "paused", "run": a.r.id, "why": why}
	if a.r.principal == "" && a.r.secret != "" {
		body["resume"] = a.r.secret
	}
	at := a.s.o.ApproveAt(a.r.id)
	if at != "" {
		body["approve_at"] = at
	}
	now := time.Now()
	dialog := a.s.dialogs.of(a.req.Session, a.r.id)
	if !a.pipe() { // it ends with this answer
		dialog = time.Time{}
	}
	switch {
	case !dialog.IsZero():
		next := "tell the user that the question is still open at this client, until " + approval.Clock(dialog, now, nil)
		if at != "" {
			next += ", and at approve_at"
		}
		body["next"] = next + "; when they have answered it, the run goes on by itself: then call eval_resume with " + a.names() + " for its result"
	case at != "":
		body["next"] = "give the user approve_at and stop; call eval_resume with " + a.names() + " only after they say that it is done"
	default:
		body["next"] = "tell the user that their answer is needed; when they are ready, call eval_resume with " + a.names() + ", which asks them again"
	}
	if until := a.until(); dialog.IsZero() && !until.IsZero() {
		body["next"] = body["next"].(string) + "; without an answer it is a no at " + approval.Clock(until, now, nil)
	}
	if a.r.now().journal != wholeJournal {
		body["lasts"] = "until the bridge ends, not longer: more was answered than runs.journal keeps, or there is no audit log to keep it in"
	}
	text, err := canon.JSON(body)
	if err != nil {
		return failure(err.Error())
	}
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(text), Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}
}

// until is when the first of the run's questions is answered no; zero if none is
// open.
func (a *attachment) until() (first time.Time) {
	for _, q := range a.s.o.Gate.Broker().Take(a.r.id) {
		if first.IsZero() || q.Until.Before(first) {
			first = q.Until
		}
	}
	return first
}

// names says in a paused answer which of its members eval_resume takes.
func (a *attachment) names() string {
	if a.r.principal == "" && a.r.secret != "" {
		return "the run and resume of this answer"
	}
	return fmt.Sprintf("run %q", a.r.id)
}

// reach says how the client of a request can reach a person. Only what the
// client declared counts; a declaration of URLs alone is no form.
func reach(req *mcp.CallToolRequest) gate.Reach {
	caps := req.ClientCapabilities()
	switch {
	case caps == nil || caps.Elicitation == nil:
		return gate.NoElicitation
	case caps.Elicitation.Form == nil && caps.Elicitation.URL != nil:
		return gate.ByAddress // it has a person, and we have no form for them
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

// evalResume attaches to a run that its request has left. It can approve nothing:
// it only lets the person be asked again.
func (s *Server) evalResume(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct {
		Run    string `json:"run"`
		Resume string `json:"resume"`
	}
	if err := readArguments(req.Params.Arguments, &args); err != nil {
		return failure("eval_resume: " + err.Error() + `; it takes {"run": "...", "resume"?: "..."}`), nil
	}
	r, err := s.runOf(ctx, args.Run, s.claimantOf(req, args.Resume))
	switch {
	case errors.Is(err, ErrNoRun):
		return failure(fmt.Sprintf("there is no run %q that could be resumed here; it ended long ago, never was, or began in another session: then eval_resume takes the resume of its paused answer as well", args.Run)), nil
	case err != nil:
		return failure(fmt.Sprintf("run %s does not go on: %v", args.Run, err)), nil
	}
	return s.attach(ctx, &attachment{s: s, req: req, r: r, resumed: true})
}

// attach has a request wait at a run, after the answers that the request brings.
func (s *Server) attach(ctx context.Context, a *attachment) (*mcp.CallToolResult, error) {
	req, r := a.req, a.r
	if req.Params.RequestState != "" {
		st, err := s.seal.open(req.Params.RequestState, principal(req), callDigest(req), time.Now())
		if err != nil || st.Run != r.id {
			return failure(errState.Error()), nil
		}
		a.answered(ctx, st)
	}
	r.update(event{kind: attaches})
	defer r.update(event{kind: detaches})
	defer s.report(ctx, req, r)()
	return a.wait(ctx), nil
}
