package bridge

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/dialogs"
	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/forms"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/seal"
	"codemode-bridge/bridge/wording"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A dialog is one question before the person at a client with a session. How
// long it stays there depends on the way to the client:
//
//	pipe           until it is answered, settled elsewhere, or its time is over: also
//	               after the call that brought it was answered "paused"
//	HTTP session   the same, and no longer than that call, whose stream it takes
//
// One that no longer counts is withdrawn (notifications/cancelled). An answer
// that is neither a yes that counts nor a no is asked for once more, with what
// was missing; then it is a no for that reason.

// pipe reports whether the request came over a connection that is the client's
// alone, on which questions may follow at any time.
func (a *attachment) pipe() bool { return a.req.Extra == nil || a.req.Extra.Header == nil }

// lasting reports whether the client has a session that outlives the request.
func (a *attachment) lasting() bool {
	return a.req.ProtocolVersion() < statelessProtocol || a.pipe()
}

// A sessionAsker asks in the middle of the call: each question is a dialog of its
// own.
type sessionAsker struct {
	*attachment
	withdrawn int          // dialogs that the client had been told to close when the request came
	withdrew  atomic.Int64 // dialogs before they were answered
}

var _ asker = (*sessionAsker)(nil)

func (a *sessionAsker) gathers() bool { return false }

// ask opens a dialog for each request that is not before the person already.
func (a *sessionAsker) ask(ctx context.Context, fresh []approval.Request) *mcp.CallToolResult {
	for _, q := range fresh {
		if !a.begin(ctx, q) {
			continue
		}
		a.asked[q.ID] = true
		if a.pipe() {
			go a.converse(q) // dialogs.Close waits for it
		} else {
			a.asking.Go(func() { a.converse(q) })
		}
	}
	return nil
}

func (a *sessionAsker) askForServer(ctx context.Context, q *elicit.Request) *mcp.CallToolResult {
	a.asking.Go(func() { a.putServerRequest(ctx, q) })
	return nil
}

// answer settles the answers in a state that the client got when it was asked
// without a session: in this one it answers each dialog.
func (a *sessionAsker) answer(ctx context.Context, st seal.State) {
	(&statelessAsker{attachment: a.attachment}).answer(ctx, st)
}

// patience reports whether the client takes progress and has a dialog open.
func (a *sessionAsker) patience() bool {
	return a.req.Params.GetProgressToken() != nil && !a.s.dialogs.Of(a.req.Session, a.r.id).IsZero()
}

// gone reports whether the client does not answer a ping.
func (a *sessionAsker) gone() bool {
	ctx, cancel := context.WithTimeout(context.Background(), pingFor) // the request's context is over by now
	defer cancel()
	return a.req.Session.Ping(ctx, nil) != nil && ctx.Err() == nil
}

// pingFor is how long a client may take to show that it is there.
const pingFor = time.Second

// withdraw waits until the client of an HTTP session has been told to close the
// dialogs that nobody has answered: what comes after the answer is lost.
func (a *sessionAsker) withdraw(request context.Context) {
	a.r.session.prompts.Forget(a.r.id) // what is still being asked is not, from here on
	if n := int(a.withdrew.Load()); n > 0 && !a.pipe() {
		a.s.withdrawals.Wait(request, a.req.Session.ID(), a.withdrawn+n)
	}
}

// begin notes that a question is put to the person at the client, from ctx on the
// way of this request, and reports whether it may be: it is not before them
// already.
func (a *sessionAsker) begin(ctx context.Context, q approval.Request) bool {
	one := dialogs.Dialog{Run: q.Run, Until: q.Until}
	if a.pipe() { // the request may end before it
		ctx = context.WithoutCancel(ctx)
	}
	one.Ctx, one.Withdraw = context.WithDeadline(ctx, q.Until)
	if !a.s.dialogs.Begin(dialogs.Place{Conn: a.req.Session, Request: q.ID}, one) {
		one.Withdraw()
		return false
	}
	a.r.session.prompts.AddDialogs(1)
	return true
}

// end notes that it no longer is.
func (a *sessionAsker) end(q approval.Request) {
	a.s.dialogs.End(dialogs.Place{Conn: a.req.Session, Request: q.ID})
	a.r.session.prompts.AddDialogs(-1) // whoever looks now finds it closed
}

// converse asks the person at a client with a session, and once more where the
// first answer does not count. When the dialog is withdrawn, or nobody has answered
// in the time that it said, the question stays open for whoever attaches next.
func (a *sessionAsker) converse(q approval.Request) {
	defer a.end(q)
	ctx, withdraw := a.s.dialogs.Way(dialogs.Place{Conn: a.req.Session, Request: q.ID})
	var watching sync.WaitGroup
	defer watching.Wait()
	defer withdraw()
	id := q.ID
	watching.Go(func() { defer withdraw(); approval.UntilSettled(ctx, a.s.o.Gate.Broker(), a.r.id, id, a.r.done) })

	q = a.say(ctx, q)
	missing := ""
	for {
		asked := a.s.o.Now()
		res, err := forms.Ask(ctx, a.req.Session, a.question(q, missing))
		if err != nil && (ctx.Err() != nil || a.gone()) {
			a.withdrew.Add(1)
			return
		}
		if err != nil {
			a.settle(q.ID, q.Digest(), approval.Verdict{Reason: approval.NoApprover, Channel: "elicitation", Text: "the client could not ask"})
			return
		}
		if missing = a.take(q, forms.Read(q, res, a.s.o.Now().Sub(asked), true), missing != ""); missing == "" {
			return
		}
	}
}

// take settles a request with its answer. If the person is to be asked again, which
// happens once, it returns what the answer lacked.
func (a *attachment) take(q approval.Request, got forms.Answer, again bool) (missing string) {
	a.reflex().Note(got)
	if got.Machine {
		if a.s.o.Gate.HasApprovers() { // who answer it then
			return ""
		}
		got.Verdict.Text += a.r.gate.Elsewhere(q.Decision)
	}
	if got.Missing == "" {
		got.Missing = a.settle(q.ID, q.Digest(), got.Verdict)
	}
	switch {
	case got.Missing == "":
		return ""
	case !again && !(got.Dismissed && a.s.o.Gate.Queues(q.Decision)): // else approvers have it
		return got.Missing
	}
	a.settle(q.ID, q.Digest(), approval.Verdict{Reason: approval.NoApprover, Channel: "elicitation", Text: got.Missing})
	return ""
}

// settle brings a verdict to the broker. One that comes too late, or twice,
// changes nothing. What it returns says why a yes does not count, where the
// person may still mend that.
func (a *attachment) settle(id string, about canon.Digest, v approval.Verdict) (missing string) {
	v.By = "the person at " + canon.Escape(canon.Cut(a.client(), 100))
	ctx := context.Background() // what a person said counts even if the request ends now
	_, err := a.s.o.Gate.Settle(ctx, id, about, v)
	if err == nil {
		return ""
	}
	a.s.o.Logger.Info("a verdict settled nothing", "run", a.r.id, "request", id, "why", err)
	var settled *approval.SettledError
	var refused *approval.RefusedError
	switch {
	case !v.Approve || errors.As(err, &settled):
	case errors.As(err, &refused):
		return refused.Error()
	default: // a yes that does not count must not leave the question open
		a.settle(id, about, approval.Verdict{Reason: approval.NoApprover, Channel: v.Channel, Text: err.Error()})
	}
	return ""
}

// reflex is that of the client of this request: its session's or, if that does not
// last, its principal's, or at least the run's.
func (a *attachment) reflex() *forms.Reflex {
	if sess := a.s.roster.sessionOf(a.req.Session); sess != nil && !sess.brief {
		return sess.reflex
	}
	return a.r.session.reflex
}

// reflexOf is the reflex of a new session.
func (s *Server) reflexOf(brief bool, principal string) *forms.Reflex {
	if !brief || principal == "" {
		return new(forms.Reflex)
	}
	x, _ := s.reflexes.LoadOrStore(principal, new(forms.Reflex))
	return x.(*forms.Reflex)
}

// answerable reports whether a request can be put to the person at the client of this
// attachment. A client that answers by itself is asked only by eval_resume, which a
// person wanted.
func (a *attachment) answerable(q approval.Request) bool {
	return a.r.reach(a.r.gate.Reach) == gate.ByElicitation && !q.NeedsApprover() && (a.resumed || !a.reflex().ByItself())
}

// question is a request as a form for the client of this attachment, with what an
// earlier answer lacked if there was one.
func (a *attachment) question(q approval.Request, missing string) *mcp.ElicitParams {
	how := a.s.o.ReadAt(q.ID)
	how.DidNotCount = missing
	return forms.New(q, wording.Describe(q, how).Prompt(), forms.Options{Session: a.lasting(), Titles: a.req.ProtocolVersion() >= newestSessionProtocol})
}
