package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/bridge/rpc"
	"codemode-bridge/bridge/seal"
	"codemode-bridge/bridge/surface"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An attachment is a request that waits at a run. The run goes on without it; what
// the attachment brings is a person: its asker puts the run's questions to the
// client. The request leaves the run, with "paused", before its client loses
// patience, which one that takes progress does not lose as long as a question is
// before its person.
type attachment struct {
	s       *Server
	req     *mcp.CallToolRequest
	r       *run
	resumed bool            // by eval_resume
	asked   map[string]bool // requests that were put to the person, or are left to approvers
	asker   asker
	asking  sync.WaitGroup // what the client is asked on the way of this request
}

// An asker puts questions to the person at the client of a request. There are two,
// for the two eras of the protocol:
//
//	sessionAsker (dialog.go)        statelessAsker (rounds.go)
//	  question ──▶ Elicit             all questions of the run ──▶ answer
//	  answer   ──▶ Settle             "input required"; the client calls again
//	  ... until the run is done       ──▶ Settle, attach again
type asker interface {
	// gathers reports whether questions wait until the script can make no more of
	// them.
	gathers() bool
	// ask puts requests to the person that were not put to them yet. If it returns
	// an answer, the request ends with that.
	ask(ctx context.Context, fresh []approval.Request) *mcp.CallToolResult
	// askForServer does so for a server request.
	askForServer(ctx context.Context, q *elicit.Request) *mcp.CallToolResult
	// answer settles what the request brings of answers to what was asked before.
	answer(ctx context.Context, st seal.State)
	// patience reports whether the client waits as long as its person is asked.
	patience() bool
	// gone reports whether the client's connection is over.
	gone() bool
	// withdraw is called when the request is about to be answered, after ctx of
	// ask has ended, and asking is over.
	withdraw(request context.Context)
}

// newAttachment makes what a request has at a run; resumed says that it is an
// eval_resume.
func (s *Server) newAttachment(req *mcp.CallToolRequest, r *run, resumed bool) *attachment {
	a := &attachment{s: s, req: req, r: r, resumed: resumed, asked: map[string]bool{}}
	if req.ProtocolVersion() >= statelessProtocol {
		a.asker = &statelessAsker{attachment: a}
	} else {
		a.asker = &sessionAsker{attachment: a, withdrawn: s.withdrawals.Of(req.Session.ID())}
	}
	return a
}

// Bounds on how people are asked about a run.
const (
	gather   = 50 * time.Millisecond // questions that come together are put together
	quietFor = time.Second           // and no longer than this is waited for more
)

// wait stays at the run until it is done, a question must be put by answering the
// request, or the client would lose patience. It returns the answer. What there is to
// tell meanwhile is the reporter's.
func (a *attachment) wait(ctx context.Context, report *elicit.Reporter) *mcp.CallToolResult {
	request := ctx
	ctx, end := context.WithCancel(ctx)
	defer func() { // ends what the client is asked on the way of this request; the run is not ended by it
		end()
		a.asking.Wait()
		a.asker.withdraw(request)
	}()
	broker := a.s.o.Gate.Broker()
	changed, unwatch := broker.Watch(a.r.id)
	defer unwatch()
	prompts := a.r.session.prompts
	turned := prompts.Changed() // always from before the last look: nothing is missed

	patience, answer := a.look(ctx, nil) // runs while a person is waited for
	if answer != nil {
		return answer
	}
	ask := time.NewTimer(0) // fires when it is time to ask
	ask.Stop()
	defer ask.Stop()
	quiet := time.NewTimer(elicit.ProgressEvery)
	defer quiet.Stop()
	var since time.Time // of the first question that has not been put
	for {
		select {
		case <-a.r.done:
			if at := a.r.now(); at.Phase == lifecycle.Suspended && !at.LeaseLost {
				return a.paused("a person has not answered yet")
			}
			if ctx.Err() == nil {
				a.r.update(lifecycle.Event{Kind: lifecycle.Delivers})
			}
			return a.r.answer()
		case <-ctx.Done():
			a.clientGone()
			return failure(errClientGone.Error())
		case n := <-report.News():
			report.Begin(n)
			continue
		case <-quiet.C:
			if report.News() != nil {
				report.Begin(elicit.News{})
			}
			continue
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
		if !since.IsZero() && time.Since(since) < quietFor && a.asker.gathers() {
			ask.Reset(gather)
			continue
		}
		since = time.Time{}
		if patience, answer = a.look(ctx, patience); answer != nil {
			return answer
		}
	}
}

// look puts what is open now. It returns the client's patience, which runs while a
// person is waited for, or an answer that the request ends with.
func (a *attachment) look(ctx context.Context, patience <-chan time.Time) (<-chan time.Time, *mcp.CallToolResult) {
	open := a.s.o.Gate.Broker().Take(a.r.id)
	if answer := a.put(ctx, open); answer != nil {
		return nil, answer
	}
	switch {
	case len(open) == 0, a.asker.patience():
		return nil, nil
	case patience == nil:
		return time.After(a.s.o.Gate.View().Profiles.ClientPatience(a.r.session.client)), nil
	}
	return patience, nil
}

// put puts what is open to the person at the client, if nothing else is before
// them. If it returns an answer, the request ends with that.
func (a *attachment) put(ctx context.Context, open []approval.Request) *mcp.CallToolResult {
	answerable := 0
	for _, q := range open {
		if a.answerable(q) {
			answerable++
		}
	}
	prompts := a.r.session.prompts
	clear := prompts.MayAsk(a.r.id, answerable)
	if q := prompts.Take(a.r.id); q != nil {
		if res := a.asker.askForServer(ctx, q); res != nil {
			return res
		}
	}
	if !clear { // a server's question is before the person
		return nil
	}
	fresh, others := a.fresh(open)
	for _, q := range others {
		a.asked[q.ID] = true
		a.asking.Go(func() { a.say(ctx, q) })
	}
	return a.asker.ask(ctx, fresh)
}

// clientGone leaves a run whose request is over. A client that cancels means the
// script to end, if no other request waits at it. One that is simply gone
// leaves a run that waits for approvers to them.
func (a *attachment) clientGone() {
	switch {
	case a.r.now().Attached > 1:
	case a.queued() && a.asker.gone():
		a.s.runner.leave(a.r)
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

// fresh are the requests that this attachment has not seen before: those that
// can be put to the person at the client, and those for approvers alone.
func (a *attachment) fresh(all []approval.Request) (fresh, others []approval.Request) {
	for _, q := range all {
		switch {
		case a.asked[q.ID]:
		case a.answerable(q):
			fresh = append(fresh, q)
		default:
			others = append(others, q)
		}
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

// paused leaves a run that waits for people, and says how it goes on.
func (a *attachment) paused(why string) *mcp.CallToolResult {
	a.s.runner.leave(a.r)
	if err := a.r.gate.Flush(context.Background()); err != nil {
		return failure(err.Error())
	}
	p := surface.Paused{Run: a.r.id, Why: why, ApproveAt: a.s.o.ApproveAt(a.r.id), Whole: a.r.now().Journal == lifecycle.WholeJournal}
	if a.r.principal == "" {
		p.Resume = a.r.secret.Text
	}
	now := time.Now()
	if dialog := a.s.dialogs.Of(a.req.Session, a.r.id); a.pipe() && !dialog.IsZero() { // else it ends with this answer
		p.OpenUntil = wording.Clock(dialog, now, nil)
	} else if until := a.until(); !until.IsZero() {
		p.NoAt = wording.Clock(until, now, nil)
	}
	return p.Answer()
}

// until is when the first of the run's open questions expires, which is a no; zero if
// none is open.
func (a *attachment) until() (first time.Time) {
	for _, q := range a.s.o.Gate.Broker().Take(a.r.id) {
		if first.IsZero() || q.Until.Before(first) {
			first = q.Until
		}
	}
	return first
}

// evalResume attaches to a run that its request has left. It can approve nothing:
// it only lets the person be asked again.
func (s *Server) evalResume(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct {
		Run    string `json:"run"`
		Resume string `json:"resume"`
	}
	if err := surface.ReadArguments(req.Params.Arguments, &args); err != nil {
		return failure("eval_resume: " + err.Error() + `; it takes {"run": "...", "resume"?: "..."}`), nil
	}
	res, err := s.goOn(rpc.Traced(ctx, req), req, args.Run, s.claimantOf(ctx, req, args.Resume), true)
	switch {
	case errors.Is(err, ErrNoRun):
		return failure(fmt.Sprintf("there is no run %q that could be resumed here; it ended long ago, never was, or began in another session: then eval_resume takes the resume of its paused answer as well", args.Run)), nil
	case err != nil:
		return surface.Refused(errors.Is(err, ErrClosed), fmt.Sprintf("run %s does not go on: %v", args.Run, err))
	}
	return res, nil
}

// attach has a request wait at a run, after the answers that the request brings.
func (s *Server) attach(ctx context.Context, a *attachment) (*mcp.CallToolResult, error) {
	req, r := a.req, a.r
	if req.Params.RequestState != "" {
		st, err := s.seal.Open(req.Params.RequestState, principal(req), rpc.CallDigest(req), time.Now())
		if err != nil || st.Run != r.id {
			return failure(seal.ErrInvalid.Error()), nil
		}
		a.asker.answer(ctx, st)
	}
	r.update(lifecycle.Event{Kind: lifecycle.Attaches})
	defer r.update(lifecycle.Event{Kind: lifecycle.Detaches})
	report := elicit.NewReporter(ctx, req, r.elicit, r.soFar)
	defer report.End()
	return a.wait(ctx, report), nil
}
