package sqlstore

import (
	"context"
	"strings"

	"codemode-bridge/bridge/ledger"
)

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

// The column wanted has what is requested of a run's owner, in words that older
// releases also write and understand:
//
//	give BRIDGE   hand the run over; an older release does not say to whom
//	end NAME      end the run
const (
	give = "give"
	end  = "end "
)

// unnamed stands for the requester of a handover that an older release requested.
const unnamed = "a bridge of an older release"

func wantedOf(k *ledger.JournaledRun) string {
	switch {
	case k.CancelRequestedBy != "":
		return end + k.CancelRequestedBy
	case k.HandoverRequestedBy == unnamed:
		return give
	case k.HandoverRequestedBy != "":
		return give + " " + k.HandoverRequestedBy
	default:
		return ""
	}
}

// readWanted is its inverse.
func readWanted(k *ledger.JournaledRun, wanted string) {
	by, cancel := strings.CutPrefix(wanted, end)
	bridge, named := strings.CutPrefix(wanted, give+" ")
	switch {
	case wanted == "":
	case cancel:
		k.CancelRequestedBy = by
	case named:
		k.HandoverRequestedBy = bridge
	default:
		k.HandoverRequestedBy = unnamed
	}
}
