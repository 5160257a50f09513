package wording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// A Description is a request in words, which every channel shows in its own
// way. [Describe] makes it, only from the frozen calls.
//
// Its strings are inert plain text: each is one line of visible characters, in
// which everything from outside has passed [canon.Escape] or [canon.Display].
// They are not markup: a page must still escape them. Text that a model wrote
// is in Model and nowhere else.
type Description struct {
	// DidNotCount says what an earlier answer lacked, if that is why the question
	// is put again.
	DidNotCount string `json:"did_not_count,omitempty"`
	// Headline is the question: what will be done, and to what or whom.
	Headline string `json:"headline"`
	// Facts are sentences about where that is: "It is in your workspace."
	Facts []string `json:"facts,omitempty"`
	// Summary is one line for a list of requests.
	Summary string `json:"summary"`
	// Own reports that Summary came from [approval.Options.Summarise], not from [Summary].
	Own bool `json:"own_summary,omitempty"`
	// Tool is server__tool, as policy matches it; of several tools, all of them.
	Tool   string `json:"tool"`
	Server string `json:"server"` // or all servers
	// ToolSays is the server's unchecked description of the tool, or of the first
	// of several: the one string here that may have several lines.
	ToolSays string `json:"tool_says,omitempty"`
	// Difference is how the tool's definition differs from the accepted one, line
	// by line.
	Difference []string `json:"difference,omitempty"`
	// Risk is low, medium, high or critical, and RiskSays what that means.
	Risk     string `json:"risk"`
	RiskSays string `json:"risk_says"`
	// RiskWhy names a high risk with its reason: "HIGH: it runs code." It is empty
	// for a lower one.
	RiskWhy string `json:"risk_why,omitempty"`
	// Box says what the system keeps the programs of the servers to: "confined to
	// /home/me/app, no network", "not confined"; of several servers, whose it is. It is
	// empty if all of them run elsewhere.
	Box string `json:"box,omitempty"`
	// Calls are what will be sent, in the order the calls were made.
	Calls []DescribedCall `json:"calls"`
	// Warnings are what a person should notice before anything else: bytes
	// that the run has read elsewhere, hosts that look like others, unseen
	// characters, values that are hidden or cut.
	Warnings []string `json:"warnings,omitempty"`
	// Why are the reasons for asking, the strictest first, and Rule is the rule
	// that asked.
	Why  []string `json:"why"`
	Rule string   `json:"rule"`
	Terms
	Origin
	// Model is what a model wrote, unchecked.
	Model ScriptPreview `json:"model"`
	// At is where an approver can read the whole request and answer it.
	At string `json:"at,omitempty"`
	// Whole is where the whole request can be read if At is empty.
	Whole string `json:"whole,omitempty"`

	said    phrases
	silence string // when no answer is a no, in a dialog
}

// Terms say what an answer means.
type Terms struct {
	// Covers is what an approval covers, and Needs what else it takes.
	Covers string   `json:"covers"`
	Needs  []string `json:"needs,omitempty"`
	// Next says what is known of the calls and questions that come next; empty if
	// nothing is.
	Next string `json:"next,omitempty"`
	// Spent is as in [approval.Number]: the answer may say how to go on.
	Spent int `json:"spent,omitempty"`
	// Missing says which approvals there are and which are still needed, if one is
	// not enough.
	Missing string `json:"missing,omitempty"`
	// Checks are the safety checks between approval and sending.
	Checks []string `json:"checks,omitempty"`
	// Until is the clock time at which silence becomes a denial.
	Until string `json:"until"`
}

// An Origin says which run makes the calls, and for whom.
type Origin struct {
	Run string `json:"run"`
	// Done counts the calls that the run had already sent.
	Done int `json:"done"`
	// Configuration names the configuration that asks; its approvers answer.
	Configuration string `json:"configuration,omitempty"`
	// Folder is the working directory of servers that have none of their own.
	Folder    string `json:"folder,omitempty"`
	Client    string `json:"client,omitempty"`    // as it calls itself
	Requester string `json:"requester,omitempty"` // the name of its token
}

// phrases are the parts of a description that are our own sentences with other
// people's words in them.
type phrases struct {
	warnings, needs, facts []phrase
	question, risk         phrase
	rule                   string // the reason that asked, in a sentence; empty if it says nothing
	rows                   []row
	items                  []approval.Item // what Calls describes
	same                   []Field         // what all rows have
}

// A ScriptPreview is what a model wrote; none of it was checked.
type ScriptPreview struct {
	// Calls are what could be read from the script, as "fs__read x2 in a loop".
	Calls []string `json:"calls,omitempty"`
	// Sites are the same calls one by one.
	Sites []analysis.CallSite `json:"sites,omitempty"`
	// Truncated reports that there are more than are listed.
	Truncated bool `json:"truncated,omitempty"`
	// Says is the model summary of long arguments, if there is one.
	Says string `json:"says,omitempty"`

	said []phrase // Calls, but those that are asked about
}

// DescribeOptions are what a description needs besides the request. The zero
// value is useful.
type DescribeOptions struct {
	// At is where an approver can answer this request, such as the address of its
	// page; empty if there is no such place.
	At string
	// Whole is how to read the whole request if At is empty, such as a command.
	Whole string
	// DidNotCount says in our own words what an earlier answer lacked, if that is
	// why the question is put again.
	DidNotCount string
	// Votes are the approvals so far, as in [approval.StoredRequest.Votes].
	Votes []approval.Verdict
	// Zone is the time zone of clock times; nil means time.Local.
	Zone *time.Location
}

// riskSays has one sentence for each risk.
var riskSays = map[profiles.Risk]string{
	profiles.Low:      "Low: little harm is expected of it, or none.",
	profiles.Medium:   "Medium: it may change something, or reach beyond this machine.",
	profiles.High:     "High: it may change, delete or send what matters to you.",
	profiles.Critical: "Critical: it may do harm that nobody can undo. Read all of it.",
}

// Describe puts a request into words.
func Describe(r approval.Request, o DescribeOptions) Description {
	d := Description{
		Tool: canon.Escape(strings.Join(r.Paths(), ", ")), Server: canon.Escape(strings.Join(r.Servers(), ", ")), ToolSays: canon.EscapeLines(r.ToolSays),
		Risk: r.Decision.Risk.String(), RiskSays: riskSays[r.Decision.Risk],
		Difference: r.Difference, // made visible by whoever compared
		Terms:      Terms{Covers: covers(r), Next: comesNext(r), Spent: r.Spent, Missing: (&approval.StoredRequest{Request: r, Votes: o.Votes}).Missing(), Until: Clock(r.Until, r.Asked, o.Zone)},
		Origin: Origin{Run: canon.Escape(r.Run), Done: r.Done, Configuration: canon.Escape(r.Configuration), Folder: canon.Escape(r.Folder),
			Client: canon.Escape(r.Client), Requester: canon.Escape(r.Requester)},
		At: canon.Escape(o.At), Whole: canon.Escape(o.Whole), DidNotCount: canon.Escape(o.DidNotCount),
	}
	d.silence = silence(r.Until, r.Asked, o.Zone)
	d.said.needs = needs(r)
	d.Model = previewOf(r)
	for _, c := range r.Checks {
		d.Checks = append(d.Checks, canon.Escape(c))
	}
	d.Model.Says = canon.Escape(strings.Join(strings.Fields(r.Says), " "))
	d.because(r)
	several := len(r.Paths()) > 1
	d.said.items = r.Calls()
	for _, i := range d.said.items {
		call := describeCall(i, i.Decision.Hidden)
		if several {
			call.Tool = canon.Escape(i.Path())
		}
		d.Calls = append(d.Calls, call)
	}
	d.Box = boxOf(r.Calls())
	d.ask(r)
	d.said.warnings = warnings(d.Calls)
	d.Warnings, d.Needs = plains(d.said.warnings), plains(d.said.needs)
	d.Summary, d.Own = canon.Escape(r.Summary), r.Summary != ""
	if !d.Own {
		d.Summary = Summary(r)
	}
	return d
}

// because says why r is asked: for a page, all of the reasons.
func (d *Description) because(r approval.Request) {
	named := false // the profile
	for i, reason := range reasons(r) {
		text := canon.Escape(reason.String())
		if i == 0 && reason.Kind != profiles.KindRisk {
			d.Rule = text
		}
		said := saidPlainly(r, reason)
		named = named || said != "" || reason.Profile == r.Decision.Profile
		text = cmp.Or(said, text)
		if reason.Kind == profiles.KindRule && reason.Risk == r.Decision.Risk && !guessedDifferently(r, reason.Rule) {
			text += ", risk " + d.Risk
		}
		d.Why = append(d.Why, text)
	}
	if p := r.Decision.Profile; p != "" && !named {
		d.Why = append(d.Why, "profile "+canon.Escape(p))
	}
}

// saidPlainly is the sentence of a dialog about a reason of ours that asks: no rule of
// the person's own names it. It is empty for any other reason.
func saidPlainly(r approval.Request, reason profiles.Reason) string {
	ofOurs := reason.Kind == profiles.KindRule && strings.HasPrefix(reason.Profile, profiles.BuiltinPrefix)
	if reason.Disposition != profiles.Ask || reason.Kind != profiles.KindDefault && !ofOurs {
		return ""
	}
	who, _ := asking(r, reason)
	return cmp.Or(askedBy(r, reason), who+" asks before calls that may do harm")
}

// longCall is the number of bytes of arguments from which on hardly anybody
// reads them to the end in a dialog.
const longCall = 600

// Long reports whether the calls have arguments so long that a summary of
// them helps.
func (d Description) Long() bool {
	n := 0
	for _, c := range d.Calls {
		for _, f := range c.Fields {
			for _, line := range f.Lines {
				n += len(line)
			}
		}
	}
	return n >= longCall
}

// OwnChecks are the checks before sending that a rule has: the others are the same
// for every call.
func (d Description) OwnChecks() []string {
	return slices.DeleteFunc(slices.Clone(d.Checks), func(check string) bool {
		return slices.Contains([]string{"arguments", "tool unchanged", "policy unchanged"}, check)
	})
}

// Plain returns the arguments of the calls as plain text.
func (d Description) Plain() string {
	var text strings.Builder
	for _, c := range d.Calls {
		fmt.Fprintf(&text, "Call %d of %s\n", c.Number, d.Tool)
		for _, f := range c.Fields {
			fmt.Fprintf(&text, "%s: %s\n", f.Name, strings.Join(f.Lines, "\n  "))
		}
	}
	return text.String()
}

// nameWords splits a name at camel-case humps and at anything that is not a
// letter or digit. A name that is not plain has no words: text that looks like
// something else does not belong in a headline.
func nameWords(name string) []string {
	var words []string
	var word []byte
	end := func() {
		if len(word) > 0 {
			words, word = append(words, string(word)), nil
		}
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 0x80, c < ' ':
			return nil
		case 'A' <= c && c <= 'Z' && i > 0 && 'a' <= name[i-1] && name[i-1] <= 'z':
			end()
			word = append(word, c)
		case 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9':
			word = append(word, c)
		default:
			end()
		}
	}
	end()
	return words
}

// Summary returns one line about a request, for a list: the tool and its most
// telling argument, with the amount if it has one. [approval.Options.Summarise] can
// replace it.
func Summary(r approval.Request) string {
	if len(r.Items) == 0 {
		return canon.Escape(r.Tool)
	}
	text := canon.Escape(strings.Join(r.Paths(), ", "))
	if n := len(r.Items); n > 1 {
		return fmt.Sprintf("%s, %d calls", text, n)
	}
	item := r.Calls()[0]
	fields := describeCall(item, item.Decision.Hidden).Fields
	says := func(f Field) bool { return f.Text && f.Hidden == 0 }
	telling := slices.IndexFunc(fields, func(f Field) bool { return says(f) && f.Role != "" && f.Role != "amount" })
	if telling < 0 {
		telling = slices.IndexFunc(fields, func(f Field) bool { return says(f) && len(f.Lines) == 1 })
	}
	if telling >= 0 {
		text += " " + clipShare(fields[telling].oneLine(), 60, fields[telling].endShare())
	}
	much := slices.IndexFunc(fields, func(f Field) bool {
		return f.Hidden == 0 && len(f.Lines) == 1 && (f.Text || !strings.ContainsAny(f.Lines[0], "[{")) && f.Role == "amount"
	})
	if much >= 0 && much != telling {
		text += ", " + fields[much].Name + " " + clipMiddle(fields[much].oneLine(), 20)
	}
	return text
}

// reasons returns why r is asked and why its risk is what it is. Reasons for a
// lower risk are left out: they would only confuse.
func reasons(r approval.Request) []profiles.Reason {
	var all []profiles.Reason
	for _, reason := range r.Decision.Reasons {
		if reason.Disposition == profiles.Ask || reason.Risk == r.Decision.Risk {
			all = append(all, reason)
		}
	}
	return all
}

// guessedDifferently reports whether a separate reason says that the risk comes
// from that rule, and what would have been guessed without it.
func guessedDifferently(r approval.Request, rule string) bool {
	return slices.ContainsFunc(r.Decision.Reasons, func(reason profiles.Reason) bool {
		return reason.Kind == profiles.KindRisk && reason.Rule == rule
	})
}

func covers(r approval.Request) string {
	switch {
	case len(r.Wider()) > 0 && len(r.Items) > 1:
		return fmt.Sprintf("Yes sends these %d calls; it may hold for later ones like these, if you choose so.", len(r.Items))
	case len(r.Wider()) > 0:
		return "Yes sends this call; it may hold for later ones like it, if you choose so."
	case len(r.Items) > 1:
		return fmt.Sprintf("Yes sends these %d calls, once each.", len(r.Items))
	default:
		return "Yes sends this one call, once."
	}
}

// needs says what an approval takes besides the word yes.
func needs(r approval.Request) []phrase {
	var needs []phrase
	if r.Decision.RequireReason {
		needs = append(needs, say("a reason"))
	}
	switch {
	case r.Decision.Manual && len(r.Decision.Quorums) > 0:
		needs = append(needs, say("the tool's name typed"))
	case r.Decision.Manual:
		needs = append(needs, say("the tool's name typed, or edited arguments"))
	}
	if r.NeedsApprover() {
		needs = append(needs, say("an approver on the page, in the terminal or through the API"))
	}
	if r.NeedsAnother() && r.Requester != "" {
		needs = append(needs, say("somebody other than %s", canon.Escape(r.Requester)))
	}
	return needs
}

// Clock formats a time as a clock shows it, with the day if it differs from
// that of from. A nil zone is this machine's.
func Clock(t, from time.Time, zone *time.Location) string {
	if zone == nil {
		zone = time.Local
	}
	t, from = t.In(zone), from.In(zone)
	if t.YearDay() != from.YearDay() || t.Year() != from.Year() {
		return t.Format("15:04:05 on Mon 2 Jan")
	}
	return t.Format("15:04:05")
}

// silence formats the time at which no answer is a no: to the minute, rounded down,
// unless there is so little time that seconds count.
func silence(until, asked time.Time, zone *time.Location) string {
	if until.Sub(asked) < 3*time.Minute {
		return Clock(until, asked, zone)
	}
	return strings.Replace(Clock(until, asked, zone), until.Format(":05"), "", 1)
}

// previewOf returns what could be read from a script. Literals and names are
// escaped; of the two, only names end up in Calls.
func previewOf(r approval.Request) ScriptPreview {
	p := r.Preview
	c := ScriptPreview{Truncated: p.Truncated}
	counts, loops := map[string]int{}, map[string]bool{}
	asked := map[string]int{}
	for _, i := range r.Calls() {
		asked[canon.Escape(i.Script)]++
		if i.Path() != i.Script {
			asked[canon.Escape(i.Path())]++
		}
	}
	var names []string
	for _, site := range p.Calls {
		site.Name, site.Args = canon.Escape(site.Name), canon.Escape(canon.Redact(site.Args))
		c.Sites = append(c.Sites, site)
		name := site.Name
		if counts[name]++; counts[name] == 1 {
			names = append(names, name)
		}
		loops[name] = loops[name] || site.Loop
	}
	slices.Sort(names)
	for _, name := range names {
		text := say("%s", name)
		if strings.Contains(name, "__") { // any other may be a word that a model chose
			text = say("%s", phrase{name, named(name).dialog})
		}
		if name == "" {
			text = say("a call of a computed name")
		}
		if counts[name] > 1 {
			text = say("%s x%d", text, counts[name])
		}
		if loops[name] {
			text = say("%s in a loop", text)
		}
		c.Calls = append(c.Calls, text.plain)
		if loops[name] || name == "" || counts[name] > asked[name] {
			c.said = append(c.said, text)
		}
	}
	return c
}

// warnings returns what a person should notice about the calls, the gravest
// first: a small window shows only the first of many.
func warnings(calls []DescribedCall) []phrase {
	var all []phrase
	var unseen, keys []string
	add := func(p phrase) {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	hidden, cut := 0, 0
	for _, c := range calls {
		for _, source := range c.Sources[:len(c.Sources)-len(c.reads)] {
			add(phrase{source, theirsWithin(source, promptLong*promptWidth-len("! ."))})
		}
		for _, read := range c.reads {
			add(read)
		}
	}
	for _, c := range calls {
		hidden, cut = hidden+c.Hidden, cut+c.Cut
		for _, f := range c.Fields {
			for _, odd := range suspiciousHosts(f) {
				add(odd)
			}
			if f.unseen() && !slices.Contains(unseen, f.Name) {
				unseen, keys = append(unseen, f.Name), append(keys, f.name())
			}
		}
	}
	if len(unseen) > 0 {
		const lead = "what cannot be seen is written out by its number in "
		add(phrase{lead + strings.Join(unseen, ", "), listed(lead, keys, ", ", "argument", promptLong*promptWidth-len("! ."))})
	}
	if hidden > 0 {
		add(say("%s hidden as a secret; the call sends what is hidden", ours(canon.Counted(hidden, "value"))))
	}
	if cut > 0 {
		add(say("%s too long to be kept here in full; the call sends all of it", ours(canon.Counted(cut, "value"))))
	}
	return all
}

// An EditedCall describes a call that was allowed with arguments other than those
// that people were asked about.
type EditedCall struct {
	By     string       `json:"by"`
	Call   int          `json:"call"`
	Asked  canon.Digest `json:"asked_digest"` // of the arguments that were asked about
	Digest string       `json:"digest,omitempty"`
	// Args and Fields are the replacement arguments, in display form. Requests that
	// were answered by older releases have none.
	Args   json.RawMessage `json:"args,omitempty"`
	Fields []Field         `json:"fields,omitempty"`
	Hidden int             `json:"hidden,omitempty"`
	Cut    int             `json:"cut,omitempty"`
}

// Edited describes how whoever allowed the request's call edited it; nil if
// they did not.
func Edited(e *approval.StoredRequest) *EditedCall {
	if v := e.Verdict; v == nil || !v.Approve || !v.Edited && v.Args == nil || len(e.Items) == 0 {
		return nil
	}
	item := e.Items[0]
	edited := &EditedCall{By: canon.Escape(e.Verdict.Who()), Call: item.Call, Asked: item.Key.Args}
	edit := e.Verdict.EditedArgs
	if edit == nil {
		edit = e.Request.EditedArgs(e.Verdict.Args)
	}
	if edit != nil {
		item.Shown, item.Sources, item.Reads = edit.Shown, nil, nil
		d := describeCall(item, e.Decision.Hidden)
		edited.Digest, edited.Args = edit.Digest.String(), edit.JSON
		edited.Fields, edited.Hidden, edited.Cut = d.Fields, d.Hidden, d.Cut
	}
	return edited
}

// comesNext says what is known of the calls and questions that come after this one.
func comesNext(r approval.Request) string {
	var all []string
	if len(r.Items) == 1 && r.Items[0].Loop {
		all = append(all, "the call is in a loop; more like it may follow.")
	}
	if r.Spent > 0 {
		all = append(all, fmt.Sprintf("This session has asked %d questions; say how to go on.", r.Spent))
	}
	return strings.Join(all, " ")
}
