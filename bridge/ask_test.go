package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/bridge/mcphttptest"
	"codemode-bridge/bridge/seal"
	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asks is a policy under which the tools of a are asked about.
func asks(change ...func(*profiles.ProfileSpec)) profiles.Spec {
	p := &profiles.ProfileSpec{Asklist: []string{"a__*"}}
	for _, f := range change {
		f(p)
	}
	return profiles.Spec{DefaultProfile: ptr("p"), Profiles: map[string]*profiles.ProfileSpec{"p": p}}
}

// A person at a client: answers each question, and remembers what was asked.
type person struct {
	mu     sync.Mutex
	asked  []*mcp.ElicitParams
	answer func(n int, p *mcp.ElicitParams) (*mcp.ElicitResult, error) // nil, nil: never
}

func (p *person) elicit(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.mu.Lock()
	p.asked = append(p.asked, req.Params)
	n := len(p.asked)
	p.mu.Unlock()
	res, err := p.answer(n, req.Params)
	if res == nil && err == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return res, err
}

func (p *person) questions() []*mcp.ElicitParams {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*mcp.ElicitParams(nil), p.asked...)
}

func says(decision string) func(int, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return func(int, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
	}
}

// eras connects clients of both protocols over HTTP.
func eras(t *testing.T, b *bench, o func() *mcp.ClientOptions, test func(t *testing.T, c *mcp.ClientSession)) {
	server := serveHTTP(t, b, mcphttp.Options{})
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			c, err := mcp.NewClient(&mcp.Implementation{Name: "tester"}, o()).Connect(t.Context(),
				&mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			test(t, c)
		})
	}
}

const tryEcho = `try { return await codemode.a__echo({path: "/tmp/x"}) } catch (e) { return [e.name, e.reason, e.toolName, e.message] }`

func TestAPersonDecides(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer func(int, *mcp.ElicitParams) (*mcp.ElicitResult, error)
		want   string
		sent   int
	}{
		{"yes", says("once"), `"{\"path\":\"/tmp/x\"}"`, 1},
		{"no", says("no"), `elicitation_declined`, 0},
		{"dismissed", func(int, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "cancel"}, nil
		}, `no_approver`, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			var p *person
			clock := newClock() // stands still: who dismisses at once is no person
			b := newBench(t, asks(), func(o *Options) { o.Now = clock.Now })
			eras(t, b, func() *mcp.ClientOptions {
				p = &person{answer: row.answer}
				return &mcp.ClientOptions{ElicitationHandler: p.elicit}
			}, func(t *testing.T, c *mcp.ClientSession) {
				before := len(b.up.made())
				if got := eval(t, c, tryEcho); !strings.Contains(got, row.want) {
					t.Errorf("got %s, want %s", got, row.want)
				}
				if sent := len(b.up.made()) - before; sent != row.sent {
					t.Errorf("sent %d calls, want %d", sent, row.sent)
				}
				asked := p.questions()
				if len(asked) != 1 {
					t.Fatalf("asked %d times", len(asked))
				}
				for _, want := range []string{"echo", "server `a`", "`\"/tmp/x\"`", "Your profile p asks before every call", "No answer by "} {
					if !strings.Contains(asked[0].Message, want) {
						t.Errorf("%q is missing from\n%s", want, asked[0].Message)
					}
				}
			})
		})
	}
}

func TestClientWithoutElicitation(t *testing.T) {
	for _, row := range []struct {
		fallback profiles.Fallback
		want     string
	}{
		{profiles.FallbackDeny, "elicitation_unsupported"},
		{profiles.FallbackAllow, `"{\"path\":\"/tmp/x\"}"`},
		{profiles.FallbackQueue, "no_approver"},
	} {
		t.Run(fmt.Sprint(row.fallback), func(t *testing.T) {
			b := newBench(t, asks(func(p *profiles.ProfileSpec) { p.ElicitationFallback = ptr(row.fallback.String()) }))
			eras(t, b, func() *mcp.ClientOptions { return nil }, func(t *testing.T, c *mcp.ClientSession) {
				if got := eval(t, c, tryEcho); !strings.Contains(got, row.want) {
					t.Errorf("got %s, want %s", got, row.want)
				}
			})
		})
	}
}

func TestParallelCallsOfALoopAreOneQuestion(t *testing.T) {
	var p *person
	b := newBench(t, asks())
	eras(t, b, func() *mcp.ClientOptions {
		p = &person{answer: says("once")}
		return &mcp.ClientOptions{ElicitationHandler: p.elicit}
	}, func(t *testing.T, c *mcp.ClientSession) {
		got := eval(t, c, `return (await Promise.all([1, 2, 3, 4, 5, 6, 7].map(n => codemode.a__echo({n})))).length`)
		if got != "7" {
			t.Errorf("got %s", got)
		}
		if asked := p.questions(); len(asked) != 1 || !strings.Contains(asked[0].Message, " 7 times?") || !strings.Contains(asked[0].Message, "\n• Call 1: n: `1`\n") {
			t.Errorf("asked %d times: %v", len(asked), asked)
		}
	})
}

func TestSessionGrant(t *testing.T) {
	p := &person{answer: says("session")}
	remember := true
	b := newBench(t, asks(func(s *profiles.ProfileSpec) {
		s.Rules = []profiles.RuleSpec{{Tools: []string{"a__echo"}, Risk: ptr("low"), Remember: &remember}}
	}))
	c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	for range 3 {
		if got := eval(t, c, tryEcho); !strings.Contains(got, "/tmp/x") {
			t.Errorf("got %s", got)
		}
	}
	if n := len(p.questions()); n != 1 {
		t.Errorf("asked %d times", n)
	}
	other := &person{answer: says("no")}
	c2 := b.connect(t, &mcp.ClientOptions{ElicitationHandler: other.elicit})
	if got := eval(t, c2, tryEcho); !strings.Contains(got, "elicitation_declined") || len(other.questions()) != 1 {
		t.Errorf("another session was not asked: %s", got)
	}
}

func TestRefusedCallIsNotAskedTwice(t *testing.T) {
	p := &person{answer: says("no")}
	c := newBench(t, asks()).connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	got := eval(t, c, `let n = 0; for (let i = 0; i < 10; i++) { try { await codemode.a__echo({x: 1}) } catch (e) { if (e.reason === "elicitation_declined") n++ } } return n`)
	if got != "10" || len(p.questions()) != 1 {
		t.Errorf("got %s, asked %d times", got, len(p.questions()))
	}
	got = eval(t, c, `for (let i = 0; i < 200; i++) { try { await codemode.a__echo({x: 1}) } catch (e) {} } return "went on"`)
	if !strings.Contains(got, "asked for too many calls") {
		t.Errorf("a flood was not stopped: %s", got)
	}
}

func TestAQuestionThatIsNotAnsweredInTimeIsNo(t *testing.T) {
	p := &person{answer: func(int, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, nil }}
	b := newBench(t, asks(func(s *profiles.ProfileSpec) {
		d := profiles.Duration(150 * time.Millisecond)
		s.Timeout = &d
	}))
	c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	if got := eval(t, c, tryEcho); !strings.Contains(got, `"timeout"`) || len(b.up.made()) > 0 {
		t.Errorf("got %s, sent %q", got, b.up.made())
	}
}

func TestTheRightClientIsAsked(t *testing.T) {
	b := newBench(t, asks())
	one, two := &person{answer: says("once")}, &person{answer: says("once")}
	c1 := b.connect(t, &mcp.ClientOptions{ElicitationHandler: one.elicit})
	b.connect(t, &mcp.ClientOptions{ElicitationHandler: two.elicit})
	eval(t, c1, tryEcho)
	if len(one.questions()) != 1 || len(two.questions()) != 0 {
		t.Errorf("asked %d and %d times", len(one.questions()), len(two.questions()))
	}
}

// rawEval calls eval as a client of the stateless protocol, without an SDK.
// More are further members of the parameters.
func rawEval(t *testing.T, url, code, more string) string {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"eval","arguments":{"code":%q},%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, code, more)
	res := mcphttptest.Post(t, "POST", url+"/mcp", body, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "eval")
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// askedBy reads an "input required" answer: its state, and the members that
// say yes to all that is asked.
func askedBy(t *testing.T, answer string) (state, responses string) {
	t.Helper()
	text := answer
	if i := strings.Index(text, "data: "); i >= 0 {
		text = text[i+6:]
	}
	var asked struct {
		Result struct {
			InputRequests map[string]any `json:"inputRequests"`
			RequestState  string         `json:"requestState"`
		}
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&asked); err != nil || asked.Result.RequestState == "" || len(asked.Result.InputRequests) == 0 {
		t.Fatalf("got %s, %v", answer, err)
	}
	var yes []string
	for id := range asked.Result.InputRequests {
		yes = append(yes, fmt.Sprintf(`%q:{"action":"accept","content":{"decision":"once"}}`, id))
	}
	return asked.Result.RequestState, `"inputResponses":{` + strings.Join(yes, ",") + `},`
}

// A state that was altered, is another's or belongs to another call
// is refused, and one that was used executes nothing.
func TestRequestState(t *testing.T) {
	b := newBench(t, asks())
	server := serveHTTP(t, b, mcphttp.Options{})
	do := func(code, extra string) string { return rawEval(t, server.URL, code, extra) }
	first := do(tryEcho, "")
	state, responses := askedBy(t, first)
	flipped := []byte(state)
	flipped[len(flipped)/2] ^= 1
	for name, got := range map[string]string{
		"altered":         do(tryEcho, responses+fmt.Sprintf(`"requestState":%q,`, flipped)),
		"for other code":  do("return 1", responses+fmt.Sprintf(`"requestState":%q,`, state)),
		"no state at all": do("return 2", responses+`"requestState":"x",`),
	} {
		if !strings.Contains(got, seal.ErrInvalid.Error()) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if n := len(b.up.made()); n != 0 {
		t.Fatalf("sent %d calls before the answer", n)
	}
	for range 3 { // the first settles; the others only hear how it went
		if got := do(tryEcho, responses+fmt.Sprintf(`"requestState":%q,`, state)); !strings.Contains(got, "/tmp/x") {
			t.Errorf("got %s", got)
		}
	}
	if n := len(b.up.made()); n != 1 {
		t.Errorf("sent %d calls", n)
	}
}

// A state brings the answers of its first use alone: a yes does not make up for
// what was dismissed with the same state.
func TestRequestStateBringsOneAnswer(t *testing.T) {
	clock := newClock()
	b := newBench(t, asks(), func(o *Options) { o.Now = clock.Now })
	server := serveHTTP(t, b, mcphttp.Options{})
	first, yes := askedBy(t, rawEval(t, server.URL, tryEcho, ""))
	used := fmt.Sprintf(`"requestState":%q,`, first)
	clock.pass(time.Minute)
	rawEval(t, server.URL, tryEcho, strings.ReplaceAll(yes, `"accept"`, `"cancel"`)+used)
	again := rawEval(t, server.URL, tryEcho, yes+used)
	if !strings.Contains(again, "Your last answer did not count: the question was dismissed") || len(b.up.made()) > 0 {
		t.Fatalf("sent %q, got %s", b.up.made(), again)
	}
	second, yes := askedBy(t, again)
	got := rawEval(t, server.URL, tryEcho, yes+fmt.Sprintf(`"requestState":%q,`, second))
	if n := len(b.up.made()); n != 1 {
		t.Errorf("the yes to what was asked once more sent %d calls: %s", n, got)
	}
}

// Nor for what a machine declined, which is approvers' to answer.
func TestRequestStateOfAMachine(t *testing.T) {
	clock := newClock()
	b := newBench(t, impatient(asks()), func(o *Options) { o.Now = clock.Now })
	b.approvers.Store(true)
	server := serveHTTP(t, b, mcphttp.Options{})
	first, yes := askedBy(t, rawEval(t, server.URL, tryEcho, ""))
	used := fmt.Sprintf(`"requestState":%q,`, first)
	rawEval(t, server.URL, tryEcho, strings.ReplaceAll(yes, `"accept"`, `"decline"`)+used)
	clock.pass(time.Minute)
	got := rawEval(t, server.URL, tryEcho, yes+used)
	if !strings.Contains(got, `"paused"`) || len(b.up.made()) > 0 {
		t.Errorf("sent %q, got %s", b.up.made(), got)
	}
}

func TestHostileArgumentsCannotBreakThePrompt(t *testing.T) {
	p := &person{answer: says("no")}
	c := newBench(t, asks()).connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	eval(t, c, `await codemode.a__echo({a: "x\nYes sends nothing.\n\u001b[2J\u202e<b>", "k\ney": "v", token: "s3cr3t-canary", long: "y".repeat(5000)}).catch(() => {}); return 1`)
	asked := p.questions()
	if len(asked) != 1 {
		t.Fatalf("asked %d times", len(asked))
	}
	m := asked[0].Message
	if strings.ContainsAny(m, "\x1b\u202e") || strings.Contains(m, "s3cr3t") || strings.Contains(m, "\nYes sends nothing") {
		t.Errorf("the prompt is\n%s", m)
	}
	rows := 0
	for line := range strings.SplitSeq(m, "\n") {
		rows += (len([]rune(line)) + 71) / 72
	}
	if rows > 20 {
		t.Errorf("the prompt takes %d rows of 72 columns", rows)
	}
	t.Log("\n" + m)
}

func TestANoCanStopTheScript(t *testing.T) {
	p := &person{answer: says("stop")}
	b := newBench(t, asks())
	c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	got := eval(t, c, `try { await codemode.a__echo({}) } catch {} await codemode.b__echo({}); return "went on"`)
	if !strings.Contains(got, "stopped the script") || len(b.up.made()) > 0 {
		t.Errorf("got %s, sent %q", got, b.up.made())
	}
}

// A yes covers the calls that were shown, and nothing that was made later.
func TestAYesCoversWhatWasShown(t *testing.T) {
	p := &person{answer: says("once")}
	b := newBench(t, asks())
	c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	got := eval(t, c, `const same = () => codemode.a__echo({x: 1}); await Promise.all([same(), same(), same()]); await same(); return 1`)
	if got != "1" || len(b.up.made()) != 4 {
		t.Errorf("got %s, sent %q", got, b.up.made())
	}
	asked := p.questions()
	if len(asked) != 2 || !strings.Contains(asked[0].Message, " 3 times?") || strings.Contains(asked[1].Message, " times?") {
		t.Errorf("asked %d times: %v", len(asked), asked)
	}
}

// A loop whose calls wait together is one question, also beyond the calls that may be
// under way at a time: the dialog has the first ones, and says how many there are.
func TestALoopIsOneQuestion(t *testing.T) {
	for _, version := range []string{newestSessionProtocol, statelessProtocol} {
		t.Run(version, func(t *testing.T) {
			p := &person{answer: says("once")}
			b := newBench(t, asks())
			c := b.connectAt(t, &mcp.ClientOptions{ElicitationHandler: p.elicit}, version)
			if got := eval(t, c, `return (await Promise.all(Array.from({length: 200}, (_, n) => codemode.a__echo({n})))).length`); got != "200" {
				t.Errorf("got %s", got)
			}
			asked := p.questions()
			if len(asked) != 1 || !strings.Contains(asked[0].Message, " 200 times?") || !strings.Contains(asked[0].Message, "• And 190 more calls.") || len(b.up.made()) != 200 {
				t.Errorf("asked %d times, sent %d", len(asked), len(b.up.made()))
				for _, q := range asked {
					t.Log(q.Message)
				}
			}
		})
	}
}

// Calls of several tools that wait together are one question, in the order in which the
// script made them.
func TestSeveralToolsAreOneQuestion(t *testing.T) {
	p := &person{answer: says("once")}
	b := newBench(t, asks(func(p *profiles.ProfileSpec) { p.Asklist = []string{"*__echo"} }))
	c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	if got := eval(t, c, `await Promise.all([codemode.b__echo({n: Math.ceil(0.5)}), codemode.a__echo({n: 2}), codemode.b__echo({n: 3}), codemode.a__echo({n: 4}), codemode.b__echo({n: 5})]); return 1`); got != "1" {
		t.Errorf("got %s", got)
	}
	asked := p.questions()
	var rows []string
	for _, q := range asked {
		for _, line := range strings.Split(q.Message, "\n") {
			if strings.HasPrefix(line, "• ") {
				rows = append(rows, line)
			}
		}
	}
	if diff := cmp.Diff([]string{"• Call 1: `b__echo`, n: `1`", "• Call 2: `a__echo`, n: `2`", "• Call 3: `b__echo`, n: `3`",
		"• Call 4: `a__echo`, n: `4`", "• Call 5: `b__echo`, n: `5`"}, rows); len(asked) != 1 || diff != "" {
		t.Errorf("asked %d times (-want +got):\n%s", len(asked), diff)
	}
}

// What a script will do is asked at once where it can be told: three calls that follow
// each other are one question.
func TestAPlanIsOneQuestion(t *testing.T) {
	p := &person{answer: says("once")}
	b := newBench(t, asks())
	c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	got := eval(t, c, `await codemode.a__echo({n: 1}); await codemode.b__echo({n: 2}); await codemode.a__echo({n: 3}); await codemode.a__echo({n: 4}); return 1`)
	if asked := p.questions(); got != "1" || len(asked) != 1 || len(b.up.made()) != 4 {
		t.Errorf("got %s, asked %d times, sent %d", got, len(asked), len(b.up.made()))
	}
	got = eval(t, c, `await codemode.a__echo({n: 1}); await codemode.a__echo({n: Date.now()}); return 1`)
	if asked := p.questions(); got != "1" || len(asked) != 3 {
		t.Errorf("got %s, asked %d times of what cannot be told, want 2 more than 1", got, len(asked))
	}
}

func TestAnotherSessionCannotResume(t *testing.T) {
	p := &person{answer: func(int, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, nil }}
	spec := asks()
	patience := profiles.Duration(100 * time.Millisecond)
	spec.ClientPatience = &profiles.Patience{Default: &patience}
	b := newBench(t, spec)
	out, _ := call(t, b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit}), "eval", map[string]any{"code": tryEcho})
	var paused struct{ Status, Run string }
	if err := json.Unmarshal([]byte(out), &paused); err != nil || paused.Status != "paused" {
		t.Fatalf("got %s", out)
	}
	other := b.connect(t, &mcp.ClientOptions{ElicitationHandler: (&person{answer: says("once")}).elicit})
	if out, failed := call(t, other, "eval_resume", map[string]any{"run": paused.Run}); !failed || len(b.up.made()) > 0 {
		t.Errorf("another session resumed: %s", out)
	}
}

func TestPatienceGoesOnAfterTheFirstAnswer(t *testing.T) {
	p := &person{answer: func(n int, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		if n == 1 {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once"}}, nil
		}
		return nil, nil
	}}
	spec := asks()
	patience := profiles.Duration(200 * time.Millisecond)
	spec.ClientPatience = &profiles.Patience{Default: &patience}
	c := newBench(t, spec).connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	out, _ := call(t, c, "eval", map[string]any{"code": "await codemode.a__echo({x: 1});\nawait codemode.a__echo({x: Date.now()})"})
	if !strings.Contains(out, `"paused"`) {
		t.Errorf("got %s", out)
	}
}

func TestARunThatNobodyHoldsExpires(t *testing.T) {
	p := &person{answer: func(int, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, nil }}
	spec := asks(func(s *profiles.ProfileSpec) { d := profiles.Duration(400 * time.Millisecond); s.Timeout = &d })
	patience := profiles.Duration(100 * time.Millisecond)
	spec.ClientPatience = &profiles.Patience{Default: &patience}
	paused := profiles.Duration(500 * time.Millisecond)
	spec.PausedFor = &paused
	b := newBench(t, spec)
	c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	out, _ := call(t, c, "eval", map[string]any{"code": `try { await codemode.a__echo({}) } catch {} return await codemode.b__echo({})`})
	if !strings.Contains(out, `"paused"`) {
		t.Fatalf("got %s", out)
	}
	deadline := time.Now().Add(3 * time.Minute)
	for b.Running() > 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if b.Running() > 0 || len(b.up.made()) > 0 {
		t.Errorf("the run went on alone: %q", b.up.made())
	}
}

func TestLimitsAndChecksOfAProfile(t *testing.T) {
	two := 2
	spec := profiles.Spec{DefaultProfile: ptr("p"), Profiles: map[string]*profiles.ProfileSpec{"p": {
		Limits: &profiles.Limits{Calls: &two},
		Rules: []profiles.RuleSpec{
			{Tools: []string{"b__echo"}, Action: ptr("allow"), Check: []string{"args.x < 5"}},
			{Tools: []string{"a__fail"}, When: &profiles.When{Expr: "run.calls >= 1"}, Action: ptr("deny")},
		}}}}
	b := newBench(t, spec)
	c := b.connect(t, nil)
	if got := eval(t, c, `for (let i = 0; i < 3; i++) await codemode.a__echo({i}); return 1`); !strings.Contains(got, "limit of 2 calls") {
		t.Errorf("three calls where two may be made: %s", got)
	}
	if got := eval(t, c, `await codemode.b__echo({x: 1}); return await codemode.b__echo({x: 9}).catch(e => e.message)`); !strings.Contains(got, "check") {
		t.Errorf("a check that fails: %s", got)
	}
	if got := eval(t, c, `return (await Promise.allSettled([codemode.a__fail({}), codemode.a__fail({})])).map(r => r.reason.name)`); strings.Count(got, "ToolCallDeniedError") != 1 {
		t.Errorf("two at once where one is allowed: %s", got)
	}
}
