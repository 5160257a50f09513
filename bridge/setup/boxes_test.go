package setup

import (
	"errors"
	"testing"

	"codemode-bridge/bridge/config"
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
		got, err := config.Section(next, "/servers/a/confine")
		if err != nil || string(got) != row.want {
			t.Errorf("%s, %s:\n%s\nwant\n%s (%v)", row.box, row.more, got, row.want, err)
		}
	}
	if _, err := Allow([]byte(`{}`), "/servers/a", nil, Allowance{Write: []string{"/srv"}}); !errors.Is(err, ErrNotConfined) {
		t.Errorf("without a box: %v", err)
	}
}
