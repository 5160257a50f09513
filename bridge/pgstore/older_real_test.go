//go:build real

package pgstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/replica"
	"codemode-bridge/bridge/storetest"
)

// The promises of a store hold for the release before this one, which knows one migration
// less, in a store that this one has brought to its own version. (It is this release's code
// that is judged; TestRealMigrationsOnlyAdd says why that of the one before finds what it
// needs, and TestRealUpdate has programs of both.)
func TestRealReleaseBefore(t *testing.T) {
	now := migrations
	migrations = migrations[:len(now)-1]
	version = len(migrations)
	t.Cleanup(func() { migrations, version = now, len(now) })
	updated := func(t *testing.T) Options {
		o := place()
		if err := begin(t, o).Close(); err != nil {
			t.Fatal(err)
		}
		edit(t, o, now[version], fmt.Sprintf("UPDATE meta SET value = '%d' WHERE name = 'version'", len(now)))
		return o
	}
	t.Run("log", func(t *testing.T) {
		storetest.Run(t, true, func(t *testing.T) func(func() time.Time) ledger.Store {
			o := updated(t)
			return func(clock func() time.Time) ledger.Store { o.Clock = clock; return begin(t, o) }
		})
	})
	t.Run("journals", func(t *testing.T) {
		storetest.Journals(t, func(t *testing.T) (storetest.Journaled, func(*testing.T) storetest.Journaled) {
			o := updated(t)
			return begin(t, o), func(t *testing.T) storetest.Journaled { return begin(t, o) }
		})
	})
	t.Run("requests", func(t *testing.T) {
		storetest.Requests(t, func(t *testing.T) (approval.Store, func(*testing.T) approval.Store) {
			o := updated(t)
			return openRequests(t, o), func(t *testing.T) approval.Store { return openRequests(t, o) }
		})
	})
	t.Run("documents", func(t *testing.T) {
		storetest.Documents(t, func(t *testing.T) (documents.Store, func(*testing.T) documents.Store) {
			o := updated(t)
			return openDocuments(t, o).Documents("kind"), func(t *testing.T) documents.Store { return openDocuments(t, o).Documents("kind") }
		})
	})
	t.Run("replicas", func(t *testing.T) {
		o := updated(t)
		storetest.Replicas(t, func(t *testing.T) replica.Table { return replicas(t, o) })
	})
	t.Run("fenced", func(t *testing.T) {
		o := updated(t)
		storetest.Fenced(t, replicas(t, o), begin(t, o), func(t *testing.T) storetest.Journaled { return begin(t, o) })
	})
	t.Run("asking", func(t *testing.T) {
		o := updated(t)
		storetest.Asking(t, begin(t, o), openRequests(t, o))
	})
	// What it leaves is whole to both, and has this release's version still.
	o := updated(t)
	put(t, begin(t, o), 3)
	whole(t, begin(t, o))
	migrations, version = now, len(now)
	whole(t, begin(t, o))
	if has, _, err := versions(t.Context(), raw(t, o)); err != nil || has != version {
		t.Errorf("after the release before has used it, the schema has the version %d, %v", has, err)
	}
}

// A migration only adds: each statement of the release before it means the same after it.
// What was there is there as it was, and what is new in an old table asks nothing of who
// does not know it.
func TestRealMigrationsOnlyAdd(t *testing.T) {
	o := place()
	if err := o.prepare(); err != nil {
		t.Fatal(err)
	}
	conn := raw(t, o)
	do := func(statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	do("CREATE SCHEMA " + pgx.Identifier{o.schema}.Sanitize())
	before := map[string]string{}
	for v, migration := range migrations {
		do(migration)
		after := catalogue(t, conn, o.schema)
		for what, was := range before {
			if is := after[what]; is != was {
				t.Errorf("migration %d changes %s from %q to %q", v, what, was, is)
			}
		}
		for what, is := range after {
			words := strings.Fields(what) // kind, table, name
			if _, old := before[what]; old || before["table "+words[1]] == "" {
				continue
			}
			if words[0] != "column" || !strings.HasPrefix(is, "optional ") {
				t.Errorf("migration %d adds %s to a table of the release before: %s", v, what, is)
			}
		}
		before = after
	}
	if len(before) < 60 {
		t.Errorf("the catalogue has %d lines: %v", len(before), before)
	}
}

// catalogue is what who writes to a schema depends on: its tables with their columns, what
// their rows must meet, and what happens when they change.
func catalogue(t *testing.T, conn *pgx.Conn, schema string) map[string]string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		SELECT 'table ' || table_name, table_type::text FROM information_schema.tables WHERE table_schema = $1
		UNION ALL SELECT 'column ' || table_name || ' ' || column_name,
			CASE WHEN is_nullable = 'YES' OR column_default IS NOT NULL OR is_identity = 'YES' THEN 'optional ' ELSE 'needed ' END
			|| concat_ws(' ', data_type, collation_name, is_nullable, column_default, identity_generation)
			FROM information_schema.columns WHERE table_schema = $1
		UNION ALL SELECT 'constraint ' || c.relname || ' ' || k.conname, pg_get_constraintdef(k.oid)
			FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1
		UNION ALL SELECT 'unique ' || c.relname || ' ' || i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
			FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND i.indisunique
		UNION ALL SELECT 'trigger ' || c.relname || ' ' || g.tgname, pg_get_triggerdef(g.oid)
			FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND NOT g.tgisinternal`, schema)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	var what, is string
	_, err = pgx.ForEachRow(rows, []any{&what, &is}, func() error { all[what] = is; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return all
}
