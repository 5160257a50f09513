package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

// A RunRow is a run in a list.
type RunRow struct {
	Run     string    `json:"run"`
	Started time.Time `json:"started"`
	Client  string    `json:"client,omitempty"`
	Profile string    `json:"profile,omitempty"`
	// Principal is whose run it is; empty for the person at this machine.
	Principal string `json:"principal,omitempty"`
	// Bridge is the one that has the run, where bridges on several machines share the log;
	// empty if none has it.
	Bridge string `json:"bridge,omitempty"`
	// Configuration is the id of the configuration that the run belongs to; empty if
	// an old release, which did not record it, ran it.
	Configuration string        `json:"configuration,omitempty"`
	State         string        `json:"state"` // an outcome, or open, paused or interrupted
	Duration      time.Duration `json:"duration_ns,omitempty"`
	Calls         int           `json:"calls"`
	Refused       int           `json:"refused,omitempty"`
	Error         string        `json:"error,omitempty"`
}

// ReadRuns returns the runs whose first records q selects and whose configuration is
// shown, at most limit of them (0: all), and how many were left out because their
// configuration is not shown.
func ReadRuns(ctx context.Context, store ledger.Reader, q ledger.Query, limit int, shown func(configuration string) bool) (rows []RunRow, left int, err error) {
	rows = []RunRow{}
	for row, err := range store.Rows(ctx, q) {
		if err != nil {
			return nil, 0, err
		}
		r := row.Record
		if !shown(r.Configuration) {
			left++
			continue
		}
		rows = append(rows, RunRow{Run: r.Run, Started: r.Time, Client: r.Client, Profile: r.Profile, Principal: r.Principal, Configuration: r.Configuration, State: Open})
		if len(rows) == limit {
			break
		}
	}
	for i := range rows {
		run := &rows[i]
		sent := map[int]bool{} // by call: one that lists all servers has an intent for each
		events := []ledger.Event{ledger.Intent, ledger.Refusal, ledger.RunEnded}
		for row, err := range store.Rows(ctx, ledger.Query{Runs: []string{run.Run}, Events: events}) {
			if err != nil {
				return nil, 0, err
			}
			switch r := row.Record; r.Event {
			case ledger.Intent:
				if !sent[r.Call] {
					sent[r.Call] = true
					run.Calls++
				}
			case ledger.Refusal:
				if !sent[r.Call] { // if it was sent, only one server's part was refused
					run.Calls++
					run.Refused++
				}
			case ledger.RunEnded:
				run.State, run.Duration, run.Error = r.Outcome, r.Duration, r.Error
			}
		}
	}
	return rows, left, nil
}

// RunTable returns runs as the rows of a table, below a head. Whose they are and which
// bridge has them are columns where that differs, or is known. With configurations it has
// a column that says to which one each belongs.
func RunTable(rows []RunRow, configurations bool) [][]string {
	head := []string{"run", "started", "client", "profile", "state", "took", "calls", "why"}
	who := slices.ContainsFunc(rows, func(r RunRow) bool { return r.Principal != rows[0].Principal })
	bridges := slices.ContainsFunc(rows, func(r RunRow) bool { return r.Bridge != "" })
	if who {
		head = append(head, "who")
	}
	if bridges {
		head = append(head, "bridge")
	}
	if configurations {
		head = append(head, "configuration")
	}
	table := [][]string{head}
	for _, r := range rows {
		calls, took := fmt.Sprint(r.Calls), "-"
		if r.Refused > 0 {
			calls += fmt.Sprintf(" (%d refused)", r.Refused)
		}
		if r.Duration > 0 {
			took = r.Duration.Round(time.Millisecond).String()
		}
		line := []string{Cell(r.Run), r.Started.Local().Format(time.DateTime), Cell(r.Client), Cell(r.Profile),
			Cell(r.State), took, calls, canon.Fit(Shown(firstLine(r.Error)), 100)}
		if who {
			line = append(line, Cell(r.Principal))
		}
		if bridges {
			line = append(line, Cell(r.Bridge))
		}
		if configurations {
			line = append(line, Cell(r.Configuration))
		}
		table = append(table, line)
	}
	return table
}
