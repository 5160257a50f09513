// Package admin serves approvers: a page of the requests that wait for an answer,
// an HTTP API for other programs, a stream of events, and webhooks that announce
// new requests elsewhere.
//
// A [Site] serves all of it on a listener of its own:
//
//	/            the page: Pending, and its tabs /runs /grants /servers /tools /profiles /history
//	/r/{id}      one request in full
//	/api/...     the API, described in docs/reference/openapi.yaml
//	/assets/...  the page's style, script and icon
//
// # Authentication
//
// Approvers authenticate with a token. A program sends it with each request as a
// bearer token; a person types it on the page once and has a cookie from then on.
// With single sign-on (see [SignOn]), people use that instead of a token. Where
// no approvers are configured, the person who starts the bridge on their own
// machine follows a link made by [Site.LoginURL]: it carries a one-time code in
// its fragment, which browsers do not send.
//
// The cookie alone only allows reading. Every change also needs a second secret in
// a header; the page's script receives it at login and keeps it where only pages of
// this origin can read it.
//
// approval.Approver.May says what an approver may do, and approval.Approvers.Sign
// and the gate say whether their approval counts: this package decides neither. It
// settles through [Settler], which is the gate, like every other channel.
//
// # What the page shows
//
// Requests are shown in the words of approval.Describe. Outside text cannot become
// markup or code: templates escape it, the page's content security policy
// ([contentPolicy]) allows only the page's own scripts, styles and requests, and the
// page's script inserts text only as text.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

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
}

// A Profile is the effective form of a profile, with all that it extends.
type Profile struct {
	Name    string          `json:"name"`
	Tool    string          `json:"tool"`              // that is bound to it
	Default bool            `json:"default,omitempty"` // it binds `eval`
	Rules   json.RawMessage `json:"rules"`
}

var (
	// ErrUnknown: nothing has that id.
	ErrUnknown = errors.New("there is none of that id")
	// ErrEnded: the run to be resumed has ended.
	ErrEnded = errors.New("the run has ended")
	// ErrChanged: what is to be replaced has changed since it was read.
	ErrChanged = errors.New("it was changed meanwhile")
)

// Options are what a Site works with. Runs, Records, Sessions, Policy, Config, Tools,
// Logins and Status may be nil; then whatever needs them answers "not found".
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
	// Status returns servers, sandbox and profiles, as codemode_status has them.
	Status func(context.Context) any
	// Record records what is done here and not recorded elsewhere: logins, refused
	// logins, revocations, stops, edits.
	Record ledger.Recorder

	// SignOn is single sign-on; nil means none. SignOnReturn is the address of
	// /login/done of this site, as browsers reach it.
	SignOn       SignOn
	SignOnReturn string

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

func (o Options) orDefaults() Options {
	o.Limits = o.Limits.orDefaults()
	if o.Approvers == nil {
		o.Approvers = func() *approval.Approvers { return nil }
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

// A Site serves the page and the API. Any number of goroutines may call it.
//
// Its handlers are grouped by what they serve: auth identifies callers, pages renders
// the tabs, streams sends events to browsers, webhooks sends them elsewhere, and
// runHandlers and configHandlers are the API of runs and of a pending configuration.
// The rest of the API is the Site's own.
type Site struct {
	o           Options
	mux         *http.ServeMux
	auth        *auth
	streamSlots chan struct{} // holds one token for each that is open

	ctx    context.Context // ends when the site is closed
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// New makes a site. It starts a goroutine for each webhook and one that
// watches for all of them; Close ends them.
func New(o Options) *Site {
	o = o.orDefaults()
	s := &Site{o: o, streamSlots: make(chan struct{}, o.Limits.MaxStreams)}
	s.auth = &auth{&s.o, newSignIns(o.Now, o.Limits.SessionTime)}
	s.ctx, s.cancel = context.WithCancel(context.Background()) // it ends with Close
	s.mux = s.routed()
	webhooks{s}.start()
	return s
}

// Close ends event streams and webhooks and waits for the latter. Undelivered events
// are lost.
func (s *Site) Close() {
	s.cancel()
	s.wait.Wait()
}

// LoginURL makes a link that logs in whoever follows it, once and within ten minutes,
// as the owner of the bridge. Base is the site's address. There is no such link where
// approvers are configured, and all links and logins of this kind end when the first
// approver is configured.
func (s *Site) LoginURL(base string) (link string, ok bool) {
	if s.o.Approvers().Any() {
		return "", false
	}
	return base + "/login#code=" + s.auth.signIns.newCode(nil), true
}
