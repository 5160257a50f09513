package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/ledger"
)

// Open is the state of a run without an end, and of a question without an answer: it
// is under way, or its bridge died.
const Open = "open"

// A Timeline is one run, put together from its rows.
type Timeline struct {
	Run     string `json:"run"`
	Session string `json:"session,omitempty"`
	Client  string `json:"client,omitempty"`
	Profile string `json:"profile,omitempty"`
	Name    string `json:"name,omitempty"` // of a saved script

	Principal string `json:"principal,omitempty"` // whose run it is
	Bridge    string `json:"bridge,omitempty"`    // that has it, where several machines share the log

	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Outcome is that of the run, or Open.
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`

	Script     string           `json:"script,omitempty"`
	ScriptHash string           `json:"script_hash,omitempty"`
	Input      json.RawMessage  `json:"input,omitempty"`
	Preview    *analysis.Report `json:"preview,omitempty"` // nil if none was recorded
	Pauses     []Pause          `json:"pauses,omitempty"`
	Calls      []*Call          `json:"calls"` // by number
	// Unseen are the calls that the preview did not list; Unmade are the places in the
	// preview from which nothing was called. Without a preview both are empty.
	Unseen []int               `json:"called_but_not_previewed,omitempty"`
	Unmade []analysis.CallSite `json:"previewed_but_not_called,omitempty"`
}

// A Pause is a period in which no bridge had the run.
type Pause struct {
	From  time.Time `json:"from,omitzero"`  // zero if the bridge died
	Until time.Time `json:"until,omitzero"` // zero if it lasts
	By    string    `json:"by,omitempty"`   // who resumed the run
}

// A Call is one call of a run.
type Call struct {
	Number      int               `json:"call"`
	Trace       string            `json:"trace"`
	Time        time.Time         `json:"time"`
	Tool        string            `json:"tool"` // server__tool
	Position    analysis.Position `json:"position"`
	Args        json.RawMessage   `json:"args,omitempty"`   // as sent, or as they would have been sent
	Edited      *Edit             `json:"edited,omitempty"` // nil if they are the script's
	Disposition string            `json:"disposition,omitempty"`
	Would       string            `json:"would,omitempty"` // if what is only observed were enforced
	Risk        string            `json:"risk,omitempty"`
	Reasons     []string          `json:"reasons,omitempty"`
	Revision    string            `json:"revision,omitempty"`
	Questions   []Question        `json:"questions,omitempty"`
	// Outcome is one of package ledger's, or Open. ledger.Unknown is also that of a
	// call that was sent and of which nothing more was recorded.
	Outcome  string        `json:"outcome"`
	Error    string        `json:"error,omitempty"`
	Duration time.Duration `json:"duration_ns,omitempty"`
	Sent     int           `json:"bytes_sent,omitempty"`
	Received int           `json:"bytes_received,omitempty"`
	// Parts are, for a call that lists all servers, what became of each server's part.
	Parts []Part `json:"parts,omitempty"`

	all     bool  // it goes to all servers: a record that names one is a part's
	written bool  // its outcome was recorded
	sites   []int // places in the preview at which it may have been made
}

// An Edit says that the person who allowed a call changed its arguments.
type Edit struct {
	By string `json:"by,omitempty"`
	// Args are those that the person was asked about. The digests are of their exact
	// form, and of the arguments that replaced them.
	Args   json.RawMessage `json:"asked_args,omitempty"`
	Asked  string          `json:"asked_digest,omitempty"`
	Digest string          `json:"digest,omitempty"`
}

// A Part is what became of one server's part of a list.
type Part struct {
	Server  string `json:"server"`
	Outcome string `json:"outcome"` // as of a call
	Error   string `json:"error,omitempty"`
}

// A Question is what was asked of a person about a call, and the answer.
type Question struct {
	Request  string        `json:"request,omitempty"`
	Asked    time.Time     `json:"asked,omitzero"` // zero if nobody was
	Answer   string        `json:"answer,omitempty"`
	Approver string        `json:"approver,omitempty"`
	Channel  string        `json:"channel,omitempty"`
	Text     string        `json:"text,omitempty"` // what the person wrote
	Wait     time.Duration `json:"wait_ns,omitempty"`
	// Settled is false for an answer that settled nothing: it came too late, or is one
	// approval of several that are needed.
	Settled *bool `json:"settled,omitempty"`
	// Counted is false for an answer that does not count even towards a quorum.
	Counted *bool `json:"counted,omitempty"`
}

// ReadTimeline makes a timeline of the rows of one run; nil if there are none.
func ReadTimeline(rows Rows) (*Timeline, error) {
	var t *Timeline
	calls := map[int]*Call{}
	for row, err := range rows {
		if err != nil {
			return nil, fmt.Errorf("reading the rows of a run: %w", err)
		}
		r := row.Record
		if t == nil {
			t = &Timeline{Run: r.Run, Started: r.Time, Outcome: Open, Calls: []*Call{}}
		}
		t.Session, t.Client, t.Profile = cmp.Or(t.Session, r.Session), cmp.Or(t.Client, r.Client), cmp.Or(t.Profile, r.Profile)
		t.Principal = cmp.Or(t.Principal, r.Principal)
		t.Script, t.ScriptHash, t.Name = cmp.Or(t.Script, r.Script), cmp.Or(t.ScriptHash, r.ScriptHash), cmp.Or(t.Name, r.Name)
		if len(r.Input) > 0 {
			t.Input = r.Input
		}
		if len(r.Preview) > 0 {
			report := new(analysis.Report)
			if json.Unmarshal(r.Preview, report) == nil {
				t.Preview = report
			}
		}
		switch r.Event {
		case ledger.RunEnded:
			t.Outcome, t.Error, t.Duration = r.Outcome, r.Error, r.Duration
		case ledger.RunPaused:
			t.Pauses = append(t.Pauses, Pause{From: r.Time})
		case ledger.RunResumed:
			if !t.paused() {
				t.Pauses = append(t.Pauses, Pause{})
			}
			last := &t.Pauses[len(t.Pauses)-1]
			last.Until, last.By = r.Time, r.Approver
		}
		if r.Call == 0 {
			continue
		}
		c := calls[r.Call]
		if c == nil {
			c = &Call{Number: r.Call, Trace: trace(r), Time: r.Time, Outcome: Open}
			calls[r.Call] = c
			t.Calls = append(t.Calls, c)
		}
		c.add(r)
	}
	if t == nil {
		return nil, nil
	}
	slices.SortFunc(t.Calls, func(a, b *Call) int { return cmp.Compare(a.Number, b.Number) })
	t.compare()
	return t, nil
}

// paused reports whether the run waits for somebody to resume it.
func (t *Timeline) paused() bool {
	n := len(t.Pauses)
	return n > 0 && t.Pauses[n-1].Until.IsZero()
}

// add takes in one record of the call.
func (c *Call) add(r ledger.Record) {
	if c.all && r.Server != "" {
		c.addPart(r)
		return
	}
	c.Tool = cmp.Or(r.Path(), c.Tool)
	if r.Event == ledger.Verdict && !actedOn(r) { // it decided nothing
		q := Question{Request: r.Request, Answer: r.Answer, Approver: by(r), Channel: r.Channel, Text: words(r), Settled: new(false), Counted: new(counts(r))}
		c.Questions = slices.Insert(c.Questions, max(0, len(c.Questions)-1), q)
		return
	}
	if r.Disposition != "" {
		c.Would = r.Would
	}
	c.Disposition, c.Risk, c.Revision = cmp.Or(r.Disposition, c.Disposition), cmp.Or(r.Risk, c.Risk), cmp.Or(r.Revision, c.Revision)
	asked := c.Args
	if len(r.Args) > 0 {
		c.Args = r.Args
	}
	if len(r.Reasons) > 0 {
		c.Reasons = r.Reasons
	}
	if r.Line > 0 {
		c.Position = analysis.Position{Line: r.Line, Column: r.Column}
	}
	c.Sent, c.Received = cmp.Or(r.Sent, c.Sent), cmp.Or(r.Received, c.Received)
	switch r.Event {
	case ledger.Asked:
		if n := len(c.Questions); n > 0 && c.Questions[n-1].Request == r.Request && c.Questions[n-1].Answer == "" {
			return // the same question, after a pause
		}
		c.Questions = append(c.Questions, Question{Request: r.Request, Asked: r.Time})
	case ledger.Verdict:
		if len(r.EditedArgs) > 0 {
			c.edit(Edit{By: by(r), Args: r.Args, Asked: r.Digest, Digest: r.EditedDigest})
			c.Args = r.EditedArgs
		}
		if n := len(c.Questions); n == 0 || c.Questions[n-1].Answer != "" {
			c.Questions = append(c.Questions, Question{Request: r.Request})
		}
		q := &c.Questions[len(c.Questions)-1]
		q.Answer, q.Approver, q.Channel, q.Text, q.Wait = r.Answer, by(r), r.Channel, words(r), r.Wait
		if q.Wait == 0 && !q.Asked.IsZero() {
			q.Wait = max(0, r.Time.Sub(q.Asked))
		}
	case ledger.Intent:
		c.all = r.Server == ""
		if digest := askedAbout(r); digest != "" && c.Edited == nil { // old records do not say so in the verdict
			e := Edit{Args: asked, Asked: digest, Digest: r.Digest}
			if n := len(c.Questions); n > 0 {
				e.By = c.Questions[n-1].Approver
			}
			c.edit(e)
		}
		if !c.written {
			c.Outcome = ledger.Unknown
		}
	case ledger.Outcome, ledger.Refusal, ledger.SavedScript:
		c.Outcome, c.Error, c.Duration, c.written = r.Outcome, r.Error, r.Duration, true
	}
}

// edit notes that somebody changed the arguments. If several did, the arguments that
// were asked about are those that the first of them saw, the script's own.
func (c *Call) edit(e Edit) {
	if before := c.Edited; before != nil {
		e.Args, e.Asked = before.Args, before.Asked
		if before.By != e.By {
			e.By = before.By + " and " + e.By
		}
	}
	c.Edited = &e
}

// askedAbout is the digest of the arguments that a person was asked about, from the
// record of a call that was sent with others.
func askedAbout(r ledger.Record) string {
	var detail struct {
		AskedAbout string `json:"asked_about"`
	}
	if len(r.Detail) == 0 || json.Unmarshal(r.Detail, &detail) != nil {
		return ""
	}
	return detail.AskedAbout
}

// addPart takes in one record of a server's part of the call.
func (c *Call) addPart(r ledger.Record) {
	i := slices.IndexFunc(c.Parts, func(p Part) bool { return p.Server == r.Server })
	if i < 0 {
		i = len(c.Parts)
		c.Parts = append(c.Parts, Part{Server: r.Server})
	}
	c.Parts[i].Outcome, c.Parts[i].Error = cmp.Or(r.Outcome, ledger.Unknown), r.Error
}

// compare fills in where the preview and what happened differ.
func (t *Timeline) compare() {
	if t.Preview == nil {
		return
	}
	made := make([]bool, len(t.Preview.Calls))
	for _, c := range t.Calls {
		c.sites = t.sitesOf(c)
		for _, i := range c.sites {
			made[i] = true
		}
		if len(c.sites) == 0 {
			t.Unseen = append(t.Unseen, c.Number)
		}
	}
	for i, site := range t.Preview.Calls {
		if !made[i] {
			t.Unmade = append(t.Unmade, site)
		}
	}
}

// sitesOf returns the places of the preview at which c may have been made: the one at
// its very position or else those on its line with a fitting name, because preview and
// engine may differ in where an expression begins. If a position is not known, the name
// decides.
func (t *Timeline) sitesOf(c *Call) (found []int) {
	for i, site := range t.Preview.Calls {
		if c.Position.Line > 0 && c.Position == site.Position {
			return []int{i}
		}
		near := c.Position.Line == 0 || site.Position.Line == 0
		if near && sameTool(site.Name, c.Tool) || c.Position.Line == site.Position.Line && (site.Name == "" || sameTool(site.Name, c.Tool)) {
			found = append(found, i)
		}
	}
	return found
}

const identifierLetters = "_$0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// sameTool reports whether a name in a script can be that of the tool at path
// (server__tool): an identifier made from it, perhaps with a suffix.
func sameTool(name, path string) bool {
	ident := strings.Map(func(r rune) rune {
		if strings.ContainsRune(identifierLetters, r) {
			return r
		}
		return '_'
	}, path)
	if name == path || name == ident {
		return true
	}
	suffix, ok := strings.CutPrefix(name, ident+"_")
	return ok && len(suffix) == 6 && strings.Trim(suffix, "0123456789abcdef") == ""
}

// Write prints the timeline for a person.
func (t *Timeline) Write(w io.Writer) error {
	p := &printer{w: w}
	t.writeHead(p)
	t.writeScript(p)
	t.writePreview(p)
	t.writeCalls(p)
	return p.err
}

// A printer keeps the first error of writing.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (t *Timeline) writeHead(p *printer) {
	switch {
	case t.Outcome == Open && t.paused():
		p.f("run %s is paused: codemode-bridge runs resume %[1]s goes on with it\n", Shown(t.Run))
	case t.Outcome == Open:
		p.f("run %s has not ended: it is under way, or its bridge died\n", Shown(t.Run))
	default:
		p.f("run %s %s in %s\n", Shown(t.Run), Shown(t.Outcome), span(t.Duration))
	}
	line := func(key, value string) {
		if value != "" {
			p.f("%-9s %s\n", key, value)
		}
	}
	line("started", t.Started.Local().Format(timeFormat))
	line("who", Shown(t.Principal))
	line("bridge", Shown(t.Bridge))
	line("client", Shown(t.Client))
	line("session", Shown(t.Session))
	line("profile", Shown(t.Profile))
	line("saved as", Shown(t.Name))
	line("input", Shown(string(t.Input)))
	for _, pause := range t.Pauses {
		text := "its bridge ended"
		if !pause.From.IsZero() {
			text = pause.From.Local().Format(timeFormat)
		}
		if !pause.Until.IsZero() {
			text += "; resumed " + join(" ", pause.Until.Local().Format(timeFormat), "by", Shown(pause.By))
		}
		line("paused", text)
	}
	line("error", strings.ReplaceAll(ShownLines(t.Error), "\n", "\n          "))
}

// timeFormat is how a time is printed, in the reader's zone.
const timeFormat = "2006-01-02 15:04:05.000 -07:00"

func (t *Timeline) writeScript(p *printer) {
	if t.Script == "" {
		return
	}
	p.f("\nscript\n")
	for i, line := range strings.Split(strings.TrimRight(ShownLines(t.Script), "\n"), "\n") {
		p.f("%5d  %s\n", i+1, line)
	}
}

func (t *Timeline) writePreview(p *printer) {
	if t.Preview == nil || len(t.Preview.Calls)+len(t.Calls) == 0 {
		return
	}
	p.f("\npreview, and what happened\n")
	w := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	row := func(place, preview, happened string) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", place, preview, happened)
	}
	for i, site := range t.Preview.Calls {
		var happened []string
		for _, c := range t.Calls {
			if slices.Contains(c.sites, i) {
				happened = append(happened, fmt.Sprintf("#%d %s", c.Number, Shown(c.Outcome)))
			}
		}
		if n := len(happened); n > 8 {
			happened = append(happened[:7], fmt.Sprintf("and %d more", n-7))
		}
		name := cmp.Or(Shown(site.Name), "a name that cannot be read")
		if site.Loop {
			name += ", in a loop"
		}
		if site.Branch {
			name += ", perhaps"
		}
		row(place(site.Position), name, cmp.Or(strings.Join(happened, ", "), "not called"))
	}
	for i, n := range t.Unseen {
		if i == 20 {
			row("", "", fmt.Sprintf("and %d more", len(t.Unseen)-i))
			break
		}
		c := t.call(n)
		row(place(c.Position), "not in the preview", fmt.Sprintf("#%d %s %s", n, Shown(c.Tool), Shown(c.Outcome)))
	}
	if err := w.Flush(); p.err == nil {
		p.err = err
	}
	if t.Preview.Truncated {
		p.f("  the preview was cut: there are more places\n")
	}
}

func (t *Timeline) call(number int) *Call {
	i := slices.IndexFunc(t.Calls, func(c *Call) bool { return c.Number == number })
	return t.Calls[i]
}

// place is a position in the script, indented.
func place(at analysis.Position) string {
	if at.Line == 0 {
		return "     ?"
	}
	return fmt.Sprintf("%6d:%d", at.Line, at.Column)
}

func (t *Timeline) writeCalls(p *printer) {
	if len(t.Calls) == 0 {
		p.f("\nno calls\n")
		return
	}
	p.f("\ncalls\n")
	for _, c := range t.Calls {
		at := ""
		if c.Position.Line > 0 {
			at = fmt.Sprintf("  line %d, column %d", c.Position.Line, c.Position.Column)
		}
		p.f("  +%s  #%d %s%s\n", span(max(0, c.Time.Sub(t.Started))), c.Number, Shown(c.Tool), at)
		line := func(key, value string) {
			if value != "" {
				p.f("        %-9s %s\n", key, value)
			}
		}
		line("arguments", Shown(string(c.Args)))
		if e := c.Edited; e != nil {
			line("edited", fmt.Sprintf("by %s; asked about was %s", Shown(cmp.Or(e.By, "a person")), Shown(string(e.Args))))
			line("digests", fmt.Sprintf("asked about %s, then %s", Shown(e.Asked), Shown(e.Digest)))
		}
		decision := Shown(c.Disposition)
		if c.Risk != "" {
			decision += ", risk " + Shown(c.Risk)
		}
		line("decision", decision+would(c.Would))
		for _, reason := range c.Reasons {
			p.f("                  - %s\n", Shown(reason))
		}
		for _, q := range c.Questions {
			line("asked", q.String())
		}
		for _, part := range c.Parts {
			line("server", join(": ", Shown(part.Server)+" "+Shown(part.Outcome), Shown(part.Error)))
		}
		line("outcome", c.outcome())
	}
}

// String says how a question ended.
func (q Question) String() string {
	if q.Answer == "" {
		return "no answer was written"
	}
	text := answer(ledger.Record{Answer: q.Answer, Approver: q.Approver, Channel: q.Channel})
	switch {
	case q.Counted != nil && !*q.Counted:
		text += ", which does not count"
	case q.Settled != nil:
		text += ", which settled nothing"
	}
	if q.Wait > 0 {
		text += " after " + span(q.Wait)
	}
	if q.Text != "" {
		text += ": " + Shown(q.Text)
	}
	return text
}

// outcome says what became of the call, for a person.
func (c *Call) outcome() string {
	switch {
	case c.Outcome == ledger.Unknown && !c.written:
		return "unknown: it was announced, and no outcome was written"
	case c.Outcome == ledger.Refused:
		return join(": ", "refused, not sent", Shown(c.Error))
	case c.Outcome == Open:
		return "open: it was not sent"
	}
	text := fmt.Sprintf("%s in %s, %s sent", Shown(c.Outcome), span(c.Duration), number(c.Sent, "byte"))
	text += ", " + number(c.Received, "byte") + " received"
	return join(": ", text, Shown(c.Error))
}
