// Package known has what is known of the most used MCP servers: how each is
// started, and what each of its tools does. It is data, one file for each server
// (servers/NAME.jsonc), and the code that reads it: no I/O, no clock.
//
// What a server says of itself never loosens policy. What a file here says may,
// because a person can check it, and has accepted it for their server: then rules
// can be about what calls mean ("writing inside the workspace") instead of what
// tools are called.
//
// A file holds only for the program that it describes. [Identify] compares the
// exact form in which a server is started (a package, an image or an address,
// without a flag or a variable that could put another program in its place), and
// [Tool.Describes] the arguments of each tool. Where either differs, nothing is
// known, and the bridge guesses as it does for any server.
//
// # The format
//
//	// A comment, anywhere.
//	{
//	  "title": "Filesystem",
//	  "verified": "2026.8.31",
//	  "launch": [{"npm": "@modelcontextprotocol/server-filesystem", "args": ["path..."]}],
//	  "tools": {
//	    "move_file": {
//	      "effects": ["write"], "where": "workspace", "repeatable": false,
//	      "args": {"source": "path", "destination": "path"}
//	    }
//	  }
//	}
//
// Some arguments decide what a call does. A tool is written down as the most that it
// does; "when" takes away from that by what an argument says, and "adds" adds what an
// argument brings with it:
//
//	"git_remote": {
//	  "effects": ["read", "write"], "where": "workspace",
//	  "when": {"mode": {"list|get-url": {"effects": ["read"]}}},
//	  "args": {"path": "path", "mode": "place", "name": "place", "url": "host"}
//	},
//	"browser_snapshot": {
//	  "effects": ["read"], "where": "local",
//	  "adds": {"filename": {"effects": ["write"], "where": "workspace"}},
//	  "args": {"target": "plain", "filename": "path"}
//	}
//
// So a value that nobody thought of is judged as the worst of them. "values" are the
// only ones of which anything is known, and "under" says which argument a relative path
// starts at, where that is not the server's folder.
//
// A file is verified if somebody started that version of the package and compared
// every tool with what it lists (testdata/lists has that). One without "verified"
// was written from public documentation, which "source" names: it can make
// decisions stricter, and puts the arguments of a question in order, but it loosens
// nothing. docs/reference/known.md explains each key.
package known

import (
	"maps"
	"slices"
	"strings"
)

// An Effect is something that a tool does.
type Effect string

// The effects.
const (
	Read    Effect = "read"
	Write   Effect = "write"   // creates or changes what can be changed back
	Delete  Effect = "delete"  // takes away what cannot be brought back
	Execute Effect = "execute" // runs code or commands
	Send    Effect = "send"    // tells people, or the public, something, or changes who may see it
	Spend   Effect = "spend"   // costs money
)

// Where says where a tool does it.
type Where string

// The places.
const (
	// Workspace is where the tool's paths say: inside the workspace, or outside.
	Workspace Where = "workspace"
	// Local is on this machine, in a store of the server's own or in memory.
	Local Where = "local"
	// Remote is on another machine.
	Remote Where = "remote"
)

// Net says which hosts a tool talks to.
type Net string

// The hosts.
const (
	NetNone   Net = "none"
	NetFixed  Net = "fixed"  // the server's own endpoint
	NetChosen Net = "chosen" // one that an argument names, or that the page before led to
)

// A Role says what the value of an argument is.
type Role string

// The roles.
const (
	Path      Role = "path"      // of a file or folder on this machine
	Host      Role = "host"      // a URL, or the name of a host
	Recipient Role = "recipient" // somebody who gets a message
	Command   Role = "command"   // code, or a command line
	Amount    Role = "amount"    // of money
	Place     Role = "place"     // names where: a repository and its owner, a channel, a database; or decides what is done: a mode, a state
	Content   Role = "content"   // text that is written or sent
	Plain     Role = "plain"     // anything else: a filter, a number, a layout
	// Store names one of several stores that a login reaches, which may have nothing to do
	// with each other: a database. It is read as a recipient, so that the first call of a
	// session to each, if only to read, is one to somebody new.
	Store Role = "store"
	// Member is somebody who works where the call does, and to whom what it makes or
	// changes is given: the assignee of an issue, who reviews it, who owns a list. It is
	// read as a recipient to whom no message goes. Who gets access by the call, or an
	// invitation from outside, is a recipient.
	Member Role = "member"
	// PathOrHost is a path or an address, by what stands there. It is read as one of
	// both.
	PathOrHost Role = "path|host"
	// SQL is a command in SQL. To "when" it says what kind of statement it is: "select" is
	// one that only selects, by functions that only compute.
	SQL Role = "sql"
)

// Shown returns the role that says most of r to a person: one that is not there for
// reading calls alone.
func (r Role) Shown() Role {
	switch r {
	case SQL:
		return Command
	case Store:
		return Place
	case Member:
		return Recipient
	case PathOrHost:
		return Path
	}
	return r
}

// A Tool is what is known of one tool.
type Tool struct {
	Effects []Effect `json:"effects"`
	Where   Where    `json:"where"`
	// Net is NetNone unless set.
	Net Net `json:"net,omitempty"`
	// Args are the roles of the arguments, by their names. An argument that is an
	// object has the role that all of it has, or one for each of its keys, as
	// "edits.newText"; an array on the way stands for each of its elements.
	Args map[string]Role `json:"args,omitempty"`
	// Adds are what a call does besides if it has an argument. One that is null,
	// false, the number 0 or empty text counts as absent.
	Adds map[string]Change `json:"adds,omitempty"`
	// When is what a call does if an argument says one of several words ("a|b"). It
	// stands in the place of what the tool does otherwise, and is less. Only one
	// argument may have it.
	When map[string]map[string]Change `json:"when,omitempty"`
	// Values are the only values of an argument that anybody knows; of an object, its
	// keys. A call with another one is guessed.
	Values map[string][]string `json:"values,omitempty"`
	// Under names the argument that a relative path starts at. If it is empty, an
	// earlier call decided that: the path is "." or left out where it is the folder of
	// Home, and of others nobody knows where they lead.
	Under map[string]string `json:"under,omitempty"`
	// Home names the argument with the folder where later calls of the server start
	// that name none.
	Home string `json:"home,omitempty"`
	// Repeatable reports whether a call may be made twice without harm.
	Repeatable bool `json:"repeatable,omitempty"`
	// Stateful reports whether what a call does depends on the calls before, such
	// as a click on the page that is open.
	Stateful bool `json:"stateful,omitempty"`
	// Runs says what a tool with the effect execute runs; empty for what the call
	// brings or names, or nobody knows.
	Runs Runs `json:"runs,omitempty"`
	// Labels say what its answers are and where its arguments go: see the rules
	// about flows.
	Labels []Label `json:"labels,omitempty"`
	// Optional reports that the server lists the tool only to some clients, or if it is set
	// up for it: that it is missing is no sign of another server. It changes no decision.
	Optional bool `json:"optional,omitempty"`
}

// Runs says what runs by a call that brings no code that would.
type Runs string

// What runs.
const (
	// Hooks are what a repository's owner has set up on this machine.
	Hooks Runs = "hooks"
	// CI is what is set up to run where something is pushed to the branch that the
	// argument "branch" names. A push to a branch that is delivered from, or of a file
	// that says what runs, is more than that.
	CI Runs = "ci"
)

// A Change is what an argument changes of what a call does.
type Change struct {
	Effects []Effect `json:"effects,omitempty"`
	Where   Where    `json:"where,omitempty"`
	Net     Net      `json:"net,omitempty"`
	// Args are the roles that other arguments have then.
	Args map[string]Role `json:"args,omitempty"`
}

// A Label says what kind of place a tool reads from or writes to.
type Label string

// The labels.
const (
	// Private is on what answers with something that is not public: files, mail, what
	// an account sees, and secrets.
	Private Label = "private"
	// Untrusted is on what answers with text that others may have written: a page, an
	// issue, a message. It may be written to mislead a model.
	Untrusted Label = "untrusted"
	// External is on what gives its arguments to somebody else: to another machine,
	// also if that is the server's own service. What has it can carry something out.
	External Label = "external"
)

// A Launch is one form in which a server is started. One of NPM, PyPI, Docker and URL
// is set.
type Launch struct {
	NPM    string `json:"npm,omitempty"`    // a package, without its version
	PyPI   string `json:"pypi,omitempty"`   // a package, without its version
	Docker string `json:"docker,omitempty"` // an image, without its tag
	URL    string `json:"url,omitempty"`    // of the endpoint
	// Args are the roles of the program's arguments, in order; the last may end
	// in "..." if there may be several.
	Args []string `json:"args,omitempty"`
	// Flags are the flags that change nothing of what the file says; those with
	// "=" at the end have a value, as "--port=5" or "--port 5". One with "=" within it is
	// known with that value alone, or if it ends in "...", with those that begin so.
	Flags []string `json:"flags,omitempty"`
	// BoxedFlags are flags of the same kind that would take a protection away, and are
	// fine in a box that takes its place.
	BoxedFlags []string `json:"boxedFlags,omitempty"`
	// Env are the environment variables that it may be given.
	Env []string `json:"env,omitempty"`
	// Confines is the flag, among those with a value, that lists the only origins that
	// its browser may reach, with semicolons.
	Confines string `json:"confines,omitempty"`
	// Confine is the box that is proposed for a server that is started in this form; nil
	// where nobody tried one.
	Confine *Box `json:"confine,omitempty"`
}

// A Server is what is known of one server.
type Server struct {
	Name  string `json:"-"` // of its file
	Title string `json:"title"`
	// Verified is the version whose tools were compared with the file; empty if
	// nobody did.
	Verified string `json:"verified,omitempty"`
	// Source is the public documentation that an unverified file was written from.
	Source string          `json:"source,omitempty"`
	Launch []Launch        `json:"launch"`
	Tools  map[string]Tool `json:"tools"`
}

// From near to far.
var (
	wheres = []Where{Local, Workspace, Remote}
	nets   = []Net{NetNone, NetFixed, NetChosen}
)

func (t Tool) net() Net {
	if t.Net == "" {
		return NetNone
	}
	return t.Net
}

// role returns the role of the parameter with that dotted name; empty if the file
// gives it none.
func (t Tool) role(name string) Role { return t.Args[name] }

// inside reports whether the file names keys of the object with that name.
func (t Tool) inside(name string) bool {
	for other := range t.Args {
		if strings.HasPrefix(other, name+".") {
			return true
		}
	}
	return false
}

// Stateful reports whether what calls of the server do depends on the calls before, and
// names a tool of which that is known.
func (s Server) Stateful() (tool string, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		if s.Tools[name].Stateful {
			return name, true
		}
	}
	return "", false
}
