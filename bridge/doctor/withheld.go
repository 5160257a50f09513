package doctor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"codemode-bridge/bridge/upstream"
)

// A runner is a program that fetches a server's package before it starts it.
type runner struct {
	names  []string          // of the program
	needs  []string          // variables without which it may not reach its registry
	writes map[string]string // where else it reads what some of them say, by the variable's name
}

var (
	proxies = []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"}
	runners = []runner{
		{
			names: []string{"npx", "npm"}, needs: append([]string{"NODE_EXTRA_CA_CERTS", "npm_config_registry", "NPM_CONFIG_REGISTRY"}, proxies...),
			writes: map[string]string{"NODE_EXTRA_CA_CERTS": "cafile=", "npm_config_registry": "registry=", "HTTPS_PROXY": "https-proxy=", "HTTP_PROXY": "proxy="},
		},
		{names: []string{"uvx", "uv", "pipx"}, needs: append([]string{"SSL_CERT_FILE", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_INDEX_URL"}, proxies...)},
	}
)

// withheld says which variables are set here that the program of a server does not get,
// although what fetches its package may need them, and what to do; empty if there are none.
// A package that is fetched apart, for a box, comes with them. Set looks a variable up.
func withheld(spec upstream.Spec, set func(name string) (string, bool)) string {
	program := strings.TrimSuffix(strings.ToLower(filepath.Base(spec.Command)), filepath.Ext(spec.Command))
	at := slices.IndexFunc(runners, func(r runner) bool { return slices.Contains(r.names, program) })
	if spec.Command == "" || spec.Box != nil || at < 0 {
		return ""
	}
	var missing, lines []string
	same := func(name string) func(string) bool {
		return func(other string) bool { return strings.EqualFold(name, other) }
	}
	for _, name := range runners[at].needs {
		_, given := spec.Env[name]
		value, _ := set(name)
		if value == "" || given || slices.ContainsFunc(slices.Concat(spec.PassEnv, missing), same(name)) {
			continue
		}
		missing = append(missing, name)
		for variable, line := range runners[at].writes {
			if same(name)(variable) {
				lines = append(lines, line)
			}
		}
	}
	if len(missing) == 0 {
		return ""
	}
	do := `name it in the server's "passEnv"`
	if len(missing) > 1 {
		do = `name them in the server's "passEnv"`
	}
	if len(lines) == len(missing) { // which leaves the server a known one
		do = "write " + strings.Join(lines, " and ") + " into ~/.npmrc"
	}
	return fmt.Sprintf("%s may be unable to fetch it without %s, set here and not passed on: %s", program, strings.Join(missing, ", "), do)
}
