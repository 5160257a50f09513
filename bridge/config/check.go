package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/gobwas/glob"

	"codemode-bridge/profiles"
)

// reserved are the members that the codemode object of a script has besides
// servers, and names that JavaScript would take for its own.
var reserved = []string{
	"raw", "read", "run", "resources", "prompts", "search_tools", "get_tools", "get_tool_schema",
	"then", "constructor", "toJSON", "__proto__",
}

// builtins are the servers that bridge/builtin has.
var builtins = []string{"time", "utils"}

const maxServerName = 64

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`)
	envName    = regexp.MustCompile(`^[^\s=\x00$]+$`)
	tokenName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// A checker judges what the decoder cannot see: names, addresses, and which keys
// go together. It also fills in what follows from other keys. There is a method
// for each section of the file; a mistake is added to the findings.
type checker struct {
	*findings
	config *Config
	env    Env
}

// servers checks each server and fills in what the file leaves out.
func (c *checker) servers() {
	root := "/servers"
	if !c.sound(root) && c.has("/mcpServers") {
		root = "/mcpServers"
	}
	for _, name := range c.config.ServerNames() {
		s := c.config.Servers[name]
		s.Name = name
		at := spot{path: root}.below(name).path
		if message, ok := nameProblem(name); !ok {
			c.key(at, message, fmt.Sprintf("rename it, for example to %q", proposeName(name, c.config.Servers)))
		}
		if c.unusable[at] {
			continue
		}
		c.kind(s, at)
		c.texts(s, at)
		c.tools(s, at)
		c.auth(s, at)
		c.reactions(s, at)
		c.rotating(s, at)
		if s.Timeout == 0 {
			s.Timeout = c.config.Sandbox.CallTimeout
		}
		if s.MaxReply == 0 {
			s.MaxReply = c.config.Sandbox.Reply
		}
		hideFlags(s.Args)
		c.resolve(s, at)
	}
}

// nameProblem says what is wrong with a server's name.
func nameProblem(name string) (message string, ok bool) {
	switch {
	case name == "":
		return "a server without a name", false
	case slices.Contains(reserved, name):
		return fmt.Sprintf("a server may not be called %q; reserved names are %s", name, strings.Join(reserved, ", ")), false
	case strings.Contains(name, "__"):
		return fmt.Sprintf(`the server name %q has "__" in it, which separates server and tool`, name), false
	case !serverName.MatchString(name):
		return fmt.Sprintf(`the server name %q is not made of letters, digits, "-" and single "_" between them`, name), false
	case len(name) > maxServerName:
		return fmt.Sprintf("the server name %q is longer than %d characters", name, maxServerName), false
	}
	return "", true
}

// ServerName returns a name that a server may have: the one wished for, or a
// legal one like it.
func ServerName(wish string) string {
	if _, ok := nameProblem(wish); ok {
		return wish
	}
	return proposeName(wish, nil)
}

var (
	notInName   = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
	underscores = regexp.MustCompile(`_{2,}`)
)

// proposeName makes a legal name of name that no server has.
func proposeName(name string, taken map[string]*Server) string {
	base := underscores.ReplaceAllString(notInName.ReplaceAllString(name, "-"), "_")
	base = strings.Trim(base, "_-")
	if len(base) > maxServerName-8 {
		base = strings.Trim(base[:maxServerName-8], "_-")
	}
	if base == "" {
		base = "server"
	}
	if slices.Contains(reserved, base) {
		base += "-server"
	}
	proposal := base
	for n := 2; ; n++ {
		if _, used := taken[proposal]; !used {
			return proposal
		}
		proposal = base + "-" + strconv.Itoa(n)
	}
}

// homeOf has the keys of a server that belong to certain kinds only.
var homeOf = []struct {
	key   string
	kinds []Kind
}{
	{"command", []Kind{KindStdio}}, {"args", []Kind{KindStdio}}, {"env", []Kind{KindStdio}},
	{"passEnv", []Kind{KindStdio}}, {"cwd", []Kind{KindStdio}}, {"idleStop", []Kind{KindStdio}},
	{"auth", []Kind{KindHTTP, KindSSE}},
	{"url", []Kind{KindHTTP, KindSSE, KindOpenAPI}}, {"headers", []Kind{KindHTTP, KindSSE, KindOpenAPI}},
	{"openapi", []Kind{KindOpenAPI}}, {"credentials", []Kind{KindOpenAPI}},
	{"builtin", []Kind{KindBuiltin}},
}

// kind infers the kind of a server and checks that its keys fit.
func (c *checker) kind(s *Server, at string) {
	if c.has(at+"/type") && s.Type == "" {
		return // its type is wrong; nothing can be said of the other keys
	}
	if s.Type == "" {
		var said []string
		for _, main := range []struct {
			key  string
			kind Kind
		}{{"command", KindStdio}, {"openapi", KindOpenAPI}, {"url", KindHTTP}, {"builtin", KindBuiltin}} {
			if c.has(at+"/"+main.key) && !(main.kind == KindHTTP && s.Type == KindOpenAPI) {
				said = append(said, main.key)
				s.Type = main.kind
			}
		}
		switch len(said) {
		case 0:
			if c.unknownKeys[at] {
				return
			}
			c.key(at, fmt.Sprintf("the server %q says neither how it is started nor where it is", s.Name),
				`give it a "command", a "url", a "builtin", or an "openapi" document`)
			return
		case 1:
		default:
			c.key(at, fmt.Sprintf("the server %q has both %q and %q", s.Name, said[0], said[1]), "keep one of them")
			return
		}
	}
	for _, h := range homeOf {
		if c.has(at+"/"+h.key) && !slices.Contains(h.kinds, s.Type) {
			c.key(at+"/"+h.key, fmt.Sprintf("%q does not belong to a server of type %q", h.key, s.Type), "")
		}
	}
	main := map[Kind]string{KindStdio: "command", KindHTTP: "url", KindSSE: "url", KindBuiltin: "builtin", KindOpenAPI: "openapi"}[s.Type]
	if s.Type == KindOpenAPI && c.has(at+"/"+main) && !c.has(at+"/url") && !c.unknownKeys[at] {
		c.key(at, fmt.Sprintf("the server %q has a document, and no \"url\" that its paths are appended to", s.Name),
			`add "url": "https://host/path"; the document may not say where credentials go`)
	}
	if !c.has(at+"/"+main) && !c.unknownKeys[at] {
		hint := ""
		if s.Type == KindBuiltin {
			hint = fmt.Sprintf("the built-in servers are %s", strings.Join(builtins, ", "))
		}
		c.key(at, fmt.Sprintf("the server %q of type %q has no %q", s.Name, s.Type, main), hint)
	}
}

// texts judges the texts of a server.
func (c *checker) texts(s *Server, at string) {
	if c.sound(at+"/builtin") && !slices.Contains(builtins, s.Builtin) {
		hint := didYouMean(s.Builtin, builtins)
		if hint == "" {
			hint = "there are " + strings.Join(builtins, ", ")
		}
		c.at(at+"/builtin", fmt.Sprintf("there is no built-in server %q", s.Builtin), hint)
	}
	if c.sound(at + "/command") {
		command := s.Command.Reveal()
		first, _, spaced := strings.Cut(command, " ")
		switch {
		case strings.TrimSpace(command) == "":
			c.at(at+"/command", `"command" is empty`, "")
		case spaced && !strings.ContainsAny(first, `/\`):
			c.at(at+"/command", `"command" holds more than the name of a program`, `put each argument into "args": ["...", "..."]`)
		}
	}
	for _, name := range sortedKeys(s.Env) {
		if !envName.MatchString(name) {
			c.key(spot{path: at + "/env"}.below(name).path, fmt.Sprintf("%q can't be the name of a variable", name), "")
		}
	}
	for i, uri := range s.Roots {
		path := fmt.Sprintf("%s/roots/%d", at, i)
		if c.sound(path) && !strings.HasPrefix(uri, "file:///") {
			c.at(path, `"roots" takes addresses of folders`, `write it like "file:///home/me/work"`)
		}
	}
	for i, name := range s.PassEnv {
		path := fmt.Sprintf("%s/passEnv/%d", at, i)
		if c.sound(path) && !envName.MatchString(name) {
			hint := ""
			if strings.Contains(name, "=") {
				hint = `values go into "env"`
			} else if strings.Contains(name, "$") {
				hint = `write the bare name`
			}
			c.at(path, `"passEnv" takes names of variables`, hint)
		}
	}
	if c.sound(at + "/url") {
		c.url(s.URL.Reveal(), at+"/url")
	}
	c.document(s, at)
	for _, name := range sortedKeys(s.Headers) {
		path := spot{path: at + "/headers"}.below(name).path
		switch {
		case !headerName.MatchString(name):
			c.key(path, fmt.Sprintf("%q can't be the name of a header", name), "")
		case slices.Contains(ownHeaders, strings.ToLower(name)):
			c.key(path, fmt.Sprintf("the header %q is set by the bridge itself", name), "leave it out")
		case c.sound(path) && strings.ContainsFunc(s.Headers[name].Reveal(), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			c.at(path, fmt.Sprintf("the header %q holds a control character", name), "is there a line break at the end of a variable?")
		}
	}
}

// ownHeaders are those that the protocol sets for every message.
var ownHeaders = []string{
	"accept", "connection", "content-length", "content-type", "host", "last-event-id",
	"mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "transfer-encoding",
}

// url judges a server's address without repeating it.
func (c *checker) url(text, path string) { c.webAddress("url", text, path) }

// webAddress judges the address that a key of a server holds.
func (c *checker) webAddress(key, text, path string) {
	quoted := strconv.Quote(key)
	u, err := url.Parse(text)
	switch {
	case err != nil:
		c.at(path, quoted+" is not a URL", `write "https://host/path"`)
	case u.Scheme != "http" && u.Scheme != "https":
		c.at(path, quoted+" must start with \"https://\" or \"http://\"", "")
	case u.Hostname() == "":
		c.at(path, quoted+" names no host", "")
	case u.Port() != "" && !validPort(u.Port()), strings.HasSuffix(u.Host, ":"):
		c.at(path, quoted+" has no valid port", "ports go from 1 to 65535")
	case u.Fragment != "" || strings.Contains(text, "#"):
		c.at(path, quoted+" has a fragment (\"#...\")", "servers never see it; leave it out")
	}
}

func validPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// tools judges the globs of a server.
func (c *checker) tools(s *Server, at string) {
	for key, patterns := range map[string][]string{"allow": s.Tools.Allow, "deny": s.Tools.Deny} {
		path := at + "/tools/" + key
		if key == "allow" && patterns != nil && len(patterns) == 0 {
			c.at(path, `an empty "allow" hides every tool`, `leave it out to show all, or say "disabled": true`)
		}
		for i, pattern := range patterns {
			item := fmt.Sprintf("%s/%d", path, i)
			if !c.sound(item) {
				continue
			}
			_, err := glob.Compile(pattern)
			switch {
			case pattern == "":
				c.at(item, "an empty pattern matches no tool", "")
			case strings.Contains(pattern, "$"):
				c.at(item, `a pattern holds "$"`, "variables are not filled in here")
			case strings.HasPrefix(pattern, s.Name+"__"):
				c.at(item, fmt.Sprintf("the pattern %q names the server", pattern),
					fmt.Sprintf("the server's own names stand here: %q", strings.TrimPrefix(pattern, s.Name+"__")))
			case err != nil:
				c.at(item, fmt.Sprintf("the pattern %q is not legal: %v", pattern, err), "")
			}
		}
	}
}

// reactions fills in what becomes of a server's new and changed tools.
func (c *checker) reactions(s *Server, at string) {
	for _, one := range []struct {
		key       string
		own       *Reaction
		otherwise Reaction
	}{{"newTools", &s.NewTools, c.config.NewTools}, {"changedTools", &s.ChangedTools, c.config.ChangedTools}} {
		if s.Quarantine && c.has(at+"/"+one.key) {
			c.key(at+"/"+one.key, fmt.Sprintf(`the server %q has both "quarantine" and %q`, s.Name, one.key), `"quarantine": true is short for "newTools" and "changedTools" of "quarantine"; keep one`)
		}
		switch {
		case s.Quarantine:
			*one.own = ReactionQuarantine
		case *one.own == "":
			*one.own = one.otherwise
		}
	}
}

// resolve makes a server's paths absolute. They start from the file's folder.
func (c *checker) resolve(s *Server, at string) {
	absolute := func(v Value, key string) Value {
		path := c.fromFolder(v.Reveal(), at+"/"+key)
		if v.Reveal() != v.String() {
			return newValue(path, v.String())
		}
		return newValue(path, path)
	}
	if c.sound(at + "/cwd") {
		if s.Cwd.Reveal() == "" {
			c.at(at+"/cwd", `"cwd" is empty`, `leave it out, or write "."`)
		} else {
			s.Cwd = absolute(s.Cwd, "cwd")
		}
	}
	if c.sound(at+"/openapi") && !isWeb(s.OpenAPI.Reveal()) {
		s.OpenAPI = absolute(s.OpenAPI, "openapi")
	}
	if c.sound(at+"/command") && strings.ContainsFunc(s.Command.Reveal(), isSeparator) {
		s.Command = absolute(s.Command, "command")
	}
}

func isSeparator(r rune) bool { return r == '/' || r == filepath.Separator }

func (c *checker) sandbox() {
	s := c.config.Sandbox
	if s.Warm > s.Workers && !c.unusable["/sandbox/warm"] && !c.unusable["/sandbox/workers"] {
		path := "/sandbox/warm"
		if !c.has(path) {
			path = "/sandbox/workers"
		}
		c.at(path, fmt.Sprintf("%d workers are kept ready, but only %d may live", s.Warm, s.Workers), `lower "warm" or raise "workers"`)
	}
	if s.Memory > 0 && s.Memory < s.Heap && !c.unusable["/sandbox/heap"] {
		c.at("/sandbox/memory", fmt.Sprintf("one worker may use %v, but all together only %v", s.Heap, s.Memory), `raise "memory" or lower "heap"`)
	}
	if c.config.HTTP.MaxBody < s.Source && !c.unusable["/http/maxBody"] && !c.unusable["/sandbox/source"] {
		path := "/http/maxBody"
		if !c.has(path) {
			path = "/sandbox/source"
		}
		c.at(path, fmt.Sprintf("a script may have %v, but a request only %v", s.Source, c.config.HTTP.MaxBody), `raise "http.maxBody" or lower "sandbox.source"`)
	}
}

func (c *checker) http() {
	h := &c.config.HTTP
	c.tokens(h)
	if !c.unusable["/http/listen"] {
		c.listen(h)
	}
	for i, host := range h.AllowedHosts {
		path := fmt.Sprintf("/http/allowedHosts/%d", i)
		if c.sound(path) && !isHost(host.Reveal()) {
			c.at(path, `"allowedHosts" takes host names, with or without a port`, `write "bridge.example.com" or "bridge.example.com:7420"`)
		}
	}
	for i, origin := range h.AllowedOrigins {
		path := fmt.Sprintf("/http/allowedOrigins/%d", i)
		if !c.sound(path) {
			continue
		}
		u, err := url.Parse(origin.Reveal())
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !isHost(u.Host) ||
			u.Scheme+"://"+u.Host != origin.Reveal() {
			c.at(path, `"allowedOrigins" takes a scheme and a host, and nothing after it`, `write "https://app.example.com"; "*" and "null" are not accepted`)
		}
	}
}

func (c *checker) listen(h *HTTP) {
	host, ok := c.address("/http/listen", h.Listen, "127.0.0.1:7420")
	if ok && !loopback(host) && len(h.Tokens) == 0 && !c.unusable["/http/tokens"] {
		c.at("/http/listen", "listening beyond this machine needs a token",
			`add "tokens": [{"name": "me", "token": "${BRIDGE_TOKEN}"}], or listen on 127.0.0.1`)
	}
}

// address checks an address to listen on and returns its host.
func (c *checker) address(at string, listen Value, example string) (host string, ok bool) {
	form := fmt.Sprintf("write %q", example)
	host, port, err := net.SplitHostPort(listen.Reveal())
	n, portErr := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		c.at(at, `"listen" must be a host and a port`, form)
	case portErr != nil || strconv.FormatUint(n, 10) != port:
		c.at(at, `"listen" has no valid port`, "ports go from 0 (any) to 65535")
	case host != "" && !isHost(host) && !isAddress(host):
		c.at(at, `"listen" must be a host and a port`, form)
	default:
		return host, true
	}
	return host, false
}

// loopback reports whether only this machine reaches the host. A name that
// has to be looked up could be anything.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)

// isHost reports whether text is a host name or address, with a port or not.
func isHost(text string) bool {
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		if !validPort(port) {
			return false
		}
		host = h
	} else if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		return isAddress(text[1 : len(text)-1])
	}
	return len(host) <= 253 && (hostName.MatchString(host) || isAddress(host))
}

// minToken is the least length of a token: less could be guessed.
const minToken = 16

func (c *checker) tokens(h *HTTP) {
	known := newBearers(c.findings, "token", "to be seen in the log")
	for i := range h.Tokens {
		t := &h.Tokens[i]
		known.check(fmt.Sprintf("/http/tokens/%d", i), t.Name, t.SHA256, t.Token, &t.Digest)
	}
}

// A bearers checks a list of those who are known by a token: their names, and
// that each has one of their own.
type bearers struct {
	found      *findings
	kind, seen string // what one of them is called, and where their names are seen
	names      map[string]bool
	digests    map[Digest]bool
}

func newBearers(found *findings, kind, seen string) *bearers {
	return &bearers{found, kind, seen, map[string]bool{}, map[Digest]bool{}}
}

// name checks the name of the one at a place.
func (b *bearers) name(at, name string) {
	f := b.found
	if f.unusable[at] {
		return
	}
	switch {
	case !f.has(at + "/name"):
		f.at(at, fmt.Sprintf("%s has no name", article(b.kind)), `add "name": "...", `+b.seen)
	case !f.sound(at + "/name"):
	case !tokenName.MatchString(name):
		f.at(at+"/name", fmt.Sprintf(`the name of %s is made of letters, digits and ". _ @ -", 64 at most`, article(b.kind)), "")
	case b.names[name]:
		f.at(at+"/name", fmt.Sprintf("two %ss are called %q", b.kind, name), "")
	}
	b.names[name] = true
}

// check checks the one at a place, and sets the digest of its token.
func (b *bearers) check(at, name string, sum, token Value, digest *Digest) {
	f := b.found
	if f.unusable[at] {
		return
	}
	b.name(at, name)
	var value string
	switch {
	case f.has(at+"/sha256") && f.has(at+"/token"):
		f.at(at+"/token", fmt.Sprintf(`%s has both "sha256" and "token"`, article(b.kind)), "keep one of them")
		return
	case f.sound(at + "/sha256"):
		value = at + "/sha256"
		text := strings.TrimPrefix(sum.Reveal(), "sha256:")
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) != sha256.Size || Digest(raw) == sha256.Sum256(nil) {
			f.at(value, `"sha256" is not the SHA-256 of a token`, `64 hexadecimal digits, as printed by: printf %s "$TOKEN" | sha256sum`)
			return
		}
		*digest = Digest(raw)
	case f.sound(at + "/token"):
		value = at + "/token"
		if !reference.MatchString(string(written(f.places[value]))) || strings.Contains(written(f.places[value]), ":-") {
			f.at(value, "a token may not stand in the file", `name a variable: "token": "${BRIDGE_TOKEN}", or give its "sha256"`)
			return
		}
		if len(token.Reveal()) < minToken {
			f.at(value, fmt.Sprintf("the token is shorter than %d characters", minToken), "make one with: openssl rand -hex 32")
			return
		}
		*digest = sha256.Sum256([]byte(token.Reveal()))
	case f.has(at+"/sha256") || f.has(at+"/token"):
		return
	default:
		f.at(at, fmt.Sprintf(`%s has neither "sha256" nor "token"`, article(b.kind)), `add "token": "${BRIDGE_TOKEN}"`)
		return
	}
	if b.digests[*digest] {
		f.at(value, "the same token is there twice", "give each its own, so that one can be taken back")
	}
	b.digests[*digest] = true
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// written returns the text of a string as the file has it.
func written(p place) string { return p.literal.String() }

// scripts makes the folder of saved scripts absolute and fills in where it
// is by default.
func (c *checker) scripts() {
	const at = "/scripts/dir"
	switch {
	case !c.has(at):
		if places, err := Paths(c.env); err == nil {
			c.config.Scripts.Dir = filepath.Join(filepath.Dir(places.ConfigFile), "scripts")
		}
	case c.sound(at) && strings.TrimSpace(c.config.Scripts.Dir) == "":
		c.at(at, `"dir" is empty`, "leave it out, or name a folder")
	case c.sound(at):
		c.config.Scripts.Dir = c.fromFolder(c.config.Scripts.Dir, at)
	}
}

// audit makes the paths of the audit log absolute and fills in where it
// is by default.
func (c *checker) audit() {
	for key, path := range map[string]*string{"path": &c.config.Audit.Path, "checkpoint": &c.config.Audit.Checkpoint} {
		at := "/audit/" + key
		switch {
		case !c.has(at):
		case c.sound(at) && strings.TrimSpace(*path) == "":
			c.at(at, fmt.Sprintf("%q is empty", key), "leave it out, or name a file")
		case c.sound(at):
			*path = c.fromFolder(*path, at)
		}
	}
	if places, err := Paths(c.env); err == nil && !c.has("/audit/path") {
		c.config.Audit.Path = filepath.Join(places.StateDir, "audit.db")
	}
	if c.config.Audit.Path != "" && c.config.Audit.Path == c.config.Audit.Checkpoint {
		c.at("/audit/checkpoint", "the checkpoints would be in the log itself", "name another file, best on another disk")
	}
}

// fromFolder makes a path absolute: "~" is the home folder, and what is
// relative starts from the configuration's folder.
func (c *checker) fromFolder(path, at string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || isSeparator(rune(rest[0]))) {
		home, ok := homeFolder(runtime.GOOS, c.env)
		if !ok {
			c.at(at, fmt.Sprintf("%q starts with \"~\", but the home folder is not known", at[strings.LastIndexByte(at, '/')+1:]), "set HOME, or write the path")
			return path
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(c.config.File), path)
	}
	return filepath.Clean(path)
}

// evaluation builds the policy and places what it complains of.
func (c *checker) evaluation(options []profiles.Options) {
	var o profiles.Options
	if len(options) > 0 {
		o = options[len(options)-1]
	}
	o.OwnFiles = slices.Clone(o.OwnFiles)
	for _, file := range []string{c.config.Scripts.Dir, c.config.Audit.Path, c.config.Audit.Requests(), c.config.Audit.Checkpoint} { // no call may name them
		if file != "" {
			o.OwnFiles = append(o.OwnFiles, file)
		}
	}
	set, problems := profiles.Parse(c.config.Evaluation, o)
	for _, p := range problems {
		path := "/evaluation" + p.Path
		if c.unusable[path] {
			continue // the decoder has said so already
		}
		c.inside(path, p.Offset, p.Message, p.Hint)
	}
	c.config.Profiles = set
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
