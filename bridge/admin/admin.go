// Package admin serves approvers: a page of the requests that wait for an answer,
// an HTTP API for other programs, a stream of events, and webhooks that announce
// new requests elsewhere.
//
// A [Site] serves all of it on a listener of its own:
//
//	/            the page: Pending, and its tabs /runs /grants /servers /tools /profiles /history /accounts
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
	"net/http"
	"sync"
)

// A Site serves the page and the API. Any number of goroutines may call it.
//
// [Site.routes] lists its endpoints. What serves them is grouped: auth identifies
// callers, pages renders the tabs, streams sends events to browsers, webhooks sends
// them elsewhere, and runHandlers and configHandlers are the API of runs and of a
// pending configuration. The rest of the API is the Site's own.
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
	s.auth = &auth{&s.o, newSignIns(&o)}
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
	text, err := s.auth.signIns.newCode(s.ctx, nil)
	if err != nil {
		s.o.Logger.Error("making a link that logs in", "err", err)
		return "", false
	}
	return base + "/login#code=" + text, true
}
