package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A Copy says which file is copied, and into which new one.
type Copy struct{ From, To string }

// Snapshot copies SQLite files into new ones while others write, all of them as they are at
// one instant: writers wait until every copy has begun, and not longer.
func Snapshot(ctx context.Context, copies ...Copy) (err error) {
	var reading []*sql.Conn
	var ends []func() error
	defer func() {
		for _, end := range ends {
			err = errors.Join(err, end())
		}
	}()
	open := func(path, mode, begin string) (*sql.Conn, error) {
		pool, err := connect(path, mode, 1)
		if err != nil {
			return nil, err
		}
		ends = append(ends, pool.Close)
		conn, err := pool.Conn(ctx)
		if err == nil {
			ends = append([]func() error{conn.Close}, ends...)
			_, err = conn.ExecContext(ctx, begin)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, classed(err))
		}
		return conn, nil
	}
	var writing []*sql.Conn
	release := func() {
		for _, conn := range writing {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // nothing was written
		}
		writing = nil
	}
	defer release()
	for _, c := range copies {
		conn, err := open(c.From, "rw", "BEGIN IMMEDIATE")
		if err != nil {
			return err
		}
		writing = append(writing, conn)
	}
	for _, c := range copies {
		// A transaction begins to read with its first look.
		conn, err := open(c.From, "ro", "BEGIN; SELECT count(*) FROM sqlite_master")
		if err != nil {
			return err
		}
		reading = append(reading, conn)
	}
	release()
	for i, c := range copies {
		if err := copyWhole(reading[i], c.To); err != nil {
			return fmt.Errorf("copying %s to %s: %w", c.From, c.To, err)
		}
	}
	return nil
}

// copyWhole copies what a connection sees into a new file.
func copyWhole(from *sql.Conn, to string) error {
	if err := writeNew(to, nil); err != nil {
		return err
	}
	return from.Raw(func(driver any) error {
		source, ok := driver.(interface {
			NewBackup(uri string) (*sqlite.Backup, error)
		})
		if !ok {
			return errors.New("the driver of SQLite makes no backups")
		}
		b, err := source.NewBackup((&url.URL{Scheme: "file", OmitHost: true, Path: slashed(to), RawQuery: "mode=rw"}).String())
		if err != nil {
			return err
		}
		_, err = b.Step(-1)
		finished := b.Finish() // says the same once more
		return cmp.Or(err, finished)
	})
}

// slashed returns a path as an address has it.
func slashed(path string) string {
	path = filepath.ToSlash(path)
	if len(path) > 0 && path[0] != '/' {
		return "/" + path // a drive letter
	}
	return path
}

// NameOf returns the name of the store in a file, whose key need not be there.
func NameOf(ctx context.Context, path string) (name string, err error) {
	pool, err := connect(path, "rw", 1)
	if err != nil {
		return "", err
	}
	err = pool.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'store'").Scan(&name)
	if err = errors.Join(err, pool.Close()); err != nil {
		return "", fmt.Errorf("reading the name of the store in %s: %w", path, classed(err))
	}
	return name, nil
}

// Full reports whether an error is SQLite's that the disk is full.
func Full(err error) bool { return code(err) == sqlite3.SQLITE_FULL }
