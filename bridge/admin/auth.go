package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"

	"golang.org/x/time/rate"
)

const (
	codeTime    = 10 * time.Minute
	maxCodes    = 10   // that were not used; the oldest is dropped
	maxSessions = 1000 // the one that ends first is dropped

	// secretHeader carries the page's second secret. Requiring the header at all
	// already keeps out whatever a page of another origin can send.
	secretHeader = "X-Codemode-Secret"
	cookieName   = "codemode_approver"
)

// wrongRate is how many wrong tokens and codes are answered as such and recorded.
// Beyond it they are only refused, but the right one never is: a token cannot be
// guessed anyway, and nobody may be locked out by others.
const (
	wrongBurst = 10
	wrongEvery = 6 * time.Second
)

type digest = [sha256.Size]byte

func newSecret() string { return rand.Text() + rand.Text() }

// A signIns keeps who is logged in, and what is under way to that: see kept.
type signIns struct {
	kept
	stay       time.Duration
	wrongTries *rate.Limiter
}

// A code logs somebody in once: an approver, or, without one, the owner.
type code struct {
	Who *approval.Kept `json:"who,omitempty"`
}

// A signedIn is somebody who logged in on the page, by their cookie.
type signedIn struct {
	Who    approval.Kept `json:"who"`
	Secret digest        `json:"secret"` // the hash of their second secret
	Secure bool          `json:"secure"` // logged in over TLS: only the strict name of the cookie counts
}

func newSignIns(o *Options) *signIns {
	return &signIns{kept: kept{o.SignIns, o.Now}, stay: o.Limits.SessionTime, wrongTries: rate.NewLimiter(rate.Every(wrongEvery), wrongBurst)}
}

// newCode makes a code that logs an approver in once, or, without one, the owner.
func (d *signIns) newCode(ctx context.Context, who *approval.Approver) (text string, err error) {
	var c code
	if who != nil {
		c.Who = new(who.Keep())
	}
	text = d.secret(codeTime)
	return text, d.put(ctx, codes, text, maxCodes, c)
}

// signIn logs somebody in, and returns their cookie and their second secret.
func (d *signIns) signIn(ctx context.Context, who approval.Approver, secure bool) (cookie, secret string, err error) {
	cookie, secret = d.secret(d.stay), newSecret()
	return cookie, secret, d.put(ctx, signIn, cookie, maxSessions, signedIn{who.Keep(), sha256.Sum256([]byte(secret)), secure})
}

// overTLS reports whether a browser talks to us, or to a proxy before us, over
// TLS.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// cookieFor names a cookie: by its strict name over TLS. On loopback
// browsers give cookies to every port alike, so there the port is in the name,
// and two bridges do not take each other's.
func cookieFor(r *http.Request, name string, secure bool) string {
	if secure {
		return "__Host-" + name
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return name + "_" + port
	}
	return name
}

// A caller is who makes a request.
type caller struct {
	approval.Approver
	channel string    // page or api
	until   time.Time // when the login ends; zero for a token
	// still reports whether the caller would be admitted now with the same rights.
	still func() bool
}

// auth identifies the caller of a request, and logs people in on the page.
type auth struct {
	o       *Options
	signIns *signIns
}

// identify says who makes a request. A bearer token, even a wrong one, takes precedence
// over a cookie. Strangers are refused; so is a change with a cookie but without the
// second secret.
func (a *auth) identify(r *http.Request, changes bool) (*caller, error) {
	if auth := r.Header.Values("Authorization"); len(auth) > 0 {
		token, ok := strings.CutPrefix(auth[0], "Bearer ")
		who, known := a.o.Approvers().Authenticate(token)
		if !ok || len(auth) > 1 || !known {
			return nil, a.refuseToken(r, "api")
		}
		return &caller{Approver: who, channel: "api", still: func() bool { return a.stillAllowed(who) }}, nil
	}
	if fromElsewhere(r) { // a link to the page: strict cookies are not sent with it, and no other counts
		return nil, errUnauthenticated
	}
	for _, secure := range []bool{true, false} {
		cookie, err := r.Cookie(cookieFor(r, cookieName, secure))
		if err != nil {
			continue
		}
		var e signedIn
		until, ok, err := a.signIns.read(r.Context(), signIn, cookie.Value, &e)
		if err != nil {
			return nil, err
		}
		if !ok || e.Secure != secure {
			continue
		}
		if changes {
			sum := sha256.Sum256([]byte(r.Header.Get(secretHeader)))
			if subtle.ConstantTimeCompare(sum[:], e.Secret[:]) != 1 {
				return nil, &failure{http.StatusForbidden, "secret", "the page's secret is missing or wrong", "load the page again, or sign in"}
			}
		}
		who, ok := a.o.Approvers().Recall(e.Who)
		if !ok || !sameRights(who, e.Who.Approver) {
			return nil, errUnauthenticated // the token is no longer theirs
		}
		still := func() bool {
			_, in, err := a.signIns.read(r.Context(), signIn, cookie.Value, new(signedIn))
			return err == nil && in && a.stillAllowed(who)
		}
		return &caller{Approver: who, channel: "page", until: until, still: still}, nil
	}
	return nil, errUnauthenticated
}

// stillAllowed reports whether somebody could still log in the way they did, and has
// the same token, login and rights.
func (a *auth) stillAllowed(who approval.Approver) bool {
	now, ok := a.o.Approvers().Current(who)
	return ok && sameRights(now, who)
}

func sameRights(a, b approval.Approver) bool {
	return a.Role == b.Role && a.Risk == b.Risk && a.Token == b.Token && a.Login == b.Login && slices.Equal(a.Groups, b.Groups)
}

var errUnauthenticated = &failure{http.StatusUnauthorized, "unauthorized", "this needs an approver",
	"send an approver's token as \"Authorization: Bearer ...\", or sign in on the page"}

var errTooMany = &failure{http.StatusTooManyRequests, "too_many", "too many wrong tokens", "wait a few seconds; the right one is not held up"}

// refuseToken answers a wrong token or code. It is recorded unless there are too many.
func (a *auth) refuseToken(r *http.Request, channel string) error {
	if !a.signIns.wrongTries.AllowN(a.o.Now(), 1) {
		return errTooMany
	}
	detail, _ := json.Marshal(map[string]string{"from": r.RemoteAddr})
	err := a.o.Record.Record(r.Context(), ledger.Record{Event: ledger.SignedIn, Time: a.o.Now(), Channel: channel, Outcome: ledger.Refused, Detail: detail})
	if err != nil {
		a.o.Logger.Error("recording a refused sign-in", "err", err)
	}
	return &failure{http.StatusUnauthorized, "unauthorized", "the token or code is not good", "a link is good once and for ten minutes; a token is shown once, when codemode-bridge approvers add makes it"}
}

// login logs a person in on the page: by the code of a link, by a token, or with the
// result of single sign-on.
func (a *auth) login(_ *caller, w http.ResponseWriter, r *http.Request) error {
	var text, token, state, granted, issuer string
	if err := readBody(w, r, a.o.Limits.MaxBody, fields{"code": &text, "token": &token, "state": &state, "granted": &granted, "issuer": &issuer}); err != nil {
		return err
	}
	var who approval.Approver
	var ok bool
	secure := overTLS(r)
	var detail json.RawMessage
	switch {
	case state != "":
		var err error
		if who, err = a.finishSignOn(w, r, state, granted, issuer); err != nil {
			return err
		}
		ok, detail = true, json.RawMessage(`{"by":"single sign-on"}`)
	case text != "":
		var err error
		if who, ok, err = a.useCode(r.Context(), text); err != nil {
			return err
		}
	default:
		who, ok = a.o.Approvers().Authenticate(token)
	}
	if !ok {
		return a.refuseToken(r, "page")
	}
	err := a.o.Record.Record(r.Context(), ledger.Record{Event: ledger.SignedIn, Time: a.o.Now(), Approver: who.Name, Channel: "page", Outcome: ledger.Done, Detail: detail})
	if err != nil { // they may log in all the same: what they decide is refused if it cannot be recorded
		a.o.Logger.Error("recording a sign-in", "err", err)
	}
	cookie, secret, err := a.signIns.signIn(r.Context(), who, secure)
	if err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{Name: cookieFor(r, cookieName, secure), Value: cookie, Path: "/", Secure: secure,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(a.o.Limits.SessionTime.Seconds())})
	return answer(w, http.StatusOK, map[string]any{"name": canon.Escape(who.Name), "role": who.Role, "secret": secret})
}

// useCode uses up the code of a link, and says whom it logs in, with their present rights.
func (a *auth) useCode(ctx context.Context, text string) (who approval.Approver, ok bool, err error) {
	var c code
	if ok, err = a.signIns.take(ctx, codes, text, &c); err != nil || !ok {
		return who, false, err
	}
	if c.Who != nil {
		who, ok = a.o.Approvers().Recall(*c.Who)
	} else if who, ok = a.o.Approvers().Owner(); !ok {
		err = &failure{http.StatusForbidden, "no_owner", "the owner's link is void: somebody configured may answer by now", "sign in as an approver"}
	}
	return who, ok, err
}

// signInCode gives the holder of a token a code for their own browser, so that the
// token need not be entered there. The code is for them alone, works once, and expires
// after ten minutes.
func (a *auth) signInCode(c *caller, w http.ResponseWriter, r *http.Request) error {
	if c.channel != "api" { // a login on the page must not prolong itself
		return &failure{http.StatusBadRequest, "token", "a code is given for a token alone", "send the token as \"Authorization: Bearer ...\""}
	}
	if err := readBody(w, r, a.o.Limits.MaxBody, fields{}); err != nil {
		return err
	}
	text, err := a.signIns.newCode(r.Context(), &c.Approver)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"code": text})
}

// logout ends the caller's login.
func (a *auth) logout(_ *caller, w http.ResponseWriter, r *http.Request) error {
	for _, secure := range []bool{true, false} {
		if cookie, err := r.Cookie(cookieFor(r, cookieName, secure)); err == nil {
			if err := a.signIns.end(r.Context(), signIn, cookie.Value); err != nil {
				return err
			}
			http.SetCookie(w, &http.Cookie{Name: cookie.Name, Path: "/", Secure: secure, HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1})
		}
	}
	return answer(w, http.StatusOK, map[string]any{"signed_out": true})
}

func (s *Site) me(who *caller, w http.ResponseWriter, _ *http.Request) error {
	may := []approval.Verb{}
	for _, v := range []approval.Verb{approval.Look, approval.Answer, approval.Revoke, approval.Stop, approval.Start, approval.Edit, approval.ConfirmConfig} {
		if who.May(v) {
			may = append(may, v)
		}
	}
	return answer(w, http.StatusOK, map[string]any{"name": canon.Escape(who.Name), "role": who.Role, "may": may})
}

// fromElsewhere reports whether a browser says that another site is behind a
// request.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// record records what somebody did here.
func (s *Site) record(ctx context.Context, who *caller, rec ledger.Record) error {
	rec.Time, rec.Approver, rec.Channel, rec.Durable = s.o.Now(), who.Name, who.channel, true
	if err := s.o.Record.Record(context.WithoutCancel(ctx), rec); err != nil {
		return fmt.Errorf("recording what %s did: %w", who.Name, err)
	}
	return nil
}
