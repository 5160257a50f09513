package wording

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox/racing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite testdata/dialogs.txt")

// A prompted is a request as testdata/requests.txtar writes it.
type prompted struct {
	Tool, Server, Profile string
	Args                  json.RawMessage   // of one call
	Calls                 []json.RawMessage // or of several
	Risk                  profiles.Risk
	Remember              bool
	Why                   string
	Checks                []string
	Preview               []analysis.CallSite
	Done                  int
	Sources               []string
	Summary, At, Whole    string
	Manual, RequireReason bool
	About                 approval.About
	Order                 []string
	Reads                 []approval.Read
	// Items are calls of several tools, or with facts of their own.
	Items []promptedItem
	// Decision replaces what would be the usual one, but for the risk.
	Decision    *profiles.Decision
	DidNotCount string
	Requester   string
	Client      string
	Votes       []approval.Verdict
	Says        string
	RiskWhy     string
	Minutes     int // to answer; 5
}

type promptedItem struct {
	Server, Tool string
	Args         json.RawMessage
	Risk         profiles.Risk
	About        approval.About
	Order        []string
	Planned      bool
}

func (p prompted) request(t interface{ Fatal(...any) }) approval.Request {
	asked := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	r := approval.Request{Server: p.Server, Tool: p.Tool, Checks: p.Checks, Done: p.Done, Preview: analysis.Report{Calls: p.Preview}, Summary: p.Summary,
		Asked: asked, Until: asked.Add(patient),
		Decision: profiles.Decision{Risk: p.Risk, Remember: p.Remember, Profile: p.Profile, Timeout: patient, Manual: p.Manual, RequireReason: p.RequireReason,
			Reasons: []profiles.Reason{{Disposition: profiles.Ask, Kind: profiles.KindAsklist, Pattern: "fs__*", Profile: p.Profile, Text: p.Why}}}}
	r.Requester, r.Client, r.Says = p.Requester, p.Client, p.Says
	if p.Minutes > 0 {
		r.Until = asked.Add(time.Duration(p.Minutes) * time.Minute)
	}
	if p.Decision != nil {
		r.Decision = *p.Decision
		r.Decision.Risk, r.Decision.RequireReason, r.Decision.Manual = p.Risk, p.RequireReason, p.Manual
	}
	if p.RiskWhy != "" {
		r.Decision.Reasons = append(r.Decision.Reasons, profiles.Reason{Kind: profiles.KindRisk, Risk: p.Risk, Detail: p.RiskWhy})
	}
	if p.Args != nil {
		p.Calls = []json.RawMessage{p.Args}
	}
	for i, raw := range p.Calls {
		args, err := canon.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		r.Items = append(r.Items, approval.Item{Call: p.Done + 1 + i, Shown: canon.Display(args, canon.DisplayOptions{Hidden: r.Decision.Hidden}), Key: approval.Key{Args: args.Digest()}, About: p.About, Order: p.Order})
	}
	for i, one := range p.Items {
		args, err := canon.Parse(one.Args)
		if err != nil {
			t.Fatal(err)
		}
		item := approval.Item{Call: p.Done + 1 + i, Server: one.Server, Tool: one.Tool, Script: one.Server + "__" + one.Tool, Shown: canon.Display(args, canon.DisplayOptions{}), Key: approval.Key{Args: args.Digest()}, About: one.About, Order: one.Order, Planned: one.Planned}
		if item.Decision = r.Decision; one.Risk != 0 {
			item.Decision.Risk = one.Risk
		}
		r.Items = append(r.Items, item)
	}
	if len(r.Items) > 0 {
		r.Items[0].Sources, r.Items[0].Reads = p.Sources, p.Reads
	}
	return r
}

// prompt is what a person reads of p.
func (p prompted) prompt(t interface{ Fatal(...any) }) string {
	return Describe(p.request(t), DescribeOptions{At: p.At, Whole: p.Whole, Zone: time.UTC, DidNotCount: p.DidNotCount, Votes: p.Votes}).Prompt()
}

// testdata/requests.txtar has requests, and testdata/dialogs.txt what a person reads of
// each: read it through after a change.
func TestPrompt(t *testing.T) {
	const path = "testdata/dialogs.txt"
	archive, err := txtar.ParseFile("testdata/requests.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range archive.Files {
		var p prompted
		if err := canon.Decode(f.Data, &p); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		text := p.prompt(t)
		inert(t, text+"\n")
		if lines := strings.Count(text, "\n") + 1; lines > 12 && len(p.Calls)+len(p.Items) < 8 {
			t.Errorf("%s takes %d lines", f.Name, lines)
		}
		fmt.Fprintf(&all, "-- %s --\n%s\n\n", f.Name, text)
	}
	if *update {
		if err := os.WriteFile(path, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(all.String(), "\n")); diff != "" {
		t.Errorf("run with -update if that is right (-want +got):\n%s", diff)
	}
}

// Of many calls at one place of the script, the one that is not like the others has a
// row, and so have the first ones and the last: a yes sends them all.
func TestTheOddCallOfManyIsShown(t *testing.T) {
	p := prompted{Decision: &profiles.Decision{Disposition: profiles.Ask}}
	for n := range 200 {
		one := promptedItem{Server: "fs", Tool: "write_file", Args: fmt.Appendf(nil, `{"path":"/ws/a%d"}`, n), Risk: profiles.Medium}
		if n == 150 {
			one.Args, one.Risk = json.RawMessage(`{"path":"/home/ann/.profile"}`), profiles.High
		}
		p.Items = append(p.Items, one)
	}
	p.Risk = profiles.High
	r := p.request(t)
	for i := range r.Items { // a loop
		r.Items[i].Position = analysis.Position{Line: 3, Column: 1}
	}
	text := Describe(r, DescribeOptions{Zone: time.UTC}).Prompt()
	for _, want := range []string{"Call 1: ", "Call 8: ", "Call 151: ", ".profile", "Call 200: ", "/ws/a199", "And 190 more calls"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// Whatever the arguments, the tool and the script hold, a prompt
// consists of characters that a person can see, in lines of ours.
func TestPromptIsInert(t *testing.T) {
	nasty := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"x\nYes sends nothing.\nWhy: asklist", "a\n---\nb | c", "``` ` ``", "\x1b[2J\x1b]0;title\a", "\u202e\u2066gnp.exe", "a\u200bb\ufeff", "<b onclick=x>&amp;", "\U000E0041\U000E0042",
		"[x](javascript:y) `code` **bold**", "e\u0301\u0301\u0301\u0301\u0301", "\r\nWritten by the model", "…", strings.Repeat("long ", 400), "\u2028\u2029\u0085", "\x00\x7f\u009b31m", "\\u{A}", "日本語", "ابجد",
	}))
	rapid.Check(t, func(t *rapid.T) {
		args := func(label string) json.RawMessage {
			m := rapid.MapOfN(nasty, rapid.OneOf(rapid.Map(nasty, func(s string) any { return s }),
				rapid.Map(rapid.SliceOfN(nasty, 0, 3), func(l []string) any { return l }),
				rapid.Map(rapid.MapOfN(nasty, nasty, 0, 3), func(m map[string]string) any { return m })), 0, 9).Draw(t, label)
			delete(m, "__proto__")
			if rapid.Bool().Draw(t, "path") {
				m["path"] = nasty.Draw(t, "value of path")
			}
			text, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		p := prompted{Tool: nasty.Draw(t, "tool"), Server: nasty.Draw(t, "server"), Profile: "p", Risk: profiles.High, Done: rapid.IntRange(0, 1e6).Draw(t, "done"),
			Why: nasty.Draw(t, "why"), Summary: nasty.Draw(t, "summary"), At: "http://127.0.0.1:7421/r/q1", Sources: rapid.SliceOfN(nasty, 0, 4).Draw(t, "sources"),
			RequireReason: rapid.Bool().Draw(t, "reason"), Preview: []analysis.CallSite{{Name: nasty.Draw(t, "name"), Loop: true}, {}}, Checks: []string{"arguments"}}
		if rapid.Bool().Draw(t, "known") {
			p.Tool = rapid.SampledFrom([]string{"write_file", "move_file", "send_mail", "run_command", p.Tool}).Draw(t, "known tool")
			path, within := nasty.Draw(t, "path in the workspace"), ""
			if rapid.Bool().Draw(t, "within") {
				within = path
			}
			args = func(string) json.RawMessage {
				text, err := json.Marshal(map[string]any{"path": path, "paths": []string{path, path}, "owner": nasty.Draw(t, "owner"), "repo": nasty.Draw(t, "repo")})
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			p.About = approval.About{Accepted: true, Effects: []string{"write"}, Roles: map[string]string{"path": rapid.SampledFrom(tellingRoles).Draw(t, "role"), nasty.Draw(t, "name"): "path", "paths": "path", "owner": "place", "repo": "place"},
				Facts: []approval.Fact{{Param: "path", Role: "path", Inside: rapid.Bool().Draw(t, "inside"), Leads: nasty.Draw(t, "leads"), Within: within, RunsLater: "git runs what stands there"},
					{Param: "paths.0", Role: "path", Inside: true, Within: path}, {Param: "paths.1", Role: "path", Inside: true, Within: within},
					{Param: "page", Role: "host", Leads: nasty.Draw(t, "host"), New: rapid.Bool().Draw(t, "new")},
					{Param: nasty.Draw(t, "param"), Role: "host", New: true, Doubt: nasty.Draw(t, "doubt")}}}
		}
		several := rapid.Bool().Draw(t, "several tools")
		for i := range rapid.IntRange(1, approval.MaxPlaces).Draw(t, "calls") {
			raw := args(fmt.Sprint("args", i))
			if !several {
				p.Calls = append(p.Calls, raw)
				continue
			}
			one := promptedItem{Server: nasty.Draw(t, "server"), Tool: rapid.OneOf(nasty, rapid.Just("write_file")).Draw(t, "tool"), Args: raw, About: p.About}
			p.Items = append(p.Items, one)
		}
		inert(t, p.prompt(t)+"\n")
	})
}

// inert checks that a prompt consists of our lines, in our order, of visible
// characters and in bounded room; and that whatever is not in a code span is
// ours, and nothing that Markdown has a meaning for.
func inert(t interface{ Errorf(string, ...any) }, prompt string) {
	lines := strings.Split(strings.TrimSuffix(prompt, "\n"), "\n")
	starts := []string{"", "Summary: ", "• ", "! ", "Tool ", "Your ", "A yes ", "So far: ", "Next: ", "The model's script", "A model's summary, unchecked: ", "No answer by "}
	needed := []string{"No answer by "}
	if strings.HasPrefix(lines[0], "Call ") || strings.HasPrefix(lines[0], "Make ") {
		needed = append(needed, "• ") // the question has none of the arguments
	}
	if strings.HasPrefix(lines[0], "Your last answer did not count: ") {
		lines = lines[1:]
	}
	at, used := 0, 0
	for n, line := range lines {
		used += rows(line)
		// Our own way to write what is unseen begins with a backslash, which
		// Visible would write out once more.
		if plain := strings.ReplaceAll(line, `\`, "/"); canon.Escape(plain) != plain {
			t.Errorf("unseen characters in %q: %q", line, canon.Escape(plain))
		}
		text, spans := spansIn(line)
		if bare := loneUnderscore.FindString(text); bare != "" {
			t.Errorf("Markdown may take the underscore in %q for its own", line)
		}
		if mark := strings.Trim(strings.ReplaceAll(text, "• ", ""), ourLetters); mark != "" {
			t.Errorf("%q is no text of ours in %q", mark, line)
		}
		if !ourLine.MatchString(line) {
			t.Errorf("this is no line of ours: %q", line)
		}
		for _, s := range spans {
			if !json.Valid([]byte(s)) && !nameOnly.MatchString(s) && (!strings.Contains(text, " means no. All of it: ") && !strings.Contains(text, " means no. As much of it as is kept: ") || n < len(lines)-1) {
				t.Errorf("%s is no JSON and no name in %q", s, line)
			}
		}
		if n == 0 {
			if !ourQuestion.MatchString(text) {
				t.Errorf("this is no question: %q", line)
			}
			continue
		}
		if last := line[len(line)-1]; starts[at] != "• " && last != '.' && last != '`' && last != ')' && !strings.HasPrefix(line, "• ") {
			t.Errorf("a line without an end: %q", line)
		}
		i := 1 + slices.IndexFunc(starts[1:], func(s string) bool { return strings.HasPrefix(line, s) })
		if i == 0 || i < at || i == at && starts[i] != "• " && starts[i] != "! " || at > 0 && starts[at] == "Tool " && starts[i] == "Your " {
			t.Errorf("this line is out of place: %q\n%s", line, prompt)
			return
		}
		at = i
		needed = slices.DeleteFunc(needed, func(s string) bool { return s == starts[i] })
	}
	most := promptMost
	if strings.Count(prompt, "\n• Call ") > promptArgs {
		most = promptSeveral
	}
	if len(needed) > 0 || used > most {
		t.Errorf("%d rows, and these are missing: %q\n%s", used, needed, prompt)
	}
}

// ourLetters are the characters of our sentences.
const ourLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;?!'()=-…_/"

// nameOnly matches the names that stand in a code span without quotes.
var nameOnly = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:@[\]-]{0,59}$`)

// ourQuestion matches a line that asks, loneUnderscore an underscore that is not within
// a word.
var (
	ourQuestion    = regexp.MustCompile(`^(Call tool|Call|Make these [0-9]+ calls|[A-Z][a-z]+[a-z ]*)[^?]*\?( |$)`)
	loneUnderscore = regexp.MustCompile(`(^|[^A-Za-z0-9])_|_($|[^A-Za-z0-9])`)
)

// ourLine matches lines that begin with a sentence of ours and do not end in a
// space.
var ourLine = regexp.MustCompile("^[^ `](.*[^ ])?$")

// spansIn takes a line apart as CommonMark does: what is in code spans, and the
// line without them.
func spansIn(line string) (rest string, spans []string) {
	for {
		i := strings.IndexByte(line, '`')
		if i < 0 {
			return rest + line, spans
		}
		rest, line = rest+line[:i], line[i:]
		fence := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		line = line[len(fence):]
		end := 0
		for end < len(line) {
			run := len(line[end:]) - len(strings.TrimLeft(line[end:], "`"))
			if run == len(fence) {
				break
			}
			end += max(run, 1)
		}
		if end == len(line) {
			return rest + fence + line, spans // a fence that never ends is no fence
		}
		spans, line = append(spans, line[:end]), line[end+len(fence):]
	}
}

// What a question leaves out of a path, and what it joins, never makes it the question
// about another call.
func TestDifferentCallsReadDifferently(t *testing.T) {
	file := func(path, leads, within string) prompted {
		return prompted{Server: "fs", Tool: "write_file", Risk: profiles.Medium, Args: json.RawMessage(`{"path":"` + path + `"}`), About: approval.About{Accepted: true, Effects: []string{"write"},
			Roles: map[string]string{"path": "path"}, Facts: []approval.Fact{{Param: "path", Role: "path", Inside: within != "", Leads: leads, Within: within}}}}
	}
	issue := func(owner, repo string) prompted {
		return prompted{Server: "github", Tool: "create_issue", Risk: profiles.Medium, Args: json.RawMessage(`{"owner":"` + owner + `","repo":"` + repo + `"}`), About: approval.About{Accepted: true,
			Effects: []string{"write"}, Roles: map[string]string{"owner": "place", "repo": "place"}}}
	}
	seen := map[string]string{}
	for name, p := range map[string]prompted{
		"in the workspace":              file("/ws/src/a", "/ws/src/a", "src/a"),
		"in a folder of the same name":  file("/ws/ws/src/a", "/ws/ws/src/a", "ws/src/a"),
		"outside":                       file("src/a", "/src/a", ""),
		"through a link":                file("/ws/src/b", "/ws/src/a", "src/a"),
		"a link that leads out":         file("/ws/src/a", "/etc/a", ""),
		"a name that ends alike":        file("/ws/mysrc/a", "/ws/mysrc/a", "mysrc/a"),
		"the workspace itself":          file("/ws", "/ws", "."),
		"a file called your workspace":  file("/ws/your workspace", "/ws/your workspace", "your workspace"),
		"owner and repository":          issue("a", "b"),
		"an owner with a slash":         issue("a/b", "c"),
		"a repository with a slash":     issue("a", "b/c"),
		"an owner with a quote":         issue(`a\"/\"b`, "c"),
		"an owner of the next line":     issue(`a\nb`, "c"),
		"a repository that looks whole": issue("", "a/b"),
	} {
		prompt := p.prompt(t)
		if other, ok := seen[prompt]; ok {
			t.Errorf("%s reads as %s:\n%s", name, other, prompt)
		}
		seen[prompt] = name
	}
}

// What fits is shown whole: each name and each value is the JSON that was sent,
// in the order of the description.
func TestPromptShowsWhatIsSent(t *testing.T) {
	racing.Alone(t)
	for _, text := range hostile(t) {
		for _, args := range []map[string]any{{"a": text, "b": []any{text, 1}}, {text: text}, {"z": map[string]any{text: nil}, "body": text + "\n" + text}} {
			raw, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			r := prompted{Tool: text, Server: text, Profile: text, Why: text, Risk: profiles.High, Args: raw, Summary: text, Sources: []string{text}, Checks: []string{text},
				Preview: []analysis.CallSite{{Name: text}}}.request(t)
			d := Describe(r, DescribeOptions{Whole: "codemode-bridge approvals show q1"})
			prompt := d.Prompt()
			inert(t, prompt)
			if strings.Contains(prompt, "left out") || strings.Contains(prompt, " … ") || r.Items[0].Shown.Cut > 0 {
				if !strings.HasSuffix(prompt, ": `codemode-bridge approvals show q1`.") {
					t.Errorf("it does not say where the rest is:\n%s", prompt)
				}
				continue
			}
			got := map[string]any{}
			for line := range strings.SplitSeq(prompt, "\n") {
				text, spans := spansIn(line)
				if plain := plainArgument.FindStringSubmatch(text); plain != nil && len(spans) == 1 {
					spans = append([]string{`"` + plain[1] + `"`}, spans...)
				}
				if strings.HasPrefix(line, "• ") && len(spans) == 2 {
					var name string
					var value any
					if json.Unmarshal([]byte(spans[0]), &name) != nil || json.Unmarshal([]byte(spans[1]), &value) != nil {
						t.Errorf("not read: %s", line)
					}
					got[name] = value
				}
			}
			var want map[string]any
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" && r.Items[0].Shown.Hidden == 0 {
				t.Errorf("shown is not what is sent (-sent +shown):\n%s", diff)
			}
		}
	}
}

// plainArgument matches the line of an argument without its span, whose name is a
// plain word.
var plainArgument = regexp.MustCompile(`^• ([A-Za-z0-9_-]+): $`)

// hostile are texts that mean something to a reader of Markdown, or look like
// lines of ours.
func hostile(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/hostile.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// What cannot be shown in full says so, and keeps its end.
func TestLongValueKeepsBothEnds(t *testing.T) {
	text, err := json.Marshal(map[string]string{"command": "ls -la " + strings.Repeat("a/../", 200) + "; rm -rf /"})
	if err != nil {
		t.Fatal(err)
	}
	prompt := prompted{Tool: "run", Server: "sh", Args: text, Risk: profiles.High}.prompt(t)
	for _, part := range []string{"`\"ls -la a/", "; rm -rf /\"`\n", " 1,017 characters: ", "` … `"} {
		if !strings.Contains(prompt, part) {
			t.Errorf("the prompt has no %q:\n%s", part, prompt)
		}
	}
}
