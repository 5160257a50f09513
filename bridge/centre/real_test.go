//go:build real

package centre

import (
	"bytes"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/enrolment"
	"codemode-bridge/bridge/enrolment/wire"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pgstore"
	"codemode-bridge/bridge/pgtest"
)

// Two replicas of a centre share a schema of PostgreSQL, and get the batches of one laptop at
// the same time, each of them often: every row is there once.
func TestRealReplicas(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	at := pgstore.Options{URL: server.Schema(), Secret: []byte("a secret of the test, long enough")}
	own, err := pgstore.Open(t.Context(), at) // makes the schema
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	opened := make([]*Store, 4)
	var opening sync.WaitGroup
	for i := range opened {
		opening.Go(func() {
			var db *sql.DB
			var err error
			if db, err = pgstore.SQL(at); err == nil {
				opened[i], err = OpenStore(t.Context(), db, PostgreSQL)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, s := range opened {
		defer s.Close()
	}
	s := &stage{t: t, store: opened[0], notes: new(notes), log: &log{store: "log-1"}, folder: enrolment.Folder(t.TempDir())}
	replica := func(i int) *Centre {
		return New(Options{Store: opened[i], Key: centreKey, Seal: sealKey, Record: s.notes})
	}
	s.centre = replica(0)
	s.wire = &line{to: s.centre}
	s.enrol()
	s.log.write(many(400, "row")...)
	all := s.log.copied()
	var sending sync.WaitGroup
	for i := range 4 {
		e, err := s.folder.Enrolment()
		if err != nil {
			t.Fatal(err)
		}
		key, err := s.folder.Key(false)
		if err != nil {
			t.Fatal(err)
		}
		client := enrolment.NewClient(e, key, &line{to: replica(i)})
		sending.Go(func() {
			for at := 0; at < len(all); {
				b := wire.Batch{Store: "log-1", After: int64(at), Waiting: int64(max(0, len(all)-at-25))}
				if at > 0 {
					b.Prev = wire.Hash(all[at-1].Hash)
				}
				for _, l := range all[at:min(len(all), at+25)] {
					b.Rows = append(b.Rows, wire.Row{Seq: l.Seq, Hash: wire.Hash(l.Hash), Body: string(l.Body)})
				}
				head, err := client.Send(t.Context(), b)
				var no *wire.Refusal
				if errors.As(err, &no) && no.Code == wire.Replayed { // another was first, again and again
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				at = int(max(int64(at+25), head.Seq))
			}
		})
	}
	sending.Wait()
	s.has(all)
	if r := s.verify(); r.Rows != 400 || !r.Sealed {
		t.Errorf("%+v", r)
	}
	err = s.store.Change(t.Context(), "ann", func(l *Laptop) ([]ledger.Link, error) {
		l.Person = "nobody"
		return []ledger.Link{{Seq: 400, Body: []byte("{}")}}, nil
	})
	if err == nil || s.laptop("ann").Person != "ann" {
		t.Errorf("a row that is there twice: %v", err)
	}
	if _, err := s.store.db.Exec("UPDATE laptop_rows SET body = $1 WHERE seq = 7", bytes.Repeat([]byte("x"), 9)); err != nil {
		t.Fatal(err)
	}
	if r := s.verify(); r.Whole || r.Bad != 7 {
		t.Errorf("%+v", r)
	}
	if _, err := s.store.Invite(t.Context(), Code{ID: "x", Person: "ann", Until: time.Now().Add(time.Hour)}, false, time.Now()); err != nil {
		t.Error(err)
	}
}
