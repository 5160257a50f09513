package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
)

func TestGrounds(t *testing.T) {
	t.Parallel()
	path := []known.Value{{Role: known.Path}}
	for name, row := range map[string]struct {
		reasons string
		tool    known.Tool
		values  []known.Value
		want    ground
	}{
		"a file":            {"risk medium: it changes something", known.Tool{Effects: []known.Effect{known.Write}, Where: known.Workspace}, path, writing},
		"a store":           {"risk medium: it changes something", known.Tool{Effects: []known.Effect{known.Write}, Where: known.Local}, nil, writing},
		"a picture":         {"risk medium: it changes something", known.Tool{Effects: []known.Effect{known.Read, known.Write}, Where: known.Remote, Net: known.NetChosen}, path, writing},
		"a push":            {"risk medium: it changes something", known.Tool{Effects: []known.Effect{known.Write, known.Send}, Where: known.Remote}, path, endpoint},
		"an issue":          {"risk medium: it changes something", known.Tool{Effects: []known.Effect{known.Write}, Where: known.Remote, Net: known.NetFixed}, nil, endpoint},
		"a message":         {"risk high: to names a recipient who is new here", known.Tool{Effects: []known.Effect{known.Send}, Where: known.Remote}, nil, endpoint},
		"a page":            {"risk medium: it reaches a host that the call names", known.Tool{Effects: []known.Effect{known.Read}, Net: known.NetChosen}, nil, anotherHost},
		"a click":           {"risk medium: it changes something", known.Tool{Effects: []known.Effect{known.Write}, Where: known.Remote, Net: known.NetChosen}, nil, anotherHost},
		"a form":            {"risk medium: it changes something", known.Tool{Effects: []known.Effect{known.Send}, Where: known.Remote, Net: known.NetChosen}, nil, anotherHost},
		"a command":         {"rule deleting and spending (ask): its effects differ\nrisk high: it runs code", known.Tool{Effects: []known.Effect{known.Delete, known.Execute}}, nil, running},
		"a file of secrets": {"rule secrets (ask)\nrisk high: path names a file of secrets", known.Tool{Effects: []known.Effect{known.Read}}, path, sensitive},
		"a start file":      {"rule runs later (ask)\nrisk high: path: tools run it", known.Tool{Effects: []known.Effect{known.Write}}, path, sensitive},
		"a file elsewhere":  {"risk high: path is outside the workspace", known.Tool{Effects: []known.Effect{known.Write}}, path, outside},
		"a deletion":        {"rule deleting (ask)\nrisk high: what it deletes is gone", known.Tool{Effects: []known.Effect{known.Delete}}, nil, deleting},
		"what was read":     {"default: risk\nrisk medium: url carries what mail answered", known.Tool{Effects: []known.Effect{known.Read}, Net: known.NetChosen}, nil, anotherHost},
		"a database":        {"rule first contact (ask)\nrule looking (allow)", known.Tool{Effects: []known.Effect{known.Read}, Where: known.Remote, Net: known.NetFixed}, nil, firstLook},
		"a payment":         {"risk high: it spends money", known.Tool{Effects: []known.Effect{known.Spend, known.Execute}}, nil, spending},
		"another reason":    {"risk low: it only reads", known.Tool{Effects: []known.Effect{known.Read}}, nil, ""},
	} {
		got, err := groundOf(strings.Split(row.reasons, "\n"), known.Reading{Tool: row.tool, Values: row.values})
		if got != row.want || (err != nil) != (row.want == "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, row.want)
		}
	}
}

// Each ground is a line of the table that says what the templates ask about.
func TestGroundsAreInTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []ground{writing, anotherHost, endpoint, outside, sensitive, running, deleting, spending, firstLook} {
		_, row, ok := strings.Cut(string(page), "\n| "+string(g)+" | ")
		if row, _, _ = strings.Cut(row, "\n"); !ok || !strings.HasPrefix(row, "asks") {
			t.Errorf("docs/templates.md has no line %q that coding asks about", g)
		}
	}
}

// Each question has its row, with the script that it is of.
func TestGroundTable(t *testing.T) {
	t.Parallel()
	yes := []dialog{{Answer: "session"}, {Answer: "once"}}
	many := &cell{Session: session{Name: "s"}, Fits: true, Setting: setting{Template: "coding"}, Natural: played{Scripts: []outcome{{Dialogs: yes}, {}, {Dialogs: yes}}},
		Questions: []question{{[]string{"a", "b"}, []ground{writing, running}}, {[]string{"c"}, []ground{deleting}}, {[]string{"d"}, []ground{outside}}, {[]string{"e"}, []ground{spending}}}}
	few := &cell{Session: session{Name: "few"}, Fits: true, Setting: many.Setting, Natural: played{Scripts: []outcome{{Dialogs: yes}}}, Questions: many.Questions[:2]}
	var page strings.Builder
	groundTable(&page, []*cell{many, few})
	_, rows, _ := strings.Cut(page.String(), "| --- |\n")
	want := "| s | 1 | `a`, `b` | for this session | writing in the workspace or in a store on this machine · running code |\n" +
		"| s | 1 | `c` | once | deleting |\n| s | 3 | `d` | for this session | paths outside the workspace |\n| s | 3 | `e` | once | spending |\n\n"
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The page says of every question of a session with more than three why it is asked.
func TestPageSaysWhy(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/asking.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	_, why, _ := strings.Cut(page, "\n## Why more than three\n")
	why, _, _ = strings.Cut(why, "\n## ")
	explained := 0
	for name, template := range fitting {
		asked := regexp.MustCompile(`(?m)^\| ` + name + ` \|.*\| ` + template + ` \| \d+ \| (\d+) \| \d+ of \d+ \|$`).FindStringSubmatch(page)
		if asked == nil {
			t.Errorf("%s has no row", name)
			continue
		}
		want, _ := strconv.Atoi(asked[1])
		if want <= 3 {
			want = 0
		}
		got := strings.Count(why, "\n| "+name+" | ")
		if got != want {
			t.Errorf("%s has %d questions, and %d are explained", name, want, got)
		}
		explained += got
	}
	if rows := strings.Count(why, "\n| ") - 2; explained == 0 || rows != explained {
		t.Errorf("%d rows, %d of them of a session", rows, explained)
	}
}
