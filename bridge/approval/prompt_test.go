package approval

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
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the .want parts of testdata/prompt.txtar")

// A prompted is a request as testdata/prompt.txtar writes it.
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
}

func (p prompted) request(t interface{ Fatal(...any) }) Request {
	asked := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	r := Request{Server: p.Server, Tool: p.Tool, Checks: p.Checks, Done: p.Done, Preview: analysis.Report{Calls: p.Preview}, Summary: p.Summary,
		Asked: asked, Until: asked.Add(patient),
		Decision: profiles.Decision{Risk: p.Risk, Remember: p.Remember, Profile: p.Profile, Timeout: patient, Manual: p.Manual, RequireReason: p.RequireReason,
			Reasons: []profiles.Reason{{Disposition: profiles.Ask, Kind: profiles.KindAsklist, Pattern: "fs__*", Profile: p.Profile, Text: p.Why}}}}
	if p.Args != nil {
		p.Calls = []json.RawMessage{p.Args}
	}
	for i, raw := range p.Calls {
		args, err := canon.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		r.Items = append(r.Items, Item{Call: p.Done + 1 + i, Shown: canon.Display(args, canon.DisplayOptions{}), Key: Key{Args: args.Digest()}})
	}
	if len(r.Items) > 0 {
		r.Items[0].Sources = p.Sources
	}
	return r
}

// prompt is what a person reads of p.
func (p prompted) prompt(t interface{ Fatal(...any) }) string {
	return Describe(p.request(t), DescribeOptions{At: p.At, Whole: p.Whole, Zone: time.UTC}).Prompt()
}

// TestPrompt reads testdata/prompt.txtar: NAME.json is a request, NAME.want
// the text that a person reads.
func TestPrompt(t *testing.T) {
	const path = "testdata/prompt.txtar"
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var files []txtar.File
	for i, f := range archive.Files {
		name, in := strings.CutSuffix(f.Name, ".json")
		if !in {
			continue
		}
		var p prompted
		if err := json.Unmarshal(f.Data, &p); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		got := p.prompt(t) + "\n"
		inert(t, got)
		want := ""
		if i+1 < len(archive.Files) && archive.Files[i+1].Name == name+".want" {
			want = string(archive.Files[i+1].Data)
		}
		if got != want && !*update {
			t.Errorf("%s (run with -update if that is right)\n%swant\n%s", name, got, want)
		}
		files = append(files, f, txtar.File{Name: name + ".want", Data: []byte(got)})
	}
	if *update {
		archive.Files = files
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Trial P12: whatever the arguments, the tool and the script hold, a prompt
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
			text, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		p := prompted{Tool: nasty.Draw(t, "tool"), Server: nasty.Draw(t, "server"), Profile: "p", Risk: profiles.High, Done: rapid.IntRange(0, 1e6).Draw(t, "done"),
			Why: nasty.Draw(t, "why"), Summary: nasty.Draw(t, "summary"), At: "http://127.0.0.1:7421/r/q1", Sources: rapid.SliceOfN(nasty, 0, 4).Draw(t, "sources"),
			RequireReason: rapid.Bool().Draw(t, "reason"), Preview: []analysis.CallSite{{Name: nasty.Draw(t, "name"), Loop: true}, {}}, Checks: []string{"arguments"}}
		for i := range rapid.IntRange(1, maxItems).Draw(t, "calls") {
			p.Calls = append(p.Calls, args(fmt.Sprint("args", i)))
		}
		inert(t, p.prompt(t)+"\n")
	})
}

// inert checks that a prompt consists of our lines, in our order, of visible
// characters and in bounded room; and that whatever is not in a code span is
// ours, and nothing that Markdown has a meaning for.
func inert(t interface{ Errorf(string, ...any) }, prompt string) {
	lines := strings.Split(strings.TrimSuffix(prompt, "\n"), "\n")
	starts := []string{"", "Risk ", "Summary: ", "• ", "! ", "Why: ", "Yes ", "Checked before sending: ", "Written by the model, unchecked: ", "A model's summary, unchecked: ", "Call ", "A"}
	needed := []string{"Risk ", "• ", "Why: ", "Yes ", "Call "}
	at, used := 0, 0
	for n, line := range lines {
		used += rows(line)
		// Our own way to write what is unseen begins with a backslash, which
		// Visible would write out once more.
		if plain := strings.ReplaceAll(line, `\`, "/"); canon.Escape(plain) != plain {
			t.Errorf("unseen characters in %q: %q", line, canon.Escape(plain))
		}
		text, spans := spansIn(line)
		if mark := strings.Trim(strings.ReplaceAll(text, "• ", ""), ourLetters); mark != "" {
			t.Errorf("%q is no text of ours in %q", mark, line)
		}
		if !ourLine.MatchString(line) {
			t.Errorf("this is no line of ours: %q", line)
		}
		for _, s := range spans {
			if !json.Valid([]byte(s)) && (!strings.HasPrefix(line, "All of it: ") && !strings.HasPrefix(line, "As much of it as is kept: ") || n < len(lines)-1) {
				t.Errorf("%s is no JSON in %q", s, line)
			}
		}
		if n == 0 {
			if !strings.Contains(text, "? Tool ") || !strings.Contains(text, " of server ") {
				t.Errorf("this is no headline: %q", line)
			}
			continue
		}
		if last := line[len(line)-1]; starts[at] != "• " && last != '.' && last != '`' && last != ')' && !strings.HasPrefix(line, "• ") {
			t.Errorf("a line without an end: %q", line)
		}
		i := 1 + slices.IndexFunc(starts[1:], func(s string) bool { return strings.HasPrefix(line, s) })
		if i == 0 || i < at || i == at && starts[i] != "• " && starts[i] != "! " {
			t.Errorf("this line is out of place: %q\n%s", line, prompt)
			return
		}
		at = i
		needed = slices.DeleteFunc(needed, func(s string) bool { return s == starts[i] })
	}
	if len(needed) > 0 || used > promptMost {
		t.Errorf("%d rows, and these are missing: %q\n%s", used, needed, prompt)
	}
}

// ourLetters are the characters of our sentences.
const ourLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;?!'()=-…"

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

// What fits is shown whole: each name and each value is the JSON that was sent,
// in the order of the description.
func TestPromptShowsWhatIsSent(t *testing.T) {
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
				if _, spans := spansIn(line); strings.HasPrefix(line, "• ") && len(spans) == 2 {
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
