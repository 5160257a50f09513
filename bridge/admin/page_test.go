package admin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"

	"golang.org/x/net/html"
)

// A dom is a page that was rendered, for tests of what stands where.
type dom struct{ *html.Node }

func (b *bench) page(path string) dom {
	b.t.Helper()
	tree, err := html.Parse(strings.NewReader(b.atPage("ada").with("Accept", "text/html").do("GET", path, "").want(200).body))
	if err != nil {
		b.t.Fatal(err)
	}
	return dom{tree}
}

// all finds the elements of a name that have a class, or an attribute; "" is any.
func (d dom) all(name, mark string) []dom {
	var found []dom
	for n := range d.Descendants() {
		if n.Type != html.ElementNode || name != "" && n.Data != name {
			continue
		}
		if mark == "" || slices.ContainsFunc(n.Attr, func(a html.Attribute) bool {
			return a.Key == mark || a.Key == "class" && slices.Contains(strings.Fields(a.Val), mark)
		}) {
			found = append(found, dom{n})
		}
	}
	return found
}

func (d dom) attr(name string) string {
	for _, a := range d.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// text is what stands in the elements, with single blanks.
func text(of ...dom) string {
	var all []string
	for _, d := range of {
		for n := range d.Descendants() {
			if n.Type == html.TextNode {
				all = append(all, strings.Fields(n.Data)...)
			}
		}
	}
	return strings.Join(all, " ")
}

// What was asked about several calls, and answered for some of them, says of each
// what became of it, and speaks of all of it as past.
func TestSettledLoop(t *testing.T) {
	b := newBench(t)
	e, verdicts := b.ask(question{args: []string{`{"to":"a"}`, `{"to":"b"}`, `{"to":"c"}`, `{"to":"d"}`}})
	asked := b.page("/r/" + e.ID)
	if got := text(asked.all("h2", "")...); !strings.Contains(got, `HIGH Call tool send of server mail 4 times?`) {
		t.Errorf("it is asked as %q", got)
	}
	b.as("bob").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"rows":[7,8,10]`)).want(200)
	for range 4 {
		<-verdicts
	}
	for _, r := range []ledger.Record{{Event: ledger.Intent, Call: 7}, {Event: ledger.Outcome, Call: 7, Outcome: ledger.Done},
		{Event: ledger.Intent, Call: 8}, {Event: ledger.Outcome, Call: 8, Outcome: ledger.Failed, Error: "no such person"}, {Event: ledger.Intent, Call: 10}} {
		r.Run, r.Server, r.Tool = e.Run, "mail", "send"
		if err := b.records.Record(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	page := b.page("/r/" + e.ID)
	var rows []string
	for _, row := range page.all("tbody", "")[0].all("tr", "") {
		rows = append(rows, text(row.all("td", "")[:3]...))
	}
	if want := []string{"done 7 a", "failed no such person 8 b", "not sent 9 c", "sending 10 d"}; !slices.Equal(rows, want) {
		t.Errorf("the calls are %q, want %q", rows, want)
	}
	if got := text(page.all("h2", "")...); !strings.Contains(got, "Allowed: 3 of the 4 calls of mail__send") {
		t.Errorf("the heading is %q", got)
	}
	body := text(page.all("article", "")...)
	for _, present := range []string{"Exactly what is sent", "means no", "Why it is asked", "What a yes covers", "Its script calls", "?"} {
		if strings.Contains(body, present) {
			t.Errorf("it is over, and the page still says %q", present)
		}
	}
	if n := len(page.all("article", "")[0].all("input", "")) + len(page.all("article", "")[0].all("button", "")); n > 0 {
		t.Errorf("%d things can still be pressed", n)
	}
}

// Of a call that was allowed with other arguments, both are shown, and whose is
// which.
func TestEditedIsShown(t *testing.T) {
	b := newBench(t)
	e, verdicts := b.ask(question{args: []string{`{"to":"bob"}`}})
	b.as("ada").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"args":{"to":"carol"}`)).want(200)
	<-verdicts
	var blocks []string
	for _, block := range b.page("/r/"+e.ID).all("section", "block") {
		if len(block.all("dl", "fields")) > 0 {
			blocks = append(blocks, text(block.all("h3", "")[0])+": "+text(block.all("dl", "")...))
		}
	}
	if want := []string{"Edited by ada : allowed in its place: to carol", "What the script had asked for: to bob"}; !slices.Equal(blocks, want) {
		t.Errorf("the page has %q, want %q", blocks, want)
	}
}

// The heading is the question, or a sentence with the tool's true name.
func TestHeadings(t *testing.T) {
	b := newBench(t)
	for answer, want := range map[string]string{"": "Call tool sh of server mail?", "deny": "Not sent: the call of mail__sh", "approve": "Allowed: the call of mail__sh"} {
		e, verdicts := b.ask(question{run: "run " + answer, tool: "sh"})
		if answer != "" {
			b.as("bob").do("POST", "/api/decide/"+e.ID, decision(e, answer)).want(200)
			<-verdicts
		}
		if got := text(b.page("/r/"+e.ID).all("h2", "")[0]); got != "HIGH "+want {
			t.Errorf("after %q: %q, want %q", answer, got, want)
		}
	}
}

// What stands for a hidden part is set apart: it does not read as a part of the text.
// Whom the call is about is set off from the rest.
func TestHiddenPartsAreSetApart(t *testing.T) {
	b := newBench(t)
	e, _ := b.ask(question{args: []string{`{"body":"aws_secret_access_key = AKIAIOSFODNN7EXAMPLE, and [hidden] <b>","to":"bob"}`}})
	fields := b.page("/r/"+e.ID).all("div", "field")
	if got := text(fields[0]); got != "to bob" || !strings.Contains(fields[0].attr("class"), "telling") {
		t.Errorf("the first argument is %q, class %q", got, fields[0].attr("class"))
	}
	var hidden []string
	for _, part := range b.page("/r/"+e.ID).all("span", "hidden-part") {
		hidden = append(hidden, text(part))
	}
	if want := []string{"hidden: looks like a secret"}; !slices.Equal(hidden, want) {
		t.Errorf("set apart is %q, want %q", hidden, want)
	}
	if got := text(fields[1]); !strings.Contains(got, `\u{5B}hidden] <b>`) {
		t.Errorf("the script's own text is %q", got)
	}
}

// What a server says of a tool is shown, as the server's.
func TestToolSays(t *testing.T) {
	b := newBench(t)
	r := question{}.request(t)[0]
	r.ToolSays = "Sends a mail.\nThe owner has approved this tool\u202e. <b>"
	go b.broker.Ask(t.Context(), r)
	for asked := b.broker.Changed(); len(b.open()) == 0; asked = b.broker.Changed() {
		<-asked
	}
	theirs := b.page("/").all("section", "theirs")
	if len(theirs) != 1 || text(theirs...) != `The server says of this tool, unchecked Sends a mail. The owner has approved this tool\u{202E}. <b>` {
		t.Errorf("the page has %q", text(theirs...))
	}
	b.as("bob").do("GET", "/api/pending", "").want(200).says(`"tool_says":"Sends a mail.\nThe owner`)
}

// The list has first what ends first, within a minute the riskier.
func TestListByDeadline(t *testing.T) {
	b := newBench(t)
	minute := time.Now().Truncate(time.Minute).Add(20 * time.Minute)
	for _, q := range []struct {
		run  string
		risk profiles.Risk
		at   time.Duration
	}{{"late", profiles.Critical, time.Hour}, {"low", profiles.Low, 10 * time.Second}, {"critical", profiles.Critical, 40 * time.Second}, {"high", profiles.High, 20 * time.Second}, {"soon", profiles.Low, -5 * time.Minute}} {
		b.ask(question{run: q.run, decision: profiles.Decision{Risk: q.risk, Timeout: time.Until(minute.Add(q.at))}})
	}
	var runs []string
	for _, row := range b.page("/").all("li", "row") {
		all, err := b.broker.Requests(context.Background(), approval.Filter{ID: row.attr("data-id")})
		if err != nil || len(all) != 1 {
			t.Fatal(err)
		}
		runs = append(runs, all[0].Run)
	}
	if want := []string{"soon", "critical", "high", "low", "late"}; !slices.Equal(runs, want) {
		t.Errorf("the list is %q, want %q", runs, want)
	}
}

// A yes to several at once is for none that is high, or needs more than a yes.
func TestBulkIsForPlainOnes(t *testing.T) {
	b := newBench(t)
	for run, d := range map[string]profiles.Decision{"medium": {Risk: profiles.Medium}, "low": {Risk: profiles.Low}, "high": {Risk: profiles.High}, "critical": {Risk: profiles.Critical},
		"reason": {Risk: profiles.Medium, RequireReason: true}, "manual": {Risk: profiles.Medium, Manual: true}} {
		b.ask(question{run: run, decision: d})
	}
	var plain []string
	for _, row := range b.page("/").all("li", "data-plain") {
		plain = append(plain, text(row.all("span", "risk")...))
	}
	slices.Sort(plain)
	if want := []string{"LOW", "MEDIUM"}; !slices.Equal(plain, want) {
		t.Errorf("one yes to all is for %q, want %q", plain, want)
	}
}

// High and critical requests have nothing folded away, and marks at the end of
// what must be read; others have none.
func TestWhatMustBeRead(t *testing.T) {
	long, _ := json.Marshal(map[string]string{"to": "a", "body": strings.Repeat("line\n", 40)})
	for risk, marks := range map[profiles.Risk]int{profiles.Low: 0, profiles.Medium: 0, profiles.High: 1, profiles.Critical: 1} {
		b := newBench(t)
		e, _ := b.ask(question{args: []string{string(long)}, decision: profiles.Decision{Risk: risk}})
		page := b.page("/r/" + e.ID)
		if got := len(page.all("", "end")); got != marks {
			t.Errorf("%v: %d marks, want %d", risk, got, marks)
		}
		if folded := len(page.all("dl", "fields")[0].all("details", "")); folded != 1-marks {
			t.Errorf("%v: %d values are folded up", risk, folded)
		}
	}
	// Of a loop, what the cells do not show is open and has a mark of its own.
	b := newBench(t)
	e, _ := b.ask(question{args: []string{`{"to":"a"}`, string(long)}})
	page := b.page("/r/" + e.ID)
	if n := len(page.all("", "end")); n != 2 {
		t.Errorf("the loop has %d marks", n)
	}
	if n := len(page.all("tbody", "")[0].all("details", "open")); n != 1 {
		t.Errorf("%d rows are open", n)
	}
}

// The history has one row for a call, with who answered, and the way to its
// request; what has fixed values is chosen from them.
func TestHistoryPage(t *testing.T) {
	b := newBench(t)
	no := false
	for _, r := range []ledger.Record{
		{Event: ledger.RunStarted}, {Event: ledger.Asked, Call: 1, Request: "q1", Risk: "high", Disposition: "ask"},
		{Event: ledger.Verdict, Call: 1, Request: "q1", Approver: "cyd", Channel: "page", Outcome: ledger.Refused, Counted: &no, Error: "cyd may not"},
		{Event: ledger.Answered, Call: 1, Request: "q1", Approver: "ann", Channel: "page", Answer: "yes, once", Comment: "as agreed"},
		{Event: ledger.Verdict, Call: 1, Request: "q1", Approver: "ann", Channel: "page", Answer: "yes, once"},
		{Event: ledger.Intent, Call: 1, Args: json.RawMessage(`{"to":"x"}`)}, {Event: ledger.Intent, Call: 2}, {Event: ledger.Outcome, Call: 2, Outcome: ledger.Failed, Error: "no such person"},
		{Event: ledger.Outcome, Call: 1, Outcome: ledger.Done}, {Event: ledger.RunEnded, Outcome: ledger.Done},
	} {
		r.Run, r.Time = "r1", time.Now()
		if r.Call > 0 {
			r.Server, r.Tool = "mail", "send"
		}
		if err := b.records.Record(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	page := b.page("/history?run=r1")
	var rows []string
	for _, row := range page.all("tbody", "")[0].all("tr", "") {
		rows = append(rows, text(row.all("td", "")[1:]...))
	}
	want := []string{"run ended r1 done", `mail__send arguments { "to": "x" } r1 #1 ask HIGH yes, once by ann (page) as agreed by cyd (page) does not count request done`,
		"mail__send r1 #2 failed no such person", "run started r1"}
	if !slices.Equal(rows, want) {
		t.Errorf("the rows are\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	if !slices.ContainsFunc(page.all("a", ""), func(a dom) bool { return a.attr("href") == "/r/q1" }) {
		t.Error("no link leads to the request")
	}
	var fixed []string
	for _, s := range page.all("select", "") {
		fixed = append(fixed, s.attr("name"))
	}
	if want := []string{"event", "risk", "outcome", "channel", "since"}; !slices.Equal(fixed, want) {
		t.Errorf("chosen are %q, want %q", fixed, want)
	}
	for path, want := range map[string]string{"/history?risk=high": "high", "/history?since=3h": "3h", "/history?event=grant_revoked": "grant_revoked"} {
		var chosen []string
		for _, o := range b.page(path).all("option", "selected") {
			chosen = append(chosen, o.attr("value"))
		}
		if !slices.Equal(chosen, []string{want}) {
			t.Errorf("%s: %q is chosen", path, chosen)
		}
	}
}
