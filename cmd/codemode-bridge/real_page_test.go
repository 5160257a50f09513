//go:build real

package main_test

// The approval page in a real browser: every action by click and by key, hostile text,
// both colour schemes, a phone. With `go test -artifacts` its pictures are kept.

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/admin"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
	"codemode-bridge/profiles"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A pageBench is a site that listens on a port, with a real broker, settler and records.
type pageBench struct {
	t       *testing.T
	site    *admin.Site
	url     string
	broker  *approval.Broker
	records *memstore.Store
	runs    *pageRuns
	policy  *pagePolicy

	approvers atomic.Pointer[approval.Approvers]
	server    *httptest.Server
	cut       atomic.Bool // while set, no answer gets out
}

func newPageBench(t *testing.T, changes ...func(*admin.Options)) *pageBench {
	b := &pageBench{t: t, broker: approval.New(approval.Options{Limits: approval.Limits{PerRun: 50, PerSession: 50, Budget: 200}}),
		records: memstore.New(nil), runs: &pageRuns{changed: make(chan struct{})}, policy: &pagePolicy{}}
	var people []approval.Approver
	for name, role := range map[string]approval.Role{"ada": approval.Admin, "bob": approval.Decide, "vic": approval.Viewer} {
		people = append(people, approval.Approver{Name: name, Role: role, Token: sha256.Sum256([]byte(name + "-token"))})
	}
	approvers, err := approval.NewApprovers(approval.Realm{}, people, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.approvers.Store(approvers)
	o := admin.Options{
		Approvers: b.approvers.Load,
		Settler:   &gate.Settler{Broker: b.broker, Recorder: b.records}, Requests: b.broker, Records: b.records, Record: b.records, Runs: b.runs, Policy: b.policy,
		Status: func(context.Context) any {
			return json.RawMessage(`{"servers":[{"name":"mail","state":"connected","tools":9},{"name":"github","state":"failed","why":"connection refused","tools":0}],"profiles":["safe","supervised"]}`)
		},
	}
	for _, change := range changes {
		change(&o)
	}
	b.site = admin.New(o)
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.cut.Load() {
			panic(http.ErrAbortHandler)
		}
		b.site.ServeHTTP(w, r)
	}))
	b.url = b.server.URL
	t.Cleanup(b.server.Close)
	t.Cleanup(b.site.Close)
	return b
}

// A pageQuestion is a request to put to people; args has one text for each call.
type pageQuestion struct {
	run, tool, client string
	args              []string
	decision          profiles.Decision
	cover             approval.Cover // of each of the calls
	sources           []string
}

// Calls whose yes may cover others, as the gate says of calls like them: a search, of
// which only the folder is bound, and what changes something elsewhere.
var (
	searchMail = pageQuestion{tool: "search", args: []string{`{"folder":"inbox","query":"invoices"}`}, decision: atMedium, cover: approval.Cover{Kind: "search", Bound: []approval.Bound{{Param: "folder", Kind: approval.Exact, Value: "inbox"}}, Free: []string{"query"}}}
	draftMail  = pageQuestion{tool: "draft", args: []string{plainMail}, decision: atMedium, cover: approval.Cover{Kind: "draft", Bound: []approval.Bound{{Param: "to", Kind: approval.ToRecipient, Value: "finance@acme-corp.co"}}, Free: []string{"body", "subject"}, RunOnly: true}}
	inShop     = approval.Cover{Kind: "create_issue", Bound: []approval.Bound{{Param: "owner", Kind: approval.Exact, Value: "acme"}, {Param: "repo", Kind: approval.Exact, Value: "shop"}}, Free: []string{"labels", "title"}, RunOnly: true}
)

func (q pageQuestion) in(run string) pageQuestion {
	q.run = run
	return q
}

func (b *pageBench) ask(q pageQuestion) (approval.StoredRequest, <-chan approval.Verdict) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel)
	d := q.decision
	d.Disposition, d.Profile, d.Revision = profiles.Ask, "supervised", "rev"
	if d.Risk == 0 {
		d.Risk = profiles.High
	}
	if d.Timeout == 0 {
		d.Timeout = 10 * time.Minute
	}
	d.Reasons = []profiles.Reason{{Kind: profiles.KindAsklist, Disposition: profiles.Ask, Pattern: "mail__*", Profile: "supervised"},
		{Kind: profiles.KindRisk, Risk: d.Risk, Detail: "openWorldHint, the name says send"}}
	client := q.client
	if client == "" {
		client = "claude-code"
	}
	if q.run == "" {
		q.run = "r1"
	}
	before := b.open()
	verdicts := make(chan approval.Verdict, len(q.args))
	for i, text := range q.args {
		args, err := canon.Parse([]byte(text))
		if err != nil {
			b.t.Fatal(err)
		}
		r := approval.Request{Run: q.run, Client: client, Server: "mail", Tool: q.tool, Script: "mail__" + q.tool, Decision: d,
			Checks:  []string{"arguments", "tool unchanged", "policy unchanged"},
			Preview: analysis.Report{Calls: []analysis.CallSite{{Name: "filesystem__read_file", Position: analysis.Position{Line: 3, Column: 14}}, {Name: "mail__" + q.tool, Position: analysis.Position{Line: 7, Column: 9}, Loop: true}}},
			Done:    6,
			Items: []approval.Item{{Call: 7 + i, Position: analysis.Position{Line: 7, Column: 9}, Shown: canon.Display(args, canon.DisplayOptions{}), Sources: q.sources, Cover: q.cover,
				Key: approval.Key{Session: "s1", Profile: "supervised", Server: "mail", Tool: q.tool, Definition: "def", Revision: "rev", Args: args.Digest()}}}}
		go func() {
			if v, err := b.broker.Ask(ctx, r); err == nil {
				verdicts <- v
			}
		}()
	}
	for {
		changed := b.broker.Changed()
		for _, e := range b.open() {
			if !slices.ContainsFunc(before, func(o approval.StoredRequest) bool { return o.ID == e.ID }) && len(e.Items) == len(q.args) {
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

func (b *pageBench) open() []approval.StoredRequest {
	all, err := b.broker.Requests(context.Background(), approval.Filter{Open: time.Now()})
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// verdict waits for a verdict.
func (b *pageBench) verdict(c <-chan approval.Verdict) approval.Verdict {
	b.t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(3 * time.Minute):
		b.t.Fatal("there is no verdict")
		return approval.Verdict{}
	}
}

type pageRuns struct {
	mu      sync.Mutex
	all     []admin.Run
	changed chan struct{}
}

func (p *pageRuns) Start(context.Context, string, string, json.RawMessage, string) (string, error) {
	return "", fmt.Errorf("no runs are started here")
}
func (p *pageRuns) Run(_ context.Context, id string) (admin.Run, bool) { return admin.Run{}, false }
func (p *pageRuns) List(context.Context) []admin.Run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}
func (p *pageRuns) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}
func (p *pageRuns) Resume(context.Context, string, string) error { return admin.ErrUnknown }
func (p *pageRuns) Stop(_ context.Context, id, _ string) error {
	p.set(func() {
		for i := range p.all {
			if p.all[i].ID == id {
				p.all[i].State = admin.Stopped
			}
		}
	})
	return nil
}
func (p *pageRuns) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

type pagePolicy struct {
	mu   sync.Mutex
	text string
}

func (p *pagePolicy) Profiles() []admin.Profile {
	return []admin.Profile{{Name: "safe", Tool: "codemode_eval_safe", Rules: json.RawMessage(`{"allowlist":["time__*"]}`)},
		{Name: "supervised", Tool: "codemode_eval_supervised", Default: true, Rules: json.RawMessage(`{"asklist":["mail__*"],"default":"risk"}`)}}
}
func (p *pagePolicy) Source(context.Context) (string, string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text == "" {
		p.text = "{\n  \"defaultProfile\": \"supervised\"\n}"
	}
	return p.text, fmt.Sprint(len(p.text)), nil
}
func (p *pagePolicy) Propose(context.Context, string, profiles.RuleSpec) (admin.Proposal, error) {
	return admin.Proposal{}, errors.New("no rule is proposed here")
}
func (p *pagePolicy) Try(_ context.Context, text string) (admin.WhatIf, error) {
	if !json.Valid([]byte(text)) {
		return admin.WhatIf{}, fmt.Errorf("config.json:2:3: a value is missing")
	}
	return admin.WhatIf{Days: 7, Calls: 1204, Same: 1150, Looser: 31, Stricter: 11, Unknown: 12, Before: 6.4, After: 2, Text: "1204 calls decided anew <b>\n\nlooser than before\n   CALLS  WAS  IS     BY\n1  31     ask  allow  rule reads (allow) [profile supervised]\n"}, nil
}
func (p *pagePolicy) Save(_ context.Context, text, _, _ string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !json.Valid([]byte(text)) {
		return fmt.Errorf("config.json:2:3: a value is missing")
	}
	p.text = text
	return nil
}

// A tab is a browser window with a profile of its own: no cookies, nothing stored.
type tab struct {
	t     *testing.T
	b     *pageBench
	ctx   context.Context
	mu    sync.Mutex
	asked []string // addresses that were loaded
	odd   []string // dialogs, and errors on the console
}

// browser starts one browser for all tabs of a test.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	if path == "" {
		path = "chromium"
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting chromium: %v", err)
	}
	return ctx
}

func (b *pageBench) tab(parent context.Context) *tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	b.t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	b.t.Cleanup(cancel)
	w := &tab{t: b.t, b: b, ctx: ctx}
	w.do(chromedp.EmulateViewport(1280, 900))
	err := chromedp.Listen(ctx, func(event any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			w.asked = append(w.asked, e.Request.URL)
		case *page.EventJavascriptDialogOpening:
			w.odd = append(w.odd, "dialog: "+e.Message)
			go chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		case *runtime.EventExceptionThrown:
			text := e.ExceptionDetails.Text
			if e.ExceptionDetails.Exception != nil {
				text += " " + e.ExceptionDetails.Exception.Description
			}
			w.odd = append(w.odd, text)
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

func (w *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	if err := chromedp.Do(w.ctx, steps...); err != nil {
		w.t.Fatalf("%v; the page says:\n%s", err, w.text())
	}
}

// text is the text of the page, for the message of a test that fails.
func (w *tab) text() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// inPage is the value of an expression in the page.
func inPage[T any](w *tab, expression string) T {
	w.t.Helper()
	v, err := chromedp.Run(w.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		w.t.Fatalf("%.200s: %v; the page says:\n%s", expression, err, w.text())
	}
	return v
}

func (w *tab) open(path string) {
	w.t.Helper()
	w.do(chromedp.Navigate(w.b.url + path))
}

func (w *tab) press(selector string) {
	w.t.Helper()
	w.until(`document.readyState === "complete"`) // before its scripts run, a press has no effect
	for range 20 {                                // the page may have replaced the element before it is pressed
		err := chromedp.Do(w.ctx, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "Could not find node") {
			w.t.Fatalf("pressing %s: %v; the page says:\n%s", selector, err, w.text())
		}
	}
	w.t.Fatalf("%s does not stay to be pressed", selector)
}

func (w *tab) send(selector, keys string) {
	w.t.Helper()
	w.do(chromedp.SendKeys(chromedp.CSS(selector), keys))
}

// until waits for an expression to be true. The page may be loaded anew meanwhile.
func (w *tab) until(expression string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 2*time.Minute)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`Boolean(`+expression+`)`)); ok && err == nil {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("it never came to %s; the page says:\n%s", expression, w.text())
		}
	}
}

func (w *tab) signIn(name string) *tab {
	w.t.Helper()
	w.open("/")
	w.send("#token", name+"-token"+kb.Enter)
	w.until(`document.body.dataset.tab === "pending" && document.querySelector("#link.on") !== null`)
	return w
}

// shows waits until a request is the one that keys decide on, and takes decisions.
func (w *tab) shows(e approval.StoredRequest) {
	w.t.Helper()
	w.press(`.row[data-id="` + e.ID + `"] .open`)
	w.until(`document.querySelector("#detail article")?.dataset.id === "` + e.ID + `"`)
}

// ready waits until the request can be approved.
func (w *tab) ready() {
	w.t.Helper()
	w.until(`document.querySelector("#detail [data-do=approve]")?.disabled === false`)
}

func (w *tab) key(keys string) { w.t.Helper(); w.do(chromedp.KeyEvent(keys)) }

// letter presses a key as a keyboard does: the letter is typed only if the page does not
// prevent it.
func (w *tab) letter(key string) {
	w.t.Helper()
	down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key, UnmodifiedText: key}
	up := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: key}
	for _, e := range []input.DispatchKeyEventParams{down, up} {
		if _, err := chromedp.Call(w.ctx, input.DispatchKeyEvent, e); err != nil {
			w.t.Fatal(err)
		}
	}
}

// click presses a button of the request that is shown.
func (w *tab) click(do string) {
	w.t.Helper()
	w.press(`[data-do=` + do + `]`)
}

// after waits until the request that is shown has a status.
func (w *tab) after(status string) {
	w.t.Helper()
	w.until(`document.querySelector("#detail article")?.dataset.status === "` + status + `"`)
}

func (w *tab) fill(selector, text string) {
	w.t.Helper()
	inPage[chromedp.Void](w, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.focus(); e.select(); })()`, selector))
	w.do(chromedp.KeyEvent(text))
}

// picture takes a picture of what is in the window.
func (w *tab) picture(name string) {
	w.t.Helper()
	png, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.t.ArtifactDir(), name+".png"), png, 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// quiet checks that there was no dialog, no error on the console, and nothing loaded from
// elsewhere.
func (w *tab) quiet() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, odd := range w.odd {
		w.t.Errorf("the page: %s", odd)
	}
	if len(w.asked) == 0 {
		w.t.Error("no request was seen")
	}
	for _, u := range w.asked {
		if !strings.HasPrefix(u, w.b.url+"/") {
			w.t.Errorf("the page loads %s", u)
		}
	}
}

const plainMail = `{"to":"finance@acme-corp.co","subject":"Q3 invoices","body":"Hello"}`

func TestRealPageSignIn(t *testing.T) {
	b := newPageBench(t)
	people := b.approvers.Swap(nil) // while there are approvers there is no owner's link
	parent := browser(t)
	w := b.tab(parent)
	link, _ := b.site.LoginURL(b.url)
	w.do(chromedp.Navigate(link))
	w.until(`document.body.dataset.tab === "pending"`)
	if at := inPage[string](w, `location.href + document.referrer + document.cookie`); at != b.url+"/" {
		t.Errorf("after signing in the page knows %q", at)
	}
	entries := inPage[int](w, `history.length`)
	_, code, _ := strings.Cut(link, "code=")
	visited, err := chromedp.Run(w.ctx, chromedp.NavigationEntries())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range visited.Entries {
		if strings.Contains(v.URL, code) {
			t.Errorf("the code is in the history of %d pages: %s", entries, v.URL)
		}
	}
	if who := inPage[string](w, `document.querySelector(".who").innerText`); !strings.Contains(who, "owner (admin)") {
		t.Errorf("signed in as %q", who)
	}
	w.quiet()

	// The link works only once.
	again := b.tab(parent)
	again.do(chromedp.Navigate(link))
	again.until(`document.querySelector("#login-error").textContent.includes("not good")`)
	b.approvers.Store(people)
	// A wrong token is refused; the right one signs in, and leads to where one wanted to go.
	again.open("/grants")
	again.send("#token", "wrong"+kb.Enter)
	again.until(`document.querySelector("#login-error").textContent !== ""`)
	again.fill("#token", "bob-token"+kb.Enter)
	again.until(`document.body.dataset.tab === "grants"`)
	again.click("logout")
	again.until(`location.pathname === "/login"`)
	again.open("/")
	again.until(`document.querySelector("#login") !== null`)

	// Following a link from another site, such as a chat, keeps one signed in.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(rw, `<a id="go" href="%s/grants">look</a>`, strings.Replace(b.url, "127.0.0.1", "localhost", 1))
	}))
	defer elsewhere.Close()
	local := b.tab(parent)
	local.do(chromedp.Navigate(strings.Replace(b.url, "127.0.0.1", "localhost", 1) + "/"))
	local.send("#token", "bob-token"+kb.Enter)
	local.until(`document.body.dataset.tab === "pending"`)
	local.do(chromedp.Navigate(elsewhere.URL))
	local.press("#go")
	local.until(`document.body.dataset.tab === "grants"`)
}

func TestRealPageDecides(t *testing.T) {
	b := newPageBench(t)
	w := b.tab(browser(t)).signIn("bob")

	// It appears without a reload, with a countdown, and cannot be approved at once,
	// neither by a click nor by a key.
	inPage[chromedp.Void](w, `window.same = true; window.early = [];
		new MutationObserver(() => {
			const article = document.querySelector("#detail article");
			if (!article || window.at) return;
			window.at = performance.now();
			document.dispatchEvent(new KeyboardEvent("keydown", {key: "a", bubbles: true}));
			document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "a", bubbles: true}));
			document.querySelector("[data-do=approve]").click();
			window.early.push(document.querySelector("[data-do=approve]").disabled);
		}).observe(document.body, {childList: true, subtree: true});`)
	e, verdicts := b.ask(pageQuestion{tool: "send", args: []string{plainMail}})
	w.until(`window.at > 0`)
	w.ready()
	if took := inPage[float64](w, `performance.now() - window.at`); took < 500 {
		t.Errorf("a yes was taken after %v ms", took)
	}
	if !inPage[bool](w, `window.same && window.early[0] && document.activeElement.dataset.do !== "approve"`) {
		t.Error("the page was loaded again, or the yes was on offer at once")
	}
	if n := inPage[string](w, `document.title + document.querySelector("#open").textContent`); !strings.HasPrefix(n, "(1) ") || !strings.HasSuffix(n, "1") {
		t.Errorf("the count is %q", n)
	}
	w.until(`/^9:5\d left$/.test(document.querySelector("#detail .left").textContent)`)
	was := inPage[string](w, `document.querySelector("#detail .left").textContent`)
	w.until(fmt.Sprintf(`document.querySelector("#detail .left").textContent !== %q`, was))
	if len(verdicts) != 0 || len(b.open()) != 1 {
		t.Fatal("it was settled by what came too early")
	}
	w.click("approve")
	w.after("approved")
	if v := b.verdict(verdicts); !v.Approve || v.By != "bob" || v.Channel != "page" || v.Scope != "" {
		t.Errorf("the verdict is %+v", v)
	}
	// What becomes of the call is shown as it happens.
	for _, step := range []ledger.Record{{Event: ledger.Intent}, {Event: ledger.Outcome, Outcome: ledger.Done}} {
		step.Run, step.Call, step.Server, step.Tool = e.Run, 7, "mail", "send"
		if err := b.records.Record(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		want := map[ledger.Event]string{ledger.Intent: "sending", ledger.Outcome: "done"}[step.Event]
		w.until(`document.querySelector(".states")?.textContent.includes("` + want + `")`)
	}

	for _, row := range []struct {
		name string
		do   func()
		want approval.Verdict
	}{
		{"a", func() { w.ready(); w.key("a") }, approval.Verdict{Approve: true}},
		{"d", func() { w.ready(); w.key("d") }, approval.Verdict{Reason: approval.Declined}},
		{"click deny", func() { w.click("deny") }, approval.Verdict{Reason: approval.Declined}},
		{"x", func() { w.ready(); w.key("x") }, approval.Verdict{Reason: approval.Declined, Stop: true}},
		{"r", func() {
			w.ready()
			w.letter("r")
			w.until(`document.activeElement.name === "reason"`)
			w.key("a bad address, ask me" + kb.Enter) // in a field, letters are text
		}, approval.Verdict{Reason: approval.Declined, Text: "a bad address, ask me"}},
		{"click why", func() {
			w.click("why")
			w.fill("#reason", "why not")
			w.click("why")
		}, approval.Verdict{Reason: approval.Declined, Text: "why not"}},
		{"e", func() {
			w.ready()
			w.letter("e")
			w.until(`document.activeElement.name === "args"`)
			w.fill("#args", `{"to":"x@acme-corp.co",`)
			w.until(`document.querySelector("#args-error").textContent !== ""`)
			w.click("approve") // too soon
			w.fill("#args", `{"to":"x@acme-corp.co","n":9007199254740993}`)
			w.until(`document.querySelector("[data-do=approve]").textContent.includes("as edited")`)
			w.click("approve")
		}, approval.Verdict{Approve: true, Args: json.RawMessage(`{"to":"x@acme-corp.co","n":9007199254740993}`)}},
	} {
		e, verdicts := b.ask(pageQuestion{run: "run " + row.name, tool: "send", args: []string{plainMail}})
		w.until(`document.querySelector('.row[data-id="` + e.ID + `"]') !== null`)
		w.shows(e)
		row.do()
		v := b.verdict(verdicts)
		said := approval.Verdict{Approve: v.Approve, Scope: v.Scope, Reason: v.Reason, Stop: v.Stop, Text: v.Text, Args: v.Args}
		if diff := cmp.Diff(row.want, said, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: the verdict (-want +got):\n%s", row.name, diff)
		}
		w.after(map[bool]string{true: "approved", false: "denied"}[v.Approve])
	}
	w.quiet()
}

// The buttons of a request stay where they first were: one that moves is missed, or
// another is pressed in its place.
func TestRealPageButtonsStay(t *testing.T) {
	b := newPageBench(t)
	w := b.tab(browser(t)).signIn("ada")
	inPage[bool](w, `(() => {
		window.places = {};
		const look = () => {
			const deny = document.querySelector("#detail article [data-do=deny]");
			if (deny) (window.places[deny.closest("article").dataset.id] ??= new Set()).add(Math.round(deny.getBoundingClientRect().top));
			requestAnimationFrame(look);
		};
		look();
		return true;
	})()`)
	for i := range 3 {
		e, _ := b.ask(pageQuestion{run: fmt.Sprint("run ", i), tool: "send", args: []string{plainMail}})
		w.until(`document.querySelector('.row[data-id="` + e.ID + `"]') !== null`)
		w.shows(e)
		w.ready()
		if places := inPage[string](w, `[...window.places["`+e.ID+`"]].join(" ")`); places == "" || strings.Contains(places, " ") {
			t.Errorf("the button to deny is at %q", places)
		}
	}
	w.quiet()
}

// scopes are what a yes may hold for, as the page offers it.
const scopes = `[...document.querySelectorAll("#detail [name=scope]")].map((e) => e.value).join(" ")`

func TestRealPageKinds(t *testing.T) {
	b := newPageBench(t)
	parent := browser(t)
	w := b.tab(parent).signIn("ada")
	next := func(q pageQuestion) (approval.StoredRequest, <-chan approval.Verdict) {
		e, verdicts := b.ask(q)
		w.until(`document.querySelector('.row[data-id="` + e.ID + `"]') !== null`)
		w.shows(e)
		return e, verdicts
	}
	// Critical: a reason, and time to read it.
	_, verdicts := next(pageQuestion{run: "critical", tool: "drop", args: []string{`{"table":"orders"}`}, decision: profiles.Decision{Risk: profiles.Critical, RequireReason: true}})
	w.ready()
	if got := inPage[string](w, scopes); got != "" {
		t.Errorf("a critical call may be allowed for %q", got)
	}
	w.click("approve")
	w.until(`document.activeElement.name === "reason"`)
	w.key("read all of it")
	w.click("approve")
	if v := b.verdict(verdicts); !v.Approve || v.Text != "read all of it" {
		t.Errorf("critical: %+v", v)
	}
	// Manual: the name, typed.
	_, verdicts = next(pageQuestion{run: "manual", tool: "wipe", args: []string{`{}`}, decision: profiles.Decision{Manual: true}})
	w.ready()
	w.click("approve")
	w.until(`document.activeElement.name === "typed"`)
	w.fill("#typed", "wip")
	w.click("approve")
	w.until(`document.querySelector("#said").textContent.includes("typed")`)
	w.fill("#typed", "wipe")
	w.ready()
	w.click("approve")
	if v := b.verdict(verdicts); !v.Approve || v.Typed != "wipe" {
		t.Errorf("manual: %+v", v)
	}
	// Quorum: the first approval of two counts and is shown, the other settles it.
	e, verdicts := next(pageQuestion{run: "quorum", tool: "pay", args: []string{`{"amount":100}`}, decision: profiles.Decision{Quorums: []profiles.Quorum{{Need: 2}}}})
	w.ready()
	w.click("approve")
	w.until(`document.querySelector(".votes")?.textContent.includes("1 of 2") && document.querySelector(".may-not") !== null`)
	other := b.tab(parent).signIn("bob")
	other.shows(e)
	other.ready()
	other.click("approve")
	if v := b.verdict(verdicts); v.By != "ada and bob" {
		t.Errorf("quorum: %+v", v)
	}
	w.after("approved") // the event stream brings it
	w.until(`document.querySelector(".outcome").textContent.includes("ada and bob")`)
	// A loop: by row.
	_, verdicts = next(pageQuestion{run: "loop", tool: "send", args: []string{`{"to":"a@x.co"}`, `{"to":"b@x.co"}`, `{"to":"c@x.co"}`}})
	w.ready()
	w.press(`.call[value="8"]`)
	w.until(`document.querySelector("[data-do=approve]").textContent.includes("2 of 3")`)
	w.click("approve")
	yes := 0
	for range 3 {
		if b.verdict(verdicts).Approve {
			yes++
		}
	}
	if yes != 2 {
		t.Errorf("%d of the loop were allowed", yes)
	}
	// For the session.
	_, verdicts = next(searchMail.in("session"))
	w.ready()
	if got, want := inPage[string](w, scopes), "once run session"; got != want {
		t.Errorf("a search may be allowed for %q, want %q", got, want)
	}
	w.press(`[name=scope][value=session]`)
	w.until(`document.querySelector("[data-do=approve]").textContent.includes("session")`)
	w.click("approve")
	if v := b.verdict(verdicts); v.Scope != approval.SessionScope {
		t.Errorf("session: %+v", v)
	}
	// For the run, up to a number: more is not offered of what changes something elsewhere.
	_, verdicts = next(draftMail.in("this run"))
	w.ready()
	if got, want := inPage[string](w, scopes), "once run"; got != want {
		t.Errorf("a draft may be allowed for %q, want %q", got, want)
	}
	w.press(`[name=scope][value=run]`)
	inPage[chromedp.Void](w, `document.querySelector("[name=count]").value = "100"`)
	w.until(`document.querySelector("[data-do=approve]").textContent.includes("in this run")`)
	w.click("approve")
	if v := b.verdict(verdicts); v.Scope != approval.RunScope || v.Count != 100 {
		t.Errorf("run: %+v", v)
	}
	// All identical ones.
	var all []<-chan approval.Verdict
	for i := range 3 {
		e, verdicts = b.ask(pageQuestion{run: fmt.Sprint("same ", i), tool: "send", args: []string{plainMail}})
		all = append(all, verdicts)
	}
	w.until(`document.querySelectorAll(".row").length === 3`)
	w.shows(e)
	w.ready()
	w.click("approve-all")
	for _, verdicts := range all {
		if v := b.verdict(verdicts); !v.Approve {
			t.Errorf("identical: %+v", v)
		}
	}
	// Several at once, after moving among them by key.
	all = nil
	for i := range 4 {
		_, verdicts = b.ask(pageQuestion{run: fmt.Sprint("many ", i), tool: "send", args: []string{fmt.Sprintf(`{"to":"n%d@x.co"}`, i)}, decision: profiles.Decision{Risk: profiles.Medium}})
		all = append(all, verdicts)
	}
	w.until(`document.querySelectorAll(".row").length === 4`)
	w.press(".row .open")
	w.until(`document.querySelector(".row.chosen") === document.querySelectorAll(".row")[0]`)
	w.key("jj" + kb.ArrowDown + "k")
	w.until(`document.querySelector(".row.chosen") === document.querySelectorAll(".row")[2] && document.querySelector("#detail article").dataset.id === document.querySelector(".row.chosen").dataset.id`)
	w.press(`.row:nth-child(1) .pick`)
	w.press(`.row:nth-child(2) .pick`)
	w.until(`document.querySelector("[data-do=many-approve]").disabled === false && document.querySelector("#picked").textContent === "2 selected"`)
	w.click("many-approve")
	w.until(`document.querySelectorAll(".row").length === 2`)
	w.press(`#pick-all`)
	w.click("many-deny")
	for i, verdicts := range all {
		if v := b.verdict(verdicts); v.Approve != (i < 2) {
			t.Errorf("many: %d is %+v", i, v)
		}
	}
	// Somebody else decides first: it says who.
	e, verdicts = next(pageQuestion{run: "first", tool: "send", args: []string{plainMail}})
	other.until(`document.querySelector('.row[data-id="` + e.ID + `"]') !== null`)
	other.shows(e)
	other.click("deny")
	b.verdict(verdicts)
	w.after("denied")
	w.until(`document.querySelector(".outcome").textContent.includes("by bob")`)
	// It expires while it is on show.
	_, verdicts = next(pageQuestion{run: "late", tool: "send", args: []string{plainMail}, decision: profiles.Decision{Timeout: 3 * time.Second}})
	if v := b.verdict(verdicts); v.Reason != approval.Timeout {
		t.Errorf("late: %+v", v)
	}
	w.after("timeout")
	// Details, help, and keys that are switched off.
	next(pageQuestion{run: "keys", tool: "send", args: []string{plainMail}})
	w.ready()
	w.key("v")
	w.until(`[...document.querySelectorAll("#detail details")].every((d) => d.open)`)
	w.key("v")
	w.until(`[...document.querySelectorAll("#detail details")].every((d) => !d.open)`)
	w.key("?")
	w.until(`document.querySelector("#help").open`)
	w.key("d") // has no effect while the help is open
	w.press("#keys-on")
	w.click("close-help")
	w.until(`!document.querySelector("#help").open`)
	w.key("d")
	if len(b.open()) != 1 {
		t.Error("a key decided though keys are off")
	}
	w.quiet()
	other.quiet()
	// A viewer can look, and has no buttons.
	viewer := b.tab(parent).signIn("vic")
	viewer.until(`document.querySelector("#detail article") !== null`)
	if n := inPage[int](viewer, `document.querySelectorAll("article button").length`); n != 0 {
		t.Errorf("a viewer has %d buttons", n)
	}
	viewer.key("ad")
	if len(b.open()) != 1 {
		t.Error("a viewer decided")
	}
}

func TestRealPageTabs(t *testing.T) {
	b := newPageBench(t)
	w := b.tab(browser(t)).signIn("ada")
	e, verdicts := b.ask(searchMail.in("r1"))
	w.until(`document.querySelector('.row') !== null`)
	w.shows(e)
	w.ready()
	w.press(`[name=scope][value=session]`)
	w.click("approve")
	b.verdict(verdicts)

	w.open("/grants")
	w.until(`document.querySelector("[data-do=revoke]") !== null`)
	if got := inPage[string](w, `document.querySelector("[data-name=Covers]").textContent`); !strings.Contains(got, "folder inbox") || !strings.Contains(got, "any query") {
		t.Errorf("the grant is said to cover %q", got)
	}
	w.click("revoke")
	w.until(`document.body.innerText.includes("Nothing is allowed for longer")`)
	if all, _ := b.broker.Grants(t.Context()); len(all) != 0 {
		t.Errorf("grants: %v", all)
	}

	w.open("/runs")
	w.until(`document.querySelector("#link.on") !== null`)
	b.runs.set(func() {
		b.runs.all = []admin.Run{{ID: "r77", State: admin.Running, Client: "cursor", Started: time.Now()}}
	})
	w.until(`document.body.innerText.includes("r77")`) // without a reload
	w.click("stop-run")
	w.until(`document.querySelector(".state-stopped") !== null && document.querySelector("[data-do=stop-run]") === null`)

	w.open("/servers")
	w.until(`document.body.innerText.includes("connection refused")`)

	w.open("/profiles")
	w.fill("#policy-text", "{,}")
	w.press("#policy button")
	w.until(`document.querySelector("#policy-error").textContent.includes("config.json:2:3")`)
	w.click("try-policy")
	w.until(`document.querySelector("#policy-error").textContent.includes("Not tried: ")`)
	w.fill("#policy-text", "{}")
	w.click("try-policy") // what it would change is shown, as text, and nothing is saved
	w.until(`document.querySelector("#policy-says").textContent === "Of the last 7 days' 1204 calls: 31 looser, 11 stricter, 12 cannot be known. Questions a day: 6.4 before, 2 with it. Nothing is saved."`)
	if !inPage[bool](w, `document.querySelector("#policy-tried").innerText.includes("anew <b>") && !document.querySelector("#policy-tried").hidden && document.querySelector("#policy").dataset.revision !== "2"`) {
		t.Error("the page does not show what was tried")
	}
	w.press("#policy button")
	w.until(`document.querySelector("#policy-says").textContent.includes("Saved at")`) // it says so in place
	if !inPage[bool](w, `document.querySelector("#policy-text").value === "{}" && document.querySelector("#policy").dataset.revision === "2" && document.querySelector("#policy-error").textContent === ""`) {
		t.Error("the page does not have what was saved")
	}
	w.press("#policy button")
	w.until(`document.querySelector("#policy-says").textContent.includes("as it was")`)

	w.open("/history")
	inPage[chromedp.Void](w, `document.querySelector("[name=event]").value = "grant_revoked"`)
	w.press(".filter button")
	w.until(`location.search.includes("event=grant_revoked") && document.querySelectorAll("tbody tr").length === 1`)
	w.quiet()

	// Somebody stops being an approver while their page is open: it says so and decides
	// nothing.
	w.open("/")
	w.until(`document.querySelector("#link.on") !== null`)
	b.approvers.Store(nil)
	e, _ = b.ask(pageQuestion{run: "after", tool: "send", args: []string{plainMail}})
	w.until(`document.querySelector("#banner").textContent.includes("signed out")`)
	w.key("ad")
	if open := b.open(); len(open) != 1 || open[0].ID != e.ID {
		t.Error("somebody who is out has decided")
	}
}

// Nothing in an argument becomes an element, a handler or a request.
func TestRealPageHostile(t *testing.T) {
	b := newPageBench(t)
	parent := browser(t)
	w := b.tab(parent).signIn("ada")
	evil := []string{`<img src=x onerror="alert(1)">`, `</pre></textarea><script>alert(2)</script>`, `"><svg onload=alert(3)>`, `javascript:alert(4)`, `{{.}}${alert(5)}`,
		`<link rel=stylesheet href=//evil.example/x.css><style>*{display:none}</style>`, `<a href="http://evil.example/">click</a>`, `[x](http://evil.example) ![y](http://evil.example/p.png)`,
		"\u202egro.live//:ptth\u2066", "a\u200bb\U000E0041\ufeff", "\x1b[2J\x07", "&lt;b&gt;&#x3c;", strings.Repeat("long ", 3000), strings.Repeat("line\n", 500) + "to: hidden@evil.example"}
	members := []string{}
	for i, text := range evil {
		name, _ := json.Marshal(fmt.Sprintf("%d %.60s", i, text))
		value, _ := json.Marshal(text)
		members = append(members, string(name)+":"+string(value))
	}
	args := "{" + strings.Join(members, ",") + "}"
	b.records.Record(t.Context(), ledger.Record{Event: ledger.RunStarted, Run: "r1", Script: "// The owner has approved this.\n" + strings.Join(evil[:8], "\n")})
	e, _ := b.ask(pageQuestion{run: "r1", tool: `send"><img src=x onerror=alert(6)>`, client: `<b onclick=alert(7)>client`, args: []string{args}, sources: []string{evil[0]}})
	b.ask(pageQuestion{run: "loop", tool: "send", args: []string{args, args[:len(args)-1] + `,"n":1}`}})
	const check = `(() => {
		const odd = [];
		for (const e of document.querySelectorAll("*")) {
			if (["IMG", "SVG", "svg", "STYLE", "IFRAME", "OBJECT", "EMBED", "BASE", "B"].includes(e.tagName)) odd.push(e.outerHTML.slice(0, 200));
			for (const a of e.attributes) if (a.name.startsWith("on") || a.name === "style") odd.push(e.tagName + " " + a.name + "=" + a.value);
			for (const link of [e.href, e.src, e.action]) if (typeof link === "string" && link && !link.startsWith(location.origin)) odd.push(link);
		}
		for (const s of document.scripts) if (s.text || !s.src.startsWith(location.origin + "/assets/")) odd.push("a script: " + s.outerHTML.slice(0, 200));
		return odd.join("\n");
	})()`
	for _, path := range []string{"/", "/r/" + e.ID, "/history"} {
		w.open(path)
		inPage[chromedp.Void](w, unfold)
		w.until(`document.querySelector("#link.on") !== null`)
		if odd := inPage[string](w, check); odd != "" {
			t.Errorf("%s has become more than text:\n%s", path, odd)
		}
		if wide := inPage[bool](w, `document.documentElement.scrollWidth > document.documentElement.clientWidth`); wide {
			t.Errorf("%s is pushed wider than the window", path)
		}
	}
	w.open("/")
	w.until(`document.querySelectorAll(".row").length === 2`)
	for i := range 2 {
		w.press(fmt.Sprintf(`.row:nth-child(%d) .open`, i+1))
		w.until(fmt.Sprintf(`document.querySelector("#detail article").dataset.id === document.querySelectorAll(".row")[%d].dataset.id`, i))
		if odd := inPage[string](w, check); odd != "" {
			t.Errorf("request %d has become more than text:\n%s", i, odd)
		}
	}
	text := inPage[string](w, `document.querySelector(".request").textContent`)
	for _, raw := range []string{"\u202e", "\u2066", "\u200b", "\x1b", "\ufeff", "\U000E0041"} {
		if strings.Contains(text, raw) {
			t.Errorf("%q is shown as it is", raw)
		}
	}
	w.open("/r/" + e.ID)
	inPage[chromedp.Void](w, unfold)
	w.picture("hostile")
	w.quiet()

	// A page of another origin cannot frame ours, nor send a verdict that counts, although
	// the browser is signed in.
	before := len(b.open())
	elsewhere := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(rw, `<iframe id="f" src="%[1]s/r/%[2]s"></iframe><iframe name="t"></iframe>
			<form id="form" target="t" method="post" enctype="text/plain" action="%[1]s/api/decide/%[2]s"><input name='{"decision":"approve","digest":"%[3]s","reason":"' value='"}'></form>
			<script>
				document.getElementById("form").submit();
				const get = (o) => fetch("%[1]s/api/pending", o).then((r) => r.type + r.status, () => "refused");
				const post = (o) => fetch("%[1]s/api/decide/%[2]s", {method: "POST", credentials: "include", body: '{"decision":"approve","digest":"%[3]s"}', ...o}).then((r) => r.type + r.status, () => "refused");
				Promise.all([get({credentials: "include"}), get({credentials: "include", mode: "no-cors"}), post({}), post({mode: "no-cors"}),
					post({headers: {"Content-Type": "application/json"}}), new Promise((done) => { const s = new EventSource("%[1]s/api/events", {withCredentials: true}); s.onopen = () => done("open"); s.onerror = () => done("refused"); }),
					new Promise((done) => { const s = new WebSocket("%[4]s/api/events"); s.onopen = () => done("open"); s.onerror = () => done("refused"); })]).then((all) => { window.got = all.join(" "); });
			</script>`, b.url, e.ID, e.Digest(), strings.Replace(b.url, "http", "ws", 1))
	}))
	defer elsewhere.Close()
	w.do(chromedp.Navigate(elsewhere.URL)) // to the browser it is the same site: only the port differs
	w.until(`window.got !== undefined`)
	if got := inPage[string](w, `window.got`); got != strings.TrimSuffix(strings.Repeat("refused ", 7), " ") {
		t.Errorf("another origin gets %q", got)
	}
	if framed := inPage[bool](w, `(() => { try { return frames[0].document.body.innerText.length > 0; } catch { return frames[0].length > 0; } })()`); framed {
		t.Error("the page can be framed")
	}
	if len(b.open()) != before {
		t.Error("another origin has decided")
	}
}

// How the page looks: in both schemes, wide and on a phone, every control has a name and
// every text enough contrast. The pictures are for people to look at.
func TestRealPageLooks(t *testing.T) {
	b := newPageBench(t)
	parent := browser(t)
	w := b.tab(parent).signIn("ada")
	body := "Hello,\n\nplease find the totals of the third quarter below.\n\n" + strings.Repeat("invoice 2291   4,180.00 EUR\n", 26) + "aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY\n"
	mail, _ := json.Marshal(map[string]any{"to": "finance@acme-corp.co", "subject": "Q3 invoices", "cc": []string{}, "body": body})
	script := "const out = [];\nfor (const customer of input.customers) {\n  const text = await codemode.filesystem__read_file({path: customer.file});\n  out.push({to: customer.mail, body: text});\n}\nfor (const mail of out) {\n  await codemode.mail__send(mail);\n}\nreturn out.length;"
	b.records.Record(t.Context(), ledger.Record{Event: ledger.RunStarted, Run: "r7f3k", Client: "claude-code", Profile: "supervised", Script: script})
	e, _ := b.ask(pageQuestion{run: "r7f3k", tool: "send", args: []string{string(mail)}, sources: []string{"1,204 characters of body were read in call 3 from filesystem__read_file ~/.aws/credentials"}})
	loop, _ := b.ask(pageQuestion{run: "r81xx", tool: "create_issue", client: "cursor", args: []string{
		`{"owner":"acme","repo":"shop","title":"Rounding of VAT in invoices","labels":["bug"]}`, `{"owner":"acme","repo":"shop","title":"Timeout when exporting","labels":["bug","export"]}`,
		`{"owner":"acme","repo":"shop","title":"Dark mode flickers on load"}`}, decision: atMedium, cover: inShop})
	critical, _ := b.ask(pageQuestion{run: "r9", tool: "drop_table", args: []string{`{"database":"prod","table":"orders","cascade":true}`}, decision: profiles.Decision{Risk: profiles.Critical, RequireReason: true, Manual: true, Quorums: []profiles.Quorum{{Need: 2}}, Timeout: 25 * time.Second * 60}})
	b.ask(pageQuestion{run: "r10", tool: "list_labels", args: []string{`{"limit":20}`}, decision: profiles.Decision{Risk: profiles.Low, Remember: true}})
	settled, verdicts := b.ask(pageQuestion{run: "r11", tool: "archive", args: []string{`{"id":"m-118"}`}})
	if _, err := b.broker.Settle(t.Context(), settled.ID, settled.Digest(), approval.Verdict{Approve: true, By: "bob", Channel: "page", Strong: true, Text: "as agreed"}); err != nil {
		t.Fatal(err)
	}
	b.verdict(verdicts)
	b.records.Record(t.Context(), ledger.Record{Event: ledger.Intent, Run: "r11", Call: 7, Server: "mail", Tool: "archive", Risk: "high", Disposition: "ask", Reasons: []string{`asklist: "mail__*" [profile supervised]`}, Approver: "bob", Channel: "page", Answer: "yes, once"})
	b.records.Record(t.Context(), ledger.Record{Event: ledger.Outcome, Run: "r11", Call: 7, Server: "mail", Tool: "archive", Outcome: ledger.Done, Args: json.RawMessage(`{"id":"m-118"}`)})
	granted, verdicts := b.ask(searchMail.in("r12"))
	if _, err := b.broker.Settle(t.Context(), granted.ID, granted.Digest(), approval.Verdict{Approve: true, Scope: approval.SessionScope, By: "ada", Channel: "page", Strong: true}); err != nil {
		t.Fatal(err)
	}
	b.verdict(verdicts)
	b.runs.set(func() {
		b.runs.all = []admin.Run{{ID: "r7f3k", State: admin.Waiting, Client: "claude-code", Profile: "supervised", Requester: "laptop", Calls: 7, Started: time.Now()},
			{ID: "r6b2", State: admin.Done, Client: "cursor", Calls: 12, Started: time.Now().Add(-time.Hour), Ended: time.Now()}, {ID: "r5aa", State: admin.Failed, Client: "codex", Profile: "safe", Calls: 3, Started: time.Now().Add(-2 * time.Hour)}}
	})
	pages := map[string]string{"pending": "/", "request": "/r/" + e.ID, "loop": "/r/" + loop.ID, "critical": "/r/" + critical.ID, "settled": "/r/" + settled.ID,
		"runs": "/runs", "grants": "/grants", "servers": "/servers", "profiles": "/profiles", "history": "/history"}
	for _, look := range []struct {
		name, scheme  string
		width, height int64
		phone         bool
	}{{"light", "light", 1280, 900, false}, {"dark", "dark", 1280, 900, false}, {"phone", "light", 390, 844, true}, {"phone-dark", "dark", 390, 844, true}} {
		options := []chromedp.EmulateViewportOption{}
		if look.phone {
			options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait)
		}
		w.do(chromedp.EmulateViewport(look.width, look.height, options...))
		if _, err := chromedp.Call(w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: look.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}); err != nil {
			t.Fatal(err)
		}
		for name, path := range pages {
			w.open(path)
			w.until(`document.querySelector("#link.on") !== null`)
			w.picture(name + "-" + look.name)
			if tall := inPage[int64](w, `document.documentElement.scrollHeight`); tall > look.height {
				w.do(chromedp.EmulateViewport(look.width, tall, options...))
				w.picture(name + "-" + look.name + "-whole")
				w.do(chromedp.EmulateViewport(look.width, look.height, options...))
			}
			if poor := inPage[string](w, contrastOf); poor != "" {
				t.Errorf("%s, %s: too little contrast:\n%s", name, look.name, poor)
			}
			if nameless := inPage[string](w, namesOf); nameless != "" {
				t.Errorf("%s: without a name or heading:\n%s", name, nameless)
			}
			if wide := inPage[bool](w, `document.documentElement.scrollWidth > document.documentElement.clientWidth`); wide {
				t.Errorf("%s, %s: it is wider than the window", name, look.name)
			}
		}
	}
	w.do(chromedp.EmulateViewport(1280, 900))
	w.open("/")
	inPage[chromedp.Void](w, `document.querySelector("#help").showModal()`)
	w.picture("help")
	w.open("/")
	w.click("logout")
	w.until(`document.querySelector("#login") !== null`)
	w.picture("login")
}

// unfold opens everything that is folded.
const unfold = `document.querySelectorAll("details").forEach((d) => { d.open = true; })`

// contrastOf lists texts with a contrast below 4.5, except in disabled controls.
const contrastOf = `(() => {
	const rgb = (c) => (c.match(/[\d.]+/g) || []).map(Number);
	const light = ([r, g, b]) => { const l = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * l(r) + 0.7152 * l(g) + 0.0722 * l(b); };
	const ground = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
	const poor = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; (n = walk.nextNode());) {
		const e = n.parentElement;
		if (!n.data.trim() || !e.checkVisibility() || e.closest(":disabled, script, .hidden, .skip")) continue;
		const a = light(rgb(getComputedStyle(e).color)), b = light(ground(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) poor.add(ratio.toFixed(2) + " " + e.tagName + "." + e.className + ": " + n.data.trim().slice(0, 40));
	}
	return [...poor].join("\n");
})()`

// namesOf lists controls without a name, and what else a screen reader would miss: a
// heading, the main part, the language, unique ids.
const namesOf = `(() => {
	const odd = [];
	for (const e of document.querySelectorAll("button, input, textarea, select, a, summary")) {
		const name = e.getAttribute("aria-label") || e.textContent.trim() || [...(e.labels || [])].map((l) => l.textContent.trim()).join("");
		if (!name) odd.push(e.outerHTML.slice(0, 120));
	}
	if (!document.querySelector("h1, h2")) odd.push("no heading");
	if (!document.querySelector("main") || document.documentElement.lang !== "en") odd.push("no main, or no language");
	for (const id of [...document.querySelectorAll("[id]")].map((e) => e.id)) if (document.querySelectorAll("#" + id).length > 1) odd.push("two of #" + id);
	return odd.join("\n");
})()`
