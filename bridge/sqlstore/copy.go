package sqlstore

import (
	"context"
	"os"
	"sync"
)

const (
	copyPages = 4000 // pages in the -wal, about, after which they are copied to the file
	// A -wal that is so long, because the copying does not keep up, is copied by whoever commits.
	mostPages = 4 * copyPages
)

// A copier copies what is in the -wal to the file, as SQLite does by itself at the end of every
// thousandth page or so. That syncs the disk twice, so that whoever commits then, and all who are in the
// queue behind, would wait for some 50 ms. It has a connection and a goroutine of its own, which hold
// up nobody who reads or writes.
type copier struct {
	pages int // written since it began last, about
	under sync.WaitGroup
	busy  chan struct{} // holds a token while it copies
}

// wrote notes what a transaction wrote, and begins to copy when there is enough.
func (c *copier) wrote(ctx context.Context, f *file, rows int, path string) {
	c.pages += rows/2 + 4 // a row of the log is half a page, and each transaction ends some more
	if c.pages < copyPages {
		return
	}
	select {
	case c.busy <- struct{}{}:
	default:
		return
	}
	c.pages = 0
	c.under.Go(func() {
		defer func() { <-c.busy }()
		_ = copyBeside(ctx, path, f.info) // what was not copied is copied with the next pages
	})
}

// copyBeside copies the -wal of the file at path, if it still is the one that is open.
func copyBeside(ctx context.Context, path string, is os.FileInfo) error {
	if info, err := os.Stat(path); err != nil || !os.SameFile(info, is) {
		return err
	}
	pool, err := connect(path, "rw", 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return err
}
