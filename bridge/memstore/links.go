package memstore

import (
	"context"

	"codemode-bridge/bridge/ledger"
)

// LinksAfter returns rows as they are kept; see [ledger.Linked].
func (s *Store) LinksAfter(ctx context.Context, after int64, rows, bytes int) (string, []ledger.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var links []ledger.Link
	size := 0
	for _, k := range s.rows {
		if k.Seq <= after {
			continue
		}
		if len(links) >= rows || size >= bytes {
			break
		}
		links, size = append(links, k.Link), size+len(k.Body)
	}
	return s.id, links, ctx.Err()
}
