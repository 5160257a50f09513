// Package clients knows the configuration files of MCP clients: where they
// are, which servers they name, and how to edit them without losing a comment.
//
// A [Client] keeps its servers in one [Place] per [Scope]: a file, and in that
// an object of servers by name. [Place.Servers] reads them in the bridge's own
// terms, whatever the client's:
//
//	claude-desktop, claude-code, cursor, gemini,
//	windsurf, cline, copilot, kiro, junie         JSON  mcpServers
//	vscode                                        JSON  servers, inputs
//	zed                                           JSON  context_servers
//	opencode                                      JSON  mcp (mcp.servers since its version 2)
//	codex                                         TOML  [mcp_servers.NAME]
//	goose                                         YAML  extensions
//
// An edit touches only the bytes of the entries concerned: a JSON file keeps its
// comments, its order and its trailing commas, TOML and YAML files their lines.
// Both versions are then parsed and compared, and an edit that changed anything
// else is an error. [Place.Install] adds an entry and removes others;
// [Place.Uninstall] undoes that with the help of the [Record], whatever was edited
// since.
//
// A [File] is read within bounds and written in one step, unless it has changed
// meanwhile: running clients write their own files.
package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Scope says for whom a client's file holds.
type Scope string

// The scopes. Not every client has all.
const (
	User    Scope = "user"    // everything that this user does
	Project Scope = "project" // one folder, for everybody who works on it
	Local   Scope = "local"   // one folder, for this user
	// Managed is the whole machine: an administrator writes the file, and nobody else. It
	// is not among a client's Scopes; see [Client.Managed].
	Managed Scope = "managed"
)

// A System is what the places of files depend on.
type System struct {
	// OS is the operating system, as runtime.GOOS names it.
	OS string
	// Env looks a variable up, as os.LookupEnv does.
	Env func(name string) (string, bool)
	// Folder is the project's folder, absolute; empty if there is none.
	Folder string
	// Root is the folder in which the machine's files are; empty: the machine's own.
	Root string
}

// A Client is a program that connects to MCP servers.
type Client struct {
	Name   string  // as people type it: claude-code
	Title  string  // as it calls itself: Claude Code
	Scopes []Scope // the first is the usual one
	// Asks reports whether it can show its person the questions of a server.
	Asks bool
	// Desktop is set of one that is started from the desktop and does not read the
	// person's shell: its PATH is the system's alone.
	Desktop bool
	// Prompts says how its person lets it call the bridge's tools without a prompt of the
	// client's own; empty if that is not known.
	Prompts string

	dialect dialect
	format  format
	keys    []string // of the servers in the file
	// managed is the file of scope Managed on a system; nil, or empty, if there is none.
	// Alone says what becomes of the servers of each person then.
	managed func(s System) string
	alone   string
	// files are the names that the file of a scope may have, the usual one first.
	files func(s System, scope Scope) []string
}

// Managed reports whether the client reads servers for the whole machine from a file that
// an administrator writes, and says what that does to the servers of each person.
func (c Client) Managed(s System) (people string, ok bool) {
	return c.alone, c.managed != nil && c.managed(s) != ""
}

// perSystem returns a file that is elsewhere on each system; empty where there is none.
func perSystem(linux, mac, windows string) func(System) string {
	return func(s System) string {
		switch s.OS {
		case "darwin":
			return mac
		case "windows":
			return windows
		}
		return linux
	}
}

// All returns the clients that the package knows, in the order in which they
// are asked for servers.
func All() []Client { return slices.Clone(known) }

// Find returns the client with that name.
func Find(name string) (Client, bool) {
	i := slices.IndexFunc(known, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return known[i], true
}

var known = []Client{
	{
		Name: "claude-code", Title: "Claude Code", Asks: true, Prompts: `"permissions": {"allow": ["mcp__codemode__eval"]} in ~/.claude/settings.json`, Scopes: []Scope{User, Project, Local}, format: jsonFormat{}, keys: []string{"mcpServers"},
		managed: perSystem("/etc/claude-code/managed-mcp.json", "/Library/Application Support/ClaudeCode/managed-mcp.json", `C:\Program Files\ClaudeCode\managed-mcp.json`),
		alone:   "it loads the servers of that file alone, and nobody can add others",
		files: func(s System, scope Scope) []string {
			if scope == Project {
				return s.project(".mcp.json")
			}
			return one(s.variable("CLAUDE_CONFIG_DIR", s.home()), ".claude.json")
		},
	},
	{
		Name: "claude-desktop", Title: "Claude Desktop", Desktop: true, Scopes: []Scope{User}, format: jsonFormat{}, keys: []string{"mcpServers"},
		files: func(s System, _ Scope) []string { return one(s.appData(), "Claude", "claude_desktop_config.json") },
	},
	{
		Name: "vscode", Title: "VS Code", Asks: true, Scopes: []Scope{User, Project}, dialect: vscode, format: jsonFormat{}, keys: []string{"servers"},
		files: func(s System, scope Scope) []string {
			if scope == Project {
				return s.project(".vscode", "mcp.json")
			}
			return one(s.appData(), "Code", "User", "mcp.json")
		},
	},
	{
		Name: "cursor", Title: "Cursor", Asks: true, Prompts: `"mcpAllowlist": ["codemode:eval"] in ~/.cursor/permissions.json`, Scopes: []Scope{User, Project}, format: jsonFormat{}, keys: []string{"mcpServers"},
		files: func(s System, scope Scope) []string {
			if scope == Project {
				return s.project(".cursor", "mcp.json")
			}
			return one(s.home(), ".cursor", "mcp.json")
		},
	},
	{
		Name: "codex", Title: "Codex", Asks: true, Scopes: []Scope{User, Project}, dialect: codex, format: tomlFormat{}, keys: []string{"mcp_servers"},
		managed: perSystem("/etc/codex/managed_config.toml", "/etc/codex/managed_config.toml", ""),
		alone:   "each person's own servers stay, unless /etc/codex/requirements.toml allows these alone in mcp_servers",
		files: func(s System, scope Scope) []string {
			if scope == Project {
				return s.project(".codex", "config.toml")
			}
			return one(s.variable("CODEX_HOME", below(s.home(), ".codex")), "config.toml")
		},
	},
	{
		Name: "gemini", Title: "Gemini CLI", Prompts: `"trust": true in the entry codemode of its settings.json`, Scopes: []Scope{User, Project}, dialect: gemini, format: jsonFormat{}, keys: []string{"mcpServers"},
		managed: perSystem("/etc/gemini-cli/settings.json", "/Library/Application Support/GeminiCli/settings.json", `C:\ProgramData\gemini-cli\settings.json`),
		alone:   `each person's own servers stay, unless that file has "mcp": {"allowed": ["codemode"]}`,
		files: func(s System, scope Scope) []string {
			if scope == Project {
				return s.project(".gemini", "settings.json")
			}
			return one(s.home(), ".gemini", "settings.json")
		},
	},
	{
		Name: "opencode", Title: "OpenCode", Scopes: []Scope{User, Project}, dialect: opencode, format: jsonFormat{}, keys: []string{"mcp"},
		files: func(s System, scope Scope) []string {
			if scope == Project {
				return slices.Concat(s.project("opencode.json"), s.project("opencode.jsonc"))
			}
			if named := s.variable("OPENCODE_CONFIG", ""); named != "" {
				return []string{named}
			}
			folder := below(s.variable("XDG_CONFIG_HOME", below(s.home(), ".config")), "opencode")
			return slices.Concat(one(folder, "opencode.json"), one(folder, "opencode.jsonc"), one(folder, "config.json"))
		},
	},
	{
		Name: "zed", Title: "Zed", Prompts: `"mcp:codemode:eval": {"default": "allow"} in agent.tool_permissions.tools of its settings.json`, Scopes: []Scope{User, Project}, dialect: zed, format: jsonFormat{}, keys: []string{"context_servers"},
		files: func(s System, scope Scope) []string {
			switch {
			case scope == Project:
				return s.project(".zed", "settings.json")
			case s.OS == "windows":
				return one(s.appData(), "Zed", "settings.json")
			case s.OS == "darwin":
				return one(s.home(), ".config", "zed", "settings.json")
			}
			return one(s.appData(), "zed", "settings.json")
		},
	},
	{
		Name: "goose", Title: "Goose", Asks: true, Desktop: true, Scopes: []Scope{User}, dialect: goose, format: yamlFormat{}, keys: []string{"extensions"},
		files: func(s System, _ Scope) []string {
			if s.OS == "windows" {
				return one(s.appData(), "Block", "goose", "config", "config.yaml")
			}
			return one(s.variable("XDG_CONFIG_HOME", below(s.home(), ".config")), "goose", "config.yaml")
		},
	},
	{
		Name: "windsurf", Title: "Windsurf", Scopes: []Scope{User}, format: jsonFormat{}, keys: []string{"mcpServers"},
		files: func(s System, _ Scope) []string { return one(s.home(), ".codeium", "windsurf", "mcp_config.json") },
	},
	{
		Name: "cline", Title: "Cline", Prompts: `"autoApprove": ["eval"] in the entry codemode of cline_mcp_settings.json`, Scopes: []Scope{User}, dialect: cline, format: jsonFormat{}, keys: []string{"mcpServers"},
		files: func(s System, _ Scope) []string {
			return one(s.appData(), "Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json")
		},
	},
	{
		Name: "copilot", Title: "Copilot CLI", Scopes: []Scope{User}, dialect: copilot, format: jsonFormat{}, keys: []string{"mcpServers"},
		files: func(s System, _ Scope) []string {
			return one(s.variable("COPILOT_HOME", below(s.home(), ".copilot")), "mcp-config.json")
		},
	},
	{
		Name: "kiro", Title: "Kiro", Prompts: `"autoApprove": ["eval"] in the entry codemode of its mcp.json`, Scopes: []Scope{User, Project}, format: jsonFormat{}, keys: []string{"mcpServers"},
		files: func(s System, scope Scope) []string {
			if scope == Project {
				return s.project(".kiro", "settings", "mcp.json")
			}
			return one(s.home(), ".kiro", "settings", "mcp.json")
		},
	},
	{
		Name: "junie", Title: "Junie", Scopes: []Scope{User, Project}, format: jsonFormat{}, keys: []string{"mcpServers"},
		files: func(s System, scope Scope) []string {
			if scope == Project {
				return s.project(".junie", "mcp", "mcp.json")
			}
			return one(s.home(), ".junie", "mcp", "mcp.json")
		},
	},
}

// variable returns the absolute path that a variable of the environment has, or other.
func (s System) variable(name, other string) string {
	if s.Env != nil {
		if v, ok := s.Env(name); ok && filepath.IsAbs(v) {
			return v
		}
	}
	return other
}

func (s System) home() string {
	if s.OS == "windows" {
		return s.variable("USERPROFILE", "")
	}
	return s.variable("HOME", "")
}

// appData is the folder where a system's programs keep their settings.
func (s System) appData() string {
	switch s.OS {
	case "windows":
		return s.variable("APPDATA", below(s.home(), "AppData", "Roaming"))
	case "darwin":
		return below(s.home(), "Library", "Application Support")
	}
	return s.variable("XDG_CONFIG_HOME", below(s.home(), ".config"))
}

func (s System) project(path ...string) []string { return one(s.Folder, path...) }

// below is a path below a folder; empty if the folder is not known.
func below(folder string, path ...string) string {
	if folder == "" {
		return ""
	}
	return filepath.Join(append([]string{folder}, path...)...)
}

func one(folder string, path ...string) []string {
	if file := below(folder, path...); file != "" {
		return []string{file}
	}
	return nil
}

// A Place is where a client keeps its servers.
type Place struct {
	Client Client
	Scope  Scope // empty of a file that somebody named
	File   string
	// Path is the PATH that Install gives the program of an entry; empty: the client's own.
	Path   string
	system System
}

// Place returns where the client keeps its servers in a scope. Where the file
// may have several names it is the one that exists, or else the usual one.
func (c Client) Place(s System, scope Scope) (Place, error) {
	if scope == Managed {
		if _, ok := c.Managed(s); !ok {
			return Place{}, fmt.Errorf("%s has no settings for a whole machine in which an administrator could name servers; %s", c.Title, managedOnes(s))
		}
		return Place{Client: c, Scope: scope, File: s.Root + c.managed(s), system: s}, nil
	}
	if !slices.Contains(c.Scopes, scope) {
		names := make([]string, len(c.Scopes))
		for i, one := range c.Scopes {
			names[i] = string(one)
		}
		return Place{}, fmt.Errorf("%s has no scope %q; it has: %s", c.Title, scope, strings.Join(names, ", "))
	}
	files := c.files(s, scope)
	if len(files) == 0 {
		return Place{}, fmt.Errorf("finding the file of %s: the home folder is not known", c.Title)
	}
	p := Place{Client: c, Scope: scope, File: files[0], system: s}
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			p.File = file
			break
		}
	}
	return p, nil
}

// managedOnes says which clients have a file of scope Managed.
func managedOnes(s System) string {
	var names []string
	for _, c := range known {
		if _, ok := c.Managed(s); ok {
			names = append(names, c.Name)
		}
	}
	return "these have: " + strings.Join(names, ", ")
}

// Places returns all places of all clients, each once.
func Places(s System) []Place {
	var all []Place
	for _, c := range known {
		for _, scope := range c.Scopes {
			p, err := c.Place(s, scope)
			twice := slices.ContainsFunc(all, func(q Place) bool { return q.File == p.File && scope == Project }) // the folder is the home
			if err == nil && !twice {
				all = append(all, p)
			}
		}
	}
	return all
}

// At returns the place of the servers in a file that somebody names: its name and
// its content tell which form it has.
func At(s System, file string, text []byte) (Place, error) {
	for _, p := range Places(s) {
		if p.File == file && p.Scope != Local {
			return p, nil
		}
	}
	guess := func(name string) Place {
		c, _ := Find(name)
		return Place{Client: c, File: file, system: s}
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".toml":
		return guess("codex"), nil
	case ".yaml", ".yml":
		return guess("goose"), nil
	}
	tree, err := jsonFormat{}.decode(text)
	if err != nil {
		return Place{}, fmt.Errorf("reading %s: %w", file, err)
	}
	for _, name := range []string{"claude-code", "vscode", "zed", "opencode"} {
		p := guess(name)
		if _, ok := lookUp(tree, p.Client.keys); ok {
			return p, nil
		}
	}
	return Place{}, fmt.Errorf("reading %s: it has no servers: want mcpServers, servers, context_servers or mcp", file)
}

// String names the place for people: Claude Code (project).
func (p Place) String() string {
	if p.Scope == "" {
		return filepath.Base(p.File)
	}
	return fmt.Sprintf("%s (%s)", p.Client.Title, p.Scope)
}

// keys are those under which a file has its servers.
func (p Place) keys(text []byte) []string {
	switch {
	case p.Scope == Local:
		folder := p.system.Folder
		if p.system.OS == "windows" {
			folder = filepath.ToSlash(folder)
		}
		return []string{"projects", folder, "mcpServers"}
	case p.Client.dialect == opencode && p.second(text):
		return []string{"mcp", "servers"}
	}
	return p.Client.keys
}

// second reports whether a file of OpenCode is one of version 2, which has the
// servers one level deeper.
func (p Place) second(text []byte) bool {
	tree, err := p.Client.format.decode(text)
	if err != nil {
		return false
	}
	v, _ := lookUp(tree, []string{"mcp", "servers"})
	servers, ok := v.(map[string]any)
	_, typed := servers["type"].(string) // a server of version 1 that is called servers
	return ok && !typed
}

// lookUp follows keys down from a value.
func lookUp(v any, keys []string) (any, bool) {
	for _, key := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[key]; !ok {
			return nil, false
		}
	}
	return v, true
}
