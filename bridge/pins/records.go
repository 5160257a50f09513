package pins

import (
	"fmt"
	"time"

	"codemode-bridge/bridge/ledger"
)

// MaxRecords bounds the records of one list of tools: a server may list thousands,
// and different ones each time.
const MaxRecords = 50

// Records returns the audit records of events: one for each of the first
// MaxRecords, and one that counts the rest.
func Records(events []Event) []ledger.Record {
	var all []ledger.Record
	for i, e := range events {
		if i == MaxRecords {
			return append(all, ledger.Record{Event: ledger.ToolChanged, Server: e.Server, Durable: true,
				Reasons: []string{fmt.Sprintf("and %s more", tools(len(events)-i))}})
		}
		all = append(all, toolChanged(e))
	}
	return all
}

// toolDetail is the Detail of a record about a tool's definition.
type toolDetail struct {
	What  string `json:"what,omitempty"`
	Old   string `json:"old_definition,omitempty"`
	New   string `json:"new_definition,omitempty"`
	Tools int    `json:"tools,omitempty"`
	Hold  string `json:"then,omitempty"`

	Lock    string         `json:"lock,omitempty"` // the digest of a lock file
	File    string         `json:"file,omitempty"`
	Servers map[string]int `json:"servers,omitempty"` // how many tools of each
}

func toolChanged(e Event) ledger.Record {
	words := map[Kind]string{
		FirstContact: "first contact with " + tools(e.Tools),
		Appeared:     "a tool that was not there before",
		Differs:      "its definition has changed",
		Returned:     "its definition is the accepted one again",
	}[e.Kind]
	if e.Reaction != Allow || e.Kind == Differs {
		words += map[Reaction]string{Allow: ": accepted by the configuration", Ask: ": its calls ask", Quarantine: ": quarantined"}[e.Reaction]
	}
	return ledger.Record{Event: ledger.ToolChanged, Server: e.Server, Tool: e.Tool, Durable: true, Reasons: []string{words},
		Detail: ledger.Detail(toolDetail{What: string(e.Kind), Old: e.From, New: e.To, Tools: e.Tools, Hold: string(e.Reaction)})}
}

// Imported returns the record of a server whose tools are about to be pinned in
// somebody's name, before any bridge connects to it.
func Imported(server string, listed int, by string, now time.Time) ledger.Record {
	return ledger.Record{Event: ledger.ToolAccepted, Time: now, Server: server, Approver: by, Channel: "terminal", Durable: true,
		Reasons: []string{"imported by init with " + tools(listed)}, Detail: ledger.Detail(toolDetail{What: "pinned", Tools: listed})}
}

// LockAccepted returns the record of a lock file whose lines somebody is about to accept:
// so many tools of each server.
func LockAccepted(file, digest string, servers map[string]int, by string, now time.Time) ledger.Record {
	n := 0
	for _, more := range servers {
		n += more
	}
	return ledger.Record{Event: ledger.ToolAccepted, Time: now, Approver: by, Channel: "terminal", Durable: true,
		Reasons: []string{"accepted by the lock file: " + tools(n)}, Detail: ledger.Detail(toolDetail{What: "lock", Tools: n, Lock: digest, File: file, Servers: servers})}
}

func tools(n int) string {
	if n == 1 {
		return "1 tool"
	}
	return fmt.Sprintf("%d tools", n)
}
