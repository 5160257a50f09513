package setup

import (
	"errors"
	"testing"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
)

func TestAllow(t *testing.T) {
	for _, row := range []struct {
		box  string // as it is written
		more Allowance
		want string // the box after it, or the error
	}{
		{`{}`, Allowance{Write: []string{"/srv/a"}}, "{\n        \"write\": [\"/srv/a\"]\n      }"},
		{`{"net": "none"}`, Allowance{Net: []string{"a.example"}}, `{"net": ["a.example"]}`},
		{`{"net": []}`, Allowance{Net: []string{"a.example", "b.example:80"}}, `{"net": ["a.example", "b.example:80"]}`},
		{`{"net": ["a.example"]}`, Allowance{Net: []string{"*.a.example"}}, `{"net": ["a.example", "*.a.example"]}`},
		{`{"write": "~/a" /* mine */}`, Allowance{Write: []string{"workspace"}}, `{"write": ["~/a", "workspace"] /* mine */}`},
		{`{"read": ["~/a", /* mine */ "~/b"]}`, Allowance{Read: []string{"/srv"}}, "{\"read\": [\"~/a\", /* mine */ \"~/b\",\n          \"/srv\"\n        ]}"},
		{`{"run": []}`, Allowance{Run: []string{"git"}}, `{"run": ["git"]}`},
		{`{"read": "/srv/a"}`, Allowance{Write: []string{"/srv/a"}}, "{\"read\": \"/srv/a\",\n        \"write\": [\"/srv/a\"]\n      }"},

		{`{"write": "/srv"}`, Allowance{Write: []string{"/srv/b", "/srv/a"}}, "it may write /srv/b already"},
		{`{"write": "/srv"}`, Allowance{Read: []string{"/srv"}}, "it may read /srv already"},
		{`{"read": "workspace"}`, Allowance{Read: []string{"workspace"}}, "it may read workspace already"},
		{`{"net": "any"}`, Allowance{Net: []string{"a.example"}}, "it may reach a.example already"},
		{`{}`, Allowance{Run: []string{"git"}}, "it may start git already"},
		{`{}`, Allowance{Net: []string{"a example"}}, `"a example" is not a host; write "none", "any", or a list of hosts: ["api.example.com", "*.example.com:8443"]`},
	} {
		text := []byte(`{"servers": {"a": {"command": "x", "confine": ` + row.box + `}}}`)
		cfg, err := config.Parse("/conf/c.json", text, func(string) (string, bool) { return "/home/me", true })
		if err != nil {
			t.Fatalf("%s: %v", row.box, err)
		}
		next, err := Allow(text, "/servers/a", cfg.Servers["a"].Confine, row.more)
		if err != nil {
			if err.Error() != row.want {
				t.Errorf("%s, %s: %v, want %s", row.box, row.more, err, row.want)
			}
			continue
		}
		got, err := jsonc.Section(next, "/servers/a/confine")
		if err != nil || string(got) != row.want {
			t.Errorf("%s, %s:\n%s\nwant\n%s (%v)", row.box, row.more, got, row.want, err)
		}
	}
	if _, err := Allow([]byte(`{}`), "/servers/a", nil, Allowance{Write: []string{"/srv"}}); !errors.Is(err, ErrNotConfined) {
		t.Errorf("without a box: %v", err)
	}
}

// What a client keeps a server from, the bridge keeps it from, or does not take it over.
func TestBoxesOfClients(t *testing.T) {
	system := clients.System{OS: "linux", Env: func(name string) (string, bool) { return "/home/me", name == "HOME" }}
	for sandbox, want := range map[string]string{
		`{}`: `{ "net": "none", "require": true }`,
		`{"filesystem": {"allowWrite": [".", "/home/me/logs"], "denyRead": ["~/.ssh"]}, "network": {"allowedDomains": ["api.example.com"]}}`: `{ "write": ["workspace", "~/logs"], "net": ["api.example.com"], "require": true }`,
		`{"filesystem": {"allowWrite": ["~/app"], "denyWrite": ["~/app/.git"]}, "network": {"allowedDomains": ["*"]}}`:                       `{ "write": ["~/app"], "read": ["~/app/.git"], "net": "any", "require": true }`,

		`{"filesystem": {"allowWrite": ["~"]}}`:                         "the server cannot be added: its client confines it, and that can't be kept: no box may write \"~\": the home folder is in it, with all keys (name the folders that the server needs)",
		`{"filesystem": {"allowWrite": ["/tmp"]}}`:                      "the server cannot be added: its client confines it, and that can't be kept: no box may write \"/tmp\": it is shared by all programs (a box has a /tmp of its own; name a folder below it if it must be that one)",
		`{"network": {"allowedDomains": ["*.com"]}}`:                    "the server cannot be added: its client confines it, and that can't be kept: \"*.com\" would be half of the internet (name a domain: \"*.example.com\")",
		`{"network": {"allowedDomains": [1]}}`:                          "the server cannot be added: the entry confines it, and that can't be kept: its \"network.allowedDomains\" is not a list of texts",
		`{"filesystem": {"allowWrite": ["."], "denyRead": ["~/app"]}}`:  "the server cannot be added: the entry confines it, and that can't be kept: it may write workspace and not read ~/app",
		`{"filesystem": {"allowWrite": ["~/app"], "denyRead": ["~/"]}}`: "the server cannot be added: the entry confines it, and that can't be kept: it may write ~/app and not read ~/",
	} {
		text, notes, err := FromJSON(system, "a", []byte(`{"command": "x", "sandboxEnabled": true, "sandbox": `+sandbox+`}`))
		if err != nil {
			if err.Error() != want {
				t.Errorf("%s:\n%v\nwant\n%s", sandbox, err, want)
			}
			continue
		}
		box, err := jsonc.Section(text, "/confine")
		if err != nil || string(box) != want || len(notes) != 1 {
			t.Errorf("%s: the box is %s, want %s (%v, %q)", sandbox, box, want, err, notes)
		}
	}
	imported := NewImport(system)
	box := &clients.Box{Write: []string{"/"}}
	if s := imported.Add(clients.Server{Name: "a", Kind: clients.Stdio, Command: "x", Box: box}, clients.Place{}); s.Problem == "" || len(imported.New()) != 0 {
		t.Errorf("a server whose box can't be kept is taken over: %+v", s)
	}
	system.OS = "windows"
	text, notes, err := FromJSON(system, "a", []byte(`{"command": "x", "sandboxEnabled": true}`))
	if box, _ := jsonc.Section(text, "/confine"); err != nil || box != nil || len(notes) != 1 {
		t.Errorf("on Windows it is %s (%v, %q)", text, err, notes)
	}
}

// A server in a box is the one of ours that is in a box, and never one that is not.
func TestBoxedServersThatAreThere(t *testing.T) {
	system := clients.System{OS: "linux", Env: func(name string) (string, bool) { return "/home/me", name == "HOME" }}
	text := []byte(`{"servers": {
		"free": {"command": "free"},
		"boxed": {"command": "boxed", "confine": {"write": ["/srv/a", "/srv/b"]}},
	}}`)
	cfg, err := config.Parse("/conf/c.json", text, system.Env)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		command string
		box     bool
		as      string // which of ours it is
	}{
		{"free", false, "free"}, {"boxed", false, "boxed"}, {"boxed", true, "boxed"}, {"free", true, ""},
	} {
		found := NewImport(system)
		if err := found.Configured(text, cfg); err != nil {
			t.Fatal(err)
		}
		s := clients.Server{Name: "a", Kind: clients.Stdio, Command: row.command}
		if row.box {
			s.Box = &clients.Box{Write: []string{"/srv/a"}}
		}
		one := found.Add(s, clients.Place{})
		if one.There != (row.as != "") || one.There && one.As != row.as {
			t.Errorf("%s, in a box: %v: there: %v, as %q, want %q", row.command, row.box, one.There, one.As, row.as)
		}
	}
}
