package centre

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"codemode-bridge/bridge/ledger"
)

// A Laptop is what the centre knows of one.
type Laptop struct {
	Name     string     `json:"name"`
	Person   string     `json:"person"`
	Key      []byte     `json:"key"` // Ed25519
	Enrolled time.Time  `json:"enrolled"`
	Seen     time.Time  `json:"seen"`
	Version  string     `json:"version"`          // of its program
	Stamp    int64      `json:"stamp"`            // of its last request
	Waiting  int64      `json:"waiting"`          // rows that it had and did not send yet
	Policy   int64      `json:"policy,omitempty"` // the serial that was in force there when it was seen last
	Chains   []Chain    `json:"chains"`           // the last one grows
	Forked   string     `json:"forked,omitempty"`
	ForkedAt time.Time  `json:"forkedAt,omitzero"`
	Revoked  *time.Time `json:"revoked,omitempty"`
	Left     *time.Time `json:"left,omitempty"`

	hash func(seq int64) (ledger.Hash, error) // of a row of the last chain, within Store.Change
}

// A Chain is the rows of one log: those after From.
type Chain struct {
	Store    string      `json:"store"`
	From     int64       `json:"from"`
	FromHash ledger.Hash `json:"fromHash"`
	Seq      int64       `json:"seq"` // the last row
	Hash     ledger.Hash `json:"hash"`
	Began    time.Time   `json:"began"`
	Noted    int64       `json:"noted,omitempty"` // the row of the last checkpoint in the centre's log
	NotedAt  time.Time   `json:"notedAt,omitzero"`
}

// State says in one word how it is with a laptop.
func (l *Laptop) State() string {
	switch {
	case l.Revoked != nil:
		return "revoked"
	case l.Left != nil:
		return "left"
	case l.Forked != "":
		return "forked"
	}
	return "enrolled"
}

// Rows returns how many rows are here.
func (l *Laptop) Rows() (n int64) {
	for _, k := range l.Chains {
		n += k.Seq - k.From
	}
	return n
}

// has reports whether a log was one of the laptop's before.
func (l *Laptop) has(store string) bool {
	return slices.ContainsFunc(l.Chains, func(k Chain) bool { return k.Store == store })
}

// A Code enrols one machine.
type Code struct {
	ID     string    `json:"id"`
	Key    []byte    `json:"key"`    // checks a MAC
	Laptop string    `json:"laptop"` // the name that the machine gets
	Person string    `json:"person"`
	Until  time.Time `json:"until"`
	Again  bool      `json:"again,omitempty"`  // the laptop of that name is enrolled already
	UsedBy []byte    `json:"usedBy,omitempty"` // the key that it made known
}

// Verify reads all rows of a laptop's chain, by its number from 1, and says whether they are
// what was taken. Noted is what the centre's log says of the chain.
func Verify(ctx context.Context, s *Store, l *Laptop, chain int, seal []byte, noted Notes) (ledger.Report, error) {
	k := l.Chains[chain-1]
	if b := noted.Begins; b != nil && (b.Store != k.Store || b.Seq != k.From || b.Hash != k.FromHash || !b.SignedWith(seal)) {
		return ledger.Report{Bad: b.Seq + 1, Kind: ledger.Removed, Message: fmt.Sprintf("it begins after row %d, and when it was begun that was row %d", k.From, b.Seq)}, nil
	}
	c := ledger.NewChecker(k.Store, seal, noted.Points...)
	c.After(k.From, k.FromHash)
	for link, err := range s.Rows(ctx, l.Name, chain, 0) {
		if err != nil {
			return ledger.Report{}, err
		}
		if !c.Add(link) {
			break
		}
	}
	r := c.Report()
	if last := max(r.Last, k.From); r.Whole && (last != k.Seq || r.Rows > 0 && r.Hash != k.Hash) {
		r.Whole, r.Bad, r.Kind = false, last+1, ledger.Cut
		r.Message = fmt.Sprintf("the rows end with %d, and row %d was taken: the end was cut off", last, k.Seq)
	}
	return r, nil
}

// A Reader reads the centre's own audit log.
type Reader interface {
	Rows(ctx context.Context, q ledger.Query) iter.Seq2[ledger.Row, error]
}

// Notes are what the centre's own log says of a laptop's chain.
type Notes struct {
	Begins *ledger.Checkpoint // the row after which it begins; nil if that was pruned
	Points []ledger.Checkpoint
}

// Noted reads them.
func Noted(ctx context.Context, log Reader, laptop string, chain int) (noted Notes, err error) {
	for row, err := range log.Rows(ctx, ledger.Query{Events: []ledger.Event{ledger.Laptop}}) {
		if err != nil {
			return noted, err
		}
		var n Note
		if json.Unmarshal(row.Record.Detail, &n) != nil || n.Laptop != laptop || n.Chain != chain {
			continue
		}
		for text, keep := range map[string]func(ledger.Checkpoint){
			n.Begins:     func(c ledger.Checkpoint) { noted.Begins = &c },
			n.Checkpoint: func(c ledger.Checkpoint) { noted.Points = append(noted.Points, c) },
		} {
			if text == "" {
				continue
			}
			c, err := ledger.ParseCheckpoint(text)
			if err != nil {
				return noted, fmt.Errorf("row %d of the centre's log: %w", row.Seq, err)
			}
			keep(c)
		}
	}
	return noted, nil
}

// All reads the rows of a laptop as records, the newest log last.
func All(ctx context.Context, s *Store, l *Laptop) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		for i := range l.Chains {
			for row, err := range records(s.Rows(ctx, l.Name, i+1, 0)) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// Newest reads the newest rows of a laptop's last log, the oldest of them first.
func Newest(ctx context.Context, s *Store, l *Laptop, limit int) iter.Seq2[ledger.Row, error] {
	chain := len(l.Chains)
	return records(s.Rows(ctx, l.Name, chain, l.Chains[chain-1].Seq-int64(max(0, limit))))
}

func records(links iter.Seq2[ledger.Link, error]) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		for link, err := range links {
			row := ledger.Row{Seq: link.Seq, Hash: link.Hash}
			if err == nil {
				row.Record, err = ledger.Decode(link.Body)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
