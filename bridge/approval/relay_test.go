package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/profiles"
)

// staging and prod are two configurations with one store.
const staging, prod = "staging", "prod"

func ofProd(r *Request) { r.Items[0].Key.Configuration, r.Configuration = prod, "prod.json" }

// people are the approvers of a configuration.
func people(t *testing.T, r Realm, all []Approver, lent ...Delegation) *Approvers {
	t.Helper()
	a, err := NewApprovers(r, all, lent)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A process is one that shares a store, with what it says became of what others
// brought to it.
type process struct {
	*Broker
	people *Approvers
	told   []string
}

func newProcess(store Store, name, configuration string, who *Approvers, gone ...string) *process {
	p := &process{people: who}
	p.Broker = New(Options{Store: store, Bridge: name, Configuration: configuration, Approvers: func() *Approvers { return p.people },
		Gone: func(bridge string) bool { return strings.Contains(strings.Join(gone, " "), bridge) }})
	p.OnJudged(func(_ StoredRequest, v Verdict, err error) { p.told = append(p.told, fmt.Sprintf("%s: %v", v.By, err)) })
	return p
}

// Trial C2: who is somebody elsewhere is nobody here.
func TestVerdictCountsByTheRulesOfWhoAsked(t *testing.T) {
	ann, bob, low, guest := person("ann", Admin, 0), person("bob", Decide, 0), person("low", Decide, profiles.Medium), person("guest", Viewer, 0)
	logs := Approver{Name: "log", Role: Admin, Login: "log@example.com"}
	theirs := []Approver{ann, bob, low, guest, logs}
	other := func(one Approver, change func(*Approver)) Approver { change(&one); return one }
	admin := func(one Approver) Approver { return other(one, func(a *Approver) { a.Role, a.Risk = Admin, 0 }) }
	for name, row := range map[string]struct {
		asks  []Approver     // of the bridge that asks
		brief time.Duration  // for which guest speaks for ann there
		mine  []Approver     // of the process that brings it
		by    string         // who says it there
		realm Realm          // of that process
		ask   func(*Request) // nil is nothing more
		want  string         // what the author is told; empty: it settles the request
	}{
		"nobody there":                           {asks: theirs, mine: []Approver{person("eve", Admin, 0)}, by: "eve", want: "prod.json, has no approver eve"},
		"another of that name":                   {asks: theirs, mine: []Approver{other(person("eve", Admin, 0), func(a *Approver) { a.Name = "ann" })}, by: "eve", want: "knows ann by another token"},
		"another name for the token":             {asks: theirs, mine: []Approver{other(ann, func(a *Approver) { a.Name = "eve" })}, by: "ann", want: "has no approver eve"},
		"the same person":                        {asks: theirs, mine: []Approver{ann}, by: "ann"},
		"who may more here than there":           {asks: theirs, mine: []Approver{admin(low)}, by: "low", want: "low may not allow calls of high risk"},
		"who may less here than there":           {asks: theirs, mine: []Approver{other(ann, func(a *Approver) { a.Role, a.Risk = Decide, profiles.Low })}, by: "ann"},
		"who only looks there":                   {asks: theirs, mine: []Approver{admin(guest)}, by: "guest", want: "guest may look and not decide"},
		"in another's name":                      {asks: theirs, brief: 2 * minute, mine: []Approver{admin(guest)}, by: "guest"},
		"in another's name, too late":            {asks: theirs, brief: second, mine: []Approver{admin(guest)}, by: "guest", want: "guest may look and not decide"},
		"the same login":                         {asks: theirs, mine: []Approver{logs}, by: "log@example.com", realm: Realm{Provider: "https://id.example.com"}},
		"a login of another provider":            {asks: theirs, mine: []Approver{logs}, by: "log@example.com", realm: Realm{Provider: "https://mine.example.com"}, want: "knows log by another token or login"},
		"an own login for their token":           {asks: theirs, mine: []Approver{other(ann, func(a *Approver) { a.Login = "me" })}, by: "me", realm: Realm{Provider: "https://id.example.com"}, want: "knows ann by another token or login"},
		"the owner of another":                   {asks: theirs, by: "owner", want: "prod.json, is not the one whose owner"},
		"the owner of another, where nobody may": {by: "owner", want: "prod.json, is not the one whose owner"},
		"the owner of the same":                  {by: "owner", realm: Realm{Configuration: prod}},
		"the owner where somebody may":           {asks: theirs, by: "owner", realm: Realm{Configuration: prod}, want: "the owner does not answer where somebody configured may"},
		"the owner where another must":           {by: "owner", realm: Realm{Configuration: prod}, ask: func(r *Request) { r.Separate = true }, want: "the owner runs the bridge"},
		"who asked, where another must":          {asks: theirs, mine: []Approver{ann}, by: "ann", ask: func(r *Request) { r.Separate, r.Requester = true, "ann" }, want: "ann asked for this call"},
		"too critical for their role":            {asks: theirs, mine: []Approver{admin(bob)}, by: "bob", ask: risk(profiles.Critical), want: "bob may not allow calls of critical risk"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lent []Delegation
				if row.brief > 0 {
					lent = []Delegation{{From: "ann", To: "guest", Until: time.Now().Add(row.brief)}}
				}
				if row.realm.Configuration == "" {
					row.realm.Configuration = staging
				}
				store := new(Memory)
				asker := newProcess(store, "a", prod, people(t, Realm{Configuration: prod, Provider: "https://id.example.com"}, row.asks, lent...))
				asker.o.Separate = func() bool { return row.ask != nil && question(1, row.ask).Separate }
				desk := newProcess(store, "b", row.realm.Configuration, people(t, row.realm, row.mine))
				if row.ask == nil {
					row.ask = func(*Request) {}
				}
				c := asks(t.Context(), asker.Broker, question(1, ofProd, row.ask))
				q := only(t, asker.Broker, "r1")
				time.Sleep(10 * second) // it has been read
				v := signedBy(t, desk.people, row.by, q, Verdict{Approve: true})
				e, err := brings(t, desk.Broker, q, v)
				if row.want == "" {
					if err != nil || e.Verdict == nil || !e.Verdict.Approve {
						t.Fatalf("it is %+v, %v", e.Verdict, err)
					}
					wantAnswer(t, c, "yes")
				} else {
					var refused *RefusedError
					if !errors.As(err, &refused) || !strings.Contains(err.Error(), row.want) {
						t.Fatalf("its author is told %v, want %q", err, row.want)
					}
					stillAsks(t, c) // and the bridge that asked has said so
					if len(asker.told) != 1 || !strings.Contains(asker.told[0], row.want) {
						t.Errorf("the bridge that asked says %q", asker.told)
					}
				}
				for _, kept := range entriesOf(t, store) {
					for _, b := range kept.Relayed {
						if b.Verdict.Credential != "" || b.Judgement == Unjudged {
							t.Errorf("kept is %+v", b)
						}
					}
				}
				asker.EndRun("r1")
			})
		})
	}
}

// signedBy is a verdict of whoever comes in by a token, a login or as owner.
func signedBy(t *testing.T, people *Approvers, by string, r Request, v Verdict) Verdict {
	t.Helper()
	if who, ok := people.ByLogin(by); ok {
		v, err := people.Sign(who, r, v, "page", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return signed(t, people, by, r, v)
}

func entriesOf(t *testing.T, s Store) []StoredRequest {
	t.Helper()
	all, err := s.Requests(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A no counts by the same rules.
func TestNoOfAStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(Memory)
		asker := newProcess(store, "a", prod, people(t, Realm{Configuration: prod}, []Approver{person("ann", Decide, profiles.Low)}))
		desk := newProcess(store, "b", staging, people(t, Realm{Configuration: staging}, []Approver{person("ann", Admin, 0), person("eve", Admin, 0)}))
		c := asks(t.Context(), asker.Broker, question(1, ofProd))
		q := only(t, asker.Broker, "r1")
		if _, err := brings(t, desk.Broker, q, signed(t, desk.people, "eve", q, Verdict{})); err == nil {
			t.Error("a stranger's no settles it")
		}
		stillAsks(t, c)
		if _, err := brings(t, desk.Broker, q, signed(t, desk.people, "ann", q, Verdict{})); err != nil {
			t.Error(err)
		}
		wantAnswer(t, c, Declined)
	})
}

// Of the yeses that several must give, each is of somebody whom the bridge that
// asked knows.
func TestQuorumAcrossConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(Memory)
		asker := newProcess(store, "a", prod, people(t, Realm{Configuration: prod}, []Approver{person("ann", Admin, 0), person("bob", Admin, 0)}))
		desk := newProcess(store, "b", staging, people(t, Realm{Configuration: staging}, []Approver{person("ann", Admin, 0), person("eve", Admin, 0)}))
		c := asks(t.Context(), asker.Broker, question(1, ofProd, quorum(2, false)))
		q := only(t, asker.Broker, "r1")
		if e, err := brings(t, desk.Broker, q, signed(t, desk.people, "ann", q, yes)); err != nil || e.Verdict != nil || !strings.HasPrefix(e.Missing(), "1 of 2") {
			t.Fatalf("her yes is one of two: %q, %v", e.Missing(), err)
		}
		if _, err := brings(t, desk.Broker, q, signed(t, desk.people, "eve", q, yes)); err == nil {
			t.Error("a stranger's yes is the second")
		}
		if _, err := brings(t, desk.Broker, q, signed(t, desk.people, "ann", q, yes)); err == nil || !strings.Contains(err.Error(), "has said yes already") {
			t.Errorf("one person twice: %v", err)
		}
		stillAsks(t, c)
		settle(t, asker.Broker, q, signed(t, asker.people, "bob", q, yes))
		if a := wantAnswer(t, c, "yes"); a.verdict.By != "ann and bob" {
			t.Errorf("by %q", a.verdict.By)
		}
	})
}

// The bridge that asked ends before it has judged what was brought: it is kept,
// and judged by whoever takes the run up.
func TestBroughtWhileNobodyJudges(t *testing.T) {
	for name, row := range map[string]struct {
		by   string
		want Judgement
	}{
		"of an approver": {"ann", Taken},
		"of a stranger":  {"eve", Void},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(Memory)
				theirs := people(t, Realm{Configuration: prod}, []Approver{person("ann", Admin, 0)})
				killed := newProcess(store, "a", prod, theirs)
				ctx, kill := context.WithCancel(t.Context())
				asks(ctx, killed.Broker, question(1, ofProd))
				q := only(t, killed.Broker, "r1")
				killed.Suspend("r1") // as if it had: nobody waits any more
				kill()
				synctest.Wait()
				setBridge(t, store, q.ID, "a")
				desk := newProcess(store, "b", staging, people(t, Realm{Configuration: staging}, []Approver{person("ann", Admin, 0), person("eve", Admin, 0)}))
				begun := time.Now()
				if _, err := brings(t, desk.Broker, q, signed(t, desk.people, row.by, q, yes)); !errors.Is(err, ErrUnjudged) || time.Since(begun) != 3*second {
					t.Fatalf("its author is told %v after %v", err, time.Since(begun))
				}
				if err := desk.Judge(t.Context()); err != nil {
					t.Fatal(err)
				}
				if e := entriesOf(t, store)[0]; !e.unjudged() {
					t.Fatalf("another configuration has judged it: %+v", e.Relayed)
				}
				next := newProcess(store, "c", prod, theirs, "a")
				if err := next.Judge(t.Context()); err != nil {
					t.Fatal(err)
				}
				e := entriesOf(t, store)[0]
				if got := e.Relayed[0].Judgement; got != row.want || (e.Verdict != nil) != (row.want == Taken) || len(next.told) != 1 {
					t.Errorf("judged as %q, settled by %+v, told %q", got, e.Verdict, next.told)
				}
			})
		})
	}
}

func setBridge(t *testing.T, s Store, id, bridge string) {
	t.Helper()
	if _, err := s.Update(t.Context(), id, func(e *StoredRequest) error { e.Bridge = bridge; return nil }); err != nil {
		t.Fatal(err)
	}
}

// Of several that may judge, one does; and of what was brought, one settles.
func TestSeveralJudges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(Memory)
		theirs := people(t, Realm{Configuration: prod}, []Approver{person("ann", Admin, 0), person("bob", Admin, 0)})
		q := question(1, ofProd)
		q.ID, q.Grown, q.Until = "q1", time.Now(), time.Now().Add(minute)
		if err := store.Put(t.Context(), StoredRequest{Request: q, Bridge: "a"}); err != nil {
			t.Fatal(err)
		}
		desk := newProcess(store, "b", staging, people(t, Realm{Configuration: staging}, []Approver{person("ann", Admin, 0), person("bob", Admin, 0)}))
		for _, name := range []string{"ann", "bob"} {
			var brought *RelayedError
			if _, err := desk.Settle(t.Context(), q.ID, q.Digest(), signed(t, desk.people, name, q, yes)); !errors.As(err, &brought) {
				t.Fatal(err)
			}
		}
		judges := []*process{newProcess(store, "c", prod, theirs, "a"), newProcess(store, "d", prod, theirs, "a")}
		var all sync.WaitGroup
		for _, p := range judges {
			all.Go(func() {
				if err := p.Judge(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		e := entriesOf(t, store)[0]
		if by := settledBy(e); by != "ann" {
			t.Errorf("settled by %q", by)
		}
		var judgements []Judgement
		for _, one := range e.Relayed {
			judgements = append(judgements, one.Judgement)
		}
		if diff := cmp.Diff([]Judgement{Taken, Late}, judgements); diff != "" {
			t.Errorf("judged (-want +got):\n%s", diff)
		}
		if told := append(judges[0].told, judges[1].told...); len(told) != 2 {
			t.Errorf("told are %q", told)
		}
	})
}

// settledBy names who settled a request; empty if nobody has.
func settledBy(e StoredRequest) string {
	if e.Verdict == nil {
		return ""
	}
	return e.Verdict.By
}

// A deafStore never says that somebody changed something.
type deafStore struct{ *Memory }

func (deafStore) Changed() <-chan struct{} { return nil }

// What ends a question judges what was brought to it, and says so once, while
// the broker serves everybody else: the record that is written then may take long.
func TestToldWithoutTheLock(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(p *process, withdraw func())
		want string
	}{
		"nobody else answers in time": {func(*process, func()) { time.Sleep(minute) }, "ann: it was settled before: nobody (timeout)"},
		"the call is withdrawn":       {func(_ *process, withdraw func()) { withdraw() }, "ann: <nil>"},
		"the run ends":                {func(p *process, _ func()) { p.EndRun("r1") }, "ann: <nil>"},
		"the server is another one":   {func(p *process, _ func()) { p.EndAllStale(func(Key) bool { return true }) }, "ann: <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := new(Memory)
				who := []Approver{person("ann", Admin, 0)}
				asker := newProcess(deafStore{memory}, "a", prod, people(t, Realm{Configuration: prod}, who))
				var told []string
				asker.OnJudged(func(_ StoredRequest, v Verdict, err error) {
					if !asker.mu.TryLock() {
						t.Error("it is told while everybody waits for the lock")
						return
					}
					asker.mu.Unlock()
					told = append(told, fmt.Sprintf("%s: %v", v.By, err))
				})
				ctx, withdraw := context.WithCancel(t.Context())
				defer withdraw()
				asks(ctx, asker.Broker, question(1, ofProd, within(minute)))
				q := only(t, asker.Broker, "r1")
				desk := newProcess(memory, "b", staging, people(t, Realm{Configuration: staging}, who))
				var brought *RelayedError
				if _, err := desk.Settle(t.Context(), q.ID, q.Digest(), signed(t, desk.people, "ann", q, yes)); !errors.As(err, &brought) {
					t.Fatal(err)
				}
				row.end(asker, withdraw)
				synctest.Wait()
				asker.EndRun("r1")
				if len(told) != 1 || !strings.HasPrefix(told[0], row.want) {
					t.Errorf("told are %q, want %q", told, row.want)
				}
			})
		})
	}
}

// A no that was brought first counts, and is told, though somebody says yes here
// before it was judged.
func TestBroughtNoBeforeTheYesHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := new(Memory)
		who := []Approver{person("ann", Admin, 0), person("bob", Admin, 0)}
		asker := newProcess(deafStore{memory}, "a", prod, people(t, Realm{Configuration: prod}, who))
		c := asks(t.Context(), asker.Broker, question(1, ofProd))
		q := only(t, asker.Broker, "r1")
		desk := newProcess(memory, "b", staging, people(t, Realm{Configuration: staging}, who))
		var brought *RelayedError
		if _, err := desk.Settle(t.Context(), q.ID, q.Digest(), signed(t, desk.people, "ann", q, Verdict{})); !errors.As(err, &brought) {
			t.Fatal(err)
		}
		if first := tooLate(t, asker.Broker, q, signed(t, asker.people, "bob", q, yes)); first.Approve || first.By != "ann" {
			t.Errorf("bob is told of %+v", first)
		}
		e := entriesOf(t, memory)[0]
		if e.Verdict == nil || e.Verdict.By != "ann" || e.unjudged() {
			t.Errorf("settled by %+v, brought are %+v", e.Verdict, e.Relayed)
		}
		if diff := cmp.Diff([]string{"ann: <nil>"}, asker.told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		wantAnswer(t, c, Declined)
	})
}

// A mutedStore fails to read each request a number of times.
type mutedStore struct {
	*Memory
	fails map[string]int
}

func (s mutedStore) Requests(ctx context.Context, f Filter) ([]StoredRequest, error) {
	if s.fails[f.ID] > 0 {
		s.fails[f.ID]--
		return nil, errors.New("the disk is away")
	}
	return s.Memory.Requests(ctx, f)
}

// A request that could not be read when somebody answered it is looked at again,
// though nothing changes any more.
func TestUnreadRequestIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, fails := new(Memory), map[string]int{}
		asker := New(Options{Store: mutedStore{memory, fails}})
		c := asks(t.Context(), asker, question(1))
		q := only(t, asker, "r1")
		fails[q.ID] = 3
		settle(t, New(Options{Store: memory}), q, yes)
		stillAsks(t, c)
		time.Sleep(3 * rereadAfter)
		wantAnswer(t, c, "yes")
	})
}

// A lockedStore cannot change some requests.
type lockedStore struct {
	*Memory
	locked []string
}

func (s lockedStore) Update(ctx context.Context, id string, change func(*StoredRequest) error) (StoredRequest, error) {
	if slices.Contains(s.locked, id) {
		return StoredRequest{}, fmt.Errorf("request %s is locked", id)
	}
	return s.Memory.Update(ctx, id, change)
}

// An answer that cannot be judged keeps none of the others from it.
func TestJudgeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := new(Memory)
		who := []Approver{person("ann", Admin, 0)}
		desk := newProcess(memory, "b", staging, people(t, Realm{Configuration: staging}, who))
		for i, id := range []string{"q1", "q2", "q3", "q4"} {
			q := question(i, ofProd)
			q.ID, q.Grown, q.Until = id, time.Now(), time.Now().Add(minute)
			if err := memory.Put(t.Context(), StoredRequest{Request: q, Bridge: "a"}); err != nil {
				t.Fatal(err)
			}
			var brought *RelayedError
			if _, err := desk.Settle(t.Context(), q.ID, q.Digest(), signed(t, desk.people, "ann", q, yes)); !errors.As(err, &brought) {
				t.Fatal(err)
			}
		}
		judge := newProcess(lockedStore{memory, []string{"q1", "q3"}}, "c", prod, people(t, Realm{Configuration: prod}, who), "a")
		err := judge.Judge(t.Context())
		for _, id := range []string{"q1", "q3"} {
			if err == nil || !strings.Contains(err.Error(), "request "+id+" is locked") {
				t.Errorf("%s cannot be judged, and the error is %v", id, err)
			}
		}
		var left []string
		for _, e := range entriesOf(t, memory) {
			if e.unjudged() {
				left = append(left, e.ID)
			}
		}
		if !slices.Equal(left, []string{"q1", "q3"}) {
			t.Errorf("not judged are %v", left)
		}
	})
}

// What is brought is bounded: what was judged goes first, and what was not does
// not go at all.
func TestBroughtIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(Memory)
		q := question(1, ofProd)
		q.ID, q.Grown, q.Until = "q1", time.Now(), time.Now().Add(minute)
		if err := store.Put(t.Context(), StoredRequest{Request: q, Bridge: "a"}); err != nil {
			t.Fatal(err)
		}
		theirs := people(t, Realm{Configuration: prod}, []Approver{person("ann", Admin, 0)})
		desk := newProcess(store, "b", staging, people(t, Realm{Configuration: staging}, []Approver{person("ann", Admin, 0), person("eve", Admin, 0)}))
		bring := func(name string) error {
			_, err := desk.Settle(t.Context(), q.ID, q.Digest(), signed(t, desk.people, name, q, yes))
			if brought := (*RelayedError)(nil); errors.As(err, &brought) {
				return nil
			}
			return err
		}
		for range maxRelayed {
			if err := bring("eve"); err != nil {
				t.Fatal(err)
			}
		}
		if err := bring("ann"); err == nil || !strings.Contains(err.Error(), "20 answers wait") {
			t.Fatalf("one too many: %v", err)
		}
		judge := newProcess(store, "c", prod, theirs, "a")
		if err := judge.Judge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := bring("ann"); err != nil {
			t.Fatal(err)
		}
		if err := judge.Judge(t.Context()); err != nil {
			t.Fatal(err)
		}
		e := entriesOf(t, store)[0]
		if len(e.Relayed) != maxRelayed || len(judge.told) != maxRelayed+1 || settledBy(e) != "ann" {
			t.Errorf("%d are kept, %d were judged, settled by %+v", len(e.Relayed), len(judge.told), e.Verdict)
		}
	})
}

// What somebody says at the client of another bridge is nobody's word here.
func TestOnlyWhoProvesWhoTheyAreBrings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(Memory)
		asker, desk := newProcess(store, "a", prod, nil), newProcess(store, "b", staging, nil)
		c := asks(t.Context(), asker.Broker, question(1, ofProd))
		q := only(t, asker.Broker, "r1")
		for _, v := range []Verdict{yes, no, by("ann")} {
			if _, err := brings(t, desk.Broker, q, v); err == nil || !strings.Contains(err.Error(), "prove to it who they are") {
				t.Errorf("%+v: %v", v, err)
			}
		}
		owner, _ := desk.people.Owner()
		v, err := desk.people.Sign(owner, q, yes, "page", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := brings(t, desk.Broker, q, v); err == nil || !strings.Contains(err.Error(), "knows nobody who answers elsewhere") {
			t.Errorf("where nobody is known: %v", err)
		}
		stillAsks(t, c)
		asker.EndRun("r1")
	})
}

// A run goes on elsewhere after a yes: if its author may not give it any more by
// then, it is asked anew; a no is found.
func TestYesBeforeTheRunGoesOn(t *testing.T) {
	ann, bob := person("ann", Admin, 0), person("bob", Admin, 0)
	for name, row := range map[string]struct {
		now  []Approver
		said Verdict
		want Reason // empty: it is asked anew
	}{
		"as it was":         {[]Approver{ann, bob}, yes, "yes"},
		"of who is gone":    {[]Approver{bob}, yes, ""},
		"a no of whoever":   {[]Approver{bob}, Verdict{}, Declined},
		"with a new token":  {[]Approver{{Name: "ann", Role: Admin, Token: bob.Token}}, yes, ""},
		"of a viewer since": {[]Approver{person("ann", Viewer, 0), bob}, yes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(Memory)
				realm := Realm{Configuration: prod}
				before := newProcess(store, "a", prod, people(t, realm, []Approver{ann, bob}))
				ctx, end := context.WithCancel(t.Context())
				asks(ctx, before.Broker, question(1, ofProd))
				q := only(t, before.Broker, "r1")
				before.Suspend("r1")
				end()
				synctest.Wait()
				settle(t, before.Broker, q, signed(t, before.people, "ann", q, row.said))
				after := newProcess(store, "b", prod, people(t, realm, row.now))
				c := asks(t.Context(), after.Broker, question(1, ofProd, func(r *Request) { r.Again = true }))
				if row.want != "" {
					wantAnswer(t, c, row.want)
					return
				}
				if anew := only(t, after.Broker, "r1"); anew.ID == q.ID {
					t.Error("the old question is put again, and it is settled")
				}
				after.EndRun("r1")
			})
		})
	}
}

// A yes that is found again counts as it would if it were given now.
func TestStands(t *testing.T) {
	ann, bob := person("ann", Admin, 0), person("bob", Admin, 0)
	realm := Realm{Configuration: prod}
	both := people(t, realm, []Approver{ann, bob})
	nobody := people(t, realm, nil)
	one, two := question(1, ofProd), question(1, ofProd, quorum(2, false))
	settled := func(r Request, v Verdict, votes ...Verdict) StoredRequest {
		return StoredRequest{Request: r, Verdict: &v, Votes: votes}
	}
	anns, bobs := signed(t, both, "ann", one, yes), signed(t, both, "bob", one, yes)
	agreed := settled(two, Verdict{Approve: true, By: "ann and bob", Strong: true}, anns, bobs)
	theOwners := settled(one, signed(t, nobody, Owner.Name, one, yes))
	for name, row := range map[string]struct {
		e    StoredRequest
		now  *Approvers
		want string
	}{
		"as it was":                      {settled(one, anns), both, ""},
		"of who is gone":                 {settled(one, anns), people(t, realm, []Approver{bob}), "no approver ann"},
		"of who may less":                {settled(one, anns), people(t, realm, []Approver{person("ann", Decide, profiles.Low)}), "may not allow"},
		"by nobody who proved it":        {settled(one, by("ann")), both, "another token"},
		"by another configuration's":     {settled(one, anns), people(t, realm, []Approver{{Name: "ann", Role: Admin, Token: person("eve", Admin, 0).Token}}), "another token"},
		"a no of who is gone":            {settled(one, no), nobody, ""},
		"the client's":                   {settled(one, yes), both, ""},
		"the owner's":                    {theOwners, nobody, ""},
		"the owner's, where another may": {theOwners, both, "somebody may"},
		"of both":                        {agreed, both, ""},
		"of both, one gone":              {agreed, people(t, realm, []Approver{ann}), "1 of 2"},
		"nobody to go by":                {settled(one, anns), nil, ""},
		"not settled":                    {StoredRequest{Request: one}, both, ""},
	} {
		err := row.e.stands(row.now, time.Now())
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}
