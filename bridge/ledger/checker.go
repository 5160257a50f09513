package ledger

import (
	"bytes"
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A Checker reads the rows of one store in order and finds the first one that
// differs from what was written.
//
// A row is right if its hash is that of its text and its predecessor's hash, and
// its seal that of its number and hash. The seal covers only number and hash, so a
// row that was moved still shows where it belongs: that, and the row after the
// first wrong one, distinguish an edit from a removal, an insertion and a move.
type Checker struct {
	store  string
	ring   *Keyring     // nil: without the key
	signed []Checkpoint // by number, those not yet passed

	report Report
	done   bool // report is final

	next   int64 // the number that the next row must have; 0 before the first
	prev   Hash
	linked bool // prev is known

	first  *Link // began after row 1: a Pruned record must account for what is missing
	gone   Removal
	wrong  *Link // the first row that is wrong; the next one tells how
	chains bool  // the hash of wrong matches its text and predecessor
}

// A Removal is the Detail of a Pruned record: the rows up to Last, whose hash was
// Hash, were removed, and how many of them this time.
type Removal struct {
	Rows int64 `json:"rows"`
	Last int64 `json:"last"`
	Hash Hash  `json:"hash"`
}

// Record returns the record that a store appends in the same transaction, or
// before it removes the first row.
func (r Removal) Record() Record {
	detail, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and a hash have a JSON form
	}
	return Record{Event: Pruned, Detail: detail, Durable: true}
}

// NewChecker returns a checker of a whole store. A nil key means that seals
// are not checked. Each checkpoint must be of this store, signed with key.
func NewChecker(store string, key []byte, against ...Checkpoint) *Checker {
	c := &Checker{store: store, report: Report{Sealed: key != nil}}
	if key != nil {
		c.ring = NewKeyring(store, key)
	}
	for _, p := range against {
		switch {
		case p.Store != store:
			c.fail(0, OtherStore, "the checkpoint of %s is of another log (%.40s, this one is %s)", stamp(p.Time), p.Store, store)
		case key != nil && !p.SignedWith(key):
			c.fail(0, OtherStore, "the checkpoint of %s is not signed with this log's key", stamp(p.Time))
		}
	}
	c.signed = slices.SortedFunc(slices.Values(against), func(a, b Checkpoint) int { return int(min(1, max(-1, a.Seq-b.Seq))) })
	return c
}

// After makes the checker begin after a row that is known to be right. It must be
// called before the first Add.
func (c *Checker) After(seq int64, hash Hash) {
	c.next, c.prev, c.linked = seq+1, hash, true
	c.report.First = seq + 1
}

// Add checks the next row and reports whether the checker needs more rows. It
// keeps no reference to the row's text.
func (c *Checker) Add(l Link) bool {
	if c.done {
		return false
	}
	if c.wrong != nil {
		c.explain(&l)
		return false
	}
	if c.next == 0 {
		c.next, c.linked, c.report.First = l.Seq, l.Seq == 1, l.Seq
		if !c.linked {
			c.first = keep(l)
		}
	}
	switch {
	case l.Seq < c.next:
		c.fail(l.Seq, Inserted, "row %d is there twice", l.Seq)
		return false
	case l.Seq > c.next:
		c.fail(c.next, Removed, "%s missing", span(c.next, l.Seq-1))
		return false
	}
	c.chains = !c.linked || HashRow(c.store, l.Seq, c.prev, l.Body) == l.Hash
	if !c.chains || !c.sealed(&l, l.Seq) {
		c.wrong = keep(l)
		return true
	}
	for len(c.signed) > 0 && c.signed[0].Seq <= l.Seq {
		if p := c.signed[0]; p.Seq == l.Seq && p.Hash != l.Hash {
			c.fail(l.Seq, Rewritten, "row %d is not the one that was signed on %s: it or a row before it was rewritten", l.Seq, stamp(p.Time))
			return false
		}
		c.signed = c.signed[1:]
	}
	if bytes.HasPrefix(l.Body, []byte(`{"event":"pruned"`)) {
		var rec struct{ Detail Removal }
		if json.Unmarshal(l.Body, &rec) == nil && rec.Detail.Last > c.gone.Last {
			c.gone = rec.Detail
		}
	}
	c.report.Rows++
	c.report.Last, c.report.Hash = l.Seq, l.Hash
	c.next, c.prev, c.linked = l.Seq+1, l.Hash, true
	return true
}

// Unreadable tells the checker that the rows after the last one added could not be
// read.
func (c *Checker) Unreadable(err error) {
	if c.wrong != nil {
		c.explain(nil)
	}
	c.fail(max(1, c.next), Unreadable, "row %d cannot be read: %v", max(1, c.next), err)
}

// Report returns what was found, after the last row.
func (c *Checker) Report() Report {
	if c.wrong != nil {
		c.explain(nil)
	}
	if c.done {
		return c.report
	}
	if f := c.first; f != nil {
		switch {
		case c.gone.Last < f.Seq-1:
			c.fail(c.gone.Last+1, Removed, "%s missing, and nothing says that they were pruned", span(c.gone.Last+1, f.Seq-1))
		case c.gone.Last == f.Seq-1 && HashRow(c.store, f.Seq, c.gone.Hash, f.Body) != f.Hash:
			c.fail(f.Seq, Edited, "row %d does not follow the last pruned one", f.Seq)
		}
		// Otherwise the removal was interrupted: its rows may or may not be there.
	}
	if n := len(c.signed); n > 0 && !c.done {
		p := c.signed[n-1]
		c.fail(c.report.Last+1, Cut, "%s missing, which a checkpoint of %s shows: the end was cut off, or the file is an older copy",
			span(c.report.Last+1, p.Seq), stamp(p.Time))
	}
	c.done, c.report.Whole = true, c.report.Kind == ""
	return c.report
}

// explain says what is wrong with the first wrong row, judging by it and the row
// after it, which is nil if there is none.
func (c *Checker) explain(next *Link) {
	w := c.wrong
	c.wrong = nil
	switch home := c.home(w); {
	case c.ring == nil && next != nil && HashRow(c.store, w.Seq, c.prev, next.Body) == next.Hash:
		c.fail(w.Seq, Inserted, "row %d was inserted", w.Seq)
	case c.ring == nil || home == w.Seq:
		c.fail(w.Seq, Edited, "row %d was edited", w.Seq)
	case home > 0 && home < w.Seq:
		c.fail(w.Seq, Inserted, "row %d is a copy of row %d", w.Seq, home)
	case home > 0 && (next == nil || c.sealed(next, next.Seq+home-w.Seq)):
		c.fail(w.Seq, Removed, "%s missing, and those behind were renumbered", span(w.Seq, home-1))
	case home > 0:
		c.fail(w.Seq, Reordered, "row %d stands in the place of row %d", home, w.Seq)
	case next != nil && c.sealed(next, w.Seq):
		c.fail(w.Seq, Inserted, "row %d was inserted", w.Seq)
	case c.chains && (next == nil || !c.sealed(next, next.Seq)):
		c.fail(w.Seq, Rewritten, "from row %d on, the log was written without its key", w.Seq)
	default:
		c.fail(w.Seq, Edited, "row %d was edited", w.Seq)
	}
}

// searched is how far from its place a row is looked for; one that was moved
// farther is reported as an edit.
const searched = 1_000

// home returns the number for which a row's seal was made; 0 if it is not within
// reach.
func (c *Checker) home(l *Link) int64 {
	if c.ring == nil {
		return 0
	}
	for d := range int64(searched) {
		if c.sealed(l, l.Seq+d) {
			return l.Seq + d
		}
		if l.Seq-d > 0 && c.sealed(l, l.Seq-d) {
			return l.Seq - d
		}
	}
	return 0
}

// sealed reports whether l is sealed as row seq.
func (c *Checker) sealed(l *Link, seq int64) bool {
	if c.ring == nil {
		return true
	}
	want := c.ring.Seal(seq, l.Hash)
	return hmac.Equal(want[:], l.Seal[:])
}

// fail makes the report final; the first finding stays.
func (c *Checker) fail(seq int64, kind Kind, format string, args ...any) {
	if !c.done {
		c.done = true
		c.report.Bad, c.report.Kind, c.report.Message = seq, kind, fmt.Sprintf(format, args...)
	}
}

func keep(l Link) *Link {
	l.Body = bytes.Clone(l.Body)
	return &l
}

func span(from, to int64) string {
	if from == to {
		return fmt.Sprintf("row %d is", from)
	}
	return fmt.Sprintf("rows %d to %d are", from, to)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
