// Package sqlstore keeps the audit log and the journals of runs in one SQLite
// file.
//
// # The file
//
// The audit log is in two tables with the columns (seq, hash, seal, body): body
// is the record's JSON text, hash chains the row to its predecessor
// (ledger.HashRow), and seal signs number and hash (ledger.Keyring). A row is
// first written to recent, which has no index, so that a call does not wait for
// eight of them. When the writer is idle it compacts: the oldest rows move to
// rows, where they can be searched by run, event, tool and so on. Every number in
// recent is greater than every number in rows, and the view log is the two
// together. The searched columns are computed from body: there is no second copy
// of a fact that could disagree with what is hashed. The table meta names the
// store and its key.
//
// Journals have tables of their own: journals has a row for each run that can go
// on; entries has the journal entries, in the order in which they were written;
// shared has the bytes that many runs depend on, once; configurations says which
// configuration each run belongs to, and leases has the number of its lease. The
// body of an entry is encrypted under a key of its run and bound to its place,
// kind and numbers: a row that was changed or moved is detected when it is read.
// The table journals also says who holds a run's lease, which the transaction
// that writes an entry checks whenever another process has changed the file.
//
// user_version is the version of the schema. Releases only add to the schema, so
// that the previous release can still read and write the file. Should that ever
// be impossible, the new schema's meta entry "oldest" names the first version
// that can, and older programs refuse the file with a sentence that says so.
//
// Next to the file are SQLite's own -wal and -shm files and the key (32 random
// bytes), readable by their owner only.
//
// # Who writes
//
// One goroutine of a DB owns the connection that writes. It takes records
// and journal entries that are waiting, writes them in one transaction, and only
// then answers their writers: one disk sync serves many calls. Sessions take
// turns at it, and a transaction has a bounded number of rows, so that
// a session which writes little waits for two transactions at most, whatever others
// write. For the same reason a long journal whose run has ended is only renamed, and
// its entries are removed later, in pieces; and the -wal is copied to the file by a
// goroutine with a connection of its own, because that syncs the disk. A transaction
// that contains a Durable record is synced before it is answered; others are left
// to the operating system, which keeps them if this process dies.
//
// Another process may write to the same file between two transactions. Each
// transaction begins by taking the write lock and, if the file changed, rereads
// the head, so there is one chain whoever writes.
//
// # When something is wrong
//
// After a failed transaction nothing is trusted: the next sync may succeed
// although an earlier write is lost. The connection is closed, and the next
// record reopens the file and checks its end before it is written. The process
// remembers enough of the file to notice that it is gone, was replaced or
// shortened, or is an older copy. A damaged file is never written to; Repair
// sets it aside.
//
// Opening reads only the end of a long log: the rows since the mark, a signed
// checkpoint in the table meta, and some before it. A goroutine of the DB sees to it
// that the whole log is verified once a day, slowly, by one process of those that
// share it: a file lock says which. A signed note beside the file says when that was
// and how far it has come. If it finds damage, the file counts as damaged for as long
// as it stays in its place, even if it is reopened without an error; the note leads
// every other process to the damaged row.
package sqlstore
