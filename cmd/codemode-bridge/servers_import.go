package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/term"
)

// clientSystem is where the files of clients are looked for.
func clientSystem(con *console) clients.System {
	folder, err := os.Getwd()
	if err != nil {
		folder = ""
	}
	return clients.System{OS: runtime.GOOS, Env: con.env, Folder: folder}
}

// An adopted is a server of a client on its way into our configuration.
type adopted struct {
	clients.Server
	from []string // the places that have it, for people
	as   string   // its name with us
	// known is set if the configuration has the same server already.
	known bool
	// unset are the variables that it needs and that are not set.
	unset []clients.Variable
	// pinned is how many tools of it were accepted as they are, and unpinned
	// why none were.
	pinned   int
	unpinned string
}

// An adoption gives servers names of their own in a configuration.
type adoption struct {
	app   *console
	taken map[string]string // the servers with names, as texts, by their folded names
	names map[string]string // the names themselves, by their folded ones
	all   []*adopted
	left  []leftOut // what has to be named
}

// A leftOut is a place whose servers are not taken over unless it is named.
type leftOut struct {
	Place   string `json:"place"`
	From    string `json:"from"` // what to name
	Servers int    `json:"servers"`
	path    string
}

// leave notes a place whose servers are left out, if it has any.
func (d *adoption) leave(place clients.Place) {
	file, err := clients.ReadFile(place.File)
	if err != nil || !file.Existed {
		return
	}
	servers, err := place.Servers(file.Text)
	if err != nil || len(servers) == 0 {
		return
	}
	l := leftOut{Place: place.String(), From: place.Client.Name, Servers: len(servers), path: place.File}
	if place.Scope == clients.Project {
		l.From = filepath.Base(place.File)
		if folder, err := os.Getwd(); err == nil {
			if rel, err := filepath.Rel(folder, place.File); err == nil {
				l.From = rel
			}
		}
	}
	d.left = append(d.left, l)
}

func newAdoption(con *console) *adoption {
	return &adoption{app: con, taken: map[string]string{}, names: map[string]string{}}
}

// has tells of servers that the configuration has.
func (d *adoption) has(text []byte, cfg *config.Config) error {
	for _, name := range cfg.ServerNames() {
		section, err := config.Section(text, serversKey(cfg)+"/"+name)
		if err != nil {
			return err
		}
		d.take(name, comparable(section))
	}
	return nil
}

func (d *adoption) take(name, text string) {
	d.taken[strings.ToLower(name)], d.names[strings.ToLower(name)] = text, name
}

// comparable is a server as the configuration has it, without what does not
// make another server of it.
func comparable(text config.JSONC) string {
	plain, err := text.MarshalJSON()
	var m map[string]any
	if err != nil || json.Unmarshal(plain, &m) != nil {
		return string(text)
	}
	for _, key := range []string{"disabled", "timeout", "connectTimeout", "type", "quarantine", "newTools", "changedTools"} {
		delete(m, key)
	}
	same, err := json.Marshal(m)
	if err != nil {
		return string(text)
	}
	return string(same)
}

// add finds a server its place: it is folded into one that is the same, or
// gets a name that no other has. One with a Problem gets none.
func (d *adoption) add(s clients.Server, place clients.Place) *adopted {
	one := &adopted{Server: s, from: []string{place.String()}}
	for _, v := range s.Variables {
		if _, ok := d.app.env(v.Name); !ok {
			one.unset = append(one.unset, v)
		}
	}
	if s.Problem != "" {
		d.all = append(d.all, one)
		return one
	}
	text := comparable(one.text())
	for _, other := range d.all {
		if other.Problem == "" && other.as != "" && comparable(other.text()) == text {
			other.from = append(other.from, place.String())
			one.as, one.known = other.as, true
			return one
		}
	}
	for _, folded := range slices.Sorted(maps.Keys(d.taken)) {
		if d.taken[folded] == text {
			one.as, one.known = d.names[folded], true
			d.all = append(d.all, one)
			return one
		}
	}
	client := place.Client.Name
	if place.Scope == "" {
		client = "" // the file is anybody's
	}
	one.as = d.free(s.Name, client)
	d.take(one.as, text)
	d.all = append(d.all, one)
	return one
}

// free is a legal name like the one wished for that no server has.
func (d *adoption) free(wish, client string) string {
	base := config.ServerName(wish)
	name := base
	for n := 1; ; n++ {
		if _, used := d.taken[strings.ToLower(name)]; !used {
			return name
		}
		if name = config.ServerName(base + "-" + client); n > 1 {
			name = config.ServerName(base + "-" + strconv.Itoa(n))
		}
	}
}

// off reports whether the server is disabled in our configuration: it was, or
// a variable is missing without which the whole file could not be used.
func (s *adopted) off() bool { return s.Disabled || len(s.unset) > 0 }

// text is the server as the configuration has it, comments at its top.
func (s *adopted) text() config.JSONC {
	var out strings.Builder
	out.WriteString("{\n")
	for _, line := range s.comments() {
		out.WriteString("  // " + canon.Visible(line) + "\n")
	}
	key := func(name string, value any) {
		fmt.Fprintf(&out, "  %q: %s,\n", name, flatJSON(value))
	}
	if s.Kind == clients.SSE {
		key("type", "sse")
	}
	if s.Command != "" && s.Kind == clients.Stdio {
		key("command", s.Command)
		if len(s.Args) > 0 {
			key("args", s.Args)
		}
		if len(s.Env) > 0 {
			key("env", s.Env)
		}
		if len(s.PassEnv) > 0 {
			key("passEnv", s.PassEnv)
		}
		if s.Cwd != "" {
			key("cwd", s.Cwd)
		}
	}
	if s.URL != "" && s.Kind != clients.Stdio {
		key("url", s.URL)
		if len(s.Headers) > 0 {
			key("headers", s.Headers)
		}
	}
	if s.Timeout > 0 {
		key("timeout", s.Timeout.String())
	}
	if s.ConnectTimeout > 0 {
		key("connectTimeout", min(s.ConnectTimeout, 10*time.Minute).String())
	}
	if len(s.Allow)+len(s.Deny) > 0 {
		tools := map[string][]string{}
		if len(s.Allow) > 0 {
			tools["allow"] = s.Allow
		}
		if len(s.Deny) > 0 {
			tools["deny"] = s.Deny
		}
		key("tools", tools)
	}
	if s.pinned > 0 {
		key("quarantine", true)
	}
	if s.off() {
		key("disabled", true)
	}
	out.WriteString("}")
	return config.JSONC(out.String())
}

// comments say where a server came from and what is to be done with it.
func (s *adopted) comments() []string {
	var lines []string
	if len(s.from) > 0 {
		lines = append(lines, "from "+strings.Join(s.from, ", "))
	}
	if len(s.unset) > 0 {
		var set []string
		for _, v := range s.unset {
			if v.Why != "" {
				v.Name += " (" + v.Why + ")"
			}
			set = append(set, v.Name)
		}
		lines = append(lines, fmt.Sprintf("set %s, then: codemode-bridge servers enable %s", strings.Join(set, " and "), s.as))
	}
	return append(lines, s.Notes...)
}

// needs names variables for people.
func needs(all []clients.Variable) string {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.Name
	}
	return strings.Join(names, " and ")
}

// runs is how a server is reached, without its secrets.
func (s *adopted) runs() string {
	if s.Kind != clients.Stdio {
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" {
			return canon.Visible(canon.Redact(masked(s.URL, s.Secrets)))
		}
		return canon.Visible(u.Scheme + "://" + u.Host + u.Path)
	}
	parts := append([]string{s.Command}, s.Args...)
	for i, part := range parts {
		if slices.Contains(s.Secrets, part) {
			parts[i] = "[hidden]"
		}
	}
	return canon.Visible(canon.Redact(masked(strings.Join(parts, " "), s.Secrets)))
}

// variables are the names of a server's environment and headers.
func (s *adopted) variables() string {
	names := slices.Concat(slices.Sorted(maps.Keys(s.Env)), s.PassEnv, slices.Sorted(maps.Keys(s.Headers)))
	return canon.Visible(strings.Join(names, " "))
}

// reference is a variable that a text uses.
var reference = regexp.MustCompile(`\$\{([^}:]+)`)

// uses are the variables of this machine that the server's texts name: their
// values go to it.
func (s *adopted) uses() []string {
	texts := slices.Concat([]string{s.Command, s.URL, s.Cwd}, s.Args, slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers)))
	var names []string
	for _, text := range texts {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			names = append(names, canon.Visible(m[1]))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// remark says in a few words what becomes of the server.
func (s *adopted) remark() string {
	var all []string
	switch {
	case s.Problem != "":
		return "not taken over: " + canon.Visible(s.Problem)
	case s.known:
		all = append(all, "there already")
	}
	if s.as != s.Name {
		all = append(all, "as "+s.as)
	}
	if len(s.unset) > 0 {
		all = append(all, "off until you set "+needs(s.unset))
	} else if s.Disabled {
		all = append(all, "off")
	}
	for _, note := range s.Notes {
		all = append(all, canon.Visible(note))
	}
	return strings.Join(all, "; ")
}

// printAdopted prints servers as a table, with all that they run and use: the
// person decides by it.
func printAdopted(con *console, all []*adopted) error {
	rows := [][]string{{"name", "how it runs"}}
	for _, s := range all {
		more := []string{"from " + strings.Join(s.from, ", ")}
		if names := s.variables(); names != "" {
			more = append(more, "given "+names)
		}
		if uses := s.uses(); len(uses) > 0 {
			more = append(more, "reads ${"+strings.Join(uses, "} ${")+"}")
		}
		if remark := s.remark(); remark != "" {
			more = append(more, remark)
		}
		rows = append(rows, []string{canon.Visible(s.Name), s.runs() + "\n" + strings.Join(more, "; ")})
	}
	return con.table(rows)
}

// adoptedRow is a server as --json prints it.
type adoptedRow struct {
	From      []string `json:"from"`
	Name      string   `json:"name"`
	As        string   `json:"as,omitempty"`
	Type      string   `json:"type,omitempty"`
	Runs      string   `json:"runs,omitempty"`
	Variables []string `json:"variables,omitempty"`
	Uses      []string `json:"uses,omitempty"` // variables of this machine whose values it gets
	Unset     []string `json:"unset,omitempty"`
	Disabled  bool     `json:"disabled,omitempty"`
	Known     bool     `json:"known,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	Pinned    int      `json:"pinned,omitempty"` // tools that were accepted as they are
	Unpinned  string   `json:"unpinned,omitempty"`
	Problem   string   `json:"problem,omitempty"`
}

func adoptedRows(all []*adopted) []adoptedRow {
	rows := []adoptedRow{}
	for _, s := range all {
		row := adoptedRow{From: s.from, Name: s.Name, As: s.as, Type: string(s.Kind), Runs: s.runs(), Variables: strings.Fields(s.variables()), Uses: s.uses(), Disabled: s.off(), Known: s.known, Notes: s.Notes,
			Pinned: s.pinned, Unpinned: canon.Visible(canon.Redact(masked(s.unpinned, s.Secrets))), Problem: s.Problem}
		for _, v := range s.unset {
			row.Unset = append(row.Unset, v.Name)
		}
		rows = append(rows, row)
	}
	return rows
}

// serversKey is where the configuration has its servers.
func serversKey(cfg *config.Config) string {
	if cfg.Has("/mcpServers") {
		return "/mcpServers"
	}
	return "/servers"
}

// firstProblem is what is wrong with a configuration, in the words of the first
// mistake and without its place.
func firstProblem(err error) string {
	var problem *config.FieldError
	if errors.As(err, &problem) {
		if problem.Hint != "" {
			return problem.Message + " (" + problem.Hint + ")"
		}
		return problem.Message
	}
	return err.Error()
}

// confirm asks at the terminal unless yes was said in advance.
func confirm(con *console, question string, yes bool) error {
	if yes {
		return nil
	}
	file, ok := con.in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &usageError{errors.New("there is no terminal to ask at: --yes goes ahead, --dry-run only shows")}
	}
	fmt.Fprint(con.err, con.fitted(question+" [y/N]"), " ")
	var answer string
	if _, err := fmt.Fscanln(file, &answer); err != nil && !errors.Is(err, io.EOF) && err.Error() != "unexpected newline" {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if answer = strings.ToLower(answer); answer == "y" || answer == "yes" {
		return nil
	}
	return errNothingDone
}

var errNothingDone = errors.New("nothing was changed")

// masked is a text without secrets.
func masked(text string, secrets []string) string {
	const hidden = "[hidden]"
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, flatJSON(secret), `"`+hidden+`"`)
		text = strings.ReplaceAll(text, "'"+secret+"'", "'"+hidden+"'")
		if len(secret) >= 6 { // shorter ones are parts of other words
			text = strings.ReplaceAll(text, secret, hidden)
			continue
		}
		bare := regexp.MustCompile(`(?m)([:=]\s*)` + regexp.QuoteMeta(secret) + `(\s*(?:$|,|[}\]#]))`)
		text = bare.ReplaceAllString(text, "${1}"+hidden+"${2}")
	}
	return text
}

// secretsIn are the texts of configurations of ours that are not to be shown.
func secretsIn(texts ...[]byte) []string {
	var all []string
	for _, text := range texts {
		for _, key := range []string{"/servers", "/mcpServers"} {
			section, err := config.Section(text, key)
			if err != nil || section == nil {
				continue
			}
			whole := slices.Concat([]byte(`{"mcpServers": `), section, []byte("\n}"))
			place, err := clients.At(clients.System{}, "config.json", whole)
			if err != nil {
				continue
			}
			servers, err := place.Servers(whole)
			if err != nil {
				continue
			}
			for _, s := range servers {
				all = append(all, s.Secrets...)
			}
		}
	}
	return all
}

// flatJSON is a text, a list of texts, or an object of either, as people write
// JSON on one line.
func flatJSON(value any) string {
	switch v := value.(type) {
	case []string:
		texts := make([]string, len(v))
		for i, one := range v {
			texts[i] = flatJSON(one)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case map[string]string:
		return flatObject(v)
	case map[string][]string:
		return flatObject(v)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "null" // a text always has a form
	}
	return strings.TrimSpace(text.String())
}

func flatObject[T any](m map[string]T) string {
	if len(m) == 0 {
		return "{}"
	}
	var members []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		members = append(members, flatJSON(key)+": "+flatJSON(m[key]))
	}
	return "{ " + strings.Join(members, ", ") + " }"
}

// printDiff prints how a file changes, without its secrets. Lines that no
// terminal shows as a whole are cut.
func printDiff(out io.Writer, name string, before, after []byte, secrets []string) {
	const widest = 400
	show := func(text []byte) []byte {
		plain := strings.ReplaceAll(masked(string(text), secrets), "\r\n", "\n")
		if plain != "" && !strings.HasSuffix(plain, "\n") {
			plain += "\n"
		}
		return []byte(plain)
	}
	lines := strings.SplitAfter(string(diff.Diff(name, show(before), name, show(after))), "\n")
	for i, line := range lines {
		if line = strings.TrimSuffix(line, "\n"); i == 0 || line == "" {
			continue // the first line only names the files
		}
		fmt.Fprintln(out, line[:1]+cut(canon.VisibleLines(canon.Redact(line[1:])), widest))
	}
}

// homeShort is a path for people.
func homeShort(con *console, path string) string {
	home, _ := con.env("HOME")
	if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok && home != "" {
		return filepath.Join("~", rest)
	}
	return path
}
