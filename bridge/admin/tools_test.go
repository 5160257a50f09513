package admin

import (
	"codemode-bridge/bridge/pins"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeTools has one tool that has changed, and remembers what is decided.
type fakeTools struct {
	mu      sync.Mutex
	decided []string
	changed chan struct{} // nil: never
}

func (f *fakeTools) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

const changedName = "send\u202e<script>"

func (f *fakeTools) Unreviewed(context.Context) ([]UnreviewedTool, error) {
	return []UnreviewedTool{
		{"mail", changedName, pins.Row{State: pins.Changed, Then: pins.Ask, Digest: "sha256:b", Was: "sha256:a", AcceptedBy: "ada<b>", AcceptedAt: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
			Notices: []string{"it has characters that nobody sees"}, Difference: []pins.Part{{What: "description", Lines: []string{"-Sends.", "+Sends <b>all</b>.", "!a remark"}}}}},
		{"web", "get", pins.Row{State: pins.Blocked, Then: pins.Quarantine, Digest: "sha256:c", BlockedBy: "ada", Difference: []pins.Part{}}},
	}, nil
}

func (f *fakeTools) decide(what, server, tool, digest, by, channel string) error {
	switch {
	case server != "mail" || tool != changedName:
		return ErrUnknown
	case digest != "sha256:b":
		return ErrChanged
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decided = append(f.decided, what+" by "+by+" through "+channel)
	return nil
}

func (f *fakeTools) Accept(_ context.Context, server, tool, digest, by, channel string) error {
	return f.decide("accepted", server, tool, digest, by, channel)
}

func (f *fakeTools) Block(_ context.Context, server, tool, digest, by, channel string) error {
	return f.decide("blocked", server, tool, digest, by, channel)
}

func TestTools(t *testing.T) {
	f := &fakeTools{}
	b := newBench(t, func(o *Options) { o.Tools = f })
	var list struct{ Tools []UnreviewedTool }
	b.as("vic").do("GET", "/api/tools", "").want(200).into(&list)
	if len(list.Tools) != 2 || list.Tools[0].Tool != changedName || list.Tools[0].Difference[0].Lines[1] != "+Sends <b>all</b>." {
		t.Errorf("the list is %+v", list)
	}
	body := func(tool, digest string) string {
		return fmt.Sprintf(`{"server":"mail","tool":%q,"digest":%q}`, tool, digest)
	}
	for _, what := range []string{"accept", "block"} {
		path := "/api/tools/" + what
		b.as("bob").do("POST", path, body(changedName, "sha256:b")).refused(403, "role")
		b.as("ada").do("POST", path, body("other", "sha256:b")).refused(404, "not_found")
		b.as("ada").do("POST", path, body(changedName, "sha256:a")).refused(409, "changed")
		b.as("ada").do("POST", path, `{"server":"mail","tool":"x"}`).refused(422, "invalid")
		b.as("ada").do("POST", path, body(changedName, "sha256:b")).want(200)
	}
	b.atPage("ada").do("POST", "/api/tools/accept", body(changedName, "sha256:b")).want(200)
	if got := strings.Join(f.decided, ", "); got != "accepted by ada through api, blocked by ada through api, accepted by ada through page" {
		t.Errorf("decided: %s", got)
	}
}

func TestToolsPage(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Tools = &fakeTools{} })
	page := b.atPage("ada").with("Accept", "text/html").do("GET", "/tools", "").want(200).body
	for _, want := range []string{
		`mail__send\u{202E}&lt;script&gt;`, "Changed since ada&lt;b&gt; accepted it on 2026-11-20", "Each call asks",
		`<span class="plus">&#43;Sends &lt;b&gt;all&lt;/b&gt;.`, `<span class="minus">-Sends.`, `<span class="remark">!a remark`, "nobody has checked",
		`data-do="accept-tool"`, `data-digest="sha256:b"`, "Blocked by ada", "Hidden from scripts",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(b.atPage("vic").with("Accept", "text/html").do("GET", "/tools", "").want(200).body, "accept-tool") {
		t.Error("who may look is offered to accept")
	}
	newBench(t).as("ada").do("GET", "/api/tools", "").refused(404, "not_found")
}

// Who follows the page or the API hears that tools have changed, or were
// reviewed elsewhere.
func TestToolsEvents(t *testing.T) {
	f := &fakeTools{changed: make(chan struct{})}
	b := newBench(t, func(o *Options) { o.Tools = f })
	stream := b.stream(b.listen(), bearer("vic"))
	stream.want("hello", "")
	for range 2 {
		f.mu.Lock()
		was := f.changed
		f.changed = make(chan struct{})
		f.mu.Unlock()
		close(was)
		stream.want("tools", "")
	}
	go stream.ended()
}
