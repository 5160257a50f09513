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
	"sync"
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

// A signIns keeps the logins. It stores only hashes of codes and cookies, never the
// values themselves.
type signIns struct {
	now        func() time.Time
	stay       time.Duration
	wrongTries *rate.Limiter

	mu       sync.Mutex
	codes    map[digest]code
	signedIn map[digest]*signedIn  // by cookie
	flows    map[digest]flow       // by state
	begun    map[digest]connection // of accounts, by state
}

// A code logs somebody in once: an approver, or, without one, the owner.
type code struct {
	who   *approval.Approver
	until time.Time
}

// A signedIn is somebody who logged in on the page.
type signedIn struct {
	who    approval.Approver
	secret digest
	secure bool // logged in over TLS: only the strict name of the cookie counts
	until  time.Time
}

func newSignIns(now func() time.Time, stay time.Duration) *signIns {
	return &signIns{now: now, stay: stay, wrongTries: rate.NewLimiter(rate.Every(wrongEvery), wrongBurst),
		codes: map[digest]code{}, signedIn: map[digest]*signedIn{}, flows: map[digest]flow{}, begun: map[digest]connection{}}
}

// newCode makes a code that logs an approver in once, or, without one, the owner.
func (d *signIns) newCode(who *approval.Approver) string {
	text := rand.Text()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.codes) >= maxCodes {
		dropFirst(d.codes, func(c code) time.Time { return c.until })
	}
	d.codes[sha256.Sum256([]byte(text))] = code{who, d.now().Add(codeTime)}
	return text
}

// dropFirst removes the entry that expires first.
func dropFirst[V any](m map[digest]V, ends func(V) time.Time) {
	var first digest
	var at time.Time
	for k, v := range m {
		if t := ends(v); at.IsZero() || t.Before(at) {
			first, at = k, t
		}
	}
	delete(m, first)
}

// useCode uses up a code, and reports whether it was valid and for whom.
func (d *signIns) useCode(text string) (who *approval.Approver, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := sha256.Sum256([]byte(text))
	c, ok := d.codes[sum]
	delete(d.codes, sum)
	return c.who, ok && d.now().Before(c.until)
}

// signIn logs somebody in, and returns their cookie and their second secret.
func (d *signIns) signIn(e signedIn) (cookie, secret string) {
	cookie, secret = newSecret(), newSecret()
	e.secret, e.until = sha256.Sum256([]byte(secret)), d.now().Add(d.stay)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.signedIn) >= maxSessions {
		dropFirst(d.signedIn, func(e *signedIn) time.Time { return e.until })
	}
	d.signedIn[sha256.Sum256([]byte(cookie))] = &e
	return cookie, secret
}

// byCookie finds who has a cookie.
func (d *signIns) byCookie(cookie string) (*signedIn, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := sha256.Sum256([]byte(cookie))
	e, ok := d.signedIn[sum]
	if ok && !d.now().Before(e.until) {
		delete(d.signedIn, sum)
		return nil, false
	}
	return e, ok
}

func (d *signIns) signOut(cookie string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.signedIn, sha256.Sum256([]byte(cookie)))
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
		e, ok := a.signIns.byCookie(cookie.Value)
		if !ok || e.secure != secure {
			continue
		}
		if changes {
			sum := sha256.Sum256([]byte(r.Header.Get(secretHeader)))
			if subtle.ConstantTimeCompare(sum[:], e.secret[:]) != 1 {
				return nil, &failure{http.StatusForbidden, "secret", "the page's secret is missing or wrong", "load the page again, or sign in"}
			}
		}
		still := func() bool { _, in := a.signIns.byCookie(cookie.Value); return in && a.stillAllowed(e.who) }
		if !still() {
			return nil, errUnauthenticated // the token is no longer theirs
		}
		return &caller{Approver: e.who, channel: "page", until: e.until, still: still}, nil
	}
	return nil, errUnauthenticated
}

// stillAllowed reports whether somebody could still log in the way they did, and has
// the same token, login and rights.
func (a *auth) stillAllowed(who approval.Approver) bool {
	now, ok := a.o.Approvers().Current(who)
	return ok && now.Role == who.Role && now.Risk == who.Risk && now.Token == who.Token && now.Login == who.Login && slices.Equal(now.Groups, who.Groups)
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
	var code, token, state, granted, issuer string
	if err := readBody(w, r, a.o.Limits.MaxBody, fields{"code": &code, "token": &token, "state": &state, "granted": &granted, "issuer": &issuer}); err != nil {
		return err
	}
	e := signedIn{secure: overTLS(r)}
	var ok bool
	var detail json.RawMessage
	switch {
	case state != "":
		var err error
		if e.who, err = a.finishSignOn(w, r, state, granted, issuer); err != nil {
			return err
		}
		ok, detail = true, json.RawMessage(`{"by":"single sign-on"}`)
	case code != "":
		var who *approval.Approver
		switch who, ok = a.signIns.useCode(code); {
		case !ok:
		case who != nil: // with their present rights, if still an approver
			e.who, ok = a.o.Approvers().Current(*who)
		default:
			if e.who, ok = a.o.Approvers().Owner(); !ok {
				return &failure{http.StatusForbidden, "no_owner", "the owner's link is void: somebody configured may answer by now", "sign in as an approver"}
			}
		}
	default:
		e.who, ok = a.o.Approvers().Authenticate(token)
	}
	if !ok {
		return a.refuseToken(r, "page")
	}
	err := a.o.Record.Record(r.Context(), ledger.Record{Event: ledger.SignedIn, Time: a.o.Now(), Approver: e.who.Name, Channel: "page", Outcome: ledger.Done, Detail: detail})
	if err != nil { // they may log in all the same: what they decide is refused if it cannot be recorded
		a.o.Logger.Error("recording a sign-in", "err", err)
	}
	cookie, secret := a.signIns.signIn(e)
	http.SetCookie(w, &http.Cookie{Name: cookieFor(r, cookieName, e.secure), Value: cookie, Path: "/", Secure: e.secure,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(a.o.Limits.SessionTime.Seconds())})
	return answer(w, http.StatusOK, map[string]any{"name": canon.Escape(e.who.Name), "role": e.who.Role, "secret": secret})
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
	return answer(w, http.StatusOK, map[string]any{"code": a.signIns.newCode(&c.Approver)})
}

// logout ends the caller's login.
func (a *auth) logout(_ *caller, w http.ResponseWriter, r *http.Request) error {
	for _, secure := range []bool{true, false} {
		if cookie, err := r.Cookie(cookieFor(r, cookieName, secure)); err == nil {
			a.signIns.signOut(cookie.Value)
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
