// Package sso identifies people through an OpenID Connect provider, with the
// authorization code flow, PKCE, a state and a nonce.
//
//	browser ── Begin: the provider's address ──▶ provider: they sign in there
//	   ◀── back, with a code ──
//	   ── Finish: code for ID token, checked ──▶ the value of one claim
//
// Nothing here knows what somebody may do, and nothing is kept between the two
// steps: Begin returns what Finish needs.
package sso

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/identity"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Errors of a sign-in. Others say what was wrong with what the provider sent.
var (
	// ErrUnreachable: the provider does not answer, or not as a provider does.
	ErrUnreachable = errors.New("the sign-in provider cannot be reached")
	// ErrNobody: the ID token lacks the claim that says who somebody is, or the
	// claim does not count.
	ErrNobody = errors.New("the sign-in provider does not say who you are")
)

// Options name a provider, and what this program is to it.
type Options struct {
	Issuer       string // https, or http on this machine
	ClientID     string
	ClientSecret string // empty for a public client
	RedirectURL  string // where the browser comes back to, as the provider knows it
	// Claim names the member of the ID token that says who somebody is. An
	// "email" counts only if the provider says that it verified it.
	Claim string

	Now       func() time.Time  // nil means time.Now
	Transport http.RoundTripper // nil means http.DefaultTransport
}

// answerTime bounds a request to the provider, maxAnswer its answer. After a failed
// discovery the provider is not asked again for the time quiet.
const (
	answerTime = 10 * time.Second
	maxAnswer  = 1 << 20
	quiet      = 3 * time.Second
)

// algorithms are the accepted signatures: neither "none" nor one made with a shared
// secret.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// A Provider signs people in. Any number of goroutines may call it. Discovery takes
// place when the provider is first needed, and is repeated until it succeeds.
type Provider struct {
	o   Options
	ctx context.Context // carries the HTTP client for requests to the provider

	mu     sync.Mutex
	known  *oidc.Provider
	iss    bool      // its answers always name the issuer
	failed error     // why the last discovery failed
	again  time.Time // no new discovery before that time
}

// New makes a provider without contacting it.
func New(o Options) *Provider {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	client := &http.Client{Timeout: answerTime, Transport: identity.Bounded(o.Transport), CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // requests hold the client secret
	}}
	// It carries only the client: the library keeps it, for fetching keys later.
	return &Provider{o: o, ctx: oidc.ClientContext(context.Background(), client)}
}

// Begin starts a sign-in. Address is where the browser goes, and comes back with
// the state; keep is for Finish and not for the browser.
func (p *Provider) Begin(state string) (address, keep string, err error) {
	config, _, err := p.config()
	if err != nil {
		return "", "", err
	}
	nonce, verifier := rand.Text(), oauth2.GenerateVerifier()
	return config.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), nonce + " " + verifier, nil
}

// Finish completes the sign-in that keep belongs to, with the code and the issuer
// (empty if there was none) that the browser brought back. It returns the value of
// the claim.
func (p *Provider) Finish(ctx context.Context, keep, code, issuer string) (string, error) {
	nonce, verifier, ok := strings.Cut(keep, " ")
	if !ok || nonce == "" || verifier == "" {
		return "", errors.New("this sign-in was not begun here")
	}
	config, known, err := p.config()
	if err != nil {
		return "", err
	}
	// RFC 9207: an answer that another provider sent is not for us.
	if issuer != p.o.Issuer && (issuer != "" || p.iss) {
		return "", fmt.Errorf("the answer is from the issuer %q, not from %q", issuer, p.o.Issuer)
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, p.ctx.Value(oauth2.HTTPClient)), answerTime)
	defer cancel()
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.ErrorCode != "" {
			return "", fmt.Errorf("the provider does not take the code: %s", refused.ErrorCode)
		}
		return "", fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return "", errors.New("the provider sent no ID token")
	}
	id, err := known.VerifierContext(p.ctx, &oidc.Config{ClientID: p.o.ClientID, SupportedSigningAlgs: algorithms, Now: p.o.Now}).Verify(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("checking the ID token: %w", err)
	}
	return p.who(id, nonce)
}

// who returns the value of the claim in a token whose signature, issuer, audience
// and times have been checked.
func (p *Provider) who(id *oidc.IDToken, nonce string) (string, error) {
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1 {
		return "", errors.New("checking the ID token: it is of another sign-in")
	}
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return "", fmt.Errorf("reading the ID token: %w", err)
	}
	// OpenID Connect Core 3.1.3.7: with several audiences, azp names the client
	// that the token was issued to.
	if party, ok := claims["azp"]; party != p.o.ClientID && (ok || len(id.Audience) > 1) {
		return "", errors.New("checking the ID token: it was made for another client")
	}
	who, _ := claims[p.o.Claim].(string)
	if p.o.Claim == "email" && claims["email_verified"] != true && claims["email_verified"] != "true" {
		who = ""
	}
	if who == "" {
		return "", fmt.Errorf("%w: its ID token has no claim %q that counts", ErrNobody, p.o.Claim)
	}
	return who, nil
}

// config returns what is needed to talk to the provider, after discovery.
func (p *Provider) config() (*oauth2.Config, *oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil && p.o.Now().Before(p.again) {
		return nil, nil, p.failed
	}
	if p.known == nil {
		if err := p.discoverLocked(); err != nil {
			p.failed, p.again = fmt.Errorf("%w: %w", ErrUnreachable, err), p.o.Now().Add(quiet)
			return nil, nil, p.failed
		}
	}
	scopes := []string{oidc.ScopeOpenID}
	if p.o.Claim == "email" {
		scopes = append(scopes, "email")
	} else if p.o.Claim != "sub" {
		scopes = append(scopes, "profile")
	}
	return &oauth2.Config{ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret, Endpoint: p.known.Endpoint(), RedirectURL: p.o.RedirectURL, Scopes: scopes}, p.known, nil
}

// discoverLocked reads the provider's discovery document.
func (p *Provider) discoverLocked() error {
	known, err := oidc.NewProvider(p.ctx, p.o.Issuer) // which checks that the document names the same issuer
	if err != nil {
		return err
	}
	var also struct {
		Iss bool `json:"authorization_response_iss_parameter_supported"`
	}
	if err := known.Claims(&also); err != nil {
		return err
	}
	for _, address := range []string{known.Endpoint().AuthURL, known.Endpoint().TokenURL} {
		if !identity.SafeAddress(address) {
			return fmt.Errorf("it names the address %q, which is not https", address)
		}
	}
	p.known, p.iss = known, also.Iss
	return nil
}
