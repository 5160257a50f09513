package clients

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A translator rewrites the variables in a client's texts as the bridge has them, and
// notes which there are.
type translator struct {
	place  Place
	inputs map[string]string
	used   []Variable
	// problem says what only the client can fill in; the first such thing.
	problem string
}

var (
	plainName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	withDefault = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*):-[^$]*$`)
	bareName    = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*)`)
	braced      = regexp.MustCompile(`^\{(env|file):([^{}]+)\}`)
	notInName   = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// kinds are those of package secrets. A client's variable of such a name, with a default,
// would be another thing in the configuration: a command, even.
var kinds = []string{"keyring", "file", "exec"}

// server translates all texts of a server.
func (t *translator) server(s *Server) {
	s.Command = t.text(s.Command)
	for i := range s.Args {
		s.Args[i] = t.text(s.Args[i])
	}
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			values[key] = t.text(values[key])
		}
	}
	s.Cwd, s.URL = t.text(s.Cwd), t.text(s.URL)
	// In the file of a project, a relative path starts from the project's folder.
	if s.Cwd != "" && !strings.HasPrefix(s.Cwd, "$") && !filepath.IsAbs(s.Cwd) && !strings.HasPrefix(s.Cwd, "~") {
		if folder := t.place.project(); folder != "" {
			s.Cwd = filepath.Join(t.literal(folder, ""), s.Cwd)
		} else if t.place.File != "" {
			t.problem = "its cwd is relative, and only the client knows to what"
		}
	}
	s.Variables = t.used
	if s.Problem == "" {
		s.Problem = t.problem
	}
}

// project returns the folder of the project that the file is for; empty if it is for
// none.
func (p Place) project() string {
	if p.Scope == User || p.Scope == Managed || p.Scope == "" {
		return ""
	}
	return p.system.Folder
}

// text translates one text.
func (t *translator) text(text string) string {
	var out strings.Builder
	plain := 0 // where the text that means itself begins
	flush := func(at int, next string) {
		out.WriteString(t.literal(text[plain:at], next))
	}
	for i := 0; i < len(text); {
		n, value := t.reference(text[i:])
		if n == 0 {
			i++
			continue
		}
		flush(i, value)
		out.WriteString(value)
		i += n
		plain = i
	}
	flush(len(text), "")
	return out.String()
}

// literal writes a text that means itself, with next behind it: a "$" that would not
// mean itself is doubled.
func (t *translator) literal(text, next string) string {
	var out strings.Builder
	whole := text + next
	for i := range len(text) {
		out.WriteByte(text[i])
		if text[i] == '$' && i+1 < len(whole) && (whole[i+1] == '$' || whole[i+1] == '{') {
			out.WriteByte('$')
		}
	}
	return out.String()
}

// reference reads the variable that a text begins with: how long it is, 0 if there is
// none, and what to write for it.
func (t *translator) reference(text string) (n int, value string) {
	switch {
	case strings.HasPrefix(text, "${"):
		inner, _, ok := strings.Cut(text[2:], "}")
		if !ok {
			return 0, ""
		}
		value, ok := t.inner(inner)
		if !ok {
			return 0, ""
		}
		return len(inner) + 3, value
	case t.place.Client.dialect == gemini:
		if m := bareName.FindStringSubmatch(text); m != nil {
			return len(m[0]), t.variable(m[1], "")
		}
	case t.place.Client.dialect == opencode:
		if m := braced.FindStringSubmatch(text); m != nil && m[1] == "env" && plainName.MatchString(m[2]) {
			return len(m[0]), t.variable(m[2], "")
		} else if m != nil && m[1] == "file" {
			return len(m[0]), t.variable(nameFor(strings.TrimSuffix(filepath.Base(m[2]), filepath.Ext(m[2]))), "what is in the file "+m[2])
		}
	}
	return 0, ""
}

// inner translates what stands between "${" and "}".
func (t *translator) inner(inner string) (string, bool) {
	if m := withDefault.FindStringSubmatch(inner); m != nil && !slices.Contains(kinds, m[1]) {
		return "${" + inner + "}", true
	}
	folder := t.place.project()
	switch kind, name, _ := strings.Cut(inner, ":"); {
	case inner == "userHome":
		home := "HOME"
		if t.place.system.OS == "windows" {
			home = "USERPROFILE"
		}
		return "${" + home + "}", true
	case (inner == "workspaceFolder" || inner == "CLAUDE_PROJECT_DIR" || inner == "cwd") && folder != "":
		return t.literal(folder, ""), true
	case inner == "workspaceFolderBasename" && folder != "":
		return t.literal(filepath.Base(folder), ""), true
	case inner == "pathSeparator", inner == "/":
		if t.place.system.OS == "windows" {
			return `\`, true
		}
		return "/", true
	case kind == "env" && plainName.MatchString(name):
		return t.variable(name, ""), true
	case kind == "input" && name != "":
		return t.variable(nameFor(name), t.inputs[name]), true
	case inner == "workspaceFolder", inner == "workspaceFolderBasename", !plainName.MatchString(inner):
		if t.problem == "" {
			t.problem = fmt.Sprintf("it names %q, which only the client can fill in", "${"+inner+"}")
		}
		return "", false
	}
	return t.variable(inner, ""), true
}

// variable notes a variable and writes a reference to it.
func (t *translator) variable(name, why string) string {
	if !slices.ContainsFunc(t.used, func(v Variable) bool { return v.Name == name }) {
		t.used = append(t.used, Variable{name, why})
	}
	return "${" + name + "}"
}

// nameFor turns any name into that of a variable: github-token into GITHUB_TOKEN.
func nameFor(id string) string {
	name := strings.Trim(strings.ToUpper(notInName.ReplaceAllString(id, "_")), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "INPUT_" + name
	}
	return name
}
