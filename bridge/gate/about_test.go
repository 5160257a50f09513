package gate

import (
	"encoding/json"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
)

// A question is made of a meaning only if somebody accepted it and it is of all of the
// call; otherwise it only puts the arguments in order.
func TestAbout(t *testing.T) {
	tool := known.Tool{Args: map[string]known.Role{"path": known.Path, "content": known.Content}}
	roles := map[string]string{"path": "path", "content": "content"}
	path := profiles.PathFact{Param: "path", Path: "/w/.git/hooks/x", Inside: true, RunsLater: "git runs what stands there"}
	fact := approval.Fact{Param: "path", Role: "path", Leads: "/w/.git/hooks/x", Inside: true}
	later := fact
	later.RunsLater = path.RunsLater
	for _, row := range []struct {
		name string
		is   profiles.Meaning
		want approval.About
	}{
		{"accepted", profiles.Meaning{Accepted: true, Effects: []string{"write"}, Paths: []profiles.PathFact{path}},
			approval.About{Accepted: true, Effects: []string{"write"}, Roles: roles, Facts: []approval.Fact{later}}},
		{"reading runs nothing", profiles.Meaning{Accepted: true, Effects: []string{"read"}, Paths: []profiles.PathFact{path}},
			approval.About{Accepted: true, Effects: []string{"read"}, Roles: roles, Facts: []approval.Fact{fact}}},
		{"not accepted", profiles.Meaning{Effects: []string{"read"}}, approval.About{Effects: []string{"read"}, Roles: roles}},
		{"an argument of which nothing is known", profiles.Meaning{Accepted: true, Effects: []string{"read"}, Unknown: []string{"x"}}, approval.About{Effects: []string{"read"}, Roles: roles}},
		{"hosts and recipients", profiles.Meaning{Accepted: true, Hosts: []profiles.HostFact{{Param: "url", Name: "a.example", New: true}}, Recipients: []profiles.RecipientFact{{Param: "to", Name: "ann"}}},
			approval.About{Accepted: true, Roles: roles, Facts: []approval.Fact{{Param: "url", Role: "host", New: true}, {Param: "to", Role: "recipient"}}}},
	} {
		if diff := cmp.Diff(row.want, aboutCall(&row.is, tool)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
}

func TestOrderIsOfTheCallsOwnArguments(t *testing.T) {
	args, err := canon.Parse([]byte(`{"a":1,"to":"x","own":2}`))
	if err != nil {
		t.Fatal(err)
	}
	c := &call{args: args, tool: &catalog.Tool{Definition: catalog.Definition{Input: json.RawMessage(`{"properties":{"to":{},"body":{},"a":{}}}`)}}}
	if diff := cmp.Diff([]string{"to", "a"}, c.order()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
