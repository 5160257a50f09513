package sqlstore

import (
	"bytes"
	"context"
	"crypto/hmac"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/filelock"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/stopwatch"
)

const (
	wholeEvery = 24 * time.Hour   // between the beginnings of two verifications of the whole log
	dueEvery   = time.Minute      // between looks whether one is due, and after one that could not be made
	saveEvery  = 10 * time.Second // between notes of how far one has come
	chunkRows  = 2_000            // rows that are verified at a time
	restTimes  = 9                // how much longer than a chunk the rest after it is
	leastRest  = 5 * time.Millisecond

	maxNote = 64 << 10 // bytes

	beforeStructure = 2 * time.Second // before the one part that has no rests
)

// A Verified says when the whole log was last verified, and how far a verification
// that is under way has come. It is kept in a file beside the log, signed with the
// log's key. Whoever puts an older one in its place, or removes it, only brings the
// next verification forward.
type Verified struct {
	Store string      `json:"store"`
	Began time.Time   `json:"began,omitzero"` // zero: never
	Ended time.Time   `json:"ended,omitzero"`
	First int64       `json:"first"`
	Last  int64       `json:"last"`
	Hash  ledger.Hash `json:"hash"` // of row Last
	By    string      `json:"by"`   // the process that ended it
	Part  *Part       `json:"part,omitempty"`
	Sound time.Time   `json:"sound,omitzero"` // when SQLite last found the file's structure right; zero: never
}

// A Part is a verification that has not ended: the rows up to Last are right.
type Part struct {
	Began time.Time   `json:"began"`
	First int64       `json:"first"`
	Last  int64       `json:"last"` // 0: it has verified none
	Hash  ledger.Hash `json:"hash"`
	Why   string      `json:"why,omitempty"` // what is wrong with the rows after Last
}

func (o *Options) verifiedFile() string { return o.Path + ".verified" }

// Verified returns what is known of the last verification of the whole log. A zero
// Began means that there was none, or that the note of it is gone or was changed.
func (db *DB) Verified() (Verified, error) {
	f, err := db.reading()
	if err != nil {
		return Verified{}, err
	}
	return verifier{f}.verified(&db.o)
}

// WholeAt returns when all rows were last known to be right; zero if that is not known.
func (db *DB) WholeAt() time.Time {
	f, err := db.reading()
	if err != nil || f.key == nil {
		return time.Time{}
	}
	v, err := verifier{f}.verified(&db.o)
	if err != nil || f.whole.After(v.Began) {
		return f.whole
	}
	return v.Began
}

// verified reads the note. One that is missing or not this log's is as good as none, and so
// is one that cannot be read, of which the error says why: whatever is put in its place,
// rows are verified no later.
func (f verifier) verified(o *Options) (Verified, error) {
	none := Verified{Store: f.id}
	text, err := atomicfile.Read(o.verifiedFile(), maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading when the audit log was verified: %w", err)
	}
	body, sum, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	v := none
	if !hmac.Equal([]byte(f.signature(body)), sum) || json.Unmarshal(body, &v) != nil || v.Store != f.id {
		return none, nil
	}
	return v, nil
}

func (f verifier) signature(body []byte) string {
	return ledger.SignNote(f.key, "verified", body)
}

func (f verifier) noteVerified(o *Options, v Verified) error {
	body, err := json.Marshal(v)
	if err == nil {
		err = atomicfile.Write(o.verifiedFile(), fmt.Appendf(nil, "%s\n%s\n", body, f.signature(body)))
	}
	if err != nil {
		return fmt.Errorf("keeping when the audit log was verified: %w", err)
	}
	return nil
}

// stillBad looks at the rows that a verification found to be wrong: what one process
// has found is found again whenever the log is opened, by all of them.
func (f verifier) stillBad(ctx context.Context, o *Options) error {
	v, err := f.verified(o)
	if err != nil { // as good as none
		o.Logger.Warn("nothing is known of earlier verifications of the audit log", "error", err)
	}
	if v.Part == nil || v.Part.Why == "" {
		return nil
	}
	_, err = f.portion(ctx, f.conn, v.Part, nil)
	return err
}

// A watch verifies the whole log once a day, if no other process does.
type watch struct {
	db    *DB
	f     verifier
	whole time.Time // when this process last read all of it
	held  time.Time // since when other processes have kept this one from verifying
}

// checkBehind begins to verify f once a day, in a goroutine that ends with f.
func (db *DB) checkBehind(ctx context.Context, f *file) {
	db.stopCheck()
	if db.o.ReadOnly {
		return
	}
	ctx, db.stopCheck = context.WithCancel(ctx)
	db.behind.Go(func() { (&watch{db: db, f: verifier{f}, whole: f.whole}).run(ctx) })
}

// run ends with ctx, or when it has found damage.
func (w *watch) run(ctx context.Context) {
	for {
		in, found := dueEvery, false
		var err error
		if due := w.due(); due > 0 {
			in = min(in, due)
		} else {
			found, err = w.attempt(ctx)
		}
		if found || ctx.Err() != nil {
			return
		}
		if err != nil {
			w.db.o.Logger.Error("the old rows of the audit log could not be checked", "error", err, "again in", dueEvery)
		}
		if !stopwatch.Pause(ctx, in) {
			return
		}
	}
}

// due returns how long until the whole log should be verified. What another process
// began or found is due at once: if that process is at it, it has the lock.
func (w *watch) due() time.Duration {
	v, _ := w.f.verified(&w.db.o) // verify says why there is none
	if v.Part != nil {
		return 0
	}
	last, now := v.Began, wall()
	if w.whole.After(last) {
		last = w.whole
	}
	if last.After(now.Add(time.Hour)) { // the clock was set back since
		return 0
	}
	return last.Add(wholeEvery).Sub(now)
}

// attempt verifies the whole log unless another process is at it. One process that
// has the lock and does nothing, whatever it is, keeps the others away for a day only, and so
// does a lock that cannot be had.
func (w *watch) attempt(ctx context.Context) (found bool, err error) {
	lock, err := os.OpenFile(w.db.o.verifiedFile()+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		defer lock.Close() // which releases it
		err = filelock.Try(lock)
	}
	if err != nil {
		now := wall()
		if w.held.IsZero() {
			w.held = now
		}
		if now.Sub(w.held) < wholeEvery {
			if errors.Is(err, filelock.ErrHeld) {
				err = nil
			}
			return false, err
		}
	}
	w.held = time.Time{}
	if w.due() > 0 { // another process was quicker
		return false, nil
	}
	return w.verify(ctx)
}

// verify verifies the whole log, a chunk at a time, with rests. It goes on where the
// last one, of whichever process, ended early.
func (w *watch) verify(ctx context.Context) (found bool, err error) {
	o := &w.db.o
	v, err := w.f.verified(o)
	if err != nil {
		o.Logger.Warn("the audit log is verified from its beginning", "error", err)
	}
	signed, err := readCheckpoints(o)
	if err != nil {
		return false, err
	}
	c, err := w.f.read.Conn(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the audit log: %w", err)
	}
	defer c.Close()
	if v.Part == nil {
		v.Part = &Part{Began: wall()}
	}
	saved := time.Now()
	keep := func() { // without the note, the work is done once more
		saved = time.Now()
		if err := w.f.noteVerified(o, v); err != nil {
			o.Logger.Warn("the next process will verify the audit log anew", "error", err)
		}
	}
	for {
		before := *v.Part
		done, took, err := w.chunk(ctx, c, v.Part, signed)
		switch {
		case ctx.Err() != nil:
			*v.Part = before
			keep()
			return false, nil
		case errors.Is(err, ledger.ErrDamaged):
			v.Part.Why = reason(err)
			keep()
			w.found(err)
			return true, nil
		case err != nil:
			keep()
			return false, err
		case wall().Sub(v.Part.Began) > wholeEvery || v.Part.Began.After(wall().Add(time.Hour)):
			// Its first rows were verified too long ago, also if these are its last: an old
			// note that is put back again and again must not hide what was done to the others.
			// What it had come to was looked at once more: damage that it found is found again.
			v.Part = &Part{Began: wall()}
		case done:
			p := v.Part
			v = Verified{Store: v.Store, Began: p.Began, Ended: wall(), First: p.First, Last: p.Last, Hash: p.Hash, By: fmt.Sprintf("process %d", os.Getpid()), Sound: v.Sound}
			w.whole = p.Began
			keep()
			compared, err := w.structure(ctx, c, p)
			switch {
			case err != nil:
				v.Part = &Part{Began: wall(), Why: reason(err)}
				keep()
				w.found(err)
				return true, nil
			case compared:
				v.Sound = wall()
				keep()
			}
			return false, nil
		}
		if time.Since(saved) >= saveEvery {
			keep()
		}
		if !stopwatch.Pause(ctx, max(leastRest, restTimes*took)) {
			keep()
			return false, nil
		}
	}
}

// chunk verifies the next rows in one state of the log, and adds them to p. It returns
// how long that took, and whether those were the last.
func (w *watch) chunk(ctx context.Context, c *sql.Conn, p *Part, signed []ledger.Checkpoint) (done bool, took time.Duration, err error) {
	began := time.Now()
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		return false, 0, fmt.Errorf("reading the audit log: %w", err)
	}
	defer c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	done, err = w.f.portion(ctx, c, p, signed)
	return done, time.Since(began), err
}

// structure compares SQLite's indexes with the rows p of a log that is not too long for
// that, and reports whether it did; damage is an error. It cannot be done in chunks, so a
// process that ends soon leaves it to the next day's.
func (w *watch) structure(ctx context.Context, c *sql.Conn, p *Part) (compared bool, err error) {
	if p.Last-p.First >= comparedRows || !stopwatch.Pause(ctx, beforeStructure) {
		return false, nil
	}
	err = classed(sound(ctx, c, "integrity_check"))
	if errors.Is(err, ledger.ErrDamaged) {
		return false, damaged("every row is right, but not the file around them: %s", reason(err))
	}
	return err == nil, nil // any other error is the connection's, or that the process ends
}

// soundAtStart has SQLite check the structure of a small file before it is used, unless
// some process has within a day: the check reads all of the file, which takes longer than
// the rest of a start, and a process that runs one script is over before the watch gets
// there.
func (f verifier) soundAtStart(ctx context.Context, o *Options) error {
	v, _ := f.verified(o) // stillBad says why there is none
	if age := wall().Sub(v.Sound); age < wholeEvery && age > -time.Hour {
		return nil
	}
	if err := sound(ctx, f.conn, "quick_check"); err != nil {
		return err
	}
	if o.ReadOnly || f.key == nil || f.seq == 0 { // of an empty log a check takes no time
		return nil
	}
	if err := f.noteSound(o); err != nil {
		o.Logger.Warn("the next start will check the structure of the audit log once more", "error", err)
	}
	return nil
}

// noteSound notes that the file's structure is right, unless another process verifies the
// log, and so writes the note.
func (f verifier) noteSound(o *Options) error {
	lock, err := os.OpenFile(o.verifiedFile()+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which releases it
	if err := filelock.Try(lock); errors.Is(err, filelock.ErrHeld) {
		return nil
	} else if err != nil {
		return err
	}
	v, _ := f.verified(o)
	v.Sound = wall()
	return f.noteVerified(o, v)
}

// portion verifies the rows after p.Last and adds them to p; damage is an error. It
// reports whether they were the last.
func (f verifier) portion(ctx context.Context, c *sql.Conn, p *Part, signed []ledger.Checkpoint) (done bool, err error) {
	first, before, err := f.beginning(ctx, c)
	if err != nil {
		return false, classed(err)
	}
	mark, err := f.lastMark(ctx, c)
	if err != nil {
		return false, classed(err)
	}
	if p.Last > 0 && first > p.Last+1 { // what it had verified was pruned
		*p = Part{Began: p.Began}
	}
	part := portion{after: p.Last, prev: &p.Hash, most: chunkRows}
	if p.Last == 0 {
		p.First, part.after, part.prev = first, max(0, first-1), before
		if before == nil { // what it is chained to is not known; the row after it says its hash
			row, err := rowAt(ctx, c, first)
			if err != nil {
				return false, classed(err)
			}
			part.after, part.prev = first, &row.Hash
			p.Last, p.Hash = first, row.Hash
		}
	}
	var head int64
	var hash, seal []byte
	if err := c.QueryRowContext(ctx, headQuery).Scan(&head, &hash, &seal); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, classed(err)
	}
	if head < p.Last || head == p.Last && head > 0 && string(hash) != string(p.Hash[:]) {
		return false, damaged("row %d is not the one that was verified on %s: the end was cut off, or the file is an older copy", p.Last, p.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	var against []ledger.Checkpoint
	if mark != nil {
		signed = append(signed[:len(signed):len(signed)], *mark)
	}
	for _, s := range signed {
		if s.Store == f.id && s.Seq > part.after && (s.Seq <= part.after+chunkRows || head <= part.after+chunkRows) {
			against = append(against, s)
		}
	}
	report, err := scan(ctx, c, f.id, f.key, part, against)
	if err == nil && !report.Whole { // what was done to a row shows in the rows after it
		part.most *= 2
		report, err = scan(ctx, c, f.id, f.key, part, against)
	}
	if err != nil {
		return false, classed(err)
	}
	if report.Rows > 0 {
		p.Last, p.Hash = report.Last, report.Hash
	}
	if !report.Whole {
		return false, damaged("%s", report.Message)
	}
	p.Why = ""
	return p.Last >= head, nil
}

// found keeps damage that opening the file does not find, for as long as the file is in
// its place.
func (w *watch) found(err error) {
	db := w.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if os.SameFile(db.file.info, w.f.info) { // otherwise it is about a file that was set aside
		db.o.Logger.Error("calls are refused", "error", err)
		db.hiddenFault = fault{err, time.Now(), w.f.info}
	}
}

// wall is the time of day, which also passes while the machine sleeps.
func wall() time.Time { return time.Now().UTC().Round(0) }
