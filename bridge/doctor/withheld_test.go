package doctor

import (
	"strings"
	"testing"

	"codemode-bridge/bridge/upstream"
)

// What works in a shell and not here may lack a proxy or a certificate of that shell.
func TestWithheld(t *testing.T) {
	t.Parallel()
	const begins = " may be unable to fetch it without "
	for name, row := range map[string]struct {
		spec upstream.Spec
		set  string // the variables of this environment
		want string
	}{
		"nothing is set":      {upstream.Spec{Command: "npx"}, "", ""},
		"a certificate":       {upstream.Spec{Command: "/usr/bin/npx"}, "NODE_EXTRA_CA_CERTS", "npx" + begins + "NODE_EXTRA_CA_CERTS, set here and not passed on: write cafile= into ~/.npmrc"},
		"on Windows":          {upstream.Spec{Command: "npx.cmd"}, "HTTPS_PROXY https_proxy", "npx" + begins + "HTTPS_PROXY, set here and not passed on: write https-proxy= into ~/.npmrc"},
		"two, for npx":        {upstream.Spec{Command: "npx"}, "NODE_EXTRA_CA_CERTS http_proxy", "npx" + begins + "NODE_EXTRA_CA_CERTS, http_proxy, set here and not passed on: write cafile= and proxy= into ~/.npmrc"},
		"no line for one":     {upstream.Spec{Command: "npx"}, "HTTPS_PROXY ALL_PROXY", "npx" + begins + `HTTPS_PROXY, ALL_PROXY, set here and not passed on: name them in the server's "passEnv"`},
		"uvx":                 {upstream.Spec{Command: "uvx"}, "SSL_CERT_FILE NODE_EXTRA_CA_CERTS", "uvx" + begins + `SSL_CERT_FILE, set here and not passed on: name it in the server's "passEnv"`},
		"passed on":           {upstream.Spec{Command: "npx", PassEnv: []string{"NODE_EXTRA_CA_CERTS"}}, "NODE_EXTRA_CA_CERTS", ""},
		"given":               {upstream.Spec{Command: "npx", Env: map[string]string{"HTTPS_PROXY": "http://p"}}, "HTTPS_PROXY", ""},
		"fetched for its box": {upstream.Spec{Command: "npx", Box: &upstream.Box{}}, "HTTPS_PROXY", ""},
		"fetches nothing":     {upstream.Spec{Command: "sleep"}, "HTTPS_PROXY", ""},
		"no program":          {upstream.Spec{URL: "https://example.com/mcp"}, "HTTPS_PROXY", ""},
	} {
		set := func(name string) (string, bool) {
			for _, s := range strings.Fields(row.set) {
				if s == name {
					return "http://user:s3cret@proxy.example.com", true
				}
			}
			return "", false
		}
		if got := withheld(row.spec, set); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
