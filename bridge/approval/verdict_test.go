package approval

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// by is a yes of an approver on a strong channel.
func by(name string, roles ...string) Verdict {
	return Verdict{Approve: true, By: name, Rights: Rights{Roles: roles}, Strong: true, Channel: "page"}
}

func quorum(need int, inOrder bool, of ...string) func(*Request) {
	return func(r *Request) {
		r.Decision.Quorums = append(r.Decision.Quorums, profiles.Quorum{Need: need, Of: of, InOrder: inOrder})
	}
}

func TestWhoMayAnswerWhat(t *testing.T) {
	manual := question(1, func(r *Request) { r.Decision.Manual = true })
	separate := question(1, func(r *Request) { r.Separate, r.Requester = true, "ann" })
	own := question(1, func(r *Request) { r.Requester = "ann" })
	client := by("the person at claude (ann)")
	client.Strong = false
	hiding := question(1, func(r *Request) {
		args, err := canon.Parse([]byte(`{"to":"bob","password":"hunter22"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Items[0].Shown, r.Items[0].Key.Args = canon.Display(args, canon.DisplayOptions{}), args.Digest()
	})
	fold := question(1)
	fold.Items = append(fold.Items, question(2).Items[0])
	typed, edited, rows := by("ann"), by("ann"), by("ann")
	typed.Typed, edited.Args, rows.Rows = "delete", json.RawMessage(`{}`), []int{2}
	with := func(v Verdict, change func(*Verdict)) Verdict { change(&v); return v }
	inContext, forget := question(1, func(r *Request) { r.Decision.Context = true }), with(by("ann"), func(v *Verdict) { v.Forget = true })
	owner := signed(t, nil, Owner.Name, question(1), yes)
	nobodys := question(1, func(r *Request) { r.Separate = true })
	for name, row := range map[string]struct {
		r    Request
		v    Verdict
		want string // part of the error; empty: it is valid
	}{
		"manual, typed":                            {manual, typed, ""},
		"manual, typed wrongly":                    {manual, with(typed, func(v *Verdict) { v.Typed = "deletes" }), "typed: delete"},
		"manual, not typed":                        {manual, by("ann"), "typed: delete"},
		"manual, edited":                           {manual, edited, ""},
		"manual, typed at the client":              {manual, with(typed, func(v *Verdict) { v.Strong = false }), "approver"},
		"no to manual at the client":               {manual, no, ""},
		"one's own, where that counts":             {own, by("ann"), ""},
		"one's own, where it does not":             {separate, by("ann"), "asked for this call"},
		"one's own, by who decides in one's name":  {separate, with(by("dan"), func(v *Verdict) { v.For = "ann" }), "ann asked for this call, and dan decides in their name"},
		"another's":                                {separate, by("bob"), ""},
		"at the client, where one's own does not":  {separate, client, "approver"},
		"the owner's, where one's own counts":      {own, owner, ""},
		"the owner's, where it does not":           {nobodys, owner, "the owner runs the bridge"},
		"the owner's, where another asked":         {separate, owner, "the owner runs the bridge"},
		"the owner's no":                           {separate, with(owner, func(v *Verdict) { v.Approve, v.Reason = false, Declined }), ""},
		"of a quorum, by the owner":                {question(1, quorum(2, false)), owner, "the owner runs the bridge"},
		"one's own no":                             {separate, Verdict{Reason: Declined, By: "ann"}, ""},
		"and forget":                               {inContext, forget, ""},
		"and forget, where nobody is asked for it": {question(1), forget, "nothing is forgotten"},
		"and forget, critical":                     {question(1, risk(profiles.Critical), func(r *Request) { r.Decision.Context = true }), forget, "nothing is forgotten"},
		"and forget, manual":                       {question(1, func(r *Request) { r.Decision.Context, r.Decision.Manual = true, true }), with(forget, func(v *Verdict) { v.Typed = "delete" }), "nothing is forgotten"},
		"and forget, of a quorum":                  {question(1, quorum(2, false), func(r *Request) { r.Decision.Context = true }), forget, "nothing is forgotten"},
		"some rows":                                {fold, rows, ""},
		"a row that is not there":                  {fold, with(rows, func(v *Verdict) { v.Rows = []int{3} }), "call 3"},
		"no rows":                                  {fold, with(rows, func(v *Verdict) { v.Rows = []int{} }), "at least one"},
		"edited, of several calls":                 {fold, edited, "one call"},
		"edited, for the session":                  {question(1, remembered), with(edited, func(v *Verdict) { v.Scope = SessionScope }), "remembered"},
		"some rows, for the session":               {question(1, remembered), with(rows, func(v *Verdict) { v.Scope, v.Rows = SessionScope, []int{1} }), "remembered"},
		"edited, where several must agree":         {question(1, quorum(2, false)), edited, "one person"},
		"edited, with a mark of what was hidden":   {hiding, with(edited, func(v *Verdict) { v.Args = json.RawMessage(`{"to":["[hidden: looks like a token]"]}`) }), "mark"},
		"edited, with a mark of what was cut":      {hiding, with(edited, func(v *Verdict) { v.Args = json.RawMessage(`{"a…":1}`) }), "mark"},
		"edited, all written anew":                 {hiding, with(edited, func(v *Verdict) { v.Args = json.RawMessage(`{"to":"bob"}`) }), ""},
		"edited, with a text like a mark":          {question(1), with(edited, func(v *Verdict) { v.Args = json.RawMessage(`{"to":"bob…"}`) }), ""},
		"edited, and no object":                    {question(1), with(edited, func(v *Verdict) { v.Args = json.RawMessage(`[1]`) }), "cannot be read"},
		"of a quorum, at the client":               {question(1, quorum(2, false)), yes, "approver"},
		"of a quorum, by whom asked for it":        {question(1, quorum(2, false), func(r *Request) { r.Requester = "ann" }), by("ann"), "asked for this call"},
	} {
		err := row.v.Valid(row.r, time.Now())
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

// A critical call is read before it is allowed; it can be refused at once.
func TestCriticalCallIsReadFirst(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		c := asks(t.Context(), b, question(1, risk(profiles.Critical)))
		q := only(t, b, "r1")
		time.Sleep(minReadTime - instant)
		if _, err := b.Settle(t.Context(), q.ID, q.Digest(), yes); err == nil || !strings.Contains(err.Error(), "read it first") {
			t.Errorf("a yes too soon: %v", err)
		}
		time.Sleep(instant)
		settle(t, b, q, yes)
		wantAnswer(t, c, "yes")
		c = asks(t.Context(), b, question(2, risk(profiles.Critical)))
		settle(t, b, only(t, b, "r1"), no)
		wantAnswer(t, c, ElicitationDeclined)
	})
}

func TestQuorum(t *testing.T) {
	for name, row := range map[string]struct {
		quorum func(*Request)
		votes  string // names in the order they say yes; in brackets those whose yes counts for nothing
		ok     bool
	}{
		"two of anybody":                 {quorum(2, false), "ann bob", true},
		"one twice":                      {quorum(2, false), "ann (ann)", false},
		"two of three":                   {quorum(2, false, "ann", "bob", "eve"), "eve ann", true},
		"a stranger":                     {quorum(2, false, "ann", "bob"), "(dan) bob ann", true},
		"in order":                       {quorum(2, true, "ann", "bob"), "ann bob", true},
		"out of order":                   {quorum(2, true, "ann", "bob"), "(bob) ann bob", true},
		"roles":                          {quorum(2, true, "lead", "security"), "ann:lead eve:security", true},
		"one person with both roles":     {quorum(2, true, "lead", "security"), "ann:lead:security (ann:lead:security)", false},
		"a delegate beside who lent":     {quorum(2, true, "ann", "bob"), "ann (carl>ann) bob", true},
		"a delegate instead of who lent": {quorum(2, true, "ann", "bob"), "carl>ann (ann) bob", true},
		"one delegate of both":           {quorum(2, false, "ann", "bob"), "carl>ann>bob (carl>ann>bob) bob", true},
		"two quorums, met together":      {func(r *Request) { quorum(1, false, "ann")(r); quorum(2, false)(r) }, "bob ann", true},
		"two quorums, one not met":       {func(r *Request) { quorum(1, false, "ann")(r); quorum(2, false)(r) }, "bob eve", false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Limits{}, func(t *testing.T, b *Broker) {
				c := asks(t.Context(), b, question(1, row.quorum))
				q := only(t, b, "r1")
				for _, vote := range strings.Fields(row.votes) {
					stillAsks(t, c)
					name, void := strings.CutPrefix(vote, "(")
					name, lent, _ := strings.Cut(strings.TrimSuffix(name, ")"), ">")
					who := strings.Split(name, ":")
					v := by(who[0], who[1:]...)
					if lent != "" { // a viewer, who speaks for others alone
						v.Lent = map[string][]string{}
						for _, other := range strings.Split(lent, ">") {
							v.Lent[other] = nil
							v.For = other
						}
					}
					e, err := b.Settle(t.Context(), q.ID, q.Digest(), v)
					if (err != nil) != void {
						t.Fatalf("%s: %v", vote, err)
					}
					if err == nil && (e.Verdict == nil) != (e.Missing() != "") {
						t.Errorf("%s: missing %q, verdict %+v", vote, e.Missing(), e.Verdict)
					}
				}
				if !row.ok {
					stillAsks(t, c)
					b.EndRun("r1")
					wantAnswer(t, c, Expired)
					return
				}
				if a := wantAnswer(t, c, "yes"); !strings.Contains(a.verdict.By, " and ") && strings.Contains(row.votes, " ") {
					t.Errorf("by %q", a.verdict.By)
				}
			})
		})
	}
}

// person is an approver whose token is their name.
func person(name string, role Role, limit profiles.Risk) Approver {
	return Approver{Name: name, Role: role, Risk: limit, Token: sha256.Sum256([]byte(name))}
}

// signed is a verdict of an approver who has come in, or of the owner.
func signed(t *testing.T, people *Approvers, name string, r Request, v Verdict) Verdict {
	t.Helper()
	who, ok := people.Authenticate(name)
	if name == Owner.Name {
		who, ok = people.Owner()
	}
	if !ok {
		t.Fatalf("%s does not come in", name)
	}
	v, err := people.Sign(who, r, v, "page", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A yes counts by the rights of the moment at which the last one is counted.
func TestYesOfWhoLostTheRight(t *testing.T) {
	critical := func(all ...Approver) *Approvers { return approvers(t, all) }
	ann, bob, eve, dan := person("ann", Admin, 0), person("bob", Decide, profiles.Critical), person("eve", Admin, 0), person("dan", Admin, 0)
	looks := person("bob", Viewer, 0)
	anew := bob
	anew.Token[0]++
	lent := approvers(t, []Approver{ann, looks, eve, dan}, Delegation{From: "ann", To: "bob", Until: time.Now().AddDate(1000, 0, 0)})
	for name, row := range map[string]struct {
		before, after *Approvers
		counts        bool
	}{
		"nothing has changed":      {critical(ann, bob, eve, dan), critical(ann, bob, eve, dan), true},
		"another one has gone":     {critical(ann, bob, eve, dan), critical(bob, eve, dan), true},
		"they are none any more":   {critical(ann, bob, eve, dan), critical(ann, eve, dan), false},
		"they only look now":       {critical(ann, bob, eve, dan), critical(ann, looks, eve, dan), false},
		"their limit is lower":     {critical(ann, bob, eve, dan), critical(ann, person("bob", Decide, profiles.Low), eve, dan), false},
		"their token is another":   {critical(ann, bob, eve, dan), critical(ann, anew, eve, dan), false},
		"nobody lends them theirs": {lent, critical(ann, looks, eve, dan), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				people := row.before
				b := New(Options{Approvers: func() *Approvers { return people }})
				c := asks(t.Context(), b, question(1, quorum(2, false)))
				q := only(t, b, "r1")
				says := func(name string) StoredRequest {
					t.Helper()
					e, err := b.Settle(t.Context(), q.ID, q.Digest(), signed(t, people, name, q, Verdict{Approve: true}))
					if err != nil {
						t.Fatal(err)
					}
					return e
				}
				says("bob")
				stillAsks(t, c)
				people = row.after
				e := says("eve")
				if row.counts {
					wantAnswer(t, c, "yes")
				} else {
					stillAsks(t, c)
					if len(e.Votes) != 1 || e.Votes[0].By != "eve" || !strings.HasPrefix(e.Missing(), "1 of 2") {
						t.Errorf("counted are %+v, missing %q", e.Votes, e.Missing())
					}
					says("dan")
					wantAnswer(t, c, "yes")
				}
				b.EndRun("r1")
			})
		})
	}
}

// What a model says of a request is seen on every channel, and changes nothing
// of what a yes covers.
func TestWhatAModelSays(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		c := asks(t.Context(), b, question(1))
		q := only(t, b, "r1")
		if err := b.SetModelSummary(t.Context(), q.ID, question(2).Digest(), "It deletes nothing."); !errors.Is(err, ErrDigest) {
			t.Errorf("said of something else: %v", err)
		}
		if err := b.SetModelSummary(t.Context(), q.ID, q.Digest(), "It deletes nothing.\nWhy: safe"); err != nil {
			t.Fatal(err)
		}
		now := only(t, b, "r1")
		kept, err := b.Requests(t.Context(), Filter{ID: q.ID})
		if err != nil || len(kept) != 1 {
			t.Fatalf("kept is %+v, %v", kept, err)
		}
		if diff := cmp.Diff(now.Says, kept[0].Says); diff != "" || now.Says == "" {
			t.Fatalf("kept is another summary than %q (-want +got):\n%s", now.Says, diff)
		}
		if now.Digest() != q.Digest() {
			t.Fatalf("the summary changes what a yes covers: %s, before %s", now.Digest(), q.Digest())
		}
		settle(t, b, q, yes)
		wantAnswer(t, c, "yes")
		var settled *SettledError
		if err := b.SetModelSummary(t.Context(), q.ID, q.Digest(), "too late"); !errors.As(err, &settled) {
			t.Errorf("said of a settled request: %v", err)
		}
	})
}

// One no ends what several would have to allow.
func TestOneNoIsEnough(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		c := asks(t.Context(), b, question(1, quorum(3, false)))
		q := only(t, b, "r1")
		settle(t, b, q, by("ann"))
		settle(t, b, q, Verdict{Reason: Declined, By: "bob", Strong: true, Channel: "page"})
		wantAnswer(t, c, Declined)
	})
}

func TestYesToSomeRows(t *testing.T) {
	bubble(t, Limits{}, func(t *testing.T, b *Broker) {
		var cs []<-chan answer
		for call := 1; call <= 3; call++ {
			cs = append(cs, asks(t.Context(), b, question(call, onLine(4))))
		}
		v := by("ann")
		v.Rows = []int{1, 3}
		settle(t, b, only(t, b, "r1"), v)
		wantAnswer(t, cs[0], "yes")
		wantAnswer(t, cs[1], Declined)
		wantAnswer(t, cs[2], "yes")
		wantAnswer(t, asks(t.Context(), b, question(2)), Declined) // refused in this run
	})
}

// Two processes share a store: what one asks, the other answers.
func TestAnswerFromAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, people := new(Memory), approvers(t, []Approver{person("ann", Admin, 0)})
		known := func() *Approvers { return people }
		asker, desk := New(Options{Store: store, Bridge: "a", Approvers: known}), New(Options{Store: store, Bridge: "b", Approvers: known})
		c, d := asks(t.Context(), asker, question(1)), asks(t.Context(), asker, question(2))
		open, err := desk.Requests(t.Context(), Filter{Open: time.Now()})
		if err != nil || len(open) != 2 || open[0].Bridge != "a" {
			t.Fatalf("the other process sees %+v, %v", open, err)
		}
		if e, err := brings(t, desk, open[0].Request, signed(t, people, "ann", open[0].Request, yes)); err != nil || e.Verdict == nil || e.Verdict.By != "ann" {
			t.Fatalf("settled as %+v, %v", e.Verdict, err)
		}
		wantAnswer(t, c, "yes")
		stillAsks(t, d)
		if lost := tooLate(t, asker, open[0].Request, no); lost.By != "ann" {
			t.Errorf("the loser lost to %+v", lost)
		}
		asker.EndRun("r1")
		wantAnswer(t, d, Expired)
		if lost := tooLate(t, desk, open[1].Request, yes); lost.Reason != Expired {
			t.Errorf("a yes to a run that is over lost to %+v", lost)
		}
	})
}

// brings settles a request of another process, and returns what its author is
// told within three seconds.
func brings(t *testing.T, b *Broker, r Request, v Verdict) (StoredRequest, error) {
	t.Helper()
	e, err := b.Settle(t.Context(), r.ID, r.Digest(), v)
	var brought *RelayedError
	if !errors.As(err, &brought) {
		return e, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*second)
	defer cancel()
	return b.Outcome(ctx, r.ID, brought.ID)
}

// Many approvers at once, in two processes; one wins and everybody
// else hears who.
func TestTenApproversAtOnce(t *testing.T) {
	for seed := range 200 {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewSource(int64(seed)))
			store := new(Memory)
			brokers := []*Broker{New(Options{Store: store}), New(Options{Store: store})}
			c := asks(t.Context(), brokers[0], question(1))
			q := only(t, brokers[0], "r1")
			var mu sync.Mutex
			var won []string
			lost := map[string]string{}
			var all sync.WaitGroup
			for i := range 10 {
				v := by(fmt.Sprintf("approver %d", i))
				if r.Intn(2) == 0 {
					v.Approve, v.Reason = false, Declined
				}
				all.Go(func() {
					_, err := brokers[i%2].Settle(t.Context(), q.ID, q.Digest(), v)
					mu.Lock()
					defer mu.Unlock()
					var settled *SettledError
					switch {
					case err == nil:
						won = append(won, v.By)
					case errors.As(err, &settled):
						lost[v.By] = settled.Verdict.By
					default:
						t.Errorf("%s: %v", v.By, err)
					}
				})
			}
			all.Wait()
			a := answered(t, c)
			if len(won) != 1 || len(lost) != 9 || a.verdict.By != won[0] {
				t.Errorf("%v won, the call heard %q, %d lost", won, a.verdict.By, len(lost))
			}
			for loser, winner := range lost {
				if winner != won[0] {
					t.Errorf("%s was told that %s won, and it was %s", loser, winner, won[0])
				}
			}
		})
	}
}

// A question that the store does not keep is not asked, and is a no.
func TestQuestionThatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Store: fullStore{new(Memory)}})
		a := wantAnswer(t, asks(t.Context(), b, question(1)), AuditUnavailable)
		if a.err != nil || !strings.Contains(a.verdict.Text, "disk full") {
			t.Errorf("got %+v", a)
		}
		b.EndRun("r1")
	})
}

type fullStore struct{ *Memory }

func (fullStore) Put(context.Context, StoredRequest) error { return errors.New("disk full") }

// The questions of bridges that are gone end, also where one cannot.
func TestAbandonGoesOn(t *testing.T) {
	memory := new(Memory)
	for i, id := range []string{"q1", "q2", "q3"} {
		q := question(i)
		q.ID, q.Grown, q.Until = id, time.Now(), time.Now().Add(time.Hour)
		if err := memory.Put(t.Context(), StoredRequest{Request: q, Bridge: "gone"}); err != nil {
			t.Fatal(err)
		}
	}
	b := New(Options{Store: lockedStore{memory, []string{"q1"}}})
	err := b.Abandon(t.Context(), nil, func(e StoredRequest) bool { return e.ID != "q3" })
	if err == nil || !strings.Contains(err.Error(), "request q1 is locked") {
		t.Errorf("it says %v", err)
	}
	open, err := memory.Requests(t.Context(), Filter{Open: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, e := range open {
		ids = append(ids, e.ID)
	}
	if slices.Sort(ids); !slices.Equal(ids, []string{"q1", "q3"}) {
		t.Errorf("%q are open", ids)
	}
}

// A fillingStore keeps a number of changes, and then no more.
type fillingStore struct {
	*Memory
	left int
}

func (s *fillingStore) Update(ctx context.Context, id string, change func(*StoredRequest) error) (StoredRequest, error) {
	if s.left--; s.left < 0 {
		return StoredRequest{}, errors.New("the disk is full")
	}
	return s.Memory.Update(ctx, id, change)
}

// Edited arguments that the store does not let go of are said in the log, and sent
// all the same: the verdict counts.
func TestEditedArgumentsThatStayAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := New(Options{Store: &fillingStore{new(Memory), 1}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		c := asks(t.Context(), b, question(1))
		q := only(t, b, "r1")
		edited := yes
		edited.Args = json.RawMessage(`{"path":"/secret"}`)
		settle(t, b, q, edited)
		wantAnswer(t, c, "yes")
		if said := log.String(); !strings.Contains(said, "dropping the edited arguments") || !strings.Contains(said, q.ID) || strings.Contains(said, "secret") {
			t.Errorf("logged %q", said)
		}
		b.EndRun("r1")
	})
}

// A request that an older release stored says once what its calls are about.
func TestCallsOfOlderRequests(t *testing.T) {
	old := question(1)
	old.Items = append(old.Items, question(2).Items...)
	mixed := question(1)
	mixed.Items[0].Server, mixed.Items[0].Tool, mixed.Items[0].Script, mixed.Items[0].Decision = "mail", "send", "mail__send", profiles.Decision{Disposition: profiles.Ask, Risk: profiles.Medium}
	mixed.Items = append(mixed.Items, question(2).Items...)
	for name, row := range map[string]struct {
		of      Request
		scripts []string
		risks   []profiles.Risk
	}{
		"older": {old, []string{"fs__delete"}, []profiles.Risk{profiles.High, profiles.High}},
		"mixed": {mixed, []string{"mail__send", "fs__delete"}, []profiles.Risk{profiles.Medium, profiles.High}},
	} {
		var risks []profiles.Risk
		for _, i := range row.of.Calls() {
			risks = append(risks, i.Decision.Risk)
		}
		if diff := cmp.Diff(row.scripts, row.of.Scripts()); diff != "" {
			t.Errorf("%s: tools (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(row.risks, risks); diff != "" {
			t.Errorf("%s: risks (-want +got):\n%s", name, diff)
		}
	}
}
