// Package doctor checks everything that a bridge depends on, and says what is wrong
// and what to do about it: the configuration, the servers, their tools and logins,
// the sandbox, the store, the ports, and the files of MCP clients. It changes
// nothing.
//
// It is given facts: [Options] about the installation, and a [Config] with what the
// configuration says, if it can be read at all. A [Checkup] goes through its [Area]s in
// order, which areas.go lists; each returns findings:
//
//	servers -> ✓ files: 12 tools, in 340 ms
//	           ✗ notes: starting the process: no such file   do: install the program ...
//
// A finding's text may come from servers and from files of others: it is shown
// without known secrets and with invisible characters escaped.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/certificate"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/profiles/known"
)

// A Level says how bad a finding is.
type Level string

// The levels, from good to bad.
const (
	OK   Level = "ok"
	Warn Level = "warn" // it works, but not as it could or should
	Fail Level = "fail" // something does not work
)

// Worse reports whether the level is worse than another.
func (l Level) Worse(than Level) bool {
	all := []Level{OK, Warn, Fail}
	return slices.Index(all, l) > slices.Index(all, than)
}

// A Finding is what was found out about one thing. Its keys are promised in
// docs/reference/cli.md.
type Finding struct {
	Area  string `json:"area"`            // config, versions, servers, tools, logins, sandbox, store, ports, clients
	About string `json:"about,omitempty"` // of what: a server, a file, an address
	Level Level  `json:"level"`
	Text  string `json:"text"` // one sentence, without a full stop
	// Do says what to do; empty where there is nothing.
	Do string `json:"do,omitempty"`
	// Said are lines that a server's program wrote.
	Said []string `json:"said,omitempty"`
	// File, Line and Column are the place of a mistake in the configuration.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

func fine(about, text string) Finding { return Finding{About: about, Level: OK, Text: text} }
func warning(about, text, do string) Finding {
	return Finding{About: about, Level: Warn, Text: text, Do: do}
}
func failing(about, text, do string) Finding {
	return Finding{About: about, Level: Fail, Text: text, Do: do}
}

// Options are what there is to know of an installation before its configuration
// is read.
type Options struct {
	Version string        // of this program, as servers are told
	File    string        // the configuration's, absolute
	Limit   time.Duration // that each server and the sandbox may take
	// Waits, if not nil, is told which servers are waited for; answered is to be called
	// with each that is not any more, and end when none is.
	Waits func(servers []string) (answered func(server string), end func())
	// Running, if not nil, returns the servers that a bridge that runs with this
	// configuration is connected to, by name: they are not tried.
	Running func(ctx context.Context) map[string]Trial
	System  clients.System           // where the files of clients are looked for
	Entry   func() ([]string, error) // the command with which clients start this bridge
	State   string                   // folder of what must last; may be empty
	Cache   string                   // folder of what need not; may be empty
	// NoPlaces says why State and Cache are not known; nil if they are.
	NoPlaces error

	// Read reads the configuration, or says why it cannot be used.
	Read func() (*Config, []Problem)
	// Builds says which other programs of the installation, the worker and the bridges
	// that run, come from another build than this one; nil is not asked.
	Builds func(ctx context.Context) []Difference
	// Sandbox starts a worker, has it read a script, and returns the steps that
	// confine it, by name, with "on" or what is in the way.
	Sandbox func(ctx context.Context) (steps map[string]string, problem *Problem)

	// Typed returns a command of the bridge as this person types it, Short a path
	// as people read it.
	Typed func(command string) string
	Short func(path string) string
	// Hide takes known secrets out of a text, and ArgSecrets finds those among the
	// arguments of a program.
	Hide       func(text string) string
	ArgSecrets func(args []string) []string
}

// A Problem is something that is wrong, in the words of whoever noticed.
type Problem struct {
	About, Text, Do string
	// File, Line and Column are its place in the configuration, if it has one.
	File         string
	Line, Column int
	// Server and Where are the literal that it is about, if it is about one: see setup.Literal.
	Server, Where string
}

// A Difference is a program that comes from another build, and what to do.
type Difference = struct{ About, Text, Do string }

func (p Problem) finding() Finding {
	f := failing(p.About, p.Text, p.Do)
	f.File, f.Line, f.Column = p.File, p.Line, p.Column
	return f
}

// A Config is what matters here of a configuration.
type Config struct {
	Servers  []Server
	Profiles []string
	// Evaluates is set if profiles are in force at all, and Unrestricted if eval may
	// call every tool unasked.
	Evaluates, Unrestricted bool
	// NobodyConfirms says why nobody can confirm a loosening edit; empty if somebody
	// can.
	NobodyConfirms string
	// NoWorkspace says why evaluation.workspace cannot be one; nil if it can.
	NoWorkspace error
	// Cautions are what is no mistake in it, and probably not meant.
	Cautions []Problem
	// Review counts the tools that wait to be reviewed, and those that are blocked.
	Review func() (unreviewed, blocked int, err error)
	// NoLock says why the lock file cannot be read; nil if it can, or if there is none.
	NoLock error
	// Proposed counts the tools of the lock file that nobody has accepted here.
	Proposed int
	Audit    Audit
	// Listen is the address of serve, and MayListen why it refuses that; nil if it
	// does not. Page is the address of the approval page; empty if there is none.
	Listen    string
	MayListen error
	// Certificates are those of the endpoint and of the page, by their keys.
	Certificates map[string]*certificate.State
	Page         string
	// Issuer is whose tokens serve accepts; empty if nobody's. AskIssuer asks it, and
	// says what keeps clients out.
	Issuer    string
	AskIssuer func(ctx context.Context) []IssuerProblem
	// Reached, if not nil, tries whatever gets records or spans.
	Reached func(ctx context.Context) []Reach
}

// An IssuerProblem is something about the issuer of tokens that keeps clients out.
type IssuerProblem struct {
	Text, Do string
	Fatal    bool // no token can be checked
}

// A Server is an upstream server of a configuration.
type Server struct {
	Name     string
	Disabled bool
	NoAuth   bool // its configuration has no login
	Spec     upstream.Spec
	// Login returns the stored login; nil for a server that nobody logs in to.
	Login func() (info login.Info, held bool)
	// Accounts returns the accounts that people have connected there; nil for a server
	// at which they have none of their own.
	Accounts func(ctx context.Context) ([]login.Connection, error)
	// Known is what is known of it by the way it is started.
	Known known.Recognition
	// Sharing is set if the configuration says whether its sessions share a process.
	Sharing bool
}

// Started is how the server is started or where it is, without its environment.
func (s Server) Started() string {
	if s.Spec.URL != "" {
		return s.Spec.URL
	}
	return strings.Join(append([]string{s.Spec.Command}, s.Spec.Args...), " ")
}

// An Audit is the audit log of a configuration.
type Audit struct {
	Enabled  bool
	Path     string                                  // may be empty
	Database string                                  // for people; empty if the log is in a file
	Requests string                                  // the file of requests beside it
	Open     func(context.Context) (LogState, error) // opens it for reading
	Centre   func(context.Context) (CentreState, error)
}

// A Reach says whether something that the bridge sends records or spans to takes them.
type Reach struct {
	About, Text string
	Err         error  // nil: it does, as Text says
	Do          string // what to do about Err
}

// A CentreState is how it stands with the centre that gets the rows.
type CentreState struct {
	Centre  string // its address; empty: this machine is enrolled at none
	Last    int64  // the last row that it has
	Waiting int64  // rows that it has not
	Reached time.Time
	Problem string        // of the last attempt; empty if there was none
	Final   bool          // only a person can end the problem
	Skew    time.Duration // by which its clock is ahead, if that is much
}

// A LogState is what opening an audit log shows.
type LogState struct {
	Last    int64     // the number of its last row
	Missing bool      // there is no log in the database yet
	Opened  bool      // with an error: whether it could be opened at all
	Damaged bool      // with an error: it is not what was written
	Newer   bool      // with an error: a newer release changed it
	Whole   time.Time // when all of it was last verified; zero if that is not known
	Bridges []string  // that share it, where they may be on several machines
}

// A Checkup is one look at an installation.
type Checkup struct {
	Options

	config *Config // nil: it cannot be used; set by the first area
	states map[string]upstream.State
	listed map[string][]upstream.Tool // the tools of those that answered
}

// New returns a checkup that has checked nothing yet.
func New(o Options) *Checkup { return &Checkup{Options: o} }

// Usable reports whether there is a configuration that can be used.
func (up *Checkup) Usable() bool { return up.config != nil }

// Fold merges findings that differ only in what they are about.
func Fold(found []Finding) []Finding {
	var all []Finding
	for _, f := range found {
		i := slices.IndexFunc(all, func(g Finding) bool {
			return g.Level == f.Level && g.Text == f.Text && g.Do == f.Do && g.About != "" && f.About != "" && len(g.Said)+len(f.Said)+g.Line+f.Line == 0
		})
		if i < 0 {
			all = append(all, f)
			continue
		}
		all[i].About = strings.Join([]string{all[i].About, f.About}, ", ")
	}
	return all
}

// count is a number of things: 1 server, 2 servers.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
