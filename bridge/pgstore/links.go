package pgstore

import (
	"context"

	"codemode-bridge/bridge/ledger"
)

// LinksAfter returns rows as they are kept; see [ledger.Linked].
func (db *DB) LinksAfter(ctx context.Context, after int64, rows, bytes int) (string, []ledger.Link, error) {
	found, err := db.pool.Query(ctx, "SELECT seq, hash, seal, body FROM log WHERE seq > $1 ORDER BY seq LIMIT $2", after, rows)
	if err != nil {
		return "", nil, reading(err)
	}
	defer found.Close()
	var links []ledger.Link
	for size := 0; size < bytes && found.Next(); {
		var l ledger.Link
		var hash, seal []byte
		if err := found.Scan(&l.Seq, &hash, &seal, &l.Body); err != nil {
			return "", nil, reading(err)
		}
		copy(l.Hash[:], hash)
		copy(l.Seal[:], seal)
		links, size = append(links, l), size+len(l.Body)
	}
	found.Close()
	return db.id, links, reading(found.Err())
}
