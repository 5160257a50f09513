package sqlstore

import (
	"context"
	"strings"

	"codemode-bridge/bridge/ledger"
)

// schema4 adds the numbers of leases. A release without them acquires a run
// under the number that it has: there the owner's name alone keeps others from
// writing.
const schema4 = `CREATE TABLE leases (
	journal INTEGER PRIMARY KEY, -- its number
	lease   INTEGER NOT NULL     -- grows each time that a bridge acquires the run
);
`

// leaseOfRun is the expression for the number of a journal's lease.
const leaseOfRun = "coalesce((SELECT l.lease FROM leases AS l WHERE l.journal = number), 0)"

// setLease notes the number of a journal's lease. A release that knows none
// leaves the row of a journal that it drops.
func (f *file) setLease(ctx context.Context, journal, lease int64) error {
	return f.exec(ctx, "INSERT OR REPLACE INTO leases (journal, lease) VALUES (?, ?)", journal, lease)
}

// The column wanted has what is requested of a run's owner, in words that older
// releases write and understand, too:
//
//	give BRIDGE   that it hands the run over; an older release does not say to whom
//	end NAME      that it ends the run
const (
	give = "give"
	end  = "end "
)

// unnamed is who requests a handover and is of an older release.
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
