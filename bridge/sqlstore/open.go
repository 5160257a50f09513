package sqlstore

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"codemode-bridge/bridge/ledger"
)

// openFile opens the store and checks its end. known is what this process
// remembers of it, nil for nothing; afresh permits a new store although there is
// the key of an old one.
//
// With an error that wraps ErrDamaged it may return a file that can only be read.
// Any other error has a cause that a person must remove: a folder that cannot be
// written, a newer schema.
func openFile(ctx context.Context, o *Options, known *lastSeen, afresh bool) (_ *file, err error) {
	info, err := o.place(known, afresh)
	if err != nil {
		return nil, err
	}
	if err := checkWAL(ctx, o); err != nil {
		return nil, opening(o.Path, err)
	}
	f := &file{info: info, size: info.Size(), journals: make(map[string]*journal)}
	mode := "rw"
	if o.ReadOnly {
		mode = "ro"
	}
	if f.write, err = connect(o.Path, mode, 1); err == nil {
		f.conn, err = f.write.Conn(ctx)
	}
	if err == nil && !o.ReadOnly {
		err = f.enterWAL(ctx)
	}
	if err == nil {
		err = once(ctx, f, fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", mostPages))
	}
	if err == nil {
		err = f.prepareSchema(ctx, o, known, afresh)
	}
	if err == nil {
		err = f.identify(ctx, o)
	}
	if f.id != "" {
		f.read, _ = connect(o.Path, "ro", 4) // an error shows at the first use
	}
	if err == nil {
		f.ring = ledger.NewKeyring(f.id, f.key)
		err = f.check(ctx, o, known, afresh)
	}
	if err == nil && !o.ReadOnly {
		f.dropped, err = f.number(ctx, "SELECT count(*) FROM journals WHERE "+isDropped)
	}
	if err == nil {
		return f, nil
	}
	f.closeWriting()
	if err = opening(o.Path, err); f.read == nil || !errors.Is(err, ledger.ErrDamaged) {
		f.closeReading()
		return nil, err
	}
	return f, err
}

// place finds the file, or makes an empty one if there is none.
func (o *Options) place(known *lastSeen, afresh bool) (os.FileInfo, error) {
	dir := filepath.Dir(o.Path)
	if !o.ReadOnly {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making the audit log's folder: %w", err)
		}
	}
	if kind := o.networkFS(dir); kind != "" {
		return nil, fmt.Errorf("opening the audit log %s: it is on %s, and SQLite needs a file system of this machine alone: move it with audit.path", o.Path, kind)
	}
	info, err := os.Stat(o.Path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("opening the audit log %s: it is no plain file", o.Path)
	case err == nil:
		if runtime.GOOS != "windows" && !o.ReadOnly && info.Mode().Perm()&0o077 != 0 {
			if err := os.Chmod(o.Path, 0o600); err != nil {
				return nil, fmt.Errorf("closing the audit log to others: %w", err)
			}
		}
		return info, nil
	case !errors.Is(err, fs.ErrNotExist) || o.ReadOnly:
		return nil, fmt.Errorf("opening the audit log: %w", err)
	case known != nil:
		return nil, unavailable("its file %s is gone", o.Path)
	}
	if !afresh {
		if _, err := os.Stat(o.Key); err == nil {
			return nil, damaged("its file %s is gone, though its key is there", o.Path)
		}
		if last, err := lastCheckpoint(o); err != nil {
			return nil, err
		} else if last != nil {
			return nil, damaged("its file %s is gone, though %s has a checkpoint of it", o.Path, o.CheckpointFile)
		}
	}
	if _, err := os.Lstat(o.Path + "-wal"); err == nil {
		return nil, damaged("its file %s is gone, though its -wal is there", o.Path)
	}
	f, err := os.OpenFile(o.Path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making the audit log: %w", err)
	}
	info, err = f.Stat()
	// Closed before SQLite opens it: closing any descriptor of a file drops
	// the locks that this process has on it.
	return info, errors.Join(err, f.Close())
}

// opening adds what was being done, keeping the class of err.
func opening(path string, err error) error {
	if _, newer := errors.AsType[*ledger.NewerError](err); newer {
		return fmt.Errorf("opening the audit log %s: %w", path, err)
	}
	if err = classed(err); errors.Is(err, ledger.ErrDamaged) {
		return err
	}
	return fmt.Errorf("opening the audit log %s: %w", path, err)
}

// enterWAL switches the file to a write-ahead log, unless it already has one.
// SQLite does not wait for others when it does that, so we do, as long as ctx lasts.
func (f *file) enterWAL(ctx context.Context) error {
	for try := 0; ; try++ {
		var mode string
		err := f.conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		if code(err) == sqlite3.SQLITE_BUSY && try < 100 {
			select {
			case <-time.After(20 * time.Millisecond):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err == nil && mode != "wal" {
			err = fmt.Errorf("SQLite cannot keep a write-ahead log here")
		}
		return err
	}
}

// prepareSchema brings the schema to what this release needs, from nothing if the
// file is new.
func (f *file) prepareSchema(ctx context.Context, o *Options, known *lastSeen, afresh bool) error {
	if o.ReadOnly {
		return migrate(ctx, f.conn, true)
	}
	return f.inTransaction(ctx, func() error {
		var tables int
		if err := f.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil || tables > 0 {
			if err == nil {
				err = migrate(ctx, f.conn, false)
			}
			return err
		}
		key, err := readKeyFile(o.Key)
		switch {
		case known != nil || err == nil && !afresh:
			return damaged("its file %s is empty", o.Path)
		case errors.Is(err, fs.ErrNotExist):
			key, err = makeKey(o.Key)
		}
		if err != nil {
			return err
		}
		id := make([]byte, 16)
		rand.Read(id)
		store := hex.EncodeToString(id)
		return once(ctx, f, strings.Join(migrations, "")+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", application, version)+
			fmt.Sprintf("INSERT INTO meta VALUES ('oldest', '%d'), ('store', '%s'), ('key', '%s'), ('seal', '%s');", oldestReader, store, ledger.KeyName(key), ledger.StoreSeal(key, store)))
	})
}

// identify reads the store's id and finds its key.
func (f *file) identify(ctx context.Context, o *Options) error {
	meta := make(map[string]string)
	rows, err := f.conn.QueryContext(ctx, "SELECT name, value FROM meta")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		meta[name] = value
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if err := genuine(ctx, f.conn); err != nil {
		return err
	}
	f.id = meta["store"]
	if f.key, err = readKey(o.Key, meta["key"], o.ReadOnly); err != nil {
		return err
	}
	if !hmac.Equal([]byte(ledger.StoreSeal(f.key, f.id)), []byte(meta["seal"])) {
		return damaged("its name was changed")
	}
	return nil
}
