package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/webguard"
)

// contentPolicy is what our pages may load and do: their own scripts, styles and
// pictures, and requests to this site. Nothing inline, nothing from elsewhere, and no
// framing.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// A route is one endpoint of the site.
type route struct {
	method, path string
	// verb is what a caller must be allowed to do; empty lets everybody in.
	verb  approval.Verb
	serve func(who *caller, w http.ResponseWriter, r *http.Request) error
}

func (r route) api() bool { return strings.HasPrefix(r.path, "/api/") }

// routes returns all routes. No GET changes anything.
func (s *Site) routes() []route {
	p, runs, config := pages{s}, runHandlers{s}, configHandlers{s}
	return []route{
		{"POST", "/api/login", "", s.auth.login},
		{"POST", "/api/login/begin", "", s.auth.beginSignOn},
		{"POST", "/api/login/code", approval.Look, s.auth.signInCode},
		{"POST", "/api/logout", "", s.auth.logout},
		{"GET", "/api/me", approval.Look, s.me},

		{"GET", "/api/pending", approval.Look, s.listPending},
		{"GET", "/api/pending/{id}", approval.Look, s.showPending},
		{"POST", "/api/decide/{id}", approval.Answer, s.decide},
		{"GET", "/api/events", approval.Look, streams{s}.events},

		{"POST", "/api/runs", approval.Start, runs.startRun},
		{"GET", "/api/runs", approval.Look, runs.listRuns},
		{"POST", "/api/runs/{id}/stop", approval.Stop, runs.stopRun},
		{"POST", "/api/runs/{id}/resume", approval.Stop, runs.resumeRun},
		{"GET", "/api/result/{id}", approval.Look, runs.result},

		{"GET", "/api/grants", approval.Look, s.listGrants},
		{"DELETE", "/api/grants/{id}", approval.Revoke, s.revoke},
		{"GET", "/api/history", approval.Look, s.history},
		{"GET", "/api/servers", approval.Look, s.servers},
		{"POST", "/api/servers/login", approval.Edit, s.beginLogin},
		{"GET", "/api/tools", approval.Look, s.listTools},
		{"POST", "/api/tools/accept", approval.Edit, s.acceptTool},
		{"POST", "/api/tools/block", approval.Edit, s.blockTool},
		{"GET", "/api/profiles", approval.Look, s.listProfiles},
		{"PUT", "/api/profiles", approval.Edit, s.saveProfiles},
		{"GET", "/api/config", approval.Look, config.showConfig},
		{"POST", "/api/config/confirm", approval.ConfirmConfig, config.confirmConfig},
		{"POST", "/api/config/reject", approval.ConfirmConfig, config.rejectConfig},
		{"GET", "/api/sessions", approval.Look, s.listSessions},
		{"POST", "/api/sessions/{id}/profile", approval.Edit, s.tighten},

		{"GET", "/{$}", approval.Look, p.pendingPage},
		{"GET", "/r/{id}", approval.Look, p.requestPage},
		{"GET", "/runs", approval.Look, p.runsPage},
		{"GET", "/grants", approval.Look, p.grantsPage},
		{"GET", "/servers", approval.Look, p.serversPage},
		{"GET", "/tools", approval.Look, p.toolsPage},
		{"GET", "/profiles", approval.Look, p.profilesPage},
		{"GET", "/history", approval.Look, p.historyPage},
		{"GET", "/login", "", p.loginPage},
		{"GET", "/login/done", "", p.loginPage},
		{"GET", "/assets/{name}", "", p.asset},
	}
}

// routed builds the mux. A known path with another method answers 405 and an unknown
// path 404, both in the usual form of errors.
func (s *Site) routed() *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, rt := range s.routes() {
		methods[rt.path] = append(methods[rt.path], rt.method)
		mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) { s.handle(rt, w, r) })
	}
	for path, allowed := range methods {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			s.fail(w, r, &failure{http.StatusMethodNotAllowed, "method", "this is done with " + strings.Join(allowed, " or "), ""})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &failure{http.StatusNotFound, "not_found", "there is nothing here", ""})
	})
	return mux
}

// ServeHTTP serves the page and the API.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Server", "codemode-bridge")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !webguard.Host(r, s.o.Hosts) {
		s.fail(w, r, &failure{http.StatusForbidden, "host", fmt.Sprintf("the host %q is not ours", canon.Escape(r.Host)), "name it in the configuration if it is"})
		return
	}
	if !webguard.Origin(r, s.o.Origins) && !isLink(r) {
		s.fail(w, r, &failure{http.StatusForbidden, "origin", "this comes from a page of another site", "name its origin in the configuration if it is yours"})
		return
	}
	s.mux.ServeHTTP(w, r)
}

// fromElsewhere reports whether a browser says that another site is behind a
// request.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// isLink reports whether somebody followed a link to the page from elsewhere, such as
// one that a webhook put into a chat. Such a request is anonymous: the answer is the
// same for everybody, and what it loads comes from here.
func isLink(r *http.Request) bool {
	return r.Method == http.MethodGet && len(r.Header.Values("Origin")) == 0 && !strings.HasPrefix(r.URL.Path, "/api/") &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func (s *Site) handle(rt route, w http.ResponseWriter, r *http.Request) {
	err := func() error {
		changes := r.Method != http.MethodGet && r.Method != http.MethodHead
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); changes && kind != "application/json" && (r.Method != http.MethodDelete || r.ContentLength != 0) {
			return &failure{http.StatusUnsupportedMediaType, "content_type", "the content type must be application/json", ""}
		}
		if rt.verb == "" {
			return rt.serve(nil, w, r)
		}
		who, err := s.auth.identify(r, changes)
		if err != nil {
			return err
		}
		if !who.May(rt.verb) {
			return &failure{http.StatusForbidden, "role", fmt.Sprintf("%s may not do this", canon.Escape(who.Name)),
				fmt.Sprintf("the role %s does not %s", who.Role, rt.verb)}
		}
		return rt.serve(who, w, r)
	}()
	if err != nil {
		s.fail(w, r, err)
	}
}

// A failure is an answer that is an error. Its message may quote what the
// caller sent, and never a secret.
type failure struct {
	status  int
	code    string // one word, for programs
	message string
	hint    string // what to do; may be empty
}

func (f *failure) Error() string { return f.message }

// classify turns any error into a failure.
func classify(err error) *failure {
	var known *failure
	var refused *approval.RefusedError
	var settled *approval.SettledError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &large):
		return &failure{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is larger than %d bytes", large.Limit), ""}
	case errors.As(err, &settled):
		if v := settled.Verdict; v.By == "" {
			return &failure{http.StatusGone, "gone", "it cannot be answered any more: " + canon.Escape(settled.Error()), ""}
		}
		return &failure{http.StatusConflict, "settled", canon.Escape(settled.Error()), ""}
	case errors.As(err, &refused):
		return &failure{http.StatusUnprocessableEntity, "refused", canon.Escape(refused.Error()), ""}
	case errors.Is(err, approval.ErrDigest):
		return &failure{http.StatusConflict, "changed", "the request is not what you saw any more", "look at it again"}
	case errors.Is(err, approval.ErrUnknown), errors.Is(err, ErrUnknown):
		return &failure{http.StatusNotFound, "not_found", "there is none of that id", ""}
	case errors.Is(err, ErrEnded):
		return &failure{http.StatusConflict, "ended", "the run has ended", "GET /api/result/{id} has its result"}
	case errors.Is(err, ErrChanged):
		return &failure{http.StatusConflict, "changed", "it was changed meanwhile", "load it again"}
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrDamaged):
		return &failure{http.StatusServiceUnavailable, "audit_unavailable", "it could not be written down", "see the bridge's log"}
	}
	return &failure{http.StatusInternalServerError, "internal", "something went wrong", "see the bridge's log"}
}

// fail answers with an error: as JSON, or as a page if a browser wants one, which is
// the login page if a login is what is missing.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := classify(err)
	if f.status == http.StatusInternalServerError {
		s.o.Logger.Error("serving the approval page", "path", r.URL.Path, "err", err)
	}
	h := w.Header()
	api := strings.HasPrefix(r.URL.Path, "/api/")
	switch {
	case f.status == http.StatusTooManyRequests:
		h.Set("Retry-After", fmt.Sprint(int(wrongEvery.Seconds())))
	case f.status == http.StatusUnauthorized && api:
		h.Set("WWW-Authenticate", `Bearer realm="codemode-bridge"`)
	case f.status == http.StatusUnauthorized:
		pages{s}.render(w, f.status, "login", frame{Title: "Sign in"})
		return
	case !api && strings.Contains(r.Header.Get("Accept"), "text/html"):
		var who *caller // whose tabs are shown: nobody's if the request comes from elsewhere
		if f.code != "host" && f.code != "origin" {
			who, _ = s.auth.identify(r, false)
		}
		pages{s}.render(w, f.status, "failure", frame{Title: strings.ToUpper(f.message[:1]) + f.message[1:], Tab: "failure", Who: who, Body: f.hint})
		return
	}
	type body struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	}
	answer(w, f.status, map[string]body{"error": {f.code, f.message, f.hint}})
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(text, '\n')) // whoever does not read it has gone
	return nil
}

// fields are the members that a body may have, with their destinations.
type fields map[string]any

func (s *Site) read(w http.ResponseWriter, r *http.Request, into fields) error {
	return readBody(w, r, s.o.Limits.MaxBody, into)
}

// readBody reads a body of at most max bytes that is a JSON object. Duplicate members
// and unknown names are refused, also if they differ from known ones only in case.
func readBody(w http.ResponseWriter, r *http.Request, max int64, into fields) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return err
		}
		return &failure{http.StatusBadRequest, "body", "the body could not be read", ""}
	}
	if body = bytes.TrimSpace(body); len(body) == 0 {
		body = []byte("{}")
	}
	if _, err := canon.Parse(body); err != nil { // duplicate names, bad UTF-8, trailing data
		return &failure{http.StatusBadRequest, "body", "the body is no JSON object: " + canon.Escape(err.Error()), ""}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return &failure{http.StatusBadRequest, "body", "the body is no JSON object", ""}
	}
	for name, text := range members {
		to, ok := into[name]
		if !ok {
			var known []string
			for k := range into {
				known = append(known, k)
			}
			slices.Sort(known)
			return invalid(fmt.Sprintf("there is no member %q", canon.Escape(name)), "the members are "+strings.Join(known, ", "))
		}
		if err := json.Unmarshal(text, to); err != nil {
			return invalid(fmt.Sprintf("the member %q is not what it should be", name), canon.Escape(err.Error()))
		}
	}
	return nil
}

func invalid(message, hint string) error {
	return &failure{http.StatusUnprocessableEntity, "invalid", message, hint}
}

func missing(what string) error {
	return &failure{http.StatusNotFound, "not_found", "this bridge has no " + what, ""}
}

// record records what somebody did here.
func (s *Site) record(ctx context.Context, who *caller, rec ledger.Record) error {
	rec.Time, rec.Approver, rec.Channel, rec.Durable = s.o.Now(), who.Name, who.channel, true
	if err := s.o.Record.Record(context.WithoutCancel(ctx), rec); err != nil {
		return fmt.Errorf("recording what %s did: %w", who.Name, err)
	}
	return nil
}
