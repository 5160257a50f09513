package questions

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/enrolment/wire"
	"codemode-bridge/profiles"
)

const conf = "id team"

// someone is an approver whose token is their name.
func someone(name string, risk profiles.Risk) approval.Approver {
	return approval.Approver{Name: name, Role: approval.Decide, Risk: risk, Token: sha256.Sum256([]byte(name))}
}

func people(t *testing.T, configuration string, all ...approval.Approver) *approval.Approvers {
	t.Helper()
	a, err := approval.NewApprovers(approval.Realm{Configuration: configuration}, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A stage is a centre, and the laptop ann with a bridge of its own.
type stage struct {
	t              *testing.T
	centre, laptop *approval.Memory
	desk           *Desk
	other          *Desk            // of another centre with the same store; nil: there is one
	broker         *approval.Broker // of the laptop
	office         *approval.Broker // of the centre

	mu     sync.Mutex // guards what follows
	policy bool
	known  *approval.Approvers
	there  *approval.Approvers
	asked  int
	first  []byte        // what the centre was asked first
	broken error         // the centre cannot be reached
	change func(*Answer) // of an answer on its way
	told   []string      // what became of verdicts
	stop   func()
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, centre: new(approval.Memory), laptop: new(approval.Memory), policy: true,
		known: people(t, conf, someone("carol", 0), someone("low", profiles.Low)), there: people(t, "centre", someone("carol", 0), someone("low", profiles.Critical), someone("eve", 0))}
	s.desk = NewDesk(DeskOptions{Store: s.centre, Shows: func(e approval.StoredRequest) {
		if e.Script == "panic" {
			panic("it cannot be shown")
		}
	}})
	s.broker = approval.New(approval.Options{Store: s.laptop, Bridge: "b1", Configuration: conf, Approvers: func() *approval.Approvers { return locked(s, &s.known) }})
	s.broker.OnJudged(func(_ approval.StoredRequest, v approval.Verdict, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, fmt.Sprintf("%s: %v", v.By, err))
	})
	s.office = approval.New(approval.Options{Store: s.centre, Bridge: "office", Configuration: "centre", Approvers: func() *approval.Approvers { return locked(s, &s.there) }})
	return s
}

// locked reads what the stage's mutex guards.
func locked[T any](s *stage, what *T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *what
}

// set changes it.
func (s *stage) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// ask carries an Asking to the centre and the Answer back, as text.
func (s *stage) ask(ctx context.Context, in, out any) error {
	s.mu.Lock()
	s.asked++
	desk, broken := s.desk, s.broken
	if s.other != nil && s.asked%2 == 0 {
		desk = s.other
	}
	s.mu.Unlock()
	if broken != nil {
		return broken
	}
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	s.set(func() {
		if s.first == nil {
			s.first = text
		}
	})
	answer, err := desk.Ask(ctx, "ann", "Ann", text)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err() // the laptop has hung up
	}
	said := answer.(Answer)
	s.mu.Lock()
	if s.change != nil {
		s.change(&said)
	}
	s.mu.Unlock()
	if text, err = json.Marshal(said); err == nil {
		err = json.Unmarshal(text, out)
	}
	return err
}

// begin has the laptop ask until end.
func (s *stage) begin() {
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan struct{})
	l := NewLaptop(LaptopOptions{Store: s.laptop, Configuration: conf, Approvers: func() bool { return locked(s, &s.known).Any() },
		Lead: func() (func(), error) { return func() {}, nil },
		Centre: func() (Centre, error) {
			return Centre{Sender{"ann", "Ann"}, "https://centre.test", locked(s, &s.policy), s.ask}, nil
		}})
	go func() { defer close(ended); l.Run(ctx) }()
	s.stop = func() { cancel(); <-ended }
}

func request(change ...func(*approval.Request)) approval.Request {
	d := profiles.Decision{Disposition: profiles.Ask, Risk: profiles.Medium, Timeout: time.Minute, Manual: true}
	item := approval.Item{Call: 1, Server: "git", Tool: "push", Script: "git__push", Decision: d, Shown: canon.Shown{JSON: json.RawMessage(`{"to":"main"}`)},
		Key: approval.Key{Configuration: conf, Session: "s1", Server: "git", Tool: "push", Args: canon.Digest{1}}}
	r := approval.Request{Run: "r1", Server: "git", Tool: "push", Script: "git__push", Decision: d, Items: []approval.Item{item}}
	for _, c := range change {
		c(&r)
	}
	return r
}

type outcome struct {
	v   approval.Verdict
	err error
}

// puts has the laptop's bridge ask.
func (s *stage) puts(ctx context.Context, r approval.Request) <-chan outcome {
	c := make(chan outcome, 1)
	go func() { v, err := s.broker.Ask(ctx, r); c <- outcome{v, err} }()
	return c
}

// waits returns the requests that are open at the centre.
func (s *stage) waits() []approval.StoredRequest {
	s.t.Helper()
	time.Sleep(2 * time.Second)
	synctest.Wait()
	all, err := s.centre.Requests(s.t.Context(), approval.Filter{Open: time.Now()})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

func (s *stage) only() approval.StoredRequest {
	s.t.Helper()
	all := s.waits()
	if len(all) != 1 {
		s.t.Fatalf("%d requests are open at the centre", len(all))
	}
	return all[0]
}

// says answers a request at the centre, and returns what its author is told.
func (s *stage) says(token string, e approval.StoredRequest, v approval.Verdict) (approval.StoredRequest, error) {
	s.t.Helper()
	who, ok := s.there.Authenticate(token)
	if !ok {
		s.t.Fatalf("%s is nobody at the centre", token)
	}
	v, err := s.there.Sign(who, e.Request, v, "page", time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = s.office.Settle(s.t.Context(), e.ID, e.Digest(), v)
	var relayed *approval.RelayedError
	if !errors.As(err, &relayed) {
		s.t.Fatalf("the centre judges it itself: %v", err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	return s.office.Outcome(ctx, e.ID, relayed.ID)
}

var yes = approval.Verdict{Approve: true, Typed: "push"}

func staged(t *testing.T, do func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.begin()
		defer func() { s.stop() }()
		do(t, s)
	})
}

func pending(c <-chan outcome) bool {
	synctest.Wait()
	select {
	case <-c:
		return false
	default:
		return true
	}
}

func TestAVerdictComesDown(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		c := s.puts(t.Context(), request())
		e := s.only()
		if e.Configuration != "laptop ann of Ann" || !strings.HasPrefix(e.Bridge, "laptop:ann ") || e.Run != "ann-r1" || string(e.Items[0].Shown.JSON) != `{"to":"main"}` {
			t.Errorf("the centre shows %+v", e)
		}
		began := time.Now()
		e, err := s.says("carol", e, yes)
		if err != nil || e.Verdict == nil || e.Verdict.By != "carol" || !e.Verdict.Approve {
			t.Fatalf("carol is told %+v, %v", e.Verdict, err)
		}
		got := <-c
		if !got.v.Approve || got.v.By != "carol" || got.v.Channel != "page" || !got.v.Strong {
			t.Errorf("the call gets %+v", got)
		}
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("it took %v", d)
		}
		if all := s.waits(); len(all) != 0 {
			t.Errorf("still open: %d", len(all))
		}
		before := locked(s, &s.asked)
		time.Sleep(time.Hour)
		if asked := locked(s, &s.asked); asked != before {
			t.Errorf("with nothing to ask, the centre was asked %d times", asked-before)
		}
	})
}

// What the centre could not show stays at the laptop, and the other questions go up.
func TestAQuestionThatCannotBeShown(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		large := s.puts(ctx, request(func(r *approval.Request) {
			r.Run = "r2"
			r.Items = slices.Repeat(r.Items, maxItems+1)
			for i := range r.Items {
				r.Items[i].Call = i + 1
			}
		}))
		small := s.puts(t.Context(), request())
		if _, err := s.says("carol", s.only(), yes); err != nil {
			t.Fatal(err)
		}
		if got := <-small; !got.v.Approve {
			t.Errorf("the other question gets %+v", got)
		}
		if !pending(large) {
			t.Error("the large one does not wait any more")
		}
		cancel()
		<-large
	})
}

// A no, and a wider yes, are what they would be at the laptop.
func TestScopes(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		c := s.puts(t.Context(), request())
		if e, err := s.says("carol", s.only(), approval.Verdict{Text: "not today"}); err != nil || e.Verdict == nil || e.Verdict.Approve {
			t.Errorf("a no: %+v, %v", e.Verdict, err)
		}
		if got := <-c; got.v.Approve || got.v.Reason != approval.Declined || got.v.Text != "not today" {
			t.Errorf("a no: %+v", got)
		}
		c = s.puts(t.Context(), request(func(r *approval.Request) { r.Run = "r2" }))
		wide := yes
		wide.Scope = approval.SessionScope
		if _, err := s.says("carol", s.only(), wide); err == nil || !strings.Contains(err.Error(), "counts only once") {
			t.Errorf("a yes for the session where policy has none: %v", err)
		}
		if !pending(c) {
			t.Error("it counted")
		}
	})
}

// The laptop's own configuration says who may answer.
func TestWhoMayAnswer(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		c := s.puts(t.Context(), request())
		e := s.only()
		for who, want := range map[string]string{"eve": "has no approver eve", "low": "low may not allow calls of medium risk"} {
			if _, err := s.says(who, e, yes); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s is told %v", who, err)
			}
		}
		owner := yes
		owner.By, owner.Strong, owner.Credential, owner.Channel = "owner", true, "owner:"+conf, "page"
		_, err := s.office.Settle(t.Context(), e.ID, e.Digest(), owner)
		var relayed *approval.RelayedError
		if !errors.As(err, &relayed) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := s.office.Outcome(ctx, e.ID, relayed.ID); err == nil || !strings.Contains(err.Error(), "owner is none") {
			t.Errorf("the owner is told %v", err)
		}
		if !pending(c) {
			t.Error("it counted")
		}
		if e = s.only(); len(e.Unjudged()) != 0 {
			t.Errorf("not judged: %v", e.Unjudged())
		}
	})
}

// Whoever uses the laptop is not somebody else.
func TestThePersonOfTheLaptop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.set(func() { s.known, s.there = people(t, conf, someone("Ann", 0)), people(t, "centre", someone("Ann", 0)) })
		quorum := func(r *approval.Request) {
			r.Decision.Quorums = []profiles.Quorum{{Need: 1}}
			r.Items[0].Decision = r.Decision
		}
		s.begin()
		defer func() { s.stop() }()
		c := s.puts(t.Context(), request(quorum))
		if _, err := s.says("Ann", s.only(), yes); err == nil || !strings.Contains(err.Error(), "somebody else must allow it") {
			t.Errorf("Ann is told %v", err)
		}
		if !pending(c) {
			t.Error("it counted")
		}
	})
}

// Answered here, withdrawn or over, a question vanishes there.
func TestQuestionsVanish(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		ctx, cancel := context.WithCancel(t.Context())
		s.puts(ctx, request())
		e := s.only()
		cancel()
		if all := s.waits(); len(all) != 0 {
			t.Error("a withdrawn question is still there")
		}
		if _, err := s.office.Settle(t.Context(), e.ID, e.Digest(), approval.Verdict{Approve: true, Strong: true, By: "carol", Credential: "token:1"}); err == nil || errors.Is(err, approval.ErrUnjudged) {
			t.Errorf("an answer to it: %v", err)
		}

		c := s.puts(t.Context(), request(func(r *approval.Request) { r.Run = "r2" }))
		e = s.only()
		own, _ := s.laptop.Requests(t.Context(), approval.Filter{Open: time.Now()})
		who, _ := s.known.Authenticate("carol")
		v, err := s.known.Sign(who, own[0].Request, yes, "terminal", time.Now())
		if err == nil {
			_, err = s.broker.Settle(t.Context(), own[0].ID, own[0].Digest(), v)
		}
		if err != nil || !(<-c).v.Approve {
			t.Fatal(err)
		}
		s.waits()
		all, _ := s.centre.Requests(t.Context(), approval.Filter{ID: e.ID})
		if len(all) != 1 || all[0].Verdict == nil || all[0].Verdict.By != "carol" || all[0].Verdict.Channel != "terminal" || all[0].Verdict.Credential != "" {
			t.Errorf("what the centre has of the answer at the laptop: %+v", all)
		}

		c = s.puts(t.Context(), request(func(r *approval.Request) { r.Run = "r3" }))
		s.only()
		if got := <-c; got.v.Reason != approval.Timeout {
			t.Errorf("unanswered: %+v", got)
		}
		if all := s.waits(); len(all) != 0 {
			t.Error("a question whose time is over is still there")
		}
	})
}

// What a hostile centre makes of its answers counts for nothing.
func TestHostileCentre(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *stage, a *Answer)
		told   string // by the laptop's bridge; empty: it hears of nothing
	}{
		"a verdict on another request": {func(s *stage, a *Answer) {
			for i := range a.Verdicts {
				a.Verdicts[i].ID = "q-of-nobody"
			}
		}, ""},
		"about other calls": {func(s *stage, a *Answer) {
			for i := range a.Verdicts {
				a.Verdicts[i].About[0] ^= 1
			}
		}, "carol: " + approval.ErrDigest.Error()},
		"in another's name": {func(s *stage, a *Answer) {
			for i := range a.Verdicts {
				a.Verdicts[i].Said.By = "low"
			}
		}, "low: the configuration that asks knows low by another token or login"},
		"without a credential": {func(s *stage, a *Answer) {
			for i := range a.Verdicts {
				a.Verdicts[i].Said.Credential = ""
			}
		}, ""},
		"a credential that is made up": {func(s *stage, a *Answer) {
			for i := range a.Verdicts {
				a.Verdicts[i].Said.Credential = "token:00"
			}
		}, "carol: the configuration that asks knows carol by another token or login"},
		"the laptop's owner": {func(s *stage, a *Answer) {
			for i := range a.Verdicts {
				a.Verdicts[i].Said.By, a.Verdicts[i].Said.Credential = "owner", "owner:"+conf
			}
		}, ""},
		"wider than was offered": {func(s *stage, a *Answer) {
			for i := range a.Verdicts {
				a.Verdicts[i].Said.Scope, a.Verdicts[i].Said.Count = approval.RunScope, 100
			}
		}, "carol: a yes to this call counts only once"},
		"without a name": {func(s *stage, a *Answer) {
			for i := range a.Verdicts {
				a.Verdicts[i].Relayed = ""
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, func(t *testing.T, s *stage) {
				c := s.puts(t.Context(), request())
				e := s.only()
				s.mu.Lock()
				s.change = func(a *Answer) { test.change(s, a) }
				s.mu.Unlock()
				if _, err := s.says("carol", e, yes); err == nil {
					t.Error("carol is told that it counts")
				}
				if !pending(c) {
					t.Fatal("it counted")
				}
				s.mu.Lock()
				told, asked := strings.Join(s.told, "; "), s.asked
				s.mu.Unlock()
				if test.told == "" && told != "" || test.told != "" && !strings.Contains(told, test.told) {
					t.Errorf("the bridge says %q", told)
				}
				time.Sleep(20 * time.Second)
				if now := locked(s, &s.asked); now > asked+25 {
					t.Errorf("the centre was asked %d times in 20 seconds", now-asked)
				}
			})
		})
	}
}

// A verdict that comes twice, or once the question is another one, is none.
func TestReplayedVerdict(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		var kept []Given
		s.set(func() { s.change = func(a *Answer) { kept = append(kept, a.Verdicts...) } })
		c := s.puts(t.Context(), request())
		if _, err := s.says("carol", s.only(), yes); err != nil || !(<-c).v.Approve || len(locked(s, &kept)) == 0 {
			t.Fatalf("%v, %v", err, locked(s, &kept))
		}
		again := s.puts(t.Context(), request(func(r *approval.Request) { r.Run, r.Items[0].Key.Args = "r2", canon.Digest{2} }))
		s.only()
		own, _ := s.laptop.Requests(t.Context(), approval.Filter{Open: time.Now()})
		s.mu.Lock()
		s.change = func(a *Answer) {
			old := kept[0]
			old.ID = own[0].ID
			a.Verdicts = append(a.Verdicts, kept[0], old)
		}
		s.mu.Unlock()
		time.Sleep(25 * time.Second)
		if !pending(again) {
			t.Fatal("it counted again")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.told) != 2 || !strings.Contains(s.told[1], approval.ErrDigest.Error()) {
			t.Errorf("the bridge says %q", s.told)
		}
	})
}

// A laptop speaks for itself alone, within bounds.
func TestHostileLaptop(t *testing.T) {
	raw := func(change func(*Asking)) []byte {
		r := request()
		a := Asking{Configuration: conf, Questions: []Question{{ID: "q1", Left: time.Minute, Request: &r}}}
		change(&a)
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, change := range map[string]func(*Asking){
		"no calls":                 func(a *Asking) { a.Questions[0].Request.Items = nil },
		"another configuration's":  func(a *Asking) { a.Questions[0].Request.Items[0].Key.Configuration = "centre" },
		"no id":                    func(a *Asking) { a.Questions[0].ID = "" },
		"a path as id":             func(a *Asking) { a.Questions[0].ID = "../q" },
		"time without end":         func(a *Asking) { a.Questions[0].Left = 1 << 62 },
		"too many":                 func(a *Asking) { a.Questions = slices.Repeat(a.Questions, MaxOpen+1) },
		"what cannot be shown":     func(a *Asking) { a.Questions[0].Request.Script = "panic" },
		"people that nobody names": func(a *Asking) { a.Questions[0].Request.Decision.Quorums = []profiles.Quorum{{Need: 2, InOrder: true}} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			_, err := s.desk.Ask(t.Context(), "ann", "Ann", raw(change))
			if no := (*wire.Refusal)(nil); !errors.As(err, &no) {
				t.Errorf("it is taken: %v", err)
			}
			if all, _ := s.centre.Requests(t.Context(), approval.Filter{}); len(all) != 0 {
				t.Errorf("kept: %+v", all)
			}
		})
	}
	t.Run("text", func(t *testing.T) {
		s := newStage(t)
		if _, err := s.desk.Ask(t.Context(), "ann", "Ann", []byte("[")); err == nil {
			t.Error("it is taken")
		}
		_, err := s.desk.Ask(t.Context(), "ann", "Ann", raw(func(a *Asking) {
			a.Questions[0].Request.Client = "\x1b[2Jme\u202e"
			a.Questions[0].Request.Items[0].Shown.JSON = json.RawMessage(`{"to":"a\u001bb\\u{1B}"}`)
			a.Questions[0].Request.Items[0].Always = &profiles.RuleSpec{}
		}))
		all, _ := s.centre.Requests(t.Context(), approval.Filter{})
		if err != nil || len(all) != 1 {
			t.Fatal(err, all)
		}
		if e := all[0]; strings.ContainsAny(e.Client, "\x1b\u202e") || string(e.Items[0].Shown.JSON) != `{"to":"a\\u{1B}b\\u{1B}"}` || e.Items[0].Always != nil {
			t.Errorf("the centre shows %q %s", e.Client, e.Items[0].Shown.JSON)
		}
	})
	t.Run("configurations without end", func(t *testing.T) {
		s := newStage(t)
		taken := 0
		for n := range 10 * maxLaptop {
			_, err := s.desk.Ask(t.Context(), "ann", "Ann", raw(func(a *Asking) {
				a.Configuration = fmt.Sprint("id made-up-", n)
				a.Questions[0].Request.Items[0].Key.Configuration = a.Configuration
			}))
			if no := (*wire.Refusal)(nil); errors.As(err, &no) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			taken++
		}
		if taken != maxLaptop {
			t.Errorf("%d questions of one laptop are taken, want %d", taken, maxLaptop)
		}
		if _, err := s.desk.Ask(t.Context(), "bob", "Bob", raw(func(*Asking) {})); err != nil {
			t.Errorf("another laptop: %v", err)
		}
	})
	t.Run("others'", func(t *testing.T) {
		s := newStage(t)
		own := request(func(r *approval.Request) { r.ID, r.Until = "q1", time.Now().Add(time.Hour) })
		if err := s.centre.Put(t.Context(), approval.StoredRequest{Request: own, Bridge: "office"}); err != nil {
			t.Fatal(err)
		}
		text := raw(func(*Asking) {})
		if _, err := s.desk.Ask(t.Context(), "ann", "Ann", text); err != nil {
			t.Fatal(err)
		}
		bob, _ := s.centre.Requests(t.Context(), approval.Filter{Newest: 1})
		anns := bob[0]
		if _, err := s.centre.Update(t.Context(), anns.ID, func(e *approval.StoredRequest) error {
			e.Relayed = []approval.RelayedVerdict{{ID: "v1", Verdict: approval.Verdict{By: "carol", Credential: "token:1"}}}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		answer, err := s.desk.Ask(t.Context(), "bob", "Bob", raw(func(a *Asking) {
			a.Ended = []Ended{{ID: "q2", Verdict: &approval.Verdict{Approve: true, By: "carol"}}, {ID: anns.ID}}
			a.Judged = []Judged{{ID: "q1", Relayed: "v1", Judgement: approval.Taken}, {ID: anns.ID, Relayed: "v1", Judgement: approval.Taken}}
		}))
		if err != nil || len(answer.(Answer).Verdicts) != 0 {
			t.Errorf("bob gets %+v, %v", answer, err)
		}
		if _, err := s.desk.Ask(t.Context(), "bob", "Bob", raw(func(a *Asking) { a.Questions = nil })); err != nil {
			t.Fatal(err)
		}
		all, _ := s.centre.Requests(t.Context(), approval.Filter{Open: time.Now()})
		if len(all) != 2 || all[0].Bridge != "office" || all[1].ID != anns.ID || all[1].Relayed[0].Judgement != approval.Unjudged {
			t.Errorf("bob changed %+v", all)
		}
	})
}

// While the centre cannot be asked, what only approvers may answer is refused, with the
// reason; what the person at the client may answer waits for them.
func TestOffline(t *testing.T) {
	for _, policy := range []bool{true, false} {
		staged(t, func(t *testing.T, s *stage) {
			s.set(func() { s.policy, s.broken = policy, errors.New("the centre cannot be reached: no route") })
			c := s.puts(t.Context(), request())
			local := s.puts(t.Context(), request(func(r *approval.Request) {
				r.Run, r.Decision.Manual = "r2", false
				r.Items[0].Decision, r.Items[0].AtClient = r.Decision, true
			}))
			nobody := s.puts(t.Context(), request(func(r *approval.Request) {
				r.Run, r.Decision.Manual = "r3", false
				r.Items[0].Decision = r.Decision
			}))
			time.Sleep(30 * time.Second)
			if !policy {
				if !pending(c) {
					t.Error("an own policy's question was refused")
				}
				return
			}
			got := <-c
			if got.v.Reason != approval.NoApprover || !strings.Contains(got.v.Text, "https://centre.test cannot be asked (the centre cannot be reached: no route)") {
				t.Errorf("offline: %+v", got)
			}
			if got := <-nobody; got.v.Reason != approval.NoApprover {
				t.Errorf("offline, with a client that cannot ask: %+v", got)
			}
			if !pending(local) {
				t.Error("what the person may answer was refused")
			}
			s.mu.Lock()
			s.broken = nil
			s.mu.Unlock()
			time.Sleep(5 * time.Second)
			if e := s.only(); e.Run != "ann-r2" {
				t.Errorf("once it is back: %+v", e)
			}
		})
	}
}

// The centre loses what it had, and gets it again; nothing is asked in a hurry.
func TestForgottenAtTheCentre(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.puts(t.Context(), request())
		s.only()
		if err := s.centre.Forget(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Second)
		s.only()
		if asked := locked(s, &s.asked); asked > 15 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// Without approvers nothing goes up.
func TestWithoutApprovers(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.set(func() { s.known = people(t, conf) })
		s.puts(t.Context(), request())
		if open := s.waits(); len(open) != 0 || locked(s, &s.asked) != 0 {
			t.Errorf("asked %d times, of %d", locked(s, &s.asked), len(open))
		}
	})
}

func TestWithdraw(t *testing.T) {
	s := newStage(t)
	r := request()
	for _, laptop := range []string{"ann", "ann-2"} {
		text, _ := json.Marshal(Asking{Configuration: conf, Questions: []Question{{ID: "q1", Left: time.Minute, Request: &r}}})
		if _, err := s.desk.Ask(t.Context(), laptop, "Ann", text); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.desk.Withdraw(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	all, _ := s.centre.Requests(t.Context(), approval.Filter{Open: time.Now()})
	if len(all) != 1 || all[0].Configuration != "laptop ann-2 of Ann" {
		t.Errorf("left: %+v", all)
	}
}

// Both sides make the same of a request, whatever text it has.
func FuzzLift(f *testing.F) {
	f.Add("push", `{"a":"\\u{1B}"}`, "s")
	f.Add("p\x1bush\u200b", `{"b":[1.50,null,"\u202e"]}`, "\xff")
	f.Fuzz(func(t *testing.T, tool, args, session string) {
		if !json.Valid([]byte(args)) {
			return
		}
		r := request(func(r *approval.Request) {
			r.Items[0].Key.Tool, r.Items[0].Key.Session, r.Items[0].Shown.JSON = tool, session, json.RawMessage(args)
		})
		here, err := Lift(r, Sender{"ann", "Ann"})
		if err != nil {
			return
		}
		text, err := json.Marshal(r)
		var sent approval.Request
		if err == nil {
			err = json.Unmarshal(text, &sent)
		}
		if err != nil {
			t.Fatal(err)
		}
		there, err := Lift(sent, Sender{"ann", "Ann"})
		if err != nil || there.Digest() != here.Digest() {
			t.Fatalf("%v: %+v, %+v", err, there, here)
		}
		if again := shownText(shownText(tool)); again != shownText(tool) {
			t.Fatalf("%q becomes %q", shownText(tool), again)
		}
	})
}

// People would see one of two members that look the same, and allow both.
func TestTwoMembersThatLookTheSame(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"to":"ann","to\u200b":"eve"}`:                         true, // one is seen to be another
		`{"to\u200b":"ann","to\\u{200B}":"eve"}`:                false,
		`{"args":[{"to\u200b":"ann","to\\u{200B}":{"a":"b"}}]}`: false,
	} {
		if got, err := visible([]byte(text)); (err == nil) != want {
			t.Errorf("%s is shown as %s, %v", text, got, err)
		}
	}
}
