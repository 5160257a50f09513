package login

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// An Attempt is a login that waits for the browser to come back.
type Attempt struct {
	client   *Client
	named    bool // the answer names its issuer
	record   record
	link     string
	redirect string
	state    string
	verifier string

	mu   sync.Mutex
	used bool
}

// Begin finds out where to log in to the server, registers us there unless a client
// is configured, and makes the link that the person opens. The browser is sent
// back to redirect, an address of this machine.
func (c *Client) Begin(ctx context.Context, redirect string) (*Attempt, error) {
	return c.begin(ctx, redirect, rand.Text())
}

func (c *Client) begin(ctx context.Context, redirect, state string) (*Attempt, error) {
	if c.server.Credentials {
		return nil, errors.New("the server is logged in to with the client's own credentials; there is nothing for a person to do")
	}
	if c.server.Pasted {
		return nil, errPasted
	}
	where, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	r := where.record(c.server)
	old, err := c.load(ctx)
	if err != nil {
		old = nil // what cannot be read is replaced
	}
	if old != nil && c.trusting() && !sameIssuer(old.Issuer, r.Issuer) {
		return nil, fmt.Errorf("the server names another authorization server than at the last login, %s instead of %s; if that is right, write it into auth.issuer, or log out first",
			c.keeper.said(r.Issuer), c.keeper.said(old.Issuer))
	}
	if old != nil && (!sameIssuer(old.Issuer, r.Issuer) || old.Resource != r.Resource) {
		old = nil
	}
	if err := c.identify(ctx, where, r, old, redirect); err != nil {
		return nil, err
	}
	scopes := c.server.Scopes
	if scopes == nil {
		scopes = where.scopes
	}
	if old != nil && len(old.Wanted) > 0 { // a step up must not lose what there is
		scopes = union(union(scopes, old.Scopes), old.Wanted)
	}
	if c.server.Scopes == nil && slices.Contains(where.issuer.ScopesSupported, "offline_access") {
		scopes = union(scopes, []string{"offline_access"}) // for a refresh token
	}
	a := &Attempt{client: c, record: *r, redirect: redirect, state: state, verifier: oauth2.GenerateVerifier()}
	a.named = where.issuer.AuthorizationResponseIssParameterSupported
	a.record.Scopes = scopes
	way := oauth2.Config{ClientID: r.Client.ID, RedirectURL: redirect, Scopes: scopes, Endpoint: oauth2.Endpoint{AuthURL: where.issuer.AuthorizationEndpoint}}
	a.link = way.AuthCodeURL(a.state, oauth2.S256ChallengeOption(a.verifier), oauth2.SetAuthURLParam("resource", r.Resource))
	if _, err := checkURL(a.link); err != nil {
		return nil, fmt.Errorf("the link to the login: %w", err)
	}
	return a, nil
}

// identify sets the client in r: the configured one, the one that was registered
// before with the same redirect, or a new one.
func (c *Client) identify(ctx context.Context, where *place, r, old *record, redirect string) (err error) {
	if c.server.ClientID != "" {
		r.Client.ID = c.server.ClientID
		r.Client.Method, err = where.method(c.server.ClientSecret)
		return err
	}
	if old != nil && old.Client.Redirect == redirect && old.Secrets.Access != "" { // it is known there
		r.Client, r.Secrets.Client = old.Client, old.Secrets.Client
		return nil
	}
	endpoint := where.issuer.RegistrationEndpoint
	if endpoint == "" {
		return fmt.Errorf("the authorization server %s registers nobody by itself; register a client there with the redirect address %s, and write its id into auth.clientId and the port into auth.redirectPort",
			c.keeper.said(r.Issuer), redirect)
	}
	got, err := c.register(ctx, where, endpoint, redirect)
	if err != nil {
		return fmt.Errorf("registering with the authorization server: %w", err)
	}
	r.Client = oauthID{ID: got.ClientID, Method: got.TokenEndpointAuthMethod, Redirect: redirect}
	r.Secrets.Client = got.ClientSecret
	return nil
}

// register registers us as a client (RFC 7591).
func (c *Client) register(ctx context.Context, where *place, endpoint, redirect string) (*oauthex.ClientRegistrationResponse, error) {
	method := "none"
	if offered := where.issuer.TokenEndpointAuthMethodsSupported; len(offered) > 0 && !slices.Contains(offered, "none") {
		method = "client_secret_basic"
		if !slices.Contains(offered, method) {
			method = "client_secret_post"
		}
	}
	kind := "native"
	if strings.HasPrefix(redirect, "https://") {
		kind = "web" // it comes back to the page, not to a port of this machine
	}
	ask, err := json.Marshal(&oauthex.ClientRegistrationMetadata{
		ClientName: c.keeper.options.ClientName, RedirectURIs: []string{redirect}, ApplicationType: kind,
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: method,
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, endpoint, bytes.NewReader(ask))
	if err != nil {
		return nil, errNotURL
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	a, err := c.keeper.guard.do(ctx, where.network, req)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusCreated && a.status != http.StatusOK {
		refused := &grantError{}
		if isJSON(a.header) && json.Unmarshal(a.body, refused) == nil && refused.Code != "" {
			return nil, &grantError{Code: c.keeper.said(refused.Code), Text: c.keeper.said(refused.Text)}
		}
		return nil, fmt.Errorf("HTTP status %d", a.status)
	}
	got := &oauthex.ClientRegistrationResponse{}
	if !isJSON(a.header) || json.Unmarshal(a.body, got) != nil {
		return nil, errors.New("the answer is not the JSON object that it should be")
	}
	c.keeper.learn(got.ClientSecret)
	if got.TokenEndpointAuthMethod == "" {
		got.TokenEndpointAuthMethod = "none"
		if got.ClientSecret != "" {
			got.TokenEndpointAuthMethod = "client_secret_basic" // the default of RFC 7591
		}
	}
	switch got.TokenEndpointAuthMethod {
	case "none":
	case "client_secret_basic", "client_secret_post":
		if got.ClientSecret == "" {
			return nil, errors.New("the answer has no client secret, but wants one to be used")
		}
	default:
		return nil, fmt.Errorf("the answer wants us to prove ourselves by %q, which we cannot", c.keeper.said(got.TokenEndpointAuthMethod))
	}
	if got.ClientID == "" {
		return nil, errors.New("the answer has no client id")
	}
	return got, nil
}

// Link is the address that the person opens in a browser.
func (a *Attempt) Link() string { return a.link }

// Issuer is the authorization server that the link leads to.
func (a *Attempt) Issuer() string { return a.record.Issuer }

// ErrOther says that a redirect is not that of the attempt. The attempt goes on.
var ErrOther = errors.New("this is not the answer to the login that waits here")

// ErrFinished says that an attempt was finished before, or is being finished.
var ErrFinished = errors.New("this login was already finished")

// Finish takes what the browser came back with, the whole address, or its question mark and
// what follows, and gets the tokens. With a state that is not ours it changes
// nothing; with ours the attempt is over, whatever comes of it.
func (a *Attempt) Finish(ctx context.Context, returned string) (Info, error) {
	query, err := a.read(returned)
	if err != nil {
		return Info{}, err
	}
	state := query["state"]
	if len(state) != 1 || subtle.ConstantTimeCompare([]byte(state[0]), []byte(a.state)) != 1 {
		return Info{}, ErrOther
	}
	a.mu.Lock()
	used := a.used
	a.used = true
	a.mu.Unlock()
	if used {
		return Info{}, ErrFinished
	}
	c := a.client
	if err := a.checkIssuer(query["iss"]); err != nil {
		return Info{}, err
	}
	if code := query.Get("error"); code != "" {
		return Info{}, &grantError{Code: c.keeper.said(code), Text: c.keeper.said(query.Get("error_description"))}
	}
	code := query["code"]
	if len(code) != 1 || code[0] == "" {
		return Info{}, errors.New("the browser came back without a code")
	}
	c.keeper.learn(code[0], a.verifier)
	next, err := c.grant(ctx, a.record, url.Values{
		"grant_type": {"authorization_code"}, "code": code, "redirect_uri": {a.redirect}, "code_verifier": {a.verifier},
	})
	if err != nil {
		return Info{}, err
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	unlock, err := c.shelf.lock(ctx)
	if err != nil {
		return Info{}, err
	}
	defer unlock()
	if err := c.shelf.write(ctx, *next); err != nil {
		return Info{}, err
	}
	kept, err := c.load(ctx)
	if err != nil {
		return Info{}, err
	}
	if kept == nil {
		return Info{}, errors.New("the login was replaced by another")
	}
	return kept.info(), nil
}

// read finds the parameters in what the browser came back with.
func (a *Attempt) read(returned string) (url.Values, error) {
	returned = strings.TrimSpace(returned)
	if text, ok := strings.CutPrefix(returned, a.redirect); ok {
		returned = text
	} else if !strings.HasPrefix(returned, "?") && strings.Contains(returned, "://") {
		return nil, ErrOther
	}
	returned, _, _ = strings.Cut(strings.TrimPrefix(returned, "?"), "#")
	query, err := url.ParseQuery(returned)
	if err != nil {
		return nil, ErrOther
	}
	return query, nil
}

// checkIssuer refuses an answer that is not of the issuer that was asked (RFC 9207):
// otherwise a server could have the code of another issuer sent to its own.
func (a *Attempt) checkIssuer(iss []string) error {
	said := a.client.keeper.said
	switch {
	case len(iss) == 0 && !a.named:
		return nil
	case len(iss) == 0:
		return fmt.Errorf("the answer does not name its issuer, as that of %s should", said(a.record.Issuer))
	case len(iss) > 1 || iss[0] != a.record.Issuer:
		return fmt.Errorf("the answer is of another issuer: %s instead of %s", said(strings.Join(iss, ", ")), said(a.record.Issuer))
	}
	return nil
}

// Redirect returns the port that the browser should be sent back to, so that the
// client that was registered before can be used again; 0: any.
func (c *Client) Redirect() int {
	r, err := c.load(context.Background())
	if err != nil || r == nil {
		return 0
	}
	return portOf(r.Client.Redirect)
}

// Stored describes the login that is stored; ok is false if there is none.
func (c *Client) Stored() (info Info, ok bool) {
	r, err := c.current(context.Background())
	if err != nil || r == nil || r.Secrets.Access == "" && r.Secrets.Refresh == "" {
		return Info{}, false
	}
	return r.info(), true
}

func portOf(redirect string) int {
	u, err := url.Parse(redirect)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(u.Port())
	return port
}
