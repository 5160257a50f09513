package gate

import (
	"encoding/json"
	"testing"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// A question to a server elsewhere is allowed for only reading, unless it carries a
// secret there, or what another server answered.
func TestReadingThatCarriesSomethingOut(t *testing.T) {
	const row = "Gesine Albers, born 1961-04-02, diabetes"
	set, problems := profiles.Parse(supervised(profiles.ProfileSpec{Default: new("risk"), ElicitationFallback: new("deny"),
		Rules: []profiles.RuleSpec{{Effects: []string{"read"}, Action: new("allow")}}}))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	object := json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"more":{"type":"array"}}}`)
	tool := func(where known.Where, net known.Net, labels ...known.Label) Meant {
		return Meant{Accepted: true, Server: known.Server{Name: "x", Tools: map[string]known.Tool{
			"search": {Effects: []known.Effect{known.Read}, Where: where, Net: net, Labels: labels, Args: map[string]known.Role{"q": known.Plain, "more": known.Plain}},
		}}}
	}
	search := []catalog.Definition{{Name: "search", Input: object}}
	g := New(&View{
		Profiles: set,
		Catalog:  catalog.Build([]catalog.Server{{Name: "files", Tools: search}, {Name: "notes", Tools: search}, {Name: "web", Tools: search}}),
		Meanings: map[string]Meant{"files": tool(known.Local, known.NetNone, known.Private), "notes": tool(known.Local, known.NetNone), "web": tool(known.Remote, known.NetFixed)},
	}, Options{Caller: &fakeCaller{reply: `{"content":[{"type":"text","text":"` + row + `"}]}`}, Recorder: &book{}})
	r := begin(t, g, "p")
	number := 0
	allowed := func(name, args string) bool {
		number++
		_, err := g.Call(t.Context(), r, Call{Number: number, Name: name, Args: json.RawMessage(args)})
		return err == nil
	}
	for _, test := range []struct {
		says, tool, args string
		want             bool
	}{
		{"reads", "files__search", `{"q":"patients"}`, true},
		{"asks elsewhere", "web__search", `{"q":"diabetes in the elderly"}`, true},
		{"asks elsewhere with a name that was read", "web__search", `{"q":"who is Gesine Albers"}`, false},
		{"asks elsewhere with another name", "web__search", `{"q":"who is Gesine Alberts"}`, true},
		{"asks on this machine with a name that was read", "notes__search", `{"q":"Gesine Albers"}`, true},
		{"asks elsewhere with what was read", "web__search", `{"q":"` + row + `"}`, false},
		{"asks on this machine with what was read", "notes__search", `{"q":"` + row + `"}`, true},
		{"asks elsewhere with a secret", "web__search", `{"q":"connect to postgres://shop:hV7-kelp-Ostrich@db.example.com/shop"}`, false},
		{"asks elsewhere with a secret in a list", "web__search", `{"more":["x",{"y":"postgres://shop:hV7-kelp-Ostrich@db.example.com/shop"}]}`, false},
		{"searches here for a secret", "files__search", `{"q":"postgres://shop:hV7-kelp-Ostrich@db.example.com/shop"}`, true},
	} {
		if got := allowed(test.tool, test.args); got != test.want {
			t.Errorf("a call that %s passes: %v", test.says, got)
		}
	}
}
