package approval

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A session is of one process: once that has ended, however it did, nobody goes
// by the session's grants, lists them, or keeps them. While it lives, others
// list them and say what they are.
func TestGrantEndsWithItsBridge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, gone := new(Memory), map[string]bool{}
		of := func(bridge string) *Broker {
			return New(Options{Store: store, Bridge: bridge, Gone: func(b string) bool { return gone[b] }})
		}
		r := question(1, remembered)
		r.Client = "Claude Code"
		first, next, command := of("b1"), of("b2"), of("")
		grant(t, first, r, SessionScope)
		all := grants(t, command)
		if len(all) != 1 {
			t.Fatalf("the grants are %+v", all)
		}
		got := Grant{Covers: all[0].Covers, Client: all[0].Client, Bridge: all[0].Bridge}
		if diff := cmp.Diff(Grant{Covers: `{"n":1}`, Client: "Claude Code", Bridge: "b1"}, got); diff != "" {
			t.Fatalf("the grant (-want +got):\n%s", diff)
		}
		wantAnswer(t, asks(t.Context(), first, r), "yes")
		stillAsks(t, asks(t.Context(), next, r)) // its session has the same name, as that of a resumed run

		gone["b1"] = true
		if left := len(grants(t, command)) + len(grants(t, next)); left > 0 {
			t.Errorf("%d grants of a bridge that is gone are listed", left)
		}
		if err := next.Prune(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if kept, err := store.Grants(t.Context()); err != nil || len(kept) > 0 {
			t.Errorf("kept are %+v, %v", kept, err)
		}
		next.EndRun("r1")
	})
}

// A grant of an older release, which does not say whose it is, covers nothing.
func TestGrantOfAnOlderRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(Memory)
		r := question(1, remembered)
		old := Grant{ID: "g1", Key: r.Items[0].Key, Script: r.Script, By: "ann", Made: time.Now(), Until: time.Now().Add(time.Hour), Left: 100}
		if err := store.AddGrant(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		b := New(Options{Store: store, Bridge: "b1"})
		stillAsks(t, asks(t.Context(), b, r))
		if left := grants(t, b); len(left) > 0 {
			t.Errorf("listed are %+v", left)
		}
		b.EndRun("r1")
	})
}
