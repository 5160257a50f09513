package pgstore

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/ledger"
)

// Documents are the small documents that all bridges with the store share. Their bodies
// are encrypted with the store's key; kinds and names are not.
type Documents struct {
	*tables
	seal cipher.AEAD
}

// OpenDocuments opens the documents of a store, and makes the store if there is none.
func OpenDocuments(ctx context.Context, o Options) (*Documents, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	conn, err := o.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening the documents in %s: %w", Where(o.URL), err)
	}
	is, err := o.establish(ctx, conn, nil)
	hangUp(conn)
	if err != nil {
		return nil, fmt.Errorf("opening the documents in %s: %w", Where(o.URL), err)
	}
	seal, err := documentCipher(is.key)
	if err != nil {
		return nil, err
	}
	pool, err := o.pool(context.WithoutCancel(ctx), readers)
	if err != nil {
		return nil, err
	}
	return &Documents{newTables(&o, pool, "documents"), seal}, nil
}

// Close ends the watching and closes the connections. It is called once.
func (d *Documents) Close() error {
	d.watch.close()
	d.pool.Close()
	return nil
}

// Documents returns the documents of one kind, whose name has the form of a document's.
func (d *Documents) Documents(kind string) documents.Store { return documentStore{d, kind} }

func documentCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(ledger.Derive(key, "documents"))
	if err != nil {
		return nil, fmt.Errorf("encrypting documents: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// documentPlace binds an encrypted body to its document.
func documentPlace(kind, name string) []byte {
	b := binary.BigEndian.AppendUint64([]byte("codemode-bridge document 1\n"), uint64(len(kind)))
	return append(append(b, kind...), name...)
}

// A documentStore is the documents of one kind.
type documentStore struct {
	*Documents
	kind string
}

func (s documentStore) check(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := documents.CheckName(s.kind); err != nil {
		return err
	}
	return documents.CheckName(name)
}

// Read returns a document. See documents.Store.
func (s documentStore) Read(ctx context.Context, name string) ([]byte, error) {
	if err := s.check(ctx, name); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Patience)
	defer cancel()
	body, err := s.read(ctx, s.pool, name)
	if err == nil && body == nil {
		err = fmt.Errorf("document %s: %w", name, fs.ErrNotExist)
	}
	return body, err
}

// read returns a document; nil if there is none.
func (s documentStore) read(ctx context.Context, from querier, name string) ([]byte, error) {
	var sealed []byte
	err := from.QueryRow(ctx, "SELECT body FROM documents WHERE kind = $1 AND name = $2", s.kind, name).Scan(&sealed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading document %s: %w", name, classed(err))
	}
	body, err := s.seal.Open([]byte{}, nil, sealed, documentPlace(s.kind, name))
	if err != nil {
		return nil, ledger.Damaged("document %s of %s was not written by a bridge", name, s.kind)
	}
	return body, nil
}

// Names returns the names of the kind's documents.
func (s documentStore) Names(ctx context.Context) ([]string, error) {
	if err := s.check(ctx, s.kind); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Patience)
	defer cancel()
	found, err := s.pool.Query(ctx, "SELECT name FROM documents WHERE kind = $1 ORDER BY name", s.kind)
	if err != nil {
		return nil, classed(err)
	}
	names, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err == nil && len(names) == 0 {
		names = nil
	}
	return names, classed(err)
}

// Change replaces a document.
func (s documentStore) Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	if err := s.check(ctx, name); err != nil {
		return err
	}
	err := s.change(ctx, func(t pgx.Tx) error {
		ctx := context.WithoutCancel(ctx) // the server ends what lasts too long
		old, err := s.read(ctx, t, name)
		if err != nil {
			return err
		}
		next, err := change(bytes.Clone(old))
		if err == nil {
			err = documents.CheckLength(name, next)
		}
		switch {
		case err != nil:
			return err
		case (next == nil) == (old == nil) && bytes.Equal(next, old):
			return errSame
		case next == nil:
			_, err = t.Exec(ctx, "DELETE FROM documents WHERE kind = $1 AND name = $2", s.kind, name)
		default:
			_, err = t.Exec(ctx, "INSERT INTO documents (kind, name, body) VALUES ($1, $2, $3) ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body, changed = now()",
				s.kind, name, s.seal.Seal(nil, nil, next, documentPlace(s.kind, name)))
		}
		return err
	})
	if errors.Is(err, errSame) {
		return nil
	}
	return err
}

// Discard removes a document, whatever its body is. See [documents.Discard].
func (s documentStore) Discard(ctx context.Context, name string) error {
	if err := s.check(ctx, name); err != nil {
		return err
	}
	return s.change(ctx, func(t pgx.Tx) error {
		_, err := t.Exec(context.WithoutCancel(ctx), "DELETE FROM documents WHERE kind = $1 AND name = $2", s.kind, name)
		return err
	})
}

// Watch tells of changes. Those of other kinds are told, too.
func (s documentStore) Watch(ctx context.Context, changed func()) {
	if ctx.Err() != nil {
		return
	}
	for next := s.watch.changed(); ; {
		select {
		case <-ctx.Done():
			return
		case <-s.watch.ctx.Done():
			return
		case <-next:
			next = s.watch.changed() // before it is told, so that no change in between is lost
			changed()
		}
	}
}
