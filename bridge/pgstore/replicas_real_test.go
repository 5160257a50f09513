//go:build real

package pgstore

import (
	"testing"
	"time"

	"codemode-bridge/bridge/replica"
	"codemode-bridge/bridge/storetest"
)

func replicas(t *testing.T, o Options) *Replicas {
	t.Helper()
	r, err := NewReplicas(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestRealReplicas(t *testing.T) {
	o := place()
	begin(t, o)
	storetest.Replicas(t, func(t *testing.T) replica.Table { return replicas(t, o) })
}

func TestRealFenced(t *testing.T) {
	o := place()
	storetest.Fenced(t, replicas(t, o), begin(t, o), func(t *testing.T) storetest.Journaled { return begin(t, o) })
}

func TestRealAsking(t *testing.T) {
	o := place()
	storetest.Asking(t, begin(t, o), openRequests(t, o))
}

// A table is asked before any bridge of this release has made it, and after its
// connection was lost.
func TestRealReplicasWithoutATable(t *testing.T) {
	o := place()
	db := begin(t, o)
	if _, err := db.pool.Exec(t.Context(), "DROP TABLE replicas"); err != nil {
		t.Fatal(err)
	}
	r := replicas(t, o)
	if all, err := r.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("an older schema has %v, %v", all, err)
	}
	if _, err := db.pool.Exec(t.Context(), schemaReplicas); err != nil {
		t.Fatal(err)
	}
	if lapsed, err := r.Renew(t.Context(), replica.Replica{Name: "a"}, replica.Term); !lapsed || err != nil {
		t.Errorf("%t, %v", lapsed, err)
	}
	if _, err := db.pool.Exec(t.Context(), "SELECT pg_terminate_backend($1)", r.conn.PgConn().PID()); err != nil {
		t.Fatal(err)
	}
	_, _ = r.List(t.Context()) // it may be the one that finds out
	if all, err := r.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("after the connection was lost it has %v, %v", all, err)
	}
}

// Replicas that ended without a word are forgotten a day later, by a bridge that has been
// renewing all the while.
func TestRealReplicasForgotten(t *testing.T) {
	o := place()
	begin(t, o)
	r := replicas(t, o)
	renew := func() {
		t.Helper()
		if _, err := r.Renew(t.Context(), replica.Replica{Name: "alive"}, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	renew()
	edit(t, o, "INSERT INTO replicas (name, machine, version, address, since, until) VALUES ('crashed', '', '', '', now() - interval '2 days', now() - interval '25 hours')")
	names := func() (all []string) {
		t.Helper()
		list, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			all = append(all, one.Name)
		}
		return all
	}
	r.swept = r.swept.Add(-forgetReplicas / 2)
	renew()
	if got := names(); len(got) != 2 {
		t.Errorf("half a day after the last look there are %q", got)
	}
	r.swept = r.swept.Add(-forgetReplicas / 2)
	renew()
	if got := names(); len(got) != 1 || got[0] != "alive" {
		t.Errorf("a day after the last look there are %q", got)
	}
}
