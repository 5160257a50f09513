package gate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// A fakeReader answers for the servers docs and mail; down cannot be reached.
type fakeReader map[string]string // by server and method

func (f fakeReader) Offers(string) []string { return []string{"docs", "down", "mail"} }

func (f fakeReader) Read(_ context.Context, server, _, method string, args json.RawMessage) (json.RawMessage, error) {
	if server == "down" {
		return nil, errors.New("it is not connected")
	}
	reply, ok := f[server+" "+method]
	if !ok {
		return nil, errors.New("unexpected: " + server + " " + method + string(args))
	}
	return json.RawMessage(reply), nil
}

func readGate(t *testing.T, p profiles.ProfileSpec, b *book) *Gate {
	t.Helper()
	set, problems := profiles.Parse(supervised(p))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return New(&View{Profiles: set, Catalog: catalog.Build(nil)}, Options{Recorder: b, Caller: &fakeCaller{}, Reader: fakeReader{
		"docs resources/list": `{"resources":[{"uri":"doc://a","name":"a","size":12345678901234567890,"server":"mail","_meta":{"x":1}},7],"cut":true,"_meta":{}}`,
		"mail resources/list": `{"resources":[{"uri":"mail://1","name":"one"}]}`,
		"docs resources/read": `{"contents":[{"uri":"doc://a","text":"hello"},{"uri":"doc://b","mimeType":"image/png","blob":"aGk="},{"uri":"doc://c","mimeType":"application/pdf","blob":"aGk="}]}`,
		"docs prompts/get":    `{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"say it"}}]}`,
	}})
}

func TestReadAsksWhatPolicyAllows(t *testing.T) {
	for _, row := range []struct{ name, path, args, want string }{
		{"a list", "docs__resources/list", `{}`, `{"cut":true,"resources":[{"name":"a","server":"docs","size":12345678901234567890,"uri":"doc://a"}]}`},
		{"a list of all servers", "resources/list", `{}`, `{"resources":[{"name":"a","server":"docs","size":12345678901234567890,"uri":"doc://a"},{"name":"one","server":"mail","uri":"mail://1"}],"skipped":[{"server":"down","why":"it is not connected"}]}`},
		{"a prompt", "docs__prompts/get", `{"name":"p","arguments":{"a":"b"}}`, `{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"say it"}}]}`},
	} {
		b := new(book)
		g := readGate(t, profiles.ProfileSpec{}, b)
		answer, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: row.path, Args: json.RawMessage(row.args)})
		if err != nil || string(answer.Structured) != row.want {
			t.Errorf("%s: got %s, %v", row.name, answer.Structured, err)
		}
		b.records = slices.DeleteFunc(b.records, func(r ledger.Record) bool { return row.path == "resources/list" && r.Server != "" }) // of its parts
		if got := b.events(); got != "run_started intent outcome:done" {
			t.Errorf("%s: recorded %s", row.name, got)
		}
	}
}

func TestReadGivesTextAndMedia(t *testing.T) {
	b := new(book)
	g := readGate(t, profiles.ProfileSpec{}, b)
	answer, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: "docs__resources/read", Args: json.RawMessage(`{"uri":"doc://a"}`)})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, c := range answer.Content {
		kinds = append(kinds, c.Type)
	}
	if answer.Text() != "hello" || !slices.Equal(kinds, []string{"text", "image", "resource"}) || answer.Content[2].Resource.Blob != "aGk=" {
		t.Errorf("got %q, %v", answer.Text(), kinds)
	}
	rec, want := b.records[1], []string{"docs", "resources/read", `{"uri":"doc://a"}`, "low"}
	if diff := cmp.Diff(want, []string{rec.Server, rec.Tool, string(rec.Args), rec.Risk}); diff != "" {
		t.Errorf("recorded is another call (-want +got):\n%s", diff)
	}
}

func TestReadIsRefused(t *testing.T) {
	secret := profiles.RuleSpec{Tools: []string{"*__resources/read"}, When: &profiles.When{Expr: `args.uri.startsWith("file:///etc/")`}, Action: new("deny")}
	for _, row := range []struct {
		name       string
		p          profiles.ProfileSpec
		path, args string
		reason     approval.Reason // empty: an ArgumentError
	}{
		{"by the name of the server", profiles.ProfileSpec{Denylist: []string{"docs__*"}}, "docs__resources/read", `{"uri":"doc://a"}`, approval.Denied},
		{"by the method", profiles.ProfileSpec{Denylist: []string{"*__resources/*"}}, "docs__resources/list", `{}`, approval.Denied},
		{"by its argument", profiles.ProfileSpec{Rules: []profiles.RuleSpec{secret}}, "docs__resources/read", `{"uri":"file:///etc/passwd"}`, approval.Denied},
		{"not on the allowlist", profiles.ProfileSpec{Allowlist: []string{"mail__*"}}, "docs__prompts/get", `{"name":"p"}`, approval.Denied},
		{"the list of all is not on it either", profiles.ProfileSpec{Allowlist: []string{"mail__*"}}, "resources/list", `{}`, approval.Denied},
		{"nobody to ask", profiles.ProfileSpec{Asklist: []string{"docs__*"}}, "docs__resources/read", `{"uri":"doc://a"}`, approval.NoApprover},
		{"without its argument", profiles.ProfileSpec{}, "docs__resources/read", `{}`, ""},
		{"with another", profiles.ProfileSpec{}, "docs__resources/read", `{"uri":"doc://a","path":"x"}`, ""},
	} {
		b := new(book)
		g := readGate(t, row.p, b)
		_, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: row.path, Args: json.RawMessage(row.args)})
		var denied *approval.DeniedError
		var wrong *ArgumentError
		if errors.As(err, &denied) && denied.Reason != row.reason || !errors.As(err, &denied) && (row.reason != "" || !errors.As(err, &wrong)) {
			t.Errorf("%s: got %v", row.name, err)
		}
		if got := b.events(); strings.Contains(got, "intent") || !strings.HasSuffix(got, "refusal:refused") {
			t.Errorf("%s: recorded %s", row.name, got)
		}
	}
}

// The list of all servers leaves out what would need a person, and names no
// server that the profile hides.
func TestReadOfAllServersAsksNobody(t *testing.T) {
	b := new(book)
	g := readGate(t, profiles.ProfileSpec{Asklist: []string{"mail__*"}, Denylist: []string{"docs__*"}}, b)
	answer, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: "resources/list", Args: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Resources []any
		Skipped   []skipped
	}
	if err := json.Unmarshal(answer.Structured, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]skipped{{Server: "down"}, {Server: "mail"}}, got.Skipped, cmpopts.IgnoreFields(skipped{}, "Why")); diff != "" {
		t.Fatalf("skipped (-want +got):\n%s", diff)
	}
	if len(got.Resources) != 0 || !strings.Contains(got.Skipped[1].Why, "asklist") {
		t.Errorf("got %s", answer.Structured)
	}
}

func TestAGateWithoutAReaderHasNoResources(t *testing.T) {
	b := new(book)
	g := newGate(t, profiles.Spec{}, &fakeCaller{}, b)
	_, err := g.Call(t.Context(), begin(t, g, ""), Call{Number: 1, Name: "fs__resources/list", Args: json.RawMessage(`{}`)})
	var failed *CallError
	if !errors.As(err, &failed) {
		t.Errorf("got %v", err)
	}
}

// A list of all servers is, server by server, decided, checked, announced and
// written down like a list of one.
func TestReadOfAllServersIsGatedServerByServer(t *testing.T) {
	b := new(book)
	g := readGate(t, profiles.ProfileSpec{Rules: []profiles.RuleSpec{
		{Tools: []string{"mail__resources/list"}, Action: new("allow"), Check: []string{`run.calls > 100`}},
		{Tools: []string{"docs__resources/list"}, Action: new("notify")},
	}}, b)
	answer, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 7, Name: "resources/list", Args: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"resources":[{"name":"a","server":"docs","size":12345678901234567890,"uri":"doc://a"}],` +
		`"skipped":[{"server":"down","why":"it is not connected"},{"server":"mail","why":"the check \"run.calls \u003e 100\" failed"}]}`
	if string(answer.Structured) != want {
		t.Errorf("got %s, want %s", answer.Structured, want)
	}
	recorded := map[string]string{}
	for _, r := range b.records[1:] {
		word := string(r.Event)
		if r.Outcome != "" {
			word += ":" + r.Outcome
		}
		if r.Notify {
			word += " announced"
		}
		if diff := cmp.Diff([]any{7, "r1.7", "resources/list", "low"}, []any{r.Call, r.Trace, r.Tool, r.Risk}); diff != "" {
			t.Errorf("recorded is another call (-want +got):\n%s", diff)
		}
		recorded[r.Server] += word + ";"
	}
	for server, want := range map[string]string{
		"":     "intent;outcome:done;",
		"docs": "intent announced;outcome:done announced;",
		"down": "intent;outcome:failed;",
		"mail": "refusal:refused;",
	} {
		if recorded[server] != want {
			t.Errorf("of server %q is recorded %s, want %s", server, recorded[server], want)
		}
	}
}

// A reader that must not be asked.
type noReads struct{ t *testing.T }

func (noReads) Offers(string) []string { return []string{"docs"} }

func (n noReads) Read(context.Context, string, string, string, json.RawMessage) (json.RawMessage, error) {
	n.t.Error("a server was read without a record")
	return nil, errors.New("unexpected")
}

// A lock lets the intent of the whole call pass and refuses those of servers.
type lock struct{ book }

func (l *lock) Record(ctx context.Context, all ...ledger.Record) error {
	for _, r := range all {
		if r.Event == ledger.Intent && r.Server != "" {
			return errors.New("disk full")
		}
	}
	return l.book.Record(ctx, all...)
}

func TestReadOfAllServersReadsNoneWithoutARecord(t *testing.T) {
	set, problems := profiles.Parse(supervised(profiles.ProfileSpec{}))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	g := New(&View{Profiles: set, Catalog: catalog.Build(nil)}, Options{Recorder: new(lock), Caller: &fakeCaller{}, Reader: noReads{t}})
	answer, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: "resources/list", Args: json.RawMessage(`{}`)})
	if err != nil || !strings.Contains(string(answer.Structured), `"why":"its record could not be written"`) {
		t.Errorf("got %s, %v", answer.Structured, err)
	}
}
