//go:build unix

package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
)

// What happens to the files of a store that is in use is noticed with the next
// record, whose call is refused. Rows that were kept are never given up
// silently.
func TestFilesVanish(t *testing.T) {
	const refused, damaged = "refused", "damaged"
	for _, row := range []struct {
		name string
		do   func(t *testing.T, o Options)
		undo func(t *testing.T, o Options)
		want string // refused until undone, damaged until undone, or nothing: it goes on
	}{
		{"moved away and back", func(t *testing.T, o Options) { rename(t, o.Path, o.Path+".away") },
			func(t *testing.T, o Options) { rename(t, o.Path+".away", o.Path) }, refused},
		{"deleted", func(t *testing.T, o Options) { os.Remove(o.Path) }, nil, refused},
		{"replaced by an older copy", func(t *testing.T, o Options) {
			os.Remove(o.Path + "-wal")
			os.Remove(o.Path + "-shm")
			rename(t, o.Path+".older", o.Path)
		}, nil, damaged},
		{"replaced by another log", func(t *testing.T, o Options) {
			c := place(t, 3).copyTo(t, t.TempDir())
			for from, to := range map[string]string{c.Path: o.Path, c.Key: o.Key} {
				rename(t, from, to)
			}
			os.Remove(o.Path + "-wal")
			os.Remove(o.Path + "-shm")
		}, nil, damaged},
		{"emptied", func(t *testing.T, o Options) { os.Truncate(o.Path, 0); os.Truncate(o.Path+"-wal", 0) }, nil, damaged},
		{"its -wal deleted", func(t *testing.T, o Options) { os.Remove(o.Path + "-wal") }, nil, ""},
		{"its -wal emptied", func(t *testing.T, o Options) { os.Truncate(o.Path+"-wal", 0) }, nil, damaged},
		{"its key deleted", func(t *testing.T, o Options) { os.Remove(o.Key) }, nil, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := place(t, 20)
			o.CheckpointFile = ""
			keepOlder(t, o)
			db := open(t, o)
			put(t, db, 5)
			row.do(t, o)
			err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent})
			switch row.want {
			case refused:
				if !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(db.Err(), ledger.ErrUnavailable) {
					t.Errorf("recording: %v; the store says %v", err, db.Err())
				}
			case damaged:
				if err == nil { // what SQLite had in memory was enough once more
					err = db.Record(t.Context(), ledger.Record{Event: ledger.Intent})
				}
				if !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, ledger.ErrUnavailable) {
					t.Errorf("recording: %v", err)
				}
				if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent}); !errors.Is(err, ledger.ErrDamaged) {
					t.Errorf("recording again: %v", err)
				}
				return
			default:
				if err != nil {
					t.Errorf("recording: %v", err)
				}
			}
			if row.undo != nil {
				row.undo(t, o)
				put(t, db, 2)
			}
			if row.want == "" || row.undo != nil {
				report, err := db.Verify(t.Context(), nil)
				if err != nil || !report.Whole || report.Rows < 25 {
					t.Errorf("afterwards: %+v, %v", report, err)
				}
			}
		})
	}
}

// keepOlder keeps a copy of a closed store beside it.
func keepOlder(t *testing.T, o Options) {
	t.Helper()
	data, err := os.ReadFile(o.Path)
	if err == nil {
		err = os.WriteFile(o.Path+".older", data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk runs in a child, whose files may not grow beyond a limit.
func TestFullDisk(t *testing.T) {
	if out, err := child(t, "full", filepath.Join(t.TempDir(), "audit.db")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func fullDisk(path string) error {
	signal.Ignore(syscall.SIGXFSZ) // the write fails instead
	ctx := background
	db, err := Open(ctx, Options{Path: path})
	if err != nil {
		return err
	}
	defer db.Close()
	var free unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &free); err != nil {
		return err
	}
	if err := db.Append(ctx, ledger.JournalEntry{Run: "r", Kind: ledger.Began, Owner: "x"}); err != nil {
		return err
	}
	entry := []ledger.JournalEntry{{Run: "r", Kind: ledger.Sent, Owner: "x", Body: make([]byte, 500)}}
	kept := int64(0)
	for round := range 3 {
		size := int64(0)
		for _, name := range []string{path, path + "-wal"} {
			if info, err := os.Stat(name); err == nil {
				size = max(size, info.Size())
			}
		}
		full := unix.Rlimit{Cur: uint64(size) + 100_000, Max: free.Max}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &full); err != nil {
			return err
		}
		var failed error
		for i := 0; i < 10_000 && failed == nil; i++ {
			if failed = db.Record(ctx, ledger.Record{Event: ledger.Intent, Run: "r", Error: strings.Repeat("x", 1000), Durable: i%2 == 0, Journal: entry}); failed == nil {
				kept++
			}
		}
		if !errors.Is(failed, ledger.ErrUnavailable) || !errors.Is(db.Err(), ledger.ErrUnavailable) {
			return fmt.Errorf("round %d: recording on a full disk: %v; the store says %v", round, failed, db.Err())
		}
		if err := db.Record(ctx, ledger.Record{Event: ledger.Intent, Run: "r", Script: strings.Repeat("x", 300_000), Journal: entry}); err == nil {
			return fmt.Errorf("round %d: the disk is still full, and more was recorded", round)
		}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &free); err != nil {
			return err
		}
		if err := db.Record(ctx, ledger.Record{Event: ledger.Intent}); err != nil {
			return fmt.Errorf("round %d: recording with room again: %w", round, err)
		}
		kept++
	}
	if err := bothKept(db, "r"); err != nil {
		return err
	}
	return wholeWith(db, kept)
}

// wholeWith checks that the log is whole and has at least so many rows.
func wholeWith(db *DB, kept int64) error {
	report, err := db.Verify(background, nil)
	if err == nil && (!report.Whole || report.Rows < kept) {
		err = fmt.Errorf("%d records were kept, verify says %+v", kept, report)
	}
	return err
}

// TestReadOnlyFile runs in a child that is nobody, if we are root: root may
// write where nobody may.
func TestReadOnlyFile(t *testing.T) {
	o := place(t, 5)
	dir := filepath.Dir(o.Path)
	cmd := child(t, "forbidden", o.Path)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		for _, name := range []string{dir, o.Path, o.Key} {
			if err := os.Chown(name, 65534, 65534); err != nil {
				t.Skipf("this user is root, and may not give files away: %v", err)
			}
		}
		for parent := filepath.Dir(dir); len(parent) > len(os.TempDir()); parent = filepath.Dir(parent) {
			if err := os.Chmod(parent, 0o711); err != nil {
				t.Fatal(err)
			}
		}
		cmd.Path = reachable(t, cmd.Path)
	}
	for name, mode := range map[string]os.FileMode{o.Path: 0o400, dir: 0o500} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// reachable copies the test binary to where everybody may run it.
func reachable(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "sqlstore")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	open := filepath.Join(dir, "test")
	if err := errors.Join(os.WriteFile(open, data, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return open
}

func forbidden(path string) error {
	db, err := Open(background, Options{Path: path})
	if err == nil {
		db.Close()
		return errors.New("opened a file that may not be written")
	}
	if errors.Is(err, ledger.ErrDamaged) {
		return fmt.Errorf("a file that may not be written counts as damaged: %w", err)
	}
	return nil
}

// A checkpoint is signed with the key of the rows it is of, whatever stands in
// their place by then.
func TestCheckpointOfWhatWasWritten(t *testing.T) {
	o := place(t, 4)
	db := open(t, o)
	put(t, db, 1)
	key := db.key
	c := place(t, 3).copyTo(t, t.TempDir())
	rename(t, c.Path, o.Path)
	rename(t, c.Key, o.Key)
	os.Remove(o.Path + "-wal")
	os.Remove(o.Path + "-shm")
	if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent}); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("recording in another log: %v", err)
	}
	closeStore(t, db)
	if last, err := lastCheckpoint(&o); err != nil || last.Seq != 5 || !last.SignedWith(key) {
		t.Errorf("the last checkpoint is %+v, %v", last, err)
	}
}

// A file that was moved away is not written to behind the back of those who
// open what stands in its place, and those who wait are told of it once.
func TestRequestsMoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests.db")
	synctest.Test(t, func(t *testing.T) {
		r := openRequests(t, path)
		if err := r.Put(t.Context(), approval.StoredRequest{Request: approval.Request{ID: "q1"}}); err != nil {
			t.Fatal(err)
		}
		r.Changed()
		time.Sleep(time.Minute)
		synctest.Wait()
		changed := r.Changed()
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		<-changed
		for _, there := range []bool{false, true} {
			if there {
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, entries := r.Requests(t.Context(), approval.Filter{})
			_, grants := r.Grants(t.Context())
			_, update := r.Update(t.Context(), "q1", func(*approval.StoredRequest) error { return nil })
			put := r.Put(t.Context(), approval.StoredRequest{Request: approval.Request{ID: "q2"}})
			for what, err := range map[string]error{"Entries": entries, "Grants": grants, "Update": update, "Put": put} {
				if err == nil || !strings.Contains(err.Error(), "moved or replaced") {
					t.Errorf("%s, with another file %v: %v", what, there, err)
				}
			}
		}
		changed = r.Changed()
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case <-changed:
			t.Error("those who wait were told again of the same failure")
		default:
		}
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
		<-changed
		if all, err := r.Requests(t.Context(), approval.Filter{}); err != nil || len(all) != 1 {
			t.Errorf("put back: %v, %v", all, err)
		}
	})
}
