package pgstore

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/handles"
	"codemode-bridge/bridge/ledger"
)

var _ handles.Shared = (*DB)(nil)

// handlesKey is the purpose of the key with which handles are encrypted.
const handlesKey = "handles"

// KeepHandle keeps what a handle stands for, and removes what is over. See handles.Shared.
func (db *DB) KeepHandle(ctx context.Context, principal string, k handles.Kept, lives time.Duration, most int64) error {
	if db.o.ReadOnly {
		return ledger.ErrReadOnly
	}
	plain, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("writing handle %s: %w", k.ID, err)
	}
	seal, err := db.handleCipher()
	if err != nil {
		return err
	}
	body := seal.Seal(nil, nil, plain, handleBinding(principal, k.ID))
	err = pgx.BeginFunc(ctx, db.pool, func(t pgx.Tx) error {
		_, err := t.Exec(ctx, `INSERT INTO handles (principal, id, expires, body) VALUES ($1, $2, clock_timestamp() + $3 * interval '1 microsecond', $4)
			ON CONFLICT (principal, id) DO UPDATE SET expires = excluded.expires, body = excluded.body`, text(principal), text(k.ID), lives.Microseconds(), body)
		if err != nil {
			return err
		}
		// Of two transactions that remove the same rows none waits for the other.
		_, err = t.Exec(ctx, `DELETE FROM handles WHERE (principal, id) IN (SELECT h.principal, h.id FROM handles AS h JOIN (
			SELECT principal, id, expires, sum(length(body)) OVER (PARTITION BY principal ORDER BY number DESC) AS total FROM handles WHERE principal = $1 OR expires < clock_timestamp()
		) AS old USING (principal, id) WHERE old.expires < clock_timestamp() OR old.total > $2 AND old.id <> $3 FOR UPDATE OF h SKIP LOCKED)`, text(principal), most, text(k.ID))
		return err
	})
	if err != nil {
		return fmt.Errorf("keeping a handle: %w", classed(err))
	}
	return nil
}

// Handle returns what a handle stands for. See handles.Shared.
func (db *DB) Handle(ctx context.Context, principal, id string) (k handles.Kept, lives time.Duration, err error) {
	var micros int64
	var body []byte
	err = db.pool.QueryRow(ctx, `SELECT (extract(epoch FROM expires - clock_timestamp()) * 1000000)::bigint, body FROM handles
		WHERE principal = $1 AND id = $2 AND expires > clock_timestamp()`, text(principal), text(id)).Scan(&micros, &body)
	if errors.Is(err, pgx.ErrNoRows) {
		return k, 0, handles.ErrNoHandle
	}
	if err != nil {
		return k, 0, fmt.Errorf("reading a handle: %w", classed(err))
	}
	seal, err := db.handleCipher()
	if err != nil {
		return k, 0, err
	}
	plain, err := seal.Open(nil, nil, body, handleBinding(principal, id))
	if err == nil {
		err = json.Unmarshal(plain, &k)
	}
	if err != nil || k.ID != id {
		return handles.Kept{}, 0, fmt.Errorf("reading a handle: what is stored as %q is not what was written", id)
	}
	return k, time.Duration(micros) * time.Microsecond, nil
}

func (db *DB) handleCipher() (cipher.AEAD, error) {
	block, err := aes.NewCipher(ledger.Derive(db.key, handlesKey))
	if err != nil {
		return nil, fmt.Errorf("encrypting a handle: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// handleBinding is what a row is good for: one handle of one principal.
func handleBinding(principal, id string) []byte { return []byte(principal + "\x00" + id) }
