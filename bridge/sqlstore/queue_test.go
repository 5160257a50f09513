package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"codemode-bridge/bridge/ledger"
)

// While one session has thousands of records in the queue, those of another are in the next transaction, and no
// transaction has more rows than a session can wait for.
func TestSessionsTakeTurnsAtTheStore(t *testing.T) {
	q := newQueue()
	of := func(session string, rows int) *item {
		return &item{session: session, bodies: make([][]byte, rows)}
	}
	const busy = 4000
	for range 3 * batchRows { // alone, it has all of them at once
		q.add(of("busy", 1))
	}
	if n := len(q.take()); n != 3*batchRows || q.shared() {
		t.Errorf("%d records of a session that is alone are in one transaction", n)
	}
	q.add(of("", 1)) // of nobody
	if q.take(); q.shared() {
		t.Error("what belongs to no session counts as another one")
	}
	q.add(of("quiet", 1))
	if q.take(); !q.shared() {
		t.Error("a second session does not count")
	}
	for range busy {
		q.add(of("busy", 1))
	}
	taken, transactions := 0, 0
	next := func() (rows int, sessions map[string]int) {
		sessions = map[string]int{}
		for _, it := range q.take() {
			rows += it.rows()
			sessions[it.session] += it.rows()
		}
		transactions++
		taken += sessions["busy"]
		if rows > batchRows {
			t.Errorf("%d rows in a transaction", rows)
		}
		return rows, sessions
	}
	next()
	for i := range 50 {
		q.add(of("quiet", 1+i%3))
		if _, sessions := next(); sessions["quiet"] == 0 {
			t.Fatalf("record %d is not in the next transaction, but %v", i, sessions)
		}
	}
	for _, s := range []string{"a", "b", "c"} {
		for range 3 {
			q.add(of(s, batchRows/4))
		}
	}
	if _, sessions := next(); len(sessions) != 4 {
		t.Errorf("a transaction has only rows of %v", sessions)
	}
	for q.len() > 0 {
		next()
	}
	if taken != busy || transactions > 10+busy/(batchRows-4) {
		t.Errorf("%d records in %d transactions", taken, transactions)
	}
	q.add(of("busy", 10*batchRows)) // what belongs together is not divided
	q.add(of("quiet", 1))
	if all := append(q.take(), q.take()...); len(all) != 2 || q.len() != 0 {
		t.Errorf("%d of 2 items are taken", len(all))
	}
}

// In the file as well: the row of a session that comes last is among the first.
func TestQuietSessionIsWrittenFirst(t *testing.T) {
	db := open(t, place(t, 0))
	busy, free := make(chan struct{}), make(chan struct{})
	const many = 500
	results := make(chan error, many+2)
	go func() {
		results <- db.ask(t.Context(), func(context.Context, *file) error {
			close(busy)
			<-free
			return nil
		})
	}()
	<-busy
	send := func(session string, n int) {
		for i := range n {
			go func() {
				results <- db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Session: session, Run: fmt.Sprint(session, i)})
			}()
		}
	}
	send("busy", many)
	until(t, func() bool { return db.queue.len() == many })
	send("quiet", 1)
	until(t, func() bool { return db.queue.len() == many+1 })
	close(free)
	for range many + 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	for _, row := range all(t, db) {
		if row.Record.Session == "quiet" && row.Seq > batchRows {
			t.Errorf("it is row %d", row.Seq)
		}
	}
}

// A long journal is gone as soon as its run ends, and its entries are removed in pieces, also after another start.
func TestLongJournalIsRemovedInPieces(t *testing.T) {
	o := place(t, 0)
	db := open(t, o)
	const n = 10 * dropAtOnce
	long := func() {
		begin(t, db, "long")
		for range n {
			if err := db.Append(t.Context(), ledger.JournalEntry{Run: "long", Kind: ledger.Replied, Owner: "x", Call: 1, Body: []byte("a secret answer")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries := func(f *file) (left int64) {
		left, err := f.number(background, "SELECT count(*) FROM entries")
		if err != nil {
			t.Error(err)
		}
		return left
	}
	drop := func(f *file) error {
		return f.inTransaction(background, func() error {
			j, err := f.journal(background, "long")
			if err != nil {
				return err
			}
			return f.dropJournal(background, j)
		})
	}
	begin(t, db, "other")
	for round := range 2 {
		long()
		if err := db.ask(t.Context(), func(_ context.Context, f *file) error {
			if err := drop(f); err != nil {
				return err
			}
			again, err := openFile(background, &o, nil, false)
			if err != nil {
				return err
			}
			if again.dropped == 0 {
				t.Error("another start leaves it where it is")
			}
			again.closeWriting()
			again.closeReading()
			for want := int64(4 + 4 + n); ; want -= dropAtOnce {
				if left := entries(f); left != max(4, want) {
					t.Errorf("%d entries are left, want %d", left, want)
				}
				if f.dropped == 0 || round == 1 { // in the second round the rest is left to others
					break
				}
				if err := (remover{f}).remove(background, dropAtOnce); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		runs, err := db.Runs(t.Context())
		if err != nil || len(runs) != 1 || runs[0].Run != "other" {
			t.Errorf("the runs are %+v, %v", runs, err)
		}
		if _, _, err := db.Read(t.Context(), "long"); !errors.Is(err, ledger.ErrNoJournal) {
			t.Errorf("a journal that was dropped is read: %v", err)
		}
	}
	long() // its name is free
	if err := db.Drop(t.Context(), "long"); err != nil {
		t.Error(err)
	}
	closeStore(t, db)
	db = open(t, o)
	if err := db.ask(t.Context(), func(_ context.Context, f *file) error {
		if left := entries(f); left != 4 {
			t.Errorf("%d entries are left after the end, want those of the other run", left)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if _, kept, err := db.Read(t.Context(), "other"); err != nil || len(kept) != 4 {
		t.Errorf("the other run has %d entries, %v", len(kept), err)
	}
}

// The -wal is copied to the file without anybody who commits, and only to the file that is open.
func TestCopiedBeside(t *testing.T) {
	o := place(t, 0)
	db := open(t, o)
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	var f *file
	if err := db.ask(t.Context(), func(_ context.Context, now *file) error { f = now; return nil }); err != nil {
		t.Fatal(err)
	}
	put(t, db, 400)
	settled(t, db)
	before := size(o.Path)
	other := place(t, 0)
	if err := copyBeside(t.Context(), other.Path, f.info); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other.Path + "-wal"); err == nil || size(o.Path) != before {
		t.Error("a file is opened that is another one")
	}
	c := copier{busy: make(chan struct{}, 1)}
	c.pages = copyPages - 10
	if c.wrote(t.Context(), f, 2, o.Path); len(c.busy) != 0 {
		t.Error("it copies too early")
	}
	c.wrote(t.Context(), f, 20, o.Path)
	c.under.Wait()
	if size(o.Path) <= before {
		t.Errorf("the file has %d bytes, as before", before)
	}
	put(t, db, 1)
}
