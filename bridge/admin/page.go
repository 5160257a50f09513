package admin

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/wording"
)

// assets are the page: its templates, and what /assets/ serves.
//
//go:embed assets
var assets embed.FS

// pageScripts are the page's scripts, in loading order: each depends on those before
// it, and the last one starts the page.
var pageScripts = []string{"base.js", "reading.js", "json.js", "list.js", "request.js", "events.js", "tabs.js", "login.js", "accounts.js", "page.js"}

// served has the types of the assets that the page loads, by their names' ends.
var served = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"scripts":      func() []string { return pageScripts },
	"upper":        strings.ToUpper,
	"join":         func(lines []string) string { return strings.Join(lines, "\n") },
	"brief":        brief,
	"millis":       time.Time.UnixMilli,
	"stamp":        func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"shown":        canon.Escape,
	"count":        canon.Counted,
	"pretty":       pretty,
	"mark":         diffMark,
	"event":        func(e ledger.Event) string { return strings.ReplaceAll(string(e), "_", " ") },
	"needsReading": needsReading,
	"fold":         func(all []wording.Field, whole bool) shownFields { return shownFields{all, whole} },
	"lines":        func(text string) []string { return strings.Split(text, "\n") },
	"parts":        partsOf,
	"head":         func(lines []string) string { return strings.Join(lines[:min(len(lines), headLines)], "\n") },
	"long":         func(lines []string) bool { return len(lines) > openLines },
}).ParseFS(assets, "assets/*.html"))

// A value of more than openLines lines is collapsed to its first headLines.
const (
	openLines = 12
	headLines = 4
)

// shownFields are arguments as the page shows them: Whole says that nothing is
// collapsed.
type shownFields struct {
	Fields []wording.Field
	Whole  bool
}

// A frame is what every page has, with its content.
type frame struct {
	Title         string
	Tab           string
	Who           *caller // nil for nobody
	Open          int     // requests that wait
	ConfigPending bool    // a pending configuration waits
	Other         bool    // there is single sign-on
	Accounts      bool    // people have accounts of their own
	Now           time.Time
	Body          any
}

// May reports whether the person at the page may do something.
func (f frame) May(verb string) bool { return f.Who != nil && f.Who.May(approval.Verb(verb)) }

// pages renders what people see.
type pages struct{ *Site }

// render writes a page. It is built whole before anything of it is sent.
func (s pages) render(w http.ResponseWriter, status int, name string, f frame) {
	f.Now, f.Other, f.Accounts = s.o.Now(), s.o.SignOn != nil, s.o.Accounts != nil && s.o.Accounts.Any()
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, name, f); err != nil {
		s.o.Logger.Error("rendering a page", "page", name, "err", err)
		http.Error(w, "the page could not be made: see the bridge's log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write(page.Bytes()) // whoever does not read it has gone
}

// tab renders a tab for somebody who is signed in.
func (s pages) tab(who *caller, w http.ResponseWriter, r *http.Request, name, title string, body any) error {
	open, err := s.pending(r.Context())
	if err != nil {
		return err
	}
	return s.renderTab(who, w, r, frame{Title: title, Tab: name, Open: len(open), Body: body})
}

// renderTab renders the tab that a frame names, with what every tab shows.
func (s pages) renderTab(who *caller, w http.ResponseWriter, r *http.Request, f frame) error {
	held, err := s.pendingConfig(r.Context(), who)
	if err != nil {
		return err
	}
	f.Who, f.ConfigPending = who, held != nil
	s.render(w, http.StatusOK, f.Tab, f)
	return nil
}

func (s pages) loginPage(_ *caller, w http.ResponseWriter, _ *http.Request) error {
	s.render(w, http.StatusOK, "login", frame{Title: "Sign in"})
	return nil
}

func (s pages) asset(_ *caller, w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	kind, ok := served[path.Ext(name)]
	if !ok {
		return ErrUnknown
	}
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		return ErrUnknown
	}
	w.Header().Set("Content-Type", kind)
	w.Write(text)
	return nil
}

// A detail is one request with what only its page shows.
type detail struct {
	Request
	May   func(string) bool
	Name  string // the tool's raw name, which is typed where that is needed
	Text  string // the arguments as JSON, for editing
	Raw   []string
	Table *table // of several calls
	// Script is what the model wrote, if the records have it.
	Script []scriptLine
	Wait   int64 // milliseconds before an approval is accepted
	// Whole reports whether an approval is accepted only after all arguments were visible.
	Whole bool
	// Wide are the yeses that cover more, Noes the no that refuses more.
	Wide, Noes []approval.Choice
}

// Over reports whether the request can no longer be answered.
func (d *detail) Over() bool { return d.Status != "pending" }

// RiskReason is why the risk is high; empty if it is not, or nobody says.
func (d *detail) RiskReason() string {
	_, why, _ := strings.Cut(d.RiskWhy, strings.ToUpper(d.Risk)+": ")
	return why
}

// Heading asks, or says in a sentence what became of the question.
func (d *detail) Heading() string {
	n := len(d.Description.Calls)
	if !d.Over() {
		return d.Headline
	}
	calls := "the call of " + d.Tool
	if n > 1 {
		calls = fmt.Sprintf("the %d calls of %s", n, d.Tool)
	}
	switch allowed := len(d.Allowed()); {
	case d.Status == "timeout":
		return "Not answered in time, so not sent: " + calls
	case allowed == 0:
		return "Not sent: " + calls
	case allowed < n:
		return fmt.Sprintf("Allowed: %d of %s", allowed, calls)
	}
	return "Allowed: " + calls
}

// Allowed are the numbers of the approved calls.
func (d *detail) Allowed() []int {
	v := d.Verdict
	if v == nil || !v.Approve {
		return nil
	}
	var all []int
	for _, c := range d.Description.Calls {
		if v.Rows == nil || slices.Contains(v.Rows, c.Number) {
			all = append(all, c.Number)
		}
	}
	return all
}

// Outcome returns what became of one call, as far as it is known.
func (d *detail) Outcome(call int) ledger.CallOutcome {
	for _, c := range d.Calls {
		if c.Call == call {
			return c
		}
	}
	if slices.Contains(d.Allowed(), call) {
		return ledger.CallOutcome{Call: call, State: "allowed"} // no record says more
	}
	return ledger.CallOutcome{Call: call, State: ledger.Refused}
}

type scriptLine struct {
	Number int
	Text   string
	Here   bool // a call of the request stands there
}

// A table shows several calls side by side.
type table struct {
	Names []string
	Rows  []tableRow
}

type tableRow struct {
	Call  wording.DescribedCall
	Cells []cell
	// Rest reports whether the cells leave out part of the call.
	Rest bool
}

type cell struct{ Name, Value string }

const maxColumns = 5

func tableOf(calls []wording.DescribedCall) *table {
	t := &table{}
	for _, c := range calls {
		for _, f := range c.Fields {
			if !slices.Contains(t.Names, f.Name) && len(t.Names) < maxColumns {
				t.Names = append(t.Names, f.Name)
			}
		}
	}
	for _, c := range calls {
		row := tableRow{Call: c}
		for _, name := range t.Names {
			row.Cells = append(row.Cells, cell{Name: name})
		}
		for _, f := range c.Fields {
			if i := slices.Index(t.Names, f.Name); i >= 0 {
				row.Cells[i].Value = brief(f)
				row.Rest = row.Rest || !short(f)
			} else {
				row.Rest = true
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// brief returns a value for a cell: as it is, or its size.
func brief(f wording.Field) string {
	if short(f) {
		return f.Lines[0]
	}
	return fmt.Sprintf("%s, %s", canon.Counted(f.Characters, "character"), canon.Counted(len(f.Lines), "line"))
}

// short reports whether a cell shows a value as it is.
func short(f wording.Field) bool { return len(f.Lines) == 1 && f.Characters <= 80 }

// pretty indents JSON that is shown.
func pretty(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

// hiddenPart matches what stands in a value for a hidden part. An argument's own text
// that looks like it is escaped.
var hiddenPart = regexp.MustCompile(`\[hidden(?::[^\]\n]*)?\]`)

// A part is a part of a value as the page shows it.
type part struct {
	Text   string
	Hidden bool // Text says what is hidden here
}

// partsOf sets what stands for hidden parts of a value apart from the rest.
func partsOf(text string) []part {
	var parts []part
	at := 0
	for _, m := range hiddenPart.FindAllStringIndex(text, -1) {
		parts = append(parts, part{Text: text[at:m[0]]}, part{strings.Trim(text[m[0]:m[1]], "[]"), true})
		at = m[1]
	}
	return append(parts, part{Text: text[at:]})
}

// capitalized makes a sentence of words of ours.
func capitalized(words string) string {
	if words == "" {
		return ""
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// diffMark is the class of a line of a difference.
func diffMark(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return "plus"
	case strings.HasPrefix(line, "-"):
		return "minus"
	case strings.HasPrefix(line, "@"):
		return "part"
	case strings.HasPrefix(line, "!"):
		return "remark"
	}
	return "same"
}

// readTime returns how long a request of a risk is on the page before an approval is
// accepted: long enough that no click or key meant for something else approves it.
func readTime(r Request) int64 {
	if critical(r) {
		return 2000
	}
	return 500
}

func (s pages) detailOf(ctx context.Context, who *caller, r Request, e approval.StoredRequest) (*detail, error) {
	d := &detail{Request: r, May: func(verb string) bool { return who.May(approval.Verb(verb)) },
		Name: canon.Escape(e.Tool), Wait: readTime(r), Whole: needsReading(r)}
	for _, c := range e.Choices(true) {
		switch {
		case c.Forget, c.Scope == approval.RunScope, c.Scope == approval.SessionScope:
			d.Wide = append(d.Wide, c)
		case c.NoMore:
			d.Noes = append(d.Noes, c)
		}
	}
	for _, i := range e.Items {
		d.Raw = append(d.Raw, pretty(i.Shown.JSON))
	}
	if len(e.Items) > 1 {
		d.Table = tableOf(r.Description.Calls)
	}
	if r.Editable {
		d.Text = d.Raw[0]
	}
	if s.o.Records == nil {
		return d, nil
	}
	for row, err := range s.o.Records.Rows(ctx, ledger.Query{Runs: []string{e.Run}, Events: []ledger.Event{ledger.RunStarted}, Limit: 1}) {
		if err != nil {
			return nil, fmt.Errorf("reading the script of run %s: %w", canon.Escape(e.Run), err)
		}
		if row.Record.Script == "" {
			break
		}
		for i, text := range strings.Split(canon.EscapeLines(row.Record.Script), "\n") {
			here := slices.ContainsFunc(e.Items, func(item approval.Item) bool { return item.Position.Line == i+1 })
			d.Script = append(d.Script, scriptLine{i + 1, text, here})
		}
	}
	return d, nil
}

// mostUrgent orders requests by their deadline to the minute, then by risk, then by
// age.
func mostUrgent(a, b approval.StoredRequest) int {
	return cmp.Or(a.Until.Truncate(time.Minute).Compare(b.Until.Truncate(time.Minute)), cmp.Compare(b.Decision.Risk, a.Decision.Risk), a.Asked.Compare(b.Asked))
}

func (s pages) pendingPage(who *caller, w http.ResponseWriter, r *http.Request) error {
	entries, err := s.pending(r.Context())
	if err != nil {
		return err
	}
	var body struct {
		List   []Request
		Detail *detail // of the first
	}
	slices.SortStableFunc(entries, mostUrgent)
	for _, e := range entries {
		one := s.requestFor(who, e)
		one.Identical = identical(e, entries)
		body.List = append(body.List, one)
	}
	if len(entries) > 0 {
		if body.Detail, err = s.detailOf(r.Context(), who, body.List[0], entries[0]); err != nil {
			return err
		}
	}
	return s.renderTab(who, w, r, frame{Title: "Pending", Tab: "pending", Open: len(entries), Body: body})
}

func (s pages) requestPage(who *caller, w http.ResponseWriter, r *http.Request) error {
	shown, e, err := s.fullRequest(who, r)
	if err != nil {
		return err
	}
	d, err := s.detailOf(r.Context(), who, shown, e)
	if err != nil {
		return err
	}
	return s.tab(who, w, r, "request", d.Heading(), d)
}

func (s pages) runsPage(who *caller, w http.ResponseWriter, r *http.Request) error {
	return s.tab(who, w, r, "runs", "Runs", s.runs(r.Context()))
}

func (s pages) grantsPage(who *caller, w http.ResponseWriter, r *http.Request) error {
	all, err := s.grants(r.Context())
	if err != nil {
		return err
	}
	return s.tab(who, w, r, "grants", "Grants", all)
}

// statusShown is a status as the page shows it: the servers, and the rest as JSON.
type statusShown struct {
	Servers []struct {
		Name  string `json:"name"`
		State string `json:"state"`
		Why   string `json:"why"`
		Tools int    `json:"tools"`
	} `json:"servers"`
	Config        string `json:"config_problem"`
	ConfigPending string `json:"config_held"`
	Audit         string `json:"audit_problem"`
	All           json.RawMessage
}

func (s pages) serversPage(who *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Status == nil {
		return missing("status")
	}
	text, err := json.Marshal(s.o.Status(r.Context()))
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	shown := statusShown{All: text}
	if err := json.Unmarshal(text, &shown); err != nil {
		return fmt.Errorf("reading the status: %w", err)
	}
	return s.tab(who, w, r, "servers", "Servers", shown)
}

func (s pages) profilesPage(who *caller, w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Profiles      []Profile
		Source        *Source
		Sessions      []Session
		PendingConfig *PendingConfig
	}
	var err error
	if body.PendingConfig, err = s.pendingConfig(r.Context(), who); err != nil {
		return err
	}
	if body.Profiles, body.Source, err = s.policy(who, r.Context()); err != nil {
		return err
	}
	if s.o.Sessions != nil {
		body.Sessions = s.o.Sessions.List()
	}
	return s.tab(who, w, r, "profiles", "Profiles", body)
}
