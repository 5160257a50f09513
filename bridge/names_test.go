package bridge

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// spelled is a bridge whose servers have names that are no identifiers.
func spelled(t *testing.T, spec profiles.Spec) *bench {
	b := newBench(t, spec)
	any := json.RawMessage(`{"type":"object"}`)
	b.up.tools = map[string]func(context.Context, json.RawMessage) (string, error){}
	var servers []catalog.Server
	for _, s := range []struct {
		name  string
		tools []string
	}{{"chrome-devtools", []string{"click", "take-screenshot"}}, {"fs", []string{"read_file", "list_all", "listAll", "drop_it", "dropIt"}}} {
		server := catalog.Server{Name: s.name}
		for _, name := range s.tools {
			server.Tools = append(server.Tools, catalog.Definition{Name: name, Input: any})
			b.up.tools[s.name+"__"+name] = func(context.Context, json.RawMessage) (string, error) { return text(s.name + " " + name), nil }
		}
		servers = append(servers, server)
	}
	b.Replace(&gate.View{Profiles: b.gate.View().Profiles, Catalog: catalog.Build(servers)})
	return b
}

// whole is the whole answer of eval.
func whole(t *testing.T, c *mcp.ClientSession, code string) string {
	text, _ := call(t, c, "eval", map[string]any{"code": code})
	return text
}

// policy is a profile that all scripts are under.
func policy(p *profiles.ProfileSpec) profiles.Spec {
	return profiles.Spec{DefaultProfile: ptr("p"), Profiles: map[string]*profiles.ProfileSpec{"p": p}}
}

func TestScriptsMaySpellNamesOtherwise(t *testing.T) {
	b := spelled(t, profiles.Spec{})
	c := b.connect(t, nil)
	got := whole(t, c, `return [
		await codemode.chrome_devtools__click(), await codemode.chrome_devtools.click(), await codemode.chromeDevtools.Click(),
		await codemode["chrome-devtools__take-screenshot"](), await codemode.chrome_devtools__take_screenshot(),
		(await codemode.raw("fs.readFile")).content[0].text, await codemode.fs__list_all(),
		await codemode.chrome_devtools__click_b69219(), typeof (await codemode.searchTools({query: "click"}))].join()`)
	for _, want := range []string{
		`"result":"chrome-devtools click,chrome-devtools click,chrome-devtools click,chrome-devtools take-screenshot,chrome-devtools take-screenshot,fs read_file,fs list_all,chrome-devtools click,object"`,
		`"notes":["codemode[\"chrome-devtools__take-screenshot\"] was taken as chrome_devtools__take_screenshot","codemode.chromeDevtools__Click was taken as chrome_devtools__click","codemode.chrome_devtools__click_b69219 was taken as chrome_devtools__click","codemode[\"fs.readFile\"] was taken as fs__read_file","codemode.searchTools was taken as search_tools"]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got := whole(t, c, `return await codemode.fs__read_file()`); strings.Contains(got, "notes") {
		t.Errorf("a script name has a note: %s", got)
	}
	made := len(b.up.made())
	if got := whole(t, c, `await codemode.fs.ListAll()`); !strings.Contains(got, "did you mean fs__listAll or fs__list_all?") || len(b.up.made()) != made {
		t.Errorf("what fits two tools: %s, calls %q", got, b.up.made())
	}
}

// Policy knows a tool by its server and its raw name, however a script spells it.
func TestPolicyDoesNotSeeSpellings(t *testing.T) {
	for _, pattern := range []string{"chrome-devtools__take-screenshot", "chrome-devtools__take*", "chrome-dev*"} {
		c := spelled(t, policy(&profiles.ProfileSpec{Denylist: []string{pattern}})).connect(t, nil)
		for _, code := range []string{
			`codemode.chrome_devtools__take_screenshot`, `codemode.chrome_devtools.takeScreenshot`, `codemode["chrome-devtools__take-screenshot"]`, `codemode.chromeDevtools["take-screenshot"]`,
			`((...args) => codemode.raw("chromeDevtools.takeScreenshot", ...args))`,
		} {
			if got := whole(t, c, `try { return await `+code+`() } catch (e) { return e.name }`); !strings.Contains(got, `"result":"ToolCallDeniedError"`) {
				t.Errorf("%s denied, %s: %s", pattern, code, got)
			}
		}
	}
	// What looks like a script name or another spelling matches nothing.
	c := spelled(t, policy(&profiles.ProfileSpec{Denylist: []string{"chrome_devtools__*", "chromeDevtools__*", "fs__readFile"}})).connect(t, nil)
	if got := whole(t, c, `return [await codemode.chrome_devtools__click(), await codemode.fs__readFile()].join()`); !strings.Contains(got, `"result":"chrome-devtools click,fs read_file"`) {
		t.Errorf("patterns with script names: %s", got)
	}
	// A hidden tool counts when a name fits two, and is not shown.
	c = spelled(t, policy(&profiles.ProfileSpec{Denylist: []string{"fs__drop_it"}, Allowlist: []string{"fs__*"}})).connect(t, nil)
	if got := whole(t, c, `return await codemode.fs__DropIt()`); !strings.Contains(got, "UnknownToolError") || strings.Contains(got, "drop_it") {
		t.Errorf("a name that fits a tool and a hidden one: %s", got)
	}
}

// A run that goes on calls the tool that it was going to call, and people were asked
// about that one, whatever its server lists by then.
func TestAResumedRunMeansTheSameTool(t *testing.T) {
	const code = `return [await codemode.b__Echo({n: 1}), await codemode.a__Echo({n: 2}), await codemode.a__eCHO({n: 3})].join()`
	f := newFleet()
	id := f.endsAsking(t, code, 1)
	asked := f.open(t, 1)[0]
	if items := asked.Calls(); items[0].Script != "a__echo" || asked.Preview.Calls[1].Name != "a__echo" {
		t.Errorf("people were asked about %s, in the preview %s", items[0].Script, asked.Preview.Calls[1].Name)
	}
	f.answer(t, asked, yes)
	second := f.bridge(t, "two", queued())
	second.Replace(newView(t, queued(), "ecHo", "Echo"))
	res, err := second.Resume(t.Context(), id, "the test", nil)
	if err != nil {
		t.Fatal(err)
	}
	out := string(res.StructuredContent.(json.RawMessage))
	if made := second.up.made(); len(made) != 1 || !strings.HasPrefix(made[0], `a__echo`) || !strings.Contains(made[0], `"n":2`) {
		t.Errorf("made %q, want the call that was asked about", made)
	}
	for _, want := range []string{"codemode.a__Echo was taken as a__echo", "codemode.b__Echo was taken as b__echo", `there is no tool \"a__eCHO\"; did you mean`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	var tools []string
	for row, err := range f.records.Rows(t.Context(), ledger.Query{Runs: []string{id}}) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Record.Server != "" && !slices.Contains(tools, row.Record.Server+"__"+row.Record.Tool) {
			tools = append(tools, row.Record.Server+"__"+row.Record.Tool)
		}
	}
	if want := []string{"b__echo", "a__echo"}; !slices.Equal(tools, want) {
		t.Errorf("records are of %q, want %q", tools, want)
	}
}
