package pgstore

import (
	"context"
	"crypto/cipher"
	"crypto/hmac"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"codemode-bridge/bridge/ledger"
)

const markEvery = 1_000 // rows that are written between two marks

// A link is a connection that writes, and what is known of the store on it.
type link struct {
	conn *pgx.Conn
	ring *ledger.Keyring

	changes  int64 // of the head, for which the rest holds; -1 at first
	seq      int64
	hash     ledger.Hash
	marked   int64               // the last row that the mark was set at
	journals map[string]*journal // by run
	owner    string              // who wrote entries last
	lapsed   bool                // it is a replica that was not alive when the transaction began
}

func newLink(conn *pgx.Conn) *link {
	return &link{conn: conn, changes: -1, journals: make(map[string]*journal)}
}

// A journal is what is known of one run's journal.
type journal struct {
	owner string
	lease int64
	place int64 // of its last entry
	bytes int64
	seal  cipher.AEAD
}

// A tx is a transaction that has the lock of the log. What it writes is collected and
// sent at its end, with the commit, in one round trip.
type tx struct {
	db *DB
	*link

	batch   pgx.Batch
	want    []int64 // how many rows each statement of batch must write; -1 for any
	sent    bool    // the server may have been told to commit
	xid     string
	changed int64 // the head's number after it

	rows     rows
	next     head
	mark     int64
	journals map[string]*journal // as they are after it; nil for one that is gone
	shared   map[string][]byte   // hashes of what it shares
	uses     map[string]int
}

// rows are the columns of the rows that are added.
type rows struct {
	seqs                                                              []int64
	hashes, seals                                                     [][]byte
	bodies                                                            []string
	times, runs, events, tools, dispositions, outcomes, risks, people []string
}

// run runs work and commits. If work refuses everything, nothing is written, and no
// says why.
func (t *tx) run(ctx context.Context, work func(context.Context, *tx) error) (no, err error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	t.next, t.mark = head{t.seq, t.hash}, t.marked
	t.journals, t.shared, t.uses = make(map[string]*journal), make(map[string][]byte), make(map[string]int)
	if err := work(ctx, t); err != nil {
		if no = ledger.RefusedFor(err); no == nil {
			return nil, err
		}
	}
	if no != nil || t.empty() {
		_, err := t.conn.Exec(ctx, "ROLLBACK")
		t.changes = t.changed - 1 // the number was not kept
		return no, err
	}
	return nil, t.end(ctx)
}

func (t *tx) empty() bool { return t.batch.Len() == 0 && len(t.rows.seqs) == 0 }

// begin takes the lock, and reads the head if anybody else has changed the log.
func (t *tx) begin(ctx context.Context) error {
	var b pgx.Batch
	b.Queue("BEGIN")
	b.Queue("UPDATE heads SET changes = changes + 1 WHERE name = 'log' RETURNING changes, " + transaction)
	b.Queue("SELECT seq, hash, seal FROM log ORDER BY seq DESC LIMIT 1")
	b.Queue(ownerLapsed, text(t.owner))
	r := t.conn.SendBatch(ctx, &b)
	defer r.Close()
	if _, err := r.Exec(); err != nil {
		return err
	}
	if err := r.QueryRow().Scan(&t.changed, &t.xid); err != nil {
		return err
	}
	last, seal, err := readHead(r.QueryRow())
	if err != nil {
		return err
	}
	t.lapsed = false
	if err := r.QueryRow().Scan(&t.lapsed); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	if t.ring == nil {
		t.ring = ledger.NewKeyring(t.db.id, t.db.key)
	}
	if t.changed == t.changes+1 && last == (head{t.seq, t.hash}) {
		return nil
	}
	if want := t.ring.Seal(last.seq, last.hash); last.seq > 0 && !hmac.Equal(want[:], seal) {
		return ledger.Damaged("its last row, %d, was not written by a bridge", last.seq)
	}
	if err := has(ctx, t.conn, t.db.known); err != nil {
		return err
	}
	clear(t.link.journals)
	t.seq, t.hash = last.seq, last.hash
	mark, err := lastMark(ctx, t.conn, t.db.id, t.db.key)
	if mark != nil {
		t.marked = mark.Seq
	}
	return err
}

// readHead reads a head and its seal; zero if there is no row.
func readHead(row pgx.Row) (h head, seal []byte, err error) {
	var hash []byte
	err = row.Scan(&h.seq, &hash, &seal)
	if errors.Is(err, pgx.ErrNoRows) {
		return head{}, nil, nil
	}
	copy(h.hash[:], hash)
	return h, seal, err
}

// queue adds a statement that must write so many rows; any number if that is negative.
func (t *tx) queue(want int64, statement string, args ...any) {
	t.batch.Queue(statement, args...)
	t.want = append(t.want, want)
}

// end writes what was collected, and commits.
func (t *tx) end(ctx context.Context) error {
	r := &t.rows
	if n := len(r.seqs); n > 0 {
		t.queue(int64(n), insertRows, r.args()...)
		if t.next.seq-t.mark >= markEvery {
			c := ledger.Checkpoint{Store: t.db.id, Seq: t.next.seq, Hash: t.next.hash, Time: time.Now().UTC()}
			c.Sign(t.db.key)
			t.queue(1, "INSERT INTO meta (name, value) VALUES ('mark', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value", c.String())
			t.mark = c.Seq
		}
	}
	t.queue(-1, "SELECT pg_notify($1, $2)", t.db.watch.channel, strconv.FormatInt(t.changed, 10))
	t.queue(-1, "COMMIT")
	t.sent = true
	results := t.conn.SendBatch(ctx, &t.batch)
	defer results.Close()
	for i, want := range t.want {
		tag, err := results.Exec()
		if err == nil && i == len(t.want)-1 && tag.String() != "COMMIT" {
			err = fmt.Errorf("the transaction was not committed but ended with %s", tag)
		}
		if err != nil {
			t.sent = !certain(err)
			return err
		}
		if want >= 0 && tag.RowsAffected() != want {
			return ledger.Damaged("a row was not kept although the database took it")
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	t.changes, t.seq, t.hash, t.marked = t.changed, t.next.seq, t.next.hash, t.mark
	for run, j := range t.journals {
		if t.link.journals[run] = j; j == nil {
			delete(t.link.journals, run)
		}
	}
	return nil
}

// certain reports whether an error means that the transaction was not committed: the
// server refused a statement, after which it ignores the COMMIT that follows it.
func certain(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR"
}

// add writes items, except for those that are refused.
func (t *tx) add(ctx context.Context, items []*ledger.Item) error {
	for _, it := range items {
		it.Refused = nil
		if err := t.admit(ctx, it); err != nil {
			if it.Refused = ledger.RefusedFor(err); it.Refused == nil {
				return err
			}
			continue
		}
		for _, body := range it.Bodies {
			if err := t.addRow(body); err != nil {
				return err
			}
		}
	}
	return nil
}

// addRow adds a record to the chain.
func (t *tx) addRow(body []byte) error {
	c, err := columnsOf(body)
	if err != nil {
		return err
	}
	t.next.seq++
	t.next.hash = ledger.HashRow(t.db.id, t.next.seq, t.next.hash, body)
	hash, seal := t.next.hash, t.ring.Seal(t.next.seq, t.next.hash)
	t.rows.add(ledger.Link{Seq: t.next.seq, Hash: hash, Seal: seal, Body: body}, c)
	return nil
}

const insertRows = `INSERT INTO log (seq, hash, seal, body, time, run, event, tool, disposition, outcome, risk, people)
	SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[])`

// args are the arguments of insertRows.
func (r *rows) args() []any {
	return []any{r.seqs, r.hashes, r.seals, r.bodies, r.times, r.runs, r.events, r.tools, r.dispositions, r.outcomes, r.risks, r.people}
}

func (r *rows) add(l ledger.Link, c columns) {
	r.seqs, r.hashes, r.seals, r.bodies = append(r.seqs, l.Seq), append(r.hashes, l.Hash[:]), append(r.seals, l.Seal[:]), append(r.bodies, string(l.Body))
	r.times, r.runs, r.events, r.tools = append(r.times, c.time), append(r.runs, c.run), append(r.events, c.event), append(r.tools, c.tool)
	r.dispositions, r.outcomes, r.risks, r.people = append(r.dispositions, c.disposition), append(r.outcomes, c.outcome), append(r.risks, c.risk), append(r.people, c.people)
}

// columns are what a row is searched by.
type columns struct{ time, run, event, tool, disposition, outcome, risk, people string }

func columnsOf(body []byte) (c columns, err error) {
	r, err := ledger.Decode(body)
	if err != nil {
		return c, err
	}
	c = columns{ledger.Sortable(r.Time), text(r.Run), text(string(r.Event)), text(r.Path()), text(r.Disposition), text(r.Outcome), text(r.Risk), ""}
	if r.Approver != "" || r.OnBehalfOf != "" {
		c.people = text(r.Approver + "\n" + r.OnBehalfOf)
	}
	return c, nil
}

// admit writes what belongs to an item's records: their entries, and the uses of
// grants. If it refuses the item, nothing of it is written.
func (t *tx) admit(ctx context.Context, it *ledger.Item) error {
	wanted := make(map[string]int)
	for _, u := range it.Uses {
		used, err := t.used(ctx, u.Grant)
		if err != nil {
			return err
		}
		if used+wanted[u.Grant] >= u.Most {
			return ledger.Refuse(ledger.ErrUsedUp)
		}
		wanted[u.Grant]++
	}
	e, moot := entering{tx: t, journals: make(map[string]*journal), shared: make(map[string][]byte)}, ledger.Moot(it.Journal)
	for i := range it.Journal {
		if err := e.enter(ctx, &it.Journal[i], it.At, moot[i]); err != nil {
			return err
		}
	}
	e.keep()
	for _, u := range it.Uses {
		t.uses[u.Grant]++
		t.queue(1, "INSERT INTO uses (name, used, last) VALUES ($1, 1, $2) ON CONFLICT (name) DO UPDATE SET used = uses.used + 1, last = excluded.last",
			text(u.Grant), ledger.Nanos(it.At))
	}
	return nil
}

// used returns how often a grant was used.
func (t *tx) used(ctx context.Context, grant string) (int, error) {
	n, ok := t.uses[grant]
	if ok {
		return n, nil
	}
	err := t.conn.QueryRow(ctx, "SELECT used FROM uses WHERE name = $1", text(grant)).Scan(&n)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, err
	}
	t.uses[grant] = n
	return n, nil
}

// settle finds out whether a transaction was committed whose end was sent on a
// connection that was lost, and returns nil if it was.
func (db *DB) settle(ctx context.Context, t *tx, lost error) error {
	until := time.Now().Add(2 * db.o.Patience)
	for {
		is, err := db.outcome(ctx, t)
		switch {
		case err == nil && is:
			db.o.Logger.Warn("the connection to the database was lost, after what was sent had been kept", "error", lost)
			db.known = t.next
			db.watch.now()
			return nil
		case err == nil:
			return db.failing(fmt.Errorf("%w; nothing of it was kept", lost))
		case errors.Is(err, ledger.ErrDamaged), errors.Is(err, errAnotherServer), time.Now().After(until):
			return db.failing(fmt.Errorf("%w; whether it was kept is not known: %w", lost, err))
		}
		select {
		case <-time.After(againAfter):
		case <-db.queue.Stop:
			return db.failing(fmt.Errorf("%w; whether it was kept is not known", lost))
		}
	}
}

// outcome reports whether a transaction was committed. It waits for the lock, which the
// transaction had: it is over then.
func (db *DB) outcome(ctx context.Context, t *tx) (bool, error) {
	conn, err := db.o.connect(ctx)
	if err != nil {
		return false, err
	}
	defer hangUp(conn)
	ctx, cancel := context.WithTimeout(ctx, db.o.Patience)
	defer cancel()
	free, err := conn.Begin(ctx)
	if err != nil {
		return false, classed(err)
	}
	defer free.Rollback(ctx)
	var changes int64
	if err := free.QueryRow(ctx, "SELECT changes FROM heads WHERE name = 'log' FOR UPDATE").Scan(&changes); err != nil {
		return false, classed(err)
	}
	status, err := statusOf(ctx, free, t.xid) // now that the lock is had
	if err != nil && !errors.Is(err, errAnotherServer) {
		return false, classed(err)
	}
	if status != committed || changes < t.changed {
		return false, nil
	}
	if len(t.rows.seqs) == 0 {
		return err == nil, err
	}
	var hash []byte
	err = free.QueryRow(ctx, "SELECT hash FROM log WHERE seq = $1", t.next.seq).Scan(&hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return string(hash) == string(t.next.hash[:]), classed(err)
}
