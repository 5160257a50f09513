package recorder

import (
	"encoding/json"
	"strings"
	"testing"

	"codemode-bridge/bridge/ledger"
)

func TestKnownSecretsAreScrubbed(t *testing.T) {
	t.Parallel()
	var k Secrets
	env := func(name string) (string, bool) { return "passed-9f2c41aa", name == "GH_TOKEN" }
	k.Learn([]Server{{
		Env:     map[string]string{"API_KEY": `key"9f2c41aa`, "ROOT": "/home/me/notes", "PIN_TOKEN": "1234"},
		PassEnv: []string{"GH_TOKEN", "LANG"},
		Headers: map[string]string{"Authorization": "Bearer head-9f2c41aa", "Accept": "application/json"},
		URL:     "https://me:pass%20word-9f2c41aa@example.com/mcp?api_key=query-9f2c41aa&version=2026-01-01",
	}}, env)
	k.Learn([]Server{{Env: map[string]string{"API_KEY": "second-9f2c41aa"}}}, env)

	const open = "/home/me/notes application/json 2026-01-01 1234"
	r := ledger.Record{
		Error:   `key"9f2c41aa passed-9f2c41aa head-9f2c41aa pass word-9f2c41aa pass%20word-9f2c41aa pass+word-9f2c41aa query-9f2c41aa second-9f2c41aa ` + open,
		Comment: "as in head-9f2c41aa", EditedArgs: json.RawMessage(`{"a":"head-9f2c41aa"}`),
		Args:  json.RawMessage(`{"a":"xkey\"9f2c41aax","b":"` + open + `"}`),
		Input: json.RawMessage(`{"key":"9f2c41aa"}`),
	}
	k.Scrub(&r)
	if strings.Contains(r.Error, "9f2c41aa") || !strings.HasSuffix(r.Error, open) {
		t.Errorf("the error is %s", r.Error)
	}
	if want := `{"a":"x[hidden]x","b":"` + open + `"}`; string(r.Args) != want {
		t.Errorf("the arguments are %s, want %s", r.Args, want)
	}
	if r.Comment != "as in [hidden]" || string(r.EditedArgs) != `{"a":"[hidden]"}` {
		t.Errorf("what a person wrote is %q, %s", r.Comment, r.EditedArgs)
	}
	if !json.Valid(r.Input) {
		t.Errorf("the input is no JSON: %s", r.Input)
	}
}

func TestNothingIsKnown(t *testing.T) {
	t.Parallel()
	var k Secrets
	r := ledger.Record{Error: "as it is"}
	k.Scrub(&r)
	if r.Error != "as it is" {
		t.Error(r.Error)
	}
}
