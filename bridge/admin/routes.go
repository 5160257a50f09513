package admin

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
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
	p, runs, config, edits, accounts := pages{s}, runHandlers{s}, configHandlers{s}, edits{s}, accountHandlers{s}
	return []route{
		{"POST", "/api/login", "", s.auth.login},
		{"POST", "/api/login/begin", "", s.auth.beginSignOn},
		{"POST", "/api/login/code", approval.Look, s.auth.signInCode},
		{"POST", "/api/logout", "", s.auth.logout},
		{"GET", "/api/me", approval.Look, s.me},

		{"GET", "/api/pending", approval.Look, s.listPending},
		{"GET", "/api/pending/{id}", approval.Look, s.showPending},
		{"POST", "/api/decide/{id}", approval.Answer, s.decide},
		{"POST", "/api/always/{id}", approval.Edit, edits.always},
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
		{"GET", "/api/accounts", approval.Look, accounts.list},
		{"POST", "/api/accounts/connect", approval.Look, accounts.connect},
		{"POST", "/api/accounts/finish", approval.Look, accounts.finish},
		{"POST", "/api/accounts/disconnect", approval.Look, accounts.disconnect},
		{"GET", "/api/tools", approval.Look, s.listTools},
		{"POST", "/api/tools/accept", approval.Edit, s.acceptTool},
		{"POST", "/api/tools/block", approval.Edit, s.blockTool},
		{"GET", "/api/profiles", approval.Look, s.listProfiles},
		{"PUT", "/api/profiles", approval.Edit, edits.saveProfiles},
		{"POST", "/api/profiles/try", approval.Edit, s.tryProfiles},
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
		{"GET", "/accounts", approval.Look, accounts.page},
		{"GET", accountsDone, "", accounts.donePage},
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

// isLink reports whether somebody followed a link to the page from elsewhere, such as
// one that a webhook put into a chat. Such a request is anonymous: the answer is the
// same for everybody, and what it loads comes from here.
func isLink(r *http.Request) bool {
	return r.Method == http.MethodGet && len(r.Header.Values("Origin")) == 0 && !strings.HasPrefix(r.URL.Path, "/api/") &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// handle serves a request of a route. What goes wrong is its answer.
func (s *Site) handle(rt route, w http.ResponseWriter, r *http.Request) {
	who, err := s.admit(rt, r)
	if err == nil {
		err = rt.serve(who, w, r)
	}
	if err != nil {
		s.fail(w, r, err)
	}
}

// admit returns who makes a request, or nobody where everybody is let in. Whoever may
// not do what the route does is refused, and so is a body that is not JSON.
func (s *Site) admit(rt route, r *http.Request) (*caller, error) {
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); changes && kind != "application/json" && (r.Method != http.MethodDelete || r.ContentLength != 0) {
		return nil, &failure{http.StatusUnsupportedMediaType, "content_type", "the content type must be application/json", ""}
	}
	if rt.verb == "" {
		return nil, nil
	}
	who, err := s.auth.identify(r, changes)
	if err != nil {
		return nil, err
	}
	if !who.May(rt.verb) {
		return nil, &failure{http.StatusForbidden, "role", fmt.Sprintf("%s may not do this", canon.Escape(who.Name)),
			fmt.Sprintf("the role %s does not %s", who.Role, rt.verb)}
	}
	return who, nil
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
		pages{s}.render(w, f.status, "failure", frame{Title: capitalized(f.message), Tab: "failure", Who: who, Body: f.hint})
		return
	}
	type body struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	}
	answer(w, f.status, map[string]body{"error": {f.code, f.message, f.hint}})
}
