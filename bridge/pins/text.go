package pins

import (
	"fmt"
	"time"

	"codemode-bridge/bridge/canon"
)

// A Row is a tool that waits to be looked at, as programs read it.
type Row struct {
	Tool       string    `json:"tool"`  // server__tool
	Named      string    `json:"named"` // and with its digest, as --accept takes it
	State      State     `json:"state"`
	Then       string    `json:"then"` // what becomes of it meanwhile
	Since      time.Time `json:"since"`
	Digest     string    `json:"digest"`
	Was        string    `json:"was,omitempty"`
	AcceptedBy string    `json:"accepted_by,omitempty"`
	AcceptedAt time.Time `json:"accepted_at,omitzero"`
	BlockedBy  string    `json:"blocked_by,omitempty"`
	BlockedAt  time.Time `json:"blocked_at,omitzero"`
	Notices    []string  `json:"notices,omitempty"`
	Difference []Part    `json:"difference"`
}

// NewRow describes a tool, of which then becomes until somebody accepts it. Hide
// takes out what nobody may see of what the server says.
func NewRow(w UnreviewedTool, then Reaction, hide func(string) string) Row {
	r := Row{Tool: w.Server + "__" + canon.Escape(w.Tool), State: w.State, Then: string(then), Since: w.Since, Digest: w.Digest,
		Was: w.Was, AcceptedBy: w.AcceptedBy, AcceptedAt: w.AcceptedAt, BlockedBy: w.BlockedBy, BlockedAt: w.BlockedAt, Notices: mapped(w.Notices, hide), Difference: []Part{}}
	r.Named = r.Tool + "@" + w.Digest[:min(len(w.Digest), len(digestScheme)+shownDigest)]
	for _, part := range w.Difference {
		r.Difference = append(r.Difference, Part{What: part.What, Lines: mapped(part.Lines, hide)})
	}
	return r
}

// Lines are a row as a person reads it.
func (r Row) Lines() []string {
	state := string(r.State)
	switch r.State {
	case Changed:
		since := "since it was first seen on " + r.AcceptedAt.Local().Format(time.DateOnly)
		if r.AcceptedBy != "" {
			since = fmt.Sprintf("since %s accepted it on %s", canon.Escape(r.AcceptedBy), r.AcceptedAt.Local().Format(time.DateOnly))
		}
		state = "changed " + since
	case Blocked:
		state = fmt.Sprintf("blocked by %s on %s", canon.Escape(r.BlockedBy), r.BlockedAt.Local().Format(time.DateOnly))
	case New:
		state = "new since " + r.Since.Local().Format(time.DateOnly)
	}
	then := map[string]string{string(Ask): "each call asks", string(Quarantine): "hidden from scripts", string(Allow): "not held"}[r.Then]
	lines := []string{fmt.Sprintf("%s  %s; %s", r.Tool, state, then)}
	for _, n := range r.Notices {
		lines = append(lines, "  ! "+n)
	}
	for _, part := range r.Difference {
		lines = append(lines, "  the server's "+part.What+":")
		for _, line := range part.Lines {
			lines = append(lines, "    "+line[:1]+" "+line[1:])
		}
	}
	return lines
}

// Flat are the parts of a difference as lines, each hidden: a careless server may
// describe itself with secrets.
func Flat(parts []Part, hide func(string) string) []string {
	var all []string
	for _, part := range parts {
		all = append(append(all, "@"+part.What), mapped(part.Lines, hide)...)
	}
	return all
}

func mapped(lines []string, change func(string) string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = change(line)
	}
	return all
}
