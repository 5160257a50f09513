// Package audit reads the audit log for people: the timeline of one run, how
// often people are asked and what they answer, which rules would have saved
// them questions, exports, and the report for an auditor.
//
// Everything here is a function over rows of package ledger, in the order in
// which they were written. Nothing writes a record; what [ReplayLog] decides has no effect.
//
//	ledger.Store.Rows ─┬─ ReadTimeline ─ (*Timeline).Write    runs show
//	                   ├─ Measure ─ Stats ─ (Stats).Suggest   audit stats
//	                   ├─ ReplayLog ─ (*Replay).Write         profiles replay
//	                   ├─ Export                              audit export, audit query --format csv
//	                   ├─ WriteReport                         audit report
//	                   ├─ Table                               audit query
//	                   ├─ ReadRuns ─ RunTable                 runs list
//	                   └─ Tail, Line                          tail
//
// A [Selection] picks the rows, in the words of the command line. [Verify] and
// [ReadCheckpoints] tell whether the rows are what was written.
//
// What is printed is inert. Records hold text that scripts, upstreams and
// clients wrote; on the way out it passes [Shown], [ShownLines] or the escaping
// of its format, so that no terminal, spreadsheet, log collector or Markdown
// reader takes it for more than text. JSON is left to its encoder.
package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

// Rows are rows of a store in the order in which they were written. They end
// with the first error.
type Rows = iter.Seq2[ledger.Row, error]

// A Row is a row as JSON: its place in the chain beside its record's fields.
type Row struct {
	Seq  int64       `json:"seq"`
	Hash ledger.Hash `json:"hash"`
	ledger.Record
}

// JSON returns a row in the form in which it is printed.
func JSON(r ledger.Row) Row { return Row{r.Seq, r.Hash, r.Record} }

// Shown escapes a text of a record for a terminal, as canon.Escape does. What was
// already escaped when it was recorded is not escaped a second time.
func Shown(s string) string { return strings.ReplaceAll(canon.Escape(s), `\u{5C}`, `\`) }

// ShownLines is Shown for a text of several lines.
func ShownLines(s string) string { return strings.ReplaceAll(canon.EscapeLines(s), `\u{5C}`, `\`) }

// Line is a record in one line, without its time and run; it is never empty.
func Line(r ledger.Record) string {
	because := ""
	if text := words(r); text != "" {
		because = ": " + canon.Fit(Shown(firstLine(text)), 160)
	}
	call := fmt.Sprintf("#%d %s", r.Call, Shown(r.Path()))
	var text string
	switch r.Event {
	case ledger.RunStarted:
		text = "run started  " + join("  ", Shown(r.Client), Shown(r.Profile), Shown(r.Name))
	case ledger.RunEnded:
		text = fmt.Sprintf("run %-8s %s%s", Shown(r.Outcome), span(r.Duration), because)
	case ledger.RunPaused:
		text = "run paused: it goes on when somebody resumes it"
	case ledger.RunResumed:
		text = "run resumed " + join(" ", "by", Shown(r.Approver))
	case ledger.Preview:
		text = "  preview  " + previewed(r)
	case ledger.Intent:
		text = "  " + call + " " + canon.Fit(Shown(string(r.Args)), 120)
		if r.EditedBy != "" {
			text += ", edited by " + Shown(r.EditedBy)
		}
		if r.Box != "" {
			text += ", box: " + Shown(r.Box)
		}
		text += would(r.Would)
		if r.Notify {
			text = "!" + text[1:]
		}
	case ledger.Asked:
		text = "  " + call + " is asked " + canon.Fit(Shown(string(r.Args)), 120)
	case ledger.Answered:
		text = fmt.Sprintf("  request %s %s", Shown(r.Request), answer(r)) + because
	case ledger.Verdict:
		text = fmt.Sprintf("  %s %s", call, answer(r)) + because
		if !counts(r) { // it came too late, or from somebody without the right
			text = fmt.Sprintf("  %s %s does not count", call, answer(r)) + because
		}
	case ledger.Outcome:
		text = fmt.Sprintf("  %s %s %s%s", call, Shown(r.Outcome), span(r.Duration), because)
	case ledger.Refusal:
		text = "  " + call + " refused" + would(r.Would) + because
	case ledger.SavedScript:
		text = "  " + call + " runs " + canon.Fit(Shown(r.ScriptHash), 19) + " " + canon.Fit(Shown(string(r.Input)), 120)
	case ledger.ServerAsked:
		text = fmt.Sprintf("  server %s asks by %s: %s, %s", Shown(r.Server), Shown(r.Tool), canon.Fit(Shown(string(r.Args)), 120), Shown(r.Outcome)) + because
	case ledger.ConfigChanged:
		if r.Session != "" { // the page has tightened one session
			text = join(", by ", strings.Join(shownAll(r.Reasons), "; "), Shown(r.Approver))
			if r.Outcome == ledger.Refused {
				text = "not done: " + text + because
			}
			break
		}
		text = join(": ", "configuration "+configState(r), canon.Fit(join("; ", append(shownAll(r.Reasons), Shown(firstLine(r.Error)))...), 200))
	case ledger.BridgeStarted, ledger.BridgeEnded:
		text = strings.ReplaceAll(string(r.Event), "_", " ") + "  " + join("  ", Shown(r.Client), canon.Fit(Shown(string(r.Detail)), 160))
	case ledger.ToolChanged, ledger.ToolAccepted, ledger.ToolBlocked:
		text = join("  ", Shown(r.Path()), strings.ReplaceAll(string(r.Event), "_", " "), Shown(r.Approver), strings.Join(shownAll(r.Reasons), "; ")) + because
	case ledger.Lapsed:
		text = "  " + Shown(r.Path()) + " was allowed beforehand and not made before the run ended or was suspended"
	case ledger.Granted, ledger.Revoked:
		text = "  " + join(" ", call, strings.ReplaceAll(string(r.Event), "_", " "), answer(r), canon.Fit(Shown(string(r.Detail)), 120))
	default:
		text = join(" ", Shown(string(r.Event)), canon.Fit(Shown(string(r.Detail)), 160)) + because
	}
	return strings.TrimRight(text, " ")
}

// previewed names the tools that, by its preview, a script calls.
func previewed(r ledger.Record) string {
	var report analysis.Report
	if json.Unmarshal(r.Preview, &report) != nil || len(report.Calls) == 0 {
		return "no calls"
	}
	var names []string
	for _, site := range report.Calls {
		if name := cmp.Or(Shown(site.Name), "a name that cannot be read"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return canon.Fit(strings.Join(names, ", "), 160)
}

// answer says how a question was answered, by whom and through which channel.
func answer(r ledger.Record) string {
	text := Shown(said(r))
	if r.Channel == "grant" && strings.HasPrefix(r.Answer, "yes") {
		text = "an earlier yes"
	}
	if who := by(r); who != "" {
		text += " by " + Shown(who)
	}
	if r.Channel != "" {
		text += " (" + Shown(r.Channel) + ")"
	}
	return text
}

// said is the answer, with a note if the approver edited the arguments.
func said(r ledger.Record) string {
	if len(r.EditedArgs) > 0 {
		return r.Answer + ", with edited arguments"
	}
	return r.Answer
}

// configState says what became of a changed configuration.
func configState(r ledger.Record) string {
	switch r.Outcome {
	case ledger.Refused:
		return "refused"
	case ledger.Done:
		return "taken over"
	case ledger.ConfigPending: // of what waits: that it does, or what an approver said of it
		var said map[string]string
		if err := json.Unmarshal(r.Detail, &said); err == nil && said["confirm"] != "" {
			return "confirmed by " + Shown(r.Approver)
		} else if err == nil && said["reject"] != "" {
			return "rejected by " + Shown(r.Approver)
		}
		return "waits for an approver"
	default:
		return "edited by " + Shown(cmp.Or(r.Approver, "somebody")) + ", not taken over yet"
	}
}

// trace is a key that all records of one call share.
func trace(r ledger.Record) string {
	if r.Trace != "" {
		return r.Trace
	}
	return r.Run + "." + strconv.Itoa(r.Call)
}

// actedOn reports whether a verdict is the one that decided its call, rather than one
// of several that a quorum needs, or one that did not count. Older records of those two
// kinds are known by having no decision.
func actedOn(r ledger.Record) bool {
	return r.Disposition != "" && counts(r) && r.Outcome != ledger.Vote
}

// counts reports whether a verdict settled its request or is one of several.
func counts(r ledger.Record) bool {
	if r.Counted != nil {
		return *r.Counted
	}
	return r.Outcome != ledger.Refused
}

// words are what a person wrote with an answer, and what was wrong with it. Old records
// have both in Error.
func words(r ledger.Record) string { return join("; ", r.Comment, r.Error) }

// by is who decided, and in whose name; "" if nobody could be reached or no answer
// counted: then the record's approver is the client that was asked.
func by(r ledger.Record) string {
	if refusedFor(r) == "no_approver" {
		return ""
	}
	return join(" for ", r.Approver, r.OnBehalfOf)
}

// approved reports whether a verdict is a yes.
func approved(r ledger.Record) bool { return r.Answer == "yes" || strings.HasPrefix(r.Answer, "yes,") }

// refusedFor is the reason within the text of a denial, such as timeout; "" if there is
// none.
func refusedFor(r ledger.Record) string {
	why, _ := strings.CutPrefix(r.Answer, "no")
	return strings.TrimLeft(why, ", ")
}

// byPerson reports whether a person gave the verdict, for this very question. The
// others, such as a remembered approval, stand in for that.
func byPerson(r ledger.Record) bool {
	switch r.Channel {
	case "", "grant", "fallback", "timeout", "limit":
		return false
	}
	switch refusedFor(r) {
	case "timeout", "expired", "no_approver", "elicitation_unsupported", "rate_limited", "stale":
		return false
	}
	return true
}

// ruleOf reduces a reason to what is the same for all calls: the rule or list entry,
// and the profile in which it is written.
func ruleOf(reason string) string {
	text, profile := reason, ""
	if i := strings.LastIndex(reason, " [profile "); i >= 0 && strings.HasSuffix(reason, "]") {
		text, profile = reason[:i], reason[i:]
	}
	if !strings.HasPrefix(text, "rule ") {
		return reason
	}
	end := len(text)
	for _, mark := range []string{" (allow)", " (notify)", " (ask)", " (manual)", " (deny)"} {
		if i := strings.Index(text, mark); i >= 0 {
			end = min(end, i)
		}
	}
	if end == len(text) { // a rule without an action
		for _, mark := range []string{": ", "; its condition"} {
			if i := strings.Index(text, mark); i >= 0 {
				end = min(end, i)
			}
		}
	}
	return text[:end] + profile
}

func shownAll(texts []string) []string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = Shown(t)
	}
	return all
}

// join is strings.Join without the empty texts.
func join(between string, texts ...string) string {
	var all []string
	for _, t := range texts {
		if t != "" {
			all = append(all, t)
		}
	}
	return strings.Join(all, between)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// span is a duration for people.
func span(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// number is a count of things: 1 call, 2 calls.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
