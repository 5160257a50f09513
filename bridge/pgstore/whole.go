package pgstore

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/stopwatch"
)

const (
	wholeEvery = 24 * time.Hour   // between the beginnings of two verifications of the whole log
	dueEvery   = time.Minute      // between looks whether one is due
	saveEvery  = 10 * time.Second // between notes of how far one has come
	restTimes  = 9                // how much longer than a chunk the rest after it is
	leastRest  = 5 * time.Millisecond
)

// A verifier verifies a store, and keeps note of how far it has come.
type verifier struct{ *DB }

// A verified says when the whole log was last verified, and how far a verification that
// is under way has come. It is in the table meta, signed with the log's key: whoever
// changes or removes it only brings the next verification forward.
type verified struct {
	Store string    `json:"store"`
	Began time.Time `json:"began,omitzero"` // zero: never
	Ended time.Time `json:"ended,omitzero"`
	By    string    `json:"by"` // the process that ended it
	Part  *part     `json:"part,omitempty"`
}

// A part is a verification that has not ended: the rows up to Last are right.
type part struct {
	Began time.Time   `json:"began"`
	Last  int64       `json:"last"` // 0: it has verified none
	Hash  ledger.Hash `json:"hash"`
	Why   string      `json:"why,omitempty"` // what is wrong with the rows after Last
}

const verifiedName = "verified"

// verified reads the note. One that is missing or not this log's is as good as none.
func (db verifier) verified(ctx context.Context) (verified, error) {
	return db.readVerified(ctx, db.pool)
}

func (db verifier) readVerified(ctx context.Context, from querier) (verified, error) {
	none := verified{Store: db.id}
	var text string
	err := from.QueryRow(ctx, "SELECT value FROM meta WHERE name = $1", verifiedName).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return none, nil
	}
	if err != nil {
		return none, classed(err)
	}
	body, sum, _ := bytes.Cut([]byte(text), []byte("\n"))
	v := none
	if !hmac.Equal([]byte(ledger.SignNote(db.key, verifiedName, body)), sum) || json.Unmarshal(body, &v) != nil || v.Store != db.id {
		return none, nil
	}
	return v, nil
}

func (db verifier) noteVerified(ctx context.Context, to querier, v verified) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("keeping when the audit log was verified: %w", err)
	}
	_, err = to.Exec(ctx, "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		verifiedName, fmt.Sprintf("%s\n%s", body, ledger.SignNote(db.key, verifiedName, body)))
	return classed(err)
}

// stillBad looks at the rows that a verification found to be wrong: what one process has
// found is found again whenever the log is opened, by all of them.
func (db verifier) stillBad(ctx context.Context, from querier) error {
	v, err := db.readVerified(ctx, from)
	if err != nil || v.Part == nil || v.Part.Why == "" {
		return err
	}
	_, err = db.portion(ctx, from, v.Part, nil)
	return err
}

// verifyBehind verifies the whole log once a day, unless another process does, until ctx
// ends or damage is found.
func (db verifier) verifyBehind(ctx context.Context) {
	for {
		in := dueEvery
		v, err := db.verified(ctx)
		if due := db.due(v); err == nil && due > 0 {
			in = min(in, due)
		} else if err == nil {
			err = db.attempt(ctx)
		}
		if errors.Is(err, ledger.ErrDamaged) {
			db.mu.Lock()
			db.hidden = err
			db.mu.Unlock()
			db.o.Logger.Error("calls are refused", "error", err)
			return
		}
		if err != nil && ctx.Err() == nil {
			db.o.Logger.Warn("the old rows of the audit log could not be checked", "error", err, "again in", dueEvery)
		}
		if !stopwatch.Pause(ctx, in) {
			return
		}
	}
}

// due returns how long until the whole log should be verified.
func (db verifier) due(v verified) time.Duration {
	if v.Part != nil {
		return 0
	}
	db.mu.Lock()
	last := v.Began
	if db.whole.After(last) {
		last = db.whole
	}
	db.mu.Unlock()
	now := wall()
	if last.After(now.Add(time.Hour)) { // the clock was set back since
		return 0
	}
	return last.Add(wholeEvery).Sub(now)
}

// attempt verifies the whole log, a chunk at a time, with rests, unless another process
// has the lock. It goes on where the last one, of whichever process, ended early.
func (db verifier) attempt(ctx context.Context) error {
	o := db.o
	conn, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer hangUp(conn) // which releases the lock
	var mine bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1, 1))", "codemode-bridge "+o.schema).Scan(&mine); err != nil || !mine {
		return classed(err)
	}
	v, err := db.readVerified(ctx, conn)
	if err != nil || db.due(v) > 0 { // another process was quicker
		return err
	}
	signed, err := ledger.ReadCheckpoints(o.CheckpointFile, o.Logger)
	if err != nil {
		return err
	}
	if v.Part == nil {
		v.Part = &part{Began: wall()}
	}
	saved := time.Now()
	for {
		began := time.Now()
		done, err := db.portion(ctx, conn, v.Part, signed)
		took := time.Since(began)
		switch {
		case errors.Is(err, ledger.ErrDamaged):
			v.Part.Why = ledger.Reason(err)
			return errors.Join(err, db.noteVerified(ctx, conn, v))
		case err != nil:
			return err
		case wall().Sub(v.Part.Began) > wholeEvery || v.Part.Began.After(wall().Add(time.Hour)):
			v.Part = &part{Began: wall()} // its first rows were verified too long ago
		case done:
			v = verified{Store: v.Store, Began: v.Part.Began, Ended: wall(), By: fmt.Sprintf("process %d", os.Getpid())}
			return db.noteVerified(ctx, conn, v)
		}
		if time.Since(saved) >= saveEvery {
			saved = time.Now()
			if err := db.noteVerified(ctx, conn, v); err != nil {
				return err
			}
		}
		if !stopwatch.Pause(ctx, max(leastRest, restTimes*took)) {
			return nil
		}
	}
}

// portion verifies the rows after p.Last and adds them to p; damage is an error. It
// reports whether they were the last.
func (db verifier) portion(ctx context.Context, from querier, p *part, signed []ledger.Checkpoint) (done bool, err error) {
	first, before, err := db.beginning(ctx, from)
	if err != nil {
		return false, err
	}
	mark, err := lastMark(ctx, from, db.id, db.key)
	if err != nil {
		return false, err
	}
	if p.Last > 0 && first > p.Last+1 { // what it had verified was pruned
		*p = part{Began: p.Began}
	}
	rows := portion{after: p.Last, prev: &p.Hash, most: chunkRows}
	if p.Last == 0 {
		rows.after, rows.prev = max(0, first-1), before
	}
	last, _, err := readHead(from.QueryRow(ctx, headQuery))
	if err != nil {
		return false, classed(err)
	}
	if last.seq < p.Last || last.seq == p.Last && last.seq > 0 && last.hash != p.Hash {
		return false, ledger.Damaged("row %d is not the one that was verified on %s: the end was cut off, or the database is an older copy", p.Last, p.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	var against []ledger.Checkpoint
	if mark != nil {
		signed = append(signed[:len(signed):len(signed)], *mark)
	}
	for _, s := range signed {
		if s.Store == db.id && s.Seq > rows.after && s.Seq <= rows.after+chunkRows {
			against = append(against, s)
		}
	}
	report, err := scan(ctx, from, db.id, db.key, rows, against)
	if err != nil {
		return false, err
	}
	if report.Rows > 0 {
		p.Last, p.Hash = report.Last, report.Hash
	}
	if !report.Whole {
		return false, ledger.Damaged("%s", report.Message)
	}
	p.Why = ""
	return p.Last >= last.seq, nil
}
