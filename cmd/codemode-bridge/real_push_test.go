//go:build real

package main_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"codemode-bridge/bridge/pgstore"
)

// Of two bridges with one store in PostgreSQL one pushes, for both. When it is killed while it
// sends, the other goes on with the row that was not acknowledged.
func TestRealPushOfTwoBridges(t *testing.T) {
	t.Parallel()
	hook, server := newReceiver(t), startPostgres(t)
	push, err := json.Marshal(hook.push())
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"id": "two", "servers": {"time": {"builtin": "time"}}, "store": %q, "storeKey": "${STORE_KEY}", "approvals": {"listen": "off"}, "audit": {"push": %s}}`, storeAt(server, "pushed"), push)
	var bridges []*heldBench
	for range 2 {
		b := &heldBench{commandLine: newCommandLine(t, config)}
		b.env, b.serving.file = storeEnv, b.commandLine.file
		b.start()
		bridges = append(bridges, b)
	}
	works := func(b *heldBench) {
		t.Helper()
		if got, err := eval(t.Context(), b.client, "return 6 * 7"); err != nil || got != "42" {
			t.Errorf("got %s, %v", got, err)
		}
	}
	for i, b := range bridges { // each row comes once, whoever wrote it: the receiver checks that
		works(b)
		hook.has(t, i+1)
	}

	o := pgstore.Options{URL: server.URL("postgres", "pushed"), Secret: []byte("the key of the store of a test"), ReadOnly: true}
	all, err := pgstore.OpenDocuments(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	table, err := pgstore.NewReplicas(o)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	pusher := func() (endpoint string) {
		t.Helper()
		var is struct{ Owner string }
		text, err := all.Documents("push").Read(t.Context(), "audit")
		if err == nil {
			err = json.Unmarshal(text, &is)
		}
		members, failed := table.List(t.Context())
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		for _, one := range members {
			if one.Name == is.Owner {
				endpoint = one.Address
			}
		}
		return endpoint
	}
	first, other := bridges[0], bridges[1]
	eventually(t, "neither of them pushes and says where it is", func() bool { // they say it with their next sign of life
		at := pusher()
		if at == other.endpoint {
			first, other = other, first
		}
		return at == first.endpoint
	})

	hook.is(false, true)
	works(other)
	hook.refuses(t, 0)
	first.kill()
	acked, _, tried := hook.seen()
	hook.is(false, false)
	works(other)
	hook.has(t, 4)
	if slices.ContainsFunc(tried, func(seq int64) bool { return seq != int64(acked+1) }) {
		t.Errorf("after %d rows it was sent %v", acked, tried)
	}
	eventually(t, "the other one does not push", func() bool { return pusher() == other.endpoint })
}
