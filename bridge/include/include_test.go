package include

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/policydoc"
)

// A centre serves one document with its signature, as a test wants them.
type centre struct {
	mu       sync.Mutex
	private  string
	public   string
	document string
	envelope []byte
	answer   func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
	asked    []string
	*httptest.Server
}

func newCentre(t *testing.T) *centre {
	t.Helper()
	c := &centre{}
	var err error
	if c.private, c.public, err = policydoc.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, r.URL.Path)
		if c.answer != nil && c.answer(w, r) {
			return
		}
		if strings.HasSuffix(r.URL.Path, ".sig") {
			w.Write(c.envelope)
			return
		}
		fmt.Fprint(w, c.document)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *centre) publish(t *testing.T, document string, serial int64, when policydoc.Validity) {
	t.Helper()
	c.document, c.envelope = document, c.sign(t, document, serial, when)
}

func (c *centre) sign(t *testing.T, document string, serial int64, when policydoc.Validity) []byte {
	t.Helper()
	key, err := policydoc.ParsePrivate(c.private)
	if err != nil {
		t.Fatal(err)
	}
	e, err := policydoc.Sign([]byte(document), key, serial, when)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (c *centre) signed() policydoc.Include {
	return policydoc.Include{URL: c.URL + "/policy.json", Key: c.public}
}

func get(t *testing.T, s *Store, inc policydoc.Include, text string) Document {
	t.Helper()
	d, err := s.Get(t.Context(), inc, true)
	if err != nil || string(d.Text) != text {
		t.Fatalf("%q, %v; want %q", d.Text, err, text)
	}
	return d
}

// Whatever a centre answers but a document that is signed and not older, the last good one stays.
func TestHostileAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		change func(t *testing.T, c *centre)
		want   string
	}{
		"older":       {func(t *testing.T, c *centre) { c.publish(t, "old", 4, policydoc.Validity{}) }, "serial 4"},
		"same serial": {func(t *testing.T, c *centre) { c.publish(t, "other", 5, policydoc.Validity{}) }, "seen already"},
		"swapped": {func(t *testing.T, c *centre) {
			c.document = "other"
			c.envelope = c.sign(t, "third", 6, policydoc.Validity{})
		}, "another document"},
		"another key": {func(t *testing.T, c *centre) {
			d := newCentre(t)
			d.publish(t, "good", 6, policydoc.Validity{})
			c.envelope = d.envelope
		}, "another key"},
		"no signature":    {func(t *testing.T, c *centre) { c.envelope = nil }, "not one that"},
		"large signature": {func(t *testing.T, c *centre) { c.envelope = make([]byte, 1<<20) }, "larger than"},
		"bomb": {func(t *testing.T, c *centre) {
			c.publish(t, "x", 6, policydoc.Validity{})
			c.document = strings.Repeat(" ", policydoc.MaxDocument+1)
		}, "larger than"},
		"expired": {func(t *testing.T, c *centre) {
			at := time.Now().Add(-time.Hour)
			c.publish(t, "x", 6, policydoc.Validity{Expires: &at})
		}, "expired"},
		"not yet": {func(t *testing.T, c *centre) {
			at := time.Now().Add(time.Hour)
			c.publish(t, "x", 6, policydoc.Validity{NotBefore: &at})
		}, "before"},
		"an error": {func(t *testing.T, c *centre) {
			c.answer = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true }
		}, "500"},
		"elsewhere": {func(t *testing.T, c *centre) {
			c.answer = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, "/else", http.StatusFound)
				return true
			}
		}, "elsewhere"},
		"a cut connection": {func(t *testing.T, c *centre) {
			c.answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Length", "100")
				fmt.Fprint(w, "{")
				return true
			}
		}, "EOF"},
		"nobody listens": {func(t *testing.T, c *centre) { c.Close() }, "fetching"},
		"unpacked too much": {func(t *testing.T, c *centre) {
			c.answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Encoding", "gzip")
				fmt.Fprint(w, "\x1f\x8b")
				return true
			}
		}, "not one that"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCentre(t)
			c.publish(t, "good", 5, policydoc.Validity{})
			s := &Store{Dir: t.TempDir()}
			if d := get(t, s, c.signed(), "good"); d.Problem != nil || d.Envelope.Serial != 5 {
				t.Fatalf("at first: %+v", d)
			}
			row.change(t, c)
			d := get(t, s, c.signed(), "good")
			if d.Problem == nil || !strings.Contains(d.Problem.Error(), row.want) || d.Envelope.Serial != 5 {
				t.Errorf("the problem is %v, want %q", d.Problem, row.want)
			}
			again, err := (&Store{Dir: s.Dir}).Kept(c.signed())
			if err != nil || string(again.Text) != "good" {
				t.Errorf("kept: %q, %v", again.Text, err)
			}
			first := &Store{Dir: t.TempDir()}
			if name != "older" && name != "same serial" {
				if d, err := first.Get(t.Context(), c.signed(), false); err == nil {
					t.Errorf("a first start took %q", d.Text)
				}
			}
		})
	}
}

// A rising serial is taken; the document is not fetched again while it is the same.
func TestRisingSerial(t *testing.T) {
	c := newCentre(t)
	now := time.Now()
	s := &Store{Dir: t.TempDir(), Now: func() time.Time { return now }}
	c.publish(t, "one", 1, policydoc.Validity{})
	get(t, s, c.signed(), "one")
	c.publish(t, "one", 2, policydoc.Validity{})
	c.asked = nil
	if d := get(t, s, c.signed(), "one"); d.Envelope.Serial != 2 || len(c.asked) != 1 {
		t.Errorf("serial %d after %q", d.Envelope.Serial, c.asked)
	}
	c.publish(t, "two", 3, policydoc.Validity{})
	if d, err := s.Get(t.Context(), c.signed(), false); err != nil || string(d.Text) != "one" {
		t.Errorf("what is fresh was fetched again: %q, %v", d.Text, err)
	}
	now = now.Add(Interval)
	if d, err := s.Get(t.Context(), c.signed(), false); err != nil || string(d.Text) != "two" {
		t.Errorf("what is no longer fresh was not: %q, %v", d.Text, err)
	}
}

func TestPinnedByDigest(t *testing.T) {
	c := newCentre(t)
	c.document = "{}"
	inc := policydoc.Include{URL: c.URL + "/p", SHA256: policydoc.Digest([]byte("{}"))}
	s := &Store{Dir: t.TempDir()}
	get(t, s, inc, "{}")
	c.document, c.asked = "{ }", nil
	if get(t, s, inc, "{}"); len(c.asked) != 0 {
		t.Error("what cannot change was fetched again")
	}
	if d, err := (&Store{Dir: t.TempDir()}).Get(t.Context(), inc, false); err == nil || !strings.Contains(err.Error(), "pins") {
		t.Errorf("other bytes: %q, %v", d.Text, err)
	}
}

// A copy that somebody changed is not used, and not what the next one is compared with.
func TestKeptCopy(t *testing.T) {
	c := newCentre(t)
	c.publish(t, "good", 5, policydoc.Validity{})
	s := &Store{Dir: t.TempDir()}
	if _, err := s.Kept(c.signed()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first: %v", err)
	}
	get(t, s, c.signed(), "good")
	info, err := os.Stat(s.path(c.signed()))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy is %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(s.path(c.signed()))
	if err != nil {
		t.Fatal(err)
	}
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	k.Text = []byte("evil")
	if text, err = json.Marshal(k); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path(c.signed()), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Kept(c.signed()); err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("a changed copy: %v", err)
	}
	get(t, s, c.signed(), "good")
	c.Close()
	if err := os.WriteFile(s.path(c.signed()), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Get(t.Context(), c.signed(), false); err == nil {
		t.Errorf("offline, with a changed copy: %q", d.Text)
	}
}

// A server that does not answer is given up with the context; the kept copy is used.
func TestSlowServer(t *testing.T) {
	c := newCentre(t)
	c.publish(t, "good", 5, policydoc.Validity{})
	s := &Store{Dir: t.TempDir()}
	get(t, s, c.signed(), "good")
	ctx, cancel := context.WithCancel(t.Context())
	c.answer = func(_ http.ResponseWriter, r *http.Request) bool { cancel(); <-r.Context().Done(); return true }
	if d, err := s.Get(ctx, c.signed(), true); err != nil || d.Problem == nil || string(d.Text) != "good" {
		t.Errorf("%q, %v, %v", d.Text, d.Problem, err)
	}
}

// Two processes with one folder never go back.
func TestTwoProcesses(t *testing.T) {
	c := newCentre(t)
	a, b := &Store{Dir: t.TempDir()}, &Store{}
	b.Dir = a.Dir
	c.publish(t, "one", 1, policydoc.Validity{})
	get(t, a, c.signed(), "one")
	old := c.envelope
	c.publish(t, "two", 2, policydoc.Validity{})
	get(t, b, c.signed(), "two")
	if _, err := a.keep(c.signed(), []byte("one"), old, ""); err == nil {
		t.Error("a slower process kept an older one")
	}
	var all sync.WaitGroup
	for serial := int64(3); serial < 20; serial++ {
		text := fmt.Sprint(serial)
		envelope := c.sign(t, text, serial, policydoc.Validity{})
		all.Go(func() { a.keep(c.signed(), []byte(text), envelope, "") })
	}
	all.Wait()
	if d, err := b.Kept(c.signed()); err != nil || d.Envelope.Serial != 19 {
		t.Errorf("kept at last: %d, %v", d.Envelope.Serial, err)
	}
}

func TestToken(t *testing.T) {
	c := newCentre(t)
	c.publish(t, "good", 1, policydoc.Validity{})
	c.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer sesame" {
			return false
		}
		w.WriteHeader(401)
		return true
	}
	inc := c.signed()
	inc.Token = "${POLICY_TOKEN}"
	s := &Store{Dir: t.TempDir()}
	if _, err := s.Get(t.Context(), inc, true); err == nil || !strings.Contains(err.Error(), "POLICY_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
	s.Token = func(context.Context, policydoc.Include) (string, error) { return "sesame", nil }
	get(t, s, inc, "good")
}

// What did not change is not sent again; what did, is.
func TestUnchangedIsNotSent(t *testing.T) {
	c := newCentre(t)
	c.publish(t, "good", 1, policydoc.Validity{})
	sent := 0
	c.answer = func(w http.ResponseWriter, r *http.Request) bool {
		etag := `"` + policydoc.Digest(c.envelope) + `"`
		if !strings.HasSuffix(r.URL.Path, ".sig") {
			return false
		}
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
		sent++
		return false
	}
	now := time.Now()
	s := &Store{Dir: t.TempDir(), Now: func() time.Time { return now }}
	get(t, s, c.signed(), "good")
	for range 3 {
		now = now.Add(time.Hour)
		if d := get(t, s, c.signed(), "good"); !d.Checked.Equal(now) || d.Problem != nil || d.Envelope.Serial != 1 {
			t.Errorf("unchanged: %+v", d)
		}
	}
	c.publish(t, "better", 2, policydoc.Validity{})
	if d := get(t, s, c.signed(), "better"); sent != 2 || d.Envelope.Serial != 2 {
		t.Errorf("sent %d times: %+v", sent, d)
	}
}

// A copy that has expired is not fresh, however short ago it was fetched.
func TestExpiredCopyIsFetchedAgain(t *testing.T) {
	c := newCentre(t)
	now := time.Now()
	over := now.Add(time.Minute)
	c.publish(t, "good", 1, policydoc.Validity{Expires: &over})
	s := &Store{Dir: t.TempDir(), Now: func() time.Time { return now }}
	get(t, s, c.signed(), "good")
	now = now.Add(2 * time.Minute)
	if _, err := s.Get(t.Context(), c.signed(), false); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("expired: %v", err)
	}
	c.publish(t, "better", 2, policydoc.Validity{})
	if d, err := s.Get(t.Context(), c.signed(), false); err != nil || string(d.Text) != "better" {
		t.Errorf("there is a newer one: %s, %v", d.Text, err)
	}
}
