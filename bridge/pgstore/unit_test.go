package pgstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"codemode-bridge/bridge/ledger"
)

func TestAddresses(t *testing.T) {
	const hidden = "tiger"
	for url, want := range map[string]string{
		"postgres://bob:tiger@db.example/bridge":               "database bridge at db.example:5432",
		"postgres://bob:tiger@db.example:6432/bridge?x=tiger":  "database bridge at db.example:6432",
		"postgres://bob:tiger@/bridge?host=/run/postgresql":    "database bridge at /run/postgresql",
		"postgres://bob:tiger@db.example/bridge?sslmode=tiger": "the database",
	} {
		if got := Where(url); got != want || strings.Contains(got, hidden) {
			t.Errorf("%s is at %q, want %q", url, got, want)
		}
	}
	o := Options{URL: "postgres://bob:tiger@db.example/bridge?sslmode=sometimes"}
	if err := o.prepare(); err == nil || strings.Contains(err.Error(), hidden) {
		t.Errorf("a wrong address: %v", err)
	}
	o = Options{URL: `postgres://bob@db.example/bridge?search_path=%22my%20schema%22,public`}
	if err := o.prepare(); err != nil || o.schema != "my schema" || o.config.RuntimeParams["search_path"] != `"my schema"` {
		t.Errorf("the schema %q, %v", o.schema, err)
	}
}

func TestWrappedKey(t *testing.T) {
	secret, key := []byte("a secret of some length"), bytes.Repeat([]byte{7}, ledger.KeySize)
	wrapped, err := wrap(secret, "store", key)
	if err != nil || strings.Contains(wrapped, fmt.Sprintf("%x", key)) {
		t.Fatalf("wrapped as %s, %v", wrapped, err)
	}
	if got, err := unwrap(secret, "store", wrapped); err != nil || !bytes.Equal(got, key) {
		t.Errorf("unwrapped %x, %v", got, err)
	}
	for name, of := range map[string][3]string{"another secret": {"another", "store", wrapped}, "another store": {string(secret), "other", wrapped}, "cut": {string(secret), "store", wrapped[2:]}, "no hex": {string(secret), "store", "x"}} {
		if _, err := unwrap([]byte(of[0]), of[1], of[2]); err == nil {
			t.Errorf("%s: it was unwrapped", name)
		}
	}
}

func TestClasses(t *testing.T) {
	for _, row := range []struct {
		err  error
		is   error
		says string
	}{
		{&pgconn.PgError{Code: "53100", Message: "no space"}, ledger.ErrUnavailable, "disk is full: no space (53100)"},
		{&pgconn.PgError{Code: "57P01"}, ledger.ErrUnavailable, "shut down"},
		{&pgconn.PgError{Code: "28P01"}, ledger.ErrUnavailable, "user or the password"},
		{&pgconn.PgError{Code: "XX001", Message: "invalid page"}, ledger.ErrDamaged, "invalid page"},
		{&pgconn.PgError{Code: "42P01"}, ledger.ErrDamaged, "42P01"},
		{&pgconn.PgError{Code: "22003"}, ledger.ErrUnavailable, "22003"},
		{context.DeadlineExceeded, ledger.ErrUnavailable, "in time"},
		{io.ErrUnexpectedEOF, ledger.ErrUnavailable, "was lost"},
		{context.Canceled, context.Canceled, "canceled"},
		{ledger.Damaged("x"), ledger.ErrDamaged, "x"},
	} {
		if err := classed(row.err); !errors.Is(err, row.is) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%v became %v", row.err, err)
		}
	}
	// The same error is of records, requests and documents: it says only what is wrong.
	if err := classed(context.DeadlineExceeded); strings.Contains(err.Error(), "audit log") || !errors.Is(fmt.Errorf("x: %w", err), ledger.ErrUnavailable) {
		t.Errorf("a time-out became %v", err)
	}
	if !certain(fmt.Errorf("x: %w", &pgconn.PgError{SeverityUnlocalized: "ERROR"})) || certain(&pgconn.PgError{SeverityUnlocalized: "FATAL"}) || certain(io.EOF) {
		t.Error("only a statement that was refused says that nothing was committed")
	}
}

// A query's values are arguments, never a part of the statement.
func TestFilter(t *testing.T) {
	const evil = "' OR 1=1 --"
	c := filter(ledger.Query{Runs: []string{evil, "a\x00"}, Events: []ledger.Event{evil}, Tool: evil + "*", Approvers: []string{evil}, Sessions: []string{"s"}, Clients: []string{evil},
		Since: time.Unix(1, 0), After: 2, Before: 9, Fields: map[string]string{"args.path": "/b", "error": evil}})
	if strings.Contains(c.String(), "OR 1=1") || strings.Contains(c.String(), "?") || strings.Contains(fmt.Sprint(c.args...), "\x00") {
		t.Errorf("%s with %q", c, c.args)
	}
	if want := fmt.Sprintf("$%d", len(c.args)); !strings.Contains(c.String(), want) || strings.Contains(c.String(), fmt.Sprintf("$%d", len(c.args)+1)) {
		t.Errorf("%d arguments of %s", len(c.args), c)
	}
}

// What rows are searched by is what their text says, as the database can keep it.
func TestColumns(t *testing.T) {
	body, err := ledger.Encode(ledger.Record{Event: ledger.Verdict, Time: time.Unix(1, 5).UTC(), Run: "r\x00", Server: "s", Tool: "t", Risk: "high", Approver: "ann", OnBehalfOf: "bob"}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	got, err := columnsOf(body)
	want := columns{time: "1970-01-01T00:00:01.000000005", run: "r\ufffd", event: "verdict", tool: "s__t", risk: "high", people: "ann\nbob"}
	if err != nil || got != want {
		t.Errorf("got %+v, want %+v, %v", got, want, err)
	}
}
