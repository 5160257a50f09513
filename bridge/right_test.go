package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/bridge/seal"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// under makes a bridge of the fleet one of a configuration, whose server a is
// what the identity says.
func (f *fleet) under(name, configuration, a string, spec profiles.Spec) func(*testing.T, ...func(*Options)) *bench {
	return func(t *testing.T, change ...func(*Options)) *bench {
		t.Helper()
		return f.bridge(t, name, spec, append([]func(*Options){func(o *Options) {
			view := o.Gate.View()
			view.Identities = map[string]string{"a": a, "b": "b"}
			up := o.Upstreams.(*upstreams)
			o.Gate = gate.New(view, gate.Options{Caller: up, Reader: up, Recorder: f.records, Approvers: func() bool { return true },
				Configuration: gate.Configuration{ID: "id " + configuration, Name: configuration},
				Broker:        f.broker(f.requests, name, "id "+configuration)})
		}}, change...)...)
	}
}

// away starts a script at a bridge and ends the bridge once the script waits
// for n people.
func (f *fleet) away(t *testing.T, b *bench, code string, n int) string {
	t.Helper()
	id := f.startPaused(t, b, code, n)
	waitUntil(t, func() bool { r, ok := b.roster.lookup(id); return ok && r.quiet() })
	b.Close(0)
	return id
}

// A run belongs to the configuration that it began with: whatever becomes of its
// questions, a bridge of another one does nothing with it.
func TestARunBelongsToItsConfiguration(t *testing.T) {
	for answer, verdict := range map[string]*approval.Verdict{"yes": {Approve: true}, "no": {Reason: approval.Declined}, "nothing": nil} {
		t.Run(answer, func(t *testing.T) {
			f := newFleet()
			id := f.away(t, f.under("one", "staging", "s", queued())(t), `return await codemode.a__echo({n: 1})`, 1)
			if verdict != nil {
				f.answer(t, f.open(t, 1)[0], *verdict)
			}
			other := f.under("two", "production", "p", profiles.Spec{})(t)
			elsewhere := func(how string, err error) {
				t.Helper()
				if e := (*ElsewhereError)(nil); !errors.As(err, &e) || e.Configuration.Name != "staging" || !strings.Contains(err.Error(), "another configuration, staging") {
					t.Errorf("%s: %v", how, err)
				}
			}
			_, err := other.Resume(t.Context(), id, "the test", nil)
			elsewhere("runs resume", err)
			elsewhere("the page", other.ResumeInBackground(t.Context(), id, "ann"))
			elsewhere("runs cancel", other.CancelRun(t.Context(), id, "ann"))
			_, err = other.Replay(t.Context(), id, func(replay.Step) {})
			elsewhere("runs replay", err)
			for what, c := range map[string]claimant{"its principal": {principal: "ci"}, "a sealed state": {principal: "ci", sealed: true}, "nobody": {}} {
				if _, err := other.runner.resume(t.Context(), id, c); !errors.Is(err, ErrNoRun) {
					t.Errorf("eval_resume of %s: %v", what, err)
				}
			}
			if _, ok := other.Run(t.Context(), id); ok || len(other.Runs(t.Context())) > 0 || other.Status(t.Context()).Paused > 0 {
				t.Errorf("it is listed: %v", other.Runs(t.Context()))
			}
			if last, err := other.leases.answeredUnowned(t.Context(), time.Time{}); err != nil || len(last) > 0 {
				t.Errorf("it is moved on: %v, %v", last, err)
			}
			if made := other.up.made(); len(made) > 0 {
				t.Errorf("made %q", made)
			}
			own := f.under("three", "staging", "s", profiles.Spec{})(t)
			if _, ok := own.Run(t.Context(), id); !ok {
				t.Error("a bridge of its own configuration does not know it")
			}
			if err := own.CancelRun(t.Context(), id, "ann"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A run of a release that wrote down no configuration can be ended and not go on.
func TestARunOfNoConfiguration(t *testing.T) {
	f := newFleet()
	id := f.away(t, f.bridge(t, "one", queued()), `return await codemode.a__echo({n: 1})`, 1)
	f.answer(t, f.open(t, 1)[0], yes)
	now := f.under("two", "work", "a", queued())(t)
	if _, err := now.Resume(t.Context(), id, "the test", nil); err == nil || !strings.Contains(err.Error(), "began in an older release") {
		t.Errorf("it goes on: %v", err)
	}
	if err := now.CancelRun(t.Context(), id, "ann"); err != nil {
		t.Error(err)
	}
	if left, err := f.records.Runs(t.Context()); err != nil || len(left) > 0 || len(now.up.made()) > 0 {
		t.Errorf("left: %v, %v; made %q", left, err, now.up.made())
	}
}

// A server that became another one gets no call of a run that began before, and
// what waits for it ends at once.
func TestAServerThatBecameAnother(t *testing.T) {
	const code = `try { return await codemode.a__echo({n: 1}) } catch (e) { return e.reason + ": " + e.message }`
	stale := func(t *testing.T, b *bench, got string) {
		t.Helper()
		if !strings.Contains(got, "stale: a__echo was not sent") || !strings.Contains(got, "became another one") {
			t.Errorf("got %s", got)
		}
		if made := b.up.made(); len(made) > 0 {
			t.Errorf("made %q", made)
		}
	}
	for _, row := range []struct {
		name   string
		answer *approval.Verdict
	}{{"unanswered", nil}, {"answered", &yes}} {
		t.Run("over a restart, "+row.name, func(t *testing.T) {
			f := newFleet()
			id := f.away(t, f.under("one", "work", "staging", queued())(t), code, 1)
			if row.answer != nil {
				f.answer(t, f.open(t, 1)[0], *row.answer)
			}
			second := f.under("two", "work", "production", queued())(t)
			res, err := second.Resume(t.Context(), id, "the test", nil)
			if err != nil {
				t.Fatal(err)
			}
			stale(t, second, string(res.StructuredContent.(json.RawMessage)))
			f.open(t, 0)
		})
	}
	t.Run("while a question is open", func(t *testing.T) {
		f := newFleet()
		b := f.under("one", "work", "staging", queued())(t)
		id := f.startPaused(t, b, code, 1)
		r, _ := b.roster.lookup(id)
		view := newView(t, queued())
		view.Identities = map[string]string{"a": "production", "b": "b"}
		b.Replace(view)
		<-r.done
		st, _ := b.Run(t.Context(), id)
		stale(t, b, string(st.Result))
		f.open(t, 0)
	})
}

// A no stays a no, and a policy that a run began with binds it, whatever the
// configuration says when the run goes on.
func TestARunKeepsItsPolicy(t *testing.T) {
	const code = `const got = [];
for (const n of [1, 2]) try { got.push(await codemode.a__echo({n})) } catch (e) { got.push(e.reason) }
try { await codemode.b__echo({}) } catch (e) { got.push(e.reason) }
return got`
	began := queued()
	began.Profiles["p"].Denylist = []string{"b__*"}
	for name, later := range map[string]profiles.Spec{
		"nothing":                   {},
		"a profile that allows all": {DefaultProfile: ptr("p"), Profiles: map[string]*profiles.ProfileSpec{"p": {}}},
		"the gate off":              {Enabled: new(bool), DefaultProfile: ptr("p"), Profiles: map[string]*profiles.ProfileSpec{"p": {}}},
		"another reason to ask": {DefaultProfile: ptr("p"), Profiles: map[string]*profiles.ProfileSpec{"p": {ElicitationFallback: ptr("queue"),
			Rules: []profiles.RuleSpec{{Tools: []string{"a__*"}, Action: ptr("ask"), Risk: ptr("medium")}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet()
			id := f.away(t, f.under("one", "work", "a", began)(t), code, 1)
			f.answer(t, f.open(t, 1)[0], approval.Verdict{Reason: approval.Declined, Text: "never"})
			second := f.under("two", "work", "a", later)(t)
			if err := second.ResumeInBackground(t.Context(), id, "the test"); err != nil {
				t.Fatal(err)
			}
			f.answer(t, f.open(t, 1)[0], yes) // the second call is asked about as well
			r, _ := second.roster.lookup(id)
			<-r.done
			st, _ := second.Run(t.Context(), id)
			if want := `"result":["declined","{\"n\":2}","denied"]`; !strings.Contains(string(st.Result), want) {
				t.Errorf("got  %s\nwant %s", st.Result, want)
			}
			if made := second.up.made(); fmt.Sprint(made) != `[a__echo{"n":2}]` {
				t.Errorf("made %q", made)
			}
		})
	}
}

// Going on with a run of nobody in particular takes its session or its secret,
// here and elsewhere.
func TestTheRightToARun(t *testing.T) {
	made, other := seal.NewSecret(), seal.NewSecret()
	secret, sum := made.Text, made.Hash
	nobodys := ownership{session: "s1", secret: sum}
	anns := ownership{principal: "ann", session: "s1", secret: sum}
	for _, row := range []struct {
		name string
		c    claimant
		of   ownership
		may  bool
	}{
		{"its session", claimant{session: "s1"}, nobodys, true},
		{"another session", claimant{session: "s2"}, nobodys, false},
		{"no session", claimant{}, nobodys, false},
		{"no session, of a run without one", claimant{}, ownership{}, false},
		{"its secret", claimant{session: "s2", secret: secret}, nobodys, true},
		{"another secret", claimant{session: "s2", secret: other.Text}, nobodys, false},
		{"a part of its secret", claimant{secret: secret[:20]}, nobodys, false},
		{"a secret, of a run that has none", claimant{secret: secret}, ownership{session: "s1"}, false},
		{"a state that we sealed", claimant{sealed: true}, nobodys, true},
		{"a principal", claimant{principal: "ann"}, nobodys, false},
		{"a principal with the secret", claimant{principal: "ann", secret: secret}, nobodys, false},
		{"its principal", claimant{principal: "ann", session: "s2"}, anns, true},
		{"another principal", claimant{principal: "bob", session: "s1", secret: secret, sealed: true}, anns, false},
		{"no principal", claimant{session: "s1", secret: secret}, anns, false},
		{"who runs the bridge", claimant{anyone: true}, anns, true},
	} {
		if got := row.c.may(row.of); got != row.may {
			t.Errorf("%s: may go on: %t", row.name, got)
		}
	}
}

// A paused answer carries the secret of a run that is nobody's in particular, in
// its own member, and that is the only way for another session.
func TestAnotherSessionNeedsTheSecret(t *testing.T) {
	f := newFleet()
	spec := queued()
	patience := profiles.Duration(50 * time.Millisecond)
	spec.ClientPatience = &profiles.Patience{Default: &patience}
	const code = `return await codemode.a__echo({n: 1})`
	for _, where := range []string{"the same bridge", "another bridge"} {
		t.Run(where, func(t *testing.T) {
			first := f.under("first of "+where, "work", "a", spec)(t)
			alice := first.connect(t, nil)
			out, _ := call(t, alice, "eval", map[string]any{"code": code})
			var paused struct{ Status, Run, Resume, Next string }
			if err := json.Unmarshal([]byte(out), &paused); err != nil || paused.Status != "paused" || len(paused.Resume) < 26 || strings.Count(out, paused.Resume) != 1 {
				t.Fatalf("got %s", out)
			}
			if kept, entries, err := f.records.Read(t.Context(), paused.Run); err != nil || strings.Contains(fmt.Sprintf("%+v %s", kept, entries[0].Body), paused.Resume) {
				t.Errorf("the secret itself is kept: %v", err)
			}
			b := first
			if where == "another bridge" {
				waitUntil(t, func() bool { r, ok := first.roster.lookup(paused.Run); return ok && r.quiet() })
				first.Close(0)
				b = f.under("second", "work", "a", spec)(t)
			}
			mallory := b.connect(t, nil)
			for _, wrong := range []map[string]any{{"run": paused.Run}, {"run": paused.Run, "resume": ""}, {"run": paused.Run, "resume": strings.Repeat("a", 26)}} {
				if out, failed := call(t, mallory, "eval_resume", wrong); !failed || !strings.Contains(out, "began in another session") {
					t.Errorf("%v: %s", wrong, out)
				}
			}
			f.answer(t, f.open(t, 1)[0], yes)
			later := b.connect(t, nil)
			if out, failed := call(t, later, "eval_resume", map[string]any{"run": paused.Run, "resume": paused.Resume}); failed || !strings.Contains(out, `{\"n\":1}`) {
				t.Errorf("with the secret: %s", out)
			}
			if made := append(first.up.made(), b.up.made()...); where == "another bridge" && len(made) != 1 {
				t.Errorf("made %q", made)
			}
		})
	}
}

// Every record of a run says under which configuration it was written, in which of
// the client's traces, and what the server was that a call went to.
func TestRecordsSayWhose(t *testing.T) {
	f := newFleet()
	b := f.under("one", "work", "staging", profiles.Spec{})(t)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, parent := range []string{"00-" + trace + "-00f067aa0ba902b7-01", "00-" + trace, "no trace\n"} {
		_, err := b.connect(t, nil).CallTool(t.Context(), &mcp.CallToolParams{Meta: mcp.Meta{"traceparent": parent}, Name: "eval",
			Arguments: map[string]any{"code": `return await codemode.a__echo({n: 1})`}})
		if err != nil {
			t.Fatal(err)
		}
	}
	var traces []string
	for row, err := range f.records.Rows(t.Context(), ledger.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		r := row.Record
		if r.Configuration != "id work" {
			t.Errorf("a record of %s is of configuration %q", r.Event, r.Configuration)
		}
		if sent := r.Event == ledger.Intent || r.Event == ledger.Outcome; sent != (r.Identity == "staging") {
			t.Errorf("a record of %s says that the server is %q", r.Event, r.Identity)
		}
		if r.Event == ledger.RunStarted {
			traces = append(traces, r.TraceID)
		}
	}
	if want := []string{trace, "", ""}; !slices.Equal(traces, want) {
		t.Errorf("the traces are %q, want %q", traces, want)
	}
}
