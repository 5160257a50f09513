package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/surface"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"
	"codemode-bridge/sandbox/racing"
	"codemode-bridge/sandbox/worker"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The test binary is its own worker.
const workerVariable = "CODEMODE_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		worker.Main()
		return
	}
	os.Exit(m.Run())
}

// upstreams stands in for the upstream servers: each tool is a function.
type upstreams struct {
	mu    sync.Mutex
	calls []string
	is    []upstream.Status
	tools map[string]func(ctx context.Context, args json.RawMessage) (string, error)
}

func (u *upstreams) Call(ctx context.Context, server, _, tool string, args json.RawMessage) (json.RawMessage, error) {
	u.mu.Lock()
	u.calls = append(u.calls, server+"__"+tool+string(args))
	f := u.tools[server+"__"+tool]
	u.mu.Unlock()
	reply, err := f(ctx, args)
	return json.RawMessage(reply), err
}

func (u *upstreams) Status() []upstream.Status { return u.is }

// Read answers methods like tools of their name.
func (u *upstreams) Read(ctx context.Context, server, _, method string, args json.RawMessage) (json.RawMessage, error) {
	if u.tools[server+"__"+method] == nil {
		return nil, errors.New("the server has no such thing")
	}
	return u.Call(ctx, server, "", method, args)
}

func (u *upstreams) Offers(string) []string { return []string{"a"} }

func (u *upstreams) made() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.calls)
}

// text is the reply of a tool that answers with text.
func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return `{"content":[{"type":"text","text":` + string(b) + `}]}`
}

// bench is a bridge with its upstreams, for a test.
type bench struct {
	*Server
	up        *upstreams
	gate      *gate.Gate
	approvers *atomic.Bool // whether there are any
}

// newBench makes a bridge under a policy. The servers are a (echo, fail,
// image, wait) and b (echo).
func newBench(t testing.TB, spec profiles.Spec, change ...func(*Options)) *bench {
	t.Helper()
	up := &upstreams{tools: map[string]func(context.Context, json.RawMessage) (string, error){
		"a__echo": func(_ context.Context, args json.RawMessage) (string, error) { return text(string(args)), nil },
		"b__echo": func(_ context.Context, args json.RawMessage) (string, error) { return text("b" + string(args)), nil },
		"a__fail": func(context.Context, json.RawMessage) (string, error) {
			return `{"isError":true,"content":[{"type":"text","text":"out of ink"}]}`, nil
		},
		"a__image": func(context.Context, json.RawMessage) (string, error) {
			return `{"content":[{"type":"text","text":"a dot"},{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}]}`, nil
		},
		"a__resources/list": func(context.Context, json.RawMessage) (string, error) {
			return `{"resources":[{"uri":"x://1","name":"one"}]}`, nil
		},
		"a__resources/read": func(context.Context, json.RawMessage) (string, error) {
			return `{"contents":[{"uri":"x://1","text":"first"},{"uri":"x://2","mimeType":"image/png","blob":"aGVsbG8="}]}`, nil
		},
		"a__prompts/get": func(_ context.Context, args json.RawMessage) (string, error) {
			return `{"messages":[{"role":"user","content":` + strings.TrimSuffix(strings.TrimPrefix(text(string(args)), `{"content":[`), "]}") + `},
				{"role":"assistant","content":{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}}]}`, nil
		},
		"a__wait": func(ctx context.Context, _ json.RawMessage) (string, error) { <-ctx.Done(); return "", ctx.Err() },
	}}
	pool, err := sandbox.NewPool(sandbox.Options{
		Command: func() *exec.Cmd {
			c := exec.Command(racing.Program())
			c.Env = []string{workerVariable + "=1"}
			return c
		},
		Warm:   -1, // a test pays for the workers that it uses
		Limits: sandbox.Limits{CPU: 5 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	approvers := new(atomic.Bool)
	g := gate.New(newView(t, spec), gate.Options{Caller: up, Reader: up, Recorder: ledger.Log{Handler: slog.DiscardHandler}, Approvers: approvers.Load,
		Broker: approval.New(approval.Options{Gather: time.Minute})}) // however slow the machine: scripts say when no further calls come
	o := Options{Gate: g, Pool: pool, Upstreams: up, Version: "test", Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&o)
	}
	s := New(o)
	s.mcp.AddReceivingMiddleware(checkAnswers(t))
	t.Cleanup(func() {
		s.Close(0)
		pool.Close()
	})
	return &bench{s, up, g, approvers}
}

func newView(t testing.TB, spec profiles.Spec, more ...string) *gate.View {
	t.Helper()
	set, problems := profiles.Parse(spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	any := json.RawMessage(`{"type":"object","properties":{"path":{},"text":{},"n":{},"x":{}}}`)
	a := []catalog.Definition{{Name: "echo", Description: "Says what it hears", Input: any}, {Name: "fail", Input: any}, {Name: "image", Input: any}, {Name: "wait", Input: any}}
	for _, name := range more {
		a = append(a, catalog.Definition{Name: name, Input: any})
	}
	return &gate.View{Profiles: set, Catalog: catalog.Build([]catalog.Server{
		{Name: "a", Tools: a}, {Name: "b", Tools: []catalog.Definition{{Name: "echo", Input: any}}}})}
}

// connect connects an MCP client with a session, in memory.
func (b *bench) connect(t *testing.T, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	return b.connectAt(t, o, newestSessionProtocol)
}

// connectAt connects an MCP client of a protocol version, in memory.
func (b *bench) connectAt(t *testing.T, o *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	return b.connectClient(t, mcp.NewClient(&mcp.Implementation{Name: "tester"}, o), version)
}

func (b *bench) connectClient(t *testing.T, c *mcp.Client, version string) *mcp.ClientSession {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() { defer close(served); b.Serve(ctx, ours) }()
	client, err := c.Connect(t.Context(), theirs, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); <-served; client.Close() }) // a client closes only after its person has answered
	return client
}

// call calls a tool and returns the answer's text, and whether it is an error.
func call(t *testing.T, c *mcp.ClientSession, tool string, args any) (string, bool) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res.Content[0].(*mcp.TextContent).Text, res.IsError
}

// eval runs a script and returns its result as JSON, or the failure's text.
func eval(t *testing.T, c *mcp.ClientSession, code string) string {
	t.Helper()
	out, failed := call(t, c, "eval", map[string]any{"code": code})
	if failed {
		return out
	}
	var answer surface.Success
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	return string(answer.Result)
}

func TestEval(t *testing.T) {
	c := newBench(t, profiles.Spec{}).connect(t, nil)
	for _, row := range []struct{ name, code, want string }{
		{"returns a value", `return 1 + 1`, `2`},
		{"calls a tool", `return json(await codemode.a__echo({x: 1}))`, `{"x":1}`},
		{"calls by server and tool", `return await codemode.b.echo({})`, `"b{}"`},
		{"calls in parallel", `return (await Promise.all([codemode.a__echo({}), codemode.b__echo({})])).length`, `2`},
		{"catches a tool's failure", `try { await codemode.a__fail({}) } catch (e) { return [e.name, e.message, e.tool, e instanceof ToolError] }`, `["ToolError","out of ink","a__fail",true]`},
		{"gets the whole answer", `return (await codemode.raw("a__echo", {})).content[0].type`, `"text"`},
		{"finds tools", `return (await codemode.search_tools({query: "hears"}))[0].name`, `"a__echo"`},
		{"gets media as handles", `const r = await codemode.a__image({}); return [r.text, r.media[0].kind, r.media[0].mimeType]`, `["a dot","image","image/png"]`},
		{"has its input", `return typeof input`, `"undefined"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := eval(t, c, row.code); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestEvalFails(t *testing.T) {
	c := newBench(t, profiles.Spec{}).connect(t, nil)
	for _, row := range []struct {
		name, code string
		want       []string
	}{
		{"with the script's own place", "const a = 1;\nreturn a.b.c;", []string{"TypeError", "line 2", "no calls were made", "Safe to run again"}},
		{"with what was done", "await codemode.a__echo({});\nawait codemode.a__fail({})", []string{"ToolError: out of ink", "1 done, 1 failed", "don't repeat: a__echo (call 1)"}},
		{"with near names", `await codemode.a__ecko({})`, []string{"UnknownToolError", "a__echo"}},
		{"with its logs", `console.log("so far"); throw new RangeError("too far")`, []string{"RangeError: too far", "so far"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, failed := call(t, c, "eval", map[string]any{"code": row.code})
			if !failed {
				t.Errorf("it did not fail: %s", out)
			}
			for _, want := range row.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing from\n%s", want, out)
				}
			}
		})
	}
}

func TestEvalTakesNothingElse(t *testing.T) {
	b := newBench(t, profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"safe": {Denylist: []string{"a__*"}}}})
	c := b.connect(t, nil)
	for _, args := range []any{
		map[string]any{"code": "return 1", "profile": ""},
		map[string]any{"code": "return 1", "allowlist": []string{"*"}},
		map[string]any{"code": 7},
		map[string]any{"CODE": "return 1", "code": "return 2", "Code": "return 3", "x": 1},
	} {
		if out, failed := call(t, c, "codemode_eval_safe", args); !failed || !strings.Contains(out, "it takes") {
			t.Errorf("%v was taken: %s", args, out)
		}
	}
	if out, failed := call(t, c, "codemode_eval_safe", map[string]any{"code": "await codemode.a__echo({})"}); !failed || !strings.Contains(out, "ToolCallDeniedError") {
		t.Errorf("the profile does not bind: %s", out)
	}
	if len(b.up.made()) > 0 {
		t.Errorf("sent %q", b.up.made())
	}
}

func TestEmitAttachesMedia(t *testing.T) {
	c := newBench(t, profiles.Spec{}).connect(t, nil)
	for _, code := range []string{
		`const r = await codemode.a__image({}); await emit(r.media[0]); return "ok"`,
		`const r = await codemode.raw("a__image", {}); await emit(r.content[1]); return "ok"`,
	} {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": code}})
		if err != nil {
			t.Fatal(err)
		}
		if res.IsError || len(res.Content) != 2 {
			t.Fatalf("answer %+v", res.Content[0])
		}
		if img, ok := res.Content[1].(*mcp.ImageContent); !ok || string(img.Data) != "hello" {
			t.Errorf("attached %+v", res.Content[1])
		}
	}
}

func TestLargeResultIsSummarisedAndReadByPath(t *testing.T) {
	c := newBench(t, profiles.Spec{}).connect(t, nil)
	out := eval(t, c, `return {items: Array.from({length: 20000}, (_, i) => ({n: i, name: "item " + i}))}`)
	var sum struct {
		Truncated           bool
		Shape, Handle, Read string
		Sample              struct{ Items []any }
	}
	if err := json.Unmarshal([]byte(out), &sum); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if !sum.Truncated || len(out) > 4096 || len(sum.Sample.Items) != 3 || sum.Shape != "{items: array of 20,000, the first {n: number, name: text of 6 characters}}" {
		t.Errorf("summary %s", out)
	}
	if !strings.Contains(sum.Read, sum.Handle) || sum.Handle == "" {
		t.Errorf("read %q, handle %q", sum.Read, sum.Handle)
	}
	if got := eval(t, c, fmt.Sprintf(`return (await codemode.read(%q, "items[19998:]")).map(i => i.n)`, sum.Handle)); got != `[19998,19999]` {
		t.Errorf("read %s", got)
	}
	other := newBench(t, profiles.Spec{}).connect(t, nil)
	if got := eval(t, other, fmt.Sprintf(`return await codemode.read(%q)`, sum.Handle)); !strings.Contains(got, "no handle") {
		t.Errorf("another session read %s", got)
	}
}

func TestCancelledEvalReachesTheUpstream(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	reached, ended := make(chan struct{}), make(chan error, 1)
	b.up.tools["a__wait"] = func(ctx context.Context, _ json.RawMessage) (string, error) {
		close(reached)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return "", ctx.Err()
	}
	c := b.connect(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": `await codemode.a__wait({})`}}); err == nil {
		t.Error("the cancelled call was answered")
	}
	if err := <-ended; err == nil {
		t.Error("the upstream's context did not end")
	}
	if got := eval(t, c, "return 3"); got != "3" {
		t.Errorf("the next eval says %s", got)
	}
}

func TestCloseLetsRunsEndFirst(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	reached, let := make(chan struct{}), make(chan struct{})
	b.up.tools["a__wait"] = func(context.Context, json.RawMessage) (string, error) {
		close(reached)
		<-let
		return text("late"), nil
	}
	c := b.connect(t, nil)
	answer := make(chan string, 1)
	go func() { answer <- eval(t, c, `return await codemode.a__wait({})`) }()
	<-reached
	closed := make(chan struct{})
	go func() { b.Close(time.Minute); close(closed) }()
	for refused := error(nil); refused == nil || !strings.Contains(refused.Error(), ErrClosed.Error()+": nothing has begun; try again"); {
		_, refused = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": "return 1"}})
	}
	close(let)
	if got := <-answer; got != `"late"` {
		t.Errorf("the run under way ended with %s", got)
	}
	<-closed
}

func TestToolsFollowTheView(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	changed := make(chan struct{}, 16)
	c := b.connect(t, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	names := func() []string { return listedTools(t, c) }
	if got := names(); !slices.Equal(got, []string{"eval"}) {
		t.Errorf("tools %q", got)
	}
	b.Replace(newView(t, profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"safe": {Allowlist: []string{"b__*", "search_tools"}}}}, "new"))
	<-changed
	if got := names(); !slices.Equal(got, []string{"codemode_eval_safe", "eval", "eval_resume"}) {
		t.Errorf("tools %q", got)
	}
	// Where the default profile is the only one, eval stands for both.
	b.Replace(newView(t, profiles.Spec{DefaultProfile: ptr("safe"), Profiles: map[string]*profiles.ProfileSpec{"safe": {Allowlist: []string{"b__*", "search_tools", "get_tools"}}}}, "new"))
	<-changed
	if got := names(); !slices.Equal(got, []string{"eval", "eval_resume"}) {
		t.Errorf("tools %q", got)
	}
	b.Replace(newView(t, profiles.Spec{}))
	<-changed
	if got := names(); !slices.Equal(got, []string{"eval"}) {
		t.Errorf("tools %q", got)
	}
}

// The tools that search are listed where there is something to search: where not all tools
// are in the descriptions. They answer in any case.
func TestSearchIsListedWhereItIsNeeded(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	changed := make(chan struct{}, 16)
	c := b.connect(t, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	is := func(what string, want ...string) {
		t.Helper()
		if got := listedTools(t, c); !slices.Equal(got, want) {
			t.Errorf("%s: tools %q, want %q", what, got, want)
		}
		if out, failed := call(t, c, "search_tools", map[string]any{"query": "echo"}); failed || !strings.Contains(out, "a__echo") {
			t.Errorf("%s: search_tools says %s", what, out)
		}
	}
	is("all declared", "eval")
	many := make([]string, 60)
	for i := range many {
		many[i] = fmt.Sprintf("tool_%d", i)
	}
	b.Replace(newView(t, profiles.Spec{}, many[:12]...))
	<-changed
	is("all signed", "eval")
	b.Replace(newView(t, profiles.Spec{}, many...))
	<-changed
	is("too many", "eval", "get_tools", "search_tools")
	// One eval tool shows all that it may call, the other does not.
	b.Replace(newView(t, profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"few": {Allowlist: []string{"b__*", "search_tools"}}}}, many...))
	<-changed
	is("too many for one of them", "codemode_eval_few", "eval", "eval_resume", "get_tools", "search_tools")
	b.Replace(newView(t, profiles.Spec{}))
	<-changed
	is("few again", "eval")
	from := catalog.Sources{Servers: []catalog.Server{{Name: "a", Tools: []catalog.Definition{{Name: "echo"}}}}, Absent: []catalog.Absent{{Server: "late", Why: "connecting"}}}
	b.Replace(&gate.View{Profiles: b.o.Gate.View().Profiles, Catalog: from.Build(), Awaited: []string{"late"}})
	<-changed
	is("one is missing", "eval", "get_tools", "search_tools")
}

func listedTools(t *testing.T, c *mcp.ClientSession) (all []string) {
	t.Helper()
	res, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range res.Tools {
		all = append(all, tool.Name)
	}
	return all
}

func TestReplaceWithTheSameTellsNobody(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	before := b.tools["eval"]
	added := 0
	b.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { return next })
	b.Replace(newView(t, profiles.Spec{}))
	if b.tools["eval"] != before {
		added++
	}
	if added > 0 {
		t.Error("the same view makes another description")
	}
}

func TestDiscoveryToolsObeyTheDefaultProfile(t *testing.T) {
	spec := profiles.Spec{DefaultProfile: ptr("safe"), Profiles: map[string]*profiles.ProfileSpec{"safe": {Allowlist: []string{"b__*", "search_tools"}}}}
	c := newBench(t, spec).connect(t, nil)
	out, failed := call(t, c, "search_tools", map[string]any{"query": "echo"})
	if failed || !strings.Contains(out, "b__echo") || strings.Contains(out, "a__echo") {
		t.Errorf("search_tools says %s", out)
	}
	res, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range res.Tools {
		if tool.Name == "get_tools" {
			t.Error("get_tools is shown though the profile denies it")
		}
	}
}

// A client that lists tools while servers are being started sees what they have.
func TestListsOfToolsWaitForServers(t *testing.T) {
	var b *bench
	b = newBench(t, profiles.Spec{}, func(o *Options) {
		full := o.Gate.View()
		o.Gate.Replace(&gate.View{Profiles: full.Profiles, Catalog: catalog.Build(nil)})
		o.Ready = func(context.Context) { b.Replace(full) }
	})
	res, err := b.connect(t, nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(res.Tools, func(tool *mcp.Tool) bool { return tool.Name == "eval" })
	if i < 0 || !strings.Contains(res.Tools[i].Description, "a__echo") {
		t.Errorf("eval is not described with the tools: %+v", res.Tools)
	}
}

func TestStatus(t *testing.T) {
	c := newBench(t, profiles.Spec{}, func(o *Options) {
		o.Full = true
		o.Problem = func() string { return "line 3" }
		o.Unrecorded = func() string { return "disk full" }
	}).connect(t, nil)
	out, failed := call(t, c, "codemode_status", map[string]any{})
	if failed || !strings.Contains(out, `"config_problem":"line 3"`) || !strings.Contains(out, `"audit_problem":"disk full"`) || !strings.Contains(out, `"policy_revision"`) {
		t.Errorf("status %s", out)
	}
	if out, failed := call(t, c, "get_tool_schema", map[string]any{"name": "a__echo"}); failed || !strings.Contains(out, "a__echo") {
		t.Errorf("get_tool_schema %s", out)
	}
}

func TestEffectsText(t *testing.T) {
	e := func(number int, tool, state string, repeatable bool) gate.Effect {
		return gate.Effect{Number: number, Tool: tool, State: state, Repeatable: repeatable}
	}
	refused := func(retry string) gate.Effect {
		return gate.Effect{Number: 1, Tool: "a__x", State: ledger.Refused, Retry: retry}
	}
	for _, row := range []struct {
		effects []gate.Effect
		want    string
	}{
		{nil, "no calls were made. Safe to run again."},
		{[]gate.Effect{e(1, "a__read", ledger.Done, true)}, "calls: 1 done. Safe to run again."},
		{[]gate.Effect{e(1, "a__x", ledger.Done, false), e(2, "a__y", ledger.Refused, false)}, "calls: 1 done, 1 refused. Done, and not known to be repeatable, so don't repeat: a__x (call 1)."},
		{[]gate.Effect{e(1, "a__x", ledger.Unknown, false)}, "calls: 1 unknown. Sent with no answer, check before repeating: a__x (call 1)."},
		{[]gate.Effect{e(1, "a__x", ledger.Unknown, true)}, "calls: 1 unknown. Safe to run again."},
		{[]gate.Effect{e(1, "a__x", ledger.Failed, false)}, "calls: 1 failed. Safe to run again."},
		{[]gate.Effect{refused("")}, "calls: 1 refused. Safe to run again."},
		{[]gate.Effect{refused(gate.RetryNever)}, "calls: 1 refused. Refused, so don't make it again: a__x (call 1)."},
		{[]gate.Effect{refused(gate.RetryChanged)}, "calls: 1 refused. Safe to run again once the call that was refused is corrected."},
		{[]gate.Effect{refused(gate.RetryChanged), e(2, "a__y", ledger.Done, false)}, "calls: 1 done, 1 refused. Done, and not known to be repeatable, so don't repeat: a__y (call 2)."},
	} {
		if got := effectsText(row.effects); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
		}
	}
}

func ptr[T any](v T) *T { return &v }
