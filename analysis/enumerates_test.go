package analysis

import "testing"

func TestEnumerates(t *testing.T) {
	for source, want := range map[string]bool{
		"return 1":                                     false,
		"return await codemode.time__now({})":          false,
		"return await codemode.time.now({})":           false,
		"return await codemode?.time?.now({})":         false,
		"return codemode\n  .search_tools({query: q})": false,
		`codemode["my-server__do-it"]({})`:             false,
		"ids.map(codemode.github__get_issue)":          false,
		"codemode.resources.list()":                    false,
		"return Object.keys(codemode)":                 true,
		"return Object.keys(codemode.github)":          true,
		"'time__now' in codemode":                      true,
		"codemode[name]({})":                           true,
		"codemode[`${a}__b`]({})":                      true,
		"const {time__now} = codemode":                 true,
		"const all = codemode, x = 1":                  true,
		`globalThis["codemode"]`:                       true,
		`Object.keys(code\u006dode)`:                   true,
	} {
		if got := Enumerates(source); got != want {
			t.Errorf("%s: got %t", source, got)
		}
	}
}
