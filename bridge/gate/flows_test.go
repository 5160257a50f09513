package gate

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/profiles"
)

const salary = "Ada Lovelace earns 120000 a year, Grace Hopper 131000"

// flowing makes a gate whose server fs is private and whose server mail is external, under a
// policy with one rule about flows.
func flowing(t *testing.T, f profiles.FlowSpec, b *book) *Gate {
	reply, err := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": "a list\n" + salary + "\n"}}})
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t, supervised(profiles.ProfileSpec{Flows: []profiles.FlowSpec{f}}), &fakeCaller{reply: string(reply)}, b)
	view := g.View()
	view.Meanings = map[string]Meant{
		"fs":   {Labels: func(tool string) ([]string, bool) { return []string{"private"}, true }},
		"mail": {Labels: func(tool string) ([]string, bool) { return []string{"external"}, tool == "send" }},
	}
	return g
}

func aFlow(action, by string) profiles.FlowSpec {
	return profiles.FlowSpec{From: new("private"), To: new("external"), Action: &action, By: &by}
}

func callTo(t *testing.T, g *Gate, r *Run, number int, name string, args any) error {
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Call(t.Context(), r, Call{Number: number, Name: name, Args: text, Position: analysis.Position{Line: number}})
	return err
}

func sends(body string) any { return map[string]any{"body": body} }

// What was read at a private server does not get to an external one: as it is, encoded, or in parts. What
// was not read does.
func TestFlowsByContent(t *testing.T) {
	for _, row := range []struct {
		name  string
		sends []string
		want  string // of the reason why the last is denied
	}{
		{"something else", []string{"a mail about nothing that anybody has read here"}, ""},
		{"as it is", []string{"FYI: " + salary}, `private: 53 characters of fs__read salaries.md, line 2, go to mail__send`},
		{"encoded", []string{base64.StdEncoding.EncodeToString([]byte(salary))}, "in base64, go to mail__send"},
		{"in parts", []string{salary[:12], salary[12:24], salary[24:40]}, "in parts, go to mail__send"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := &book{}
			g := flowing(t, aFlow("deny", "content"), b)
			r := begin(t, g, "p")
			if err := callTo(t, g, r, 1, "fs__read", map[string]any{"path": "salaries.md"}); err != nil {
				t.Fatal(err)
			}
			var err error
			for i, body := range row.sends {
				if err = callTo(t, g, r, 2+i, "mail__send", sends(body)); err != nil && i < len(row.sends)-1 {
					t.Fatal(err)
				}
			}
			var refused *approval.DeniedError
			if errors.As(err, &refused) != (row.want != "") {
				t.Fatalf("the last call: %v", err)
			}
			last := b.records[len(b.records)-1]
			if row.want != "" && !strings.Contains(strings.Join(last.Reasons, "\n"), row.want) {
				t.Errorf("reasons %q, want %q", last.Reasons, row.want)
			}
			if strings.Contains(strings.Join(last.Reasons, "\n"), "Lovelace") {
				t.Errorf("the reason quotes what was read: %q", last.Reasons)
			}
		})
	}
}

// The context of a run is its session's; that of requests without a session, their principal's for eight hours;
// and a run that is resumed brings what it had read.
func TestFlowsByContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := flowing(t, aFlow("deny", "context"), &book{})
		begin := func(o Origin) *Run {
			o.ID, o.Profile, o.Reach = "r"+o.Session+o.Requester+time.Now().String(), "p", ByElicitation
			r, err := g.Begin(t.Context(), o, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		mail := func(r *Run) bool { return callTo(t, g, r, 9, "mail__send", sends("hello")) == nil }
		ann, late, bob := Origin{Session: "s1", Requester: "ann"}, Origin{Session: "s2", Requester: "ann", Brief: true}, Origin{Session: "s3", Requester: "bob", Brief: true}
		early := begin(ann)
		if !mail(early) {
			t.Error("nothing was read yet")
		}
		if err := callTo(t, g, begin(ann), 1, "fs__read", map[string]any{"path": "a"}); err != nil {
			t.Fatal(err)
		}
		if mail(early) || mail(begin(ann)) {
			t.Error("another run of the session has read it")
		}
		if !mail(begin(Origin{Session: "s4", Requester: "ann"})) || !mail(begin(late)) || !mail(begin(bob)) {
			t.Error("it is another session")
		}
		if err := callTo(t, g, begin(late), 1, "fs__read", map[string]any{"path": "a"}); err != nil {
			t.Fatal(err)
		}
		late.Session = "s5"
		if mail(begin(late)) || !mail(begin(bob)) {
			t.Error("requests without a session share their principal's context")
		}
		kept := begin(late)
		time.Sleep(provenance.Lasts + time.Minute)
		if !mail(begin(late)) {
			t.Error("eight hours are over")
		}
		o := kept.Origin
		again, err := g.Resume(t.Context(), o, nil, time.Now(), "")
		if err != nil {
			t.Fatal(err)
		}
		if mail(again) {
			t.Error("a run that is resumed has forgotten what was read before it began")
		}
		if err := g.EndSession("s1"); err != nil {
			t.Fatal(err)
		}
		if !mail(begin(ann)) {
			t.Error("the session has ended")
		}
	})
}

// A run that is resumed has read what its journal has.
func TestFlowsSurviveARestart(t *testing.T) {
	for by, body := range map[string]string{"content": salary, "context": "hello"} {
		g := flowing(t, aFlow("deny", by), &book{})
		before := begin(t, g, "p")
		o := before.Origin
		r, err := g.Resume(t.Context(), o, nil, time.Now(), "")
		if err != nil {
			t.Fatal(err)
		}
		r.Recall(analysis.Position{}, Past{Effect: Effect{Number: 1}, Server: "fs", Name: "read", Path: "fs__read", Labels: []string{"private"}}, nil,
			json.RawMessage(`{"content":[{"type":"text","text":"`+salary+`"}]}`))
		if err := callTo(t, g, r, 2, "mail__send", sends(body)); err == nil {
			t.Errorf("by %s: sent", by)
		}
	}
}

// A yes to what a call carries is for that call; one in a context is for calls like it in that context.
func TestFlowsAsk(t *testing.T) {
	for _, by := range []string{"content", "context"} {
		synctest.Test(t, func(t *testing.T) {
			b := &book{}
			g := flowing(t, aFlow("ask", by), b)
			r := begin(t, g, "p")
			r.Reach = ByElicitation
			if err := callTo(t, g, r, 1, "fs__read", map[string]any{"path": "salaries.md"}); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- callTo(t, g, r, 2, "mail__send", sends(salary)) }()
			synctest.Wait()
			asked := g.Broker().Take(r.ID)
			if len(asked) != 1 || asked[0].Decision.Because().Kind != profiles.KindFlow {
				t.Fatalf("asked %+v", asked)
			}
			if !strings.HasSuffix(asked[0].Items[0].Key.Revision, " p/flows/0 private") {
				t.Errorf("the yes is not bound to the flow: %q", asked[0].Items[0].Key.Revision)
			}
			if by == "content" && asked[0].Decision.Remember {
				t.Error("a yes to what a call carries may be remembered")
			}
			if _, err := g.Settle(t.Context(), asked[0].ID, asked[0].Digest(), approval.Verdict{Approve: true, Scope: approval.Once, By: "ann", Channel: "elicitation"}); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(b.records, func(rec ledger.Record) bool {
				return rec.Event == ledger.Intent && rec.Call == 2 && strings.HasPrefix(rec.Reasons[0], "private: ")
			}) {
				t.Error("the intent does not say what goes where")
			}
		})
	}
}

// pasts is a journal of what calls have left.
type pasts map[int]Past

func (p pasts) Asking() Entries  { return Entries{} }
func (p pasts) Sending() Entries { return Entries{} }
func (p pasts) Lease() int64     { return 0 }
func (p pasts) Ended(_ Reply, left Past) Entries {
	p[left.Effect.Number] = left
	return Entries{}
}

// recall has a run go on from what calls have left.
func (p pasts) recall(t *testing.T, g *Gate, o Origin) *Run {
	r, err := g.Resume(t.Context(), o, nil, time.Now(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range slices.Sorted(maps.Keys(p)) {
		r.Recall(analysis.Position{Line: number}, p[number], nil, json.RawMessage(`{"content":[]}`))
	}
	return r
}

// mails makes a call that may be asked about, and returns nil if it was not. Unless answer is nil, that is what the question gets.
func (p pasts) mails(t *testing.T, g *Gate, r *Run, number int, answer *approval.Verdict) (asked *approval.Request) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := g.Call(ctx, r, Call{Number: number, Name: "mail__send", Args: fmt.Appendf(nil, `{"body":"mail %d"}`, number), Position: analysis.Position{Line: number}, Journal: p})
		ended <- err
	}()
	synctest.Wait()
	if all := g.Broker().Take(r.ID); len(all) == 1 {
		asked = &all[0]
		if answer == nil {
			cancel()
		} else if _, err := g.Settle(t.Context(), asked.ID, asked.Digest(), *answer); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil && (asked == nil || answer != nil) {
		t.Fatal(err)
	}
	return asked
}

func (p pasts) reads(t *testing.T, g *Gate, r *Run, number int) {
	t.Helper()
	if _, err := g.Call(t.Context(), r, Call{Number: number, Name: "fs__read", Args: json.RawMessage(`{"path":"a"}`), Position: analysis.Position{Line: number}, Journal: p}); err != nil {
		t.Fatal(err)
	}
}

var (
	onlyYes   = &approval.Verdict{Approve: true, Scope: approval.Once, By: "ann", Channel: "elicitation"}
	andForget = &approval.Verdict{Approve: true, Scope: approval.Once, Forget: true, By: "ann", Channel: "elicitation"}
)

// A person who says so with a yes has what was read before forgotten: by the run, by those that begin later in its
// context, and after a restart. What is read later counts, and so does what another run has read itself.
func TestForgetting(t *testing.T) {
	for name, o := range map[string]Origin{"a session": {Session: "s1"}, "a principal": {Session: "s1", Requester: "ann", Brief: true}} {
		synctest.Test(t, func(t *testing.T) {
			b := &book{}
			g := flowing(t, aFlow("ask", "context"), b)
			begin := func(id string) *Run {
				o := o
				o.ID, o.Profile, o.Reach = id, "p", ByElicitation
				r, err := g.Begin(t.Context(), o, nil)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			asks := func(r *Run, number int) bool { return pasts{}.mails(t, g, r, number, nil) != nil }
			before, left := begin("before"), pasts{}
			left.reads(t, g, before, 1)
			time.Sleep(time.Minute)
			r := begin("r")
			left.reads(t, g, r, 1)
			left.mails(t, g, r, 2, onlyYes)
			if !asks(r, 3) || !asks(begin("beside"), 1) {
				t.Errorf("%s: a plain yes has it forgotten", name)
			}
			left.mails(t, g, r, 4, andForget)
			if asks(r, 5) || asks(begin("later"), 1) {
				t.Errorf("%s: it is not forgotten", name)
			}
			if !asks(before, 2) {
				t.Errorf("%s: another run has forgotten what it has read itself", name)
			}
			if !slices.ContainsFunc(b.records, func(rec ledger.Record) bool {
				return rec.Event == ledger.Verdict && rec.Call == 4 && rec.Approver == "ann" && rec.Answer == "yes, once, and what was read before is forgotten"
			}) {
				t.Errorf("%s: the log does not say who has forgotten it", name)
			}
			time.Sleep(time.Minute)
			other := begin("other")
			pasts{}.reads(t, g, other, 1)
			if again := left.recall(t, g, r.Origin); !asks(again, 6) {
				t.Errorf("%s: a run that goes on has forgotten what another has read since then", name)
			}
			if !asks(begin("last"), 1) {
				t.Errorf("%s: a run that goes on has had forgotten what another has read since then", name)
			}
			restarted := flowing(t, aFlow("ask", "context"), b)
			again := left.recall(t, restarted, r.Origin)
			if left.mails(t, restarted, again, 6, nil) != nil {
				t.Errorf("%s: after a restart it is not forgotten", name)
			}
			left.reads(t, restarted, again, 7) // at the same moment, by this clock
			if left.mails(t, restarted, again, 8, nil) == nil {
				t.Errorf("%s: what is read after it is forgotten, too", name)
			}
		})
	}
}

// Nobody forgets anything but a person who was asked because of it: with a yes to the call, and no wider one. What is
// read while they are asked counts.
func TestNobodyElseForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := flowing(t, aFlow("ask", "context"), &book{})
		begin := func(id string, reach Reach) *Run {
			r, err := g.Begin(t.Context(), Origin{ID: id, Session: "s1", Profile: "p", Reach: reach}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		r, left := begin("r", ByElicitation), pasts{}
		left.reads(t, g, r, 1)
		ended := make(chan error, 1)
		go func() { ended <- callTo(t, g, r, 2, "mail__send", sends("hello")) }()
		synctest.Wait()
		q := g.Broker().Take(r.ID)[0]
		for name, v := range map[string]approval.Verdict{
			"in the run":     {Approve: true, Scope: approval.RunScope, Count: 20, Forget: true},
			"in the session": {Approve: true, Scope: approval.SessionScope, Forget: true},
		} {
			if v.Valid(q, time.Now().Add(time.Hour)) == nil {
				t.Errorf("a yes %s may forget", name)
			}
		}
		time.Sleep(time.Minute)
		left.reads(t, g, begin("meanwhile", ByElicitation), 1)
		if _, err := g.Settle(t.Context(), q.ID, q.Digest(), *andForget); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if left.mails(t, g, r, 3, nil) == nil {
			t.Error("what was read while a person was asked is forgotten")
		}
	})
}

// Calls that wait together get one answer, though they were decided at different moments. With a yes that forgets, only
// what was read before those calls is forgotten that are asked about because of it: what the run has read between its
// mail and a call that waits for another reason counts.
func TestForgettingIsOfWhatWasAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := flowing(t, aFlow("ask", "context"), &book{})
		set, problems := profiles.Parse(supervised(profiles.ProfileSpec{Flows: []profiles.FlowSpec{aFlow("ask", "context")}, Asklist: []string{"fs__delete"}}))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		g.View().Profiles = set
		g.View().Meanings["fs"] = Meant{Labels: func(tool string) ([]string, bool) {
			if tool == "delete" {
				return nil, true
			}
			return []string{"private"}, true
		}}
		r := begin(t, g, "p")
		r.Reach = ByElicitation
		ended := make(chan error, 2)
		waits := func(number int, name string, args any) {
			go func() { ended <- callTo(t, g, r, number, name, args) }()
			synctest.Wait()
			time.Sleep(time.Second)
		}
		pasts{}.reads(t, g, r, 1)
		waits(2, "mail__send", sends("hello"))
		pasts{}.reads(t, g, r, 3)
		time.Sleep(time.Second)
		waits(4, "fs__delete", map[string]any{"path": "a"})
		asked := g.Broker().Take(r.ID)
		if len(asked) != 1 || len(asked[0].Items) != 2 || !asked[0].Items[0].Decision.Context || asked[0].Items[1].Decision.Context {
			t.Fatalf("asked %+v", asked)
		}
		if _, err := g.Settle(t.Context(), asked[0].ID, asked[0].Digest(), *andForget); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Fatal(err)
		}
		if (pasts{}).mails(t, g, r, 5, andForget) == nil {
			t.Fatal("what was read after the mail was decided is forgotten")
		}
		if (pasts{}).mails(t, g, r, 6, nil) != nil {
			t.Error("nothing was read since then, and it is not forgotten")
		}
	})
}

// A server of which nobody has said anything may be anything.
func TestUnlabelledServersCount(t *testing.T) {
	g := flowing(t, aFlow("deny", "context"), &book{})
	g.View().Meanings = nil
	r := begin(t, g, "p")
	if err := callTo(t, g, r, 1, "mail__send", sends("hello")); err != nil {
		t.Fatal(err)
	}
	if err := callTo(t, g, r, 2, "mail__send", sends("hello")); err == nil {
		t.Error("what mail answered may be private, and its tools external")
	}
}

// A script reads what a server says in the place of an answer, too: it counts as read there.
func TestFlowsFromErrors(t *testing.T) {
	for _, by := range []string{"content", "context"} {
		g := flowing(t, aFlow("deny", by), &book{})
		g.caller.(*fakeCaller).err = errors.New("cannot read " + salary)
		r := begin(t, g, "p")
		if err := callTo(t, g, r, 1, "fs__read", map[string]any{"path": "salaries.md"}); err == nil {
			t.Fatal("no error")
		}
		g.caller.(*fakeCaller).err = nil
		var refused *approval.DeniedError
		if err := callTo(t, g, r, 2, "mail__send", sends("FYI: "+salary)); !errors.As(err, &refused) {
			t.Errorf("by %s: %v", by, err)
		}
	}
}

// What an earlier run left behind a handle may be from any tool.
func TestFlowsFromEarlierRuns(t *testing.T) {
	g := flowing(t, aFlow("deny", "content"), &book{})
	r := begin(t, g, "p")
	g.ReadEarlier(r, 1, json.RawMessage(`"`+salary+`"`))
	var refused *approval.DeniedError
	if err := callTo(t, g, r, 2, "mail__send", sends("nothing of the kind, but something else")); err != nil {
		t.Fatal(err)
	}
	if err := callTo(t, g, r, 3, "mail__send", sends("FYI: "+salary)); !errors.As(err, &refused) || !strings.Contains(err.Error(), "codemode__read") {
		t.Errorf("%v", err)
	}
}

// What is left at a server that gives it to nobody goes out with a later call of that server that does, even after a restart.
func TestFlowsThroughAServerThatKeepsIt(t *testing.T) {
	g := flowing(t, aFlow("deny", "content"), &book{})
	g.View().Meanings = map[string]Meant{
		"mail": {Labels: func(string) ([]string, bool) { return []string{"private"}, true }},
		"fs":   {Labels: func(tool string) ([]string, bool) { return map[string][]string{"read": {"external"}}[tool], true }},
	}
	denied := func(err error) bool {
		var refused *approval.DeniedError
		return errors.As(err, &refused) && strings.Contains(err.Error(), "which call 2 has left at fs")
	}
	r := begin(t, g, "p")
	for number, call := range []struct {
		tool string
		args any
	}{{"mail__send", sends("all")}, {"fs__delete", map[string]any{"path": salary}}} {
		if err := callTo(t, g, r, 1+number, call.tool, call.args); err != nil {
			t.Fatal(err)
		}
	}
	if err := callTo(t, g, r, 3, "fs__read", map[string]any{"path": "1"}); !denied(err) {
		t.Errorf("what was left there is sent: %v", err)
	}
	again, err := g.Resume(t.Context(), r.Origin, nil, time.Now(), "")
	if err != nil {
		t.Fatal(err)
	}
	again.Recall(analysis.Position{}, Past{Effect: Effect{Number: 1}, Server: "mail", Name: "send", Path: "mail__send", Labels: []string{"private"}}, []byte(`{"body":"all"}`),
		json.RawMessage(`{"content":[{"type":"text","text":"`+salary+`"}]}`))
	again.Recall(analysis.Position{}, Past{Effect: Effect{Number: 2}, Server: "fs", Name: "delete", Path: "fs__delete"}, []byte(`{"path":"`+salary+`"}`), json.RawMessage(`{"content":[]}`))
	if err := callTo(t, g, again, 3, "fs__read", map[string]any{"path": "1"}); !denied(err) {
		t.Errorf("after a restart: %v", err)
	}
}

// The parts that were sent before a restart stand before those after it; those of a call that was refused do not.
func TestPartsSurviveARestart(t *testing.T) {
	for state, want := range map[string]bool{ledger.Done: true, ledger.Refused: false} {
		g := flowing(t, aFlow("deny", "content"), &book{})
		r, err := g.Resume(t.Context(), begin(t, g, "p").Origin, nil, time.Now(), "")
		if err != nil {
			t.Fatal(err)
		}
		r.Recall(analysis.Position{}, Past{Effect: Effect{Number: 1}, Server: "fs", Name: "read", Path: "fs__read", Labels: []string{"private"}}, nil,
			json.RawMessage(`{"content":[{"type":"text","text":"`+salary+`"}]}`))
		r.Recall(analysis.Position{}, Past{Effect: Effect{Number: 2, State: state}, Server: "mail", Name: "send", Path: "mail__send", Labels: []string{"external"}}, []byte(`{"body":"`+salary[:20]+`"}`), nil)
		if err := callTo(t, g, r, 3, "mail__send", sends(salary[20:40])); (err != nil) != want {
			t.Errorf("the first part was %s: %v", state, err)
		}
	}
}

// A script that was written before anything private was read can send what stands in it, a few times; not what it puts
// together from pieces of itself. One that came after may have it from there.
func TestWhatStandsInTheScript(t *testing.T) {
	g := flowing(t, aFlow("deny", "content"), &book{})
	spec := supervised(profiles.ProfileSpec{Rules: []profiles.RuleSpec{{Tools: []string{"mail__send"}, When: new(profiles.When), Action: new("deny")}}})
	if err := json.Unmarshal([]byte(`"'private' in flow.context && !flow.written"`), spec.Profiles["p"].Rules[0].When); err != nil {
		t.Fatal(err)
	}
	set, problems := profiles.Parse(spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	view := g.View()
	g.Replace(&View{Profiles: set, Catalog: view.Catalog, Meanings: view.Meanings})
	run := func(script string) *Run {
		r, err := g.Begin(t.Context(), Origin{ID: script, Session: "s1", Profile: "p", Reach: ByElicitation, Script: script}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, second := run(`for (const c of read) mail({body: c, to: "0123456789abcdef"});
		mail({body: "a \"quoted\"\nline", to: 17}); mail({body: [true, false]})`), ""
	if err := callTo(t, g, first, 1, "fs__read", map[string]any{"path": "a"}); err != nil {
		t.Fatal(err)
	}
	for number, args := range []any{sends("computed"), sends("e"), map[string]any{"body": "line", "to": 17}, map[string]any{"body": []bool{true, false, true}}} {
		if err := callTo(t, g, first, 2+number, "mail__send", args); err == nil {
			t.Errorf("%v does not stand in the script", args)
		}
	}
	stands := map[string]any{"body": "a \"quoted\"\nline", "to": 17}
	for number := range provenance.MaxWritten {
		if err := callTo(t, g, first, 10+number, "mail__send", stands); err != nil {
			t.Errorf("%v stands in the script: %v", stands, err)
		}
	}
	if err := callTo(t, g, first, 100, "mail__send", stands); err == nil {
		t.Error("a script may choose what it sends, over and over")
	}
	second = `mail({body: "a line"})`
	if err := callTo(t, g, run(second), 1, "mail__send", sends("a line")); err == nil {
		t.Error("whoever wrote the second script may have known what the first has read")
	}
}

// The record of a call says what was found in its arguments, whose it is, and how far anybody looked; it never has the text.
func TestRecordsSayWhatWasFound(t *testing.T) {
	b := &book{}
	g := flowing(t, profiles.FlowSpec{From: new("none"), To: new("external"), Action: new("deny"), By: new("content")}, b)
	r := begin(t, g, "p")
	for i, args := range []any{map[string]any{"path": "salaries.md"}, sends("FYI: " + salary), sends("nothing that anybody has read here")} {
		if err := callTo(t, g, r, i+1, []string{"fs__read", "mail__send", "mail__send"}[i], args); err != nil {
			t.Fatal(err)
		}
	}
	var intents []ledger.Record
	for _, rec := range b.records {
		if rec.Event == ledger.Intent {
			intents = append(intents, rec)
		}
	}
	for _, rec := range intents {
		if rec.Looked != ledger.LookedAll || rec.Written != nil {
			t.Errorf("call %d: looked %q, written %v", rec.Call, rec.Looked, rec.Written)
		}
	}
	want := []ledger.SourceMatch{{Call: 1, Argument: "body", Offset: 5, Length: len(salary), Labels: []string{"private"}}}
	if got := intents[1].Sources; !reflect.DeepEqual(got, want) {
		t.Errorf("what was sent again is recorded as %+v, want %+v", got, want)
	}
	if got := intents[2].Sources; len(got) != 0 {
		t.Errorf("of what nobody has read %+v is recorded", got)
	}
}

// Without such a rule nobody looks, and the record says so; where one asks for what was read before, it says whether the
// arguments are written in the script.
func TestRecordsSayThatNobodyLooked(t *testing.T) {
	for _, row := range []struct {
		by, looked string
		written    bool
	}{{"context", "", true}, {"content", ledger.LookedAll, false}} {
		b := &book{}
		g := flowing(t, profiles.FlowSpec{From: new("none"), To: new("external"), Action: new("deny"), By: &row.by}, b)
		r, err := g.Begin(t.Context(), Origin{ID: "r1", Session: "s1", Profile: "p", Script: `mail.send({body: "hello"})`, Brief: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := callTo(t, g, r, 1, "mail__send", sends("hello")); err != nil {
			t.Fatal(err)
		}
		for _, rec := range b.records {
			if rec.Event == ledger.RunStarted && !rec.Brief {
				t.Error("it is not recorded that the session is the request's")
			}
			if rec.Event == ledger.Intent && (rec.Looked != row.looked || (rec.Written != nil) != row.written || row.written && !*rec.Written) {
				t.Errorf("by %s: looked %q, written %v", row.by, rec.Looked, rec.Written)
			}
		}
	}
}
