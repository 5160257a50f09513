package profiles

import (
	"strings"
	"testing"
)

// An address is bare if it says where, and nothing could be carried away in it or done
// by it.
func TestBareAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://example.com":                      true,
		"example.com":                              true,
		"https://example.com/":                     true,
		"http://www.example.co.uk:80/a/b-c_d.html": true,
		"https://docs.example.com/docs/managed-databases-for-postgresql-and-mysql/how-to/manage-autobackup/": true,
		"https://www.npmjs.com/package/@modelcontextprotocol/sdk":                                            true,
		"https://example.com/2026-11-21/report":                                                              true,
		"http://localhost:5173/":                                                                             true,
		"http://127.0.0.1:8080/a":                                                                            true,
		"http://localhost:5173/?a=b":                                                                         false,
		"https://example.com/?q=hanna":                                                                       false,
		"https://example.com?":                                                                               false,
		"https://example.com/#q=hanna":                                                                       false,
		"https://example.com/#":                                                                              false,
		"https://example.com/hanna%20pohl":                                                                   false,
		"https://example.com/a;b":                                                                            false,
		"https://example.com/a=b":                                                                            false,
		"https://example.com/hanna@pohl.example":                                                             false,
		"https://example.com/3f9a81c2d07b4e55":                                                               false,
		"https://example.com/call/4915112345678":                                                             false,
		"https://example.com/aVeryLongWordThatCouldBeAnythingEncoded":                                        false,
		"https://example.com:8443/a":                                                                         false,
		"https://192.168.178.1/login.lua":                                                                    false,
		"https://[2001:db8::1]/":                                                                             false,
		"https://router/":                                                                                    false,
		"https://nas.local/":                                                                                 false,
		"https://wiki.corp/":                                                                                 false,
		"https://xn--pple-43d.com/":                                                                          false,
		"https://handbook.gitlab.com.templates.example/handbook":                                             false,
		"https://www.bahn.de.fahrplan.example/":                                                              false,
		"https://a.b.c.d.example.com/":                                                                       false,
		"https://a9f03b71c2d84e6f5.example.com/":                                                             false,
		"https://user@example.com/":                                                                          false,
		"ftp://example.com/":                                                                                 false,
		"file:///etc/passwd":                                                                                 false,
		"https://example.com/" + strings.Repeat("a/", 80):                                                    false,
	} {
		if got := HostNamed("url", address).Bare; got != want {
			t.Errorf("%s: bare is %v", address, got)
		}
	}
}
