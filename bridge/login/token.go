package login

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A granted is the answer of a token endpoint (RFC 6749, section 5.1).
type granted struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Refresh string `json:"refresh_token"`
	// Expires is seconds, which some servers write as a string.
	Expires json.RawMessage `json:"expires_in"`
	Scope   *string         `json:"scope"`
}

// A grantError is a token endpoint's refusal (RFC 6749, section 5.2).
type grantError struct {
	Code string `json:"error"`
	Text string `json:"error_description"`
}

func (e *grantError) Error() string {
	if e.Text == "" {
		return "the authorization server refuses: " + e.Code
	}
	return "the authorization server refuses: " + e.Code + ": " + e.Text
}

// lasting reports whether it is useless to ask again.
func (e *grantError) lasting() bool {
	switch e.Code {
	case "server_error", "temporarily_unavailable", "slow_down":
		return false
	}
	return true
}

// post sends a form to an endpoint of the authorization server, authenticated as the
// client.
func (c *Client) post(ctx context.Context, endpoint string, home network, id oauthID, secret string, form url.Values) (*answer, error) {
	form.Set("client_id", id.ID)
	if id.Method == "client_secret_post" {
		form.Set("client_secret", secret)
	}
	req, err := http.NewRequest(http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errNotURL
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if id.Method == "client_secret_basic" {
		// RFC 6749, section 2.3.1: both are encoded like a form first.
		req.SetBasicAuth(url.QueryEscape(id.ID), url.QueryEscape(secret))
	}
	return c.keeper.guard.do(ctx, home, req)
}

// grant asks the token endpoint of r for tokens and returns r with them. Its errors
// hold nothing of the answer except the code and the text of a refusal.
func (c *Client) grant(ctx context.Context, r record, form url.Values) (*record, error) {
	form.Set("resource", r.Resource)
	asked := c.keeper.options.now()
	a, err := c.post(ctx, r.Token, r.Network, r.Client, c.secretOf(&r), form)
	if err != nil {
		return nil, fmt.Errorf("asking the authorization server for a token: %w", err)
	}
	if a.status != http.StatusOK {
		refusal := &grantError{}
		if isJSON(a.header) && json.Unmarshal(a.body, refusal) == nil && refusal.Code != "" && a.status < 500 {
			for _, s := range form { // it may repeat what it was sent
				c.keeper.learn(s...)
			}
			refusal.Code, refusal.Text = c.keeper.said(refusal.Code), c.keeper.said(refusal.Text)
			return nil, refusal
		}
		return nil, fmt.Errorf("asking the authorization server for a token: HTTP status %d", a.status)
	}
	var g granted
	if !isJSON(a.header) || json.Unmarshal(a.body, &g) != nil {
		return nil, errors.New("the authorization server's answer has no token: it is not JSON")
	}
	c.keeper.learn(g.Access, g.Refresh)
	switch {
	case g.Access == "" || strings.ContainsFunc(g.Access, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return nil, errors.New("the authorization server's answer has no token that can be used")
	case !strings.EqualFold(g.Type, "bearer"):
		return nil, fmt.Errorf("the authorization server's token is of the type %q, not a bearer token", c.keeper.said(g.Type))
	}
	seconds, err := lifetime(g.Expires)
	if err != nil {
		return nil, err
	}
	r.Expires = time.Time{}
	if seconds > 0 {
		r.Expires = asked.Add(seconds).UTC().Truncate(time.Second)
	}
	next := *r.Secrets
	next.Access = g.Access
	if g.Refresh != "" {
		next.Refresh = g.Refresh // "the client MUST discard the old refresh token"
	}
	r.Secrets = &next
	if g.Scope != nil {
		r.Scopes = strings.Fields(*g.Scope)
	}
	return &r, nil
}

// lifetime reads expires_in; 0: there is none.
func lifetime(raw json.RawMessage) (time.Duration, error) {
	text := strings.Trim(string(bytes.TrimSpace(raw)), `"`)
	if text == "" || text == "null" {
		return 0, nil
	}
	var seconds float64
	if err := json.Unmarshal([]byte(text), &seconds); err != nil || math.IsNaN(seconds) || seconds < 0 {
		return 0, errors.New("the authorization server's answer has no lifetime that can be read")
	}
	const longest = 10 * 365 * 24 * time.Hour
	if seconds > longest.Seconds() {
		return longest, nil
	}
	return max(time.Duration(seconds*float64(time.Second)), 1), nil
}

// secretOf returns the secret of a record's client.
func (c *Client) secretOf(r *record) string {
	if r.Client.Redirect == "" {
		return c.server.ClientSecret
	}
	return r.Secrets.Client
}

// renew gets a token in place of the refused one or, if that is empty, of one that is
// about to expire. It continues when ctx ends: the authorization server may already
// have replaced the refresh token, and the new one must be kept.
func (c *Client) renew(ctx context.Context, refused string) (string, error) {
	type result struct {
		token string
		err   error
	}
	done := make(chan result, 1)
	c.keeper.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*patience)
		defer cancel()
		token, err := c.renewNow(ctx, refused)
		done <- result{token, err}
	})
	select {
	case r := <-done:
		return r.token, r.err
	case <-ctx.Done():
		return "", fmt.Errorf("renewing the login: %w", context.Cause(ctx))
	}
}

// renewNow does what renew says. One goroutine of one process does it at a time;
// whoever comes after it finds the new token.
func (c *Client) renewNow(ctx context.Context, refused string) (string, error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	unlock, err := c.shelf.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	r, err := c.load(ctx)
	if err != nil {
		return "", err
	}
	if c.fresh(r) && r.Secrets.Access != refused {
		return r.Secrets.Access, nil
	}
	var next *record
	if c.server.Credentials {
		next, err = c.byCredentials(ctx, r)
	} else {
		if r == nil || r.Secrets.Refresh == "" {
			return "", c.needed("the last one has ended", nil)
		}
		next, err = c.grant(ctx, *r, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {r.Secrets.Refresh}})
	}
	if err != nil {
		return "", c.refusal(ctx, r, err)
	}
	if err := c.shelf.write(ctx, *next); err != nil {
		if errors.Is(err, errDisconnected) && next.Revoke != "" { // while it was renewed
			_ = c.revoke(ctx, next)
		}
		return "", err
	}
	return next.Secrets.Access, nil
}

// refusal says what a refused grant means, and removes what has become useless: the
// tokens, or a registered client that the authorization server no longer knows.
func (c *Client) refusal(ctx context.Context, r *record, err error) error {
	var refused *grantError
	if !errors.As(err, &refused) {
		return err
	}
	if c.server.Credentials {
		if !refused.lasting() {
			return err
		}
		return &rejected{"the server needs a login that fails; correct auth in the configuration (" + refused.Error() + ")"}
	}
	switch refused.Code {
	case "invalid_grant":
		next := *r
		next.Secrets = &confidential{Client: r.Secrets.Client}
		_ = c.shelf.write(ctx, next) // otherwise it would be refused again
	case "invalid_client", "unauthorized_client":
		_ = c.shelf.remove(ctx)
	default:
		if !refused.lasting() {
			return err
		}
	}
	return c.needed(refused.Error(), nil)
}

// byCredentials gets a token for the client's own rights. r is the last record, which
// has the endpoints; nil: there is none.
func (c *Client) byCredentials(ctx context.Context, r *record) (*record, error) {
	if r == nil {
		where, err := c.discover(ctx)
		if err != nil {
			return nil, err
		}
		r = where.record(c.server)
		r.Client, r.Credentials, r.Asked = oauthID{ID: c.server.ClientID}, true, c.server.Scopes
		if r.Client.Method, err = where.method(c.server.ClientSecret); err != nil {
			return nil, err
		}
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(c.server.Scopes) > 0 {
		form.Set("scope", strings.Join(c.server.Scopes, " "))
	}
	next, err := c.grant(ctx, *r, form)
	if next != nil {
		next.Secrets.Refresh = "" // RFC 6749, section 4.4.3: there should be none
	}
	return next, err
}

// revoke asks the authorization server to forget the tokens (RFC 7009). The
// refresh token goes first: with it most servers revoke all that came of it.
func (c *Client) revoke(ctx context.Context, r *record) error {
	for _, one := range []struct{ token, hint string }{{r.Secrets.Refresh, "refresh_token"}, {r.Secrets.Access, "access_token"}} {
		if one.token == "" {
			continue
		}
		form := url.Values{"token": {one.token}, "token_type_hint": {one.hint}}
		a, err := c.post(ctx, r.Revoke, r.Network, r.Client, c.secretOf(r), form)
		if err != nil {
			return fmt.Errorf("revoking the login: %w", err)
		}
		if a.status != http.StatusOK {
			return fmt.Errorf("revoking the login: HTTP status %d", a.status)
		}
	}
	return nil
}
