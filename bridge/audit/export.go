package audit

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/ledger"
)

// A Format is a form of export.
type Format string

// The formats.
const (
	JSONLines Format = "jsonl" // one Row as JSON in each line
	CSV       Format = "csv"   // RFC 4180, the first line has the names of the columns
	CEF       Format = "cef"   // ArcSight Common Event Format 0, one event in each line
)

// Formats are all formats.
var Formats = []Format{JSONLines, CSV, CEF}

// Export writes rows in a format and returns how many. Version is the
// program's own, which CEF names.
//
// No text of a record can break out of its field. In CSV a cell that a spreadsheet
// would take for a formula gets an apostrophe in front, and invisible characters, line
// breaks included, are escaped; in CEF the separators of fields and events are escaped.
func Export(w io.Writer, rows Rows, format Format, version string) (n int, err error) {
	out := bufio.NewWriter(w)
	var write func(ledger.Row) error
	finish := func() error { return nil }
	switch format {
	case JSONLines:
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		write = func(r ledger.Row) error { return e.Encode(JSON(r)) }
	case CSV:
		c := csv.NewWriter(out)
		if err := c.Write(columns); err != nil {
			return 0, err
		}
		write = func(r ledger.Row) error { return c.Write(cells(r)) }
		finish = func() error { c.Flush(); return c.Error() }
	case CEF:
		write = func(r ledger.Row) error { _, err := out.WriteString(cef(r, version) + "\n"); return err }
	default:
		return 0, fmt.Errorf("there is no export format %q", format)
	}
	for row, err := range rows {
		if err != nil {
			return n, fmt.Errorf("reading the log: %w", err)
		}
		if err := write(row); err != nil {
			return n, err
		}
		n++
	}
	if err := finish(); err != nil {
		return n, err
	}
	return n, out.Flush()
}

// columns are the names of the cells that cells returns.
var columns = []string{
	"seq", "time", "event", "run", "call", "trace", "session", "client", "profile", "server", "tool", "args", "digest",
	"disposition", "risk", "reasons", "revision", "notify", "line", "column",
	"request", "approver", "channel", "answer", "outcome", "error", "wait_ms", "duration_ms", "bytes_sent", "bytes_received",
	"name", "script", "script_hash", "input", "preview", "detail", "hash",
	"configuration", "principal", "trace_id", "server_identity", "repeatable", "finds", "on_behalf_of", "comment", "counted",
	"edited_args", "edited_digest", "edited_by", "grant", "box", "looked", "written", "brief", "would",
}

// cells are a row for CSV, in the order of columns.
func cells(row ledger.Row) []string {
	r := row.Record
	all := []string{
		strconv.FormatInt(row.Seq, 10), r.Time.UTC().Format(time.RFC3339Nano), string(r.Event), r.Run, count(r.Call), r.Trace, r.Session, r.Client, r.Profile, r.Server, r.Tool, string(r.Args), r.Digest,
		r.Disposition, r.Risk, strings.Join(r.Reasons, "; "), r.Revision, yes(r.Notify), count(r.Line), count(r.Column),
		r.Request, r.Approver, r.Channel, r.Answer, r.Outcome, r.Error, millis(r.Wait), millis(r.Duration), count(r.Sent), count(r.Received),
		r.Name, r.Script, r.ScriptHash, string(r.Input), string(r.Preview), string(r.Detail), row.Hash.String(),
		r.Configuration, r.Principal, r.TraceID, r.Identity, yes(r.Repeatable), finds(r.Sources), r.OnBehalfOf, r.Comment, whether(r.Counted),
		string(r.EditedArgs), r.EditedDigest, r.EditedBy, r.Grant, r.Box, r.Looked, whether(r.Written), yes(r.Brief), r.Would,
	}
	for i, text := range all {
		all[i] = cell(text)
	}
	return all
}

// cell keeps a spreadsheet from reading a text as a formula. (No cell of ours is a
// negative number.)
func cell(text string) string {
	text = Shown(text)
	if strings.ContainsAny(first(strings.TrimLeft(text, " '\"")), "=+-@|%＝＋－＠｜％") {
		return "'" + text
	}
	return text
}

// first is the first character of a text.
func first(text string) string {
	for _, r := range text {
		return string(r)
	}
	return ""
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// whether is a fact as text; "" if it is not known.
func whether(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

// finds lists what a call sent of data that its run had read, as
// "body[12:40] of call 3 (private)".
func finds(all []ledger.SourceMatch) string {
	var texts []string
	for _, f := range all {
		text := fmt.Sprintf("%s[%d:%d] of call %d", f.Argument, f.Offset, f.Offset+f.Length, f.Call)
		if f.Kind == ledger.Lost {
			text = fmt.Sprintf("not all is remembered of call %d", f.Call)
		}
		if len(f.Labels) > 0 {
			text += " (" + strings.Join(f.Labels, ", ") + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

func millis(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

// cef is a row as an event in ArcSight's Common Event Format:
//
//	CEF:0|codemode-bridge|codemode-bridge|VERSION|EVENT|NAME|SEVERITY|KEY=VALUE ...
func cef(row ledger.Row, version string) string {
	r := row.Record
	header := func(s string) string {
		return strings.NewReplacer(`\`, `\\`, `|`, `\|`).Replace(Shown(s))
	}
	name := join(" ", strings.ReplaceAll(string(r.Event), "_", " "), r.Path())
	var b strings.Builder
	fmt.Fprintf(&b, "CEF:0|codemode-bridge|codemode-bridge|%s|%s|%s|%d|", header(version), header(string(r.Event)), header(name), severity(r))
	var parts []string
	add := func(key, value string) {
		if value != "" {
			// CEF would also want line breaks escaped: Shown leaves none.
			parts = append(parts, key+"="+strings.NewReplacer(`\`, `\\`, `=`, `\=`).Replace(Shown(value)))
		}
	}
	custom := func(n int, label, value string) {
		if value != "" {
			add(fmt.Sprintf("cs%d", n), value)
			add(fmt.Sprintf("cs%dLabel", n), label)
		}
	}
	add("rt", strconv.FormatInt(r.Time.UnixMilli(), 10))
	add("externalId", strconv.FormatInt(row.Seq, 10))
	add("act", r.Disposition)
	add("outcome", r.Outcome)
	add("suser", r.Approver)
	add("sourceServiceName", r.Client)
	add("destinationServiceName", r.Server)
	add("reason", join(": ", r.Answer, r.Error))
	custom(1, "run", r.Run)
	custom(2, "tool", r.Tool)
	custom(3, "profile", r.Profile)
	custom(4, "risk", r.Risk)
	custom(5, "arguments", string(r.Args))
	custom(6, "reasons", strings.Join(r.Reasons, "; "))
	add("cn1", count(r.Call))
	if r.Call != 0 {
		add("cn1Label", "call")
	}
	add("out", count(r.Sent))
	add("in", count(r.Received))
	b.WriteString(strings.Join(parts, " "))
	return b.String()
}

// severity is CEF's number, 0 to 10, for how much a record matters.
func severity(r ledger.Record) int {
	n := map[string]int{"low": 1, "medium": 4, "high": 7, "critical": 9}[r.Risk]
	if r.Event == ledger.Refusal || r.Outcome == ledger.Unknown || r.Event == ledger.Repaired {
		n = max(n+1, 5)
	}
	return n
}
