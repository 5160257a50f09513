package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// Requests is the suite that every approval.Store must pass. open returns a new,
// empty store, and a function that returns another view of it, as a second process
// would have it; it has both closed when the test ends.
func Requests(t *testing.T, open func(t *testing.T) (store approval.Store, again func(t *testing.T) approval.Store)) {
	for name, test := range map[string]func(t *testing.T, a, b approval.Store){
		"entries come back as they were": entriesComeBack, "filters": entriesAreFiltered, "one settles": oneSettles,
		"a refused change changes nothing": refusedChange, "unknown entries": unknownEntries, "changes are told": changesAreTold,
		"grants": grantsAreKept, "a grant is used no more often than it may be": grantIsUsedUp, "forgetting": forgetting,
		"a configuration is held": configurationIsHeld,
	} {
		t.Run(name, func(t *testing.T) {
			store, again := open(t)
			test(t, store, again(t))
		})
	}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123456789, time.FixedZone("", -7*3600))

// entry returns a stored request with something in every field that matters.
func entry(n int) approval.StoredRequest {
	args, err := canon.Parse(fmt.Appendf(nil, `{"path":"/tmp/<%d>","token":"abc"}`, n))
	if err != nil {
		panic(err)
	}
	return approval.StoredRequest{Bridge: "b1", Request: approval.Request{
		ID: fmt.Sprintf("q%d", n), Run: fmt.Sprintf("r%d", n%2), Client: "cli\u2028ent", Requester: "ann", Server: "fs", Tool: "delete", Script: "fs__delete",
		Items: []approval.Item{{Call: n, Shown: canon.Display(args, canon.DisplayOptions{}), Position: analysis.Position{Line: 3, Column: 4}, Sources: []string{"call 2"},
			Cover: approval.Cover{Kind: "delete", Bound: []approval.Bound{{Param: "path", Kind: approval.Exact, Value: "<1>"}}, Free: []string{"n"}},
			Key:   approval.Key{Session: "s1", Profile: "p", Server: "fs", Tool: "delete", Definition: "d", Revision: "r", Args: args.Digest()}}},
		Decision: profiles.Decision{Disposition: profiles.Ask, Risk: profiles.High, Timeout: time.Minute, Manual: true, Quorums: []profiles.Quorum{{Need: 2, Of: []string{"ann"}}},
			Reasons: []profiles.Reason{{Kind: profiles.KindAsklist, Disposition: profiles.Ask, Pattern: "fs__*"}}, Profile: "p", Revision: "r"},
		Checks: []string{"arguments"}, Preview: analysis.Report{Calls: []analysis.CallSite{{Name: "fs__delete", Loop: true}}},
		Done: 7, Separate: true, Asked: noon, Until: noon.Add(time.Minute),
	}}
}

// same compares stored requests by their digests, shown arguments and JSON.
func same(t *testing.T, got, want approval.StoredRequest) {
	t.Helper()
	if got.Digest() != want.Digest() {
		t.Errorf("another digest: %+v, want %+v", got, want)
	}
	for i := range want.Items {
		if i < len(got.Items) && string(got.Items[i].Shown.JSON) != string(want.Items[i].Shown.JSON) {
			t.Errorf("shown are %s, want %s", got.Items[i].Shown.JSON, want.Items[i].Shown.JSON)
		}
	}
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(g) != string(w) {
		t.Errorf("got  %s\nwant %s", g, w)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func entries(t *testing.T, s approval.Store, f approval.Filter) []approval.StoredRequest {
	t.Helper()
	all, err := s.Requests(t.Context(), f)
	must(t, err)
	return all
}

func entriesComeBack(t *testing.T, a, b approval.Store) {
	want := entry(1)
	must(t, a.Put(t.Context(), want))
	if err := b.Put(t.Context(), want); err == nil {
		t.Error("two requests have one id")
	}
	for _, s := range []approval.Store{a, b} {
		all := entries(t, s, approval.Filter{})
		if len(all) != 1 {
			t.Fatalf("%d entries", len(all))
		}
		same(t, all[0], want)
	}
	verdict := approval.Verdict{Approve: true, Scope: approval.Once, Rows: []int{1}, Args: json.RawMessage(`{"x":1}`), Typed: "delete", Text: "a <b>", By: "ann", For: "bob", Rights: approval.Rights{Roles: []string{"admin"}}, Strong: true, Channel: "page", Time: noon}
	verdict.Credential = "token:00ff"
	want.Votes, want.Verdict = []approval.Verdict{verdict}, &verdict
	want.Relayed = []approval.RelayedVerdict{{ID: "v1", About: want.Digest(), Verdict: verdict, Judgement: approval.Void, Why: "<nobody>"}}
	e, err := b.Update(t.Context(), "q1", func(e *approval.StoredRequest) error {
		e.Votes, e.Verdict, e.Relayed = want.Votes, want.Verdict, want.Relayed
		return nil
	})
	must(t, err)
	same(t, e, want)
	same(t, entries(t, a, approval.Filter{})[0], want)
}

func entriesAreFiltered(t *testing.T, a, b approval.Store) {
	for n := 1; n <= 6; n++ {
		must(t, a.Put(t.Context(), entry(n)))
	}
	_, err := a.Update(t.Context(), "q3", func(e *approval.StoredRequest) error {
		e.Verdict = &approval.Verdict{Approve: true, Time: noon}
		return nil
	})
	must(t, err)
	for name, row := range map[string]struct {
		f    approval.Filter
		want []string
	}{
		"all":              {approval.Filter{}, []string{"q1", "q2", "q3", "q4", "q5", "q6"}},
		"one":              {approval.Filter{ID: "q4"}, []string{"q4"}},
		"none":             {approval.Filter{ID: "q9"}, nil},
		"of a run":         {approval.Filter{Run: "r1"}, []string{"q1", "q3", "q5"}},
		"open":             {approval.Filter{Open: noon}, []string{"q1", "q2", "q4", "q5", "q6"}},
		"open, of a run":   {approval.Filter{Run: "r1", Open: noon}, []string{"q1", "q5"}},
		"open for a while": {approval.Filter{Open: noon.Add(time.Minute - 1)}, []string{"q1", "q2", "q4", "q5", "q6"}},
		"run out":          {approval.Filter{Open: noon.Add(time.Minute)}, nil},
		"the newest":       {approval.Filter{Newest: 2}, []string{"q5", "q6"}},
	} {
		var got []string
		for _, e := range entries(t, b, row.f) {
			got = append(got, e.ID)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Of many that settle one request at the same time, through both views, one does.
func oneSettles(t *testing.T, a, b approval.Store) {
	must(t, a.Put(t.Context(), entry(1)))
	taken := errors.New("taken")
	var mu sync.Mutex
	var won []string
	var all sync.WaitGroup
	for i := range 20 {
		s := []approval.Store{a, b}[i%2]
		by := fmt.Sprint("approver ", i)
		all.Go(func() {
			e, err := s.Update(t.Context(), "q1", func(e *approval.StoredRequest) error {
				if e.Verdict != nil {
					return taken
				}
				e.Verdict = &approval.Verdict{Approve: true, By: by, Time: noon}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won = append(won, by)
			case err != taken:
				t.Error(err)
			case e.Verdict == nil:
				t.Error("who came too late is not shown who came first")
			}
		})
	}
	all.Wait()
	if got := entries(t, b, approval.Filter{})[0].Verdict; len(won) != 1 || got == nil || got.By != won[0] {
		t.Errorf("%v settled it, and the store says %+v", won, got)
	}
}

func refusedChange(t *testing.T, a, b approval.Store) {
	must(t, a.Put(t.Context(), entry(1)))
	no := errors.New("no")
	e, err := a.Update(t.Context(), "q1", func(e *approval.StoredRequest) error {
		e.Done, e.Items[0].Call = 99, 99
		e.Relayed = append(e.Relayed, approval.RelayedVerdict{ID: "v2"})
		return no
	})
	if err != no {
		t.Errorf("got %v", err)
	}
	same(t, e, entry(1))
	same(t, entries(t, b, approval.Filter{})[0], entry(1))
}

func unknownEntries(t *testing.T, a, _ approval.Store) {
	if _, err := a.Update(t.Context(), "q1", func(*approval.StoredRequest) error { return nil }); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("an entry that is not there: %v", err)
	}
	if err := a.UpdateGrant(t.Context(), "g1", func(*approval.Grant) error { return nil }); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("a grant that is not there: %v", err)
	}
}

func changesAreTold(t *testing.T, a, b approval.Store) {
	for name, change := range map[string]func(ctx context.Context) error{
		"a new entry": func(ctx context.Context) error { return a.Put(ctx, entry(1)) },
		"a verdict": func(ctx context.Context) error {
			_, err := a.Update(ctx, "q0", func(e *approval.StoredRequest) error { e.Verdict = &approval.Verdict{Time: noon}; return nil })
			return err
		},
		"a grant": func(ctx context.Context) error { return a.AddGrant(ctx, approval.Grant{ID: "g1", Left: 1}) },
		"a grant less": func(ctx context.Context) error {
			return a.DropGrants(ctx, func(g approval.Grant) bool { return g.ID == "g0" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a verdict" {
				must(t, a.Put(t.Context(), entry(0)))
			}
			if name == "a grant less" {
				must(t, a.AddGrant(t.Context(), approval.Grant{ID: "g0", Left: 1}))
			}
			here, there := a.Changed(), b.Changed()
			must(t, change(t.Context()))
			for who, c := range map[string]<-chan struct{}{"here": here, "there": there} {
				select {
				case <-c:
				case <-time.After(20 * time.Second):
					t.Errorf("nobody %s is told", who)
				}
			}
		})
	}
}

func grantsAreKept(t *testing.T, a, b approval.Store) {
	grant := func(id string) approval.Grant {
		cover := approval.Cover{Kind: "delete", Across: true, Bound: []approval.Bound{{Param: "folder", Kind: approval.UnderFolder, Value: "/tmp/<1>"}}, Free: []string{"content"}}
		return approval.Grant{ID: id, Run: "r1", Key: entry(1).Items[0].Key, Cover: cover, AnyArgs: id == "g2", Uses: 3, Script: "fs__delete", By: "ann", Made: noon, Until: noon, Left: 2}
	}
	for _, id := range []string{"g1", "g2", "g3"} {
		must(t, a.AddGrant(t.Context(), grant(id)))
	}
	must(t, b.DropGrants(t.Context(), func(g approval.Grant) bool { return g.AnyArgs }))
	all, err := b.Grants(t.Context())
	must(t, err)
	if diff := cmp.Diff([]approval.Grant{grant("g1"), grant("g3")}, all); diff != "" {
		t.Errorf("kept are (-want +got):\n%s", diff)
	}
}

func grantIsUsedUp(t *testing.T, a, b approval.Store) {
	must(t, a.AddGrant(t.Context(), approval.Grant{ID: "g1", Left: 5}))
	var mu sync.Mutex
	used := 0
	var all sync.WaitGroup
	for i := range 12 {
		s := []approval.Store{a, b}[i%2]
		all.Go(func() {
			err := s.UpdateGrant(t.Context(), "g1", func(g *approval.Grant) error { g.Left--; return nil })
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				used++
			} else if !errors.Is(err, approval.ErrUnknown) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	left, err := a.Grants(t.Context())
	must(t, err)
	if used != 5 || len(left) != 0 {
		t.Errorf("used %d times, left %+v", used, left)
	}
}

func forgetting(t *testing.T, a, b approval.Store) {
	for n := 1; n <= 3; n++ {
		must(t, a.Put(t.Context(), entry(n)))
	}
	_, err := a.Update(t.Context(), "q1", func(e *approval.StoredRequest) error {
		e.Verdict = &approval.Verdict{Time: noon.Add(-time.Hour)}
		return nil
	})
	must(t, err)
	must(t, b.Forget(t.Context(), noon))
	if all := entries(t, a, approval.Filter{}); len(all) != 2 || all[0].ID != "q2" {
		t.Errorf("left are %+v", all)
	}
	must(t, b.Forget(t.Context(), noon.Add(time.Minute+1)))
	if all := entries(t, a, approval.Filter{}); len(all) != 0 {
		t.Errorf("left are %+v", all)
	}
}

func configurationIsHeld(t *testing.T, a, b approval.Store) {
	ctx := t.Context()
	held := func(file string) *approval.PendingConfig {
		h, err := approval.PendingConfigOf(ctx, b, file)
		must(t, err)
		return h
	}
	hold := func(h approval.PendingConfig, now time.Time) approval.PendingConfig {
		t.Helper()
		kept, err := approval.SubmitConfig(ctx, a, h, now)
		must(t, err)
		return kept
	}
	if h := held("f"); h != nil {
		t.Fatalf("held from the beginning: %+v", h)
	}
	if err := approval.Confirm(ctx, a, "f", "d1", approval.Confirmation{By: "ann", Channel: "terminal", At: noon}); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("nothing was confirmed: %v", err)
	}
	one := approval.PendingConfig{File: "f", Digest: "d1", Since: noon.UTC(), Why: []string{"<looser>"}, Diff: []string{"+x"}, Approvers: []approval.Approver{{Name: "ann", Role: approval.Admin, Token: [32]byte{1}}}}
	told := b.Changed()
	hold(one, noon)
	<-told
	if diff := cmp.Diff(&one, held("f"), cmp.AllowUnexported(approval.Approver{})); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	tellings := 0
	for range 10 { // or whoever looks at each change would never stop looking
		told := a.Changed()
		_, err := approval.PendingConfigOf(ctx, a, "f")
		must(t, err)
		select {
		case <-told:
			tellings++
		default:
		}
	}
	if tellings == 10 {
		t.Error("looking is told of as a change")
	}
	other := one
	other.Since = noon.Add(time.Hour).UTC()
	if kept := hold(other, noon); !kept.Since.Equal(one.Since) {
		t.Error("another bridge that holds the same text holds another one")
	}
	if err := approval.Confirm(ctx, b, "f", "d2", approval.Confirmation{By: "ann", Channel: "terminal", At: noon}); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("another text was confirmed: %v", err)
	}
	must(t, approval.Confirm(ctx, b, "f", "d1", approval.Confirmation{By: "ann", Channel: "terminal", At: noon}))
	must(t, approval.Confirm(ctx, b, "f", "d1", approval.Confirmation{By: "bob", Channel: "page", At: noon}))
	if kept := hold(one, noon.Add(59*time.Second)); kept.By != "ann" || kept.Channel != "terminal" {
		t.Errorf("confirmed just now by ann, and held: %+v", kept)
	}
	if kept := hold(one, noon.Add(time.Minute)); kept.By != "" {
		t.Errorf("an old confirmation confirms a text that comes back: %+v", kept)
	}
	grave := approval.PendingConfig{File: "g", Digest: "d1", Since: noon.UTC(), NeedsReason: true}
	hold(grave, noon)
	silent := approval.Confirmation{By: "ann", Channel: "page", Text: " ", At: noon.UTC()}
	var refused *approval.RefusedError
	if err := approval.Confirm(ctx, b, "g", "d1", silent); !errors.As(err, &refused) || held("g").By != "" {
		t.Errorf("confirmed without the reason that it needs: %v", err)
	}
	no := approval.Confirmation{By: "bob", Channel: "terminal", Text: "not now", At: noon.UTC()}
	if err := approval.Reject(ctx, b, "g", "d2", no); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("another text was rejected: %v", err)
	}
	must(t, approval.Reject(ctx, b, "g", "d1", no))
	all := func(string) bool { return true }
	must(t, approval.WithdrawConfig(ctx, a, "g", all))
	if diff := cmp.Diff(&approval.PendingConfig{File: "g", Digest: "d1", Since: noon.UTC(), NeedsReason: true, Rejected: &no}, held("g")); diff != "" {
		t.Errorf("rejected and let go, it is (-want +got):\n%s", diff)
	}
	said := silent
	said.Text = "agreed with ops"
	must(t, approval.Confirm(ctx, b, "g", "d1", said))
	if h := held("g"); h.Confirmation != said || h.Rejected != nil {
		t.Errorf("kept is %+v, want %+v", h, said)
	}
	if err := approval.Reject(ctx, b, "g", "d1", no); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("what was confirmed is rejected: %v", err)
	}
	must(t, approval.WithdrawConfig(ctx, a, "g", all))
	two := approval.PendingConfig{File: "f", Digest: "d2", Since: noon.UTC()}
	if kept := hold(two, noon); kept.Digest != "d2" {
		t.Errorf("a further edit does not replace the one before: %+v", kept)
	}
	if h := held("g"); h != nil {
		t.Errorf("held of another file: %+v", h)
	}
	must(t, approval.WithdrawConfig(ctx, a, "g", all))
	for _, bridge := range []string{"b1", "b2", "b1"} {
		two.Bridges = []string{bridge}
		hold(two, noon)
	}
	if h := held("f"); !slices.Equal(h.Bridges, []string{"b1", "b2"}) {
		t.Errorf("two bridges hold it, and it says %q", h.Bridges)
	}
	must(t, approval.WithdrawConfig(ctx, b, "f", func(bridge string) bool { return bridge == "b1" }))
	if h := held("f"); h == nil || !slices.Equal(h.Bridges, []string{"b2"}) {
		t.Errorf("one of two has let it go, and kept is %+v", h)
	}
	must(t, approval.WithdrawConfig(ctx, a, "f", all))
	if h := held("f"); h != nil {
		t.Errorf("still held: %+v", h)
	}
}
