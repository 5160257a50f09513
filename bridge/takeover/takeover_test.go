package takeover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
)

// begun begins a run of a bridge, with an open question unless it is empty.
func begun(t *testing.T, s *memstore.Store, q approval.Store, run, owner, configuration, question string) {
	t.Helper()
	err := s.Append(t.Context(), ledger.JournalEntry{Run: run, Owner: owner, Kind: ledger.Began, Configuration: configuration, Until: time.Now().Add(time.Hour)})
	if err == nil && question != "" {
		err = q.Put(t.Context(), approval.StoredRequest{Bridge: owner, Request: approval.Request{ID: question, Run: run, Until: time.Now().Add(time.Hour)}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What a bridge leaves behind is taken over once, whoever sees it, and left paused with
// its questions; what is others', or wanted to end, is not.
func TestRuns(t *testing.T) {
	t.Parallel()
	s, q := memstore.New(nil), new(approval.Memory)
	begun(t, s, q, "asks", "dead", "ours", "q1")
	begun(t, s, q, "works", "dead", "ours", "")
	begun(t, s, q, "others", "dead", "theirs", "q2")
	begun(t, s, q, "alive", "other", "ours", "q3")
	begun(t, s, q, "mine", "me", "ours", "q4")
	begun(t, s, q, "ends", "dead", "ours", "q5")
	if _, err := s.ChangeRun(t.Context(), "ends", func(k *ledger.JournaledRun) error { k.CancelRequestedBy = "ann"; return nil }); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var cancelled []string
	var all sync.WaitGroup
	for _, by := range []string{"me", "too", "third"} {
		all.Go(func() {
			err := Runs(t.Context(), Options{
				Journal: s, Requests: q, Bridge: by, Configuration: "ours", Gone: func(bridge string) bool { return bridge == "dead" },
				Cancel: func(_ context.Context, run, who string) error {
					mu.Lock()
					defer mu.Unlock()
					cancelled = append(cancelled, run+" for "+who)
					return nil
				},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	runs, err := s.Runs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range runs {
		owner, state, lease := "dead", ledger.Live, int64(1)
		switch k.Run {
		case "asks", "works":
			owner, state, lease = "", ledger.Paused, 2
		case "alive":
			owner = "other"
		case "mine":
			owner = "me"
		}
		if k.Owner != owner || k.State != state || k.Lease != lease {
			t.Errorf("%s is %s of %q under lease %d, want %s of %q under %d", k.Run, k.State, k.Owner, k.Lease, state, owner, lease)
		}
	}
	open, err := q.Requests(t.Context(), approval.Filter{Open: time.Now()})
	if err != nil || len(open) != 5 {
		t.Fatalf("open are %+v, %v", open, err)
	}
	for _, e := range open {
		want := map[string]string{"q1": "", "q2": "dead", "q3": "other", "q4": "me", "q5": "dead"}[e.ID]
		if e.Bridge != want {
			t.Errorf("%s is asked by %q, want %q", e.ID, e.Bridge, want)
		}
	}
	if len(cancelled) == 0 || slices.ContainsFunc(cancelled, func(one string) bool { return one != "ends for ann" }) {
		t.Errorf("ended are %q", cancelled)
	}
	// What the old bridge still writes of a run is refused.
	err = s.Append(t.Context(), ledger.JournalEntry{Run: "works", Owner: "dead", Lease: 1, Kind: ledger.Noted})
	if !errors.Is(err, ledger.ErrNotOwner) {
		t.Errorf("the old bridge writes on: %v", err)
	}
}

// A bridge that is alive by the store's clock keeps its runs, whatever this one thinks;
// what fails is said.
func TestRunsAreKept(t *testing.T) {
	t.Parallel()
	s, q := memstore.New(nil), new(approval.Memory)
	begun(t, s, q, "r", "slow", "ours", "q1")
	o := Options{Journal: refusing{s, ledger.ErrOwnerAlive}, Requests: q, Bridge: "me", Configuration: "ours", Gone: func(string) bool { return true }}
	if err := Runs(t.Context(), o); err != nil {
		t.Error(err)
	}
	o.Journal = refusing{s, ledger.ErrUnavailable}
	if err := Runs(t.Context(), o); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "run r from slow") {
		t.Errorf("got %v", err)
	}
}

type refusing struct {
	ledger.Journal
	err error
}

func (r refusing) ChangeRun(context.Context, string, func(*ledger.JournaledRun) error) (ledger.JournaledRun, error) {
	return ledger.JournaledRun{}, r.err
}
