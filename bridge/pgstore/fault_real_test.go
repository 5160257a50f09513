//go:build real

package pgstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pgtest"
)

func all(t testing.TB, s ledger.Store) (rows []ledger.Row) {
	t.Helper()
	for row, err := range s.Rows(t.Context(), ledger.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

func whole(t testing.TB, s ledger.Store) ledger.Report {
	t.Helper()
	report, err := s.Verify(t.Context(), nil)
	if err != nil || !report.Whole {
		t.Fatalf("verify: %+v, %v", report, err)
	}
	return report
}

func put(t testing.TB, s ledger.Store, n int) {
	t.Helper()
	for i := range n {
		if err := s.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "r", Call: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
}

// refused checks that a record is refused with these words, and without the password,
// and that nothing of it is kept.
func refused(t *testing.T, db *DB, words string) {
	t.Helper()
	intent := ledger.Record{Event: ledger.Intent, Run: "refused", Journal: []ledger.JournalEntry{{Run: "refused", Kind: ledger.Began, Owner: "x"}}}
	err := db.Record(t.Context(), intent)
	if !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), pgtest.Password) {
		t.Errorf("want a refusal with %q: %v", words, err)
	}
	if err := db.Err(); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("after a refusal the store says %v", err)
	}
}

// goesOn checks that records are kept again, and that nothing that was refused was.
func goesOn(t *testing.T, db *DB) {
	t.Helper()
	until(t, func() bool {
		return db.Record(t.Context(), ledger.Record{Event: ledger.Outcome, Run: "r"}) == nil
	})
	if err := db.Err(); err != nil {
		t.Errorf("it goes on, and says %v", err)
	}
	whole(t, db)
	for _, row := range all(t, db) {
		if row.Record.Run == "refused" {
			t.Errorf("row %d was refused, and is there", row.Seq)
		}
	}
	if _, _, err := db.Read(t.Context(), "refused"); !errors.Is(err, ledger.ErrNoJournal) {
		t.Errorf("of what was refused there is a journal: %v", err)
	}
}

// until waits for a condition that another goroutine or process makes true.
func until(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a minute passed")
		}
	}
}

// proxied returns a store behind a proxy.
func proxied(t *testing.T, o Options) (*pgtest.Proxy, Options) {
	t.Helper()
	p, err := server.NewProxy()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	o.URL = strings.Replace(o.URL, ":"+strconv.Itoa(server.Port), ":"+strconv.Itoa(p.Port), 1)
	return p, o
}

// What the server refuses by itself refuses calls with its reason, until it is mended.
func TestRealServerRefuses(t *testing.T) {
	for _, row := range []struct{ name, code, words string }{
		{"disk full", "53100", "disk is full"}, {"statement time-out", "57014", "took too long"},
		{"serialization failure", "40001", "gave up"}, {"read-only", "25006", "read-only"}, {"no right", "42501", "lacks a right"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := place()
			db := begin(t, o)
			put(t, db, 3)
			edit(t, o, fmt.Sprintf(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = '%s'; END $$`, row.code),
				"CREATE TRIGGER fail BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION fail()")
			refused(t, db, row.words)
			edit(t, o, "DROP TRIGGER fail ON log")
			goesOn(t, db)
		})
	}
}

// A row that the database takes and does not keep does not count as kept.
func TestRealSwallowedRow(t *testing.T) {
	o := place()
	db := begin(t, o)
	put(t, db, 1)
	edit(t, o, "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
		"CREATE TRIGGER swallow BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION swallow()")
	if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent}); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("a record that was swallowed: %v", err)
	}
}

// A backend that is ended costs at most the record under way; the next is kept.
func TestRealTerminatedBackend(t *testing.T) {
	o := place()
	db := begin(t, o)
	r := openRequests(t, o)
	put(t, db, 3)
	changed := db.Changed()
	for range 3 {
		edit(t, o, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'codemode-bridge' AND pid <> pg_backend_pid()")
		goesOn(t, db)
	}
	<-changed
	if err := r.Put(t.Context(), approval.StoredRequest{Request: approval.Request{ID: "q", Until: time.Now()}}); err != nil {
		if err := r.Put(t.Context(), approval.StoredRequest{Request: approval.Request{ID: "q", Until: time.Now()}}); err != nil {
			t.Error(err) // the pool had one ended connection, not two
		}
	}
}

// A connection that is cut while the end of a transaction is under way: what was kept
// counts as kept, what was not is refused, and nothing is there twice.
func TestRealCutInCommit(t *testing.T) {
	for _, row := range []struct {
		name    string
		arrives bool
	}{{"the commit arrives", true}, {"the commit does not arrive", false}} {
		t.Run(row.name, func(t *testing.T) {
			o := place()
			p, through := proxied(t, o)
			db := begin(t, through)
			put(t, db, 5)
			var cuts atomic.Int64
			see := func(sent []byte) bool {
				if !bytes.Contains(sent, []byte(`"run":"cut"`)) || cuts.Add(1) > 1 {
					return true
				}
				go p.Cut()
				return false
			}
			if row.arrives {
				answers := func(got []byte) bool { // what the server says after the commit gets lost
					if bytes.Contains(got, []byte("COMMIT\x00")) && cuts.Add(1) == 1 {
						go p.Cut()
						return false
					}
					return true
				}
				p.OnAnswer.Store(&answers)
			} else {
				p.OnRequest.Store(&see)
			}
			err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "cut", Journal: []ledger.JournalEntry{{Run: "cut", Kind: ledger.Began, Owner: "x"}}})
			if cuts.Load() == 0 {
				t.Fatal("nothing was cut")
			}
			there := 0
			for _, r := range all(t, begin(t, o)) {
				if r.Record.Run == "cut" {
					there++
				}
			}
			if row.arrives && (err != nil || there != 1) || !row.arrives && (!errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "nothing of it was kept") || there != 0) {
				t.Errorf("it is there %d times, and the error is %v", there, err)
			}
			goesOn(t, db)
		})
	}
}

// The same for the entries of a journal alone, and for a request.
func TestRealCutWithoutRecords(t *testing.T) {
	o := place()
	p, through := proxied(t, o)
	db, r := begin(t, through), openRequests(t, through)
	put(t, db, 1)
	var cuts atomic.Int64
	answers := func(got []byte) bool {
		if bytes.Contains(got, []byte("COMMIT\x00")) && cuts.Add(1) == 1 {
			go p.Cut()
			return false
		}
		return true
	}
	p.OnAnswer.Store(&answers)
	if err := db.Append(t.Context(), ledger.JournalEntry{Run: "cut", Kind: ledger.Began, Owner: "x"}); err != nil {
		t.Error(err)
	}
	if _, entries, err := db.Read(t.Context(), "cut"); err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	cuts.Store(0)
	if err := r.Put(t.Context(), approval.StoredRequest{Request: approval.Request{ID: "q", Until: time.Now()}}); err != nil {
		t.Error(err)
	}
	if all, err := r.Requests(t.Context(), approval.Filter{}); err != nil || len(all) != 1 {
		t.Errorf("%d requests, %v", len(all), err)
	}
	if cuts.Load() < 1 {
		t.Error("nothing was cut")
	}
}

// A server that does not answer refuses in time, and holds up nobody for ever: what was
// sent to it before is not kept unless it says so.
func TestRealStalled(t *testing.T) {
	o := place()
	p, through := proxied(t, o)
	through.Patience = time.Second
	db := begin(t, through)
	put(t, db, 2)
	goOn := p.Stall()
	err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "refused"})
	if !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "in time") && !strings.Contains(err.Error(), "reached") {
		t.Errorf("a server that does not answer: %v", err)
	}
	goOn()
	goesOn(t, db)
}

// A frozen bridge that has the lock gives it up to another.
func TestRealFrozen(t *testing.T) {
	o := place()
	o.Patience = time.Second
	a, b := begin(t, o), begin(t, o)
	put(t, a, 1)
	held, free := make(chan struct{}), make(chan struct{})
	result := make(chan error, 1)
	go func() {
		result <- a.ask(context.WithoutCancel(t.Context()), func(_ context.Context, tx *tx) error {
			close(held)
			<-free
			tx.queue(-1, "SELECT 1")
			return nil
		})
	}()
	<-held
	until(t, func() bool { return b.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "b"}) == nil })
	close(free)
	if err := <-result; !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("who was frozen for too long commits: %v", err)
	}
	goesOn(t, a)
}

// A server that is gone refuses clearly, and is used again when it is back: also one that
// was killed has all that it had said it kept.
func TestRealServerGone(t *testing.T) {
	own, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Stop)
	o := Options{URL: own.Schema(), Secret: secret}
	db := begin(t, o)
	put(t, db, 20)
	own.Kill()
	refused(t, db, "database")
	if _, err := Open(t.Context(), o); err == nil || strings.Contains(err.Error(), pgtest.Password) {
		t.Errorf("opening a store whose server is gone: %v", err)
	}
	if err := own.Restart(); err != nil {
		t.Fatal(err)
	}
	goesOn(t, db)
	if rows := all(t, db); len(rows) < 21 {
		t.Errorf("%d rows are left", len(rows))
	}
	// A stand-by is refused as such, until it is promoted.
	own.Halt()
	if err := os.WriteFile(filepath.Join(own.Data(), "standby.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := own.Own("standby.signal"); err != nil {
		t.Fatal(err)
	}
	if err := own.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		return strings.Contains(fmt.Sprint(db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "refused"})), "stand-by")
	})
	refused(t, db, "stand-by")
	if err := Writable(t.Context(), o); !errors.Is(err, errStandby) {
		t.Errorf("writable: %v", err)
	}
	reader := o
	reader.ReadOnly = true
	if rows := all(t, begin(t, reader)); len(rows) < 21 {
		t.Errorf("at the stand-by %d rows can be read", len(rows))
	}
	conn := raw(t, o)
	if _, err := conn.Exec(t.Context(), "SELECT pg_promote()"); err != nil {
		t.Fatal(err)
	}
	goesOn(t, db)
}

// A database that is read-only is refused as such.
func TestRealReadOnlyDatabase(t *testing.T) {
	o := place()
	put(t, begin(t, o), 1)
	through := o
	through.URL += "&default_transaction_read_only=on"
	if _, err := Open(t.Context(), through); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("opening a read-only database: %v", err)
	}
}

// Processes that begin a store at the same time make one store and one chain.
func TestRealManyProcesses(t *testing.T) {
	o := place()
	const n = 60
	var wait sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		wait.Go(func() {
			if out, err := child(t, "write", o.URL, name, strconv.Itoa(n)).CombinedOutput(); err != nil {
				t.Errorf("process %s: %v\n%s", name, err, out)
			}
		})
	}
	db := begin(t, o)
	<-db.Changed() // by one of the others
	for i := range n {
		if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "d", Call: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	wait.Wait()
	calls := make(map[string]int)
	for i, row := range all(t, db) {
		if calls[row.Record.Run]++; row.Seq != int64(i+1) || row.Record.Call != calls[row.Record.Run] {
			t.Fatalf("row %d is number %d, call %d of %s, whose %d it is", i+1, row.Seq, row.Record.Call, row.Record.Run, calls[row.Record.Run])
		}
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if calls[name] != n {
			t.Errorf("process %s has %d rows", name, calls[name])
		}
	}
	whole(t, db)
}

func child(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), partVariable+"="+strings.Join(args, "\x1f"))
	return cmd
}

func init() {
	parts["write"] = func(args []string) error {
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		db, err := Open(context.Background(), Options{URL: args[0], Secret: secret})
		if err != nil {
			return err
		}
		defer db.Close()
		for i := range n {
			if err := db.Record(context.Background(), ledger.Record{Event: ledger.Intent, Run: args[1], Call: i + 1}); err != nil {
				return err
			}
		}
		return nil
	}
	// work makes calls until it is killed: intent, effect, outcome. The effect is a line
	// in a file.
	parts["work"] = func(args []string) error {
		db, err := Open(context.Background(), Options{URL: args[0], Secret: secret})
		if err != nil {
			return err
		}
		out, err := os.OpenFile(args[1], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		failed := make(chan error)
		for w := range 4 {
			go func() {
				run := fmt.Sprintf("%d-%d", os.Getpid(), w)
				for i := 1; ; i++ {
					r := ledger.Record{Event: ledger.Intent, Run: run, Call: i, Durable: true}
					if err := db.Record(context.Background(), r); err != nil {
						failed <- err
					}
					if _, err := fmt.Fprintf(out, "%s %d\n", run, i); err != nil {
						failed <- err
					}
					r.Event, r.Outcome = ledger.Outcome, ledger.Done
					if err := db.Record(context.Background(), r); err != nil {
						failed <- err
					}
				}
			}()
		}
		return <-failed
	}
}

// A process that makes calls is killed again and again on one log: every effect has its
// intent, and the log is whole.
func TestRealKilled(t *testing.T) {
	o := place()
	effects := filepath.Join(t.TempDir(), "effects")
	for range 8 {
		before, _ := os.ReadFile(effects)
		cmd := child(t, "work", o.URL, effects)
		var said bytes.Buffer
		cmd.Stdout = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool {
			now, _ := os.ReadFile(effects)
			return len(now) > len(before)+100
		})
		cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || said.Len() > 0 {
			t.Fatalf("the process ended by itself: %v %s", err, said.String())
		}
	}
	db := begin(t, o)
	whole(t, db)
	intents := make(map[string]int)
	for _, row := range all(t, db) {
		if row.Record.Event == ledger.Intent {
			intents[fmt.Sprintf("%s %d", row.Record.Run, row.Record.Call)]++
		}
	}
	made, err := os.ReadFile(effects)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(made)) {
		if call := strings.TrimSpace(line); intents[call] != 1 {
			t.Errorf("effect %s has %d intents", call, intents[call])
		}
	}
}

// What was done to rows behind the store's back is found.
func TestRealTampered(t *testing.T) {
	for _, row := range []struct {
		name, statement string
		kind            ledger.Kind
		bad             int64
	}{
		{"a body", `UPDATE log SET body = replace(body, '"call":3', '"call":4') WHERE seq = 3`, ledger.Edited, 3},
		{"a column", "UPDATE log SET run = 'another' WHERE seq = 3", ledger.Edited, 3},
		{"a row is gone", "DELETE FROM log WHERE seq = 3", ledger.Removed, 3},
		{"the first rows are gone", "DELETE FROM log WHERE seq < 3", ledger.Removed, 1},
		{"two rows change places", "UPDATE log SET seq = CASE seq WHEN 3 THEN -4 ELSE -3 END WHERE seq IN (3, 4); UPDATE log SET seq = -seq WHERE seq < 0", ledger.Reordered, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := place()
			db := begin(t, o)
			put(t, db, 6)
			for s := range strings.SplitSeq(row.statement, "; ") {
				edit(t, o, s)
			}
			if report, err := db.Verify(t.Context(), nil); err != nil || report.Whole || report.Kind != row.kind || report.Bad != row.bad {
				t.Errorf("verify: %+v, %v", report, err)
			}
			again := begin(t, o)
			if err := again.Record(t.Context(), ledger.Record{Event: ledger.Intent}); !errors.Is(err, ledger.ErrDamaged) {
				t.Errorf("a record in a damaged log: %v", err)
			}
		})
	}
	t.Run("the end is cut off", func(t *testing.T) {
		o := place()
		db := begin(t, o)
		put(t, db, 6)
		edit(t, o, "DELETE FROM log WHERE seq > 4")
		if err := db.Record(t.Context(), ledger.Record{Event: ledger.Intent}); !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "row 6 is missing") {
			t.Errorf("the end was cut off: %v", err)
		}
	})
}

// The verification in the background finds what opening does not read, for all processes.
func TestRealDamageBehind(t *testing.T) {
	o := place()
	db := begin(t, o)
	var batch []ledger.Record
	for range 1000 {
		batch = append(batch, ledger.Record{Event: ledger.Intent, Run: "r"})
	}
	for range 8 {
		if err := db.Record(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	if err := (verifier{db}).noteVerified(t.Context(), db.pool, verified{Store: db.id, Began: time.Now().Add(-48 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	edit(t, o, `UPDATE log SET body = body || ' ' WHERE seq = 100`)
	second := begin(t, o)
	until(t, func() bool { return errors.Is(second.Err(), ledger.ErrDamaged) })
	if err := second.Record(t.Context(), ledger.Record{Event: ledger.Intent}); !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "row 100 was edited") {
		t.Errorf("a record in a damaged log: %v", err)
	}
	if third := begin(t, o); !errors.Is(third.Err(), ledger.ErrDamaged) {
		t.Errorf("another process opens it: %v", third.Err())
	}
}

// A schema of a newer release is used if that allows it, and refused if not.
func TestRealNewerSchema(t *testing.T) {
	o := place()
	put(t, begin(t, o), 1)
	edit(t, o, "UPDATE meta SET value = '7' WHERE name = 'version'")
	put(t, begin(t, o), 1)
	edit(t, o, "UPDATE meta SET value = '7' WHERE name = 'oldest'")
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("a schema that needs a newer release: %v", err)
	}
	if _, err := OpenRequests(t.Context(), o); err == nil || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("the requests of a schema that needs a newer release: %v", err)
	}
}

// Without the key that the store was made with, nothing is opened.
func TestRealKeys(t *testing.T) {
	o := place()
	db := begin(t, o)
	key, err := db.Key("purpose")
	if err != nil {
		t.Fatal(err)
	}
	var kept string
	if err := raw(t, o).QueryRow(t.Context(), "SELECT value FROM meta WHERE name = 'key'").Scan(&kept); err != nil || strings.Contains(kept, fmt.Sprintf("%x", db.key)) {
		t.Errorf("the key is kept as %q, %v", kept, err)
	}
	if again, err := begin(t, o).Key("purpose"); err != nil || !bytes.Equal(key, again) {
		t.Errorf("another key: %v", err)
	}
	for name, change := range map[string]func(*Options){
		"another key": func(o *Options) { o.Secret = []byte("another secret, long enough") },
		"fewer than":  func(o *Options) { o.Secret = []byte("short") },
		"is not here": func(o *Options) { o.Secret, o.SecretFile = nil, filepath.Join(t.TempDir(), "none") },
	} {
		wrong := o
		change(&wrong)
		if name == "another key" {
			name = "encrypted with another one"
		}
		if _, err := Open(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q: %v", name, err)
		}
	}
	made := place()
	made.Secret, made.SecretFile = nil, filepath.Join(t.TempDir(), "new", "store.key")
	put(t, begin(t, made), 1)
	put(t, begin(t, made), 1)
	if info, err := os.Stat(made.SecretFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
}

// Changes of others are told by notifications and, where these get lost, by looking.
func TestRealChangesWithoutNotifications(t *testing.T) {
	o := place()
	a, b := begin(t, o), begin(t, o)
	<-changedBy(t, a, b)
	// As with a pooler that gives each transaction another connection.
	edit(t, o, "CREATE FUNCTION pg_notify(text, text) RETURNS void LANGUAGE sql AS ''")
	b.watch.channel = "nobody listens here"
	<-changedBy(t, a, b)
	<-changedBy(t, a, b)
}

func changedBy(t *testing.T, a, b *DB) <-chan struct{} {
	c := a.Changed()
	put(t, b, 1)
	return c
}

// Nothing that is printed or logged has the password.
func TestRealPasswordIsHidden(t *testing.T) {
	var said []string
	note := func(err error) {
		if err == nil {
			t.Error("no error")
			return
		}
		said = append(said, err.Error())
	}
	for _, o := range []Options{
		{URL: strings.Replace(server.Schema(), pgtest.Password, "wrong-"+pgtest.Password, 1), Secret: secret},
		{URL: strings.Replace(server.Schema(), "/postgres", "/nowhere", 1), Secret: secret},
		{URL: strings.Replace(server.Schema(), strconv.Itoa(server.Port), "1", 1), Secret: secret},
		{URL: server.Schema() + "&sslmode=sometimes", Secret: secret},
		{URL: server.Schema() + "&nonsense=yes", Secret: secret},
	} {
		_, err := Open(t.Context(), o)
		note(err)
		_, err = OpenRequests(t.Context(), o)
		note(err)
		said = append(said, Where(o.URL))
	}
	text, _ := json.Marshal(said)
	if strings.Contains(string(text), pgtest.Password) {
		t.Errorf("the password is in %s", text)
	}
	for _, words := range []string{"the user or the password is refused by the database", "there is no such database", "cannot be reached"} {
		if !strings.Contains(string(text), words) {
			t.Errorf("nothing says %q: %s", words, text)
		}
	}
}
