package clients

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A dialect says which keys an entry has. Without one it is the usual form:
// command, args and env, or url and headers.
type dialect int

const (
	usual dialect = iota
	vscode
	codex
	gemini
	opencode
	zed
	goose
	cline
	copilot
)

// A Kind says how a server is reached.
type Kind string

// The kinds of servers.
const (
	Stdio Kind = "stdio"
	HTTP  Kind = "http"
	SSE   Kind = "sse"
)

// A Server is an entry of a client's file in the bridge's own terms: variables
// are written ${NAME} and are not filled in, and a "$" that means itself and
// could be taken for one is written "$$".
type Server struct {
	Name    string // as the client calls it
	Kind    Kind
	Command string
	Args    []string
	Env     map[string]string
	PassEnv []string
	Cwd     string
	URL     string
	Headers map[string]string
	// Timeout is of one call, ConnectTimeout of the start; 0 if the client has none of its own.
	Timeout, ConnectTimeout time.Duration
	// Allow and Deny are globs over names of tools.
	Allow, Deny []string
	Disabled    bool
	// Box is how the client confines it; nil if it does not.
	Box *Box

	// Variables are those that the texts need set.
	Variables []Variable
	// Notes say what the client had and the bridge does not take over.
	Notes []string
	// Problem, if not empty, says why the server cannot be taken over at all.
	Problem string
	// Bridge is set if it is this program; that is a Problem, too.
	Bridge bool
	// Secrets are texts of the file that are not to be shown.
	Secrets []string
}

// A Variable is one that a server needs.
type Variable struct {
	Name string
	Why  string // what the client said of it; may be empty
}

// Same reports whether two servers are the same but for their names.
func (s Server) Same(t Server) bool {
	return s.Kind == t.Kind && s.Command == t.Command && slices.Equal(s.Args, t.Args) && maps.Equal(s.Env, t.Env) &&
		slices.Equal(s.PassEnv, t.PassEnv) && s.Cwd == t.Cwd && s.URL == t.URL && maps.Equal(s.Headers, t.Headers) &&
		slices.Equal(s.Allow, t.Allow) && slices.Equal(s.Deny, t.Deny) && reflect.DeepEqual(s.Box, t.Box)
}

// Read reads the place's file and the servers in it. A file that is not there has none.
func (p Place) Read() (*File, []Server, error) {
	file, err := ReadFile(p.File)
	if err == nil && p.Scope == Managed {
		file.everybodys()
	}
	if err != nil || !file.Existed {
		return file, nil, err
	}
	servers, err := p.Servers(file.Text)
	return file, servers, err
}

// Servers reads the servers of a file, in the order of the file. An entry that
// makes no sense is there too, with its Problem.
func (p Place) Servers(text []byte) ([]Server, error) {
	_, text = cutBOM(text)
	keys := p.keys(text)
	tree, err := p.Client.format.decode(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p.File, err)
	}
	names, err := p.Client.format.names(text, keys)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p.File, err)
	}
	entries, _ := lookUp(tree, keys)
	common := sharedOf(tree)
	var all []Server
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		entry, _ := lookUp(entries, []string{name})
		all = append(all, p.server(name, entry, common))
	}
	return all, nil
}

// Entry reads one entry as clients write it, whichever client it is from.
func Entry(s System, name string, text []byte) (Server, error) {
	entry, err := jsonFormat{}.decode(text)
	if err != nil {
		return Server{}, err
	}
	c := Client{Title: "the entry"}
	switch {
	case entry["type"] == "local" && reflect.TypeOf(entry["command"]) == reflect.TypeFor[string]():
		c.dialect = copilot
	case entry["type"] == "local", entry["type"] == "remote":
		c.dialect = opencode
	case entry["cmd"] != nil, entry["uri"] != nil:
		c.dialect = goose
	case entry["httpUrl"] != nil:
		c.dialect = gemini
	}
	return Place{Client: c, system: s}.server(name, entry, shared{}), nil
}

// A shared is what a file says of all its servers.
type shared struct {
	inputs map[string]string // that VS Code asks for, with what it says of them
	tree   map[string]any
}

func sharedOf(tree map[string]any) shared {
	inputs := map[string]string{}
	list, _ := tree["inputs"].([]any)
	for _, one := range list {
		m, _ := one.(map[string]any)
		id, _ := m["id"].(string)
		inputs[id], _ = m["description"].(string)
	}
	return shared{inputs, tree}
}

// fields reads the keys of an entry and notes which were read.
type fields struct {
	m     map[string]any
	read  map[string]bool
	wrong string // says which key is the first with a wrong type
}

func (f *fields) take(key string) any {
	f.read[key] = true
	return f.m[key]
}

func (f *fields) bad(key, want string) {
	f.wrong = cmp.Or(f.wrong, fmt.Sprintf("its %q is not %s", key, want))
}

func (f *fields) text(key string) string {
	v := f.take(key)
	s, ok := v.(string)
	if v != nil && !ok {
		f.bad(key, "a text")
	}
	return s
}

func (f *fields) texts(key string) []string {
	v := f.take(key)
	list, ok := v.([]any)
	if v != nil && !ok {
		f.bad(key, "a list")
	}
	var all []string
	for _, one := range list {
		s, ok := scalar(one)
		if !ok {
			f.bad(key, "a list of texts")
		}
		all = append(all, s)
	}
	return all
}

func (f *fields) table(key string) map[string]string {
	v := f.take(key)
	m, ok := v.(map[string]any)
	if v != nil && !ok {
		f.bad(key, "an object")
	}
	all := map[string]string{}
	for name, one := range m {
		s, ok := scalar(one)
		if one == nil {
			continue // as clients read it: not set
		}
		if !ok {
			f.bad(key, "an object of texts")
		}
		all[name] = s
	}
	return all
}

// flag reads a key that is true or false; other if it is neither.
func (f *fields) flag(key string, other bool) bool {
	v := f.take(key)
	b, ok := v.(bool)
	if !ok {
		return other
	}
	return b
}

// period reads a number of units; 0 if it is none, or more than a day.
func (f *fields) period(key string, unit time.Duration) time.Duration {
	s, ok := scalar(f.take(key))
	n, err := strconv.ParseFloat(s, 64)
	if !ok || err != nil || n <= 0 || n*float64(unit) > float64(24*time.Hour) {
		return 0
	}
	return time.Duration(n * float64(unit)).Round(time.Millisecond)
}

// scalar is a text, a number or a truth value as text.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(v), true
	}
	return "", false
}

// quiet are keys that are dropped without a note: the bridge does not need them, or
// has another way to say the same.
var quiet = []string{
	"type", "transport", "source", "name", "display_name", "description", "bundled", "gallery", "version", "id", "timeout", "enabled", "disabled", "dev",
	"env", "envs", "environment", "headers", "args", "cwd", "command", "required", "icon", "tags", "lastModified",
}

// server reads one entry.
func (p Place) server(name string, entry any, of shared) Server {
	m, ok := entry.(map[string]any)
	if !ok {
		return Server{Name: name, Problem: "it is not an object"}
	}
	f := &fields{m: m, read: map[string]bool{}}
	s := Server{Name: name, Env: map[string]string{}, Headers: map[string]string{}}
	kind := cmp.Or(f.text("type"), f.text("transport"))
	switch p.Client.dialect {
	case opencode:
		command := f.texts("command")
		if len(command) > 0 {
			s.Command, s.Args = command[0], command[1:]
		}
		s.Env = f.table("environment")
	case goose:
		s.Command, s.Args, s.Env = f.text("cmd"), f.texts("args"), f.table("envs")
		for _, key := range f.texts("env_keys") { // kept in its keyring
			s.Env[key] = "${" + key + "}"
		}
		s.URL = f.text("uri")
		s.Allow = f.texts("available_tools")
		s.Timeout = f.period("timeout", time.Second)
	case zed:
		old, isOld := m["command"].(map[string]any) // before 2025
		if isOld {
			inner := &fields{m: old, read: map[string]bool{}}
			f.read["command"] = true
			s.Command, s.Args, s.Env = inner.text("path"), inner.texts("args"), inner.table("env")
			f.wrong = cmp.Or(f.wrong, inner.wrong)
			break
		}
		fallthrough
	default:
		s.Command, s.Args, s.Env = f.text("command"), f.texts("args"), f.table("env")
	}
	switch p.Client.dialect {
	case codex:
		if name := f.text("bearer_token_env_var"); name != "" {
			s.Headers["Authorization"] = "Bearer ${" + name + "}"
		}
		for header, name := range f.table("env_http_headers") {
			s.Headers[header] = "${" + name + "}"
		}
		maps.Copy(s.Headers, f.table("http_headers"))
		s.PassEnv = namesOf(f.take("env_vars"))
		s.Allow, s.Deny = f.texts("enabled_tools"), f.texts("disabled_tools")
		s.ConnectTimeout = cmp.Or(f.period("startup_timeout_sec", time.Second), f.period("startup_timeout_ms", time.Millisecond))
		s.Timeout = f.period("tool_timeout_sec", time.Second)
	case gemini:
		s.Timeout = f.period("timeout", time.Millisecond)
		s.Allow, s.Deny = f.texts("includeTools"), f.texts("excludeTools")
		if s.URL = f.text("httpUrl"); s.URL != "" {
			kind = "http"
		} else if f.m["url"] != nil {
			kind = cmp.Or(kind, "sse")
		}
	case cline:
		s.Timeout = f.period("timeout", time.Second)
	case copilot:
		s.Timeout = f.period("timeout", time.Millisecond)
		if tools := f.texts("tools"); !slices.Contains(tools, "*") {
			s.Allow = tools
		}
	case usual:
		s.Timeout = f.period("timeout", time.Millisecond)
		s.Deny = f.texts("disabledTools")
	}
	maps.Copy(s.Headers, f.table("headers"))
	s.URL = cmp.Or(s.URL, f.text("url"), f.text("serverUrl"))
	s.Cwd = f.text("cwd")
	s.Disabled = f.flag("disabled", false) || !f.flag("enabled", true)
	s.Kind, s.Problem = kindOf(kind, s)
	s.Problem = cmp.Or(s.Problem, f.wrong)
	if p.Client.dialect == goose && s.Command == "" && s.URL == "" || p.Client.dialect == zed && m["settings"] != nil && s.Command == "" && s.URL == "" {
		s.Problem = fmt.Sprintf("it is a part of %s itself", p.Client.Title)
	}
	if s.Problem == "" && isBridge(s.Command, s.Args) {
		s.Bridge, s.Problem = true, "it is a bridge itself"
	}
	s.Secrets = secretsOf(s)
	t := &translator{place: p, inputs: of.inputs}
	box, problem := t.boxOf(f, of.tree, &s)
	t.server(&s)
	s.Box, s.Problem = box, cmp.Or(s.Problem, problem)
	if f.read["oauth"] = true; m["oauth"] != nil && m["oauth"] != false {
		s.Notes = append(s.Notes, "its login (oauth) is the client's own")
	}
	if file := f.text("envFile"); file != "" {
		s.Notes = append(s.Notes, "its envFile is not read: put what the server needs into env")
	}
	var left []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !f.read[key] && !slices.Contains(quiet, key) {
			left = append(left, strconv.Quote(key))
		}
	}
	if len(left) > 0 {
		s.Notes = append(s.Notes, "left out: "+strings.Join(left, ", "))
	}
	return s
}

// namesOf are the variables of a list in which each is a name or an object
// that has one.
func namesOf(v any) []string {
	list, _ := v.([]any)
	var all []string
	for _, one := range list {
		if m, ok := one.(map[string]any); ok {
			one = m["name"]
		}
		if name, ok := one.(string); ok {
			all = append(all, name)
		}
	}
	return all
}

// kindOf tells how a server is reached, by what the entry says and has.
func kindOf(said string, s Server) (kind Kind, problem string) {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(said)) {
	case "":
		if kind = HTTP; s.Command != "" {
			kind = Stdio
		}
	case "stdio", "local":
		kind = Stdio
	case "http", "streamablehttp", "remote":
		kind = HTTP
	case "sse":
		kind = SSE
	default:
		return "", fmt.Sprintf("a server of type %q cannot be taken over", said)
	}
	switch {
	case kind == Stdio && s.Command == "":
		return kind, "it has no command"
	case kind != Stdio && s.URL == "":
		return kind, "it has no address"
	}
	return kind, ""
}

// isBridge reports whether a command is this program: by its own name, as the npm
// package that npx and others of its kind start, or as that package's launcher.
func isBridge(command string, args []string) bool {
	base := func(path string) string {
		name := strings.ToLower(filepath.Base(strings.ReplaceAll(path, `\`, "/")))
		return strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd")
	}
	switch base(command) {
	case "codemode-bridge":
		return true
	case "node":
		return len(args) > 0 && base(args[0]) == "codemode-bridge.js"
	case "npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "bun":
		return slices.ContainsFunc(args, func(arg string) bool {
			arg = strings.TrimPrefix(strings.TrimPrefix(arg, "--package="), "-p=")
			return arg == "codemode-bridge" || strings.HasPrefix(arg, "codemode-bridge@")
		})
	case "cmd": // as clients on Windows start npx: cmd /c npx ...
		return len(args) > 1 && strings.EqualFold(args[0], "/c") && isBridge(args[1], args[2:])
	}
	return false
}

// secretFlag matches the names of arguments whose values are secrets.
var secretFlag = regexp.MustCompile(`(?i)^-.*(key|token|secret|passw(or)?d|auth|credentials?|pat|header)$|^-H$`)

// secretsOf are the texts of a server that are not to be shown: all values of
// its environment and headers, arguments that follow a telling flag, and the
// password and query of an address.
func secretsOf(s Server) []string {
	all := slices.Concat(slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers)))
	for i, arg := range s.Args {
		flag, value, joined := strings.Cut(arg, "=")
		switch {
		case secretFlag.MatchString(flag) && joined:
			all = append(all, value)
		case secretFlag.MatchString(arg) && i+1 < len(s.Args):
			all = append(all, s.Args[i+1])
		}
		all = append(all, inAddress(arg)...)
	}
	all = append(all, inAddress(s.URL)...)
	all = slices.DeleteFunc(all, func(v string) bool { return v == "" || wholly.MatchString(v) })
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(all)
}

// Variables matches a text that is made of variables and names of secrets alone, which may
// follow the name of a scheme of HTTP. A variable with a default (${A:-b}) is none, nor is a
// command: the default may be a secret, and the command may have one in it.
const Variables = `(?i:(?:Bearer|Basic|Digest|Token|ApiKey|DPoP) )?(?:\$\{(?:[A-Za-z_][A-Za-z0-9_-]*(?::[A-Za-z_][A-Za-z0-9_-]*)?|keyring:[A-Za-z0-9_][A-Za-z0-9_.-]*|file:[^-${}"][^${}"]*)\})+`

// wholly matches a text that is variables of some client's form, and no secret.
var wholly = regexp.MustCompile(`^(?:` + Variables + `|(Bearer )?\{(env|file):[^}]+\})$`)

func inAddress(text string) []string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil
	}
	var all []string
	if password, ok := u.User.Password(); ok {
		all = append(all, password)
	}
	for _, values := range u.Query() {
		all = append(all, values...)
	}
	return all
}
