package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"

	"golang.org/x/net/html"
)

// path is a route's path with something in its place.
func (r route) at(id string) string {
	return strings.NewReplacer("{id}", id, "{name}", "page.css", "{$}", "").Replace(r.path)
}

// closed are the headers by which a request shows that it is none of ours.
var closed = [][]string{
	{"Host", "evil.example"}, {"Host", "evil.example:7421"}, {"Host", "127.0.0.1.evil.example:7421"}, {"Host", "localhost.:7421"},
	{"Host", "127.1:7421"}, {"Host", "0.0.0.0:7421"}, {"Host", "2130706433:7421"}, {"Host", ""},
	{"Origin", "http://evil.example"}, {"Origin", "null"}, {"Origin", "http://127.0.0.1:7420"}, {"Origin", "http://127.0.0.1.evil.example:7421"},
	{"Origin", "http://localhost:7421"}, {"Origin", "file://"}, {"Origin", "http://" + host, "Origin", "http://evil.example"},
	{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
	{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
	{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
	{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "embed"},
}

func TestOthersAreRefusedOnEveryRoute(t *testing.T) {
	b := newBench(t)
	b.ask(question{})
	page := b.atPage("ada")
	before := b.state()
	for _, rt := range new(Site).routes() {
		for _, headers := range closed {
			for _, v := range []visitor{b.as("ada"), page, {b: b}} {
				v.with(headers...).do(rt.method, rt.at("q1"), "{}").want(http.StatusForbidden)
			}
		}
	}
	for _, method := range []string{"OPTIONS", "PATCH", "TRACE", "HEAD"} {
		if method != "HEAD" {
			page.do(method, "/api/pending", "").refused(http.StatusMethodNotAllowed, "method")
		}
		page.with("Origin", "http://evil.example").do(method, "/api/pending", "").want(http.StatusForbidden)
	}
	if b.state() != before {
		t.Error("something was changed")
	}
}

// A link from elsewhere leads to the page, where it means nothing who is
// signed in; it leads nowhere else.
func TestLinksFromElsewhere(t *testing.T) {
	b := newBench(t)
	e, _ := b.ask(question{})
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	page := b.atPage("ada").with(link...)
	if res := page.do("GET", "/r/"+e.ID, "").want(http.StatusUnauthorized); strings.Contains(res.body, "finance@") || !strings.Contains(res.body, `id="login"`) {
		t.Errorf("a link from elsewhere shows %s", res.body)
	}
	page.do("GET", "/api/pending", "").want(http.StatusForbidden)
	page.do("POST", "/api/decide/"+e.ID, decision(e, "approve")).want(http.StatusForbidden)
	page.do("POST", "/", "{}").want(http.StatusForbidden)
}

func TestConfiguredHostsAndOrigins(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Hosts, o.Origins = []string{"approve.example"}, []string{"https://chat.example"}
	})
	v := b.as("bob")
	for _, headers := range [][]string{{"Host", "approve.example"}, {"Host", "approve.example:8443"}, {"Origin", "https://chat.example"}, {"Origin", "http://" + host}, {"Host", "localhost:1"}} {
		v.with(headers...).do("GET", "/api/pending", "").want(200)
	}
	v.with("Origin", "http://chat.example").do("GET", "/api/pending", "").want(403)
}

func TestOnlyJSONIsTaken(t *testing.T) {
	b := newBench(t)
	e, _ := b.ask(question{})
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "text/plain; application/json", ""} {
		for _, v := range []visitor{b.as("ada"), b.atPage("ada")} {
			v.with("Content-Type", kind).do("POST", "/api/decide/"+e.ID, decision(e, "approve")).refused(415, "content_type")
			v.with("Content-Type", kind).do("POST", "/api/login", `{"token":"x"}`).refused(415, "content_type")
		}
	}
	for body, status := range map[string]int{
		`{"decision":"deny","decision":"approve"}`:    400,
		`{"Decision":"approve"}`:                      422,
		`{"decision":"approve","approved":true}`:      422,
		`["approve"]`:                                 400,
		`{"decision":"approve"} {}`:                   400,
		`{"decision":true}`:                           422,
		"{\"decision\":\"\xff\"}":                     400,
		``:                                            422,
		`{"decision":"approve","digest":"sha256:00"}`: 422,
		`{"decision":"approve"}`:                      422,
		`{"decision":"yes","digest":"` + e.Digest().String() + `"}`:     422,
		`{"decision":"` + strings.Repeat("a", 5<<20) + `"}`:             413,
		decision(e, "deny", `"scope":"session"`):                        422,
		decision(e, "approve", `"scope":"for ever"`):                    422,
		decision(e, "deny", `"reason":"`+strings.Repeat("a", 4001)+`"`): 422,
	} {
		if res := b.as("ada").do("POST", "/api/decide/"+e.ID, body); res.status != status {
			t.Errorf("%.60q: status %d, want %d: %.200s", body, res.status, status, res.body)
		}
	}
	if now := b.open(); len(now) != 1 || now[0].Verdict != nil {
		t.Errorf("the request was settled: %v", now)
	}
}

// Every answer has the headers that keep it from being framed, cached or
// misread, errors included.
func TestHeaders(t *testing.T) {
	b := newBench(t)
	for _, v := range []visitor{b.as("ada"), {b: b}, b.as("ada").with("Host", "evil.example")} {
		for _, rt := range new(Site).routes() {
			if rt.path == "/api/events" && v.token != "" {
				continue // it does not end; TestEvents looks
			}
			res := v.do(rt.method, rt.at("q1"), "{}")
			for name, want := range map[string]string{
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
				"X-Frame-Options":         "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if got := res.header.Values(name); len(got) != 1 || got[0] != want {
					t.Errorf("%s: %s is %q", res.what, name, got)
				}
			}
			for name := range res.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s: it has %s", res.what, name)
				}
			}
		}
	}
}

// No GET changes anything, whoever makes it.
func TestReadingChangesNothing(t *testing.T) {
	b := newBench(t)
	e, _ := b.ask(question{})
	granting, verdicts := b.ask(question{run: "r2", tool: "draft", decision: rememberable})
	b.as("ada").do("POST", "/api/decide/"+granting.ID, decision(granting, "approve", `"scope":"session"`)).want(200)
	<-verdicts
	page := b.atPage("ada")
	before := b.state()
	for _, rt := range new(Site).routes() {
		if rt.path == "/api/events" {
			continue
		}
		for _, id := range []string{e.ID, granting.ID, "r1", "s1", "g1"} {
			for _, method := range []string{"GET", "HEAD"} {
				page.do(method, rt.at(id)+"?decision=approve&token=x&digest="+e.Digest().String(), "")
			}
		}
	}
	if after := b.state(); after != before {
		t.Errorf("reading changed something:\n%s\n%s", before, after)
	}
}

// Who may do what, on every route.
func TestRolesAndVerbs(t *testing.T) {
	b := newBench(t)
	b.ask(question{})
	may := map[approval.Role]map[approval.Verb]bool{
		approval.Viewer:    {approval.Look: true},
		approval.Decide:    {approval.Look: true, approval.Answer: true, approval.Stop: true, approval.Start: true},
		approval.Admin:     {approval.Look: true, approval.Answer: true, approval.Stop: true, approval.Start: true, approval.Revoke: true, approval.Edit: true, approval.ConfirmConfig: true},
		approval.Confirmer: {approval.Look: true, approval.ConfirmConfig: true},
	}
	for _, rt := range new(Site).routes() {
		if rt.verb == "" || rt.path == "/api/events" {
			continue
		}
		(visitor{b: b}).do(rt.method, rt.at("none"), "{}").want(401)
		visitor{b: b, token: "wrong"}.do(rt.method, rt.at("none"), "{}")
		for name, role := range map[string]approval.Role{"ada": approval.Admin, "bob": approval.Decide, "vic": approval.Viewer, "con": approval.Confirmer} {
			for _, v := range []visitor{b.as(name), b.atPage(name)} {
				res := v.do(rt.method, rt.at("none"), "{}")
				if refused := res.status == 403; refused == may[role][rt.verb] {
					t.Errorf("%s as %s (%s wanted): status %d", res.what, role, rt.verb, res.status)
				}
			}
		}
	}
	if len(new(Site).routes()) < 25 {
		t.Errorf("there are %d routes only", len(new(Site).routes()))
	}
}

func TestSignInByLink(t *testing.T) {
	b := newBench(t)
	if link, ok := b.site.LoginURL("http://" + host); ok {
		t.Errorf("where approvers may answer the owner may too, by %q", link)
	}
	b.appoint([]approval.Approver{{Name: "vic", Role: approval.Viewer}}) // who may not
	link, _ := b.site.LoginURL("http://" + host)
	base, code, found := strings.Cut(link, "/login#code=")
	if !found || base != "http://"+host || len(code) < 26 {
		t.Fatalf("the link is %q", link)
	}
	nobody := visitor{b: b}
	body := fmt.Sprintf(`{"code":%q}`, code)
	nobody.do("POST", "/api/login", strings.Replace(body, code[:4], "AAAA", 1)).refused(401, "unauthorized")
	owner := nobody.signIn(body)
	owner.do("GET", "/api/me", "").want(200).says(`"name":"owner"`, `"role":"admin"`, `"edit"`)
	nobody.do("POST", "/api/login", body).refused(401, "unauthorized") // once
	owner.do("GET", "/api/me?code="+code, "").want(200)

	link, _ = b.site.LoginURL("")
	old := strings.SplitAfter(link, "code=")[1]
	b.later(10*time.Minute + time.Second)
	nobody.do("POST", "/api/login", fmt.Sprintf(`{"code":%q}`, old)).refused(401, "unauthorized")
	owner.do("GET", "/api/me", "").want(200)
	b.later(12*time.Hour + time.Minute)
	owner.do("GET", "/api/me", "").refused(401, "unauthorized")

	in, out := 0, 0
	for _, rec := range b.recorded(ledger.SignedIn) {
		if rec.Outcome == ledger.Done && rec.Approver == "owner" {
			in++
		} else if rec.Outcome == ledger.Refused && rec.Approver == "" {
			out++
		}
		if strings.Contains(fmt.Sprintf("%+v", rec), code) {
			t.Errorf("the code is in a record: %+v", rec)
		}
	}
	if in != 1 || out != 3 {
		t.Errorf("recorded %d sign-ins and %d refusals", in, out)
	}
	for range 3 * maxCodes {
		b.site.LoginURL("")
	}
	if n := b.kept(codes); n > maxCodes {
		t.Errorf("%d codes are open", n)
	}
}

// Who has a token gets a code for their browser, which lets in them, as they are
// by then, once.
func TestSignInCode(t *testing.T) {
	b := newBench(t)
	nobody := visitor{b: b}
	code := func() string {
		var got struct{ Code string }
		b.as("bob").do("POST", "/api/login/code", "{}").want(200).into(&got)
		if len(got.Code) < 26 {
			t.Fatalf("the code is %q", got.Code)
		}
		return fmt.Sprintf(`{"code":%q}`, got.Code)
	}
	good := code()
	nobody.signIn(good).do("GET", "/api/me", "").want(200).says(`"name":"bob"`, `"role":"approver"`)
	nobody.do("POST", "/api/login", good).refused(401, "unauthorized") // once
	b.atPage("bob").do("POST", "/api/login/code", "{}").refused(400, "token")
	nobody.do("POST", "/api/login/code", "{}").refused(401, "unauthorized")

	late := code()
	b.later(10*time.Minute + time.Second)
	nobody.do("POST", "/api/login", late).refused(401, "unauthorized")
	unused := code()
	b.appoint([]approval.Approver{{Name: "vic", Role: approval.Viewer}})
	nobody.do("POST", "/api/login", unused).refused(401, "unauthorized")
}

func TestCookieAndSecret(t *testing.T) {
	b := newBench(t)
	e, verdicts := b.ask(question{})
	res := (visitor{b: b}).do("POST", "/api/login", fmt.Sprintf(`{"token":%q}`, tokenOf("bob"))).want(200)
	cookie := res.header.Get("Set-Cookie")
	for _, part := range []string{"codemode_approver_7421=", "; Path=/", "; HttpOnly", "; SameSite=Strict"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("%q is missing from %q", part, cookie)
		}
	}
	secure := (visitor{b: b}).with("Origin", "https://"+host).do("POST", "/api/login", fmt.Sprintf(`{"token":%q}`, tokenOf("bob"))).want(200).header.Get("Set-Cookie")
	for _, part := range []string{"__Host-codemode_approver=", "; Secure", "; Path=/", "; SameSite=Strict"} {
		if !strings.Contains(secure, part) {
			t.Errorf("%q is missing from %q", part, secure)
		}
	}
	// A cookie that came over TLS does not count under the plain name.
	value := strings.SplitN(strings.Split(secure, ";")[0], "=", 2)[1]
	(visitor{b: b, cookie: "codemode_approver_7421=" + value}).do("GET", "/api/me", "").refused(401, "unauthorized")

	bob := b.atPage("bob")
	decide := func(v visitor) response { return v.do("POST", "/api/decide/"+e.ID, decision(e, "approve")) }
	for _, secret := range []string{"", "x", bob.secret[1:], b.atPage("ada").secret} {
		v := bob
		v.secret = secret
		v.do("GET", "/api/pending", "").want(200)
		decide(v).refused(403, "secret")
	}
	decide(visitor{b: b, secret: bob.secret}).refused(401, "unauthorized")
	// A wrong token is not made good by a cookie.
	wrong := bob
	wrong.token = "wrong"
	decide(wrong).refused(401, "unauthorized")
	if strings.Contains(bob.do("GET", "/", "").want(200).body, bob.secret) {
		t.Error("the page holds the secret, which a cookie alone can read")
	}
	decide(bob).want(200).says(`"status":"approved"`, `"by":"bob"`)
	if v := <-verdicts; v.By != "bob" || v.Channel != "page" || !v.Strong {
		t.Errorf("the verdict is %+v", v)
	}
	bob.do("POST", "/api/logout", "{}").want(200)
	bob.do("GET", "/api/me", "").refused(401, "unauthorized")
}

// Whoever is no approver any more, or another one, is out at once.
func TestApproversChange(t *testing.T) {
	b := newBench(t)
	page, token := b.atPage("bob"), b.as("bob")
	page.do("GET", "/api/me", "").want(200)
	for _, now := range [][]approval.Approver{
		{{Name: "bob", Role: approval.Viewer}}, {{Name: "bob", Role: approval.Decide, Risk: 1}}, {{Name: "ada", Role: approval.Admin}}, nil,
	} {
		b.appoint(now)
		page.do("GET", "/api/me", "").refused(401, "unauthorized")
	}
	token.do("GET", "/api/me", "").refused(401, "unauthorized")
	b.mu.Lock()
	b.approvers = nil
	b.mu.Unlock()
	token.do("GET", "/api/me", "").refused(401, "unauthorized")
	(visitor{b: b, token: ""}).with("Authorization", "Bearer ").do("GET", "/api/me", "").refused(401, "unauthorized")
}

func TestWrongTokenAThousandTimes(t *testing.T) {
	b := newBench(t)
	at := time.Now()
	b.now = func() time.Time { return at }
	counts := map[int]int{}
	for i := range 1000 {
		v := visitor{b: b, token: fmt.Sprintf("cmb_%026d", i)}
		res := v.do("GET", "/api/pending", "")
		if i%2 == 1 {
			res = (visitor{b: b}).do("POST", "/api/login", fmt.Sprintf(`{"token":"cmb_%026d"}`, i))
		}
		counts[res.status]++
		if res.status == 429 && res.refused(429, "too_many").header.Get("Retry-After") == "" {
			t.Fatal("it does not say when to come again")
		}
	}
	if counts[401]+counts[429] != 1000 || counts[429] < 900 {
		t.Errorf("answers: %v", counts)
	}
	b.as("bob").do("GET", "/api/pending", "").want(200) // nobody is locked out
	b.atPage("ada").do("GET", "/", "").want(200)
	if n := len(b.recorded(ledger.SignedIn)); n > wrongBurst+1 {
		t.Errorf("%d refusals are recorded", n)
	}
	at = at.Add(time.Minute)
	(visitor{b: b, token: "wrong"}).do("GET", "/api/pending", "").want(401)
}

// Nothing in an argument, a name or a reason becomes an element, an attribute
// or a request. The browser's view of the same is in TestRealPage.
func TestHostileTextIsInert(t *testing.T) {
	b := newBench(t)
	hostile := `</pre></script><script>alert(1)</script><img src=x onerror=alert(1)>" onmouseover="alert(1)' style='x{{.}}javascript:alert(1)`
	quoted := func(s string) string { return fmt.Sprintf("%q", s) }
	e, _ := b.ask(question{run: "r<b>", tool: `send"><svg onload=alert(1)>`, args: []string{fmt.Sprintf(`{"to":%s,%s:"x","body":%s}`, quoted(hostile), quoted(hostile+"name"), quoted(strings.Repeat(hostile+"\n", 40)))}})
	_, _ = b.ask(question{run: "loop", args: []string{`{"to":` + quoted(hostile) + `}`, `{"to":"other"}`}})
	b.records.Record(t.Context(), ledger.Record{Event: ledger.RunStarted, Run: e.Run, Script: hostile + "\n// approved by the owner", Client: hostile})
	b.runs.set([]Run{{ID: "r1", Client: hostile, State: Running}})
	want := map[string]int{}
	for _, path := range []string{"/", "/r/" + e.ID, "/runs", "/history"} {
		res := b.atPage("ada").do("GET", path, "").want(200)
		tree, err := html.Parse(strings.NewReader(res.body))
		if err != nil {
			t.Fatal(err)
		}
		scripts := 0
		for n := range tree.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			switch n.Data {
			case "script":
				scripts++
			case "img", "svg", "style", "iframe", "object", "embed", "base", "b":
				t.Errorf("%s has an element %s", path, n.Data)
			}
			for _, a := range n.Attr {
				if active(a) {
					t.Errorf("%s has an attribute %s=%q", path, a.Key, a.Val)
				}
			}
		}
		if scripts != len(pageScripts) {
			t.Errorf("%s has %d scripts", path, scripts)
		}
		want[path] = strings.Count(res.body, "alert(1)")
	}
	if want["/r/"+e.ID] < 40 {
		t.Errorf("the page does not show all of it: %v", want)
	}
}

// active reports whether an attribute runs or styles something, or leads elsewhere.
func active(a html.Attribute) bool {
	switch a.Key {
	case "style":
		return true
	case "href", "src", "action":
		return !strings.HasPrefix(a.Val, "/") && a.Val != "#main"
	}
	return strings.HasPrefix(a.Key, "on")
}

// No answer holds what is secret, whoever asks.
func TestNoSecretInAnyAnswer(t *testing.T) {
	const canary = "CANARY-e1f7c0b2"
	b := newBench(t, func(o *Options) {
		o.Webhooks = []Webhook{{URL: "http://127.0.0.1:1/" + canary, Secret: []byte(canary)}}
	})
	e, verdicts := b.ask(question{args: []string{`{"to":"x","password":"` + canary + `","headers":{"Authorization":"Bearer ` + canary + `"},"env":["API_KEY=` + canary + `"],"body":"aws_secret_access_key = ` + canary + canary + `"}`}})
	page := b.atPage("ada")
	look := func() {
		for _, rt := range new(Site).routes() {
			if rt.path == "/api/events" || rt.path == "/api/login" || rt.path == "/api/logout" {
				continue
			}
			for _, id := range []string{e.ID, "r1", "none"} {
				res := page.do(rt.method, rt.at(id), "{}")
				for _, secret := range []string{canary, tokenOf("ada"), tokenOf("bob"), page.secret, strings.SplitN(page.cookie, "=", 2)[1]} {
					if strings.Contains(res.body, secret) || strings.Contains(fmt.Sprint(res.header), secret) {
						t.Errorf("%s: %q is in the answer", res.what, secret)
					}
				}
			}
		}
	}
	look()
	page.do("POST", "/api/decide/"+e.ID, decision(e, "deny", `"reason":"password=`+canary+`"`)).want(200)
	<-verdicts
	look()
}

// The bodies of JSON answers cannot be taken for a page either.
func TestJSONIsNoPage(t *testing.T) {
	b := newBench(t)
	e, _ := b.ask(question{args: []string{`{"to":"<script>alert(1)</script>"}`}})
	res := b.as("ada").do("GET", "/api/pending/"+e.ID, "").want(200)
	if strings.ContainsAny(res.body, "<>") || res.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s", res.header.Get("Content-Type"), res.body)
	}
	(visitor{b: b}).do("GET", "/api/nothing/<script>", "").refused(404, "not_found")
}
