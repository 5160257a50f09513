package wording

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox/racing"

	"github.com/google/go-cmp/cmp"
)

// H9: every risk has a sentence of its own.
func TestEveryRiskHasItsSentence(t *testing.T) {
	seen := map[string]bool{}
	for risk := profiles.Low; risk <= profiles.Critical; risk++ {
		d := Describe(prompted{Tool: "x", Server: "s", Risk: risk}.request(t), DescribeOptions{})
		if seen[d.RiskSays] || !strings.HasPrefix(strings.ToLower(d.RiskSays), d.Risk+": ") {
			t.Errorf("risk %s says %q", d.Risk, d.RiskSays)
		}
		seen[d.RiskSays] = true
	}
}

// The question is made of what the call means, where that is known and accepted.
func TestQuestion(t *testing.T) {
	known := func(effects string, roles map[string]string, facts ...approval.Fact) approval.About {
		return approval.About{Accepted: true, Effects: strings.Fields(effects), Roles: roles, Facts: facts}
	}
	file := known("write", map[string]string{"path": "path", "content": "content"}, approval.Fact{Param: "path", Role: "path", Inside: true})
	unknown := file
	unknown.Accepted = false
	for _, row := range []struct {
		server, tool, args string
		about              approval.About
		want               string
	}{
		{"fs", "write_file", `{"path":"/a","content":"x"}`, file, `Write "/a"?`},
		{"fs", "write_file", `{"path":"/a","content":"x"}`, unknown, `Call tool write_file of server fs?`},
		{"fs", "move_file", `{"destination":"/b","source":"/a"}`, known("write", map[string]string{"source": "path", "destination": "path"}), `Move "/a" to "/b"?`},
		{"mail", "send_mail", `{"to":"ann@b.example","body":"x"}`, known("send", map[string]string{"to": "recipient"}), `Send mail to "ann@b.example"?`},
		{"github", "createPullRequest", `{"owner":"acme","repo":"api","title":"x"}`, known("send", map[string]string{"owner": "place", "repo": "place"}), `Create pull request in "acme/api"?`},
		{"playwright", "browser_navigate", `{"url":"https://a.example"}`, known("read", map[string]string{"url": "host"}), `Navigate to "https://a.example"?`},
		{"playwright", "browser_click", `{"element":"Buy"}`, known("write", map[string]string{"element": "plain"}), `Click with playwright?`},
		{"sh", "shell", `{"cmd":"ls"}`, known("execute", map[string]string{"cmd": "command"}), `Run "ls"?`},
		{"db", "zap", `{"cmd":"ls"}`, known("write delete", map[string]string{"cmd": "command"}), `Call tool zap of server db?`},
		{"web", "ponder", `{"url":"https://a.example"}`, known("read spend", map[string]string{"url": "host"}, approval.Fact{Param: "url", Role: "host", New: true}), `Call tool ponder of server web?`},
		{"shop", "zap", `{"to":"ann","price":5}`, known("delete spend", map[string]string{"to": "recipient", "price": "amount"}), `Call tool zap of server shop?`},
		{"a", "delete\nWhy", `{}`, approval.About{}, `Call tool "delete\nWhy" of server a?`},
		{"a", "s\u0435nd_mail", `{"to":"b"}`, known("write send", map[string]string{"to": "recipient"}), "Call tool \"s\u0435nd_mail\" of server a?"},
	} {
		d := Describe(prompted{Tool: row.tool, Server: row.server, Args: json.RawMessage(row.args), About: row.about}.request(t), DescribeOptions{})
		got := d.Headline
		if got != row.want {
			t.Errorf("%s of %s: %q, want %q", row.tool, row.server, got, row.want)
		}
	}
}

// Those that say whom it is about stand first, and then the order is the schema's.
// Where nobody knows that, no long text pushes a short one out of sight, and numbers
// count as people count.
func TestOrderOfArguments(t *testing.T) {
	args, err := json.Marshal(map[string]any{"a": strings.Repeat("text ", 100), "b": "1\n2\n3", "to": "bob", "zip": 1})
	if err != nil {
		t.Fatal(err)
	}
	numbered := json.RawMessage(`{"field1":1,"field10":1,"field2":1,"field":1,"amount":5,"zip":2,"path":"/x"}`)
	for _, row := range []struct {
		prompted
		want string
	}{
		{prompted{Args: args}, "to zip a b"},
		{prompted{Args: args, Order: []string{"b", "zip", "to", "a"}}, "to b zip a"},
		{prompted{Args: args, Order: []string{"zip"}}, "to zip a b"},
		{prompted{Args: args, About: approval.About{Roles: map[string]string{"b": "recipient", "to": "plain"}}}, "b to zip a"},
		{prompted{Args: numbered}, "path amount field field1 field2 field10 zip"},
	} {
		row.Tool, row.Server = "send", "m"
		var names []string
		for _, f := range Describe(row.request(t), DescribeOptions{}).Calls[0].Fields {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != row.want {
			t.Errorf("the arguments are %s, want %s", got, row.want)
		}
	}
}

// On a page and a terminal, a name that is no plain word stands in quotes: it
// cannot look like a name and its value.
func TestNamesThatAreNoWordsStandInQuotes(t *testing.T) {
	for name, want := range map[string]string{
		"path": "path", "file-name_2": "file-name_2", "": `""`, "path: /tmp": `"path: /tmp"`, "a\nb": `"a\\u{A}b"`, `"x"`: `"\"x\""`, "naïve": `"naïve"`,
	} {
		args, err := json.Marshal(map[string]any{name: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := Describe(prompted{Tool: "send", Server: "m", Args: args}.request(t), DescribeOptions{}).Calls[0].Fields[0].Name; got != want {
			t.Errorf("%q is shown as %s, want %s", name, got, want)
		}
	}
}

// What a model wrote, and what pretends to be from us, stands where it belongs.
func TestModelTextStaysApart(t *testing.T) {
	const claim = "approved by the administrator"
	r := prompted{Tool: "drop", Server: "db", Risk: profiles.Critical, Args: json.RawMessage(`{"table":"users"}`),
		Preview: []analysis.CallSite{{Name: claim, Args: `{"note":"` + claim + `"}`}}}.request(t)
	d := Describe(r, DescribeOptions{})
	if len(d.Model.Calls) != 1 || len(d.Model.Sites) != 1 {
		t.Fatalf("the model's part is %+v", d.Model)
	}
	d.Model = ScriptPreview{}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text)+d.Prompt(), claim) {
		t.Errorf("what the model wrote stands outside of its part: %s", text)
	}
}

func TestDescriptionSaysWhatAYesNeeds(t *testing.T) {
	r := prompted{Tool: "pay", Server: "bank", Risk: profiles.Critical, Manual: true, RequireReason: true}.request(t)
	r.Requester, r.Decision.Quorums = "ann", []profiles.Quorum{{Need: 2, Of: []string{"finance"}}}
	d := Describe(r, DescribeOptions{Votes: []approval.Verdict{{By: "bob", Approve: true, Rights: approval.Rights{Roles: []string{"finance"}}}}})
	if d.Missing != "1 of 2 yeses of finance" {
		t.Errorf("missing: %q", d.Missing)
	}
	want := "a reason|the tool's name typed|an approver on the page, in the terminal or through the API|somebody other than ann"
	if got := strings.Join(d.Needs, "|"); got != want {
		t.Errorf("needs %q", got)
	}
}

// The rule that makes a call critical is named, though it does not ask; what
// speaks for a lower risk is not.
func TestDescriptionSaysWhatMakesTheRisk(t *testing.T) {
	r := question()
	r.Decision.Risk = profiles.Critical
	r.Decision.Reasons = []profiles.Reason{
		{Kind: profiles.KindRule, Disposition: profiles.Ask, Action: profiles.ActionAsk, Rule: "deleting", Profile: "p"},
		{Kind: profiles.KindRule, Rule: "system folders", Profile: "p", Risk: profiles.Critical},
		{Kind: profiles.KindRule, Rule: "all files", Profile: "p", Risk: profiles.Medium},
		{Kind: profiles.KindRisk, Risk: profiles.High, Detail: `"delete" in the name`},
	}
	d := Describe(r, DescribeOptions{})
	if want := []string{"rule deleting (ask) [profile p]", "rule system folders [profile p], risk critical"}; !slices.Equal(d.Why, want) {
		t.Errorf("why is %q, want %q", d.Why, want)
	}
	if d.Rule != d.Why[0] {
		t.Errorf("the rule that asked is %q", d.Rule)
	}
}

// What asks without a rule of the person's own is named as in a dialog.
func TestDescriptionSaysWhyInTheWordsOfADialog(t *testing.T) {
	byRisk := profiles.Reason{Kind: profiles.KindDefault, Disposition: profiles.Ask, Profile: "coding", Detail: "default: risk"}
	for name, row := range map[string]struct {
		risk    profiles.Risk
		reasons []profiles.Reason
		want    []string
	}{
		"by its risk":       {profiles.Medium, []profiles.Reason{byRisk, {Kind: profiles.KindRisk, Risk: profiles.Medium, Detail: "it changes something"}}, []string{"Your profile coding asks: it changes something", "risk medium: it changes something"}},
		"by a high risk":    {profiles.High, []profiles.Reason{byRisk, {Kind: profiles.KindRisk, Risk: profiles.High, Detail: "destructiveHint"}}, []string{"Your profile coding asks before calls that may do harm", "risk high: destructiveHint"}},
		"by a rule of ours": {profiles.Medium, []profiles.Reason{{Kind: profiles.KindRule, Disposition: profiles.Ask, Rule: "runs later", Profile: "builtin:coding@1"}}, []string{"Your profile coding asks about what runs later"}},
	} {
		r := question()
		r.Decision.Profile, r.Decision.Risk, r.Decision.Reasons = "coding", row.risk, row.reasons
		if got := Describe(r, DescribeOptions{}).Why; !slices.Equal(got, row.want) {
			t.Errorf("%s: why is %q, want %q", name, got, row.want)
		}
	}
}

// A risk that a rule lowered is said once, with what was guessed of the tool.
func TestDescriptionSaysWhichRuleLoweredTheRisk(t *testing.T) {
	r := question()
	r.Decision.Risk = profiles.Low
	r.Decision.Reasons = []profiles.Reason{
		{Kind: profiles.KindRule, Disposition: profiles.Ask, Action: profiles.ActionAsk, Rule: "echoes", Profile: "p", Risk: profiles.Low},
		{Kind: profiles.KindRisk, Rule: "echoes", Profile: "p", Risk: profiles.Low, Detail: `guessed high: "send" in the name`},
	}
	d := Describe(r, DescribeOptions{})
	if want := []string{"rule echoes (ask) [profile p]", `risk low: rule echoes (guessed high: "send" in the name) [profile p]`}; !slices.Equal(d.Why, want) {
		t.Errorf("why is %q, want %q", d.Why, want)
	}
	const want = "\nYour profile p asks by its rule `\"echoes\"`.\n" // no dialog speaks of a low risk
	if got := d.Prompt(); !strings.Contains(got, want) {
		t.Errorf("got\n%s", got)
	}
	if d.RiskSays != "Low: little harm is expected of it, or none." {
		t.Errorf("of a tool that writes, low by a rule, it says %q", d.RiskSays)
	}
}

func TestPromptNamesCallsWhole(t *testing.T) {
	r := question()
	for _, name := range []string{"", "fs__delete_file", "fs__delete_file", "fs__list_dir", "fs__read_file", "fs__search_files", "fs__write_file", "mail__send"} {
		r.Preview.Calls = append(r.Preview.Calls, analysis.CallSite{Name: name})
	}
	const want = "\nThe model's script, unchecked: it has a call of a computed name, `fs__delete_file` x2, `fs__list_dir`, `fs__read_file` and 3 more tools.\n"
	if got := Describe(r, DescribeOptions{}).Prompt(); !strings.Contains(got, want) {
		t.Errorf("got\n%s", got)
	}
	r.Preview.Calls = []analysis.CallSite{{Name: strings.Repeat("x", 500)}}
	if got := Describe(r, DescribeOptions{}).Prompt(); !strings.Contains(got, " characters left out) `\"xxx") {
		t.Errorf("a name that is too long:\n%s", got)
	}
}

func TestClockSaysTheDayWhenItIsAnother(t *testing.T) {
	asked := time.Date(2026, 3, 4, 23, 59, 0, 0, time.UTC)
	for _, row := range []struct {
		after time.Duration
		want  string
	}{{30 * time.Second, "23:59:30"}, {2 * time.Minute, "00:01:00 on Thu 5 Mar"}, {365 * 24 * time.Hour, "23:59:00 on Thu 4 Mar"}} {
		if got := Clock(asked.Add(row.after), asked, time.UTC); got != row.want {
			t.Errorf("after %v: %q, want %q", row.after, got, row.want)
		}
	}
}

// What a call does may have no word: its server's name is all of its tool's, and it has
// several effects. The question then names the tool.
func TestQuestionWithoutAVerb(t *testing.T) {
	p := prompted{Tool: "git_remote", Server: "git", Args: json.RawMessage(`{"url":"https://mirror.example/x.git"}`),
		About: approval.About{Accepted: true, Effects: []string{"read", "write"}, Roles: map[string]string{"url": "host"}}}
	if got := Describe(p.request(t), DescribeOptions{}).Prompt(); !strings.Contains(got, "git_remote") || !strings.Contains(got, "mirror.example") {
		t.Errorf("%s", got)
	}
}

func TestOddHosts(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"url", "https://example.com/a?b=http://other.org", ""},
		{"url", "https://xn--pple-43d.com/", "encoded international name"},
		{"url", "https://\u0430pple.com", "mixes Cyrillic and Latin letters"},
		{"to", "bob@g\u043eogle.com", "mixes Latin and Cyrillic letters"},
		{"to", "bob@example.com", ""},
		{"host", "\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444", "written in Cyrillic letters"},
		{"host", "example.com", ""},
		{"body", "see https://b\u00fccher.example or not", "characters that are not plain"},
		{"body", "\u043f\u0440\u0438\u043c\u0435\u0440", ""},
		{"body", `{"url":"https://[hidden: looks like a password]@xn--80ak6aa92e.com"}`, "encoded international name"},
	} {
		got := strings.Join(plains(suspiciousHosts(textField(row.name, row.text, []byte(`""`)))), "; ")
		if row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s %q: %q, want %q", row.name, row.text, got, row.want)
		}
	}
}

// R6: the line about a request can be replaced, also for calls that join it.
func TestSummaryCanBeReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := approval.New(approval.Options{Summarise: func(r approval.Request) string { return fmt.Sprintf("%d times %s\x1b", len(r.Items), r.Tool) }})
		for call := range 2 {
			r := prompted{Tool: "send", Server: "mail", Risk: profiles.High, Args: json.RawMessage(fmt.Sprintf(`{"to":%d}`, call))}.request(t)
			r.Run, r.Items[0].Call, r.Items[0].Position = "r", call+1, analysis.Position{Line: 3}
			go func() { _, _ = b.Ask(t.Context(), r) }()
			synctest.Wait()
		}
		all, err := b.Requests(t.Context(), approval.Filter{})
		if err != nil || len(all) != 1 || all[0].Summary != "2 times send\x1b" {
			t.Fatalf("%v, %+v", err, all)
		}
		if d := Describe(all[0].Request, DescribeOptions{}); d.Summary != `2 times send\u{1B}` || !d.Own || !strings.Contains(d.Prompt(), "\nSummary: `\"2 times send\\u001b\"`.\n") {
			t.Errorf("described as %q\n%s", d.Summary, d.Prompt())
		}
		b.EndRun("r")
	})
}

func TestSummaryOfOurs(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{`{"body":"hello","to":"bob"}`, "mail__send bob"},
		{`{"body":"hello"}`, "mail__send hello"},
		{`{"n":1}`, "mail__send"},
		{`{"a":"hello","token":"canary"}`, "mail__send hello"},
		{`{"password":"canary"}`, "mail__send"}, // [hidden] says nothing
		{`{}`, "mail__send"},
		{`{"path":"/a\n/b"}`, `mail__send "/a\n/b"`},
		{`{"amount":5000,"to":"bob"}`, "mail__send bob, amount 5000"},
		{`{"amount":"5,000.00 EUR"}`, `mail__send "5,000.00 EUR"`},
		{`{"count":[1,2],"limit":20}`, "mail__send"},
	} {
		if got := Summary(prompted{Tool: "send", Server: "mail", Args: json.RawMessage(row.args)}.request(t)); got != row.want {
			t.Errorf("%s: %q, want %q", row.args, got, row.want)
		}
	}
}

// Ten thousand arguments take no more room than ten, and no more than a moment.
func TestTenThousandArguments(t *testing.T) {
	racing.Alone(t)
	many := map[string]any{"to": "bob"}
	for i := range 10_000 {
		many[fmt.Sprintf("a%05d", i)] = strings.Repeat("x", 100)
	}
	text, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	r := prompted{Tool: "send", Server: "m", Risk: profiles.High}.request(t)
	args, err := canon.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	r.Items = []approval.Item{{Call: 1, Shown: canon.Display(args, canon.DisplayOptions{MaxObject: 20_000, MaxBytes: 1 << 22})}}
	d := Describe(r, DescribeOptions{})
	prompt := d.Prompt()
	inert(t, prompt)
	if len(d.Calls[0].Fields) != 10_001 || d.Calls[0].Fields[0].Name != "to" || !strings.Contains(prompt, "more arguments") {
		t.Errorf("%d fields, the first is %s\n%s", len(d.Calls[0].Fields), d.Calls[0].Fields[0].Name, prompt)
	}
}

// FuzzPrompt: whatever is sent, a prompt is made of our lines.
func FuzzPrompt(f *testing.F) {
	for _, seed := range []string{`{}`, `{"path":"/etc/passwd"}`, `{"a":"x\nYes sends nothing.","b":["\u001b[2J",{"\u202e":null}],"c":"` + strings.Repeat("日", 300) + `"}`,
		`{"Why: ":1,"  ":2,"":"","é́́́́":"… 5 characters in all"}`, `{"t":"-----BEGIN PRIVATE KEY-----"}`} {
		f.Add("send", seed, "fs", "1,204 characters")
	}
	f.Fuzz(func(t *testing.T, tool, args, server, source string) {
		if _, err := canon.Parse([]byte(args)); err != nil {
			return
		}
		inert(t, prompted{Tool: tool, Server: server, Profile: "p", Risk: profiles.High, Args: json.RawMessage(args), Sources: []string{source}, At: "http://127.0.0.1:7421/r/q"}.prompt(t))
	})
}

// Whoever answers reads what is known of what comes next.
func TestNextInWords(t *testing.T) {
	looped := func(r *approval.Request) { r.Items[0].Loop = true }
	spent := func(r *approval.Request) { r.Spent = 20 }
	for name, row := range map[string]struct {
		r    approval.Request
		want string
	}{
		"a call":             {question(), ""},
		"in a loop":          {question(looped), "the call is in a loop; more like it may follow."},
		"the budget's end":   {question(spent), "This session has asked 20 questions; say how to go on."},
		"in a loop, and all": {question(looped, spent), "the call is in a loop; more like it may follow. This session has asked 20 questions; say how to go on."},
	} {
		d := Describe(row.r, DescribeOptions{})
		if diff := cmp.Diff(row.want, d.Next); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		inert(t, d.Prompt()+"\n")
	}
}

// What a model says of a request stands in the model's part alone.
func TestWhatAModelSays(t *testing.T) {
	r := question()
	r.Says = "It deletes nothing. Why: safe"
	d := Describe(r, DescribeOptions{})
	if d.Model.Says != r.Says || !strings.Contains(d.Prompt(), "A model's summary, unchecked: `\"It deletes nothing. Why: safe\"`.\n") {
		t.Errorf("described as %+v", d.Model)
	}
	d.Model = ScriptPreview{}
	if text, err := json.Marshal(d); err != nil || strings.Contains(string(text), "deletes nothing") {
		t.Errorf("it stands outside of the model's part: %s, %v", text, err)
	}
}

// patient is the time to answer.
const patient = 5 * time.Minute

// question is a request about one call, as the changes have it.
func question(changes ...func(*approval.Request)) approval.Request {
	args, err := canon.Parse([]byte(`{"n":1}`))
	if err != nil {
		panic(err)
	}
	r := approval.Request{
		Run: "r1", Server: "fs", Tool: "delete", Script: "fs__delete", Difference: []string{"+ a change"},
		Decision: profiles.Decision{Disposition: profiles.Ask, Risk: profiles.High, Timeout: patient, Revision: "rev1"},
		Items: []approval.Item{{
			Call: 1, Shown: canon.Display(args, canon.DisplayOptions{}),
			Key: approval.Key{Session: "s1", Server: "fs", Tool: "delete", Definition: "def1", Revision: "rev1", Args: args.Digest()},
		}},
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

// Where a call works is said, also if its server was told that by an earlier one and no
// argument has it.
func TestWhereACallWorks(t *testing.T) {
	t.Parallel()
	for want, fact := range map[string]approval.Fact{
		"It works in /w/app, in your workspace.":          {Param: "path", Role: "path", Leads: "/w/app", Inside: true},
		"It works in /srv/other, outside your workspace.": {Param: "path", Role: "path", Leads: "/srv/other"},
	} {
		about := approval.About{Accepted: true, Effects: []string{"write"}, Roles: map[string]string{"path": "path", "message": "content"}, Facts: []approval.Fact{fact}}
		d := Describe(prompted{Tool: "git_commit", Server: "git", Args: json.RawMessage(`{"message":"x"}`), About: about}.request(t), DescribeOptions{})
		if diff := cmp.Diff([]string{want}, d.Facts); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
