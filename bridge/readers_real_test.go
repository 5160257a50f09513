//go:build real

package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/forms"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A reading is a text that a person is shown, as testdata/real/readers.mjs of
// the command takes it.
type reading struct {
	Text  string   `json:"text"`
	Plain string   `json:"plain"`
	Codes []string `json:"codes"`
	Sent  [][2]any `json:"sent,omitempty"`
}

// runs are of backticks: a code span ends at the first run that is as long as the
// one that it begins with.
var runs = regexp.MustCompile("`+")

func readingOf(text string, sent [][2]any) reading {
	r := reading{Text: text, Codes: []string{}, Sent: sent}
	for rest := text; ; {
		begin := runs.FindStringIndex(rest)
		if begin == nil {
			r.Plain += rest
			return r
		}
		fence, body := rest[begin[0]:begin[1]], rest[begin[1]:]
		end := len(body)
		for _, at := range runs.FindAllStringIndex(body, -1) {
			if body[at[0]:at[1]] == fence {
				end = at[0]
				break
			}
		}
		r.Plain, r.Codes = r.Plain+rest[:begin[0]]+body[:end], append(r.Codes, body[:end])
		rest = body[min(end+len(fence), len(body)):]
	}
}

// TestRealReaders shows thousands of hostile texts to people whose clients
// render Markdown: all of them see the same sentences and the same values, and
// nothing but a paragraph with code in it.
func TestRealReaders(t *testing.T) {
	stored, err := os.ReadFile(filepath.Join("wording", "testdata", "hostile.json"))
	if err != nil {
		t.Fatal(err)
	}
	var hostile []string
	if err := json.Unmarshal(stored, &hostile); err != nil {
		t.Fatal(err)
	}
	var in bytes.Buffer
	lines := json.NewEncoder(&in)
	cases, whole := 0, 0
	seen := map[string]bool{}
	show := func(text string, sent [][2]any) {
		if sent == nil && seen[text] {
			return
		}
		seen[text] = true
		if cases++; lines.Encode(readingOf(text, sent)) != nil {
			t.Fatalf("%q is not written", text)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func() string { return hostile[random.IntN(len(hostile))] }
	for _, text := range hostile {
		showPrompt(t, show, text, map[string]any{"a": text})
		showPrompt(t, show, text, map[string]any{text: map[string]any{text: []any{text, 1, nil}}})
		showPrompt(t, show, text, map[string]any{"a": text}, map[string]any{text: text, "b": true}, map[string]any{})
		whole += showKnown(t, show, text)
		showForms(t, show, text)
	}
	for range 1000 {
		args := map[string]any{}
		for range 1 + random.IntN(3) {
			args[pick()] = pick() + []string{"", " ", "\n", "\n\n", "`", "|", "\\"}[random.IntN(7)] + pick()
		}
		showPrompt(t, show, pick(), args)
		showForms(t, show, pick()+pick())
	}
	if cases < 5000 || whole < 2*len(hostile) {
		t.Fatalf("only %d cases, %d questions about what is known that are whole", cases, whole)
	}

	npm := os.Getenv("REAL_CACHE")
	if npm == "" {
		npm = filepath.Join("..", ".cache", "real")
	}
	script, err := os.ReadFile(filepath.Join("..", "cmd", "codemode-bridge", "testdata", "real", "readers.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "--input-type=module", "--eval", string(script))
	node.Dir, node.Stdin, node.Stderr = npm, &in, os.Stderr
	out, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := found[len(found)-1]; last != fmt.Sprintf(`{"cases":%d}`, cases) {
		t.Errorf("of %d cases it says %.1000s", cases, last)
	}
	for _, wrong := range found[:min(len(found)-1, 10)] {
		t.Errorf("%.3000s", wrong)
	}
	t.Logf("%d texts", cases)
}

// showPrompt shows calls with arguments, with other in all other places that
// somebody else writes.
func showPrompt(t *testing.T, show func(string, [][2]any), other string, calls ...map[string]any) {
	t.Helper()
	asked := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	r := approval.Request{Server: other, Tool: other, Summary: other, Says: other, Checks: []string{other}, Requester: other, Asked: asked, Until: asked.Add(time.Minute),
		Preview: analysis.Report{Calls: []analysis.CallSite{{Name: other, Loop: true}, {Name: "a__b"}}},
		Decision: profiles.Decision{Risk: profiles.High, Profile: other, RequireReason: true,
			Reasons: []profiles.Reason{{Disposition: profiles.Ask, Kind: profiles.KindRule, Rule: other, Text: other, Profile: other}, {Disposition: profiles.Ask, Kind: profiles.KindAsklist, Pattern: other}}}}
	var sent [][2]any
	for i, call := range calls {
		raw, err := json.Marshal(call)
		if err != nil {
			t.Fatal(err)
		}
		args, err := canon.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		shown := canon.Display(args, canon.DisplayOptions{})
		r.Items = append(r.Items, approval.Item{Call: i + 1, Shown: shown, Sources: []string{other}})
		for name, value := range call {
			if shown.Hidden+shown.Cut == 0 {
				sent = append(sent, [2]any{name, value})
			}
		}
	}
	prompt := wording.Describe(r, wording.DescribeOptions{Whole: "codemode-bridge approvals show q1 --config '/home/a b/x.json'", Zone: time.UTC}).Prompt()
	for line := range strings.SplitSeq(prompt, "\n") {
		if strings.HasPrefix(line, "• ") && (strings.Contains(line, "…") || strings.Contains(line, " left out)") || strings.Contains(line, "more argument")) {
			sent = nil // not all of it is there, and it says so
		}
	}
	show(prompt, sent)
}

// showKnown shows calls of a tool that is known, and the answers that are offered: the
// question has the values of the calls, and the answers those that they bind. It returns
// how many of the questions are whole, so that nothing of a value is left out.
func showKnown(t *testing.T, show func(string, [][2]any), text string) (whole int) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"path": text, "a_b": text})
	if err != nil {
		t.Fatal(err)
	}
	args, err := canon.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	item := approval.Item{Call: 1, Server: text, Tool: "write_file", Shown: canon.Display(args, canon.DisplayOptions{}), Reads: []approval.Read{{Param: text, From: text}},
		About: approval.About{Accepted: true, Roles: map[string]string{"path": "path"}, Facts: []approval.Fact{{Param: "path", Role: "path", Leads: text, Doubt: text}}}}
	again, other := item, item
	again.Call, other.Call, other.Tool = 2, 2, "delete_file"
	for _, items := range [][]approval.Item{{item}, {item, again}, {item, other}} {
		r := approval.Request{Server: text, Tool: "write_file", Items: items, Decision: profiles.Decision{Disposition: profiles.Ask, Risk: profiles.High, Reasons: []profiles.Reason{{Kind: profiles.KindRisk, Risk: profiles.High, Detail: text}}}}
		prompt := wording.Describe(r, wording.DescribeOptions{Zone: time.UTC}).Prompt()
		sent := [][2]any{{nil, text}, {"a_b", text}} // the path is what the question is about
		if item.Shown.Hidden+item.Shown.Cut > 0 || shortened.MatchString(prompt) {
			sent = nil
		} else {
			whole++
		}
		show(prompt, sent)
	}
	for _, kind := range []approval.BoundKind{approval.Exact, approval.UnderFolder, approval.AtHost, approval.ToRecipient, approval.Mentions} {
		value := text
		if kind == approval.Exact && json.Valid([]byte(text)) { // bound as JSON: "5" is not 5
			quoted, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			value = string(quoted)
		}
		showChoices(t, show, text, approval.Cover{Kind: text, Bound: []approval.Bound{{Param: text, Kind: kind, Value: value}}, Free: []string{text, "b"}})
		showChoices(t, show, text, approval.Cover{Kind: "write", Across: true, Shared: true, Bound: []approval.Bound{{Param: "to", Kind: kind, Value: value}, {Param: "folder", Kind: approval.UnderFolder, Value: text}}})
		showChoices(t, show, text, approval.Cover{Kind: "write", RunOnly: true, Bound: []approval.Bound{{Param: approval.QueryOf + text, Kind: kind, Value: "b"}}})
	}
	return whole
}

// shortened matches the marks for what a question does not show.
var shortened = regexp.MustCompile("(?m) left out\\)|` … `|: …|…$|[Aa]nd [0-9,]+ more ")

// boundShown is the most characters of a value that an answer's words have, but for a folder.
const boundShown = 60

// showChoices shows the answers that are offered to a call, in both forms in which
// clients take them.
func showChoices(t *testing.T, show func(string, [][2]any), text string, cover approval.Cover) {
	t.Helper()
	d := profiles.Decision{Disposition: profiles.Ask, Risk: profiles.Medium, Remember: true}
	one := approval.Item{Call: 1, Cover: cover, Decision: d}
	r := approval.Request{Server: text, Tool: text, Script: text, Items: []approval.Item{one, {Call: 2, Decision: d}}, Decision: d}
	r.Before = 1
	for _, titles := range []bool{true, false} {
		form := forms.New(r, "", forms.Options{Session: true, Titles: titles})
		shown := 0
		for name, f := range form.RequestedSchema.(map[string]any)["properties"].(map[string]any) {
			field := f.(map[string]any)
			texts := []any{field["title"]}
			if field["description"] != nil {
				texts = append(texts, field["description"])
			}
			names, _ := field["enumNames"].([]any)
			texts = append(texts, names...)
			choices, _ := field["oneOf"].([]any)
			for _, c := range choices {
				texts = append(texts, c.(map[string]any)["title"])
			}
			for _, one := range texts {
				var sent [][2]any
				if one == field["description"] && name == "decision" {
					sent = boundIn(cover)
				}
				show(one.(string), sent)
				shown++
			}
		}
		if least := map[bool]int{true: 7, false: 9}[cover.RunOnly || !cover.Offered()]; shown < least {
			t.Fatalf("%d texts of a form for %+v", shown, cover)
		}
	}
}

// boundIn returns the values that the words about an answer must have.
func boundIn(cover approval.Cover) (all [][2]any) {
	for _, b := range cover.Bound {
		escaped := len([]rune(canon.Escape(b.Value)))
		if b.Kind == approval.Mentions && len(cover.Free) == 0 || escaped > boundShown && b.Kind != approval.UnderFolder && b.Kind != approval.Mentions {
			continue
		}
		var text any = b.Value
		if b.Kind == approval.Exact && json.Valid([]byte(b.Value)) && json.Unmarshal([]byte(b.Value), &text) != nil {
			continue
		}
		all = append(all, [2]any{nil, text})
	}
	return all
}

// showForms shows what a server asks.
func showForms(t *testing.T, show func(string, [][2]any), text string) {
	t.Helper()
	if shown, _, err := elicit.LabelForm(text, &mcp.ElicitParams{Message: text, RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{
		"a": map[string]any{"type": "boolean", "title": text, "description": text}}}}); err == nil {
		show(shown.Message, nil)
		field := shown.RequestedSchema.(map[string]any)["properties"].(map[string]any)["a"].(*elicit.Field)
		show(field.Title, nil)
		if field.Description != "" {
			show(field.Description, nil)
		}
	}
	if shown, _, err := elicit.LabelForm(text, &mcp.ElicitParams{Mode: "url", URL: "https://www.login.example/a_b", Message: text}); err == nil {
		show(shown.Message, nil)
	}
	if form, err := elicit.ModelConsent(text, text); err == nil {
		show(form.Message, nil)
	}
}
