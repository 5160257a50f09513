// Package elicit carries what upstream servers say and ask in the middle of a
// call to the client of the run that made the call: forms to fill in, pages to
// open, requests to the client's model, progress, and lines for its log.
//
//	server ──▶ upstream ──▶ Client.Ask ──▶ Queue ──▶ Request ──▶ the run's client
//	                            │ recorded before it goes back
//	server ◀────────────────────┘
//
// A [Client] is one run as its servers see it. A server request goes through
// four steps:
//
//   - It is labelled as the server's ([LabelForm], [ModelConsent]): nothing in it
//     can be mistaken for a question of the bridge, no form asks for a secret, and
//     only pages on the public internet are opened.
//   - It waits in the prompt queue of its session ([Queue]) until no other question,
//     from the bridge or from another server, is before the person.
//   - Whoever is attached to the run takes it from there as a [Request] and puts it
//     to the client: at once on a session ([Request.Put]), or as part of an answer
//     to a stateless client ([Request.Input], [Request.Resolve]).
//   - Its outcome is recorded ([Record]) before the server gets the answer.
//
// No answer given here allows a call.
package elicit

//lint:file-ignore SA1019 sampling and logging are deprecated by the newest protocol; servers use them

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/upstream"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
)

// Options say whose run a Client is. All of them are required.
type Options struct {
	// Run names the run in its session's Queue.
	Run string
	// Session is the name of the run's session, for servers that keep state for
	// each.
	Session string
	// Person returns whose accounts the run's calls use; nil: it is not known, and
	// calls that need an account are refused.
	Person func() (name string, known bool)
	// Can is what the session's client does for servers.
	Can Abilities
	// Queue is the session's.
	Queue *Queue
	// LogLevel returns the least severe level of logging that the client wants to
	// hear of, as MCP names it; "" if none.
	LogLevel func() string
	// Patience returns how long a request waits for its answer.
	Patience func() time.Duration
	// Record writes down what came of a request. Where it fails the server gets
	// no answer.
	Record func(context.Context, Record) error
	// Now is the clock.
	Now func() time.Time
}

// Abilities are what a client has declared that it can do for servers.
type Abilities struct {
	Form  bool // show a form to a person
	URL   bool // have a person open a page
	Model bool // lend its model
}

// AbilitiesOf reads the abilities of the client that a request comes from.
func AbilitiesOf(req *mcp.CallToolRequest) Abilities {
	caps := req.ClientCapabilities()
	if caps == nil {
		return Abilities{}
	}
	can := Abilities{Model: caps.Sampling != nil}
	if e := caps.Elicitation; e != nil {
		can.Form, can.URL = e.Form != nil || e.URL == nil, e.URL != nil
	}
	return can
}

// A Record is what came of one server request.
type Record struct {
	Server  string
	Kind    string // elicitation or sampling
	About   string // what was asked, in the server's words
	Outcome string // answered, refused, or what the person did: accept, decline, cancel
	Why     string // it was refused
	Wait    time.Duration
}

// News is what the attached client is told of a run: of its progress, or, if Log
// is not nil, a line for its log.
type News struct {
	Text string
	Log  *mcp.LoggingMessageParams
}

// A Client is one run as its upstream servers see it. Its methods may be called
// by any number of goroutines.
type Client struct {
	o        Options
	news     chan News     // lossy
	progress *rate.Limiter // of reports that are passed on
	logs     *rate.Limiter

	mu      sync.Mutex
	servers map[string]*count // of requests, by server
}

var _ upstream.Client = (*Client)(nil)

// New makes the client of a run.
func New(o Options) *Client {
	return &Client{o: o, news: make(chan News, 16), progress: rate.NewLimiter(10, 10), logs: rate.NewLimiter(10, 50), servers: map[string]*count{}}
}

// News is where servers' progress and logs arrive. What nobody takes in time is
// dropped.
func (c *Client) News() <-chan News { return c.news }

// Session is the name of the run's session.
func (c *Client) Session() string { return c.o.Session }

// Person is whose accounts the run's calls use.
func (c *Client) Person() (name string, known bool) {
	if c.o.Person == nil {
		return "", false
	}
	return c.o.Person()
}

// LogLevel is what the client of the run's session wants to hear of.
func (c *Client) LogLevel() string { return c.o.LogLevel() }

// newsText bounds what a server says at a time, in characters.
const newsText = 500

// Progress passes on what a server says of a call.
func (c *Client) Progress(p upstream.Progress) {
	if !c.progress.Allow() {
		return
	}
	done := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		done += fmt.Sprintf(" of %g", p.Total)
	}
	text := fmt.Sprintf("%s: %s", p.Server, done)
	if p.Message != "" {
		text = fmt.Sprintf("%s: %s", p.Server, canon.Cut(p.Message, newsText))
		if p.Total > 0 {
			text += " (" + done + ")"
		}
	}
	c.tell(News{Text: text})
}

// Log passes on a line of a server's log.
func (c *Client) Log(l upstream.Log) {
	if !c.logs.Allow() {
		return
	}
	c.tell(News{Log: &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(l.Level), Logger: l.Server, Data: canon.Cut(l.Text, newsText)}})
}

func (c *Client) tell(n News) {
	select {
	case c.news <- n:
	default: // nobody listens, or not fast enough
	}
}

var (
	errNoForm    = errors.New("this client cannot ask a person")
	errNoModel   = errors.New("this client does not lend its model")
	errQueueFull = errors.New("too many questions of servers are waiting")
	errNotInTime = errors.New("nobody answered in time")
	errNoConsent = errors.New("a person said that the server may not")
	errTooMany   = fmt.Errorf("a server asks at most %d times in a run, and not again after %d refusals", MaxRequests, MaxRefusals)
)

// Bounds on what one server asks in one run. Past them its requests are refused,
// so that it cannot ask until it gets the answer it wants, nor have the client's
// model work for it without end.
const (
	MaxRequests = 64
	MaxRefusals = 3 // in a row
)

// A count is of the requests of one server.
type count struct{ made, refused int }

// admit counts a request of a server and reports whether it may be put. The first
// that may not is told apart, so that the refusal is recorded once.
func (c *Client) admit(server string) (may, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.servers[server]
	if n == nil {
		n = new(count)
		c.servers[server] = n
	}
	if n.made < MaxRequests && n.refused < MaxRefusals {
		n.made++
		return true, false
	}
	first = n.made <= MaxRequests
	n.made = MaxRequests + 1
	return false, first
}

// note counts a refusal; after an answer the count starts again.
func (c *Client) note(server string, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.servers[server].refused++; answered {
		c.servers[server].refused = 0
	}
}

// Ask puts a server's request to the person at the run's client, or to its model,
// and records what came of it before the server hears it.
func (c *Client) Ask(ctx context.Context, q upstream.Question) (upstream.Answer, error) {
	started := c.o.Now()
	may, first := c.admit(q.Server)
	if !may && !first { // the first refusal was recorded
		return upstream.Answer{}, fmt.Errorf("codemode-bridge refuses: %w", errTooMany)
	}
	rec := Record{Server: q.Server, Kind: "elicitation", Outcome: "answered"}
	if q.Form == nil {
		rec.Kind = "sampling"
	}
	answer, err := upstream.Answer{}, errTooMany
	if may {
		if q.Form != nil {
			rec.About, answer, err = c.askPerson(ctx, q)
		} else {
			rec.About, answer, err = c.askModel(ctx, q)
		}
		c.note(q.Server, err == nil && (answer.Form == nil || answer.Form.Action == "accept"))
	}
	rec.Wait = c.o.Now().Sub(started)
	switch {
	case err != nil:
		rec.Outcome, rec.Why = "refused", err.Error()
	case answer.Form != nil:
		rec.Outcome = answer.Form.Action
	}
	if c.o.Record(ctx, rec) != nil {
		return upstream.Answer{}, errors.New("codemode-bridge refuses: the question could not be written down")
	}
	if err != nil {
		return upstream.Answer{}, fmt.Errorf("codemode-bridge refuses: %w", err)
	}
	return answer, nil
}

// askPerson puts a form, or a page to open, to the person. About is what the
// server wrote, for the record.
func (c *Client) askPerson(ctx context.Context, q upstream.Question) (about string, a upstream.Answer, err error) {
	if about = q.Form.Message; q.Form.URL != "" {
		about += "\n" + q.Form.URL
	}
	form, fields, err := LabelForm(q.Server, q.Form)
	if err != nil {
		return about, a, err
	}
	if form.URL != "" && !c.o.Can.URL || form.URL == "" && !c.o.Can.Form {
		return about, a, errNoForm
	}
	got := c.wait(ctx, &Request{form: form})
	switch {
	case errors.Is(got.err, errNotInTime):
		return about, upstream.Answer{Form: &mcp.ElicitResult{Action: "cancel"}}, nil
	case got.err != nil:
		return about, a, got.err
	}
	return about, upstream.Answer{Form: originalNames(got.form, fields)}, nil
}

// askModel has the client's model answer, after the person agreed where q wants
// that. About is all that the model reads, for the record.
func (c *Client) askModel(ctx context.Context, q upstream.Question) (about string, a upstream.Answer, err error) {
	model, err := labelModel(q.Server, q.Model)
	if err != nil {
		return about, a, err
	}
	about = modelText(q.Model.SystemPrompt, model)
	if !c.o.Can.Model {
		return about, a, errNoModel
	}
	if q.First {
		if !c.o.Can.Form {
			return about, a, errNoForm
		}
		form, err := ModelConsent(q.Server, about)
		if err != nil {
			return about, a, err
		}
		got := c.wait(ctx, &Request{form: form})
		switch {
		case got.err != nil:
			return about, a, got.err
		case got.form.Action != "accept" || got.form.Content["answer"] != "yes":
			return about, a, errNoConsent
		}
	}
	got := c.wait(ctx, &Request{model: model})
	return about, upstream.Answer{Model: got.model}, got.err
}

// originalNames returns what a person answered to a form, by the names that the
// server gave its fields. Fields that the form does not have are left out.
func originalNames(res *mcp.ElicitResult, fields map[string]string) *mcp.ElicitResult {
	out := &mcp.ElicitResult{Action: res.Action}
	if res.Action != "accept" || fields == nil {
		return out
	}
	out.Content = map[string]any{}
	for name, value := range res.Content {
		if original, ok := fields[name]; ok {
			out.Content[original] = value
		}
	}
	return out
}

// wait queues a request and waits for its answer, as long as Options.Patience.
func (c *Client) wait(ctx context.Context, q *Request) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.Patience(), errNotInTime)
	defer cancel()
	q.id, q.run, q.queue, q.wanted, q.answered = newID(), c.o.Run, c.o.Queue, ctx, make(chan answer, 1)
	if !c.o.Queue.add(q) {
		return answer{err: errQueueFull}
	}
	defer c.o.Queue.remove(q)
	select {
	case got := <-q.answered:
		return got
	case <-ctx.Done():
		return answer{err: context.Cause(ctx)}
	}
}
