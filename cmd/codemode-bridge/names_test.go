package main_test

import (
	"strings"
	"testing"
)

// namesText has two servers that are written alike, in an order that is not that of
// their names.
const namesText = `{
  "servers": {
    "my_time": {"type": "builtin", "builtin": "time"},
    "my-time": {"type": "builtin", "builtin": "time"},
    "big-kit": {"type": "builtin", "builtin": "utils"}
  },
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"denylist": ["my-time__*", "big-kit__csv_*"]}}}
}`

func TestToolsHaveBothNames(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, namesText)
	list := c.does("", "tools", "list", "--json")
	for _, want := range []string{`"name":"my_time__now"`, `"policy":"my_time__now"`, `"name":"big_kit__base64_decode"`, `"policy":"big-kit__base64_decode"`, `"policy":"my-time__now"`} {
		if !strings.Contains(list, want) {
			t.Errorf("tools list --json has no %s: %s", want, list)
		}
	}
	// One server alone has the names that it has beside all others.
	alone := c.does("", "tools", "list", "--json", "--server", "my-time")
	if !strings.Contains(alone, `"name":"my_time_`) || strings.Contains(alone, `"name":"my_time__`) {
		t.Errorf("alone, the second of two servers has names that the first has: %s", alone)
	}
	show := c.does("", "tools", "show", "bigKit.base64Decode")
	if !strings.Contains(show, "// in policies: big-kit__base64_decode\n") || !strings.Contains(show, "codemode.big_kit__base64_decode(") {
		t.Errorf("tools show: %s", show)
	}
	if show := c.does("", "tools", "show", "my_time__now"); strings.Contains(show, "in policies") {
		t.Errorf("tools show says twice the same: %s", show)
	}
	if show := c.does("", "tools", "show", "--json", "big_kit__base64_decode"); !strings.Contains(show, `"policy":"big-kit__base64_decode"`) {
		t.Errorf("tools show --json: %s", show)
	}
}

// Profiles match the names that servers give, whatever scripts write.
func TestProfilesMatchTheServersNames(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, namesText)
	out := c.does("", "eval", `const r = [];
		for (const name of ["my_time__now", "my-time__now", "big_kit__csv_parse", "bigKit__csvParse", "big-kit__csv_parse"])
			r.push(await codemode[name]({}).then(() => "ran", (e) => e.name));
		return r.join()`)
	if !strings.Contains(out, "ran,ToolCallDeniedError,ToolCallDeniedError,ToolCallDeniedError,ToolCallDeniedError") {
		t.Errorf("eval: %s", out)
	}
	if out := c.does("", "profiles", "explain", "p", "bigKit__csvParse"); !strings.Contains(out, "deny: big-kit__csv_parse") {
		t.Errorf("profiles explain: %s", out)
	}
}
