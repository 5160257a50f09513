package clients

import (
	"regexp"
	"slices"
	"strings"
)

// A Permissions is a file in which a client keeps what it may call without asking.
type Permissions struct {
	Client Client
	// Scope is User of a person's own file. Another one lies in a folder, which may
	// have come from anywhere.
	Scope Scope
	File  string
}

// String names the file for people: Claude Code (user).
func (p Permissions) String() string { return Place{Client: p.Client, Scope: p.Scope}.String() }

// A permitting says how a client writes down what it may call.
type permitting struct {
	files func(s System, scope Scope) []string
	// read returns the entries of a file that allow, and those that forbid or ask.
	read func(tree map[string]any) (allow, deny []string)
	// covers reports whether an entry is about a tool. Server is the client's name of
	// the server.
	covers func(entry, server, tool string, deny bool) bool
}

var permits = map[string]permitting{
	"claude-code": {
		files: func(s System, scope Scope) []string {
			switch scope {
			case User:
				return one(s.variable("CLAUDE_CONFIG_DIR", below(s.home(), ".claude")), "settings.json")
			case Project:
				return s.project(".claude", "settings.json")
			}
			return s.project(".claude", "settings.local.json")
		},
		read: func(tree map[string]any) (allow, deny []string) {
			return textsAt(tree, "permissions", "allow"), append(textsAt(tree, "permissions", "deny"), textsAt(tree, "permissions", "ask")...)
		},
		covers: claudeCovers,
	},
	"cursor": {
		files: func(s System, scope Scope) []string {
			if scope != User {
				return nil
			}
			return one(s.home(), ".cursor", "permissions.json")
		},
		read: func(tree map[string]any) (allow, deny []string) { return textsAt(tree, "mcpAllowlist"), nil },
		covers: func(entry, server, tool string, _ bool) bool {
			return strings.Contains(entry, ":") && starred(entry, server+":"+tool)
		},
	},
	"gemini": {
		files: func(s System, scope Scope) []string {
			if scope != User {
				return nil
			}
			return one(s.home(), ".gemini", "settings.json")
		},
		read: func(tree map[string]any) (allow, deny []string) {
			servers, _ := tree["mcpServers"].(map[string]any)
			for name, entry := range servers {
				if trust, _ := lookUp(entry, []string{"trust"}); trust == true {
					allow = append(allow, name)
				}
			}
			return allow, nil
		},
		covers: func(entry, server, _ string, _ bool) bool { return entry == server },
	},
	"zed": {
		files: func(s System, scope Scope) []string {
			zed, _ := Find("zed")
			if scope != User {
				return nil
			}
			return zed.files(s, scope)
		},
		read: func(tree map[string]any) (allow, deny []string) {
			found, _ := lookUp(tree, []string{"agent", "tool_permissions", "tools"})
			tools, _ := found.(map[string]any)
			for name, entry := range tools {
				switch says, _ := lookUp(entry, []string{"default"}); says {
				case "allow":
					allow = append(allow, name)
				case "deny", "confirm":
					deny = append(deny, name)
				}
			}
			return allow, deny
		},
		covers: func(entry, server, tool string, _ bool) bool { return entry == "mcp:"+server+":"+tool },
	},
	"cline": inEntries("cline", func(tool, is string) bool { return tool == is }),
	"kiro":  inEntries("kiro", func(tool, is string) bool { return tool == is || tool == "*" }),
}

// inEntries is how a client permits that writes into the entry of a server which of its
// tools it calls without asking: "autoApprove". Covers reports whether a text of such a list
// is about a tool. Files of a folder are not read for it: they are the ones that are named
// for their servers.
func inEntries(client string, covers func(text, tool string) bool) permitting {
	return permitting{
		files: func(s System, scope Scope) []string {
			if c, _ := Find(client); scope == User {
				return c.files(s, scope)
			}
			return nil
		},
		read: func(tree map[string]any) (allow, deny []string) {
			servers, _ := tree["mcpServers"].(map[string]any)
			for name := range servers {
				for _, tool := range textsAt(servers, name, "autoApprove") {
					allow = append(allow, name+inEntry+tool)
				}
			}
			return allow, nil
		},
		covers: func(entry, server, tool string, _ bool) bool {
			text, ok := strings.CutPrefix(entry, server+inEntry)
			return ok && covers(text, tool)
		},
	}
}

// inEntry stands between a server and its tool. No name has it.
const inEntry = "\x00"

// PermissionFiles are the files in which clients may keep what they call without asking,
// each once.
func PermissionFiles(s System) []Permissions {
	var all []Permissions
	for _, c := range known {
		how, ok := permits[c.Name]
		if !ok {
			continue
		}
		for _, scope := range []Scope{User, Project, Local} {
			for _, file := range how.files(s, scope) {
				if !slices.ContainsFunc(all, func(p Permissions) bool { return p.File == file }) {
					all = append(all, Permissions{c, scope, file})
				}
			}
		}
	}
	return all
}

// An Allowance is what a file says of calls without a question.
type Allowance struct {
	allow, deny []string
	covers      func(entry, server, tool string, deny bool) bool
}

// Read reads the text of a file.
func (p Permissions) Read(text []byte) (Allowance, error) {
	how := permits[p.Client.Name]
	tree, err := p.Client.format.decode(text)
	if err != nil {
		return Allowance{}, err
	}
	a := Allowance{covers: how.covers}
	a.allow, a.deny = how.read(tree)
	return a, nil
}

// Allows reports whether an entry allows a tool of a server, by the client's name of
// that.
func (a Allowance) Allows(server, tool string) bool {
	return slices.ContainsFunc(a.allow, func(entry string) bool { return a.covers(entry, server, tool, false) })
}

// Names reports whether an entry allows something and has the client's name of a server
// in it.
func (a Allowance) Names(server string) bool {
	for _, name := range []string{server, claudeOdd.ReplaceAllString(server, "_")} {
		is := regexp.MustCompile(`(^|[^A-Za-z0-9-])` + regexp.QuoteMeta(name) + `([^A-Za-z0-9-]|$)`)
		if slices.ContainsFunc(a.allow, is.MatchString) {
			return true
		}
	}
	return false
}

// Denies reports whether an entry forbids a tool, or wants to be asked about it.
func (a Allowance) Denies(server, tool string) bool {
	return slices.ContainsFunc(a.deny, func(entry string) bool { return a.covers(entry, server, tool, true) })
}

// claudeOdd is what Claude Code replaces in names.
var claudeOdd = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// claudeCovers reports whether a permission of Claude Code is about a tool. One that
// allows has the whole name of a server. One with parentheses allows nothing, and is
// taken for more where it forbids.
func claudeCovers(entry, server, tool string, deny bool) bool {
	server, tool = "mcp__"+claudeOdd.ReplaceAllString(server, "_"), claudeOdd.ReplaceAllString(tool, "_")
	if deny {
		entry, _, _ = strings.Cut(entry, "(")
		return entry == server || starred(entry, server+"__"+tool)
	}
	rest, ok := strings.CutPrefix(entry, server+"__")
	return entry == server || ok && starred(rest, tool)
}

// starred reports whether a text is as a pattern says, in which * stands for any text.
func starred(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	is, err := regexp.Compile(`(?s)^` + strings.Join(parts, ".*") + `$`)
	return err == nil && is.MatchString(text)
}

// textsAt are the texts of a list below keys.
func textsAt(tree map[string]any, keys ...string) (all []string) {
	v, _ := lookUp(tree, keys)
	list, _ := v.([]any)
	for _, one := range list {
		if text, ok := one.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
