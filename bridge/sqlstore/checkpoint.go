package sqlstore

import (
	"codemode-bridge/bridge/ledger"
)

// readCheckpoints reads the second place.
func readCheckpoints(o *Options) ([]ledger.Checkpoint, error) {
	return ledger.ReadCheckpoints(o.CheckpointFile, o.Logger)
}

// lastCheckpoint returns the newest checkpoint of the second place; nil when
// there is none.
func lastCheckpoint(o *Options) (*ledger.Checkpoint, error) {
	return ledger.LastCheckpoint(o.CheckpointFile, o.Logger)
}

// save leaves a checkpoint of the last row that this process knows in the second place.
func (db *DB) save() {
	if last := db.lastSeen; last != nil {
		db.second.Save(last.store, last.seq, last.hash, db.key)
	}
}
