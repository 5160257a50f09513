package identity

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	// answerFor is how long the answer about an opaque token counts: a token that is
	// revoked is refused after that time.
	answerFor = 30 * time.Second
	// maxAnswers bounds the answers that are kept, atOnce the questions under way.
	maxAnswers = 10_000
	atOnce     = 16
)

// An introspector asks the issuer about opaque tokens (RFC 7662). It keeps answers for
// a short time, by the SHA-256 of the token: tokens themselves are not kept.
type introspector struct {
	o      Options
	issuer *issuer
	room   chan struct{} // one element for each question under way

	mu      sync.Mutex
	answers map[[sha256.Size]byte]*answer
}

// An answer is what the issuer said about one token.
type answer struct {
	done   chan struct{} // closed once the rest is there
	claims claims        // nil: the token is not active
	err    error         // the issuer could not be asked
	until  time.Time
}

func newIntrospector(o Options, i *issuer) *introspector {
	return &introspector{o: o, issuer: i, room: make(chan struct{}, atOnce), answers: map[[sha256.Size]byte]*answer{}}
}

// ask returns what the issuer says about a token that is active.
func (n *introspector) ask(ctx context.Context, token string) (claims, error) {
	a, mine := n.answer(sha256.Sum256([]byte(token)))
	if mine {
		a.claims, a.err = n.question(ctx, token)
		n.mu.Lock()
		if a.until = n.o.Now().Add(answerFor); a.err != nil {
			a.until = n.o.Now().Add(time.Second)
		}
		n.mu.Unlock()
		close(a.done)
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return nil, unchecked("the token was not checked in time")
	}
	switch {
	case a.err != nil:
		return nil, unchecked("the token cannot be checked: the issuer of tokens, " + n.o.Issuer + ", cannot be asked about it; try again later")
	case a.claims == nil:
		return nil, invalid("the issuer does not know the token, or it has expired or been revoked")
	}
	return a.claims, nil
}

// answer returns the answer about the token with a digest. If it is mine, the caller
// completes it.
func (n *introspector) answer(digest [sha256.Size]byte) (a *answer, mine bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.o.Now()
	past := func(a *answer) bool { return !a.until.IsZero() && !now.Before(a.until) }
	if a = n.answers[digest]; a != nil && !past(a) {
		return a, false
	}
	if len(n.answers) >= maxAnswers {
		maps.DeleteFunc(n.answers, func(_ [sha256.Size]byte, a *answer) bool { return past(a) })
		for other := range n.answers {
			if len(n.answers) < maxAnswers {
				break
			}
			delete(n.answers, other)
		}
	}
	a = &answer{done: make(chan struct{})}
	n.answers[digest] = a
	return a, true
}

// question asks the issuer; others may wait for the answer, so the end of the
// caller's request does not end it.
func (n *introspector) question(ctx context.Context, token string) (claims, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*answerTime)
	defer cancel()
	select {
	case n.room <- struct{}{}:
		defer func() { <-n.room }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := n.introspect(ctx, token)
	if err != nil {
		n.o.Logger.Warn("a token could not be checked", "issuer", n.o.Issuer, "err", err)
	}
	return c, err
}

func (n *introspector) introspect(ctx context.Context, token string) (claims, error) {
	address := n.o.Introspection
	if address == "" {
		k, err := n.issuer.current(ctx)
		if err != nil {
			return nil, err
		}
		if address = k.metadata.Introspection; address == "" {
			return nil, errors.New("the issuer's metadata name no introspection_endpoint; name it in the configuration")
		}
	}
	if !SafeAddress(address) {
		return nil, fmt.Errorf("the address for introspection, %q, is not https", address)
	}
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	// RFC 6749, section 2.3.1: both are form-encoded first.
	req.SetBasicAuth(url.QueryEscape(n.o.ClientID), url.QueryEscape(n.o.ClientSecret))
	res, err := n.issuer.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("the issuer does not accept this bridge's clientId and clientSecret for introspection: %s", res.Status)
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("introspection answers %s", res.Status)
	}
	var c claims
	if err := json.NewDecoder(res.Body).Decode(&c); err != nil {
		return nil, errors.New("introspection does not answer with a JSON object")
	}
	var active bool
	if json.Unmarshal(c["active"], &active) != nil {
		return nil, errors.New("introspection does not say whether the token is active")
	}
	if kind, ok := c.text("token_type"); !active || ok && !strings.EqualFold(kind, "Bearer") && !strings.EqualFold(kind, "access_token") {
		return nil, nil
	}
	if c["iss"] == nil { // it is optional there, and this issuer was asked
		c["iss"], _ = json.Marshal(n.o.Issuer)
	}
	if c["exp"] == nil { // optional too: it is asked about again
		c["exp"], _ = json.Marshal(n.o.Now().Add(answerFor).Unix())
	}
	return c, nil
}
