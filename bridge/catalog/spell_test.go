package catalog

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOtherSpellings(t *testing.T) {
	c := Sources{
		Servers: []Server{
			server("chrome-devtools", "click", "take-screenshot", "page_1_1", "wait.for"),
			server("filesystem", "read_file", "list", "research", "re_search", "LIST_ALL"),
			server("github", "create_issue", "get_v11"),
			server("my-srv", "go"), server("my_srv", "stop"),
			server("a", "b__c"), server("context7", "resolve-library-id"),
		},
		Order: []string{"filesystem", "github", "chrome-devtools", "my_srv", "my-srv", "a", "Shop", "shop"},
		Kept:  map[ToolRef]string{{"github", "create_issue"}: "github__create_issue_kept"},
	}.Build()
	for name, want := range map[string]string{
		"chrome_devtools__click":              "chrome_devtools__click",
		"chromeDevtools__click":               "chrome_devtools__click",
		"ChromeDevTools__click":               "chrome_devtools__click",
		"chrome-devtools__click":              "chrome_devtools__click",
		"chrome_devtools__Click":              "chrome_devtools__click",
		"chrome_devtools.click":               "chrome_devtools__click",
		"chrome.devtools.click":               "chrome_devtools__click",
		"chrome_devtools__takeScreenshot":     "chrome_devtools__take_screenshot",
		"chrome_devtools__waitFor":            "chrome_devtools__wait_for",
		"chrome_devtools__page_1.1":           "chrome_devtools__page_1_1",
		"filesystem__readFile":                "filesystem__read_file",
		"filesystem__read-file":               "filesystem__read_file",
		"filesystem__listAll":                 "filesystem__LIST_ALL",
		"filesystem__research":                "filesystem__research",
		"github__create_issue_kept":           "github__create_issue_kept",
		"github__createIssueKept":             "github__create_issue_kept",
		"github__create_issue":                "github__create_issue_kept", // its path
		"github__createIssue":                 "github__create_issue_kept",
		"a__b__c":                             "a__b__c",
		"a.b__c":                              "a__b__c",
		"a__b_c":                              "a__b__c",
		"my_srv__Stop":                        "my_srv__stop",
		"my_srv_c32bec__Go":                   "my_srv_c32bec__go",
		"my-srv__GO":                          "my_srv_c32bec__go",
		"searchTools":                         "search_tools",
		"get-tool-schema":                     "get_tool_schema",
		"chrome_devtools__click_b69219":       "chrome_devtools__click", // as earlier releases called it
		"context7__resolve_library_id_8f9c48": "context7__resolve_library_id",

		"chrome_devtools__page_11":      "", // not 1_1
		"github__get_v1_1":              "",
		"filesystem__reSearch":          "re_search research",
		"filesystem__reSEARCH":          "re_search research",
		"mySrv__stop":                   "stop", // my-srv may have one, too
		"mysrv__stop":                   "stop",
		"devtools__click":               "", // the server is another one
		"chrome__devtools_click":        "",
		"click":                         "",
		"filesystem__read_files":        "",
		"filesystem__":                  "",
		"filesystem__-":                 "",
		"__":                            "",
		"":                              "",
		"chrome_devtools__click_b69218": "",
		"search_tools__x":               "",
	} {
		got := c.Resolve(name)
		if got.Tool != nil {
			if got.Tool.Script != want || len(got.Fits) > 0 || got.Other != (name != want) {
				t.Errorf("%q is %s (by another name: %v, fits %d), want %q", name, got.Tool.Script, got.Other, len(got.Fits), want)
			}
			continue
		}
		var fits []string
		for _, tool := range got.Fits {
			fits = append(fits, tool.Name)
		}
		if strings.Join(fits, " ") != want {
			t.Errorf("%q fits %q, want %q", name, fits, want)
		}
	}
	for part, want := range map[string][]string{
		"chrome_devtools": {"chrome-devtools"}, "chromedevtools": {"chrome-devtools"},
		"my_srv": {"my_srv"}, "my-srv": {"my-srv"}, "mySrv": {"my-srv", "my_srv"},
		"shop": {"shop"}, "SHOP": {"Shop", "shop"}, "nobody": nil, "": nil,
	} {
		if got := c.Servers(part); !slices.Equal(got, want) {
			t.Errorf("%q may be %q, want %q", part, got, want)
		}
	}
}

// A name says which servers may have its tool before they list any.
func TestOwners(t *testing.T) {
	c := Sources{Order: []string{"chrome-devtools", "my_srv", "my-srv", "a", "ab"}, Kept: map[ToolRef]string{{"my-srv", "x"}: "my_srv_abcdef__x"}}.Build()
	for name, want := range map[string]string{
		"chrome_devtools__click": "chrome_devtools/click chrome-devtools/click",
		"chrome-devtools.click":  "chrome-devtools/click",
		"chromeDevtools.click":   "chrome-devtools/click",
		"mySrv.go":               "my-srv/go my_srv/go",
		"my_srv_abcdef__x":       "my-srv/x my_srv_abcdef/x",
		"a.b__c":                 "a.b/c a/b__c ab/c",
		"click":                  "",
		"a__":                    "a/",
	} {
		var got []string
		for _, m := range c.Owners(name) {
			got = append(got, m.Server+"/"+m.Tool)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q may be of %q, want %q", name, got, want)
		}
	}
	if c := (Sources{Servers: []Server{server("a", "b__c")}, Order: []string{"a", "ab"}}).Build(); c.Resolve("a.B__c").Tool != nil {
		t.Error("a name is taken as a tool although a server that has not listed its own may have it")
	}
}

// Hidden tools count: what fits two tools fits none, whoever asks. And a view does not
// show them.
func TestSpellingsOfHiddenTools(t *testing.T) {
	c := Build([]Server{server("s", "read_file", "readFile", "delete_all")})
	v := c.View(func(_, tool string) bool { return tool == "read_file" })
	if got := c.Resolve("s__ReadFile"); got.Tool != nil || len(got.Fits) != 2 {
		t.Errorf("what fits a hidden tool, too, is %+v", got)
	}
	if _, err := v.Declare("s__deleteAll"); err == nil || strings.Contains(err.Error(), "delete_all") {
		t.Errorf("a hidden tool in another spelling: %v", err)
	}
	if text, err := v.Declare("s__read-file"); err == nil {
		t.Errorf("a name that fits a hidden tool, too, is declared: %s", text)
	}
	for _, tool := range c.Tools() {
		if v.Shows(tool) != (tool.Name == "read_file") {
			t.Errorf("shows %s: %v", tool.Script, v.Shows(tool))
		}
	}
}

// Whatever a script writes, it gets the tool that is called so, or the only one of its
// server whose name differs in spelling alone.
func TestResolveFindsTheOnlyOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		servers := crowd(t)
		c := Sources{Servers: servers, Order: order(servers)}.Build()
		tool := rapid.SampledFrom(c.Tools()).Draw(t, "tool")
		name := respell(t, rapid.SampledFrom([]string{tool.Script, tool.Path(), tool.Server + "." + tool.Name, tool.Server + "__" + hard().Draw(t, "another")}).Draw(t, "name"))
		checkResolution(t, c, name)
	})
}

// respell writes a name in some other way.
func respell(t *rapid.T, name string) string {
	switch rapid.IntRange(0, 4).Draw(t, "how") {
	case 0:
		return strings.ToUpper(name)
	case 1:
		return strings.ReplaceAll(name, "-", "_")
	case 2:
		return strings.ReplaceAll(name, "_", "-")
	case 3:
		return strings.Replace(name, "__", ".", 1)
	default:
		return name
	}
}

type fataler interface{ Fatalf(string, ...any) }

func checkResolution(t fataler, c *Catalog, name string) {
	got := c.Resolve(name)
	if exact, ok := c.Lookup(name); ok && exact.Script == name && (got.Tool != exact || got.Other) {
		t.Fatalf("%q is a script name and finds another tool", name)
	}
	if got.Tool == nil || !got.Other || got.Tool.Server == "" || got.Tool.Path() == name || formerly(got.Tool) == name {
		return
	}
	if len(got.Fits) > 0 {
		t.Fatalf("%q finds one, and several", name)
	}
	all := fold(name)
	if want := fold(got.Tool.Server + "__" + got.Tool.Name); all != want && all != fold(got.Tool.Script) && all != fold(got.Tool.Server+"__"+strings.TrimPrefix(got.Tool.Script, c.Prefix(got.Tool.Server)+"__")) && all != fold(c.Prefix(got.Tool.Server)+"__"+got.Tool.Name) {
		t.Fatalf("%q was taken for %s, which has other letters", name, got.Tool.Script)
	}
	for _, other := range c.Tools() {
		if other != got.Tool && other.Server == got.Tool.Server && fold(other.Name) == fold(got.Tool.Name) && fold(other.Script) == fold(got.Tool.Script) {
			t.Fatalf("%q was taken for %s, and could be %s", name, got.Tool.Script, other.Script)
		}
	}
}

func FuzzResolve(f *testing.F) {
	c := Sources{Servers: []Server{
		server("chrome-devtools", "click", "take-screenshot", "v1_1", "v11", ""), server("fs", "read_file", "readFile", "list", "b__c"),
		server("fs_b", "c", "検索"), server("FS", "list"), server("x", strings.Repeat("long-", 40)),
	}, Order: []string{"fs", "chrome-devtools", "away", "Away"}}.Build()
	for _, t := range c.Tools() {
		f.Add(t.Script)
		f.Add(t.Path())
		f.Add(strings.ToUpper(t.Path()))
	}
	f.Fuzz(func(t *testing.T, name string) { checkResolution(t, c, name) })
}

// A name that a script wrote for the tool of a server that is down reaches no other server
// whose tools are called to match.
func TestNamesOfServersThatAreDown(t *testing.T) {
	order := []string{"chrome-devtools", "chrome_devtools", "pay", "pay-bank"}
	hostile := Sources{Order: order, Servers: []Server{server("chrome_devtools", "click"), server("pay", "bank__send", "bank")}}.Build()
	for _, name := range []string{"chrome_devtools__click", "chrome_devtools__Click", "pay.bank__send", "pay__bank__Send", "payBank__send"} {
		if got := hostile.Resolve(name).Tool; got != nil {
			t.Errorf("%s is taken as %s", name, got.Path())
		}
	}
	// What stands for a tool of theirs alone still does.
	for name, want := range map[string]string{"pay__bank__send": "bank__send", "pay__Bank": "bank"} {
		if got := hostile.Resolve(name).Tool; got == nil || got.Name != want {
			t.Errorf("%s is taken as %v", name, got)
		}
	}
	own := hostile.tools[hostile.own].Script
	if got, ok := hostile.Lookup(own); !ok || got.Server != "chrome_devtools" {
		t.Errorf("%s is %v", own, got)
	}
}
