package config

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/profiles"

	"github.com/gobwas/glob"
)

// reserved are the members of a script's codemode object besides servers, and
// names that JavaScript would take for its own.
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
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// servers checks each server and fills in what the file leaves out.
func (c *checker) servers() {
	root := c.serverRoot()
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
		c.known(s, at)
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

// ServerName returns wish if a server may have that name, else a legal name like
// it.
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

// proposeName turns name into a legal one that no server has.
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
	{"confine", []Kind{KindStdio}},
	{"auth", []Kind{KindStdio, KindHTTP, KindSSE}},
	{"url", []Kind{KindHTTP, KindSSE, KindOpenAPI}}, {"headers", []Kind{KindHTTP, KindSSE, KindOpenAPI}},
	{"openapi", []Kind{KindOpenAPI}}, {"credentials", []Kind{KindOpenAPI}},
	{"builtin", []Kind{KindBuiltin}}, {"known", []Kind{KindStdio, KindHTTP, KindSSE}},
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

// texts checks the texts of a server: its program, variables, address and headers.
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
		c.webAddress("url", s.URL.Reveal(), at+"/url")
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

// webAddress checks the address that a key of a server holds. It may hold secrets,
// so no message repeats it.
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

// tools checks the globs of a server.
func (c *checker) tools(s *Server, at string) {
	checkLabels(c, s.Labels, at+"/labels")
	labelled := slices.Sorted(maps.Keys(s.Tools.Labels))
	for _, pattern := range labelled {
		if _, err := glob.Compile(pattern); err != nil || pattern == "" {
			c.at(at+"/tools/labels", fmt.Sprintf("the pattern %q is not legal", pattern), "")
		}
		checkLabels(c, s.Tools.Labels[pattern], at+"/tools/labels/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(pattern))
	}
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
			offset, unseen, hint := profiles.Unseen(pattern)
			switch {
			case pattern == "":
				c.at(item, "an empty pattern matches no tool", "")
			case unseen != "":
				c.inside(item, offset, unseen, hint)
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

// checkLabels checks labels.
func checkLabels(c *checker, labels []string, at string) {
	for i, label := range labels {
		if item := fmt.Sprintf("%s/%d", at, i); c.sound(item) && !profiles.ValidLabel(label) {
			c.at(item, fmt.Sprintf("no label: %q", label), "labels have up to 32 small letters, digits, dashes and underscores, a letter first")
		}
	}
}

// LabelsOf returns the labels that the file gives a tool of the server, by its raw name, and
// whether it says anything of them.
func (s *Server) LabelsOf(tool string) (labels []string, said bool) {
	labels, said = slices.Clone(s.Labels), s.Labels != nil
	for pattern, more := range s.Tools.Labels {
		if g, err := glob.Compile(pattern); err == nil && g.Match(tool) {
			labels, said = append(labels, more...), true
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels), said
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

// resolve makes a server's paths absolute; relative ones start from the file's folder.
func (c *checker) resolve(s *Server, at string) {
	absolute := func(v Value, key string) Value {
		path := c.fromFolder(v.Reveal(), at+"/"+key)
		if v.Reveal() != v.String() {
			return v.with(path, v.String())
		}
		return v.with(path, path)
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

// document checks where the OpenAPI document of a server is, and the credentials for
// its API. The document itself is read when the server starts.
func (c *checker) document(s *Server, at string) {
	if c.sound(at + "/openapi") {
		text := s.OpenAPI.Reveal()
		switch {
		case strings.TrimSpace(text) == "":
			c.at(at+"/openapi", `"openapi" is empty`, "name a file or a URL")
		case isWeb(text):
			c.webAddress("openapi", text, at+"/openapi")
		case strings.Contains(text, "://"):
			c.at(at+"/openapi", `"openapi" is neither a file nor an address that starts with "https://" or "http://"`, "")
		}
	}
	for _, name := range sortedKeys(s.Credentials) {
		path := spot{path: at + "/credentials"}.below(name).path
		if !c.sound(path) {
			continue
		}
		switch value := s.Credentials[name].Reveal(); {
		case strings.TrimSpace(value) == "":
			c.at(path, "the credentials are empty", `name a variable: "${TOKEN}"`)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
			c.at(path, "the credentials hold a control character", "is there a line break at the end of a variable?")
		}
	}
}

// isWeb reports whether a document is to be fetched.
func isWeb(document string) bool {
	return strings.HasPrefix(document, "https://") || strings.HasPrefix(document, "http://")
}
