package setup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/profiles"
)

// A Server is a server of a client on its way into our configuration.
type Server struct {
	clients.Server
	From []string // the places that have it, for people
	As   string   // its name in our configuration
	// There is set if the configuration has the same server already.
	There bool
	// Twin is the name of a server that is the same program or address, started in another
	// way; empty if there is none.
	Twin string
	// Accepted is set once the person has accepted what is known of it: see [Known].
	Accepted bool
	// Boxes writes its box once it is accepted; nil for none. Unboxed says why the
	// configuration cannot have that box.
	Boxes   *Boxes
	Unboxed string
	// Unset are the variables that it needs and that are not set.
	Unset []clients.Variable
	// Pinned is how many of its tools were accepted as they are, and Unpinned why
	// none were.
	Pinned   int
	Unpinned string
	// Listed are the tools that it listed then, each as a call without arguments.
	Listed []profiles.Call
}

// Off reports whether the server is disabled in our configuration: the client has it
// disabled, or a variable is not set, which would make the whole file unusable.
func (s *Server) Off() bool { return s.Disabled || len(s.Unset) > 0 }

// Text is the server in the form of the configuration, with comments at its top.
func (s *Server) Text() jsonc.Text {
	text, _ := PerSession(s.written())
	if s.Accepted {
		if accepted, err := Accept(text); err == nil { // it is our own text
			text = accepted
		}
		if s.Unboxed == "" {
			if boxed, _, err := s.Boxes.ConfineIn(text, ""); err == nil {
				text = boxed
			}
		}
	}
	return text
}

// written is the server as the client has it, in the form of the configuration.
func (s *Server) written() jsonc.Text {
	var out strings.Builder
	out.WriteString("{\n")
	for _, line := range s.comments() {
		out.WriteString("  // " + canon.Escape(line) + "\n")
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
		if s.Box != nil {
			fmt.Fprintf(&out, "  %q: %s,\n", "confine", clientBox(s.Box))
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
	if s.Pinned > 0 {
		key("quarantine", true)
	}
	if s.Off() {
		key("disabled", true)
	}
	out.WriteString("}")
	return jsonc.Text(out.String())
}

// comments say where a server came from and what is left to do.
func (s *Server) comments() []string {
	var lines []string
	if len(s.From) > 0 {
		lines = append(lines, "from "+strings.Join(s.From, ", "))
	}
	if len(s.Unset) > 0 {
		var set []string
		for _, v := range s.Unset {
			if v.Why != "" {
				v.Name += " (" + v.Why + ")"
			}
			set = append(set, v.Name)
		}
		lines = append(lines, fmt.Sprintf("set %s, then: codemode-bridge servers enable %s", strings.Join(set, " and "), s.As))
	}
	return append(lines, s.Notes...)
}

// unset names the variables that are not set, for people.
func (s *Server) unset() string {
	names := make([]string, len(s.Unset))
	for i, v := range s.Unset {
		names[i] = v.Name
	}
	return strings.Join(names, " and ")
}

// Runs is how a server is reached, without its secrets.
func (s *Server) Runs() string {
	if s.Kind != clients.Stdio {
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" {
			return canon.Escape(canon.Redact(masked(s.URL, s.Secrets)))
		}
		return canon.Escape(u.Scheme + "://" + u.Host + u.Path)
	}
	parts := append([]string{s.Command}, s.Args...)
	for i, part := range parts {
		if slices.Contains(s.Secrets, part) {
			parts[i] = hidden
		}
	}
	return canon.Escape(canon.Redact(masked(strings.Join(parts, " "), s.Secrets)))
}

// VariableNames are the names of a server's environment and headers, on one line.
func (s *Server) VariableNames() string {
	names := slices.Concat(slices.Sorted(maps.Keys(s.Env)), s.PassEnv, slices.Sorted(maps.Keys(s.Headers)))
	return canon.Escape(strings.Join(names, " "))
}

// reference is a variable that a text uses.
var reference = regexp.MustCompile(`\$\{([^}:]+)`)

// Uses are the variables of this machine that the server's texts name: it is given
// their values.
func (s *Server) Uses() []string {
	texts := slices.Concat([]string{s.Command, s.URL, s.Cwd}, s.Args, slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers)))
	var names []string
	for _, text := range texts {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			names = append(names, canon.Escape(m[1]))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Remark says in a few words what becomes of the server.
func (s *Server) Remark() string {
	var all []string
	switch {
	case s.Problem != "":
		return "not taken over: " + canon.Escape(s.Problem)
	case s.There:
		all = append(all, "there already")
	}
	if s.As != s.Name {
		all = append(all, "as "+s.As)
	}
	if s.Twin != "" {
		all = append(all, "like "+canon.Escape(s.Twin)+", with other arguments or variables")
	}
	if len(s.Unset) > 0 {
		all = append(all, "off until you set "+s.unset())
	} else if s.Disabled {
		all = append(all, "off")
	}
	for _, note := range s.Notes {
		all = append(all, canon.Escape(note))
	}
	return strings.Join(all, "; ")
}

// WhyUnpinned is Unpinned without secrets.
func (s *Server) WhyUnpinned() string {
	return canon.Escape(canon.Redact(masked(s.Unpinned, s.Secrets)))
}

// A Row is a server as --json prints it.
type Row struct {
	From      []string `json:"from"`
	Name      string   `json:"name"`
	As        string   `json:"as,omitempty"`
	Type      string   `json:"type,omitempty"`
	Runs      string   `json:"runs,omitempty"`
	Variables []string `json:"variables,omitempty"`
	Uses      []string `json:"uses,omitempty"` // variables of this machine whose values it gets
	Unset     []string `json:"unset,omitempty"`
	Disabled  bool     `json:"disabled,omitempty"`
	There     bool     `json:"there,omitempty"`
	// Known is what was accepted for it, as "filesystem@2026.8.31", and Acceptable what
	// could be.
	Known      string   `json:"known,omitempty"`
	Acceptable string   `json:"acceptable,omitempty"`
	Notes      []string `json:"notes,omitempty"`
	Pinned     int      `json:"pinned,omitempty"` // tools that were accepted as they are
	Unpinned   string   `json:"unpinned,omitempty"`
	Problem    string   `json:"problem,omitempty"`
}

// Rows are servers as --json prints them.
func Rows(all []*Server) []Row {
	rows := []Row{}
	for _, s := range all {
		row := Row{From: s.From, Name: s.Name, As: s.As, Type: string(s.Kind), Runs: s.Runs(), Variables: strings.Fields(s.VariableNames()), Uses: s.Uses(), Disabled: s.Off(), There: s.There, Notes: s.Notes,
			Pinned: s.Pinned, Unpinned: s.WhyUnpinned(), Problem: s.Problem}
		for _, v := range s.Unset {
			row.Unset = append(row.Unset, v.Name)
		}
		if s.Problem == "" {
			if _, says := Known(s.written()); s.Accepted {
				row.Known = says
			} else if !s.There {
				row.Acceptable = says
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// flatJSON writes a text, a list of texts, or an object of either on one line, as
// people write JSON.
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

// Pinnable returns the servers that are switched on, which pinning starts.
func Pinnable(taking []*Server) []*Server {
	return slices.DeleteFunc(slices.Clone(taking), (*Server).Off)
}
