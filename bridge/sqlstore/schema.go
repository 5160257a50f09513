package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"codemode-bridge/bridge/ledger"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// version is the schema that this release writes; see the package comment.
const version = 5

// oldestReader is the oldest version whose release may use the file: one that
// knows no configurations would resume the runs of others.
const oldestReader = 3

// application marks our files: "cmbr" in SQLite's header.
const application = 0x636d6272

// migrations[v] leads from version v to v+1. Migrations add tables and never
// change an existing one. Each kind of thing that is stored (journal entries, say)
// gets its own tables in its own migration.
var migrations = []string{schema1, schema2, schema3, schema4, schema5}

// facts are what rows are searched by, each with its expression over body.
var facts = []struct{ name, expression string }{
	{"time", "rtrim(body->>'$.time', 'Z')"}, // a prefix sorts before what it begins; with a Z it would not
	{"run", "body->>'$.run'"},
	{"event", "body->>'$.event'"},
	{"tool", "nullif(coalesce(body->>'$.server' || '__', '') || coalesce(body->>'$.tool', ''), '')"},
	{"disposition", "body->>'$.disposition'"},
	{"outcome", "body->>'$.outcome'"},
	{"risk", "body->>'$.risk'"},
	{"approver", "body->>'$.approver'"},
}

var schema1 = func() string {
	const table = "CREATE TABLE %s (\n\tseq  INTEGER PRIMARY KEY,\n\thash BLOB NOT NULL,\n\tseal BLOB NOT NULL,\n\tbody TEXT NOT NULL%s\n);\n"
	var columns, indexes, expressions strings.Builder
	for _, f := range facts {
		fmt.Fprintf(&columns, ",\n\t%s TEXT AS (%s) VIRTUAL", f.name, f.expression)
		fmt.Fprintf(&indexes, "CREATE INDEX rows_%s ON rows (%[1]s) WHERE %[1]s IS NOT NULL;\n", f.name)
		fmt.Fprintf(&expressions, ",\n\t%s AS %s", f.expression, f.name)
	}
	return "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;\n" +
		fmt.Sprintf(table, "rows", columns.String()) + indexes.String() +
		fmt.Sprintf(table, "recent", "") + // SQLite computes generated columns with each insert, wanted or not
		"CREATE VIEW fresh AS SELECT seq, hash, seal, body" + expressions.String() + "\nFROM recent;\n" +
		"CREATE VIEW log AS SELECT * FROM rows UNION ALL SELECT * FROM fresh;\n"
}()

// genuine checks that the tables, indexes and views are the ones we made: a changed
// expression could hide rows from queries, and a trigger could make a row vanish
// as it is written. No release has triggers.
func genuine(ctx context.Context, c *sql.Conn) error {
	var has int
	if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil {
		return err
	}
	rows, err := c.QueryContext(ctx, "SELECT type, coalesce(sql, '') FROM sqlite_master")
	if err != nil {
		return err
	}
	defer rows.Close()
	there := make(map[string]bool)
	for rows.Next() {
		var kind, text string
		if err := rows.Scan(&kind, &text); err != nil {
			return err
		}
		if kind == "trigger" {
			return damaged("its schema was changed (a trigger: %.40s)", text)
		}
		there[text] = true
	}
	all := strings.Join(migrations[:min(max(has, 1), version)], "")
	for text := range strings.SplitSeq(strings.TrimSuffix(all, ";\n"), ";\n") {
		if name, _, _ := strings.Cut(text, " ("); rows.Err() == nil && !there[text] {
			return damaged("its schema was changed (%.40s)", strings.TrimPrefix(name, "CREATE "))
		}
	}
	return rows.Err()
}

// connect opens a pool of connections to an existing file. SQLite itself opens
// it with the first use.
func connect(path, mode string, connections int) (*sql.DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	query := url.Values{"mode": {mode}, "_pragma": {
		"busy_timeout(5000)", "trusted_schema(0)", "cell_size_check(1)", "secure_delete(2)", "cache_size(-8000)",
		"journal_size_limit(67108864)",
	}}
	name := (&url.URL{Scheme: "file", OmitHost: true, Path: slashed(absolute), RawQuery: query.Encode()}).String()
	pool, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return pool, nil
}

// migrate brings the schema to this release's version, in the transaction that
// c is in, and refuses one that is too new.
func migrate(ctx context.Context, c *sql.Conn, readOnly bool) error {
	var has, oldest int
	if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil {
		return err
	}
	if err := c.QueryRowContext(ctx, "SELECT coalesce(max(value), '1') FROM meta WHERE name = 'oldest'").Scan(&oldest); err != nil {
		return fmt.Errorf("looking for the table meta of an audit log: %w", err)
	}
	if oldest > version {
		return &ledger.NewerError{Has: has, Oldest: oldest, Knows: version}
	}
	if has >= version || readOnly {
		return nil
	}
	for _, step := range migrations[has:] {
		if _, err := c.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("changing the schema: %w", err)
		}
	}
	_, err := c.ExecContext(ctx, fmt.Sprintf("UPDATE meta SET value = '%d' WHERE name = 'oldest'; PRAGMA user_version = %d", oldestReader, version))
	return err
}
