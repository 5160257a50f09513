package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

const (
	flowTime   = 10 * time.Minute
	maxFlows   = 1000 // sign-ins that were begun; the oldest is dropped
	flowCookie = "codemode_sign_in"
)

// A flow is a single sign-on under way. Only the browser that began it can complete
// it, so that nobody can be tricked into logging in as somebody else.
type flow struct {
	Keep   string `json:"keep"`
	Cookie digest `json:"cookie"`
}

// newFlow makes the state of a sign-in and the secret of its browser.
func (d *signIns) newFlow(ctx context.Context, begin func(state string) (address, keep string, err error)) (address, cookie string, err error) {
	state, cookie := d.secret(flowTime), newSecret()
	address, keep, err := begin(state)
	if err != nil {
		return "", "", err
	}
	return address, cookie, d.put(ctx, signOns, state, maxFlows, flow{keep, sha256.Sum256([]byte(cookie))})
}

// useFlow uses up a flow.
func (d *signIns) useFlow(ctx context.Context, state, cookie string) (keep string, ok bool, err error) {
	var f flow
	if ok, err = d.take(ctx, signOns, state, &f); err != nil || !ok {
		return "", false, err
	}
	has := sha256.Sum256([]byte(cookie))
	return f.Keep, subtle.ConstantTimeCompare(has[:], f.Cookie[:]) == 1, nil
}

// beginSignOn says where a browser goes to sign in. If the browser uses another name of
// this site than the one that it would come back to, it goes to that one first, since
// the cookie must be set there.
func (a *auth) beginSignOn(_ *caller, w http.ResponseWriter, r *http.Request) error {
	if a.o.SignOn == nil {
		return missing("single sign-on")
	}
	if err := readBody(w, r, a.o.Limits.MaxBody, fields{}); err != nil {
		return err
	}
	back, err := url.Parse(a.o.SignOnReturn)
	if err != nil {
		return fmt.Errorf("reading the address that a sign-in comes back to: %w", err)
	}
	if !strings.EqualFold(back.Host, r.Host) {
		return answer(w, http.StatusOK, map[string]any{"go": back.Scheme + "://" + back.Host + "/login#sign-on"})
	}
	address, cookie, err := a.signIns.newFlow(r.Context(), a.o.SignOn.Begin)
	if err != nil {
		a.o.Logger.Error("beginning a sign-in", "err", err)
		return &failure{http.StatusBadGateway, "provider", "the sign-in provider does not answer", "sign in with a token; the bridge's log says more"}
	}
	secure := overTLS(r)
	http.SetCookie(w, &http.Cookie{Name: cookieFor(r, flowCookie, secure), Value: cookie, Path: "/", Secure: secure,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(flowTime.Seconds())})
	return answer(w, http.StatusOK, map[string]any{"go": address})
}

// finishSignOn finds out who comes back from the identity provider. Somebody who is
// known there but is not an approver here is told so.
func (a *auth) finishSignOn(w http.ResponseWriter, r *http.Request, state, code, issuer string) (approval.Approver, error) {
	var nobody approval.Approver
	if a.o.SignOn == nil {
		return nobody, missing("single sign-on")
	}
	name := cookieFor(r, flowCookie, overTLS(r))
	cookie, err := r.Cookie(name)
	if err != nil {
		cookie = &http.Cookie{}
	}
	keep, ok, err := a.signIns.useFlow(r.Context(), state, cookie.Value)
	if err != nil {
		return nobody, err
	}
	if !ok {
		return nobody, a.refuseSignOn(r, "", &failure{http.StatusUnauthorized, "unauthorized", "this sign-in was not begun in this browser, or too long ago", "sign in again"})
	}
	http.SetCookie(w, &http.Cookie{Name: name, Path: "/", Secure: overTLS(r), HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1})
	login, err := a.o.SignOn.Finish(r.Context(), keep, code, issuer)
	if err != nil {
		a.o.Logger.Warn("a sign-in was refused", "err", err)
		return nobody, a.refuseSignOn(r, "", &failure{http.StatusUnauthorized, "unauthorized", "the sign-in failed: " + canon.Escape(canon.Redact(err.Error())), "sign in again, or with a token"})
	}
	who, ok := a.o.Approvers().ByLogin(login)
	if !ok {
		shown := canon.Escape(login)
		return nobody, a.refuseSignOn(r, shown, &failure{http.StatusForbidden, "no_approver", fmt.Sprintf("%s is no approver here", shown),
			fmt.Sprintf("whoever runs this bridge can give an approver the \"login\": %q", shown)})
	}
	return who, nil
}

// refuseSignOn records a refused sign-in, unless there are too many.
func (a *auth) refuseSignOn(r *http.Request, login string, f *failure) error {
	if !a.signIns.wrongTries.AllowN(a.o.Now(), 1) {
		return errTooMany
	}
	about := map[string]string{"from": r.RemoteAddr, "by": "single sign-on", "why": f.message}
	if login != "" {
		about["login"] = login
	}
	detail, err := json.Marshal(about)
	if err != nil {
		return fmt.Errorf("writing the detail of a record: %w", err)
	}
	rec := ledger.Record{Event: ledger.SignedIn, Time: a.o.Now(), Channel: "page", Outcome: ledger.Refused, Detail: detail}
	if err := a.o.Record.Record(r.Context(), rec); err != nil {
		a.o.Logger.Error("recording a refused sign-in", "err", err)
	}
	return f
}
