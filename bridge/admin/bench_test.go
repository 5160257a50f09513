package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
	"codemode-bridge/profiles"
)

const host = "127.0.0.1:7421"

// A bench is a site over a real broker, desk and store of records, with four
// approvers whose tokens are their names and "-token".
type bench struct {
	t       *testing.T
	site    *Site
	broker  *approval.Broker
	records *memstore.Store
	runs    *fakeRuns
	policy  *fakePolicy
	session *fakeSessions

	mu        sync.Mutex
	approvers *approval.Approvers
	now       func() time.Time
}

var people = []approval.Approver{
	{Name: "ada", Role: approval.Admin}, {Name: "bob", Role: approval.Decide}, {Name: "vic", Role: approval.Viewer}, {Name: "con", Role: approval.Confirmer},
	{Name: "mia", Role: approval.Decide, Risk: profiles.Medium},
}

func tokenOf(name string) string { return name + "-token-5b1f09" }

func newBench(t *testing.T, change ...func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, records: memstore.New(nil), runs: newFakeRuns(), now: time.Now,
		policy: &fakePolicy{text: `{"profiles": {}}`, revision: "one"}, session: &fakeSessions{profile: map[string]string{"s1": ""}}}
	b.broker = approval.New(approval.Options{Bridge: "here"})
	b.appoint(people)
	desk := &gate.Settler{Broker: b.broker, Recorder: b.records}
	o := Options{
		Approvers: func() *approval.Approvers { b.mu.Lock(); defer b.mu.Unlock(); return b.approvers },
		Settler:   desk, Requests: b.broker, Runs: b.runs, Records: b.records, Sessions: b.session, Policy: b.policy, Record: b.records,
		Status: func(context.Context) any {
			return map[string]any{"servers": []map[string]any{{"name": "mail", "state": "connected", "tools": 9}}, "profiles": []string{"supervised"}}
		},
		Base: "http://" + host,
		Now:  func() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.now() },
	}
	for _, c := range change {
		c(&o)
	}
	b.site = New(o)
	t.Cleanup(b.site.Close)
	return b
}

// appoint replaces the approvers.
func (b *bench) appoint(all []approval.Approver) {
	b.t.Helper()
	all = slices.Clone(all)
	for i := range all {
		all[i].Token = sha256.Sum256([]byte(tokenOf(all[i].Name)))
	}
	approvers, err := approval.NewApprovers(approval.Realm{}, all, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.approvers = approvers
}

// stopped stops the site's clock.
func (b *bench) stopped() {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := time.Now()
	b.now = func() time.Time { return at }
}

// later moves the site's clock.
func (b *bench) later(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = func() time.Time { return time.Now().Add(d) }
}

// A question is a request to ask; zero fields mean an ordinary one.
type question struct {
	run, tool, requester string
	args                 []string // one for each call
	decision             profiles.Decision
	always               *profiles.RuleSpec
	cover                approval.Cover
}

func (q question) request(t *testing.T) []approval.Request {
	t.Helper()
	if q.run == "" {
		q.run = "r1"
	}
	if q.tool == "" {
		q.tool = "send"
	}
	if q.args == nil {
		q.args = []string{`{"to":"finance@acme-corp.co","body":"Hello"}`}
	}
	d := q.decision
	if d.Risk == 0 {
		d.Risk = profiles.High
	}
	if d.Timeout == 0 {
		d.Timeout = 5 * time.Minute
	}
	d.Disposition, d.Profile, d.Revision = profiles.Ask, "supervised", "rev"
	d.Reasons = []profiles.Reason{{Kind: profiles.KindAsklist, Disposition: profiles.Ask, Pattern: "mail__*", Profile: "supervised"}}
	var all []approval.Request
	for i, text := range q.args {
		args, err := canon.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		cover := q.cover
		if to, ok := args.Value()["to"].(string); ok && d.Remember && !cover.Offered() {
			cover = approval.Cover{Kind: q.tool, Bound: []approval.Bound{{Param: "to", Kind: approval.ToRecipient, Value: to}}, Free: []string{"body"}}
		}
		all = append(all, approval.Request{
			Run: q.run, Client: "claude-code", Requester: q.requester, Server: "mail", Tool: q.tool, Script: "mail__" + q.tool, Decision: d,
			Checks:  []string{"arguments", "tool unchanged", "policy unchanged"},
			Preview: analysis.Report{Calls: []analysis.CallSite{{Name: "mail__" + q.tool, Position: analysis.Position{Line: 12, Column: 3}, Loop: true}}},
			Done:    6,
			Items: []approval.Item{{Call: 7 + i, Position: analysis.Position{Line: 12, Column: 3}, Shown: canon.Display(args, canon.DisplayOptions{}), Always: q.always, Cover: cover,
				Key: approval.Key{Session: "s1", Profile: "supervised", Server: "mail", Tool: q.tool, Definition: "def", Revision: "rev", Args: args.Digest()}}},
		})
	}
	return all
}

// ask puts a question and waits until people can see it. The channel has the
// verdict of each call.
func (b *bench) ask(q question) (approval.StoredRequest, <-chan approval.Verdict) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel)
	before := b.open()
	verdicts := make(chan approval.Verdict, 20)
	all := q.request(b.t)
	for _, r := range all {
		go func() {
			v, err := b.broker.Ask(ctx, r)
			if err == nil {
				verdicts <- v
			}
		}()
	}
	for {
		changed := b.broker.Changed()
		for _, e := range b.open() {
			if !slices.ContainsFunc(before, func(o approval.StoredRequest) bool { return o.ID == e.ID }) && len(e.Items) == len(all) {
				return e, verdicts
			}
		}
		select {
		case <-changed:
		case <-b.t.Context().Done():
			b.t.Fatal("the question was not put to people")
		}
	}
}

func (b *bench) open() []approval.StoredRequest {
	b.t.Helper()
	all, err := b.broker.Requests(context.Background(), approval.Filter{Open: time.Now()})
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// A visitor makes requests: with a token, or with a cookie and a secret.
type visitor struct {
	b                     *bench
	token, cookie, secret string
	headers               []string
}

func (b *bench) as(name string) visitor { return visitor{b: b, token: tokenOf(name)} }

// atPage signs somebody in on the page.
func (b *bench) atPage(name string) visitor {
	b.t.Helper()
	v := visitor{b: b}
	return v.signIn(fmt.Sprintf(`{"token":%q}`, tokenOf(name)))
}

func (v visitor) signIn(body string) visitor {
	v.b.t.Helper()
	res := v.do("POST", "/api/login", body)
	var out struct{ Secret string }
	res.want(200).into(&out)
	set := res.header.Values("Set-Cookie")
	v.cookie, v.secret = strings.Split(set[len(set)-1], ";")[0], out.Secret
	return v
}

// with is the visitor with other headers.
func (v visitor) with(headers ...string) visitor {
	v.headers = append(slices.Clone(v.headers), headers...)
	return v
}

type response struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	body   string
}

func (v visitor) request(method, path, body string) *http.Request {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, "http://"+host+path, content)
	if method != "GET" && (method != "DELETE" || body != "") {
		r.Header.Set("Content-Type", "application/json")
	}
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	if v.cookie != "" {
		r.Header.Set("Cookie", v.cookie)
	}
	if v.secret != "" {
		r.Header.Set("X-Codemode-Secret", v.secret)
	}
	for i := 0; i+1 < len(v.headers); i += 2 {
		if v.headers[i] == "Host" {
			r.Host = v.headers[i+1]
			continue
		}
		r.Header.Add(v.headers[i], v.headers[i+1])
		if v.headers[i] == "Content-Type" {
			r.Header.Set("Content-Type", v.headers[i+1])
		}
	}
	return r
}

func (v visitor) do(method, path, body string) response {
	v.b.t.Helper()
	w := httptest.NewRecorder()
	v.b.site.ServeHTTP(w, v.request(method, path, body))
	v.b.documented(method, path, w.Code, w.Header(), w.Body.Bytes())
	return response{v.b.t, method + " " + path + " " + body, w.Code, w.Header(), w.Body.String()}
}

// documented checks an answer of the API by its documentation.
func (b *bench) documented(method, path string, status int, header http.Header, body []byte) {
	b.t.Helper()
	if !strings.HasPrefix(path, "/api/") {
		return
	}
	c, err := theContract()
	if err != nil {
		b.t.Fatal(err)
	}
	path, _, _ = strings.Cut(path, "?")
	if err := c.answer(method, path, status, header, body); err != nil {
		b.t.Errorf("%s %s: %v", method, path, err)
	}
}

func (r response) want(status int) response {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s: status %d, want %d: %s", r.what, r.status, status, r.body)
	}
	return r
}

// says checks parts of the body.
func (r response) says(parts ...string) response {
	r.t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.body, p) {
			r.t.Errorf("%s: %q is missing from %s", r.what, p, r.body)
		}
	}
	return r
}

func (r response) into(v any) {
	r.t.Helper()
	d := json.NewDecoder(strings.NewReader(r.body))
	if err := d.Decode(v); err != nil {
		r.t.Fatalf("%s: %v in %s", r.what, err, r.body)
	}
}

// refused checks the one shape of errors.
func (r response) refused(status int, code string) response {
	r.t.Helper()
	r.want(status)
	var out map[string]map[string]string
	r.into(&out)
	if len(out) != 1 || out["error"]["code"] != code || out["error"]["message"] == "" {
		r.t.Fatalf("%s: want the error %q, got %s", r.what, code, r.body)
	}
	return r
}

// decision is the body of a decision on an entry.
func decision(e approval.StoredRequest, word string, more ...string) string {
	return fmt.Sprintf(`{"decision":%q,"digest":%q%s}`, word, e.Digest(), strings.Join(append([]string{""}, more...), ","))
}

// recorded returns the records of an event.
func (b *bench) recorded(event ledger.Event) []ledger.Record {
	b.t.Helper()
	var all []ledger.Record
	for row, err := range b.records.Rows(context.Background(), ledger.Query{Events: []ledger.Event{event}}) {
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, row.Record)
	}
	return all
}

// fakeRuns are runs whose scripts the test itself plays.
type fakeRuns struct {
	mu      sync.Mutex
	all     []Run
	stopped []string
	resumed []string
	started func(id string) // after a run was started
	changed chan struct{}
}

func newFakeRuns() *fakeRuns { return &fakeRuns{changed: make(chan struct{})} }

func (f *fakeRuns) Start(_ context.Context, profile, code string, input json.RawMessage, requester string) (string, error) {
	if profile == "nowhere" {
		return "", fmt.Errorf("there is no profile %q", profile)
	}
	f.mu.Lock()
	id := fmt.Sprintf("r%d", len(f.all)+1)
	f.all = append(f.all, Run{ID: id, Profile: profile, Requester: requester, State: Running, Started: time.Now()})
	started := f.started
	f.mu.Unlock()
	if started != nil {
		started(id)
	}
	return id, nil
}

func (f *fakeRuns) Run(_ context.Context, id string) (Run, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.all, func(r Run) bool { return r.ID == id })
	if i < 0 {
		return Run{}, false
	}
	return f.all[i], true
}

func (f *fakeRuns) List(context.Context) []Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
}

func (f *fakeRuns) Stop(ctx context.Context, id, by string) error {
	run, ok := f.Run(ctx, id)
	if !ok || run.State.Over() {
		return ErrUnknown
	}
	f.mu.Lock()
	f.stopped = append(f.stopped, id+" by "+by)
	f.mu.Unlock()
	f.end(id, Stopped, "")
	return nil
}

func (f *fakeRuns) Resume(ctx context.Context, id, by string) error {
	run, ok := f.Run(ctx, id)
	switch {
	case !ok:
		return ErrUnknown
	case run.State.Over():
		return ErrEnded
	case run.State != Paused && run.State != Interrupted: // it is going on
		return nil
	}
	f.mu.Lock()
	f.resumed = append(f.resumed, id+" by "+by)
	f.mu.Unlock()
	return nil
}

func (f *fakeRuns) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *fakeRuns) set(all []Run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = all
}

func (f *fakeRuns) end(id string, state RunState, result string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.all {
		if f.all[i].ID == id {
			f.all[i].State, f.all[i].Ended = state, time.Now()
			if result != "" {
				f.all[i].Result = json.RawMessage(result)
			}
		}
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

type fakePolicy struct {
	mu             sync.Mutex
	text, revision string
	saved          int
}

func (f *fakePolicy) Profiles() []Profile {
	return []Profile{{Name: "supervised", Tool: "codemode_eval_supervised", Default: true, Rules: json.RawMessage(`{"asklist":["mail__*"]}`)}}
}

func (f *fakePolicy) Source(context.Context) (string, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text, f.revision, nil
}

func (f *fakePolicy) Save(_ context.Context, text, revision, _ string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case revision != f.revision:
		return ErrChanged
	case !json.Valid([]byte(text)):
		return fmt.Errorf("config.json:3:7: there is no value here")
	}
	f.text, f.revision, f.saved = text, f.revision+"+", f.saved+1
	return nil
}

func (f *fakePolicy) Try(_ context.Context, text string) (WhatIf, error) {
	if !json.Valid([]byte(text)) {
		return WhatIf{}, fmt.Errorf("config.json:3:7: there is no value here")
	}
	return WhatIf{Days: 7, Calls: 12, Same: 9, Looser: 2, Stricter: 1, Before: 1.5, After: 0.5, Text: "of the last 7 days' 12 calls"}, nil
}

func (f *fakePolicy) Propose(_ context.Context, profile string, rule profiles.RuleSpec) (Proposal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if profile != "supervised" {
		return Proposal{}, fmt.Errorf("the profile %s is not written in this file", profile)
	}
	return Proposal{Profile: profile, Diff: []string{"+ " + *rule.Name}, Revision: f.revision, Text: `{"with":"` + *rule.Name + `"}`}, nil
}

type fakeSessions struct {
	mu      sync.Mutex
	profile map[string]string
}

func (f *fakeSessions) List() []Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []Session{{ID: "s1", Client: "claude-code", Profile: f.profile["s1"]}}
}

func (f *fakeSessions) Tighten(_ context.Context, id, profile, _ string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.profile[id]; !ok {
		return ErrUnknown
	}
	if profile == "nowhere" {
		return fmt.Errorf("there is no profile %q", profile)
	}
	f.profile[id] = profile
	return nil
}

// state is all that a request could have changed.
func (b *bench) state() string {
	b.t.Helper()
	var out bytes.Buffer
	entries, _ := b.broker.Requests(context.Background(), approval.Filter{})
	grants, _ := b.broker.Grants(context.Background())
	head, _, _ := b.records.Head(context.Background())
	json.NewEncoder(&out).Encode([]any{entries, grants, head, b.runs.List(b.t.Context()), b.policy.text, b.session.List()})
	return out.String()
}
