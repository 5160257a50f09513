package gate

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	spans "codemode-bridge/bridge/trace"
	"codemode-bridge/profiles"
)

// A fakeCaller answers every call with the same reply and remembers the calls.
type fakeCaller struct {
	reply string
	err   error
	mu    sync.Mutex
	calls []string
}

func (f *fakeCaller) Call(ctx context.Context, server, _, tool string, args json.RawMessage) (json.RawMessage, error) {
	f.mu.Lock()
	f.calls = append(f.calls, server+"|"+tool+"|"+string(args))
	f.mu.Unlock()
	return json.RawMessage(f.reply), f.err
}

// A book keeps records, or refuses to, from a certain one on.
type book struct {
	mu      sync.Mutex
	records []ledger.Record
	refuse  ledger.Event // this event cannot be recorded
	uses    error        // with which the use of a grant is refused
}

func (b *book) Record(_ context.Context, all ...ledger.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range all {
		if r.Event == b.refuse {
			return errors.New("disk full")
		}
		if r.GrantUses > 0 && b.uses != nil {
			return b.uses
		}
	}
	b.records = append(b.records, all...)
	return nil
}

// events are the kinds of what was recorded, with the outcomes.
func (b *book) events() string {
	var all []string
	for _, r := range b.records {
		e := string(r.Event)
		if r.Outcome != "" {
			e += ":" + r.Outcome
		}
		all = append(all, e)
	}
	return strings.Join(all, " ")
}

func yes() *bool { t := true; return &t }

// newGate makes a gate before the servers fs and mail, under a policy.
func newGate(t *testing.T, spec profiles.Spec, caller *fakeCaller, b *book) *Gate {
	t.Helper()
	set, problems := profiles.Parse(spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	object := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}},"required":["path"],"additionalProperties":false}`)
	return New(&View{Profiles: set, Catalog: catalog.Build([]catalog.Server{
		{Name: "fs", Tools: []catalog.Definition{
			{Name: "read", Description: "reads", Input: object, Annotations: profiles.Annotations{ReadOnly: yes()}},
			{Name: "delete", Description: "deletes", Input: object}}},
		{Name: "mail", Tools: []catalog.Definition{{Name: "send", Input: json.RawMessage(`{"properties":{"body":{},"to":{}}}`)}}},
	})}, Options{Caller: caller, Recorder: b})
}

func begin(t *testing.T, g *Gate, profile string) *Run {
	t.Helper()
	r, err := g.Begin(t.Context(), Origin{ID: "r1", Session: "s1", Client: "test", Profile: profile}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func supervised(p profiles.ProfileSpec) profiles.Spec {
	return profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"p": &p}}
}

const okReply = `{"content":[{"type":"text","text":"done"}]}`

func TestCallSendsWhatItDecidedOn(t *testing.T) {
	caller, b := &fakeCaller{reply: okReply}, &book{}
	g := newGate(t, profiles.Spec{}, caller, b)
	r := begin(t, g, "")
	answer, err := g.Call(t.Context(), r, Call{Number: 1, Name: "fs__read", Args: json.RawMessage(`{ "path":"\u0061", "n": 12345678901234567890 }`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.Text(); got != "done" {
		t.Errorf("answer %q", got)
	}
	want := []string{`fs|read|{"n":12345678901234567890,"path":"a"}`}
	if !slices.Equal(caller.calls, want) {
		t.Errorf("sent %q, want %q", caller.calls, want)
	}
	if got := b.events(); got != "run_started intent outcome:done" {
		t.Errorf("recorded %s", got)
	}
	intent, outcome := b.records[1], b.records[2]
	if intent.Digest == "" || intent.Digest != outcome.Digest {
		t.Errorf("digests %q and %q", intent.Digest, outcome.Digest)
	}
}

func TestCallIsRefused(t *testing.T) {
	list := func(patterns ...string) []string { return patterns }
	for _, c := range []struct {
		name   string
		spec   profiles.ProfileSpec
		call   string
		args   string
		reason approval.Reason
		text   string
	}{
		{"by the denylist", profiles.ProfileSpec{Denylist: list("fs__d*")}, "fs__delete", `{"path":"x"}`, approval.Denied, "denylist"},
		{"by an allowlist that lacks it", profiles.ProfileSpec{Allowlist: list("fs__read")}, "fs__delete", `{"path":"x"}`, approval.Denied, "fs__delete was not sent"},
		{"for want of a person", profiles.ProfileSpec{Asklist: list("mail__*")}, "mail__send", `{}`, approval.NoApprover, "asklist"},
		{"under its path as well", profiles.ProfileSpec{Denylist: list("mail__*")}, "mail__send", `{}`, approval.Denied, "denylist"},
		{"as a discovery function", profiles.ProfileSpec{Allowlist: list("fs__*")}, "search_tools", `{"query":"x"}`, approval.Denied, "search_tools"},
	} {
		t.Run(c.name, func(t *testing.T) {
			caller, b := &fakeCaller{reply: okReply}, &book{}
			g := newGate(t, supervised(c.spec), caller, b)
			_, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: c.call, Args: json.RawMessage(c.args)})
			var denied *approval.DeniedError
			if !errors.As(err, &denied) {
				t.Fatalf("got %v, want a DeniedError", err)
			}
			if denied.Reason != c.reason || !strings.Contains(denied.Message, c.text) {
				t.Errorf("reason %s, message %q; want %s and %q", denied.Reason, denied.Message, c.reason, c.text)
			}
			if len(caller.calls) > 0 {
				t.Errorf("sent %q", caller.calls)
			}
			want := "run_started refusal:refused"
			if c.reason == approval.NoApprover {
				want = "run_started verdict refusal:refused"
			}
			if got := b.events(); got != want {
				t.Errorf("recorded %s, want %s", got, want)
			}
		})
	}
}

func TestCallWithWrongArguments(t *testing.T) {
	for _, c := range []struct{ name, call, args, path, text string }{
		{"missing", "fs__read", `{}`, "", "args.path is missing"},
		{"of the wrong type", "fs__read", `{"path":7}`, "/path", "args.path must be string, got number"},
		{"not taken", "fs__read", `{"path":"x","pth":"y"}`, "", "args.pth is not an argument of this tool: did you mean path?"},
		{"nothing like it", "fs__read", `{"path":"x","zzz":"y"}`, "", "args.zzz is not an argument of this tool"},
		{"twice", "fs__read", `{"path":"x","path":"y"}`, "/path", "path"},
		{"no object", "fs__read", `[1]`, "", "object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			caller, b := &fakeCaller{reply: okReply}, &book{}
			g := newGate(t, profiles.Spec{}, caller, b)
			r := begin(t, g, "")
			_, err := g.Call(t.Context(), r, Call{Number: 1, Name: c.call, Args: json.RawMessage(c.args)})
			var wrong *ArgumentError
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v, want an ArgumentError", err)
			}
			if wrong.Path != c.path || !strings.Contains(wrong.Message, c.text) || !strings.Contains(wrong.Message, "path: string") {
				t.Errorf("path %q, message %q", wrong.Path, wrong.Message)
			}
			if len(caller.calls) > 0 || r.Effects()[0].State != ledger.Refused {
				t.Errorf("sent %q, effects %v", caller.calls, r.Effects())
			}
		})
	}
}

func TestSchemaThatCannotBeReadChecksNothing(t *testing.T) {
	caller := &fakeCaller{reply: okReply}
	g := newGate(t, profiles.Spec{}, caller, &book{})
	if _, err := g.Call(t.Context(), begin(t, g, ""), Call{Number: 1, Name: "mail__send", Args: json.RawMessage(`{"any":"thing"}`)}); err != nil {
		t.Fatal(err)
	}
}

func TestUnknownToolNamesTheNearest(t *testing.T) {
	b := &book{}
	g := newGate(t, profiles.Spec{}, &fakeCaller{}, b)
	_, err := g.Call(t.Context(), begin(t, g, ""), Call{Number: 1, Name: "fs__raed"})
	var unknown *UnknownToolError
	if !errors.As(err, &unknown) || len(unknown.Near) == 0 || unknown.Near[0] != "fs__read" {
		t.Fatalf("got %#v", err)
	}
}

// Nothing is wrong with a call of a server that has not listed its tools yet.
func TestAToolOfAnAwaitedServerMayPassLater(t *testing.T) {
	g := newGate(t, profiles.Spec{}, &fakeCaller{}, &book{})
	old := g.View()
	tools := catalog.Sources{Servers: []catalog.Server{{Name: "fs", Tools: []catalog.Definition{{Name: "read"}}}}, Order: []string{"fs", "big-web"}}.Build()
	g.view.Store(&View{Profiles: old.Profiles, Catalog: tools, Trusted: old.Trusted, Awaited: []string{"big-web"}})
	for name, want := range map[string]string{"big_web__search": "", "bigWeb__search": "", "big-web__search": "", "big__search": RetryChanged, "fs__raed": RetryChanged} {
		r := begin(t, g, "")
		var unknown *UnknownToolError
		if _, err := g.Call(t.Context(), r, Call{Number: 1, Name: name}); !errors.As(err, &unknown) || unknown.Later != (want == "") {
			t.Errorf("%s: got %#v", name, err)
		}
		if effects := r.Effects(); len(effects) != 1 || effects[0].Retry != want {
			t.Errorf("%s: effects are %+v, want retry %q", name, effects, want)
		}
	}
}

func TestWhatCannotBeRecordedIsNotSent(t *testing.T) {
	caller := &fakeCaller{reply: okReply}
	g := newGate(t, profiles.Spec{}, caller, &book{refuse: ledger.Intent})
	_, err := g.Call(t.Context(), begin(t, g, ""), Call{Number: 1, Name: "fs__delete", Args: json.RawMessage(`{"path":"x"}`)})
	var denied *approval.DeniedError
	if !errors.As(err, &denied) || denied.Reason != approval.AuditUnavailable || len(caller.calls) > 0 {
		t.Fatalf("got %v, sent %q", err, caller.calls)
	}
	if _, err := newGate(t, profiles.Spec{}, caller, &book{refuse: ledger.RunStarted}).Begin(t.Context(), Origin{ID: "r"}, nil); !errors.As(err, &denied) {
		t.Errorf("a run began without a record: %v", err)
	}
}

func TestOutcomeThatCannotBeRecordedIsUnknown(t *testing.T) {
	g := newGate(t, profiles.Spec{}, &fakeCaller{reply: okReply}, &book{refuse: ledger.Outcome})
	_, err := g.Call(t.Context(), begin(t, g, ""), Call{Number: 1, Name: "fs__delete", Args: json.RawMessage(`{"path":"x"}`)})
	var unknown *UnknownOutcomeError
	if !errors.As(err, &unknown) {
		t.Fatalf("got %v", err)
	}
}

type sentError struct{ sent bool }

func (e sentError) Error() string { return "broken pipe" }
func (e sentError) WasSent() bool { return e.sent }

func TestLostAnswer(t *testing.T) {
	for _, c := range []struct {
		name, tool string
		trusted    bool
		rule       string // the risk that a rule gives the call
		err        error
		state      string
	}{
		{"of a call that was sent", "fs__delete", true, "", sentError{true}, ledger.Unknown},
		{"of a call that a rule calls low", "fs__delete", true, "low", sentError{true}, ledger.Unknown},
		{"of a call that was not sent", "fs__delete", true, "", sentError{false}, ledger.Failed},
		{"of a tool that only reads", "fs__read", true, "", sentError{true}, ledger.Failed},
		{"of a tool that says so, and nobody believes it", "fs__read", false, "low", sentError{true}, ledger.Unknown},
		{"for a reason that says nothing of it", "fs__delete", true, "", errors.New("odd"), ledger.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &book{}
			p := profiles.ProfileSpec{}
			if c.rule != "" {
				p.Rules = []profiles.RuleSpec{{Tools: []string{"*"}, Risk: &c.rule}}
			}
			g := newGate(t, supervised(p), &fakeCaller{err: c.err}, b)
			g.View().Trusted = map[string]bool{"fs": c.trusted}
			r := begin(t, g, "p")
			_, err := g.Call(t.Context(), r, Call{Number: 1, Name: c.tool, Args: json.RawMessage(`{"path":"x"}`)})
			var unknown *UnknownOutcomeError
			if errors.As(err, &unknown) != (c.state == ledger.Unknown) || r.Effects()[0].State != c.state {
				t.Errorf("got %v, effects %v", err, r.Effects())
			}
			if got := b.events(); got != "run_started intent outcome:"+c.state {
				t.Errorf("recorded %s", got)
			}
			for _, rec := range b.records[1:] {
				// What only reads need not outlive a power cut; what a rule calls low must.
				if reads := c.tool == "fs__read"; rec.Durable == reads || rec.Repeatable != (reads && c.trusted) {
					t.Errorf("%s: durable %t, repeatable %t", rec.Event, rec.Durable, rec.Repeatable)
				}
			}
		})
	}
}

func TestNewPolicyCanOnlyTightenARun(t *testing.T) {
	caller := &fakeCaller{reply: okReply}
	open, strict := profiles.ProfileSpec{}, profiles.ProfileSpec{Denylist: []string{"fs__*"}}
	call := Call{Number: 1, Name: "fs__delete", Args: json.RawMessage(`{"path":"x"}`)}
	for _, c := range []struct {
		name          string
		first, second profiles.Spec
		allowed       bool
	}{
		{"stays open", supervised(open), supervised(open), true},
		{"tightened", supervised(open), supervised(strict), false},
		{"loosened", supervised(strict), supervised(open), false},
		{"gone", supervised(open), profiles.Spec{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, c.first, caller, &book{})
			r := begin(t, g, "p")
			g.Replace(newGate(t, c.second, caller, &book{}).View())
			_, err := g.Call(t.Context(), r, call)
			if (err == nil) != c.allowed {
				t.Errorf("got %v, want allowed %v", err, c.allowed)
			}
		})
	}
}

func TestSecretsStayOutOfRecords(t *testing.T) {
	const canary = "s3cr3t-canary-value"
	b := &book{}
	g := newGate(t, profiles.Spec{}, &fakeCaller{reply: okReply}, b)
	r := begin(t, g, "")
	if _, err := g.Call(t.Context(), r, Call{Number: 1, Name: "mail__send", Args: json.RawMessage(`{"auth":{"apiKey":"` + canary + `"}}`)}); err != nil {
		t.Fatal(err)
	}
	all, err := json.Marshal(b.records)
	if err != nil || !strings.Contains(string(all), "mail") || strings.Contains(string(all), canary) {
		t.Errorf("records: %s, %v", all, err)
	}
}

// BenchmarkCall is what the gate adds to a call: freezing, deciding, checking
// the arguments and two records that go nowhere; without and with spans of its steps.
func BenchmarkCall(b *testing.B) {
	set, problems := profiles.Parse(supervised(profiles.ProfileSpec{Asklist: []string{"mail__*"}}))
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	g := New(&View{Profiles: set, Complete: true, Catalog: catalog.Build([]catalog.Server{{Name: "fs", Tools: []catalog.Definition{
		{Name: "read", Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}}}})},
		Options{Caller: callerFunc(func(context.Context) {}), Recorder: ledger.Log{Handler: slog.DiscardHandler}})
	tracer := spans.New(spans.Options{Exporter: noSpans{}, Passes: func(string) bool { return true }})
	for name, span := range map[string]*spans.Run{"untraced": nil, "traced": tracer.Begin(b.Context(), spans.Origin{Run: "r"})} {
		b.Run(name, func(b *testing.B) {
			r, err := g.Begin(b.Context(), Origin{ID: "r", Profile: "p", Span: span.Step()}, nil)
			if err != nil {
				b.Fatal(err)
			}
			call := Call{Name: "fs__read", Args: json.RawMessage(`{"path":"/tmp/a/file/of/some/length.txt"}`)}
			b.ReportAllocs()
			for b.Loop() {
				call.Number++
				if _, err := g.Call(b.Context(), r, call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// noSpans exports nothing: what making spans costs is measured where they are made.
type noSpans struct{}

func (noSpans) Start(spans.Start) spans.Span   { return noSpans{} }
func (noSpans) Context() (c spans.Context)     { return c }
func (noSpans) End(string, ...spans.Attribute) {}

// The steps of a call that is not traced allocate nothing for that.
func TestUntracedStepsCostNothing(t *testing.T) {
	c, r := &call{tool: &catalog.Tool{Server: "fs"}}, &Run{}
	allocs := testing.AllocsPerRun(1000, func() {
		for _, step := range []string{stepDecide, stepWait, c.method()} {
			_, end := c.span(t.Context(), r, step)
			end("done")
		}
	})
	if allocs != 0 {
		t.Errorf("they allocate %v times", allocs)
	}
}

func TestAStoppedRunSendsNothing(t *testing.T) {
	caller := &fakeCaller{reply: okReply}
	g := newGate(t, profiles.Spec{}, caller, &book{})
	r := begin(t, g, "")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := g.Call(ctx, r, Call{Number: 1, Name: "fs__read", Args: json.RawMessage(`{"path":"x"}`)})
	var denied *approval.DeniedError
	if !errors.As(err, &denied) || denied.Reason != approval.Expired || len(caller.calls) > 0 {
		t.Errorf("got %v, sent %q", err, caller.calls)
	}
}

// A process that may not act announces nothing and sends nothing; what lets a call through
// is with it when it is sent.
func TestFence(t *testing.T) {
	type key struct{}
	closed := errors.New("another bridge may have it")
	var why error
	caller, kept := &fakeCaller{reply: okReply}, new(book)
	g := newGate(t, profiles.Spec{}, caller, kept)
	g.fence = func(ctx context.Context) (context.Context, error) { return context.WithValue(ctx, key{}, "pass"), why }
	with := ""
	g.caller = callerFunc(func(ctx context.Context) { with, _ = ctx.Value(key{}).(string) })
	r := begin(t, g, "")
	call := func(n int) error {
		_, err := g.Call(t.Context(), r, Call{Number: n, Name: "fs__delete", Args: json.RawMessage(`{"path":"x"}`)})
		return err
	}
	if err := call(1); err != nil || with != "pass" {
		t.Errorf("got %v, with %q", err, with)
	}
	why, with = closed, ""
	var denied *approval.DeniedError
	if err := call(2); !errors.As(err, &denied) || denied.Reason != approval.AuditUnavailable || !errors.Is(err, closed) || with != "" {
		t.Errorf("got %v, with %q", err, with)
	}
	if got := kept.events(); strings.Count(got, string(ledger.Intent)) != 1 || strings.Count(got, string(ledger.Refusal)) != 1 {
		t.Errorf("recorded is %s", got)
	}
}

type callerFunc func(context.Context)

func (f callerFunc) Call(ctx context.Context, _, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
	f(ctx)
	return json.RawMessage(okReply), nil
}
