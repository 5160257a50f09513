package gate

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
)

// A question is made of a meaning only if somebody accepted it and it is of all of the
// call; otherwise it only puts the arguments in order.
func TestAbout(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.New([]string{folder}, nil)
	if err != nil {
		t.Fatal(err)
	}
	opens := known.Tool{Stateful: true, Net: known.NetChosen, Args: map[string]known.Role{"url": known.Host}}
	file := known.Tool{Args: map[string]known.Role{"path": known.Path, "content": known.Content}}
	roles := map[string]string{"path": "path", "content": "content"}
	hook := filepath.Join(folder, ".git", "hooks", "x")
	path := profiles.PathFact{Param: "path", Path: hook, Inside: true, RunsLater: "git runs what stands there"}
	fact := approval.Fact{Param: "path", Role: "path", Leads: hook, Inside: true, Within: filepath.Join(".git", "hooks", "x")}
	later := fact
	later.RunsLater = path.RunsLater
	page := func(host, doubt string) profiles.Meaning {
		return profiles.Meaning{Accepted: true, Effects: []string{"write"}, Hosts: []profiles.HostFact{{Param: pageParam, Name: host, Doubt: doubt, New: true}}}
	}
	for _, row := range []struct {
		name  string
		is    profiles.Meaning
		opens bool // the server has a tool that opens pages
		want  approval.About
	}{
		{"accepted", profiles.Meaning{Accepted: true, Effects: []string{"write"}, Paths: []profiles.PathFact{path}}, false,
			approval.About{Accepted: true, Effects: []string{"write"}, Roles: roles, Facts: []approval.Fact{later}}},
		{"reading runs nothing", profiles.Meaning{Accepted: true, Effects: []string{"read"}, Paths: []profiles.PathFact{path}}, false,
			approval.About{Accepted: true, Effects: []string{"read"}, Roles: roles, Facts: []approval.Fact{fact}}},
		{"not accepted", profiles.Meaning{Effects: []string{"read"}}, false, approval.About{Effects: []string{"read"}, Roles: roles}},
		{"an argument of which nothing is known", profiles.Meaning{Accepted: true, Effects: []string{"read"}, Unknown: []string{"x"}}, false, approval.About{Effects: []string{"read"}, Roles: roles}},
		{"hosts and recipients", profiles.Meaning{Accepted: true, Hosts: []profiles.HostFact{{Param: "url", Name: "a.example", New: true}}, Recipients: []profiles.RecipientFact{{Param: "to", Name: "ann"}}}, false,
			approval.About{Accepted: true, Roles: roles, Facts: []approval.Fact{{Param: "url", Role: "host", New: true}, {Param: "to", Role: "recipient"}}}},
		{"a folder beside the workspace", profiles.Meaning{Accepted: true, Effects: []string{"read"}, Paths: []profiles.PathFact{{Param: "path", Path: folder + "2"}}}, false,
			approval.About{Accepted: true, Effects: []string{"read"}, Roles: roles, Facts: []approval.Fact{{Param: "path", Role: "path", Leads: folder + "2"}}}},
		{"the page that is open", page("a.example", ""), true,
			approval.About{Accepted: true, Effects: []string{"write"}, Roles: roles, Facts: []approval.Fact{{Param: pageParam, Role: "host", Leads: "a.example", New: true}}}},
		{"a page that nobody knows", page("", "nobody knows"), true,
			approval.About{Accepted: true, Effects: []string{"write"}, Roles: roles, Facts: []approval.Fact{{Param: pageParam, Role: "host", Doubt: "nobody knows", New: true}}}},
		{"a server without pages", page("", "nobody knows"), false, approval.About{Accepted: true, Effects: []string{"write"}, Roles: roles}},
	} {
		server := known.Server{Tools: map[string]known.Tool{"write": file}}
		if row.opens {
			server.Tools["open"] = opens
		}
		if diff := cmp.Diff(row.want, aboutCall(&row.is, server, "write", ws)); diff != "" {
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
