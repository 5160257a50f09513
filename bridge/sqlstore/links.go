package sqlstore

import (
	"context"
	"fmt"

	"codemode-bridge/bridge/ledger"
)

// LinksAfter returns rows as they are kept; see [ledger.Linked].
func (db *DB) LinksAfter(ctx context.Context, after int64, rows, bytes int) (string, []ledger.Link, error) {
	f, err := db.reading()
	if err != nil {
		return "", nil, err
	}
	found, err := f.read.QueryContext(ctx, `SELECT seq, hash, seal, body FROM (SELECT * FROM (SELECT seq, hash, seal, body FROM rows WHERE seq > ?1 ORDER BY seq LIMIT ?2)
		UNION ALL SELECT * FROM (SELECT seq, hash, seal, body FROM recent WHERE seq > ?1 ORDER BY seq LIMIT ?2)) ORDER BY seq LIMIT ?2`, after, rows)
	if err != nil {
		return "", nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer found.Close()
	var links []ledger.Link
	for size := 0; size < bytes && found.Next(); {
		var l ledger.Link
		var hash, seal []byte
		if err := found.Scan(&l.Seq, &hash, &seal, &l.Body); err != nil {
			return "", nil, fmt.Errorf("reading the audit log: %w", err)
		}
		copy(l.Hash[:], hash)
		copy(l.Seal[:], seal)
		links, size = append(links, l), size+len(l.Body)
	}
	if err := found.Err(); err != nil {
		return "", nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return f.id, links, nil
}
