package sqlstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/bridge/ledger"
)

// user records calls that grants allow until it is killed, and says so in a file.
func user(path, began string) error {
	db, err := Open(background, Options{Path: path})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for w := range 4 {
		go func() {
			for i := 1; ; i++ {
				r := ledger.Record{Event: ledger.Intent, Run: fmt.Sprint(os.Getpid()), Call: i, Grant: fmt.Sprint("g", w%3), GrantUses: 1 << 30, Durable: i%5 == 0}
				if err := db.Record(background, r); err != nil {
					failed <- err
				}
				if i == 1 {
					if err := os.WriteFile(began, nil, 0o600); err != nil {
						failed <- err
					}
				}
			}
		}()
	}
	return <-failed
}

// However often a process is killed, each use of a grant is counted with the record
// of its call.
func TestUsesAndKills(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.db")
	for i := range 10 {
		began := filepath.Join(dir, fmt.Sprint("began", i))
		cmd := child(t, "use", path, began)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for len(ended) == 0 {
			if _, err := os.Stat(began); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond) // the moment is the test
		cmd.Process.Kill()
		if err := <-ended; err == nil {
			t.Fatal("the process ended by itself")
		}
	}
	db := open(t, Options{Path: path})
	recorded, counted := map[string]int{}, map[string]int{}
	for row, err := range db.Rows(t.Context(), ledger.Query{}) {
		must(t, err)
		recorded[row.Record.Grant]++
	}
	must(t, db.ask(t.Context(), func(ctx context.Context, f *file) (err error) {
		for grant := range recorded {
			if counted[grant], err = f.used(ctx, grant); err != nil {
				return err
			}
		}
		return nil
	}))
	if diff := cmp.Diff(recorded, counted); diff != "" || len(recorded) != 3 {
		t.Errorf("recorded and counted:\n%s", diff)
	}
}

// The count of a grant outlives its records until the grant cannot hold any more.
func TestUsesOutliveRecords(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	db := open(t, Options{Path: filepath.Join(t.TempDir(), "audit.db"), Clock: func() time.Time { return now }})
	once := ledger.Record{Event: ledger.Intent, Run: "r", Call: 1, Grant: "g", GrantUses: 1}
	must(t, db.Record(t.Context(), once))
	for _, row := range []struct {
		after time.Duration
		used  int
	}{{time.Hour, 1}, {keepUses, 0}} {
		now = now.Add(row.after)
		if _, err := db.Prune(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		must(t, db.ask(t.Context(), func(ctx context.Context, f *file) error {
			if n, err := f.used(ctx, "g"); n != row.used || err != nil {
				t.Errorf("%v later it was used %d times, %v", row.after, n, err)
			}
			return nil
		}))
	}
}
