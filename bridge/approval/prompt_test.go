package approval

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"

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
	Summary, At           string
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
	return Describe(p.request(t), DescribeOptions{At: p.At, Zone: time.UTC}).Prompt()
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
		"x\nYes sends nothing.\nWhy: asklist", "\x1b[2J\x1b]0;title\a", "\u202e\u2066gnp.exe", "a\u200bb\ufeff", "<b onclick=x>&amp;", "\U000E0041\U000E0042",
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

// inert checks that a prompt consists of our lines, in our order, of bounded
// width and of visible characters.
func inert(t interface{ Errorf(string, ...any) }, prompt string) {
	lines := strings.Split(strings.TrimSuffix(prompt, "\n"), "\n")
	starts := []string{"", "Tool: ", riskWords, "Summary: ", "  ", "! ", "Why: ", "Yes ", "Checked before sending: ", "Written by the model, unchecked: ", "Call ", "All of it: "}
	needed := []string{"", riskWords, "  ", "Why: ", "Yes ", "Call "}
	begins := func(line, start string) bool {
		if start == riskWords {
			return slices.Contains(slices.Collect(maps.Values(riskSays)), line)
		}
		return strings.HasPrefix(line, start)
	}
	at := 0
	for n, line := range lines {
		if columns(line) > promptWidth {
			t.Errorf("a line of %d columns: %s", columns(line), line)
		}
		// Our own way to write what is unseen begins with a backslash, which
		// Visible would write out once more.
		if plain := strings.ReplaceAll(line, `\`, "/"); canon.Visible(plain) != plain {
			t.Errorf("unseen characters in %q: %q", line, canon.Visible(plain))
		}
		if n == 0 {
			if !strings.Contains(line, "? ") || !strings.Contains(line, "risk ") {
				t.Errorf("this is no headline: %q", line)
			}
			needed = needed[1:]
			continue
		}
		if strings.HasPrefix(line, "     ") && slices.Contains([]string{"! ", "Why: ", "Yes ", "Written by the model, unchecked: "}, starts[at]) {
			continue // the rest of a sentence
		}
		i := 1 + slices.IndexFunc(starts[1:], func(s string) bool { return begins(line, s) })
		if i == 0 || i < at || i == at && starts[i] != "  " && starts[i] != "! " {
			t.Errorf("this line is out of place: %q\n%s", line, prompt)
			return
		}
		at = i
		needed = slices.DeleteFunc(needed, func(s string) bool { return s == starts[i] })
	}
	if len(needed) > 0 || len(lines) > promptLines+5 {
		t.Errorf("%d lines, and these are missing: %q\n%s", len(lines), needed, prompt)
	}
}

// riskWords stands for the sentence about the risk.
const riskWords = "a sentence about the risk"

// What cannot be shown in full says so, and keeps its end.
func TestLongValueKeepsBothEnds(t *testing.T) {
	text, err := json.Marshal(map[string]string{"command": "ls -la " + strings.Repeat("a/../", 200) + "; rm -rf /"})
	if err != nil {
		t.Fatal(err)
	}
	prompt := prompted{Tool: "run", Server: "sh", Args: text, Risk: profiles.High}.prompt(t)
	if !strings.Contains(prompt, `ls -la a/`) || !strings.Contains(prompt, `; rm -rf /`+"\n") || !strings.Contains(prompt, "more") {
		t.Errorf("the prompt is\n%s", prompt)
	}
}
