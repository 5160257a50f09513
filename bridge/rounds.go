package bridge

import (
	"context"
	"maps"
	"slices"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/forms"
	"codemode-bridge/bridge/rpc"
	"codemode-bridge/bridge/seal"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A statelessAsker asks by answering "input required" with a sealed state
// (package seal). The client asks its person and calls again, with the answers and the
// state: that is a round.
type statelessAsker struct {
	*attachment
	round  int
	missed map[string]string // by request: what an answer lacked, for which it is asked once more
	left   []string          // requests that are left to approvers
}

var _ asker = (*statelessAsker)(nil)

const (
	maxRounds = 7                // clients answer nine or ten, then fail
	stateFor  = 30 * time.Minute // a sealed state is good for, unless its questions have longer
)

// gathers: the client hears of all questions in one answer.
func (a *statelessAsker) gathers() bool { return !a.r.quiet() }

func (a *statelessAsker) ask(_ context.Context, fresh []approval.Request) *mcp.CallToolResult {
	if len(fresh) == 0 {
		return nil
	}
	for _, q := range fresh {
		a.asked[q.ID] = true
	}
	return a.inputRequired(fresh)
}

func (a *statelessAsker) askForServer(_ context.Context, q *elicit.Request) *mcp.CallToolResult {
	if a.round < maxRounds {
		return a.serverRequestRequired(q)
	}
	q.Refuse(errTooManyRounds)
	return nil
}

func (a *statelessAsker) patience() bool { return false }

// gone is false: the client has no connection that lasts, and ends its request when
// it cancels.
func (a *statelessAsker) gone() bool { return false }

// withdraw has nothing to do: what was asked stays open for the next round.
func (a *statelessAsker) withdraw(context.Context) {}

// inputRequired asks the person at a stateless client, by answering. They have as
// long as a paused run has, since the client need not come back before.
func (a *statelessAsker) inputRequired(all []approval.Request) *mcp.CallToolResult {
	if a.round >= maxRounds {
		return a.paused("the script has more questions than one call may ask")
	}
	a.s.runner.leave(a.r)
	now := time.Now()
	st := seal.State{Run: a.r.id, Principal: principal(a.req), Call: rpc.CallDigest(a.req), Asked: map[string]string{}, Round: a.round + 1,
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
	sealed, err := a.s.seal.Close(st)
	if err != nil {
		return failure("sealing the state of the request: " + err.Error())
	}
	return &mcp.CallToolResult{InputRequests: inputs, RequestState: sealed}
}

// answer settles what a stateless client answers: only questions that the
// state names, about what they showed. One that has no answer was dismissed. The
// first answer counts: a yes does not undo what was dismissed with the same state.
func (a *statelessAsker) answer(ctx context.Context, st seal.State) {
	u := a.s.seal.Use(st)
	u.First(func() { a.settleAnswers(ctx, st, u) })
	a.round, a.left, a.missed = st.Round, slices.Clone(u.Left), maps.Clone(u.Missed)
	for _, id := range a.left {
		a.asked[id] = true
	}
}

func (a *statelessAsker) settleAnswers(ctx context.Context, st seal.State, u *seal.Use) {
	u.Left = slices.Clone(st.Left)
	after := a.s.o.Now().Sub(st.Given)
	a.serverRequestAnswered(st)
	open := map[string]approval.Request{}
	for _, q := range a.s.o.Gate.Broker().Take(a.r.id) {
		open[q.ID] = q
	}
	if a.r.replay != nil { // which may not be where it was yet, when it asked
		kept, err := a.s.o.Gate.Broker().Requests(ctx, approval.Filter{Run: a.r.id, Open: a.s.o.Now()})
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
		if missing := a.take(q, forms.Read(q, res, after, a.lasting()), st.Missed[id] != ""); missing != "" {
			u.Missed[id] = missing
		} else {
			u.Left = append(u.Left, id) // if it is open still, approvers answer it
		}
	}
}
