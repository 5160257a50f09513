// Package cautions says what is no mistake in a configuration and is probably not meant,
// or does more than its author may know: a profile that restricts nothing, a variable
// that makes a program load other code, an address that hands out the keys of a machine
// in a cloud, a key that stands in an address, a token that gives nothing. check and doctor show it.
package cautions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
)

// A Caution is one such thing, at its place in the file. No text has a value that came
// from a variable, a header or a server's environment.
type Caution struct {
	File         string
	Line, Column int
	Text, Do     string
	// Server and Where are the place of a secret in an address, as setup.Literal has them.
	Server, Where string
}

// String returns the caution on one line, as check prints mistakes.
func (c Caution) String() string {
	return fmt.Sprintf("%s:%d:%d: %s (hint: %s)", c.File, c.Line, c.Column, c.Text, c.Do)
}

// Of returns what there is to say of a configuration, in the order of the places.
func Of(cfg *config.Config) []Caution {
	l := looker{cfg: cfg, servers: "/servers"}
	if cfg.Has("/mcpServers") {
		l.servers = "/mcpServers"
	}
	for _, name := range cfg.Profiles.Names() {
		if cfg.Profiles.RestrictsNothing(name) {
			l.at("/evaluation/profiles/"+name, fmt.Sprintf("the profile %s restricts nothing: every call passes unasked", name),
				`write "default": "risk" to have risky calls asked, or "extends": "builtin:coding@1"`)
		}
	}
	l.tokens()
	l.store()
	for _, name := range cfg.ServerNames() {
		s := cfg.Servers[name]
		l.accounts(s, name)
		l.environment(s, name)
		l.address(s.URL, name, "url")
		l.address(s.OpenAPI, name, "openapi")
		for i, arg := range s.Args {
			l.address(arg, name, "args/"+strconv.Itoa(i))
		}
		if s.Confine == nil {
			continue
		}
		for i, host := range s.Confine.Net.Hosts {
			if metadata(host.Name) {
				l.metadata(name, "confine/net/"+strconv.Itoa(i))
			}
		}
	}
	slices.SortStableFunc(l.found, func(a, b Caution) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	return l.found
}

// A looker looks through one configuration.
type looker struct {
	cfg     *config.Config
	servers string // the pointer to them
	found   []Caution
}

func (l *looker) at(pointer, text, do string) {
	file, line, column := l.cfg.Place(pointer)
	l.found = append(l.found, Caution{File: file, Line: line, Column: column, Text: canon.Escape(text), Do: canon.Escape(do)})
}

// tokens looks for tokens whose bearers have nothing.
func (l *looker) tokens() {
	rules := l.cfg.Rules()
	if rules == nil {
		return
	}
	for i, t := range l.cfg.HTTP.Tokens {
		if rules.For(t.Name, nil).Entry() == "" { // the groups of a token are the configuration's
			l.at("/http/tokens/"+strconv.Itoa(i), fmt.Sprintf("no entry of access holds for the token %s: whoever has it is shown no tool", t.Name),
				fmt.Sprintf(`add one, such as {"tokens": [%q], "profiles": [...]}, or remove the token`, t.Name))
		}
	}
}

// store looks at the address of a database.
func (l *looker) store() {
	if l.cfg.Store.IsZero() {
		return
	}
	if l.cfg.ID == "" {
		l.at("/store", "the store is shared, and what is accepted of tools and confirmed of this configuration stays on this machine, since it has no id",
			`write "id": "team", the same on every machine that has this configuration`)
	}
	at, err := url.Parse(l.cfg.Store.Reveal())
	if err != nil {
		return // another check says so
	}
	host := cmp.Or(at.Query().Get("host"), at.Hostname())
	ip, err := netip.ParseAddr(host)
	local := host == "" || host == "localhost" || strings.HasPrefix(host, "/") || err == nil && ip.IsLoopback()
	if !local && at.Query().Get("sslmode") == "" {
		l.at("/store", "the connection to the database is encrypted only if its server offers that, and nobody checks whose server it is",
			"add ?sslmode=verify-full to the address, and sslrootcert=FILE if its certificate is your own")
	}
}

// accounts looks for accounts of people whom nobody can tell apart.
func (l *looker) accounts(s *config.Server, name string) {
	if s.Auth.Per == config.AuthPrincipal && !l.cfg.HTTP.AsksForTokens() {
		l.at(l.pointer(name, "auth/per"), "nobody can be told apart: there are no tokens and no issuer of tokens in http, so all calls use the account of the local user",
			"add http.tokens or http.auth, or leave out per")
	}
}

// pointer names a key of a server.
func (l *looker) pointer(server, key string) string { return l.servers + "/" + server + "/" + key }

// loads are the variables by which a program loads code that is not its own.
var loads = regexp.MustCompile(`^(?i:LD_PRELOAD|LD_LIBRARY_PATH|LD_AUDIT|DYLD_\w+|NODE_PATH|PYTHONPATH|PYTHONHOME|PYTHONSTARTUP|PERL5LIB|PERL5OPT|RUBYLIB|RUBYOPT|BASH_ENV|CLASSPATH)$`)

// options are the variables with options of a program's runtime, of which some do that.
var options = regexp.MustCompile(`^(?i:NODE_OPTIONS|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS)$`)

// loading matches those options.
var loading = regexp.MustCompile(`(^|\s)(-r|--require|--import|--loader|--experimental-loader|--inspect\S*|-javaagent\S*|-agentlib\S*|-agentpath\S*|-Xbootclasspath\S*)([\s=:]|$)`)

// environment looks at the variables that a server's program gets.
func (l *looker) environment(s *config.Server, name string) {
	const do = "leave it out, unless you know what it loads: whoever writes that file or folder runs code as this server"
	for _, variable := range slices.Sorted(maps.Keys(s.Env)) {
		if loads.MatchString(variable) || options.MatchString(variable) && loading.MatchString(s.Env[variable].Reveal()) {
			l.at(l.pointer(name, "env/"+escaped(variable)), fmt.Sprintf("server %s: %s makes its program load code that is not its own", name, variable), do)
		}
	}
	for i, variable := range s.PassEnv {
		if loads.MatchString(variable) || options.MatchString(variable) {
			l.at(l.pointer(name, "passEnv/"+strconv.Itoa(i)), fmt.Sprintf("server %s: %s, which it gets as you have it, can make its program load code that is not its own", name, variable), do)
		}
	}
}

// escaped is a key as it stands in a JSON pointer.
func escaped(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// address looks at a text that may be an address.
func (l *looker) address(v config.Value, name, key string) {
	text := v.Reveal()
	if i := strings.Index(text, "://"); i > 0 && strings.HasPrefix(text, "-") { // --url=https://...
		_, text, _ = strings.Cut(text, "=")
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !strings.Contains(text, "://") {
		return
	}
	if metadata(u.Hostname()) {
		l.metadata(name, key)
	}
	if what := inAddress(l.written(l.pointer(name, key))); what != "" {
		l.at(l.pointer(name, key), fmt.Sprintf("server %s: %s stands in an address, which ends up in logs", name, what),
			`write "${keyring:NAME}" in its place, or "${NAME}" for a variable; where the server takes it, better in "headers": {"Authorization": "Bearer ${keyring:NAME}"}`)
		found := &l.found[len(l.found)-1]
		found.Server, found.Where = name, key
		if i, ok := strings.CutPrefix(key, "args/"); ok {
			found.Where = "args[" + i + "]"
		}
	}
}

// written returns a text as the file has it, before variables are filled in.
func (l *looker) written(pointer string) string {
	section, err := jsonc.Section([]byte(l.cfg.Texts().File), pointer)
	var text string
	if err != nil || json.Unmarshal(section, &text) != nil {
		return ""
	}
	return text
}

// reference matches a variable.
var reference = regexp.MustCompile(`\$\{[^{}]*\}`)

// inAddress says what credentials somebody has written into an address; empty if none.
// A variable in their place is none.
func inAddress(text string) string {
	text = reference.ReplaceAllString(text, "")
	_, rest, _ := strings.Cut(text, "://")
	authority, _, _ := strings.Cut(strings.NewReplacer("?", "/", "#", "/").Replace(rest), "/")
	const longName = 16 // of a user; a longer one is a token
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		if user, password, _ := strings.Cut(authority[:i], ":"); password != "" || len(user) > longName {
			return "a password"
		}
	}
	_, query, _ := strings.Cut(text, "?")
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if value == "" {
			continue
		}
		if probe := "https://host/?" + name + "=" + value; secretName.MatchString(name) && value != "true" && value != "false" || canon.Redact(probe) != probe {
			return fmt.Sprintf("a value that looks like a key (%s)", canon.Fit(name, 40))
		}
	}
	return ""
}

// secretName matches the names of parameters whose values are credentials.
var secretName = regexp.MustCompile(`(?i)(api[-_.]?key|access[-_.]?key|access[-_.]?token|secret|passw|credential|signature)|(^|[-_.])(key|token|auth|sig|pat|jwt|pwd)$`)

// metadata says that an address hands out the keys of this machine, if it is in a cloud.
func (l *looker) metadata(name, key string) {
	l.at(l.pointer(name, key), fmt.Sprintf("server %s: this address is of the network segment alone, where a machine in a cloud gets its own keys", name),
		"leave it out, unless this server is meant to have the keys of the machine that the bridge runs on")
}

// metadata reports whether a host is on the link alone, as the services are that tell a
// machine in a cloud its keys, or one of their names.
func metadata(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if slices.Contains([]string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}, host) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		n, err := strconv.ParseUint(host, 0, 32) // 2852039166 and 0xA9FEA9FE are the same to many programs
		if err != nil {
			return false
		}
		addr = netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	addr = addr.Unmap().WithZone("")
	return addr.IsLinkLocalUnicast() || addr == netip.MustParseAddr("fd00:ec2::254") || addr == netip.MustParseAddr("100.100.100.200")
}
