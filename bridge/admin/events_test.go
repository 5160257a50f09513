package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/approval"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A follower reads a stream of events.
type follower struct {
	t      *testing.T
	events chan Event // closed when the stream ends
}

// want reads events until one is of a kind, and about a request if id is not
// empty.
func (f follower) want(kind, id string) Event {
	f.t.Helper()
	for e := range f.events {
		if e.Type == kind && (id == "" || e.ID == id) {
			return e
		}
	}
	f.t.Fatalf("the stream ended before %s %s", kind, id)
	return Event{}
}

func (f follower) ended() {
	f.t.Helper()
	for range f.events {
	}
}

// listen serves the bench's site on a port.
func (b *bench) listen() *httptest.Server {
	server := httptest.NewServer(b.site)
	b.t.Cleanup(server.Close)
	b.t.Cleanup(b.site.Close) // before it, so that streams end
	return server
}

func (b *bench) stream(server *httptest.Server, headers http.Header) follower {
	b.t.Helper()
	req, _ := http.NewRequestWithContext(b.t.Context(), "GET", server.URL+"/api/events", nil)
	req.Header = headers
	res, err := server.Client().Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("status %d, %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	f := follower{b.t, make(chan Event)}
	go func() {
		defer close(f.events)
		defer res.Body.Close()
		kind := ""
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				kind = name
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				e := readEvent([]byte(data))
				if e.Type != kind || e.Now.IsZero() {
					e.Type = "malformed " + e.Type + data
				}
				f.events <- e
			}
		}
	}()
	return f
}

func bearer(name string) http.Header {
	return http.Header{"Authorization": {"Bearer " + tokenOf(name)}}
}

func TestEvents(t *testing.T) {
	b := newBench(t)
	before, _ := b.ask(question{})
	server := b.listen()
	for name, f := range map[string]follower{"events": b.stream(server, bearer("vic")), "socket": b.socket(server, bearer("vic"))} {
		f.want("hello", "")
		f.want("pending", before.ID)
		e, verdicts := b.ask(question{run: "r " + name, args: []string{`{"to":"SECRETARG ` + name + `"}`}, decision: rememberable})
		got := f.want("pending", e.ID)
		want := Event{Type: "pending", ID: e.ID, Tool: "mail__send", Server: "mail", Risk: "medium", Run: "r " + name, Status: "pending"}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Event{}, "Until", "Now")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if strings.Contains(fmt.Sprint(got), "SECRETARG") {
			t.Errorf("%s: the event has the arguments: %+v", name, got)
		}
		b.as("bob").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"scope":"session"`)).want(200)
		<-verdicts
		granted := false // which may be seen before the verdict
		for got := range f.events {
			granted = granted || got.Type == "grants"
			if got.Type != "settled" || got.ID != e.ID {
				continue
			}
			if got.By != "bob" || got.Status != "approved" {
				t.Errorf("%s: %+v", name, got)
			}
			break
		}
		if !granted {
			f.want("grants", "")
		}
		b.runs.set([]Run{{ID: "r9", State: Running}})
		b.runs.end("r9", Done, "")
		f.want("runs", "")
		go f.ended()
	}
}

func (b *bench) socket(server *httptest.Server, headers http.Header) follower {
	b.t.Helper()
	conn, _, err := websocket.Dial(b.t.Context(), server.URL+"/api/events", &websocket.DialOptions{HTTPHeader: headers, HTTPClient: server.Client()})
	if err != nil {
		b.t.Fatal(err)
	}
	f := follower{b.t, make(chan Event)}
	go func() {
		defer close(f.events)
		defer conn.CloseNow()
		for {
			_, data, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			f.events <- readEvent(data)
		}
	}()
	return f
}

// A page elsewhere can open neither kind of stream.
func TestStreamsOfOthersAreRefused(t *testing.T) {
	b := newBench(t)
	server := b.listen()
	page := b.atPage("ada")
	// The page's cookie is named after the port.
	port := server.URL[strings.LastIndex(server.URL, ":")+1:]
	cookie := strings.Replace(page.cookie, "7421", port, 1)
	dial := func(headers http.Header) int {
		conn, res, err := websocket.Dial(t.Context(), server.URL+"/api/events", &websocket.DialOptions{HTTPHeader: headers, HTTPClient: server.Client()})
		if err == nil {
			conn.CloseNow()
			return 101
		}
		if res == nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
	if got := dial(http.Header{"Cookie": {cookie}, "Origin": {server.URL}}); got != 101 {
		t.Errorf("our own page: %d", got)
	}
	for want, headers := range map[int][]http.Header{
		403: {{"Cookie": {cookie}}, {"Cookie": {cookie}, "Origin": {"http://evil.example"}}, {"Cookie": {cookie}, "Origin": {"null"}},
			{"Cookie": {cookie}, "Origin": {"http://127.0.0.1:1"}}, {"Authorization": bearer("ada")["Authorization"], "Origin": {"https://evil.example"}}},
		401: {{"Origin": {server.URL}}, {"Authorization": {"Bearer wrong"}}},
	} {
		for _, h := range headers {
			if got := dial(h); got != want {
				t.Errorf("a socket with %v: %d, want %d", h, got, want)
			}
			if want == 403 && h.Get("Origin") == "" {
				continue // a browser's event source sends none to its own site
			}
			req, _ := http.NewRequest("GET", server.URL+"/api/events", nil)
			req.Header = h
			res, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("a stream with %v: %d, want %d", h, res.StatusCode, want)
			}
		}
	}
}

// A stream ends when whoever reads it is no approver any more.
func TestStreamsEndWithTheRight(t *testing.T) {
	b := newBench(t)
	server := b.listen()
	streams := []follower{b.stream(server, bearer("vic")), b.socket(server, bearer("vic"))}
	for _, f := range streams {
		f.want("hello", "")
	}
	b.appoint(people[:1])
	b.ask(question{}) // whatever happens next
	for _, f := range streams {
		f.ended()
	}
}

// The server's bound on reading a request does not end a stream.
func TestStreamsOutliveTheReadTimeout(t *testing.T) {
	b := newBench(t)
	server := httptest.NewUnstartedServer(b.site)
	server.Config.ReadTimeout = 2 * time.Second // a request is made in it, however slow the machine
	server.Start()
	defer server.Close()
	defer b.site.Close()
	streams := []follower{b.stream(server, bearer("vic")), b.socket(server, bearer("vic"))}
	for _, f := range streams {
		f.want("hello", "")
	}
	silent, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := io.Copy(io.Discard, silent); err != nil { // who says nothing is hung up on: the time of the others is over, too
		t.Fatal(err)
	}
	e, _ := b.ask(question{})
	for _, f := range streams {
		f.want("pending", e.ID)
		go f.ended()
	}
}

func TestStreamsAreBounded(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Limits.MaxStreams = 1 })
	server := b.listen()
	f := b.stream(server, bearer("vic"))
	f.want("hello", "")
	b.as("ada").do("GET", "/api/events", "").refused(503, "too_many")
	go f.ended()
}

// Somebody's time on the page ends, and with it what they read.
func TestStreamEndsWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Limits.SessionTime = time.Hour })
		begun := time.Now()
		page := b.atPage("bob")
		b.site.ServeHTTP(httptest.NewRecorder(), page.request("GET", "/api/events", "")) // returns when it ends
		if lasted := time.Since(begun); lasted != time.Hour {
			t.Errorf("the stream lasted %v", lasted)
		}
	})
}

// A chat takes what a webhook sends it.
type chat struct {
	mu       sync.Mutex
	got      []*http.Request
	bodies   []string
	statuses []int // of the next answers; then 204
	hold     chan struct{}
}

func (c *chat) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.hold != nil {
		select {
		case <-c.hold:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got, c.bodies = append(c.got, r), append(c.bodies, string(body))
	status := 204
	if len(c.statuses) > 0 {
		status, c.statuses = c.statuses[0], c.statuses[1:]
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Location": {"http://evil.example/"}}, Body: http.NoBody, Request: r}, nil
}

func TestWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chat{statuses: []int{503, 0, 429}}
		b := newBench(t, func(o *Options) {
			o.Transport, o.Webhooks = c, []Webhook{{URL: "https://chat.example/hook/x", Secret: []byte("shared")}}
		})
		e, _ := b.ask(question{args: []string{`{"to":"SECRETARG"}`}})
		begun := time.Now()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(c.got) != 4 || len(c.statuses) != 0 {
			t.Fatalf("sent %d times", len(c.got))
		}
		for i, r := range c.got {
			stamp := r.Header.Get("Codemode-Timestamp")
			if want := "v1=" + sign([]byte("shared"), stamp, []byte(c.bodies[i])); r.Header.Get("Codemode-Signature") != want || stamp == "" {
				t.Errorf("the signature is %q, want %q", r.Header.Get("Codemode-Signature"), want)
			}
			if id := r.Header.Get("Codemode-Delivery"); id == "" || id != c.got[0].Header.Get("Codemode-Delivery") || c.bodies[i] != c.bodies[0] {
				t.Errorf("try %d is another delivery", i)
			}
			sent := []string{r.Method, r.URL.String(), r.Header.Get("Content-Type"), r.Header.Get("Authorization")}
			if diff := cmp.Diff([]string{"POST", "https://chat.example/hook/x", "application/json", ""}, sent); diff != "" {
				t.Errorf("try %d is sent so (-want +got):\n%s", i, diff)
			}
		}
		type event struct{ Type, ID, Risk, Link string }
		var sent event
		json.Unmarshal([]byte(c.bodies[0]), &sent)
		if diff := cmp.Diff(event{"pending", e.ID, "high", "http://" + host + "/r/" + e.ID}, sent); diff != "" {
			t.Errorf("the event (-want +got):\n%s", diff)
		}
		if strings.Contains(c.bodies[0], "SECRETARG") {
			t.Errorf("the event has the arguments: %s", c.bodies[0])
		}
		if last := c.got[3].Header.Get("Codemode-Timestamp"); last < fmt.Sprint(begun.Unix()+7) {
			t.Errorf("the last try was at %s, the first at %d", last, begun.Unix())
		}
		b.as("bob").do("POST", "/api/decide/"+e.ID, decision(e, "deny")).want(200)
		synctest.Wait()
		if n := len(c.bodies); n != 5 || !strings.Contains(c.bodies[4], `"settled"`) || !strings.Contains(c.bodies[4], `"by":"bob"`) {
			t.Errorf("after the verdict: %q", c.bodies[4:])
		}
	})
}

func TestWebhookTrouble(t *testing.T) {
	for name, row := range map[string]struct {
		statuses []int
		sent     int
	}{
		"a redirect is not followed": {[]int{302}, 1},
		"a refusal is final":         {[]int{400}, 1},
		"it gives up":                {[]int{500, 500, 500, 500, 500, 500, 500}, webhookTries},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &chat{statuses: row.statuses}
				b := newBench(t, func(o *Options) { o.Transport, o.Webhooks = c, []Webhook{{URL: "https://chat.example/"}} })
				b.ask(question{decision: rememberable})
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if len(c.got) != row.sent {
					t.Errorf("sent %d times, want %d", len(c.got), row.sent)
				}
				for _, r := range c.got {
					if r.URL.Host != "chat.example" {
						t.Errorf("sent to %s", r.URL)
					}
				}
			})
		})
	}
}

// A webhook that does not answer holds nobody up, and what waits is bounded.
func TestWebhookQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chat{hold: make(chan struct{})}
		b := newBench(t, func(o *Options) { o.Transport, o.Webhooks = c, []Webhook{{URL: "https://chat.example/"}} })
		for i := range 150 {
			e, _ := b.ask(question{run: fmt.Sprint("r", i)})
			synctest.Wait()
			b.as("bob").do("POST", "/api/decide/"+e.ID, decision(e, "approve")).want(200)
			synctest.Wait()
		}
		last, _ := b.ask(question{run: "last"})
		synctest.Wait()
		close(c.hold)
		synctest.Wait()
		if n := len(c.got); n == 0 || n > webhookQueue+1 {
			t.Errorf("%d of 301 events were delivered", n)
		}
		// The oldest made room: what can still be answered is told.
		if got := c.bodies[len(c.bodies)-1]; !strings.Contains(got, last.ID) {
			t.Errorf("the last event is %s, and request %s waits", got, last.ID)
		}
	})
}

// Where bridges share a store, each tells of its own requests.
func TestWebhookOfThisBridge(t *testing.T) {
	for of, want := range map[string]int{"here": 1, "elsewhere": 0, "": 1} {
		synctest.Test(t, func(t *testing.T) {
			c := &chat{}
			b := newBench(t, func(o *Options) { o.Transport, o.Webhooks, o.Bridge = c, []Webhook{{URL: "https://chat.example/"}}, of })
			b.ask(question{})
			synctest.Wait()
			if len(c.got) != want {
				t.Errorf("the bridge %q sent %d", of, len(c.got))
			}
		})
	}
}

var _ Requests = (*approval.Broker)(nil)
