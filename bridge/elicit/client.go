package bridge

//lint:file-ignore SA1019 sampling and logging are deprecated by the newest protocol; servers use them

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/upstream"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A voice is a run as its upstream servers see it: what they say and ask in the
// middle of a call goes to the client that is attached to the run, marked with
// the server's name. Nothing that anybody answers here allows a call.
//
//	server ──▶ upstream ──▶ voice.Ask ──▶ floor ──▶ attachment ──▶ client
//	                            │ recorded before it goes back
//	server ◀────────────────────┘
type voice run

var _ upstream.Client = (*voice)(nil)

// Session is the run's, for servers that have state for each.
func (v *voice) Session() string { return v.session.id }

// Progress passes on what a server says of a call.
func (v *voice) Progress(p upstream.Progress) {
	if !v.reports.Allow() {
		return
	}
	count := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		count += fmt.Sprintf(" of %g", p.Total)
	}
	text := fmt.Sprintf("%s: %s", p.Server, count)
	if p.Message != "" {
		text = fmt.Sprintf("%s: %s", p.Server, clipRunes(p.Message, newsText))
		if p.Total > 0 {
			text += " (" + count + ")"
		}
	}
	v.tell(news{text: text})
}

// Log passes a line of a server's log on.
func (v *voice) Log(l upstream.Log) {
	if !v.logged.Allow() {
		return
	}
	v.tell(news{log: &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(l.Level), Logger: l.Server, Data: clipRunes(l.Text, newsText)}})
}

// newsText bounds what a server says at a time, in characters.
const newsText = 500

// News is what the attached client is told of a run: of its progress, or a line
// for its log.
type news struct {
	text string
	log  *mcp.LoggingMessageParams
}

func (v *voice) tell(n news) {
	select {
	case v.news <- n:
	default: // nobody listens, or not fast enough: it may be lost
	}
}

// LogLevel is what the client of the run's session wants to hear of.
func (v *voice) LogLevel() string {
	if v.session.conn == nil {
		return ""
	}
	if v.session.logLevel != "" {
		return v.session.logLevel
	}
	return v.server.levels.of(v.session.conn)
}

// Can says what a run's client has declared that it can do for servers.
type can struct{ form, url, model bool }

func canOf(req *mcp.CallToolRequest) can {
	caps := req.ClientCapabilities()
	if caps == nil {
		return can{}
	}
	c := can{model: caps.Sampling != nil}
	if e := caps.Elicitation; e != nil {
		c.form, c.url = e.Form != nil || e.URL == nil, e.URL != nil
	}
	return c
}

// A foreign question is one that an upstream server asks.
type foreign struct {
	id    string
	run   *run
	form  *mcp.ElicitParams        // as it is shown; nil if
	model *mcp.CreateMessageParams // the client's model is asked
	over  context.Context          // ends when nobody waits for the answer any more

	once sync.Once
	got  chan answered // holds the answer
}

// answered is what came of a question.
type answered struct {
	form  *mcp.ElicitResult
	model *mcp.CreateMessageWithToolsResult
	err   error
}

// settle answers a question, the first time that it is called. It is not put
// again.
func (q *foreign) settle(a answered) {
	q.once.Do(func() {
		q.run.session.floor.remove(q)
		q.got <- a
	})
}

// input is the question as part of an answer to a stateless client.
func (q *foreign) input() mcp.InputRequest {
	if q.model != nil {
		return q.model
	}
	return q.form
}

// digest is of what is shown.
func (q *foreign) digest() string {
	text, _ := json.Marshal(q.input()) // it came as JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

var (
	errNoReach  = errors.New("this client cannot ask a person")
	errNoModel  = errors.New("this client does not lend its model")
	errTooMany  = errors.New("too many questions of servers are waiting")
	errUnasked  = errors.New("nobody answered in time")
	errSaidNo   = errors.New("a person said that the server may not")
	errNoAnswer = errors.New("the client could not ask")

	errTooManyRounds = errors.New("the script has more questions than one call may ask")
	errNagging       = fmt.Errorf("a server asks at most %d times in a run, and not again after %d refusals", theirsMax, theirsVain)
)

// Bounds on what one server asks in one run: a server that asks again whatever
// the person says, or has the client's model work for it without end, is not heard
// any more.
const (
	theirsMax  = 64
	theirsVain = 3 // answers in a row that are none
)

// A patience counts the questions of one server.
type patience struct{ asked, vain int }

// hears counts a question of a server and reports whether it may be put. The last
// that may not is told apart, so that it is written down once.
func (v *voice) hears(server string) (may, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.patience == nil {
		v.patience = map[string]*patience{}
	}
	p := v.patience[server]
	if p == nil {
		p = new(patience)
		v.patience[server] = p
	}
	if p.asked < theirsMax && p.vain < theirsVain {
		p.asked++
		return true, false
	}
	first = p.asked <= theirsMax
	p.asked = theirsMax + 1
	return false, first
}

// heard notes whether a question of a server was answered.
func (v *voice) heard(server string, answered bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.patience[server].vain++; answered {
		v.patience[server].vain = 0
	}
}

// Ask puts a server's question to the person at the run's client, or to its
// model, and writes down what came of it before the server hears it.
func (v *voice) Ask(ctx context.Context, q upstream.Question) (upstream.Answer, error) {
	started := v.server.o.Now()
	may, first := v.hears(q.Server)
	if !may && !first { // it was written down once
		return upstream.Answer{}, fmt.Errorf("codemode-bridge refuses: %w", errNagging)
	}
	kind, about, answer, err := "elicitation", "", upstream.Answer{}, errNagging
	if q.Form == nil {
		kind = "sampling"
	}
	if may {
		kind, about, answer, err = v.put(ctx, q)
		v.heard(q.Server, err == nil && (answer.Form == nil || answer.Form.Action == "accept"))
	}
	said := gate.Asked{Server: q.Server, Kind: kind, About: about, Outcome: "answered", Wait: v.server.o.Now().Sub(started)}
	switch {
	case err != nil:
		said.Outcome, said.Why = "refused", err.Error()
	case answer.Form != nil:
		said.Outcome = answer.Form.Action
	}
	if lost := v.gate.ServerAsked(ctx, said); lost != nil {
		return upstream.Answer{}, errors.New("codemode-bridge refuses: the question could not be written down")
	}
	if err != nil {
		return upstream.Answer{}, fmt.Errorf("codemode-bridge refuses: %w", err)
	}
	return answer, nil
}

// put brings one question to the client and waits for the answer. About is what
// was asked, for the record.
func (v *voice) put(ctx context.Context, q upstream.Question) (kind, about string, a upstream.Answer, err error) {
	if q.Form != nil {
		shown, fields, err := mark(q.Server, q.Form)
		kind, about = "elicitation", q.Form.Message
		if q.Form.URL != "" {
			about += "\n" + q.Form.URL
		}
		switch {
		case err != nil:
			return kind, about, a, err
		case shown.URL != "" && !v.session.can.url, shown.URL == "" && !v.session.can.form:
			return kind, about, a, errNoReach
		}
		got := v.wait(ctx, &foreign{form: shown})
		if errors.Is(got.err, errUnasked) {
			return kind, about, upstream.Answer{Form: &mcp.ElicitResult{Action: "cancel"}}, nil
		}
		if got.err != nil {
			return kind, about, a, got.err
		}
		return kind, about, upstream.Answer{Form: renamed(got.form, fields)}, nil
	}
	kind = "sampling"
	model, err := markModel(q.Server, q.Model)
	if err != nil {
		return kind, about, a, err
	}
	about = modelText(q.Model.SystemPrompt, model)
	if !v.session.can.model {
		return kind, about, a, errNoModel
	}
	if q.First {
		if !v.session.can.form {
			return kind, about, a, errNoReach
		}
		form, err := mayUseModel(q.Server, about)
		if err != nil {
			return kind, about, a, err
		}
		got := v.wait(ctx, &foreign{form: form})
		switch {
		case got.err != nil:
			return kind, about, a, got.err
		case got.form.Action != "accept" || got.form.Content["answer"] != "yes":
			return kind, about, a, errSaidNo
		}
	}
	got := v.wait(ctx, &foreign{model: model})
	return kind, about, upstream.Answer{Model: got.model}, got.err
}

// renamed is what a person said to a form, by the names that the server gave its
// fields. Fields that it does not have are left out.
func renamed(res *mcp.ElicitResult, fields map[string]string) *mcp.ElicitResult {
	out := &mcp.ElicitResult{Action: res.Action}
	if res.Action != "accept" || fields == nil {
		return out
	}
	out.Content = map[string]any{}
	for name, value := range res.Content {
		if old, ok := fields[name]; ok {
			out.Content[old] = value
		}
	}
	return out
}

// statelessPatience is how long a question of a server waits for a stateless
// client, which is not held meanwhile.
const statelessPatience = 5 * time.Minute

// wait queues a question and waits for its answer: as long as the client holds a
// call, since it does not come back to the call by itself.
func (v *voice) wait(ctx context.Context, q *foreign) answered {
	patience := v.server.o.Gate.View().Profiles.ClientPatience(v.session.client)
	if v.session.stateless {
		patience = statelessPatience
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errUnasked)
	defer cancel()
	q.id, q.run, q.over, q.got = newID("q"), (*run)(v), ctx, make(chan answered, 1)
	floor := v.session.floor
	if !floor.queue(q) {
		return answered{err: errTooMany}
	}
	defer floor.remove(q)
	select {
	case got := <-q.got:
		return got
	case <-ctx.Done():
		return answered{err: context.Cause(ctx)}
	}
}

// askTheirs asks the person at a client with a session what a server wants to
// know. When ctx ends the question waits on, for whoever attaches next.
func (a *attachment) askTheirs(ctx context.Context, q *foreign) {
	defer a.r.session.floor.giveBack(q)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.over, cancel)()
	var got answered
	if q.model != nil {
		res, err := a.req.Session.CreateMessage(ctx, q.model)
		if got.err = err; err == nil {
			got.model = &mcp.CreateMessageWithToolsResult{Role: res.Role, Model: res.Model, StopReason: res.StopReason, Content: []mcp.Content{res.Content}}
		}
	} else {
		asked := a.s.o.Now()
		if got.form, got.err = a.req.Session.Elicit(ctx, q.form); got.err == nil {
			a.noteTheirs(got.form, a.s.o.Now().Sub(asked))
		}
	}
	if ctx.Err() != nil {
		return
	}
	if got.err != nil {
		a.s.o.Logger.Debug("a client could not be asked for a server", "run", a.r.id, "err", got.err)
		got.err = errNoAnswer
	}
	q.settle(got)
}

// theirsRequired asks the person at a stateless client what a server wants to
// know, by answering.
func (a *attachment) theirsRequired(q *foreign) *mcp.CallToolResult {
	st := state{Run: a.r.id, Principal: principal(a.req), Call: callDigest(a.req), Asked: map[string]string{q.id: q.digest()}, Missed: a.missed, Left: a.left, Round: a.round + 1, Given: a.s.o.Now(), Expires: time.Now().Add(stateFor)}
	sealed, err := a.s.seal.close(st)
	if err != nil {
		return failure("sealing the request state: " + err.Error())
	}
	a.s.park(a.r)
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{q.id: q.input()}, RequestState: sealed}
}

// theirsAnswered settles what a stateless client answers to a server's question;
// one without an answer may be put again.
func (a *attachment) theirsAnswered(st state) {
	for id, digest := range st.Asked {
		q := a.r.session.floor.find(a.r, id)
		if q == nil || q.digest() != digest {
			continue
		}
		switch got := a.req.Params.InputResponses[id].(type) {
		case *mcp.ElicitResult:
			if q.form != nil {
				a.noteTheirs(got, a.s.o.Now().Sub(st.Given))
				q.settle(answered{form: got})
			}
		case *mcp.CreateMessageWithToolsResult:
			if q.model != nil {
				q.settle(answered{model: got})
			}
		}
		a.r.session.floor.giveBack(q)
	}
}

// noteTheirs notes how fast a server's form was answered: that too says whether
// somebody is there.
func (a *attachment) noteTheirs(res *mcp.ElicitResult, after time.Duration) {
	a.reflex().note(formAnswer{atOnce: atOnce(after), machine: atOnce(after) && res.Action != "accept"})
}

// levels are the levels of logging that clients have set, by session.
type levels struct {
	mu    sync.Mutex
	known map[*mcp.ServerSession]string
}

func (l *levels) of(conn *mcp.ServerSession) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[conn]
}

// logLevels are those of the protocol, which are those of RFC 5424.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// hear notes the level that a client sets, as long as its session lasts, and
// refuses one that there is none of.
func (l *levels) hear(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		params, ok := req.GetParams().(*mcp.SetLoggingLevelParams)
		if ok && (params == nil || !slices.Contains(logLevels, string(params.Level))) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid params: the level is one of " + strings.Join(logLevels, ", ")}
		}
		res, err := next(ctx, method, req)
		conn, session := req.GetSession().(*mcp.ServerSession)
		if err != nil || !ok || params == nil || !session {
			return res, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.known == nil {
			l.known = map[*mcp.ServerSession]string{}
		}
		if _, before := l.known[conn]; !before {
			go func() {
				conn.Wait()
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.known, conn)
			}()
		}
		l.known[conn] = string(params.Level)
		return res, err
	}
}

// logLevelOf is the level of logging that a stateless client asks for, with the
// request.
func logLevelOf(req *mcp.CallToolRequest) string {
	level, _ := req.Params.Meta[mcp.MetaKeyLogLevel].(string)
	return canon.Visible(clipRunes(level, 20))
}
