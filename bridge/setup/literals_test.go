package setup

import (
	"fmt"
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/secrets"

	"github.com/google/go-cmp/cmp"
)

// argSecrets stands for recorder.ArgSecrets, which finds more.
func argSecrets(args []string) (all []string) {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--token="); ok {
			all = append(all, value)
		}
		if arg == "--api-key" && i+1 < len(args) {
			all = append(all, args[i+1])
		}
	}
	return all
}

// kept is a Keeper in memory.
type kept map[string]string

func (k kept) Has(name string) (string, bool, error) { v, ok := k[name]; return v, ok, nil }
func (k kept) Set(name, value string) error          { k[name] = value; return nil }
func (kept) Reference(name string) secrets.Reference {
	return secrets.Reference{Kind: secrets.Keyring, Name: name}
}

func TestLiteralsAreMoved(t *testing.T) {
	t.Parallel()
	shop := &Server{As: "my-shop", Server: clients.Server{
		Env:  map[string]string{"SHOP_TOKEN": "canary-1-abcdef", "DEBUG": "true", "API_KEY": "${API_KEY}", "SHORT_KEY": "abc", "PASSWORD": "pa$sword-canary-2", "HOME_DIR": "/home/ann/shop"},
		Args: []string{"serve", "--api-key", "canary-3-abcdef", "--port", "80", "--token=canary-4-abcdef", "--token=${T}"},
	}}
	web := &Server{As: "web", Server: clients.Server{
		URL:     "https://ann:canary-5-abcdef@a.example/mcp",
		Headers: map[string]string{"Authorization": "Bearer canary-6-abcdef", "X-Team": "blue"},
		Env:     map[string]string{"SHOP_TOKEN": "canary-7-abcdef"},
	}}
	same := &Server{As: "same", Server: clients.Server{Env: map[string]string{"SHOP_TOKEN": "canary-1-abcdef"}}}
	keeper := kept{}
	var found []string
	for _, l := range Literals([]*Server{shop, web, same}, argSecrets) {
		r, err := l.Keep(keeper)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprintf("%s %s: %s", l.Server, l.Where, r.Name))
	}
	if diff := cmp.Diff([]string{
		"my-shop env PASSWORD: PASSWORD", "my-shop env SHOP_TOKEN: SHOP_TOKEN", "my-shop args[2]: MY_SHOP_API_KEY", "my-shop args[5]: MY_SHOP_TOKEN",
		"web env SHOP_TOKEN: SHOP_TOKEN_2", "web headers Authorization: WEB_AUTHORIZATION", "web url: WEB_URL", "same env SHOP_TOKEN: SHOP_TOKEN",
	}, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(kept{
		"PASSWORD": "pa$sword-canary-2", "SHOP_TOKEN": "canary-1-abcdef", "MY_SHOP_API_KEY": "canary-3-abcdef", "MY_SHOP_TOKEN": "canary-4-abcdef",
		"SHOP_TOKEN_2": "canary-7-abcdef", "WEB_AUTHORIZATION": "canary-6-abcdef", "WEB_URL": "ann:canary-5-abcdef",
	}, keeper); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	for name := range keeper {
		if !secrets.NameForm.MatchString(name) {
			t.Errorf("%q cannot be a name", name)
		}
	}
	if diff := cmp.Diff([]string{"serve", "--api-key", "${keyring:MY_SHOP_API_KEY}", "--port", "80", "--token=${keyring:MY_SHOP_TOKEN}", "--token=${T}"}, shop.Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	if web.URL != "https://${keyring:WEB_URL}@a.example/mcp" || web.Headers["Authorization"] != "Bearer ${keyring:WEB_AUTHORIZATION}" || web.Headers["X-Team"] != "blue" || shop.Env["DEBUG"] != "true" || shop.Env["SHORT_KEY"] != "abc" {
		t.Errorf("%q, %q, %q", web.URL, web.Headers, shop.Env)
	}
	if left := Literals([]*Server{shop, web, same}, argSecrets); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestLiteralsInAConfiguration(t *testing.T) {
	t.Parallel()
	const text = `{ // a comment
  "servers": {
    "web": {"url": "https://a.example/mcp?api_key=canary-abcdef-1", "headers": {"X": "${keyring:X}"}},
    "api": {"openapi": "a.yaml", "url": "https://a.example", "credentials": {"basic": "ann:canary"}},
    "shop": {"command": "shop", "args": ["--api-key", "canary-abcdef"], "env": {"TOKEN": "canary-abcdef", "OTHER": "${file:token}"},},
    "odd": {"command": 1, "env": []},
  },
}`
	var found []string
	for _, l := range LiteralsIn([]byte(text), argSecrets) {
		found = append(found, l.Server+" "+l.Where)
	}
	if diff := cmp.Diff([]string{"api credentials basic", "shop env TOKEN", "shop args[1]", "web url"}, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if LiteralsIn([]byte("no JSON"), argSecrets) != nil {
		t.Error("something was found in no JSON")
	}
}
