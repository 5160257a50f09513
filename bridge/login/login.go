// Package login obtains, stores and renews the tokens that upstream HTTP servers
// expect in the Authorization header: it is the OAuth 2.1 client of the MCP
// specification.
//
// A person logs in once, in the browser ([Client.Begin], [Attempt.Finish]); from
// then on every process of the same user takes the token for each request from
// [Client.Token], which renews it. A process that needs a login learns from
// [Client.Ready] that another process has made one.
//
//	the server       401, WWW-Authenticate ─▶ its metadata (RFC 9728)
//	                                            │ names
//	authorization    metadata (RFC 8414, OpenID Connect) ◀┘
//	server             │ registration (RFC 7591), unless a client is configured
//	                   ▼
//	the browser      authorization endpoint: PKCE S256, state, resource (RFC 8707)
//	                   │ redirect to this machine: code, state, iss (RFC 9207)
//	                   ▼
//	                 token endpoint ─▶ tokens ─▶ a file of mode 0600, or the keyring
//
// A login is bound to the server's address, the resource and the issuer; if one of
// them changes, it is void. Tokens go only to the server's own origin and to the
// endpoints of the issuer, and appear in no error and no log; [Keeper.Hide] removes
// them from text that others wrote. Addresses that servers name are followed only if
// they are public or in the server's own network: see guard.go.
package login

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/secrets"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A Server is an upstream server, and how it is logged in to.
type Server struct {
	Name string
	URL  string
	// Headers are sent with the question whether it wants a login.
	Headers map[string]string
	// ClientID and ClientSecret are those of a client that the person has
	// registered; without them a client is registered automatically.
	ClientID, ClientSecret string
	// Pasted says that a person makes a token there and pastes it ([AccountsAt.Paste]):
	// nothing is asked of the server. URL is what the token is for, and no address.
	Pasted bool
	// Credentials uses the client's own rights (the client credentials grant)
	// instead of a person's.
	Credentials bool
	// Scopes are asked for; nil: those that the server names.
	Scopes []string
	// Issuer is the only authorization server that is used; empty: the one that
	// the server names.
	Issuer string
}

// Options are the settings of a Keeper.
type Options struct {
	Dir     string       // the folder of the logins; made when it is needed
	Keyring secrets.Keys // where secrets are kept; nil: in the files
	// ClientName is what we register as; empty: "codemode-bridge".
	ClientName string
	// Resolver looks names up, and TLS is used for https; nil: the system's.
	Resolver *net.Resolver
	TLS      *tls.Config
	Now      func() time.Time // nil: time.Now
}

func (o Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// A Keeper keeps the logins of one user. All methods of it and of what it makes
// may be called from several goroutines at once.
type Keeper struct {
	options Options
	guard   *guard
	records records

	running sync.WaitGroup // renewals

	mu      sync.Mutex
	clients map[string]*Client
	secrets []string // that were seen, the longest first
}

// Open makes a Keeper. It starts nothing and reads nothing yet.
func Open(o Options) *Keeper {
	if o.ClientName == "" {
		o.ClientName = "codemode-bridge"
	}
	k := &Keeper{options: o, guard: newGuard(o.Resolver, o.TLS), clients: map[string]*Client{}}
	k.records = records{dir: o.Dir, learn: k.learn}
	if o.Keyring != nil {
		k.records.keyring = secrets.Patient(context.Background(), o.Keyring, keyringPatience)
	}
	return k
}

// Close waits for the renewals that are under way, so that what they bring is
// kept.
func (k *Keeper) Close() { k.running.Wait() }

// Client returns the client for a server: the same one as before, as long as the
// server is described in the same way.
func (k *Keeper) Client(s Server) *Client {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.clients[s.Name]; old != nil && reflect.DeepEqual(old.server, s) {
		return old
	}
	k.learnLocked(s.ClientSecret)
	c := &Client{keeper: k, server: s, shelf: &fileShelf{records: &k.records, path: k.records.file(s.Name, s.URL)}}
	k.clients[s.Name] = c
	return c
}

// Hide takes every token and secret that the Keeper has seen out of a text.
func (k *Keeper) Hide(text string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, secret := range k.secrets {
		text = strings.ReplaceAll(text, secret, "[hidden]")
	}
	return text
}

// minSecret is the length from which a text is hidden: shorter ones are parts
// of ordinary words.
const minSecret = 6

func (k *Keeper) learn(secrets ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.learnLocked(secrets...)
}

func (k *Keeper) learnLocked(secrets ...string) {
	for _, secret := range secrets {
		if len(secret) >= minSecret && !slices.Contains(k.secrets, secret) {
			k.secrets = append(k.secrets, secret)
		}
	}
	slices.SortStableFunc(k.secrets, func(a, b string) int { return len(b) - len(a) })
}

// said makes a text of a server fit to be shown.
func (k *Keeper) said(text string) string { return canon.Escape(cut(k.Hide(text), 300)) }

// A Needed error says that a person must log in.
type Needed struct {
	Server string
	// Scopes are the rights that the server wants and the login does not have,
	// if that is the reason.
	Scopes []string
	// Why says more, if there is more to say.
	Why string
	// Where says where a person connects their own account; empty if it is the
	// user's login that is needed.
	Where string
}

func (e *Needed) Error() string {
	text := "the server needs a login"
	if e.Where != "" {
		text = "the server needs an account of your own"
	}
	switch {
	case len(e.Scopes) > 0:
		text += " with more rights (" + canon.Escape(cut(strings.Join(e.Scopes, " "), 200)) + ")"
	case e.Why != "":
		text += " (" + e.Why + ")"
	}
	if e.Where != "" {
		return text + ": " + e.Where
	}
	return text + ": run codemode-bridge servers login " + e.Server
}

// NeedsLogin marks the error for packages that know it only by this method.
func (e *Needed) NeedsLogin() {}

// A rejected error says that the client of the configuration is refused; only a
// person can change that.
type rejected struct{ text string }

func (e *rejected) Error() string { return e.text }
func (e *rejected) NeedsLogin()   {}

// A Client authorizes the requests to one server.
type Client struct {
	keeper *Keeper
	server Server
	shelf  shelf
	// person is set if the login is one of Accounts, which says where to get one.
	person *person

	// turn is held while something is asked of the authorization server; it is
	// taken before mu and before the shelf's lock.
	turn sync.Mutex

	mu      sync.Mutex
	refused string // a token that the server did not take, or took for too little
}

// leeway is how long before it expires a token is renewed.
const leeway = 30 * time.Second

// Token returns the token for the next request, renewed if it was about to
// expire; empty: the server was never logged in to. An error with a method
// NeedsLogin stays until a person does something; others may pass.
func (c *Client) Token(ctx context.Context) (string, error) {
	r, err := c.current(ctx)
	switch {
	case err != nil:
		return "", err
	case r == nil && c.person != nil:
		return "", c.needed("", nil)
	case c.fresh(r):
		return r.Secrets.Access, nil
	case c.server.Credentials:
		return c.renew(ctx, "")
	case r == nil:
		return "", nil // perhaps it wants none
	case r.Secrets.Refresh == "":
		return "", c.needed("the last one has ended", nil)
	}
	token, err := c.renew(ctx, "")
	var needed interface{ NeedsLogin() }
	if err != nil && !errors.As(err, &needed) && r.Secrets.Access != "" && c.keeper.options.now().Before(r.Expires) {
		return r.Secrets.Access, nil // it still holds
	}
	return token, err
}

// fresh reports whether a record has a token that is not about to expire.
func (c *Client) fresh(r *record) bool {
	return r != nil && r.Secrets.Access != "" && (r.Expires.IsZero() || c.keeper.options.now().Add(leeway).Before(r.Expires))
}

// Refused is told that the server answered a request that had the token with 401
// or 403. It reports whether the request is worth sending again, with a new
// token. Without an error, the answer is not about a login.
func (c *Client) Refused(ctx context.Context, token string, status int, header http.Header) (again bool, err error) {
	challenge := bearerChallenge(header)
	if status == http.StatusForbidden {
		if challenge == nil || challenge.Params["error"] != "insufficient_scope" || token == "" {
			return false, nil
		}
		c.setRefused(token)
		wanted := bounded(strings.Fields(challenge.Params["scope"]))
		if c.server.Credentials {
			return false, &rejected{"the server wants more rights (" + c.keeper.said(strings.Join(wanted, " ")) + ") than auth.scopes has"}
		}
		c.want(ctx, wanted)
		return false, c.needed("", wanted)
	}
	if token == "" && challenge == nil && len(c.server.Headers) > 0 {
		return false, nil // it is one of the configured headers that is wrong
	}
	r, err := c.current(ctx)
	if err != nil {
		return false, err
	}
	if r != nil && (r.Secrets.Refresh != "" || c.server.Credentials) || r == nil && c.server.Credentials {
		renewed, err := c.renew(ctx, token)
		if err != nil {
			return false, err
		}
		if renewed != token {
			return true, nil
		}
	} else if c.fresh(r) && r.Secrets.Access != token {
		return true, nil // another process has logged in meanwhile
	}
	c.setRefused(token)
	why := ""
	if token != "" {
		why = "it does not take the last one any more"
	}
	return false, c.needed(why, nil)
}

func (c *Client) setRefused(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = token
}

// want notes scopes that the next login is to ask for as well. If they cannot be
// noted, that costs one more login.
func (c *Client) want(ctx context.Context, scopes []string) {
	unlock, err := c.shelf.lock(ctx)
	if err != nil {
		return
	}
	defer unlock()
	r, err := c.load(ctx)
	if err != nil || r == nil {
		return
	}
	all := bounded(union(bounded(r.Wanted), scopes))
	if slices.Equal(all, r.Wanted) {
		return
	}
	next := *r
	next.Wanted = all
	_ = c.shelf.write(ctx, next)
}

// Ready reports whether there is a token that the server has not refused yet: a
// login that was made after one was needed.
func (c *Client) Ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := c.current(ctx)
	if err != nil || r == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return r.Secrets.Access != c.refused && (c.fresh(r) || r.Secrets.Refresh != "")
}

// Holds reports whether a token is the one that Token returns now. While the record cannot
// be read, it is: whoever has it cannot be asked for anything then.
func (c *Client) Holds(token string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := c.current(ctx)
	return err != nil || c.fresh(r) && r.Secrets.Access == token
}

// Hide takes every token and secret that was seen out of a text.
func (c *Client) Hide(text string) string { return c.keeper.Hide(text) }

// needed is the error that a person must log in.
func (c *Client) needed(why string, scopes []string) *Needed {
	e := &Needed{Server: c.server.Name, Why: why, Scopes: scopes}
	if c.person != nil {
		e.Where = c.person.where()
	}
	return e
}

// current returns the record, as it was read before if it is the same; nil: there is
// none for this server.
func (c *Client) current(ctx context.Context) (*record, error) {
	return c.bound(c.shelf.current(ctx))
}

// load reads the record again. Nobody changes the record after that.
func (c *Client) load(ctx context.Context) (*record, error) {
	return c.bound(c.shelf.read(ctx))
}

func (c *Client) bound(r *record, err error) (*record, error) {
	if errors.Is(err, errUnreadable) {
		if c.server.Credentials {
			return nil, nil // there is a new one for the asking
		}
		return nil, c.needed(errUnreadable.Error(), nil)
	}
	if err != nil || r == nil || !c.binds(r) {
		return nil, err
	}
	return r, nil
}

// binds reports whether a record is of this server as it is configured now.
func (c *Client) binds(r *record) bool {
	s := c.server
	switch {
	case s.Pasted || r.Pasted:
		return s.Pasted && r.Pasted && r.Server == s.URL
	case r.Server != s.URL || s.Issuer != "" && !sameIssuer(r.Issuer, s.Issuer):
		return false
	case r.Credentials != s.Credentials || s.Credentials && !slices.Equal(r.Asked, s.Scopes):
		return false
	case s.ClientID != "":
		return r.Client.ID == s.ClientID && r.Client.Redirect == ""
	}
	return r.Client.Redirect != ""
}

// bearerChallenge returns the part of WWW-Authenticate that is about tokens; nil:
// there is none, or it cannot be read.
func bearerChallenge(h http.Header) *oauthex.Challenge {
	all, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range all {
		if c.Scheme == "bearer" {
			if c.Params == nil {
				c.Params = map[string]string{}
			}
			return &c
		}
	}
	return nil
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Bounds on the scopes that are noted when a server refuses a token.
const (
	maxScopes     = 64
	maxScopesText = 4 << 10 // bytes of all
)

// bounded returns as many of the scopes as are noted.
func bounded(scopes []string) []string {
	size := 0
	for i, s := range scopes {
		if size += len(s); i == maxScopes || size > maxScopesText {
			return scopes[:i]
		}
	}
	return scopes
}

// An Info describes a login. Its texts are safe to show.
type Info struct {
	Issuer  string
	Scopes  []string
	Expires time.Time // of the token; zero: not known
	Renews  bool      // it can be renewed without a person
	Keyring bool      // its secrets are in the system's keyring
	Shared  bool      // it is in the store, for all bridges of the installation
}

func (r *record) info() Info {
	scopes := make([]string, len(r.Scopes))
	for i, scope := range r.Scopes {
		scopes[i] = canon.Escape(cut(scope, 200))
	}
	return Info{Issuer: canon.Escape(r.Issuer), Scopes: scopes, Expires: r.Expires, Renews: r.Secrets.Refresh != "", Keyring: r.InKeyring, Shared: r.shared}
}

// ErrNoLogin says that there is nothing to log out of.
var ErrNoLogin = errors.New("there is no login")

// Logout deletes the login, after it has asked the authorization server to revoke it
// if that offers to. notRevoked says why that failed; the login is deleted all the
// same.
func (c *Client) Logout(ctx context.Context) (revoked bool, notRevoked, err error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	unlock, err := c.shelf.lock(ctx)
	if err != nil {
		return false, nil, err
	}
	defer unlock()
	r, err := c.shelf.read(ctx) // also one of another issuer or client
	if err == nil && r == nil && !c.shelf.holds() {
		return false, nil, ErrNoLogin
	}
	if r != nil && !c.binds(r) { // today's secret must not go to another issuer
		notRevoked = errors.New("revoking the login: it was made by another client, or at another authorization server, than is configured now")
	} else if r != nil && r.Revoke != "" {
		notRevoked = c.revoke(ctx, r)
		revoked = notRevoked == nil
	} else if err != nil {
		notRevoked = err
	}
	return revoked, notRevoked, c.shelf.remove(ctx)
}
