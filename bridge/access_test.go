package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/bridge/mcphttptest"
	who "codemode-bridge/bridge/principal"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A house is a bridge with access, over HTTP.
type house struct {
	*bench
	url   string
	rules atomic.Pointer[access.Rules]
	spec  profiles.Spec
}

// houseGroups are the groups of the tokens, which are the names followed by "-token".
var houseGroups = map[string][]string{"ann": {"staff"}, "bob": nil, "ci": {"robots"}}

// threeProfiles are safe, which is the default, admin and read; all see everything.
func threeProfiles() profiles.Spec {
	all := map[string]*profiles.ProfileSpec{}
	for _, name := range []string{"safe", "admin", "read"} {
		all[name] = &profiles.ProfileSpec{}
	}
	return profiles.Spec{DefaultProfile: ptr("safe"), Profiles: all}
}

func newHouse(t *testing.T, spec profiles.Spec, change func(*Options), entries ...access.Entry) *house {
	t.Helper()
	h := &house{spec: spec}
	h.bench = newBench(t, spec, func(o *Options) {
		o.Access = h.rules.Load
		if change != nil {
			change(o)
		}
	})
	h.give(t, entries...)
	o := mcphttp.Options{SessionsOf: func(name string, groups []string) (int, string) {
		g := h.rules.Load().For(name, groups)
		return g.Limits().Sessions, g.Entry()
	}}
	o.Tokens = func() (all []mcphttp.Token) {
		all = append(all, mcphttp.Token{Name: "ann", SHA256: sha256.Sum256([]byte("annAlone-token"))}) // she has left her groups
		for name, groups := range houseGroups {
			all = append(all, mcphttp.Token{Name: name, Groups: groups, SHA256: sha256.Sum256([]byte(name + "-token"))})
		}
		return all
	}
	h.url = serveHTTP(t, h.bench, o).URL
	return h
}

// give puts entries in force, as a changed configuration does.
func (h *house) give(t *testing.T, entries ...access.Entry) {
	t.Helper()
	known := access.Known{Tokens: houseGroups}
	for name := range h.spec.Profiles {
		known.Profiles = append(known.Profiles, name)
	}
	rules, wrong := access.New(entries, known)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	h.rules.Store(rules)
	h.AccessChanged()
}

type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// as connects a principal at an endpoint, such as "/mcp".
func (h *house) as(t *testing.T, name, endpoint, version string) *mcp.ClientSession {
	t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: h.url + endpoint, HTTPClient: &http.Client{Transport: bearer{name + "-token"}}}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "tester"}, nil).Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

var bothEras = []string{newestSessionProtocol, statelessProtocol}

// What is listed for a principal is what they may call; a call of anything else, and of what does not
// exist, get the same answer.
func TestListedIsWhatMayBeCalled(t *testing.T) {
	entries := []access.Entry{
		{Groups: []string{"staff"}, Profiles: []string{"*"}, DefaultProfile: "admin", Surface: access.SurfaceFull},
		{Tokens: []string{"ci"}, Profiles: []string{"read"}, Servers: []string{"a"}},
		{Principals: []string{"bob"}, Profiles: []string{"admin", "read"}},
		{Local: true, Profiles: []string{"safe"}},
	}
	want := map[string][]string{
		"ann /mcp":        {"codemode_eval_admin", "codemode_eval_read", "codemode_eval_safe", "codemode_status", "eval", "eval_resume", "get_tool_schema", "get_tools", "search_tools"},
		"ann /mcp/p/read": {"codemode_status", "eval", "eval_resume", "get_tool_schema", "get_tools", "search_tools"},
		"ci /mcp":         {"eval", "eval_resume"},
		"ci /mcp/p/read":  {"eval", "eval_resume"},
		"ci /mcp/p/admin": {},
		"ci /mcp/p/gone":  {},
		"bob /mcp":        {"codemode_eval_admin", "codemode_eval_read", "eval_resume"},
		"bob /mcp/p/read": {"eval", "eval_resume"},
		"bob /mcp/p/safe": {},
	}
	h := newHouse(t, threeProfiles(), nil, entries...)
	for _, version := range bothEras {
		for place, tools := range want {
			name, endpoint, _ := strings.Cut(place, " ")
			c := h.as(t, name, endpoint, version)
			listed := listedTools(t, c)
			if !slices.Equal(listed, tools) && len(listed)+len(tools) > 0 {
				t.Errorf("%s sees %q at %s, want %q", name, listed, version, tools)
			}
			for _, tool := range append(slices.Clone(want["ann /mcp"]), "no_such_tool") {
				_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"code": "return 1", "query": "echo", "name": "a__echo", "run": "r1"}})
				quiet := slices.Contains([]string{"get_tools", "search_tools"}, tool) && slices.Contains(listed, "eval") // they need not be listed
				if may := err == nil; may != (slices.Contains(listed, tool) || quiet) {
					t.Errorf("%s may call %s at %s: %v, and sees %q", place, tool, version, may, listed)
				}
				_, none := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "there_is_none", Arguments: map[string]any{}})
				if err != nil && (none == nil || err.Error() != strings.ReplaceAll(none.Error(), "there_is_none", tool)) {
					t.Errorf("%s is told of %s: %v; of a tool that does not exist: %v", place, tool, err, none)
				}
			}
		}
	}
	local := h.connect(t, nil)
	if got := listedTools(t, local); !slices.Equal(got, []string{"eval", "eval_resume"}) {
		t.Errorf("whoever has no name sees %q", got)
	}
	h.give(t, entries[:3]...)
	if got := listedTools(t, local); len(got) > 0 {
		t.Errorf("whoever no entry holds for sees %q", got)
	}
	if _, err := h.Eval(t.Context(), "", "return 1", nil, nil); err == nil || !strings.Contains(err.Error(), "no entry of access holds") {
		t.Errorf("the command line runs a script: %v", err)
	}
}

// What a principal sees of tools is about their servers, wherever it is said.
func TestServersOutOfReach(t *testing.T) {
	h := newHouse(t, threeProfiles(), nil, access.Entry{Tokens: []string{"ci"}, Profiles: []string{"safe", "read"}, Servers: []string{"a"}, Surface: access.SurfaceFull})
	for _, version := range bothEras {
		c := h.as(t, "ci", "/mcp", version)
		tools, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(tools)
		if strings.Contains(string(text), "b__echo") || !strings.Contains(string(text), "a__echo") {
			t.Errorf("the tools say: %s", text)
		}
		if !strings.Contains(string(text), `"cacheScope":"private"`) && version == statelessProtocol {
			t.Errorf("a list of one principal may be kept for others: %s", text)
		}
		for tool, args := range map[string]map[string]any{
			"search_tools": {"query": "echo"}, "get_tools": {}, "get_tool_schema": {"name": "b__echo"}, "codemode_status": {},
		} {
			out, _ := call(t, c, tool, args)
			if strings.Contains(strings.ReplaceAll(out, `"b__echo"`, ""), "b__") || strings.Contains(out, `"name":"b"`) || strings.Contains(out, `"server":"b"`) || strings.Contains(out, "admin") {
				t.Errorf("%s says: %s", tool, out)
			}
		}
		for _, way := range []string{
			`codemode.b__echo({})`, `codemode["b__echo"]({})`, `codemode.b.echo({})`, `codemode.raw("b__echo", {})`,
			`codemode.resources.read("b", "x://1")`, `codemode.resources.list("b")`, `codemode.resources.templates("b")`, `codemode.prompts.list("b")`, `codemode.prompts.get("b", "p")`,
			`codemode.b__echo({no_such: 1})`,
			`(async () => { const f = codemode; return f["b" + "__echo"]({}) })()`,
		} {
			out := eval(t, c, `try { return ["got", await `+way+`] } catch (e) { return [e.name, e.reason, e.message] }`)
			if !strings.Contains(out, `"ToolCallDeniedError","denied"`) && !strings.Contains(out, `"UnknownToolError"`) && !strings.Contains(out, `"TypeError"`) {
				t.Errorf("%s: %s", way, out)
			}
			if strings.Contains(out, "Declaration") || strings.Contains(out, "path?") {
				t.Errorf("%s: it says how the tool is called: %s", way, out)
			}
			if strings.Contains(way, "b__echo") && !strings.Contains(out, "entry 1 of access does not let ci reach server b") {
				t.Errorf("%s: %s", way, out)
			}
		}
		for _, way := range []string{`codemode.search_tools({query: "echo"})`, `codemode.get_tools({})`, `codemode.get_tools({server: "b"})`, `codemode.resources.list()`, `Object.keys(codemode)`} {
			out := eval(t, c, `try { return await `+way+` } catch (e) { return [e.name, e.message] }`)
			if strings.Contains(out, "b__") || strings.Contains(out, `"server":"b"`) {
				t.Errorf("%s: %s", way, out)
			}
		}
		if out := eval(t, c, `return await codemode.b__ecko({})`); strings.Contains(out, "b__echo") {
			t.Errorf("a wrong name is answered with one out of reach: %s", out)
		}
		if out := eval(t, c, `return await codemode.a__echo({n: 1})`); !strings.Contains(out, `n`) || strings.Contains(out, "Denied") {
			t.Errorf("what is within reach: %s", out)
		}
	}
	for _, made := range h.up.made() {
		if strings.HasPrefix(made, "b__") {
			t.Errorf("%s was sent", made)
		}
	}
}

// What changes between a list and a call, or in the middle of a script, counts for the next call.
func TestAccessIsDecidedAgain(t *testing.T) {
	all := access.Entry{Tokens: []string{"ci"}, Profiles: []string{"safe", "read"}}
	less, other := all, all
	less.Servers, other.Profiles = []string{"b"}, []string{"read"}
	for _, version := range bothEras {
		h := newHouse(t, threeProfiles(), nil, all)
		c := h.as(t, "ci", "/mcp", version)
		if got := listedTools(t, c); !slices.Contains(got, "codemode_eval_safe") {
			t.Fatalf("ci sees %q", got)
		}
		h.up.tools["b__echo"] = func(context.Context, json.RawMessage) (string, error) {
			h.give(t, less)
			return text("changed"), nil
		}
		const script = `const out = [await codemode.a__echo({}), await codemode.b__echo({})]; try { out.push(await codemode.a__echo({})) } catch (e) { out.push(e.reason) } return out`
		if got := eval(t, c, script); got != `["{}","changed","denied"]` {
			t.Errorf("the server went out of reach: %s", got)
		}
		h.give(t, all)
		h.up.tools["b__echo"] = func(context.Context, json.RawMessage) (string, error) {
			h.give(t, other)
			return text("changed"), nil
		}
		if got := eval(t, c, script); got != `["{}","changed","denied"]` {
			t.Errorf("the profile was taken away: %s", got)
		}
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "codemode_eval_safe", Arguments: map[string]any{"code": "return 1"}}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
			t.Errorf("a tool that was listed is called when it is theirs no more: %v", err)
		}
	}
}

// A run of another principal, or under a profile that is theirs no more, does not go on for a client, and
// one that approvers move on makes no call any more.
func TestRunsGoOnWithinAccess(t *testing.T) {
	f := newFleet()
	spec := threeProfiles()
	for _, p := range spec.Profiles {
		p.Asklist, p.ElicitationFallback = []string{"a__*"}, ptr("queue")
	}
	spec.ClientPatience = &profiles.Patience{Default: ptr(profiles.Duration(50 * time.Millisecond))}
	both := []access.Entry{{Groups: []string{"staff"}, Profiles: []string{"*"}}, {Principals: []string{"bob"}, Profiles: []string{"*"}}}
	h := newHouse(t, spec, func(o *Options) {
		o.Gate = gate.New(o.Gate.View(), gate.Options{Caller: o.Upstreams.(*upstreams), Reader: o.Upstreams.(*upstreams), Recorder: f.records, Approvers: func() bool { return true }, Broker: f.broker(f.requests, "one", "")})
		o.Journal, o.Bridge, o.Gone = f.records, "one", f.isGone
	}, both...)
	ann := h.as(t, "ann", "/mcp", newestSessionProtocol)
	out, _ := call(t, ann, "codemode_eval_admin", map[string]any{"code": `return await codemode.a__echo({n: 1})`})
	var paused struct{ Run string }
	if err := json.Unmarshal([]byte(out), &paused); err != nil || paused.Run == "" {
		t.Fatalf("the run does not pause: %s", out)
	}
	resume := func(name, endpoint string) string {
		out, _ := call(t, h.as(t, name, endpoint, newestSessionProtocol), "eval_resume", map[string]any{"run": paused.Run})
		return out
	}
	if got := resume("bob", "/mcp"); !strings.Contains(got, "there is no run") {
		t.Errorf("another principal resumes it: %s", got)
	}
	if got := resume("ann", "/mcp/p/read"); !strings.Contains(got, "there is no run") {
		t.Errorf("an endpoint of another profile resumes it: %s", got)
	}
	h.give(t, access.Entry{Groups: []string{"staff"}, Profiles: []string{"read"}}, both[1])
	if got := resume("ann", "/mcp"); !strings.Contains(got, "there is no run") {
		t.Errorf("a principal resumes it whose profile it is no more: %s", got)
	}
	f.answer(t, f.open(t, 1)[0], approval.Verdict{Approve: true, Scope: approval.Once, Channel: "page"})
	for {
		run, ok := h.Run(t.Context(), paused.Run)
		if ok && run.Over() {
			if !strings.Contains(string(run.Result), "does not give ann the profile admin") {
				t.Errorf("it went on: %s", run.Result)
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	if made := h.up.made(); len(made) > 0 {
		t.Errorf("made %q", made)
	}
}

// A run that goes on because its script was sent again reaches no more than whoever sent it, live or
// suspended.
func TestRunsSentAgainAreWithinAccess(t *testing.T) {
	for _, suspended := range []bool{false, true} {
		f := newFleet()
		spec := threeProfiles()
		for _, p := range spec.Profiles {
			p.Asklist, p.ElicitationFallback = []string{"a__*"}, ptr("queue")
		}
		spec.ClientPatience = &profiles.Patience{Default: ptr(profiles.Duration(50 * time.Millisecond))}
		h := newHouse(t, spec, func(o *Options) {
			o.Gate = gate.New(o.Gate.View(), gate.Options{Caller: o.Upstreams.(*upstreams), Reader: o.Upstreams.(*upstreams), Recorder: f.records, Approvers: func() bool { return true }, Broker: f.broker(f.requests, "one", "")})
			o.Journal, o.Bridge, o.Gone = f.records, "one", f.isGone
		})
		rules, wrong := access.New([]access.Entry{{Groups: []string{"staff"}, Profiles: []string{"*"}}, {Principals: []string{"ann"}, Profiles: []string{"*"}, Servers: []string{"b"}}},
			access.Known{Profiles: []string{"safe", "admin", "read"}}) // the groups of all come from an issuer
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		h.rules.Store(rules)
		h.AccessChanged()
		send := func(who string) string {
			out, _ := call(t, h.as(t, who, "/mcp", statelessProtocol), "eval", map[string]any{"code": `return await codemode.a__echo({n: 1})`})
			return out
		}
		var paused struct{ Run string }
		if out := send("ann"); json.Unmarshal([]byte(out), &paused) != nil || paused.Run == "" {
			t.Fatalf("the run does not pause: %s", out)
		}
		if r, ok := h.roster.lookup(paused.Run); suspended && ok {
			if !r.evict() {
				t.Fatal("the run cannot be suspended")
			}
			<-r.done
		}
		out := send("annAlone")
		if !strings.Contains(out, paused.Run) {
			t.Fatalf("the same script is another run than %s: %s", paused.Run, out)
		}
		if !suspended { // what it waits for was asked before
			f.answer(t, f.open(t, 1)[0], approval.Verdict{Approve: true, Scope: approval.Once, Channel: "page"})
			for r, ok := h.roster.lookup(paused.Run); ok; ok = false {
				<-r.done
			}
			if run, ok := h.Run(t.Context(), paused.Run); ok {
				out = string(run.Result)
			}
		}
		if !strings.Contains(out, "does not let ann reach server a") {
			t.Errorf("suspended %v: it went on: %s", suspended, out)
		}
		if made := h.up.made(); len(made) > 0 {
			t.Errorf("suspended %v: made %q", suspended, made)
		}
	}
}

// Questions go to approvers alone from the edit on that says so, in a run that is under way too.
func TestAskedByApprovers(t *testing.T) {
	spec := threeProfiles()
	spec.Profiles["read"].Asklist, spec.Profiles["read"].ElicitationFallback = []string{"a__*"}, ptr("queue")
	spec.ClientPatience = &profiles.Patience{Default: ptr(profiles.Duration(3 * time.Second))}
	local := access.Entry{Local: true, Profiles: []string{"*"}}
	h := newHouse(t, spec, nil, local)
	h.approvers.Store(true)
	p := &person{answer: func(n int, q *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		local.Asked = access.AskedApprovers
		h.give(t, local)
		return says("once")(n, q)
	}}
	c := h.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	out, _ := call(t, c, "codemode_eval_read", map[string]any{"code": `const first = await codemode.a__echo({n: 1}); return await codemode.a__echo({after: JSON.stringify(first)})`})
	if !strings.Contains(out, `"paused"`) {
		t.Errorf("the run does not wait for approvers: %s", out)
	}
	if got := len(p.questions()); got != 1 {
		t.Errorf("the client was asked %d times, want once", got)
	}
}

// Clients make up endpoints of any name; what is kept does not grow by them.
func TestEndpointsMadeUpAreNotKept(t *testing.T) {
	for _, entries := range [][]access.Entry{nil, {{Principals: []string{"*"}, Profiles: []string{"*"}}}} {
		h := newHouse(t, threeProfiles(), nil)
		if h.give(t, entries...); entries == nil {
			h.rules.Store(nil)
		}
		for i := range 3 {
			if got := listedTools(t, h.as(t, "ann", fmt.Sprint("/mcp/p/none", i), statelessProtocol)); len(got) > 0 {
				t.Errorf("an endpoint of no profile has %q", got)
			}
		}
		if got := listedTools(t, h.as(t, "ann", "/mcp/p/read", statelessProtocol)); !slices.Contains(got, "eval") {
			t.Errorf("an endpoint of a profile has %q", got)
		}
		kept := 0
		h.menus.made.Range(func(key, _ any) bool { kept++; return true })
		if kept != 1 {
			t.Errorf("%d menus are kept, want that of the profile", kept)
		}
	}
}

// The API starts runs for a principal, too.
func TestStartedRunsAreWithinAccess(t *testing.T) {
	h := newHouse(t, threeProfiles(), nil, access.Entry{Groups: []string{"leads"}, Profiles: []string{"read"}, Servers: []string{"a"}})
	lead := who.With(t.Context(), who.Principal{Name: "eve", Groups: []string{"leads"}})
	for _, row := range []struct {
		ctx     context.Context
		profile string
		says    string // empty: it starts
	}{
		{t.Context(), "read", "no entry of access holds for eve"},
		{t.Context(), "", "no entry of access holds for eve"},
		{lead, "admin", "does not give eve the profile admin"},
		{lead, "read", ""},
		{lead, "", ""}, // the only one that they have
	} {
		id, err := h.Start(row.ctx, row.profile, `try { await codemode.b__echo({}) } catch (e) { return e.message }`, nil, "eve")
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%q: %v, want %q", row.profile, err, row.says)
		}
		if err != nil {
			continue
		}
		r, _ := h.roster.lookup(id)
		<-r.done
		if run, _ := h.Run(t.Context(), id); run.Profile != "read" || !strings.Contains(string(run.Result), "does not let eve reach server b") {
			t.Errorf("it ran under %q: %s", run.Profile, run.Result)
		}
	}
}

// Handles are a principal's, whichever session they were made in, for ten minutes.
func TestHandlesOfAPrincipal(t *testing.T) {
	var now atomic.Pointer[time.Time]
	start := time.Now()
	now.Store(&start)
	h := newHouse(t, threeProfiles(), func(o *Options) { o.Now = func() time.Time { return *now.Load() } }, access.Entry{Principals: []string{"*"}, Profiles: []string{"safe"}})
	for _, version := range bothEras {
		made := eval(t, h.as(t, "ann", "/mcp", version), `return Array.from({length: 30000}, (_, i) => "row " + i)`)
		_, rest, _ := strings.Cut(made, `"handle":"`)
		id, _, ok := strings.Cut(rest, `"`)
		if !ok {
			t.Fatalf("no handle at %s: %.300s", version, made)
		}
		read := fmt.Sprintf(`try { return await codemode.read(%q, "[7]") } catch (e) { return e.message }`, id)
		for _, other := range bothEras {
			if got := eval(t, h.as(t, "ann", "/mcp", other), read); got != `"row 7"` {
				t.Errorf("another session of theirs reads %s", got)
			}
			if got := eval(t, h.as(t, "bob", "/mcp", other), read); !strings.Contains(got, "there is no handle") {
				t.Errorf("another principal reads %s", got)
			}
		}
		later := now.Load().Add(11 * time.Minute)
		now.Store(&later)
		if got := eval(t, h.as(t, "ann", "/mcp", version), read); !strings.Contains(got, "there is no handle") {
			t.Errorf("after its time: %s", got)
		}
	}
}

// Each limit of a principal holds for them and for nobody else.
func TestLimitsOfAPrincipal(t *testing.T) {
	spec := threeProfiles()
	spec.Profiles["read"].Asklist = []string{"a__echo"}
	spec.Profiles["read"].ElicitationFallback = ptr("queue")
	limits := access.Limits{Sessions: 2, Runs: 3, Workers: 2, Questions: 1}
	h := newHouse(t, spec, nil, access.Entry{Principals: []string{"bob"}, Profiles: []string{"*"}}, access.Entry{Principals: []string{"*"}, Profiles: []string{"*"}, Limits: limits})
	h.approvers.Store(true)
	running, release := make(chan struct{}, 10), make(chan struct{})
	h.up.tools["a__wait"] = func(ctx context.Context, _ json.RawMessage) (string, error) {
		running <- struct{}{}
		select {
		case <-release:
			return text("released"), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	start := func(name, profile, code string) (string, error) {
		return h.Start(t.Context(), profile, code, nil, name)
	}
	for range 3 {
		if _, err := start("ann", "safe", `return await codemode.a__wait({})`); err != nil {
			t.Fatal(err)
		}
	}
	<-running
	<-running
	if _, err := start("ann", "safe", `return 1`); err == nil || !strings.Contains(err.Error(), "ann has 3 runs under way, and entry 2 of access allows no more: wait until one has ended") {
		t.Errorf("one run too many: %v", err)
	}
	if _, err := start("bob", "safe", `return await codemode.a__wait({})`); err != nil {
		t.Error(err)
	}
	<-running // bob's: two scripts of ann run, and the third waits its turn
	select {
	case <-running:
		t.Error("more scripts of one principal run than may")
	default:
	}
	close(release)
	<-running
	h.roster.underWay.Wait()

	asked := `const all = await Promise.allSettled([1, 2, 3].map(n => codemode.a__echo({n}))); return all.map(r => r.reason?.reason)`
	first, err := start("ann", "read", `return await codemode.a__echo({n: 1})`)
	if err != nil {
		t.Fatal(err)
	}
	h.waiting(t, first)
	second, err := start("ann", "read", asked)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := h.roster.lookup(second)
	<-r.done
	if run, _ := h.Run(t.Context(), second); !strings.Contains(string(run.Result), `["rate_limited","rate_limited","rate_limited"]`) {
		t.Errorf("one question too many: %s", run.Result)
	}
	third, err := start("bob", "read", asked)
	if err != nil {
		t.Fatal(err)
	}
	h.waiting(t, third) // whose questions are not counted with ann's
}

// waiting returns once a run asks people.
func (h *house) waiting(t *testing.T, id string) {
	t.Helper()
	for h.gate.Broker().Waiting(id) == 0 {
		if r, ok := h.roster.lookup(id); ok && r.isDone() {
			t.Fatalf("the run has ended: %v", r.end.err)
		}
		time.Sleep(time.Millisecond)
	}
}

// A session too many ends a quiet one of the same principal; if all are busy, it is refused.
func TestSessionsOfAPrincipal(t *testing.T) {
	h := newHouse(t, threeProfiles(), nil, access.Entry{Principals: []string{"*"}, Profiles: []string{"*"}, Limits: access.Limits{Sessions: 2}})
	open := func(name, endpoint string) (status int, body, id string) {
		res := mcphttptest.Post(t, "POST", h.url+endpoint, mcphttptest.Initialize, "Authorization", "Bearer "+name+"-token")
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text), res.Header.Get("Mcp-Session-Id")
	}
	_, _, first := open("ann", "/mcp")
	_, _, others := open("bob", "/mcp")
	for range 2 {
		if status, body, _ := open("ann", "/mcp"); status != http.StatusOK {
			t.Fatalf("%d: %s", status, body)
		}
	}
	ping := func(name, endpoint, id string) int {
		return mcphttptest.Post(t, "POST", h.url+endpoint, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Authorization", "Bearer "+name+"-token", "Mcp-Session-Id", id).StatusCode
	}
	if got := ping("ann", "/mcp", first); got != http.StatusNotFound {
		t.Errorf("the oldest of three sessions answers %d", got)
	}
	if got := ping("bob", "/mcp", others); got != http.StatusOK {
		t.Errorf("another principal's session answers %d", got)
	}
	_, _, bound := open("bob", "/mcp/p/read")
	if at, other := ping("bob", "/mcp/p/read", bound), ping("bob", "/mcp", bound); at != http.StatusOK || other != http.StatusNotFound {
		t.Errorf("a session of one endpoint answers %d there, and %d at another", at, other)
	}
	reached := make(chan struct{}, 2)
	h.up.tools["a__wait"] = func(ctx context.Context, _ json.RawMessage) (string, error) {
		reached <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		c := h.as(t, "ci", "/mcp", newestSessionProtocol)
		go c.CallTool(ctx, &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": `return await codemode.a__wait({})`}})
		<-reached
	}
	if status, body, _ := open("ci", "/mcp"); status != http.StatusServiceUnavailable || !strings.Contains(body, "every session that you may have (2 by entry 1 of access) is in use: end one") {
		t.Errorf("a session too many: %d %s", status, body)
	}
}
