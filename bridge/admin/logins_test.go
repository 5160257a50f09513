package admin

import (
	"context"
	"strings"
	"testing"
)

// fakeLogins logs in to mail, and to a server whose login is no web address.
type fakeLogins struct{}

func (fakeLogins) Begin(_ context.Context, server, by string) (string, error) {
	switch server {
	case "mail":
		return "https://auth.example/authorize?for=" + by, nil
	case "odd":
		return "javascript:alert(1)", nil
	}
	return "", ErrUnknown
}

func TestLoginsAreBegun(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Logins = fakeLogins{}
		o.Status = func(context.Context) any {
			return map[string]any{"servers": []map[string]any{{"name": "mail", "state": "needs-login", "why": "log in"}, {"name": "time", "state": "connected"}}}
		}
	})
	b.as("ada").do("POST", "/api/servers/login", `{"server":"mail"}`).want(200).says(`"link":"https://auth.example/authorize?for=ada"`)
	b.as("ada").do("POST", "/api/servers/login", `{"server":"odd"}`).refused(422, "invalid")
	b.as("ada").do("POST", "/api/servers/login", `{"server":"time"}`).refused(404, "not_found")
	b.as("bob").do("POST", "/api/servers/login", `{"server":"mail"}`).refused(403, "role")
	for name, want := range map[string]int{"ada": 1, "bob": 0} {
		if page := b.atPage(name).do("GET", "/servers", "").want(200); strings.Count(page.body, `data-do="log-in"`) != want {
			t.Errorf("%s sees %d buttons", name, strings.Count(page.body, `data-do="log-in"`))
		}
	}
}
