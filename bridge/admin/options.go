package admin

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/profiles"
)

// Options are what a Site works with. Runs, Records, Sessions, Policy, Config, Tools,
// Logins, Accounts and Status may be nil; then whatever needs them answers "not found".
type Options struct {
	Approvers func() *approval.Approvers // of this moment; may return nil
	// Configuration is the id of the configuration that this page belongs to. The
	// requests of other configurations in the same store are shown as theirs, and
	// judged by their bridges.
	Configuration string
	Settler       Settler
	Requests      Requests
	Runs          Runs
	Records       Records
	Sessions      Sessions
	Policy        Policy
	Config        Configuration
	Tools         Tools
	Logins        Logins
	Accounts      Accounts
	// Status returns servers, sandbox and profiles, as codemode_status has them.
	Status func(context.Context) any
	// Record records what is done here and not recorded elsewhere: logins, refused
	// logins, revocations, stops, edits.
	Record ledger.Recorder

	SigningIn

	// Hosts are Host headers that are accepted besides loopback names, and
	// Origins are accepted besides the site's own.
	Hosts, Origins []string
	// Base is the site's address as others reach it, without a slash at its
	// end, for links.
	Base string
	// Webhooks are told about requests. Bridge, if not empty, restricts that to
	// the requests of this process, where others share the store.
	Webhooks []Webhook
	Bridge   string

	Limits Limits

	Now       func() time.Time  // nil means time.Now
	Logger    *slog.Logger      // nil means none
	Transport http.RoundTripper // of webhooks; nil means one without a proxy
}

// SigningIn says how people sign in besides by a token, and where that is kept.
type SigningIn struct {
	// SignIns is where logins are kept, and links, sign-ins and connections of accounts that
	// are under way; nil means in this process. They are good at every bridge that has the
	// same. What outlives the process is to be encrypted there.
	SignIns documents.Store

	// SignOn is single sign-on; nil means none. SignOnReturn is the address of
	// /login/done of this site, as browsers reach it.
	SignOn       SignOn
	SignOnReturn string
}

func (o Options) orDefaults() Options {
	o.Limits = o.Limits.orDefaults()
	if o.Approvers == nil {
		o.Approvers = func() *approval.Approvers { return nil }
	}
	if o.SignIns == nil {
		o.SignIns = documents.Memory()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{TLSHandshakeTimeout: webhookTimeout, MaxIdleConnsPerHost: 2}
	}
	return o
}

// Limits bound what a site accepts. Zero fields mean the defaults.
type Limits struct {
	// SessionTime is how long a login lasts; 12 hours.
	SessionTime time.Duration
	// Wait is how long POST /api/runs waits for a result, at most 60 s; 2 s.
	// The caller may request another time.
	Wait time.Duration
	// MaxBody bounds a request's body, in bytes; 4 MB.
	MaxBody int64
	// MaxStreams bounds the event streams that are open; 100.
	MaxStreams int
}

func (l Limits) orDefaults() Limits {
	if l.SessionTime <= 0 {
		l.SessionTime = 12 * time.Hour
	}
	if l.Wait <= 0 {
		l.Wait = 2 * time.Second
	}
	if l.MaxBody <= 0 {
		l.MaxBody = 4 << 20
	}
	if l.MaxStreams <= 0 {
		l.MaxStreams = 100
	}
	return l
}

// A Settler takes verdicts: the gate.
type Settler interface {
	Settle(ctx context.Context, id string, about canon.Digest, v approval.Verdict) (approval.StoredRequest, error)
}

// Requests are the requests put to people, and the grants that they gave: the
// broker.
type Requests interface {
	Requests(ctx context.Context, f approval.Filter) ([]approval.StoredRequest, error)
	Changed() <-chan struct{}
	Grants(ctx context.Context) ([]approval.Grant, error)
	Revoke(ctx context.Context, id string) (bool, error)
}

// Records are the audit log, for reading.
type Records interface {
	Rows(ctx context.Context, q ledger.Query) iter.Seq2[ledger.Row, error]
}

// Runs are the runs of this bridge. Any number of goroutines may call it.
type Runs interface {
	// Start begins a run of a script under a profile, with the named approver as
	// its requester, and returns its id without waiting for it. The empty profile
	// is what binds `eval`. An error says what is wrong with the parameters.
	Start(ctx context.Context, profile, code string, input json.RawMessage, requester string) (id string, err error)
	// Run returns a run that is live, paused or recently ended.
	Run(ctx context.Context, id string) (Run, bool)
	// List returns those runs, the newest first.
	List(context.Context) []Run
	// Stop ends a run, and Resume continues a paused one. By says who did it.
	// ErrUnknown means that there is no such run.
	Stop(ctx context.Context, id, by string) error
	Resume(ctx context.Context, id, by string) error
	// Changed returns a channel that is closed after the next change of any
	// run: when one starts, waits, continues or ends.
	Changed() <-chan struct{}
}

// A Run is one execution of a script, at one moment.
type Run struct {
	ID        string    `json:"run"`
	Profile   string    `json:"profile,omitempty"`   // that binds it; empty if none does
	Client    string    `json:"client,omitempty"`    // as it calls itself
	Requester string    `json:"requester,omitempty"` // whose token it came with
	State     RunState  `json:"state"`
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended,omitzero"`
	Calls     int       `json:"calls"` // made so far
	// Result is the answer as the eval tool gives it, once the run has ended.
	Result json.RawMessage `json:"-"`
}

// A RunState is the phase of a run, as the API shows it.
type RunState string

const (
	Running RunState = "running"
	Waiting RunState = "waiting" // for a person
	Paused  RunState = "paused"  // the same, but no bridge runs it: it continues when it is resumed
	Done    RunState = "done"
	Failed  RunState = "failed"
	Stopped RunState = "stopped"
	// Interrupted means that the run's bridge ended unexpectedly: the run continues
	// when it is resumed.
	Interrupted RunState = "interrupted"
)

// Over reports whether the run has ended.
func (s RunState) Over() bool { return s == Done || s == Failed || s == Stopped }

// Sessions are the clients' connections.
type Sessions interface {
	List() []Session
	// Tighten binds a session to another profile in addition to the one that its
	// eval tools name: the stricter decision counts, so the session can only lose
	// permissions. The empty profile undoes that. ErrUnknown means that there is no
	// such session; any other error says what is wrong.
	Tighten(ctx context.Context, session, profile, by string) error
}

// A Session is one client's connection.
type Session struct {
	ID      string    `json:"session"`
	Client  string    `json:"client,omitempty"`
	Profile string    `json:"profile,omitempty"` // the additional one, set here
	Started time.Time `json:"started"`
}

// A Policy is the profiles and their source text.
type Policy interface {
	// Profiles returns those in force, by name.
	Profiles() []Profile
	// Source returns the text of the configuration's section `evaluation` and
	// a revision that changes with it. It holds no secret.
	Source(ctx context.Context) (text, revision string, err error)
	// Save checks a text by the rules of the configuration file and replaces the
	// text that had the revision. ErrChanged means that the text has changed since;
	// any other error says what is wrong, with lines.
	Save(ctx context.Context, text, revision, by string) error
	// Try returns what a text would have changed of the calls of the last days, if it is
	// valid. It changes nothing.
	Try(ctx context.Context, text string) (WhatIf, error)
	// Propose returns what the configuration would be with a rule added to a profile.
	// It changes nothing.
	Propose(ctx context.Context, profile string, rule profiles.RuleSpec) (Proposal, error)
}

// A WhatIf is what other profiles would have decided on the calls of the last days.
type WhatIf struct {
	Days     int  `json:"days"`
	Calls    int  `json:"calls"`
	Partial  bool `json:"partial,omitempty"` // there are more, older ones
	Same     int  `json:"unchanged"`
	Looser   int  `json:"looser"` // less is asked or denied
	Stricter int  `json:"stricter"`
	// Unknown are those that cannot be decided: something that matters is not in the log.
	Unknown int `json:"unknown"`
	// Before and After are questions a day.
	Before float64 `json:"questions_before"`
	After  float64 `json:"questions_after"`
	// Text says all of it, with rules and examples, for people: lines as they may see them.
	Text string `json:"text"`
}

// A Profile is the effective form of a profile, with all that it extends.
type Profile struct {
	Name    string          `json:"name"`
	Tool    string          `json:"tool"`              // that is bound to it
	Default bool            `json:"default,omitempty"` // it binds `eval`
	Rules   json.RawMessage `json:"rules"`
}

// Configuration is the bridge's configuration file, as far as an edit of it waits for
// an approver.
type Configuration interface {
	// Pending returns the change that waits, or nil.
	Pending(ctx context.Context) (*approval.PendingConfig, error)
	// Confirm lets the edit with that digest take effect. approval.ErrUnknown means
	// that it is not pending.
	Confirm(ctx context.Context, digest string, said approval.Confirmation) error
	// Reject notes that the edit is not wanted; its errors are those of Confirm.
	Reject(ctx context.Context, digest string, said approval.Confirmation) error
}

// Tools are the unreviewed tools of the servers. The texts that it returns are safe to
// show: what a server wrote is escaped. It records the decisions.
type Tools interface {
	// Unreviewed lists them, by server and name.
	Unreviewed(ctx context.Context) ([]UnreviewedTool, error)
	// Accept accepts a tool, and Block keeps it from scripts, if it still has
	// the digest that the person saw. ErrUnknown and ErrChanged are returned
	// as such. By says who decided, and channel on which channel.
	Accept(ctx context.Context, server, tool, digest, by, channel string) error
	Block(ctx context.Context, server, tool, digest, by, channel string) error
	// Changed returns a channel that is closed after the next change of tools
	// or of the accepted definitions.
	Changed() <-chan struct{}
}

// An UnreviewedTool is a tool that waits for review, or that was blocked.
type UnreviewedTool struct {
	Server string `json:"server"`
	Tool   string `json:"tool"` // the raw name, as Accept and Block take it
	pins.Row
}

// Logins are the logins at upstream servers.
type Logins interface {
	// Begin begins the login at a server, and returns the link at which a
	// person continues, in a browser on the machine that the bridge runs on,
	// since the login is redirected to that machine. An earlier attempt ends.
	// ErrUnknown means that no server of that name needs logins.
	Begin(ctx context.Context, server, by string) (link string, err error)
}

// A SignOn is single sign-on: it finds out who somebody is by sending their browser to
// an identity provider. Any number of goroutines may call it.
type SignOn interface {
	// Begin starts a sign-in. Address is where the browser goes, and comes back with
	// the state; keep is for Finish and not for the browser.
	Begin(state string) (address, keep string, err error)
	// Finish completes the sign-in that keep belongs to, with the code and the
	// issuer that the browser returned with. It returns who it is, as in
	// approval.Approver.Login.
	Finish(ctx context.Context, keep, code, issuer string) (login string, err error)
}

var (
	// ErrUnknown: nothing has that id.
	ErrUnknown = errors.New("there is none of that id")
	// ErrEnded: the run to be resumed has ended.
	ErrEnded = errors.New("the run has ended")
	// ErrChanged: what is to be replaced has changed since it was read.
	ErrChanged = errors.New("it was changed meanwhile")
)
