package pgstore

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// transaction is an expression that identifies the transaction it is evaluated in: by its
// id, and by when its server was started. A server that is killed forgets the ids of
// transactions of which it has written nothing down, and gives them to others.
const transaction = "pg_current_xact_id()::text || ' ' || extract(epoch FROM pg_postmaster_start_time())::text"

// committed is the status of a transaction that was committed.
const committed = "committed"

// errAnotherServer says that the server was started since a transaction, so that what is
// committed under its id may be another.
var errAnotherServer = unavailable("the database was started again meanwhile, and does not say whether this was kept")

// statusOf returns what became of a transaction that is over. With errAnotherServer, the
// status is that of a transaction with its id.
func statusOf(ctx context.Context, t pgx.Tx, which string) (status string, err error) {
	id, start, _ := strings.Cut(which, " ")
	var same bool
	// An id that was not given to anybody is of one that is lost.
	err = t.QueryRow(ctx, `SELECT CASE WHEN $1::text::xid8 < pg_snapshot_xmax(pg_current_snapshot()) THEN coalesce(pg_xact_status($1::text::xid8), '') ELSE 'aborted' END,
		extract(epoch FROM pg_postmaster_start_time())::text = $2`, id, start).Scan(&status, &same)
	if err == nil && status == committed && !same {
		err = errAnotherServer
	}
	return status, err
}
