package pgstore

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/ledger"
)

// version is the schema that this release makes and knows.
var version = len(migrations)

// oldestReader is the oldest version whose release may use what this one makes.
const oldestReader = 1

// migrations[v] leads from version v to v+1. They only add, so that the release before
// can go on with the result.
var migrations = []string{schema1, schemaReplicas, schemaDocuments, schemaHandles}

const schema1 = `
CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE heads (
	name    text PRIMARY KEY,
	changes bigint NOT NULL   -- grows with every change; its row is what writers lock
);
INSERT INTO heads VALUES ('log', 0), ('requests', 0);
CREATE TABLE log (
	seq         bigint PRIMARY KEY,
	hash        bytea NOT NULL,
	seal        bytea NOT NULL,
	body        text NOT NULL,
	time        text COLLATE "C" NOT NULL,
	run         text COLLATE "C" NOT NULL,
	event       text COLLATE "C" NOT NULL,
	tool        text COLLATE "C" NOT NULL,
	disposition text COLLATE "C" NOT NULL,
	outcome     text COLLATE "C" NOT NULL,
	risk        text COLLATE "C" NOT NULL,
	people      text COLLATE "C" NOT NULL  -- the approver, and in whose name
);
CREATE INDEX log_time ON log (time);
CREATE INDEX log_run ON log (run, seq) WHERE run <> '';
CREATE INDEX log_event ON log (event, seq);
CREATE INDEX log_tool ON log (tool, seq) WHERE tool <> '';
CREATE INDEX log_people ON log (people, seq) WHERE people <> '';
CREATE TABLE journals (
	number        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	run           text NOT NULL UNIQUE,
	owner         text NOT NULL,    -- who runs it; empty for nobody
	wanted        text NOT NULL,
	state         text NOT NULL,
	began         bigint NOT NULL,  -- unix nanoseconds
	until         bigint NOT NULL,  -- unix nanoseconds; 0 for no time
	shared        text NOT NULL,    -- the name of the bytes in shared; empty for none
	configuration text NOT NULL,
	lease         bigint NOT NULL
);
CREATE INDEX journals_wanted ON journals (owner) WHERE wanted <> '';
CREATE TABLE entries (
	run   text NOT NULL,
	place bigint NOT NULL, -- from 1
	kind  text NOT NULL,
	call  bigint NOT NULL,
	total bigint NOT NULL, -- bytes of the journal's bodies up to this one
	body  bytea NOT NULL,  -- encrypted
	PRIMARY KEY (run, place)
);
CREATE TABLE shared (name text PRIMARY KEY, hash bytea NOT NULL, body bytea NOT NULL);
CREATE TABLE uses (name text PRIMARY KEY, used bigint NOT NULL, last bigint NOT NULL);
CREATE TABLE requests (
	seq   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id    text NOT NULL UNIQUE,
	run   text NOT NULL,
	until bigint NOT NULL,   -- unix nanoseconds: when it is answered no
	over  bigint,            -- when it was settled; null until then
	body  text NOT NULL      -- approval.StoredRequest as JSON
);
CREATE INDEX requests_run ON requests (run);
CREATE INDEX requests_open ON requests (until) WHERE over IS NULL;
CREATE TABLE grants (
	seq  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id   text NOT NULL UNIQUE,
	body text NOT NULL
);
CREATE TABLE held (file text PRIMARY KEY, body text NOT NULL);
`

// newer is the error for a schema from a release that this one cannot read.
func newer(has, oldest int) error {
	return &ledger.NewerError{Has: has, Oldest: oldest, Knows: version}
}

// An identity is which store a database has.
type identity struct {
	id  string
	key []byte
}

// establish makes the schema, or brings it to this release's version, and returns which
// store it is. With fresh, it is the one to be made if there is none; otherwise it gets a
// new name and a new key.
func (o *Options) establish(ctx context.Context, conn *pgx.Conn, fresh *identity) (is identity, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	if there, err := o.there(ctx, conn); err != nil {
		return is, err
	} else if has, err := o.current(ctx, conn, there); has || err != nil {
		if err != nil {
			return is, err
		}
		return o.identify(ctx, conn)
	}
	if o.ReadOnly {
		return is, ledger.ErrNoStore
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return is, classed(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "codemode-bridge "+o.schema); err != nil {
		return is, classed(err)
	}
	has := 0
	there, err := o.there(ctx, conn)
	if err == nil && there {
		has, _, err = versions(ctx, conn)
	}
	if err != nil {
		return is, err
	}
	if !there {
		if _, err := tx.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{o.schema}.Sanitize()); err != nil {
			return is, classed(fmt.Errorf("making the schema %s: %w", o.schema, err))
		}
	}
	for has < version {
		if _, err := tx.Exec(ctx, migrations[has]); err != nil {
			return is, classed(fmt.Errorf("changing the schema: %w", err))
		}
		has++
	}
	for name, value := range map[string]string{"version": strconv.Itoa(version), "oldest": strconv.Itoa(oldestReader)} {
		if _, err := tx.Exec(ctx, "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value); err != nil {
			return is, classed(err)
		}
	}
	if !there {
		if err := o.name(ctx, tx, fresh); err != nil {
			return is, err
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return is, classed(err)
	}
	return o.identify(ctx, conn)
}

// there reports whether the schema has the store's tables.
func (o *Options) there(ctx context.Context, conn *pgx.Conn) (is bool, err error) {
	// By the catalogue, which shows what others have committed; to_regclass may remember
	// from before a lock was waited for that there was nothing.
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'meta')", o.schema).Scan(&is)
	return is, classed(err)
}

// current reports whether the schema needs no migration.
func (o *Options) current(ctx context.Context, conn *pgx.Conn, there bool) (bool, error) {
	if !there {
		return false, nil
	}
	has, oldest, err := versions(ctx, conn)
	if err == nil && oldest > version {
		err = newer(has, oldest)
	}
	return err == nil && (has >= version || o.ReadOnly), err
}

func versions(ctx context.Context, conn *pgx.Conn) (has, oldest int, err error) {
	err = conn.QueryRow(ctx, `SELECT coalesce(max(value) FILTER (WHERE name = 'version'), '0')::int,
		coalesce(max(value) FILTER (WHERE name = 'oldest'), '0')::int FROM meta`).Scan(&has, &oldest)
	return has, oldest, classed(err)
}

// name gives a new store its name and key.
func (o *Options) name(ctx context.Context, tx pgx.Tx, fresh *identity) error {
	if fresh == nil {
		id, key := make([]byte, 16), make([]byte, ledger.KeySize)
		rand.Read(id)
		rand.Read(key)
		fresh = &identity{hex.EncodeToString(id), key}
	}
	secret, err := o.secret(true)
	if err != nil {
		return err
	}
	wrapped, err := wrap(secret, fresh.id, fresh.key)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO meta (name, value) VALUES ('store', $1), ('key', $2), ('seal', $3)", fresh.id, wrapped, ledger.StoreSeal(fresh.key, fresh.id))
	return classed(err)
}

// identify reads which store it is, and its key.
func (o *Options) identify(ctx context.Context, conn *pgx.Conn) (is identity, err error) {
	var wrapped, seal string
	err = conn.QueryRow(ctx, `SELECT coalesce(max(value) FILTER (WHERE name = 'store'), ''), coalesce(max(value) FILTER (WHERE name = 'key'), ''),
		coalesce(max(value) FILTER (WHERE name = 'seal'), '') FROM meta`).Scan(&is.id, &wrapped, &seal)
	if err != nil {
		return is, classed(err)
	}
	secret, err := o.secret(false)
	if err != nil {
		return is, err
	}
	if is.key, err = unwrap(secret, is.id, wrapped); err != nil {
		return is, err
	}
	if !hmac.Equal([]byte(ledger.StoreSeal(is.key, is.id)), []byte(seal)) {
		return is, ledger.Damaged("its name was changed")
	}
	return is, nil
}

// leastSecret is how many bytes a secret has at least.
const leastSecret = 16

// secret returns what the store's key is encrypted with.
func (o *Options) secret(create bool) ([]byte, error) {
	if len(o.Secret) > 0 || o.SecretFile == "" {
		if len(o.Secret) < leastSecret {
			return nil, fmt.Errorf("the key of the store (storeKey) has fewer than %d characters: make one, for example with openssl rand -hex 32", leastSecret)
		}
		return o.Secret, nil
	}
	read, err := os.ReadFile(o.SecretFile)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err := os.MkdirAll(filepath.Dir(o.SecretFile), 0o700); err != nil {
			return nil, fmt.Errorf("making the folder of the store's key: %w", err)
		}
		key := make([]byte, 32)
		rand.Read(key)
		file, err := os.OpenFile(o.SecretFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("making the store's key: %w", err)
		}
		_, err = fmt.Fprintf(file, "%x\n", key)
		if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
			return nil, fmt.Errorf("making the store's key: %w", err)
		}
		return o.secret(false)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the store's key is not here: name it with storeKey (for store copy with --key), or copy %s from the machine that made the store", o.SecretFile)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the store's key: %w", err)
	}
	return []byte(strings.TrimSpace(string(read))), nil
}

// sealed returns the cipher that a secret makes.
func sealed(secret []byte) (cipher.AEAD, error) {
	sum := sha256.Sum256(append([]byte("codemode-bridge store key 1\n"), secret...))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, fmt.Errorf("encrypting the store's key: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func wrap(secret []byte, store string, key []byte) (string, error) {
	c, err := sealed(secret)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(c.Seal(nil, nil, key, []byte(store))), nil
}

func unwrap(secret []byte, store, wrapped string) ([]byte, error) {
	c, err := sealed(secret)
	if err != nil {
		return nil, err
	}
	text, err := hex.DecodeString(wrapped)
	if err == nil {
		text, err = c.Open(nil, nil, text, []byte(store))
	}
	if err != nil {
		return nil, errors.New("the key of the store is encrypted with another one than storeKey, or than that of the key's file: name the one that the store was made with")
	}
	return text, nil
}
