package ledger

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Selects reports whether q selects r. Newest and Limit are left to the reader.
func (q Query) Selects(r Row) bool {
	rec := &r.Record
	return r.Seq > q.After && (q.Before == 0 || r.Seq < q.Before) &&
		(q.Since.IsZero() || !rec.Time.Before(q.Since)) && (q.Until.IsZero() || rec.Time.Before(q.Until)) &&
		among(q.Events, rec.Event) && among(q.Runs, rec.Run) && among(q.Sessions, rec.Session) &&
		among(q.Clients, rec.Client) && among(q.Profiles, rec.Profile) && among(q.Servers, rec.Server) &&
		q.decided(rec) && among(q.Channels, rec.Channel) && among(q.Dispositions, rec.Disposition) &&
		among(q.Outcomes, rec.Outcome) && among(q.Risks, rec.Risk) &&
		(q.Tool == "" || rec.Path() != "" && Glob(q.Tool, rec.Path())) && q.fields(rec)
}

// decided reports whether one of the wanted approvers decided: alone, as one of
// several, or in another's name; that other person is found as well. Records from
// before OnBehalfOf existed have "bob for cat" in Approver.
func (q Query) decided(rec *Record) bool {
	if among(q.Approvers, rec.Approver) {
		return true
	}
	for _, name := range strings.Split(rec.OnBehalfOf, " and ") {
		if name != "" && slices.Contains(q.Approvers, name) {
			return true
		}
	}
	for _, one := range strings.Split(rec.Approver, " and ") {
		by, name, _ := strings.Cut(one, " for ")
		if slices.Contains(q.Approvers, by) || name != "" && slices.Contains(q.Approvers, name) {
			return true
		}
	}
	return false
}

func among[T comparable](wanted []T, value T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, value)
}

// fields reports whether the record's JSON has every member of q.Fields with
// its text: a string as it is, anything else as JSON writes it.
func (q Query) fields(rec *Record) bool {
	if len(q.Fields) == 0 {
		return true
	}
	text, err := json.Marshal(rec)
	if err != nil {
		return false
	}
	for path, want := range q.Fields {
		value := json.RawMessage(text)
		for _, name := range strings.Split(path, ".") {
			var object map[string]json.RawMessage
			if json.Unmarshal(value, &object) != nil || object[name] == nil {
				return false
			}
			value = object[name]
		}
		var s string
		if value = bytes.TrimSpace(value); value[0] != '"' {
			s = string(value)
		} else if json.Unmarshal(value, &s) != nil {
			return false
		}
		if s != want {
			return false
		}
	}
	return true
}

// Glob reports whether text matches a pattern in which each * stands for any
// text, even none, and everything else for itself.
func Glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok || last == 0 {
		return ok && rest == ""
	}
	for _, part := range parts[1:last] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[last])
}
