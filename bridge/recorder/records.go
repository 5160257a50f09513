package recorder

import (
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

// A Config identifies a configuration in records.
type Config struct {
	File   string
	Policy string // the revision of its profiles
	Digest string // of the file's bytes
}

// fileDetail is the detail of a record about a configuration file.
type fileDetail struct {
	File string `json:"file"`
	Old  string `json:"old_policy,omitempty"`
	New  string `json:"new_policy,omitempty"`
	// Digest is the digest of the file's bytes.
	Digest string `json:"sha256,omitempty"`
	// Said is what the approver who confirmed it wrote.
	Said string `json:"said,omitempty"`
}

// ConfigTaken records that a configuration has replaced old, how it differs, and what
// the approver who confirmed it wrote.
func ConfigTaken(old, taken Config, changes []string, said string) ledger.Record {
	return ledger.Record{
		Event: ledger.ConfigChanged, Outcome: ledger.Done, Durable: true,
		Revision: taken.Policy, Reasons: changes,
		Detail: ledger.Detail(fileDetail{taken.File, old.Policy, taken.Policy, taken.Digest, canon.Escape(canon.Redact(said))}),
	}
}

// ConfigPending records that a configuration waits for an approver while old stays in
// force.
func ConfigPending(old, pending Config, why []string) ledger.Record {
	return ledger.Record{
		Event: ledger.ConfigChanged, Outcome: ledger.ConfigPending, Durable: true,
		Revision: old.Policy, Reasons: why,
		Detail: ledger.Detail(fileDetail{pending.File, old.Policy, pending.Policy, pending.Digest, ""}),
	}
}

// ConfigFirst records the first configuration that is kept of a file, with its
// approvers; later edits are compared with it.
func ConfigFirst(first Config) ledger.Record {
	return ledger.Record{
		Event: ledger.ConfigChanged, Outcome: ledger.Done, Durable: true, Revision: first.Policy,
		Reasons: []string{"the first start with this file: it is taken as it is, and edits are compared with it"},
		Detail:  ledger.Detail(fileDetail{File: first.File, New: first.Policy, Digest: first.Digest}),
	}
}

// ConfigRefused records an edit that cannot be taken over: old stays in force.
func ConfigRefused(old Config, why string) ledger.Record {
	return ledger.Record{
		Event: ledger.ConfigChanged, Outcome: ledger.Refused, Error: why,
		Revision: old.Policy, Detail: ledger.Detail(fileDetail{File: old.File, Old: old.Policy}),
	}
}

// bridgeDetail is the detail of a record about a bridge's start or end.
type bridgeDetail struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	File    string `json:"file,omitempty"`
	Digest  string `json:"sha256,omitempty"`
}

// BridgeStarted records that a bridge starts to serve.
func BridgeStarted(version string, pid int, with Config) ledger.Record {
	return ledger.Record{Event: ledger.BridgeStarted, Revision: with.Policy,
		Detail: ledger.Detail(bridgeDetail{version, pid, with.File, with.Digest})}
}

// BridgeEnded records that a bridge has shut down in order.
func BridgeEnded(version string, pid int) ledger.Record {
	return ledger.Record{Event: ledger.BridgeEnded, Detail: ledger.Detail(bridgeDetail{Version: version, PID: pid})}
}
