package pins

import (
	"fmt"
	"time"

	"codemode-bridge/bridge/canon"
)

// A Row is what people and programs see of an unreviewed tool besides its name: the
// terminal and the API of the page each name tools in their own way. The fields are
// those of [UnreviewedTool], without what must be hidden.
type Row struct {
	State      State     `json:"state"`
	Then       Reaction  `json:"then"` // what becomes of its calls meanwhile
	Since      time.Time `json:"since"`
	Digest     string    `json:"digest"`
	Was        string    `json:"was,omitempty"`
	AcceptedBy string    `json:"accepted_by,omitempty"`
	AcceptedAt time.Time `json:"accepted_at,omitzero"`
	Lock       string    `json:"lock,omitempty"`
	BlockedBy  string    `json:"blocked_by,omitempty"`
	BlockedAt  time.Time `json:"blocked_at,omitzero"`
	Notices    []string  `json:"notices,omitempty"`
	Difference []Part    `json:"difference"`
}

// NewRow returns the row of a tool. Then is what becomes of its calls until somebody
// accepts it; hide takes known secrets out of a line.
func NewRow(w UnreviewedTool, then Reaction, hide func(string) string) Row {
	r := Row{State: w.State, Then: then, Since: w.Since, Digest: w.Digest, Was: w.Was, AcceptedBy: w.AcceptedBy, AcceptedAt: w.AcceptedAt, Lock: hide(w.Lock),
		BlockedBy: w.BlockedBy, BlockedAt: w.BlockedAt, Notices: mapped(w.Notices, hide), Difference: []Part{}}
	for _, part := range w.Difference {
		r.Difference = append(r.Difference, Part{What: part.What, Lines: mapped(part.Lines, hide)})
	}
	return r
}

// Why says why the tool waits, with the day in that time zone.
func (r Row) Why(zone *time.Location) string {
	on := func(t time.Time) string { return t.In(zone).Format(time.DateOnly) }
	switch {
	case r.State == Blocked:
		return fmt.Sprintf("blocked by %s on %s", canon.Escape(r.BlockedBy), on(r.BlockedAt))
	case r.Lock != "":
		return r.Lock
	case r.State == New:
		return "new since " + on(r.Since)
	case r.State == Changed && r.AcceptedBy == "":
		return "changed since it was first seen on " + on(r.AcceptedAt)
	case r.State == Changed:
		return fmt.Sprintf("changed since %s accepted it on %s", canon.Escape(r.AcceptedBy), on(r.AcceptedAt))
	}
	return string(r.State)
}

// Meanwhile says what becomes of its calls until somebody accepts it.
func (r Row) Meanwhile() string {
	switch r.Then {
	case Ask:
		return "each call asks"
	case Allow:
		return "not held"
	}
	return "hidden from scripts"
}

// A NamedRow is a row as the terminal shows it.
type NamedRow struct {
	Tool  string `json:"tool"`  // server__tool
	Named string `json:"named"` // and with its digest, as --accept takes it
	Row
}

// NewNamedRow returns a tool's row with its name. See NewRow.
func NewNamedRow(w UnreviewedTool, then Reaction, hide func(string) string) NamedRow {
	name := w.Server + "__" + canon.Escape(w.Tool)
	return NamedRow{name, name + "@" + w.Digest[:min(len(w.Digest), len(digestScheme)+shownDigest)], NewRow(w, then, hide)}
}

// Lines returns the row as lines of text.
func (r NamedRow) Lines() []string {
	lines := []string{fmt.Sprintf("%s  %s; %s", r.Tool, r.Why(time.Local), r.Meanwhile())}
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

// Flat returns a difference as lines, with hide applied to each: a careless server
// may describe itself with secrets.
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
