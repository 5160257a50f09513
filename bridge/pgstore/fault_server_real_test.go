//go:build real

package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pgtest"
)

// A writers are goroutines that write to a store until they are ended.
type writers struct {
	all  sync.WaitGroup
	end  context.CancelFunc
	kept chan string // what the store said it kept
	had  map[string]bool
}

func newWriters(t *testing.T, db *DB) *writers {
	ctx, end := context.WithCancel(t.Context())
	w := &writers{end: end, kept: make(chan string), had: map[string]bool{}}
	for n := range 4 {
		w.all.Go(func() {
			for call := 1; ctx.Err() == nil; call++ {
				r := ledger.Record{Event: ledger.Intent, Run: "w" + strconv.Itoa(n), Call: call, Durable: true}
				if err := db.Record(context.WithoutCancel(ctx), r); err == nil {
					w.kept <- fmt.Sprint(r.Run, " ", call)
				} else if !errors.Is(err, ledger.ErrUnavailable) || strings.Contains(err.Error(), "in the future") { // and nobody waits for that
					t.Errorf("a record is refused with %v", err)
				}
			}
		})
	}
	return w
}

// more waits until the store has kept so many more.
func (w *writers) more(n int) {
	for range n {
		w.had[<-w.kept] = true
	}
}

// stop ends the writers, and checks that all that was kept is there, once, in a whole log.
func (w *writers) stop(t *testing.T, db *DB) {
	t.Helper()
	w.end()
	go func() { w.all.Wait(); close(w.kept) }()
	for one := range w.kept {
		w.had[one] = true
	}
	whole(t, db)
	there := map[string]int{}
	for _, row := range all(t, db) {
		there[fmt.Sprint(row.Record.Run, " ", row.Record.Call)]++
	}
	for one := range w.had {
		if there[one] == 0 {
			t.Errorf("%s was kept, and is lost", one)
		}
	}
	for one, n := range there {
		if n > 1 {
			t.Errorf("%s is there %d times", one, n)
		}
	}
}

// A server that is killed while it is written to has, when it is back, all that it kept.
func TestRealServerKilledWhileWriting(t *testing.T) {
	t.Parallel()
	own, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Stop)
	db := begin(t, Options{URL: own.Schema(), Secret: secret})
	w := newWriters(t, db)
	for range 3 {
		w.more(50)
		killed := make(chan error)
		go func() { // the writers do not wait for it
			own.Kill()
			killed <- own.Restart()
		}()
		for waiting := true; waiting; {
			select {
			case one := <-w.kept:
				w.had[one] = true
			case err := <-killed:
				if err != nil {
					t.Fatal(err)
				}
				waiting = false
			}
		}
	}
	w.more(50)
	w.stop(t, db)
}

// A primary dies while it is written to, and a stand-by that streams from it in step is
// promoted: with both in the address, the store goes on there, and nothing that it kept is
// lost.
func TestRealPromoted(t *testing.T) {
	t.Parallel()
	primary, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(primary.Stop)
	standby, err := primary.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	o := Options{URL: primary.Schema(), Secret: secret}
	edit(t, o, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	conn := raw(t, o)
	until(t, func() bool {
		var n int
		err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'").Scan(&n)
		return err == nil && n == 1
	})
	hangUp(conn)
	at := func(s *pgtest.Server) string { return "127.0.0.1:" + strconv.Itoa(s.Port) }
	o.URL = strings.Replace(o.URL, at(primary), at(standby)+","+at(primary), 1) + "&target_session_attrs=read-write"
	db := begin(t, o)
	r := openRequests(t, o)
	w := newWriters(t, db)
	w.more(200)
	promoted := make(chan error)
	go func() {
		primary.Kill()
		conn, err := pgx.Connect(t.Context(), standby.URL("postgres", "public"))
		if err == nil {
			_, err = conn.Exec(t.Context(), "SELECT pg_promote()")
			hangUp(conn)
		}
		promoted <- err
	}()
	for waiting := true; waiting; {
		select {
		case one := <-w.kept:
			w.had[one] = true
		case err := <-promoted:
			if err != nil {
				t.Fatal(err)
			}
			waiting = false
		}
	}
	w.more(200)
	w.stop(t, db)
	goesOn(t, db)
	until(t, func() bool { _, err := r.Requests(t.Context(), approval.Filter{}); return err == nil })
	if err := Writable(t.Context(), o); err != nil {
		t.Errorf("writable: %v", err)
	}
}

// Without a connection left, calls are refused with that reason, until there is one.
func TestRealConnectionsExhausted(t *testing.T) {
	t.Parallel()
	o := place()
	schema := strings.SplitAfter(o.URL, "search_path=")[1]
	schema, _, _ = strings.Cut(schema, "&")
	role := "few_" + schema // an owner of the server is not bound by a limit
	edit(t, o, "CREATE ROLE "+role+" LOGIN PASSWORD '"+pgtest.Password+"'", "GRANT CREATE ON DATABASE postgres TO "+role)
	few := o
	few.URL = strings.Replace(o.URL, "//bridge:", "//"+role+":", 1)
	db := begin(t, few)
	put(t, db, 3)
	edit(t, o, "ALTER ROLE "+role+" CONNECTION LIMIT 0", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+role+"'")
	until(t, func() bool {
		return strings.Contains(fmt.Sprint(db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "refused"})), "no connection left")
	})
	refused(t, db, "the database has no connection left (max_connections)")
	if _, err := Open(t.Context(), few); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "no connection left") || strings.Contains(err.Error(), pgtest.Password) {
		t.Errorf("opening a store without a connection left: %v", err)
	}
	edit(t, o, "ALTER ROLE "+role+" CONNECTION LIMIT -1")
	goesOn(t, db)
}

// An answer that takes five seconds is waited for, and so is who has the lock meanwhile.
func TestRealSlowAnswer(t *testing.T) {
	t.Parallel()
	o := place()
	slow, other := begin(t, o), begin(t, o)
	put(t, slow, 1)
	edit(t, o, `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.run = 'slow' THEN PERFORM pg_sleep(5); END IF; RETURN NEW; END $$`,
		"CREATE TRIGGER wait BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION wait()")
	result := make(chan error, 1)
	go func() { result <- slow.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "slow"}) }()
	conn := raw(t, o)
	until(t, func() bool {
		var n int
		err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'").Scan(&n)
		return err == nil && n > 0
	})
	if err := other.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "other"}); err != nil {
		t.Errorf("who waits for the slow one: %v", err)
	}
	if err := <-result; err != nil {
		t.Errorf("the slow one: %v", err)
	}
	runs := map[string]int{}
	for _, row := range all(t, other) {
		runs[row.Record.Run]++
	}
	if runs["slow"] != 1 || runs["other"] != 1 {
		t.Errorf("the rows are of %v", runs)
	}
	whole(t, slow)
}

// What was committed under an id is another transaction if the server was started since
// that was given out, and an id that nobody has is of none.
func TestRealOutcomeOfALostTransaction(t *testing.T) {
	t.Parallel()
	o := place()
	db, r := begin(t, o), openRequests(t, o)
	put(t, db, 1)
	conn := raw(t, o)
	var id string
	if err := conn.QueryRow(t.Context(), "SELECT "+transaction).Scan(&id); err != nil { // and it is committed
		t.Fatal(err)
	}
	number, start, _ := strings.Cut(id, " ")
	for what, row := range map[string]struct {
		id   string
		kept bool
		err  error
	}{
		"this server":                {id, true, nil},
		"a server before it":         {number + " 1.5", false, errAnotherServer},
		"an id that nobody has":      {"99999999 " + start, false, nil},
		"the same before the server": {"99999999 1.5", false, nil},
	} {
		if kept, err := db.outcome(t.Context(), &tx{xid: row.id}); kept != row.kept || !errors.Is(err, row.err) {
			t.Errorf("%s: of the log it says %v, %v", what, kept, err)
		}
		if err := r.settle(t.Context(), row.id); (err == nil) != row.kept || row.err != nil && !errors.Is(err, row.err) {
			t.Errorf("%s: of requests it says %v", what, err)
		}
	}
}
