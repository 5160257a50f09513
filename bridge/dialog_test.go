package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A clock stands still until a test lets time pass.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// impatient makes the clients of a policy lose patience at once.
func impatient(spec profiles.Spec) profiles.Spec {
	spec.ClientPatience = &profiles.Patience{Default: ptr(profiles.Duration(time.Millisecond))}
	return spec
}

// ways connects clients of both protocols through a pipe and over HTTP.
func ways(t *testing.T, policy func() profiles.Spec, test func(t *testing.T, w way)) {
	for _, version := range []string{newestSessionProtocol, statelessProtocol} {
		for _, kind := range []string{"pipe", "HTTP"} {
			t.Run(kind+" "+version, func(t *testing.T) {
				w := way{clock: newClock(), version: version, pipe: kind == "pipe"}
				w.bench = newBench(t, policy(), func(o *Options) { o.Now = w.clock.Now })
				w.connect = func(o *mcp.ClientOptions) *mcp.ClientSession {
					if w.pipe {
						return w.bench.connectAt(t, o, version)
					}
					server := serveHTTP(t, w.bench, mcphttp.Options{})
					c, err := mcp.NewClient(&mcp.Implementation{Name: "tester"}, o).Connect(t.Context(),
						&mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { c.Close() })
					return c
				}
				test(t, w)
			})
		}
	}
}

// A way is how a client and a bridge are connected.
type way struct {
	*bench
	clock   *clock
	version string
	pipe    bool
	connect func(*mcp.ClientOptions) *mcp.ClientSession
}

// person answers the questions of a client in turn, each after some time. The
// last answer is given to all further ones.
func (w way) person(answers ...answer) (*person, *mcp.ClientOptions) {
	p := &person{answer: func(n int, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		a := answers[min(n, len(answers))-1]
		w.clock.pass(a.after)
		return &mcp.ElicitResult{Action: a.action, Content: a.content}, nil
	}}
	return p, &mcp.ClientOptions{ElicitationHandler: p.elicit}
}

type answer struct {
	action  string
	content map[string]any
	after   time.Duration
}

var (
	saysYes   = answer{"accept", map[string]any{"decision": "once"}, time.Second}
	noReason  = saysYes
	reasoned  = answer{"accept", map[string]any{"decision": "once", "reason": "the release"}, time.Second}
	noChoice  = answer{"accept", nil, time.Second}
	dismisses = answer{"cancel", nil, time.Second}
	declines  = answer{"decline", nil, time.Second}
	byMachine = answer{"decline", nil, 299 * time.Millisecond}
	cancels   = answer{"cancel", nil, 299 * time.Millisecond}
	readSoon  = answer{"decline", nil, 300 * time.Millisecond}
	setBack   = answer{"decline", nil, -time.Hour}
)

// An answer that does not count is asked for once more, with what was missing,
// whatever the protocol; then it is a no that says so.
func TestAnswersThatDoNotCount(t *testing.T) {
	const sent, nobody = `"{\"path\":\"/tmp/x\"}"`, "no_approver"
	for _, row := range []struct {
		name    string
		answers []answer
		missing string // as the second dialog and the script say
		want    string
		asked   int
	}{
		{"a yes without the reason", []answer{noReason}, "a yes to this call needs a reason", nobody, 2},
		{"and then with it", []answer{noReason, reasoned}, "a yes to this call needs a reason", sent, 2},
		{"no choice", []answer{noChoice}, "the client sent no decision", nobody, 2},
		{"no choice, then a yes", []answer{noChoice, reasoned}, "the client sent no decision", sent, 2},
		{"dismissed", []answer{dismisses}, "the question was dismissed", nobody, 2},
		{"dismissed, then a no", []answer{dismisses, declines}, "the question was dismissed", "elicitation_declined", 2},
		{"a no needs no reason", []answer{declines}, "", "elicitation_declined", 1},
		{"a no that somebody may have given", []answer{readSoon}, "", "elicitation_declined", 1},
		{"a no after the clock was set back", []answer{setBack}, "", "elicitation_declined", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			ways(t, func() profiles.Spec {
				return asks(func(p *profiles.ProfileSpec) {
					p.Rules = []profiles.RuleSpec{{Tools: []string{"a__echo"}, RequireReason: ptr(true)}}
				})
			}, func(t *testing.T, w way) {
				p, o := w.person(row.answers...)
				got := eval(t, w.connect(o), tryEcho)
				asked := p.questions()
				if !strings.Contains(got, row.want) || len(asked) != row.asked {
					t.Fatalf("asked %d times, got %s", len(asked), got)
				}
				if row.want == nobody && !strings.Contains(got, row.missing) {
					t.Errorf("the script is not told why: %s", got)
				}
				if first := asked[0].Message; strings.Contains(first, "did not count") {
					t.Errorf("the first dialog is\n%s", first)
				}
				if row.asked == 2 && !strings.HasPrefix(asked[1].Message, "Your last answer did not count: "+row.missing+".\n") {
					t.Errorf("the second dialog is\n%s", asked[1].Message)
				}
				if form := fmt.Sprint(asked[0].RequestedSchema); !strings.Contains(form, "required for a yes") {
					t.Errorf("the form does not say what a yes needs: %s", form)
				}
			})
		})
	}
}

// What comes faster than a person reads is a machine's: nobody's no, asked once,
// and after two of them the client is not asked any more.
func TestAnswersThatNobodyGave(t *testing.T) {
	const three = `const got = [];
		for (const n of [1, 2, 3]) got.push(await codemode.a__echo({n}).catch(e => e.reason + ": " + e.message));
		return got`
	for _, row := range []struct {
		name    string
		answers []answer
		want    []string // of three calls
		asked   int
	}{
		{"declined at once", []answer{byMachine}, []string{"299 ms", "299 ms", "answers questions by itself"}, 2},
		{"cancelled at once", []answer{cancels}, []string{"299 ms", "299 ms", "answers questions by itself"}, 2},
		{"a person in between", []answer{byMachine, saysYes, byMachine}, []string{"299 ms", `{"n":2}`, "299 ms"}, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			ways(t, func() profiles.Spec {
				return asks(func(p *profiles.ProfileSpec) { p.ElicitationFallback = ptr("allow") }) // which is not for this
			}, func(t *testing.T, w way) {
				p, o := w.person(row.answers...)
				var got []string
				if out := eval(t, w.connect(o), three); json.Unmarshal([]byte(out), &got) != nil || len(got) != 3 {
					t.Fatalf("got %s", out)
				}
				for i, want := range row.want {
					if !strings.Contains(got[i], want) || strings.Contains(want, "by itself") && !strings.Contains(got[i], "no_approver") {
						t.Errorf("call %d: %s", i+1, got[i])
					}
				}
				if n := len(p.questions()); n != row.asked || len(w.up.made()) != strings.Count(strings.Join(row.want, ""), "{") {
					t.Errorf("asked %d times, sent %q", n, w.up.made())
				}
			})
		})
	}
}

// Not every client looks whether an answer fits the form.
func TestAnswerThatDoesNotFitTheForm(t *testing.T) {
	clock := newClock()
	b := newBench(t, asks(), func(o *Options) { o.Now = clock.Now })
	p := &person{answer: says("once")}
	o := &mcp.ClientOptions{ElicitationHandler: p.elicit}
	client := mcp.NewClient(&mcp.Implementation{Name: "tester"}, o)
	first := true
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "elicitation/create" || !first {
				return next(ctx, method, req)
			}
			first = false
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": 7, "other": true}}, nil
		}
	})
	c := b.connectClient(t, client, newestSessionProtocol)
	got := eval(t, c, tryEcho)
	asked := p.questions() // the first was not seen by them
	if len(asked) != 1 || !strings.HasPrefix(asked[0].Message, "Your last answer did not count: the client sent no decision.") || !strings.Contains(got, "/tmp/x") {
		t.Errorf("got %s, asked %v", got, asked)
	}
}

// A slow person answers when a test lets them, or says that the question was
// withdrawn before.
type slowPerson struct {
	asked     chan *mcp.ElicitParams
	answers   chan *mcp.ElicitResult
	withdrawn chan struct{}
}

func newSlowPerson() *slowPerson {
	return &slowPerson{make(chan *mcp.ElicitParams, 8), make(chan *mcp.ElicitResult, 1), make(chan struct{}, 8)}
}

func (p *slowPerson) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		p.asked <- req.Params
		select {
		case a := <-p.answers:
			return a, nil
		case <-ctx.Done():
			p.withdrawn <- struct{}{}
			return nil, ctx.Err()
		}
	}}
}

func (p *slowPerson) says(decision string) {
	p.answers <- &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}
}

// aPause is a paused answer.
type aPause struct{ Status, Run, Resume, Next string }

func pausedEval(t *testing.T, c *mcp.ClientSession, code string) aPause {
	t.Helper()
	out, failed := call(t, c, "eval", map[string]any{"code": code})
	var paused aPause
	if err := json.Unmarshal([]byte(out), &paused); err != nil || failed || paused.Status != "paused" {
		t.Fatalf("got %s", out)
	}
	return paused
}

func (a aPause) resumed(t *testing.T, c *mcp.ClientSession) string {
	t.Helper()
	out, _ := call(t, c, "eval_resume", map[string]any{"run": a.Run})
	return out
}

// finished is the result of a run that ends once a resume asks.
func (a aPause) finished(t *testing.T, c *mcp.ClientSession, b *bench) string {
	t.Helper()
	a.resumed(t, c) // which may be answered "paused" before the person is heard
	waitUntil(t, func() bool { state, _ := b.Run(t.Context(), a.Run); return state.Over() })
	return a.resumed(t, c)
}

// Through a pipe the dialog stays open at the pause: a yes moves the run on, and
// the client that comes back gets the result, by eval_resume or with the script.
func TestAYesAfterThePauseCounts(t *testing.T) {
	for _, how := range []string{"eval_resume", "eval"} {
		t.Run(how, func(t *testing.T) {
			b, p := newBench(t, impatient(asks())), newSlowPerson()
			c := b.connect(t, p.options())
			paused := pausedEval(t, c, tryEcho)
			<-p.asked
			if !strings.Contains(paused.Next, "still open at this client, until ") || !strings.Contains(paused.Next, "goes on by itself") {
				t.Errorf("the client is told: %s", paused.Next)
			}
			p.says("once")
			waitUntil(t, func() bool { state, _ := b.Run(t.Context(), paused.Run); return state.Over() })
			got := ""
			if how == "eval" {
				got = eval(t, c, tryEcho)
			} else {
				got = paused.resumed(t, c)
			}
			if !strings.Contains(got, "/tmp/x") || len(b.up.made()) != 1 || len(p.asked) > 0 {
				t.Errorf("got %s, sent %q, asked %d more times", got, b.up.made(), len(p.asked))
			}
		})
	}
}

// A resume does not put a second dialog beside one that is open; the answer to
// that counts for both.
func TestAResumeBesideAnOpenDialog(t *testing.T) {
	b, p := newBench(t, impatient(asks())), newSlowPerson()
	c := b.connect(t, p.options())
	paused := pausedEval(t, c, tryEcho)
	<-p.asked
	if out := paused.resumed(t, c); !strings.Contains(out, "still open at this client") || len(p.asked) > 0 {
		t.Errorf("asked %d more times: %s", len(p.asked), out)
	}
	p.says("once")
	waitUntil(t, func() bool { state, _ := b.Run(t.Context(), paused.Run); return state.Over() })
	if out := paused.resumed(t, c); !strings.Contains(out, "/tmp/x") {
		t.Errorf("got %s", out)
	}
}

// Over HTTP the dialog is withdrawn before the pause, and a resume asks again, for
// as long as a paused run waits.
func TestTheDialogOfAnHTTPSessionEndsWithItsCall(t *testing.T) {
	spec := impatient(asks())
	spec.ClientPatience.Default = ptr(profiles.Duration(50 * time.Millisecond)) // what is over sooner is not asked at all
	spec.PausedFor = ptr(profiles.Duration(72 * time.Hour))
	b, p := newBench(t, spec), newSlowPerson()
	server := serveHTTP(t, b, mcphttp.Options{})
	c, err := mcp.NewClient(&mcp.Implementation{Name: "tester"}, p.options()).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: newestSessionProtocol})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	paused := pausedEval(t, c, tryEcho)
	for len(p.asked) == 0 { // on a busy machine
		paused.resumed(t, c)
	}
	<-p.asked
	<-p.withdrawn
	until := time.Now().Add(72 * time.Hour).Local().Format("on Mon 2 Jan")
	if !strings.Contains(paused.Next, "asks them again") || !strings.Contains(paused.Next, until) {
		t.Errorf("the client is told: %s", paused.Next)
	}
	patient := spec
	patient.ClientPatience = nil
	b.Replace(newView(t, patient))
	p.says("once")
	if out := paused.resumed(t, c); !strings.Contains(out, "/tmp/x") {
		t.Errorf("got %s", out)
	}
	if again := <-p.asked; !strings.Contains(again.Message, until) {
		t.Errorf("the resume asks\n%s", again.Message)
	}
}

// The patience of a client that takes progress is not over as long as a dialog is
// open.
func TestAClientThatTakesProgressIsPatient(t *testing.T) {
	b, p := newBench(t, impatient(asks())), newSlowPerson()
	c := b.connect(t, p.options())
	params := &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": tryEcho}}
	params.SetProgressToken("t")
	go func() {
		<-p.asked
		time.AfterFunc(50*time.Millisecond, func() { p.says("once") }) // which is fifty times its patience
	}()
	res, err := c.CallTool(t.Context(), params)
	if err != nil || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, "/tmp/x") {
		t.Errorf("got %+v, %v", res, err)
	}
}

// Of two answers that cross each other the first counts, and a dialog whose
// question is settled elsewhere is withdrawn, paused or not.
func TestAnswersThatCross(t *testing.T) {
	for _, when := range []string{"held", "paused"} {
		t.Run(when, func(t *testing.T) {
			spec := asks()
			if when == "paused" {
				spec = impatient(spec)
			}
			b, p := newBench(t, spec), newSlowPerson()
			b.approvers.Store(true)
			c := b.connect(t, p.options())
			done := make(chan string, 1)
			go func() {
				out, _ := call(t, c, "eval", map[string]any{"code": tryEcho})
				done <- out
			}()
			<-p.asked
			if when == "paused" {
				<-done
			}
			b.decide(t, b.asked(t), approval.Verdict{Reason: approval.Declined})
			<-p.withdrawn
			got := ""
			if when == "paused" {
				waitUntil(t, func() bool { return b.Running() == 0 })
				got = eval(t, c, tryEcho)
			} else {
				got = <-done
			}
			if !strings.Contains(got, `"declined"`) && !strings.Contains(got, `\"declined\"`) || len(b.up.made()) > 0 {
				t.Errorf("got %s, sent %q", got, b.up.made())
			}
		})
	}
}

// What is open at a client goes when its run does, when its time is over, and when
// the bridge ends.
func TestDialogsAreWithdrawn(t *testing.T) {
	for name, end := range map[string]func(*bench, aPause){
		"the run is stopped": func(b *bench, paused aPause) { b.roster.stop(paused.Run, "ann") },
		"the bridge ends":    func(b *bench, _ aPause) { b.Close(0) },
		"its time is over":   func(*bench, aPause) {},
	} {
		t.Run(name, func(t *testing.T) {
			b, p := newBench(t, impatient(asks(func(p *profiles.ProfileSpec) {
				if name == "its time is over" {
					p.Timeout = ptr(profiles.Duration(600 * time.Millisecond)) // by then it is open, also on a busy machine
				}
			}))), newSlowPerson()
			paused := pausedEval(t, b.connect(t, p.options()), tryEcho)
			<-p.asked
			end(b, paused)
			<-p.withdrawn
		})
	}
}

// A pipe is a session in both protocols.
func TestSessionGrantThroughAPipe(t *testing.T) {
	for _, version := range []string{newestSessionProtocol, statelessProtocol} {
		t.Run(version, func(t *testing.T) {
			b := newBench(t, asks(func(s *profiles.ProfileSpec) {
				s.Rules = []profiles.RuleSpec{{Tools: []string{"a__echo"}, Risk: ptr("low"), Remember: ptr(true)}}
			}))
			p := &person{answer: says("session")}
			c := b.connectAt(t, &mcp.ClientOptions{ElicitationHandler: p.elicit}, version)
			for range 3 {
				if got := eval(t, c, tryEcho); !strings.Contains(got, "/tmp/x") {
					t.Errorf("got %s", got)
				}
			}
			if n := len(p.questions()); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// A client that answers by itself leaves its questions to approvers, whatever the
// profile's fallback, and is asked again by a resume, which finds out whether
// somebody is there by now.
func TestAClientThatAnswersByItselfQueues(t *testing.T) {
	for _, fallback := range []string{"deny", "allow", "queue"} {
		t.Run(fallback, func(t *testing.T) {
			clock := newClock()
			b := newBench(t, impatient(asks(func(p *profiles.ProfileSpec) { p.ElicitationFallback = &fallback })), func(o *Options) { o.Now = clock.Now })
			b.approvers.Store(true)
			w := way{bench: b, clock: clock}
			p, o := w.person(byMachine, byMachine, saysYes)
			c := b.connect(t, o)
			for n := range 2 {
				pausedEval(t, c, fmt.Sprintf("return await codemode.a__echo({n: %d})", n))
				waitUntil(t, func() bool { return len(p.questions()) == n+1 })
			}
			third := pausedEval(t, c, tryEcho)
			if n := len(p.questions()); n != 2 {
				t.Fatalf("asked %d times", n)
			}
			if out := third.finished(t, c, b); !strings.Contains(out, "/tmp/x") || len(p.questions()) != 3 {
				t.Errorf("asked %d times, got %s", len(p.questions()), out)
			}
			call(t, c, "eval", map[string]any{"code": "return await codemode.a__echo({n: 4})"}) // which asks the person again
			waitUntil(t, func() bool { return len(b.up.made()) == 2 })
		})
	}
}

// A client that only opens addresses is told that, and where approvers answer.
func TestAClientThatOnlyOpensAddresses(t *testing.T) {
	for _, row := range []struct{ fallback, want string }{
		{"deny", "shows no forms, so that nobody can answer there; approvers can answer at https://approve.example once"},
		{"allow", "shows no forms, so that nobody can answer there; approvers can answer at https://approve.example once"},
		{"queue", `"approve_at":"https://approve.example"`},
	} {
		t.Run(row.fallback, func(t *testing.T) {
			b := newBench(t, impatient(asks(func(p *profiles.ProfileSpec) { p.ElicitationFallback = &row.fallback })),
				func(o *Options) { o.ApproveAt = func(string) string { return "https://approve.example" } })
			b.approvers.Store(true)
			c := b.connect(t, &mcp.ClientOptions{
				Capabilities:       &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
				ElicitationHandler: (&person{answer: says("once")}).elicit,
			})
			if out, _ := call(t, c, "eval", map[string]any{"code": tryEcho}); !strings.Contains(out, row.want) || len(b.up.made()) > 0 {
				t.Errorf("got %s", out)
			}
		})
	}
}

// Late and doubled answers of a stateless client: they count as long as the
// question is open, once.
func TestLateAnswersOfAStatelessClient(t *testing.T) {
	clock := newClock()
	b := newBench(t, asks(), func(o *Options) { o.Now = clock.Now })
	server := serveHTTP(t, b, mcphttp.Options{})
	state, yes := askedBy(t, rawEval(t, server.URL, tryEcho, ""))
	state = fmt.Sprintf(`"requestState":%q,`, state)
	clock.pass(2 * time.Hour)
	for range 2 {
		if got := rawEval(t, server.URL, tryEcho, yes+state); !strings.Contains(got, "/tmp/x") || len(b.up.made()) != 1 {
			t.Errorf("got %s, sent %q", got, b.up.made())
		}
	}
}

// The worker of a run that waits may be needed by another: then the run is put
// away, its dialog stays, and a yes brings it back.
func TestAYesBringsARunBack(t *testing.T) {
	b, p := newFleet().under("one", "work", "a", impatient(asks()))(t), newSlowPerson()
	ctx, stop := context.WithCancel(t.Context())
	moving := make(chan struct{})
	go func() { defer close(moving); b.ResumeAnswered(ctx) }()
	defer func() { stop(); <-moving }()
	c := b.connect(t, p.options())
	paused := pausedEval(t, c, tryEcho)
	<-p.asked
	r, _ := b.roster.lookup(paused.Run)
	waitUntil(t, func() bool { return r.evict() })
	<-r.done
	if len(p.withdrawn) > 0 {
		t.Error("the dialog was withdrawn")
	}
	p.says("once")
	waitUntil(t, func() bool { return len(b.up.made()) == 1 })
	if out := paused.finished(t, c, b); !strings.Contains(out, "/tmp/x") || len(p.asked) > 0 {
		t.Errorf("got %s, asked %d more times", out, len(p.asked))
	}
}
