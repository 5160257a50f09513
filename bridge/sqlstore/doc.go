// Package sqlstore keeps the audit log, and the journals of runs, in one SQLite
// file.
//
// # The file
//
// Two tables hold the rows, each (seq, hash, seal, body): body is the record's
// JSON text, hash chains it to its predecessor (ledger.HashRow), seal signs
// number and hash (ledger.Keyring). A row is first written to recent, which
// has no index, so that a call does not wait for eight of them; when nothing
// else is to be done the oldest rows move on to rows, where they are found by
// run, event, tool and so on. Every number in recent is greater than every
// number in rows, and the view log is both. The columns that are searched are
// computed from body: there is no second copy of a fact that could disagree
// with what is hashed. The table meta names the store and its key.
//
// Journals stand in tables of their own: journals has a row for each run that
// can go on, entries their entries, in the order in which they were kept, and
// shared the bytes that many runs depend on, once; configurations says to which
// configuration each belongs, and leases has the number of its lease. The body of an entry is
// encrypted under a key of its run, with its place, kind and numbers bound to
// it: a row that was changed or moved is found when it is read. Whose a run is
// stands in journals and is looked up, in the transaction that writes an entry,
// whenever another process has changed the file.
//
// user_version is the version of the schema. Releases only add to it, so that
// the release before still reads and writes the file; should that ever not be
// possible, the new schema's meta entry "oldest" names the first version that
// can, and older programs refuse the file with a sentence.
//
// Beside the file stand SQLite's own -wal and -shm, and the key (32 random
// bytes), readable by their owner only.
//
// # Who writes
//
// One goroutine of a DB owns the connection that writes. It takes all records
// and entries that wait, writes them in one transaction, and only then answers those who
// wait for them: one disk sync serves many calls. A transaction that holds a
// Durable record is synced before it is answered; others are in the operating
// system's hands, which keeps them if this process dies.
//
// Another process may write to the same file between two transactions. Each
// begins by taking the write lock and, if the file changed, reads the head
// again, so there is one chain whoever writes.
//
// # When something is wrong
//
// After an error of a transaction nothing is believed any more: the next sync
// may succeed although an earlier write is lost. The connection is closed, and
// the next record opens the file anew and checks its end before it is written.
// A file that is gone, was replaced, shortened or is an older copy is noticed
// by what this process remembers of it. What is damaged is never written to;
// Repair sets it aside.
//
// Opening checks the end of a long log; a goroutine checks the rest, after
// every opening. The damage that it finds lasts as long as that file stands in
// its place, whatever opening it again says.
package sqlstore
