package catalog

import (
	"encoding/json"
	"regexp"

	"codemode-bridge/bridge/tsdecl"
	"codemode-bridge/profiles"
)

// A Definition is one tool as an upstream lists it, unchanged: texts may hold
// anything at all. What this package writes for a model is cleaned.
type Definition struct {
	Name        string
	Title       string
	Description string
	Input       json.RawMessage // JSON Schema of the arguments
	Output      json.RawMessage // JSON Schema of structuredContent; nil if undeclared
	Annotations profiles.Annotations
}

// A Server is one upstream and all of its tools.
type Server struct {
	// Name is the configured name. The empty name is the bridge's own: Build
	// ignores a server without a name.
	Name  string
	Tools []Definition
	// Stale marks a list that comes from the cache of the last run and that
	// the server has not confirmed yet.
	Stale bool
	// Resources and Prompts report that the server has such besides its tools.
	Resources, Prompts bool
	// Unread has, by raw name, the tools whose definition nobody has accepted
	// yet, with the reason in our words. A model is told the reason in place of
	// the server's texts: the description, and whatever text the schemas hold
	// besides names and types. The types are the definition's own.
	Unread map[string]string
}

// A Script is a saved script, which scripts call as codemode.run(name, input).
type Script struct {
	Name        string // letters, digits, "_" and "-"
	Description string
	Input       json.RawMessage // JSON Schema of an object; nil if it takes none
	Output      json.RawMessage // JSON Schema of what it returns; nil if undeclared
	Source      string
	Digest      string // of the file
	// Problem is why it can't be run, with the line; "" if it can.
	Problem string
}

// A Tool is one tool of a Catalog, or a saved script. It must not be modified.
type Tool struct {
	Definition
	// Server is the configured name of the server, "" for a discovery function
	// and for a saved script.
	Server string
	// Script is the tool's name in scripts: a legal identifier of at most
	// MaxName bytes that no other tool of the catalogue has. Of a saved script
	// it is what follows "codemode." in a call: run("name").
	Script string
	// Digest is that of the definition, and of a saved script that of its file.
	Digest string
	// Stale is that of the Server.
	Stale bool
	// Unread says why a model must not read what the server says of the tool;
	// empty where it may. See Server.Unread.
	Unread string
	// Saved is the saved script, nil for a tool.
	Saved *Script
	// Method reports that it is no tool of the server but what [Method] finds.
	Method bool

	path        string
	declaration string // of a Method
	deprecated  bool   // by its own words
}

// deprecation finds where a description says that its tool is deprecated, and not
// that it deals with what is.
var deprecation = regexp.MustCompile(`DEPRECATED|^\W*[Dd]eprecated\b|[.!\])]\s+Deprecated\b|\b[Tt]his (tool|function|method) is (now )?deprecated\b`)

// Deprecated reports whether the server says that the tool should not be used any more.
func (t *Tool) Deprecated() bool { return t.deprecated }

func deprecated(d Definition) bool {
	return deprecation.MatchString(d.Title) || deprecation.MatchString(d.Description[:min(len(d.Description), maxIndexed)])
}

// Path is the configured server's name, "__" and the tool's raw name: what the
// patterns of policy match. The path of a discovery function is its name.
func (t *Tool) Path() string { return t.path }

// Ref is what tells the tool from all others.
func (t *Tool) Ref() ToolRef { return ToolRef{t.Server, t.Name} }

// Characters of a description in a list of tools.
const maxSummary = 160

// Summary is the beginning of the tool's description, or else its title,
// cleaned and on one line.
func (t *Tool) Summary() string {
	if t.Unread != "" {
		return "[" + t.Unread + "]"
	}
	if s := tsdecl.Plain(t.Description, maxSummary); s != "" {
		return s
	}
	return tsdecl.Plain(t.Title, maxSummary)
}

// Declaration is the tool's short TypeScript declaration, on one line, by what
// is declared alone: the same for the same definition.
func (t *Tool) Declaration() string { return t.declare(tsdecl.Options{}) }

// OnlyText is the only field of the tool's structured answers, if they have one and that is
// a text; else it is empty.
func (t *Tool) OnlyText() string { return tsdecl.OnlyText(t.Output) }

// declare writes a declaration: that of the tool, or of the saved script.
func (t *Tool) declare(o tsdecl.Options) string {
	if t.Method {
		return t.declaration
	}
	if o.Doc {
		if o.Description = t.Description; o.Description == "" {
			o.Description = t.Title
		}
		if t.Unread != "" {
			o.Description = "[" + t.Unread + "]"
		}
		if t.Stale {
			o.Description = "[From the last run: the server has not listed this tool again yet.]\n" + o.Description
		}
	}
	if t.Saved != nil {
		return tsdecl.Saved(t.Saved.Name, t.Input, t.Output, o)
	}
	o.Bare = t.Unread != ""
	return tsdecl.Func(t.Script, t.Input, t.Output, o)
}

// broken reports whether t is a saved script that can't be run.
func (t *Tool) broken() bool { return t.Saved != nil && t.Saved.Problem != "" }
