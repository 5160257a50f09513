// Package pgstore keeps the audit log, the journals of runs, the requests to people and
// small documents in a PostgreSQL database, which bridges on several machines may share.
//
// # The tables
//
// All tables are in one schema of the database: the first of the address's search_path,
// or codemode_bridge. The table log has the rows of the audit log (seq, hash, seal, body),
// as package sqlstore has them, and columns with what rows are searched by. These are
// computed by the writer and compared with body by Verify. The table heads has a row
// for the log and one for the requests, with a number that grows with every change: it
// is what a transaction that writes locks first, so there is one chain whoever writes.
// The table meta names the store, and has its key, encrypted under a key that is not in
// the database (Options.Secret).
//
// The table documents has what package documents describes: bodies are encrypted under a
// key that is derived from the store's, and bound to their kind and name. Every change
// locks their row of heads, and is one short transaction.
//
// meta's "version" is the version of the schema. Migrations go forward only, and are made
// in one transaction under a lock. A release's migrations work for the release before
// it; should that ever be impossible, "oldest" names the first version that may use
// the schema, and older programs refuse it.
//
// # Who writes
//
// One goroutine of a DB owns a connection that writes. It takes all records and entries
// that are waiting and writes them in one transaction of two round trips. Every commit
// is synchronous: a server that was killed has all rows that a bridge was told of.
//
// # When something is wrong
//
// After a failed transaction the connection is closed, and the next record makes a new
// one, which checks that the store is the same and has the last row that this process
// knows. If the connection was lost when the end of a transaction may have reached the
// server, the outcome is found out on a new connection, behind the lock that the lost
// transaction held, from the transaction's id and its last row. Nothing is ever sent
// twice. A server that does not say so in time leaves an error, ledger.ErrUnavailable.
//
// The server ends a transaction whose client is silent for five seconds, so that a
// bridge that is frozen holds up no other.
//
// Who waits for changes hears of them by LISTEN and NOTIFY. Where that does not work,
// because of a pooler that loses notifications, the numbers in heads are polled.
package pgstore
