package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// Policy reloads, changes of the upstream's tools, yeses, noes,
// time-outs, cancellations and clients that leave, in random orders. Whatever
// the order, a call is sent at most once and has exactly one final record; one
// that is sent was allowed, by a policy of its time or by a person who saw
// these bytes for this tool; and nothing keeps waiting.
func TestSchedules(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 500
	}
	for seed := range n {
		synctest.Test(t, func(t *testing.T) { newSchedule(t, int64(seed)).play() })
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// The policies and catalogues between which a schedule switches.
var (
	schedulePolicies = []profiles.ProfileSpec{
		{Asklist: []string{"fs__*"}},
		{Asklist: []string{"fs__delete"}},
		{Denylist: []string{"fs__delete"}, Asklist: []string{"fs__*"}},
		{},
		{Rules: []profiles.RuleSpec{{Tools: []string{"fs__*"}, Action: word("manual")}}},
	}
	scheduleDescriptions = []string{"deletes", "deletes for good"}
)

func word(s string) *string { return &s }

// scheduleViews are all combinations, built once: none is ever changed.
var scheduleViews = sync.OnceValue(func() (all []*View) {
	object := json.RawMessage(`{"type":"object"}`)
	for _, p := range schedulePolicies {
		set, problems := profiles.Parse(profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"p": &p}})
		if len(problems) > 0 {
			panic(problems)
		}
		for _, description := range scheduleDescriptions {
			all = append(all, &View{Profiles: set, Catalog: catalog.Build([]catalog.Server{
				{Name: "fs", Tools: []catalog.Definition{{Name: "read", Input: object}, {Name: "delete", Description: description, Input: object}}}})})
		}
	}
	return all
})

// A schedule is one random history of a gate with one run.
type schedule struct {
	*testing.T
	rand  *rand.Rand
	g     *Gate
	r     *Run
	ctx   context.Context
	stop  context.CancelCauseFunc
	wait  sync.WaitGroup
	calls int

	mu      sync.Mutex
	lives   []*View                         // every view that was ever the gate's
	agreed  map[canon.Digest][]approval.Key // yeses that were accepted, by arguments
	sent    map[canon.Digest]int
	records map[int][]ledger.Record // by call
}

func newSchedule(t *testing.T, seed int64) *schedule {
	s := &schedule{T: t, rand: rand.New(rand.NewSource(seed)), agreed: map[canon.Digest][]approval.Key{}, sent: map[canon.Digest]int{}, records: map[int][]ledger.Record{}}
	first := s.anyView()
	s.lives = []*View{first}
	s.g = New(first, Options{Caller: s, Recorder: s})
	s.ctx, s.stop = context.WithCancelCause(t.Context())
	held := s.rand.Intn(3) > 0
	var err error
	s.r, err = s.g.Begin(s.ctx, Origin{ID: "r1", Session: "s1", Profile: "p", Reach: ByElicitation}, host{attended: held, stop: s.stop})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *schedule) anyView() *View {
	all := scheduleViews()
	return all[s.rand.Intn(len(all))]
}

// Call and Record are the world around the gate: the upstream and the log.
func (s *schedule) Call(_ context.Context, server, _, tool string, args json.RawMessage) (json.RawMessage, error) {
	frozen, err := canon.Parse(args)
	if err != nil {
		s.Errorf("sent %s, which is not frozen: %v", args, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[frozen.Digest()]++
	return json.RawMessage(okReply), nil
}

func (s *schedule) Record(_ context.Context, all ...ledger.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range all {
		s.records[r.Call] = append(s.records[r.Call], r)
	}
	return nil
}

func (s *schedule) play() {
	for range 5 + s.rand.Intn(25) {
		switch s.rand.Intn(10) {
		case 0, 1, 2:
			s.call()
		case 3, 4:
			s.answer()
		case 5, 6:
			view := s.anyView()
			s.mu.Lock()
			s.lives = append(s.lives, view)
			s.mu.Unlock()
			s.g.Replace(view)
		case 7:
			time.Sleep(time.Duration(s.rand.Int63n(int64(7 * time.Minute))))
		case 8:
			synctest.Wait()
		case 9:
			if s.rand.Intn(12) == 0 {
				s.stop(errors.New("the client left"))
			}
		}
	}
	s.wait.Wait() // silence answers what is left; a call that is stuck is a deadlock, which synctest reports
	if err := s.r.End(s.ctx, ledger.Done, "", Entries{}); err != nil {
		s.Error(err)
	}
	for number := 1; number <= s.calls; number++ {
		s.check(number)
	}
	if open := s.g.Broker().Take("r1"); len(open) > 0 {
		s.Errorf("left open: %+v", open)
	}
}

// call makes a call with arguments of its own.
func (s *schedule) call() {
	s.calls++
	c := Call{Number: s.calls, Name: []string{"fs__read", "fs__delete"}[s.rand.Intn(2)], Args: fmt.Appendf(nil, `{"n":%d}`, s.calls)}
	s.wait.Go(func() { _, _ = s.g.Call(s.ctx, s.r, c) }) // what it comes to is in the records
}

// answer has one or two people answer a question at the same time.
func (s *schedule) answer() {
	open := s.g.Broker().Take("r1")
	if len(open) == 0 {
		return
	}
	q := open[s.rand.Intn(len(open))]
	for range 1 + s.rand.Intn(2) {
		v := approval.Verdict{Approve: true, By: "ann"}
		if s.rand.Intn(3) == 0 {
			v = approval.Verdict{Reason: approval.ElicitationDeclined, By: "bob"}
		}
		s.wait.Go(func() {
			s.mu.Lock() // nobody hears of the yes before it stands in the books
			for _, i := range q.Items {
				if v.Approve {
					s.agreed[i.Key.Args] = append(s.agreed[i.Key.Args], i.Key)
				}
			}
			s.mu.Unlock()
			_, _ = s.g.Settle(s.ctx, q.ID, q.Digest(), v) // the second comes too late
		})
	}
}

// check looks at what became of one call.
func (s *schedule) check(number int) {
	args, err := canon.Parse(fmt.Appendf(nil, `{"n":%d}`, number))
	if err != nil {
		s.Fatal(err)
	}
	sent := s.sent[args.Digest()]
	var intents, ends, asked int
	var intent ledger.Record
	for _, r := range s.records[number] {
		switch r.Event {
		case ledger.Intent:
			intents++
			intent = r
		case ledger.Outcome, ledger.Refusal:
			ends++
		case ledger.Asked:
			asked++
		}
	}
	if sent > 1 || sent != intents || ends != 1 {
		s.Errorf("call %d was sent %d times, with %d intents and %d final records", number, sent, intents, ends)
	}
	if sent == 0 {
		return
	}
	if intent.Disposition == profiles.Ask.String() {
		if asked == 0 || len(s.agreed[args.Digest()]) == 0 {
			s.Errorf("call %d was sent although nobody said yes: %+v", number, intent)
		}
		return
	}
	for _, view := range s.lives { // policy alone let it through: the first and some later one did
		profile, _ := view.profile("p")
		tool, ok := view.Catalog.Lookup(intent.Server + "__" + intent.Tool)
		if ok && profile.Decide(profiles.Call{Server: tool.Server, Tool: tool.Name, Description: tool.Description, Args: args.Value()}).Disposition == profiles.Allow {
			return
		}
	}
	s.Errorf("call %d was sent although no policy that ever held allows it: %+v", number, intent)
}
