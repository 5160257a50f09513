package centre

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/enrolment"
	"codemode-bridge/bridge/enrolment/wire"
	"codemode-bridge/bridge/ledger"

	_ "modernc.org/sqlite"
)

// A log is a laptop's audit log: rows that can be copied, cut and continued.
type log struct {
	mu    sync.Mutex
	store string
	links []ledger.Link
}

func (l *log) write(texts ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range texts {
		body, err := ledger.Encode(ledger.Record{Event: ledger.Intent, Tool: text, Time: time.Date(2030, 1, 1, 0, 0, len(l.links), 0, time.UTC)}, time.Now)
		if err != nil {
			panic(err)
		}
		next := ledger.Link{Seq: 1, Body: body}
		var prev ledger.Hash
		if n := len(l.links); n > 0 {
			next.Seq, prev = l.links[n-1].Seq+1, l.links[n-1].Hash
		}
		next.Hash = ledger.HashRow(l.store, next.Seq, prev, body)
		l.links = append(l.links, next)
	}
}

func (l *log) copied() []ledger.Link { return slices.Clone(l.links) }

func (l *log) LinksAfter(_ context.Context, after int64, rows, size int) (string, []ledger.Link, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []ledger.Link
	for _, k := range l.links {
		if k.Seq > after && len(found) < rows && size > 0 {
			found, size = append(found, k), size-len(k.Body)
		}
	}
	return l.store, found, nil
}

func (l *log) Head(context.Context) (int64, ledger.Hash, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.links) == 0 {
		return 0, ledger.Hash{}, nil
	}
	last := l.links[len(l.links)-1]
	return last.Seq, last.Hash, nil
}

// A line carries requests to a centre, as long as nothing disturbs it.
type line struct {
	to http.Handler

	mu      sync.Mutex
	disturb func(n int, r *http.Request, carry func() *http.Response) (*http.Response, error)
	all     []string // the requests' paths
	raw     []*http.Request
}

func (w *line) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.all = append(w.all, r.URL.Path)
	n := len(w.all)
	again := r.Clone(context.Background())
	again.Body = io.NopCloser(bytes.NewReader(body))
	w.raw = append(w.raw, again)
	disturb := w.disturb
	w.mu.Unlock()
	carry := func() *http.Response {
		in := httptest.NewRequest(r.Method, r.URL.String(), bytes.NewReader(body))
		in.Header = r.Header.Clone()
		out := httptest.NewRecorder()
		w.to.ServeHTTP(out, in)
		return out.Result()
	}
	if disturb != nil {
		return disturb(n, r, carry)
	}
	return carry(), nil
}

// request returns the nth request, from 1.
func (w *line) request(n int) *http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.raw[n-1]
}

// asked returns how many requests there were, and disturbed says what happens to the next ones.
func (w *line) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

func (w *line) disturbed(how func(n int, r *http.Request, carry func() *http.Response) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disturb = how
}

// notes are what a centre has recorded.
type notes struct {
	mu  sync.Mutex
	all []ledger.Record
}

func (n *notes) Record(_ context.Context, all ...ledger.Record) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, all...)
	return nil
}

func (n *notes) what() (all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.all {
		var is Note
		json.Unmarshal(r.Detail, &is)
		all = append(all, strings.TrimSpace(is.What+" "+is.Laptop))
	}
	return all
}

// Rows are those of the centre's own log.
func (n *notes) Rows(_ context.Context, q ledger.Query) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for i, r := range n.all {
			if row := (ledger.Row{Seq: int64(i + 1), Record: r}); q.Selects(row) && !yield(row, nil) {
				return
			}
		}
	}
}

var (
	centreKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	sealKey   = bytes.Repeat([]byte{9}, ledger.KeySize)
)

// A stage has a centre, a wire to it, and one laptop.
type stage struct {
	t      *testing.T
	store  *Store
	file   string
	notes  *notes
	centre *Centre
	wire   *line
	log    *log
	folder enrolment.Folder
	ahead  time.Duration // of the centre's clock
}

func openStore(t *testing.T, file string) *Store {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(file)+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(t.Context(), db, SQLite)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, file: filepath.Join(t.TempDir(), "laptops.db"), notes: new(notes), log: &log{store: "log-1"}, folder: enrolment.Folder(t.TempDir())}
	s.store = openStore(t, s.file)
	s.centre = New(Options{Store: s.store, Key: centreKey, Seal: sealKey, Record: s.notes, Now: func() time.Time { return time.Now().Add(s.ahead) }})
	s.wire = &line{to: s.centre}
	return s
}

func (s *stage) close() { s.store.Close() }

func (s *stage) invite(person, laptop string, again bool) string {
	s.t.Helper()
	text := wire.NewCode(centreKey.Public().(ed25519.PublicKey))
	secret, _, err := wire.ParseCode(text)
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now().Add(s.ahead)
	_, err = s.store.Invite(s.t.Context(), Code{ID: wire.CodeID(secret), Key: wire.CodeKey(secret), Person: person, Laptop: laptop, Until: now.Add(CodeTime)}, again, now)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

func (s *stage) enrolWith(code string, folder enrolment.Folder, l *log) error {
	s.t.Helper()
	key, err := folder.Key(true)
	if err != nil {
		s.t.Fatal(err)
	}
	store, _, _ := l.LinksAfter(s.t.Context(), 0, 1, 1)
	seq, hash, _ := l.Head(s.t.Context())
	e, err := enrolment.Enrol(s.t.Context(), "https://centre.test", code, key, wire.Head{Store: store, Seq: seq, Hash: wire.Hash(hash)}, "1", s.wire)
	if err == nil {
		err = folder.Save(e)
	}
	return err
}

func (s *stage) enrol() {
	s.t.Helper()
	if err := s.enrolWith(s.invite("ann", "", false), s.folder, s.log); err != nil {
		s.t.Fatal(err)
	}
}

// sends runs a sender until stop, which waits for its end.
func (s *stage) sends(l *log) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan struct{})
	sender := enrolment.NewSender(enrolment.Options{Folder: s.folder, Log: l, Version: "1", Transport: s.wire})
	go func() { defer close(ended); sender.Run(ctx) }()
	return func() { cancel(); <-ended }
}

func (s *stage) during(d time.Duration, l *log) {
	stop := s.sends(l)
	time.Sleep(d)
	stop()
}

func (s *stage) laptop(name string) *Laptop {
	s.t.Helper()
	l, err := s.store.Laptop(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// has checks that the centre has these rows of the laptop ann, and that its chain is whole.
func (s *stage) has(want []ledger.Link) {
	s.t.Helper()
	l := s.laptop("ann")
	var got []ledger.Link
	for link, err := range s.store.Rows(s.t.Context(), "ann", len(l.Chains), 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		got = append(got, link)
	}
	same := slices.EqualFunc(got, want, func(a, b ledger.Link) bool {
		return a.Seq == b.Seq && a.Hash == b.Hash && bytes.Equal(a.Body, b.Body)
	})
	if !same {
		s.t.Errorf("the centre has %d rows, want %d, the same", len(got), len(want))
	}
	if r := s.verify(); !r.Whole {
		s.t.Errorf("the chain is not whole: %s", r.Message)
	}
}

func (s *stage) verify() ledger.Report {
	s.t.Helper()
	l := s.laptop("ann")
	noted, err := Noted(s.t.Context(), s.notes, l.Name, len(l.Chains))
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := Verify(s.t.Context(), s.store, l, len(l.Chains), sealKey, noted)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *stage) sent() enrolment.Sent {
	s.t.Helper()
	sent, err := s.folder.Sent()
	if err != nil {
		s.t.Fatal(err)
	}
	return sent
}

func many(n int, prefix string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", prefix, i))
	}
	return all
}

// staged runs a test with a clock of its own.
func staged(t *testing.T, do func(t *testing.T, s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.close()
		do(t, s)
	})
}

func TestRowsGoUp(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.log.write(many(3, "before")...)
		s.enrol()
		s.log.write(many(1200, "row")...)
		stop := s.sends(s.log)
		time.Sleep(time.Minute)
		s.log.write("later")
		time.Sleep(6 * time.Second)
		stop()
		s.has(s.log.copied()[3:])
		if sent := s.sent(); sent.Head.Seq != 1204 || sent.Waiting != 0 || sent.Problem != "" {
			t.Errorf("the laptop notes %+v", sent)
		}
		l := s.laptop("ann")
		if l.Person != "ann" || l.Rows() != 1201 || l.State() != "enrolled" || time.Since(l.Seen) > 10*time.Second {
			t.Errorf("the centre knows %+v", l)
		}
		if got := s.notes.what(); got[0] != "enrolled ann" || !slices.Contains(got, "rows ann") {
			t.Errorf("the centre records %q", got)
		}
	})
}

// A laptop without new rows is seen all the same.
func TestQuietLaptopIsSeen(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		s.during(time.Hour, s.log)
		if seen := s.laptop("ann").Seen; time.Since(seen) > 70*time.Second {
			t.Errorf("last seen %v ago", time.Since(seen))
		}
		if n := s.wire.asked(); n > 2+65 {
			t.Errorf("%d requests in an hour without rows", n)
		}
	})
}

var errCut = errors.New("connection reset")

// Whatever is cut, before the request arrives or before its answer does, every row is there
// once in the end.
func TestCutConnections(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		s.wire.disturbed(func(n int, r *http.Request, carry func() *http.Response) (*http.Response, error) {
			switch n % 5 {
			case 0: // half of the body arrives
				body, _ := io.ReadAll(s.wire.request(n).Body)
				in := httptest.NewRequest(r.Method, r.URL.String(), io.MultiReader(bytes.NewReader(body[:len(body)/2]), brokenReader{}))
				in.Header = r.Header.Clone()
				s.centre.ServeHTTP(httptest.NewRecorder(), in)
				return nil, errCut
			case 1:
				return nil, errCut
			case 2: // the answer is lost
				carry()
				return nil, errCut
			case 3: // the answer is cut
				got := carry()
				got.Body = io.NopCloser(io.MultiReader(io.LimitReader(got.Body, 10), brokenReader{}))
				return got, nil
			}
			return carry(), nil
		})
		for range 20 {
			s.log.write(many(300, "row")...)
			s.during(20*time.Second, s.log) // and the bridge is started again
		}
		s.during(time.Hour, s.log)
		s.has(s.log.copied())
	})
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errCut }

// Of a captured request nothing counts twice, and nothing can be changed in it.
func TestReplayedAndChangedRequests(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		s.log.write("a")
		s.during(time.Minute+5*time.Second, s.log)
		before := s.laptop("ann")
		last := s.wire.raw[len(s.wire.raw)-1]
		body, _ := io.ReadAll(last.Body)
		send := func(change func(*http.Request)) (int, wire.Refusal) {
			in := httptest.NewRequest(last.Method, last.URL.String(), bytes.NewReader(body))
			in.Header = last.Header.Clone()
			change(in)
			out := httptest.NewRecorder()
			s.centre.ServeHTTP(out, in)
			var r wire.Refusal
			json.Unmarshal(out.Body.Bytes(), &r)
			return out.Code, r
		}
		if status, r := send(func(*http.Request) {}); status != 409 || r.Code != wire.Replayed {
			t.Errorf("again: %d %v", status, r.Code)
		}
		for what, change := range map[string]func(*http.Request){
			"body":  func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{}`)) },
			"path":  func(r *http.Request) { r.URL.Path = wire.PathLeave },
			"stamp": func(r *http.Request) { r.Header.Set(wire.HeaderStamp, fmt.Sprint(time.Now().UnixMicro())) },
			"none":  func(r *http.Request) { r.Header.Del(wire.HeaderSignature) },
		} {
			if status, r := send(change); status != 401 || r.Code != wire.BadSignature {
				t.Errorf("another %s: %d %v", what, status, r.Code)
			}
		}
		if status, r := send(func(r *http.Request) { r.Header.Set(wire.HeaderLaptop, "bob") }); status != 401 || r.Code != wire.Unknown {
			t.Errorf("another name: %d %v", status, r.Code)
		}
		if status, _ := send(func(r *http.Request) { r.Header.Set("Origin", "https://evil.test") }); status != 403 {
			t.Errorf("a page in a browser: %d", status)
		}
		if after := s.laptop("ann"); after.Stamp != before.Stamp || after.State() != "enrolled" {
			t.Errorf("it counted: %+v", after)
		}
	})
}

// Batches that do not continue what is there, or do not hang together, are refused.
func TestReorderedBatches(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		s.log.write(many(9, "row")...)
		all := s.log.copied()
		client := s.client()
		batch := func(from, to int) wire.Batch {
			b := wire.Batch{Store: "log-1", After: int64(from), Waiting: int64(9 - to)}
			if from > 0 {
				b.Prev = wire.Hash(all[from-1].Hash)
			}
			for _, l := range all[from:to] {
				b.Rows = append(b.Rows, wire.Row{Seq: l.Seq, Hash: wire.Hash(l.Hash), Body: string(l.Body)})
			}
			return b
		}
		refused := func(b wire.Batch, want wire.Reason) {
			t.Helper()
			var r *wire.Refusal
			if _, err := client.Send(t.Context(), b); !errors.As(err, &r) || r.Code != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		taken := func(b wire.Batch, want int64) {
			t.Helper()
			if h, err := client.Send(t.Context(), b); err != nil || h.Seq != want {
				t.Errorf("%v %v, want %d", h, err, want)
			}
		}
		refused(batch(3, 6), wire.Gap)
		taken(batch(0, 3), 3)
		taken(batch(0, 3), 3) // again
		taken(batch(1, 5), 5) // overlapping
		taken(batch(0, 2), 5) // an older one that was late
		refused(batch(6, 9), wire.Gap)
		mixed := batch(5, 9)
		mixed.Rows[0], mixed.Rows[1] = mixed.Rows[1], mixed.Rows[0]
		refused(mixed, wire.Broken)
		missing := batch(5, 9)
		missing.Rows = slices.Delete(missing.Rows, 1, 2)
		refused(missing, wire.Broken)
		edited := batch(5, 9)
		edited.Rows[2].Body = strings.Replace(edited.Rows[2].Body, "row", "raw", 1)
		refused(edited, wire.Broken)
		taken(batch(5, 9), 9)
		s.has(all)
	})
}

func (s *stage) client() *enrolment.Client {
	e, err := s.folder.Enrolment()
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := s.folder.Key(false)
	if err != nil {
		s.t.Fatal(err)
	}
	return enrolment.NewClient(e, key, s.wire)
}

// A backup of the laptop's log that was restored is found: at once if nothing was written
// since, and if it went on. Nothing more is taken until the laptop is invited again.
func TestForkedLog(t *testing.T) {
	for name, onward := range map[string][]string{"older": nil, "shorter": {"other"}, "as long": many(5, "other"), "longer": many(9, "other")} {
		t.Run(name, func(t *testing.T) {
			staged(t, func(t *testing.T, s *stage) {
				s.enrol()
				s.log.write(many(5, "row")...)
				backup := s.log.copied()
				s.log.write(many(5, "row")...)
				s.during(time.Minute+5*time.Second, s.log)
				before := s.log.copied()
				restored := &log{store: "log-1", links: backup}
				restored.write(onward...)
				s.during(time.Hour, restored)
				if l := s.laptop("ann"); l.State() != "forked" || l.Rows() != 10 {
					t.Fatalf("the laptop is %s with %d rows: %s", l.State(), l.Rows(), l.Forked)
				}
				if sent := s.sent(); sent.Reason != wire.Forked || !strings.Contains(sent.Problem, "invites it again") {
					t.Errorf("the laptop notes %+v", sent)
				}
				s.has(before)
				if got := s.notes.what(); !slices.Contains(got, "forked ann") {
					t.Errorf("the centre records %q", got)
				}
				if err := s.enrolWith(s.invite("", "ann", true), s.folder, restored); err != nil {
					t.Fatal(err)
				}
				restored.write("anew")
				s.during(time.Minute, restored)
				s.has(restored.copied()[len(restored.links)-1:])
				if l := s.laptop("ann"); len(l.Chains) != 2 || l.State() != "enrolled" {
					t.Errorf("after the second invitation: %s, %d chains", l.State(), len(l.Chains))
				}
			})
		})
	}
}

// After a repair of the laptop's log the new one goes up from its beginning.
func TestRepairedLog(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		s.log.write(many(5, "row")...)
		s.during(time.Minute, s.log)
		anew := &log{store: "log-2"}
		anew.write(many(3, "new")...)
		s.during(time.Minute, anew)
		s.has(anew.copied())
		if l := s.laptop("ann"); l.Rows() != 8 || l.State() != "enrolled" {
			t.Errorf("%d rows, %s", l.Rows(), l.State())
		}
		if !slices.Contains(s.notes.what(), "began a new log ann") {
			t.Errorf("the centre records %q", s.notes.what())
		}
		s.during(2*time.Minute, s.log) // and back
		if l := s.laptop("ann"); l.State() != "forked" {
			t.Errorf("an earlier log: %s", l.State())
		}
	})
}

func TestRevokedLaptop(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		s.log.write("a")
		s.during(time.Minute, s.log)
		err := s.store.Change(t.Context(), "ann", func(l *Laptop) ([]ledger.Link, error) {
			now := time.Now()
			l.Revoked = &now
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.log.write("b")
		before := s.wire.asked()
		s.during(10*time.Hour, s.log)
		if n := s.wire.asked() - before; n < 2 || n > 25 {
			t.Errorf("a revoked laptop asked %d times in ten hours", n)
		}
		if l := s.laptop("ann"); l.Rows() != 1 {
			t.Errorf("%d rows of a revoked laptop", l.Rows())
		}
		if sent := s.sent(); sent.Reason != wire.Revoked || sent.Waiting != 1 {
			t.Errorf("the laptop notes %+v", sent)
		}
		if err := s.client().Leave(t.Context()); err == nil {
			t.Error("a revoked laptop leaves")
		}
	})
}

func TestLeave(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		s.log.write("a")
		stop := s.sends(s.log)
		time.Sleep(time.Minute)
		if err := s.client().Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.folder.Leave(); err != nil {
			t.Fatal(err)
		}
		s.log.write("b")
		before := s.wire.asked()
		time.Sleep(time.Hour)
		stop()
		if n := s.wire.asked() - before; n != 0 {
			t.Errorf("%d requests after it has left", n)
		}
		if l := s.laptop("ann"); l.State() != "left" || l.Rows() != 1 {
			t.Errorf("%s with %d rows", l.State(), l.Rows())
		}
		if _, err := s.folder.Enrolment(); !errors.Is(err, enrolment.ErrNotEnrolled) {
			t.Error(err)
		}
	})
}

// A code is good for one machine and ten minutes, wrong ones are limited, and the right one
// is not held up by them.
func TestStolenCode(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		refused := func(code string, want wire.Reason) {
			t.Helper()
			var r *wire.Refusal
			if err := s.enrolWith(code, enrolment.Folder(t.TempDir()), &log{store: "log-9"}); !errors.As(err, &r) || r.Code != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		code := s.invite("ann", "", false)
		if err := s.enrolWith(code, s.folder, s.log); err != nil {
			t.Fatal(err)
		}
		if err := s.enrolWith(code, s.folder, s.log); err != nil {
			t.Errorf("the same machine, whose answer was lost: %v", err)
		}
		refused(code, wire.UsedCode)
		late := s.invite("bob", "", false)
		time.Sleep(CodeTime)
		refused(late, wire.BadCode)
		good := s.invite("cat", "", false)
		for range wrongBurst {
			s.enrolWith(wire.NewCode(centreKey.Public().(ed25519.PublicKey)), enrolment.Folder(t.TempDir()), &log{store: "log-9"})
		}
		refused(wire.NewCode(centreKey.Public().(ed25519.PublicKey)), wire.TooMany)
		if err := s.enrolWith(good, enrolment.Folder(t.TempDir()), &log{store: "log-9"}); err != nil {
			t.Errorf("the right code: %v", err)
		}
		all, err := s.store.Laptops(t.Context())
		if err != nil || len(all) != 2 || all[0].Name != "ann" || all[1].Name != "cat" {
			t.Errorf("%v %v", all, err)
		}
	})
}

// Two laptops of one person have two names, and a name is given once.
func TestNames(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		for range 2 {
			if err := s.enrolWith(s.invite("ann", "", false), enrolment.Folder(t.TempDir()), &log{store: "log-9"}); err != nil {
				t.Fatal(err)
			}
		}
		s.invite("ann", "", false)
		code := Code{ID: "x", Person: "ann", Laptop: "ann-3", Until: time.Now().Add(time.Minute)}
		if _, err := s.store.Invite(t.Context(), code, false, time.Now()); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("a name that is taken: %v", err)
		}
		code.Laptop = "zoe"
		if _, err := s.store.Invite(t.Context(), code, true, time.Now()); !errors.Is(err, ErrUnknown) {
			t.Errorf("again, and not there: %v", err)
		}
		if l := s.laptop("ann-2"); l.Person != "ann" {
			t.Errorf("%+v", l)
		}
	})
}

// Somebody in between, or another centre, learns nothing of the code, and its answers do
// not count.
func TestWrongCentreKey(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		code := s.invite("ann", "", false)
		other := New(Options{Store: s.store, Key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, 32)), Record: s.notes})
		s.wire.to = other
		if err := s.enrolWith(code, s.folder, s.log); err == nil || !strings.Contains(err.Error(), "does not have the key") {
			t.Errorf("another centre: %v", err)
		}
		if !slices.Equal(s.wire.all, []string{wire.PathCentre}) {
			t.Errorf("it was asked %q", s.wire.all)
		}
		s.wire.to = s.centre
		if err := s.enrolWith(code, s.folder, s.log); err != nil {
			t.Fatal(err)
		}
		s.log.write("a")
		s.wire.to = other
		s.during(time.Minute, s.log)
		if sent := s.sent(); !strings.Contains(sent.Problem, "not signed with the centre's key") || sent.Head.Seq != 0 {
			t.Errorf("the laptop notes %+v", sent)
		}
		s.wire.to = s.centre
		s.during(10*time.Minute, s.log)
		s.has(s.log.copied())
	})
}

// A machine in between that passes on what it sees cannot put its own key into a request.
func TestKeyIsBoundToCode(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.wire.disturbed(func(n int, r *http.Request, carry func() *http.Response) (*http.Response, error) {
			if r.URL.Path == wire.PathEnrol {
				body, _ := io.ReadAll(s.wire.request(n).Body)
				var e wire.Enrolling
				json.Unmarshal(body, &e)
				e.Key = bytes.Repeat([]byte{1}, ed25519.PublicKeySize)
				changed, _ := json.Marshal(e)
				in := httptest.NewRequest(r.Method, r.URL.String(), bytes.NewReader(changed))
				in.Header = r.Header.Clone()
				out := httptest.NewRecorder()
				s.centre.ServeHTTP(out, in)
				return out.Result(), nil
			}
			return carry(), nil
		})
		var r *wire.Refusal
		if err := s.enrolWith(s.invite("ann", "", false), s.folder, s.log); !errors.As(err, &r) || r.Code != wire.BadCode {
			t.Error(err)
		}
	})
}

func TestClockOff(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute, -24 * time.Hour} {
		staged(t, func(t *testing.T, s *stage) {
			s.ahead = ahead
			s.enrol()
			s.log.write("a", "b")
			s.during(2*time.Minute, s.log)
			s.log.write("c")
			s.during(2*time.Minute, s.log)
			s.has(s.log.copied())
			if sent := s.sent(); sent.Skew.Round(time.Minute) != ahead || sent.Problem != "" {
				t.Errorf("the laptop notes %+v", sent)
			}
		})
	}
}

// A centre that is away for a day is not asked without end, and gets everything later.
func TestCentreDownForLong(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		s.wire.disturbed(func(int, *http.Request, func() *http.Response) (*http.Response, error) { return nil, errCut })
		before := s.wire.asked()
		stop := s.sends(s.log)
		for range 24 {
			s.log.write(many(50, "row")...)
			time.Sleep(time.Hour)
		}
		if n := s.wire.asked() - before; n < 24*60/8 || n > 24*60/2 {
			t.Errorf("it was asked %d times in a day", n)
		}
		if sent := s.sent(); !strings.Contains(sent.Problem, "cannot be reached") || sent.Waiting != 1200 {
			t.Errorf("the laptop notes %+v", sent)
		}
		s.wire.disturbed(nil)
		time.Sleep(10 * time.Minute)
		stop()
		s.has(s.log.copied())
	})
}

// A centre whose store was restored from a backup gets the rows again that it misses.
func TestCentreRestored(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		s.log.write(many(4, "row")...)
		s.during(time.Minute, s.log)
		err := s.store.Change(t.Context(), "ann", func(l *Laptop) ([]ledger.Link, error) {
			k := &l.Chains[0]
			k.Seq, k.Hash, k.Noted = 2, s.log.links[1].Hash, 0
			_, err := s.store.db.Exec("SELECT 1")
			return nil, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.store.db.Exec("DELETE FROM laptop_rows WHERE seq > 2"); err != nil {
			t.Fatal(err)
		}
		s.notes.all = nil
		s.log.write("later")
		s.during(10*time.Minute, s.log)
		s.has(s.log.copied())
	})
}

// Rows that somebody changes in the centre's database are found.
func TestVerifyFinds(t *testing.T) {
	for name, change := range map[string]struct {
		do   string
		want ledger.Kind
	}{
		"edit":    {`UPDATE laptop_rows SET body = replace(CAST(body AS TEXT), 'row4', 'row5') WHERE seq = 5`, ledger.Edited},
		"removal": {`DELETE FROM laptop_rows WHERE seq = 5`, ledger.Removed},
		"cut":     {`DELETE FROM laptop_rows WHERE seq > 5`, ledger.Cut},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, func(t *testing.T, s *stage) {
				s.enrol()
				s.log.write(many(9, "row")...)
				s.during(time.Minute, s.log)
				if r := s.verify(); !r.Whole || !r.Sealed || r.Rows != 9 {
					t.Fatalf("%+v", r)
				}
				if _, err := s.store.db.Exec(change.do); err != nil {
					t.Fatal(err)
				}
				if r := s.verify(); r.Whole || r.Kind != change.want {
					t.Errorf("%+v", r)
				}
			})
		})
	}
	t.Run("the beginning, and where it began with it", func(t *testing.T) {
		staged(t, func(t *testing.T, s *stage) {
			s.enrol()
			s.log.write(many(9, "row")...)
			s.during(time.Minute, s.log)
			s.store.Change(t.Context(), "ann", func(l *Laptop) ([]ledger.Link, error) {
				l.Chains[0].From, l.Chains[0].FromHash = 5, s.log.links[4].Hash
				return nil, nil
			})
			s.store.db.Exec("DELETE FROM laptop_rows WHERE seq <= 5")
			if r := s.verify(); r.Whole || r.Kind != ledger.Removed {
				t.Errorf("%+v", r)
			}
		})
	})
	t.Run("cut, and the laptop's last row with it", func(t *testing.T) {
		staged(t, func(t *testing.T, s *stage) {
			s.enrol()
			s.log.write(many(9, "row")...)
			s.during(time.Minute, s.log)
			s.store.Change(t.Context(), "ann", func(l *Laptop) ([]ledger.Link, error) {
				l.Chains[0].Seq, l.Chains[0].Hash = 5, s.log.links[4].Hash
				return nil, nil
			})
			s.store.db.Exec("DELETE FROM laptop_rows WHERE seq > 5")
			if r := s.verify(); r.Whole || r.Kind != ledger.Cut {
				t.Errorf("%+v", r) // the centre's own log has a checkpoint
			}
		})
	})
}

// The policy and who signed it are served as they are at the moment, to everybody; a laptop is
// told the key when it is enrolled.
func TestPolicyIsServed(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		get := func(path string) (int, string) {
			out := httptest.NewRecorder()
			s.centre.ServeHTTP(out, httptest.NewRequest("GET", path, nil))
			return out.Code, out.Body.String()
		}
		if status, _ := get(wire.PathPolicy); status != 404 {
			t.Errorf("without a policy: %d", status)
		}
		file := filepath.Join(t.TempDir(), "policy.json")
		o := s.centre.o
		o.Policy = file
		s.centre = New(o)
		s.wire.to = s.centre
		if status, _ := get(wire.PathPolicy); status != 503 {
			t.Errorf("without its file: %d", status)
		}
		var no *wire.Refusal
		if err := s.enrolWith(s.invite("bob", "", false), enrolment.Folder(t.TempDir()), &log{store: "log-9"}); !errors.As(err, &no) || no.Code != wire.Failed {
			t.Errorf("a laptop that could not be told the key: %v", err)
		}
		for _, text := range []string{`{"evaluation": {}}`, `{"evaluation": {"newTools": "deny"}}`} {
			os.WriteFile(file, []byte(text), 0o600)
			os.WriteFile(file+".sig", []byte(`{"key": "ed25519:x", "serial": 1}`), 0o600)
			if status, got := get(wire.PathPolicy); status != 200 || got != text {
				t.Errorf("%d %s", status, got)
			}
			if status, got := get(wire.PathPolicySig); status != 200 || !strings.Contains(got, "ed25519:x") {
				t.Errorf("%d %s", status, got)
			}
		}
		s.enrol()
		if e, err := s.folder.Enrolment(); err != nil || e.PolicyKey != "ed25519:x" {
			t.Errorf("%+v %v", e, err)
		}
	})
}

// Of two processes of a laptop one sends.
func TestTwoProcesses(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		var mu sync.Mutex
		under := 0
		s.wire.disturbed(func(_ int, _ *http.Request, carry func() *http.Response) (*http.Response, error) {
			mu.Lock()
			under++
			if under > 1 {
				t.Error("two requests at once")
			}
			mu.Unlock()
			time.Sleep(time.Second)
			got := carry()
			mu.Lock()
			under--
			mu.Unlock()
			return got, nil
		})
		first, second := s.sends(s.log), s.sends(s.log)
		for range 10 {
			s.log.write("row")
			time.Sleep(3 * time.Second)
		}
		time.Sleep(time.Minute)
		first()
		second()
		s.has(s.log.copied())
	})
}

// asked are the questions of laptops, as a test keeps them.
type asked struct {
	mu        sync.Mutex
	texts     []string
	withdrawn []string
}

func (a *asked) Ask(_ context.Context, laptop, person string, text []byte) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.texts = append(a.texts, laptop+" of "+person+": "+string(text))
	return map[string]string{"heard": string(text)}, nil
}

func (a *asked) Withdraw(_ context.Context, laptop string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.withdrawn = append(a.withdrawn, laptop)
	return nil
}

// Questions are those of the laptop that signs; of one that is revoked or has left none stay, and
// an answer on the way is the centre's, to that request.
func TestQuestions(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		desk := new(asked)
		s.centre = New(Options{Store: s.store, Key: centreKey, Seal: sealKey, Record: s.notes, Questions: desk})
		s.wire.to = s.centre
		s.enrol()
		ask := func() (string, error) {
			var out struct{ Heard string }
			err := s.client().Ask(t.Context(), map[string]int{"n": 1}, &out)
			return out.Heard, err
		}
		if got, err := ask(); err != nil || got != `{"n":1}` || !slices.Equal(desk.texts, []string{`ann of ann: {"n":1}`}) {
			t.Errorf("%q, %v, %q", got, err, desk.texts)
		}
		var kept *http.Response // an earlier answer, which was good
		s.wire.disturbed(func(_ int, _ *http.Request, carry func() *http.Response) (*http.Response, error) {
			kept = carry()
			return kept, nil
		})
		if got, err := ask(); err != nil || got != `{"n":1}` {
			t.Errorf("%q, %v", got, err)
		}
		for name, disturb := range map[string]func(n int, r *http.Request, carry func() *http.Response) (*http.Response, error){
			"changed": func(_ int, _ *http.Request, carry func() *http.Response) (*http.Response, error) {
				res := carry()
				res.Body = io.NopCloser(strings.NewReader(`{"heard":"yes"}`))
				return res, nil
			},
			"replayed": func(int, *http.Request, func() *http.Response) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: kept.Header, Body: io.NopCloser(strings.NewReader(`{"heard":"{\"n\":1}"}`))}, nil
			},
		} {
			s.wire.disturbed(disturb)
			if got, err := ask(); err == nil || got != "" || !strings.Contains(err.Error(), "is not signed with the centre's key") {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		s.wire.disturbed(nil)
		now := time.Now()
		if err := s.store.Change(t.Context(), "ann", func(l *Laptop) ([]ledger.Link, error) { l.Revoked = &now; return nil, nil }); err != nil {
			t.Fatal(err)
		}
		before := len(desk.texts)
		var no *wire.Refusal
		if _, err := ask(); !errors.As(err, &no) || no.Code != wire.Revoked || len(desk.texts) != before || !slices.Equal(desk.withdrawn, []string{"ann"}) {
			t.Errorf("revoked: %v, withdrawn %q", err, desk.withdrawn)
		}
		if err := s.store.Change(t.Context(), "ann", func(l *Laptop) ([]ledger.Link, error) { l.Revoked = nil; return nil, nil }); err != nil {
			t.Fatal(err)
		}
		if err := s.client().Leave(t.Context()); err != nil || len(desk.withdrawn) != 2 {
			t.Errorf("left: %v, withdrawn %q", err, desk.withdrawn)
		}
	})
}

// The centre knows which of its policies is in force at a laptop.
func TestPolicyInForce(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		e, err := s.folder.Enrolment()
		if err == nil {
			e.PolicyKey = "ed25519:key"
			err = s.folder.Save(e)
		}
		if err != nil {
			t.Fatal(err)
		}
		for serial, key := range map[int64]string{7: "ed25519:key", 0: "ed25519:other"} {
			sender := enrolment.NewSender(enrolment.Options{Folder: s.folder, Log: s.log, Transport: s.wire, Policy: func(of string) int64 {
				if of == key {
					return serial
				}
				return 0
			}})
			if err := sender.Once(t.Context()); err != nil || s.laptop("ann").Policy != serial {
				t.Errorf("the serial there is %d, %v; want %d", s.laptop("ann").Policy, err, serial)
			}
		}
	})
}

// A copy of a store has the same laptops and rows, and the same seals; it is made once.
func TestReceive(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.enrol()
		s.log.write(many(700, "row ")...)
		s.during(time.Second, s.log)
		old := s.store
		s.store = openStore(t, filepath.Join(t.TempDir(), "copy.db"))
		defer old.Close()
		if n, err := s.store.Receive(t.Context(), old); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		s.has(s.log.copied())
		if _, err := s.store.Receive(t.Context(), old); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("once more: %v", err)
		}
	})
}
