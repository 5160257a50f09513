//go:build real

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// comesIn signs ann in with a code that one bridge gave, at the page of a second, and has
// the page of a third show her; the code is good nowhere any more.
func (f *fleet) comesIn() {
	f.Helper()
	gave, takes, shows := f.bridges[0], f.bridges[1], f.bridges[2]
	status, text := gave.say("POST", "/api/login/code", map[string]any{})
	var out struct{ Code string }
	if json.Unmarshal([]byte(text), &out) != nil || out.Code == "" {
		f.Fatalf("asking for a code: %d %s", status, text)
	}
	signIn := func(m *member) *http.Response {
		f.Helper()
		res, err := http.Post(m.page+"/api/login", "application/json", strings.NewReader(fmt.Sprintf(`{"code": %q}`, out.Code)))
		if err != nil {
			f.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	res := signIn(takes)
	if res.StatusCode != http.StatusOK || len(res.Cookies()) != 1 {
		f.Fatalf("signing in with the code of another bridge: %s", res.Status)
	}
	at, err := url.Parse(shows.page)
	if err != nil {
		f.Fatal(err)
	}
	r, err := http.NewRequestWithContext(f.Context(), http.MethodGet, shows.page+"/api/me", nil)
	if err != nil {
		f.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "codemode_approver_" + at.Port(), Value: res.Cookies()[0].Value}) // as if all were one address
	me, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	me.Body.Close()
	if me.StatusCode != http.StatusOK {
		f.Errorf("at a third page the login is answered %s", me.Status)
	}
	for _, m := range f.bridges {
		if again := signIn(m); again.StatusCode != http.StatusUnauthorized {
			f.Errorf("the code again: %s", again.Status)
		}
	}
}
