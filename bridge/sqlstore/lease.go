package sqlstore

import "context"

// schema4 adds the numbers of leases. An older release acquires a run under the
// number that it already has: there only the owner's name keeps others from
// writing.
const schema4 = `CREATE TABLE leases (
	journal INTEGER PRIMARY KEY, -- its number
	lease   INTEGER NOT NULL     -- grows each time that a bridge acquires the run
);
`

// leaseOfRun is the expression for the number of a journal's lease.
const leaseOfRun = "coalesce((SELECT l.lease FROM leases AS l WHERE l.journal = number), 0)"

// setLease stores the number of a journal's lease. A release that knows no lease
// numbers leaves this row behind when it drops a journal.
func (f *file) setLease(ctx context.Context, journal, lease int64) error {
	return f.exec(ctx, "INSERT OR REPLACE INTO leases (journal, lease) VALUES (?, ?)", journal, lease)
}
