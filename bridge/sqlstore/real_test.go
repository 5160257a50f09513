//go:build real && linux

package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"codemode-bridge/bridge/ledger"
)

func init() {
	parts["sync"] = func(args []string) error { return failingSync(args[0]) }
}

// TestRealKilled is TestKilled, often enough to meet every moment: a thousand
// kills, on five logs.
func TestRealKilled(t *testing.T) {
	for log := range 5 {
		t.Run(fmt.Sprint("log-", log), func(t *testing.T) {
			t.Parallel()
			killed(t, 200)
		})
	}
}

// TestRealDamagedBytes is TestDamagedBytes over much of the file.
func TestRealDamagedBytes(t *testing.T) {
	for part := range 5 {
		t.Run(fmt.Sprint("part-", part), func(t *testing.T) {
			t.Parallel()
			damageBytes(t, 1000)
		})
	}
}

// TestRealFailedSync has the n-th sync of the disk fail, for every n that a
// short life of the store has. The next sync would succeed, although what was
// to be synced before may be lost: the store must not go on as if nothing had
// happened.
func TestRealFailedSync(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	const syncs = 45
	var refused atomic.Int32
	t.Run("syncs", func(t *testing.T) {
		for n := 1; n <= syncs; n++ {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				cmd := child(t, "sync", filepath.Join(t.TempDir(), "audit.db"))
				cmd.Args = append([]string{strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace=fsync,fdatasync",
					"-e", fmt.Sprintf("inject=fsync,fdatasync:error=EIO:when=%d", n)}, cmd.Path)
				cmd.Path = strace
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("sync %d fails: %v\n%s", n, err, out)
				}
				if string(out) == "refused\n" {
					refused.Add(1)
				}
			})
		}
	})
	if refused.Load() == 0 {
		t.Error("no record was refused: the syncs that fail are not those of records")
	}
	t.Logf("%d of %d failing syncs refused a record", refused.Load(), syncs)
}

// failingSync records, one record a transaction, each synced, while one sync of
// each thread fails. It says "refused" when a record was.
func failingSync(path string) error {
	db, err := Open(background, Options{Path: path, AllDurable: true})
	if err != nil {
		return nil // nothing was promised
	}
	kept, refused := int64(0), 0
	for kept < 30 && refused < 30 {
		switch err := db.Record(background, ledger.Record{Event: ledger.Intent}); {
		case err == nil:
			kept++
		case errors.Is(err, ledger.ErrUnavailable):
			refused++
		default:
			return err
		}
	}
	if kept < 30 {
		return fmt.Errorf("after %d records and %d refusals the store has not recovered", kept, refused)
	}
	if err := wholeWith(db, kept); err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if db, err = Open(background, Options{Path: path}); err != nil {
		return err
	}
	defer db.Close()
	if refused > 0 {
		fmt.Println("refused")
	}
	return wholeWith(db, kept)
}
