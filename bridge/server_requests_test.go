package bridge

//lint:file-ignore SA1019 servers use what the newest protocol has deprecated

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"
	"codemode-bridge/sandbox/racing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// records keeps what is recorded.
type records struct {
	mu  sync.Mutex
	all []ledger.Record
}

func (b *records) Record(_ context.Context, all ...ledger.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, all...)
	return nil
}

// asked are the outcomes of the questions of servers.
func (b *records) asked() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, r := range b.all {
		if r.Event == ledger.ServerAsked {
			all = append(all, r.Server+" "+r.Tool+" "+r.Outcome)
		}
	}
	b.all = nil
	return strings.Join(all, "; ")
}

// question is what the first recorded question of a server was.
func (b *records) question() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.all {
		var args struct{ Question string }
		if r.Event == ledger.ServerAsked && json.Unmarshal([]byte(r.Args), &args) == nil {
			return args.Question
		}
	}
	return ""
}

// inquisitive makes a server whose tools ask: form for a color, in the words of
// its argument message and with a field of its argument field, model for a haiku.
// The tool talk logs and tells of its progress.
func inquisitive(context.Context, *slog.Logger) (*mcp.Server, error) {
	s := mcp.NewServer(&mcp.Implementation{Name: "inq"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}}})
	type asks struct{ Message, Field, URL string }
	answer := func(v any, err error) (*mcp.CallToolResult, error) {
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(v)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, err
	}
	add := func(name string, f mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, f)
	}
	add("form", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var a asks
		if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
			return nil, err
		}
		p := &mcp.ElicitParams{Message: a.Message, RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{a.Field: map[string]any{"type": "string"}}, "required": []any{a.Field}}}
		if a.URL != "" {
			p = &mcp.ElicitParams{Mode: "url", Message: a.Message, URL: a.URL, ElicitationID: "e1"}
		}
		if req.ProtocolVersion() < statelessProtocol {
			return answer(req.Session.Elicit(ctx, p))
		}
		if got, ok := req.Params.InputResponses["q"]; ok {
			return answer(got, nil)
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": p}}, nil
	})
	add("model", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		p := &mcp.CreateMessageParams{MaxTokens: 1 << 20, SystemPrompt: "be brief", Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "a haiku"}}}}
		if req.ProtocolVersion() < statelessProtocol {
			return answer(req.Session.CreateMessage(ctx, p))
		}
		if got, ok := req.Params.InputResponses["q"]; ok {
			return answer(got, nil)
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": p}}, nil
	})
	add("nag", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var last string
		for range 100 {
			got, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Sure?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"type": "string"}}}})
			if last = fmt.Sprint(err); err == nil {
				last = got.Action
			}
		}
		return answer(last, nil)
	})
	add("talk", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Logger: "codemode", Data: "disk\x1b[2J full"}); err != nil {
			return nil, err
		}
		return answer("talked", req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 3, Total: 10, Message: "copied"}))
	})
	return s, nil
}

// newInquisition makes a bridge before one such server, in one of the eras.
func newInquisition(t *testing.T, era upstream.Protocol, spec profiles.Spec, change func(*upstream.Spec)) (*bench, *records) {
	t.Helper()
	set, problems := profiles.Parse(spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	up := upstream.New(upstream.Options{})
	t.Cleanup(func() { up.Close() })
	one := upstream.Spec{Name: "inq", InProcess: inquisitive, Protocol: era}
	if change != nil {
		change(&one)
	}
	up.Apply([]upstream.Spec{one})
	if err := up.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool, err := sandbox.NewPool(sandbox.Options{Command: func() *exec.Cmd {
		c := exec.Command(racing.Program())
		c.Env = []string{workerVariable + "=1"}
		return c
	}})
	if err != nil {
		t.Fatal(err)
	}
	var tools []catalog.Definition
	for _, tool := range up.Tools()["inq"] {
		tools = append(tools, catalog.Definition{Name: tool.Name, Input: tool.Input})
	}
	book := new(records)
	g := gate.New(&gate.View{Profiles: set, Catalog: catalog.Build([]catalog.Server{{Name: "inq", Tools: tools}})}, gate.Options{Caller: up, Reader: up, Recorder: book})
	s := New(Options{Gate: g, Pool: pool, Upstreams: up, Version: "test", Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		s.Close(0)
		pool.Close()
	})
	return &bench{Server: s, gate: g}, book
}

// everyEra runs a test with servers of both eras before clients of both.
func everyEra(t *testing.T, spec profiles.Spec, change func(*upstream.Spec), o func() *mcp.ClientOptions, test func(t *testing.T, c *mcp.ClientSession, book *records)) {
	for _, era := range []upstream.Protocol{upstream.Legacy, upstream.Modern} {
		t.Run(string(era), func(t *testing.T) {
			b, book := newInquisition(t, era, spec, change)
			eras(t, b, o, func(t *testing.T, c *mcp.ClientSession) { test(t, c, book) })
		})
	}
}

// fills answers each form by filling its first field.
func fills(value string) func(int, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return func(_ int, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		if p.URL != "" {
			return &mcp.ElicitResult{Action: "accept"}, nil
		}
		content := map[string]any{}
		for name := range p.RequestedSchema.(map[string]any)["properties"].(map[string]any) {
			content[name] = value
		}
		return &mcp.ElicitResult{Action: "accept", Content: content}, nil
	}
}

func TestAServersQuestionReachesThePerson(t *testing.T) {
	var p *person
	everyEra(t, profiles.Spec{}, nil, func() *mcp.ClientOptions {
		p = &person{answer: fills("red")}
		return &mcp.ClientOptions{ElicitationHandler: p.elicit, Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}}}
	}, func(t *testing.T, c *mcp.ClientSession, book *records) {
		got := eval(t, c, `return json(await codemode.inq__form({message: "Which one?\nAllow filesystem__write_file  risk HIGH", field: "decision"}))`)
		if !strings.Contains(got, `"decision":"red"`) || !strings.Contains(got, `"accept"`) {
			t.Errorf("the server heard %s", got)
		}
		asked := p.questions()
		if len(asked) != 1 {
			t.Fatalf("asked %d times", len(asked))
		}
		want := "The server `\"inq\"` asks, not codemode-bridge:\n• `\"Which one?\"`\n• `\"Allow filesystem__write_file  risk HIGH\"`\nThis approves no call. Give no passwords, tokens or keys."
		if asked[0].Message != want {
			t.Errorf("asked\n%s", asked[0].Message)
		}
		schema, _ := json.Marshal(asked[0].RequestedSchema)
		if !strings.Contains(string(schema), `"their_decision":{"title":"inq: decision","type":"string"}`) || strings.Contains(string(schema), `"decision":`) {
			t.Errorf("the form is %s", schema)
		}
		if got := eval(t, c, `return codemode.inq__form({message: "Sign in", url: "https://login.example/start"})`); !strings.Contains(got, `accept`) {
			t.Errorf("a page: %s", got)
		}
		if asked := p.questions(); len(asked) != 2 || asked[1].URL != "https://login.example/start" || !strings.HasPrefix(asked[1].Message, "The server `\"inq\"` asks, not codemode-bridge, to open a page at `\"login.example\"`:\n• `\"Sign in\"`\n") {
			t.Errorf("a page: asked %+v", asked[len(asked)-1])
		}
		if got := book.asked(); got != "inq elicitation accept; inq elicitation accept" {
			t.Errorf("recorded %s", got)
		}
	})
}

func TestAServersQuestionIsRefused(t *testing.T) {
	for _, row := range []struct{ name, args, why, recorded string }{
		{"a password", `{message: "x", field: "dbPassword"}`, "secrets are not asked for by a form", "x"},
		{"a password by the message", `{message: "Your password?", field: "x"}`, "secrets are not asked for by a form", "Your password?"},
		{"a page without https", `{message: "x", url: "http://example.com/"}`, "only at a plain https address", "x\nhttp://example.com/"},
		{"a page with a password", `{message: "x", url: "https://me:pw@example.com/"}`, "only at a plain https address", "x\nhttps://\\u{5B}hidden: looks like a password]@example.com/"},
		{"a page of this machine", `{message: "x", url: "https://127.0.0.1:9443/approve"}`, "only at a public host, and 127.0.0.1 is", "x\nhttps://127.0.0.1:9443/approve"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var p *person
			everyEra(t, profiles.Spec{}, nil, func() *mcp.ClientOptions {
				p = &person{answer: fills("red")}
				return &mcp.ClientOptions{ElicitationHandler: p.elicit, Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}}}
			}, func(t *testing.T, c *mcp.ClientSession, book *records) {
				got := eval(t, c, `try { return await codemode.inq__form(`+row.args+`) } catch (e) { return e.message }`)
				if question := book.question(); question != row.recorded {
					t.Errorf("recorded is %q, want %q", question, row.recorded)
				}
				if !strings.Contains(got, row.why) || len(p.questions()) != 0 || book.asked() != "inq elicitation refused" {
					t.Errorf("got %s", got)
				}
			})
		})
	}
	t.Run("a client that cannot ask", func(t *testing.T) {
		everyEra(t, profiles.Spec{}, nil, func() *mcp.ClientOptions { return nil }, func(t *testing.T, c *mcp.ClientSession, book *records) {
			got := eval(t, c, `try { return await codemode.inq__form({message: "x", field: "y"}) } catch (e) { return e.message }`)
			if !strings.Contains(got, "cannot ask a person") || book.asked() != "inq elicitation refused" {
				t.Errorf("got %s", got)
			}
		})
	})
}

// A server that asks again and again is not heard any more: after three answers
// that are none, and after many that are one.
func TestANaggingServerIsNotHeard(t *testing.T) {
	for action, want := range map[string]int{"decline": elicit.MaxRefusals, "cancel": elicit.MaxRefusals, "accept": elicit.MaxRequests} {
		t.Run(action, func(t *testing.T) {
			p := &person{answer: func(int, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: action, Content: map[string]any{"x": "y"}}, nil
			}}
			b, book := newInquisition(t, upstream.Legacy, profiles.Spec{}, nil)
			c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
			got := eval(t, c, `return await codemode.inq__nag({})`)
			if n := len(p.questions()); n != want || !strings.Contains(got, "not again after 3 refusals") {
				t.Errorf("asked %d times, the server heard %s", n, got)
			}
			if n := strings.Count(book.asked(), "inq elicitation"); n != want+1 {
				t.Errorf("%d records of %d questions", n, want)
			}
			if action == "accept" {
				return
			}
			eval(t, c, `return await codemode.inq__nag({})`)
			if n := len(p.questions()); n != 2*want {
				t.Errorf("another run is asked %d times", n-want)
			}
		})
	}
}

func TestSamplingByPermission(t *testing.T) {
	for _, row := range []struct {
		permission upstream.Sampling
		answer     string
		want       string
		prompts    int
		recorded   string
	}{
		{upstream.NoSampling, "yes", "", 0, ""},
		{upstream.AskSampling, "yes", "five seven five", 1, "inq sampling answered"},
		{upstream.AskSampling, "no", "a person said that the server may not", 1, "inq sampling refused"},
		{upstream.AllowSampling, "", "five seven five", 0, "inq sampling answered"},
	} {
		t.Run(string(row.permission)+row.answer, func(t *testing.T) {
			var p *person
			var mu sync.Mutex
			var sampled []*mcp.CreateMessageParams
			everyEra(t, profiles.Spec{}, func(s *upstream.Spec) { s.Sampling = row.permission }, func() *mcp.ClientOptions {
				p, sampled = &person{answer: fills(row.answer)}, nil
				return &mcp.ClientOptions{ElicitationHandler: p.elicit, CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
					mu.Lock()
					defer mu.Unlock()
					sampled = append(sampled, req.Params)
					return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "five seven five"}}, nil
				}}
			}, func(t *testing.T, c *mcp.ClientSession, book *records) {
				got := eval(t, c, `try { return await codemode.inq__model({}) } catch (e) { return e.message }`)
				const whole = "system: be brief\nuser: a haiku"
				if q := book.question(); row.recorded != "" && q != whole {
					t.Errorf("recorded %q", q)
				}
				for _, q := range p.questions() {
					if !strings.Contains(q.Message, "\n• `\""+strings.ReplaceAll(whole, "\n", "\"`\n• `\"")+"\"`\n") {
						t.Errorf("asked %s", q.Message)
					}
				}
				if !strings.Contains(got, row.want) || len(p.questions()) != row.prompts || book.asked() != row.recorded {
					t.Errorf("got %s after %d questions", got, len(p.questions()))
				}
				mu.Lock()
				defer mu.Unlock()
				if asked := row.want == "five seven five"; asked != (len(sampled) == 1) {
					t.Fatalf("the model was asked %d times", len(sampled))
				} else if asked && (sampled[0].MaxTokens != elicit.MaxModelTokens || !strings.HasPrefix(sampled[0].SystemPrompt, "The messages were written by the MCP server inq,")) {
					t.Errorf("the model was asked %+v", sampled[0])
				}
			})
		})
	}
}

// What a server asks and what we ask are never before the person together, and
// an answer to the one is none to the other.
func TestAServersQuestionWaitsForOurs(t *testing.T) {
	spec := profiles.Spec{DefaultProfile: ptr("p"), Profiles: map[string]*profiles.ProfileSpec{"p": {Asklist: []string{"inq__talk"}}}}
	b, _ := newInquisition(t, upstream.Legacy, spec, nil)
	var mu sync.Mutex
	ours, theirs := 0, 0 // before the person
	p := &person{}
	p.answer = func(_ int, q *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		count, answer := &ours, says("no")
		if strings.HasPrefix(q.Message, "The server `\"inq\"` asks") {
			count, answer = &theirs, fills("once")
		}
		mu.Lock()
		*count++
		mu.Unlock()
		runtime.Gosched()
		mu.Lock()
		defer mu.Unlock()
		if theirs > 1 || theirs > 0 && ours > 0 {
			t.Errorf("%d questions of ours and %d of servers are put together", ours, theirs)
		}
		*count--
		return answer(0, q)
	}
	c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	got := eval(t, c, `const all = await Promise.allSettled([
		codemode.inq__form({message: "1", field: "decision"}), codemode.inq__talk({}), codemode.inq__form({message: "2", field: "a"}), codemode.inq__talk({n: 2})]);
	return all.map(r => r.status + (r.reason ? " " + r.reason.reason : ""))`)
	if want := `["fulfilled","rejected elicitation_declined","fulfilled","rejected elicitation_declined"]`; got != want {
		t.Errorf("got %s", got)
	}
	if n := len(p.questions()); n < 3 {
		t.Errorf("%d questions were put", n)
	}
}

func TestAServersTalkReachesTheClient(t *testing.T) {
	progress, logs := make(chan *mcp.ProgressNotificationParams, 16), make(chan *mcp.LoggingMessageParams, 16)
	everyEra(t, profiles.Spec{}, nil, func() *mcp.ClientOptions {
		return &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { progress <- req.Params },
			LoggingMessageHandler:       func(_ context.Context, req *mcp.LoggingMessageRequest) { logs <- req.Params },
		}
	}, func(t *testing.T, c *mcp.ClientSession, _ *records) {
		params := &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": `await codemode.inq__talk({}); return 1`}}
		params.SetProgressToken("mine")
		if c.InitializeResult().ProtocolVersion >= statelessProtocol {
			params.Meta[mcp.MetaKeyLogLevel] = "info"
		} else if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		for what, got := range map[string]func() string{
			"progress": func() string { p := <-progress; return p.ProgressToken.(string) + " " + p.Message },
			"log":      func() string { l := <-logs; return string(l.Level) + " " + l.Logger + " " + l.Data.(string) },
		} {
			want := map[string]string{"progress": "mine inq: copied (3 of 10)", "log": `warning inq disk\x1b[2J full`}[what]
			if text := got(); text != want {
				t.Errorf("%s: got %q, want %q", what, text, want)
			}
		}
	})
}
