package centre

import (
	"fmt"
	"net/http"
	"regexp"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/enrolment/wire"
	"codemode-bridge/bridge/ledger"
)

// storeID is what a log's id may be: it stands in checkpoints.
var storeID = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)

// rows takes a batch.
func (c *Centre) rows(l *Laptop, text []byte, _ *http.Request) (any, Change, error) {
	var b wire.Batch
	if err := parsed(text, &b); err != nil {
		return nil, Change{}, err
	}
	if len(b.Rows) > wire.MaxRows || b.After < 0 || b.Waiting < 0 || b.Policy < 0 || !storeID.MatchString(b.Store) || len(b.Version) > 100 {
		return nil, Change{}, refusal(wire.BadRequest, "the batch is out of bounds")
	}
	if l.Forked != "" {
		return nil, Change{}, c.forked(l)
	}
	if err := follow(&b); err != nil {
		return nil, Change{}, err
	}
	l.Version, l.Waiting, l.Policy = b.Version, b.Waiting, b.Policy
	var change Change
	k := &l.Chains[len(l.Chains)-1]
	if b.Store != k.Store {
		switch {
		case b.After != 0 || b.Prev != (wire.Hash{}):
			return c.fork(l, &b, fmt.Sprintf("its log is another one (%s instead of %s), and is not sent from its beginning", canon.Escape(b.Store), k.Store))
		case l.has(b.Store):
			return c.fork(l, &b, "its log is an earlier one of this laptop")
		}
		last := c.checkpoint(l)
		l.Chains = append(l.Chains, Chain{Store: b.Store, Began: c.o.Now().UTC()})
		k = &l.Chains[len(l.Chains)-1]
		change.Notes = append(change.Notes, Note{Laptop: l.Name, Person: l.Person, What: "rows", Chain: len(l.Chains) - 1, Checkpoint: last},
			Note{Laptop: l.Name, Person: l.Person, What: "began a new log", Chain: len(l.Chains), Begins: c.begins(l), Why: "as after codemode-bridge audit repair: its first rows say why"})
	}
	if b.After > k.Seq {
		no := refusal(wire.Gap, "the rows %d to %d are missing here", k.Seq+1, b.After)
		no.Head = &wire.Head{Store: k.Store, Seq: k.Seq, Hash: wire.Hash(k.Hash)}
		return nil, change, no
	}
	end := b.After + int64(len(b.Rows))
	if end+b.Waiting < k.Seq {
		return c.fork(l, &b, fmt.Sprintf("its log ends with row %d, and row %d was here: an older copy of it was restored", end+b.Waiting, k.Seq))
	}
	if at := min(k.Seq, end); at >= k.From {
		have, err := c.hashAt(l, at)
		if err != nil {
			return nil, change, err
		}
		if have != hashIn(&b, at) {
			return c.fork(l, &b, fmt.Sprintf("its row %d is another one than the one that was here: an older copy of its log was restored and went on, or rows were written anew", at))
		}
	}
	ring := ledger.NewKeyring(k.Store, c.o.Seal)
	for _, row := range b.Rows {
		if row.Seq <= k.Seq {
			continue
		}
		k.Seq, k.Hash = row.Seq, ledger.Hash(row.Hash)
		change.Rows = append(change.Rows, ledger.Link{Seq: k.Seq, Hash: k.Hash, Seal: ring.Seal(k.Seq, k.Hash), Body: []byte(row.Body)})
	}
	if n := k.Seq - max(k.Noted, k.From); n >= checkpointRows || n > 0 && c.o.Now().Sub(k.NotedAt) >= checkpointAfter {
		change.Notes = append(change.Notes, Note{Laptop: l.Name, Person: l.Person, What: "rows", Chain: len(l.Chains), Checkpoint: c.checkpoint(l)})
	}
	return wire.Received{Head: wire.Head{Store: k.Store, Seq: k.Seq, Hash: wire.Hash(k.Hash)}}, change, nil
}

// follow checks that the rows of a batch follow from each other, and are records.
func follow(b *wire.Batch) error {
	prev := ledger.Hash(b.Prev)
	for i, row := range b.Rows {
		seq := b.After + 1 + int64(i)
		switch {
		case row.Seq != seq:
			return refusal(wire.Broken, "the batch has row %d in the place of row %d", row.Seq, seq)
		case len(row.Body) > ledger.MaxRecord:
			return refusal(wire.Broken, "row %d is larger than a row may be", seq)
		case ledger.HashRow(b.Store, seq, prev, []byte(row.Body)) != ledger.Hash(row.Hash):
			return refusal(wire.Broken, "row %d does not follow from the row before: the laptop's log is damaged (codemode-bridge audit verify)", seq)
		}
		if _, err := ledger.Decode([]byte(row.Body)); err != nil {
			return refusal(wire.Broken, "row %d is no record", seq)
		}
		prev = ledger.Hash(row.Hash)
	}
	return nil
}

// hashIn returns the hash that a batch has of a row, which is one of its own or the one
// before.
func hashIn(b *wire.Batch, seq int64) ledger.Hash {
	if seq == b.After {
		return ledger.Hash(b.Prev)
	}
	return ledger.Hash(b.Rows[seq-b.After-1].Hash)
}

// hashAt returns the hash of a row that was taken, or of the one that the chain follows.
func (c *Centre) hashAt(l *Laptop, seq int64) (ledger.Hash, error) {
	switch k := l.Chains[len(l.Chains)-1]; seq {
	case k.Seq:
		return k.Hash, nil
	case k.From:
		return k.FromHash, nil
	}
	return l.hash(seq)
}

// fork notes that a laptop's log is not the one that was here.
func (c *Centre) fork(l *Laptop, b *wire.Batch, why string) (any, Change, error) {
	l.Forked, l.ForkedAt = why, c.o.Now().UTC()
	end := b.After + int64(len(b.Rows))
	n := Note{Laptop: l.Name, Person: l.Person, What: "forked", Chain: len(l.Chains), Checkpoint: c.checkpoint(l),
		Why: fmt.Sprintf("%s (it showed row %d with hash %s)", why, end, hashIn(b, end))}
	return nil, Change{Notes: []Note{n}}, c.forked(l)
}

func (c *Centre) forked(l *Laptop) error {
	k := l.Chains[len(l.Chains)-1]
	no := refusal(wire.Forked, "the log of the laptop %s was forked: %s; nothing more is taken until an administrator has seen it and invites it again (codemode-bridge laptops invite --again %s)",
		canon.Escape(l.Name), l.Forked, canon.Escape(l.Name))
	no.Head = &wire.Head{Store: k.Store, Seq: k.Seq, Hash: wire.Hash(k.Hash)}
	return no
}
