package push

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
)

// A book is a store in memory with a key.
type book struct{ *memstore.Store }

func (book) Key(string) ([]byte, error) { return make([]byte, 32), nil }
func (book) WholeAt() time.Time         { return time.Time{} }

// add adds rows to a log.
func add(t *testing.T, to ledger.Recorder, n int) {
	t.Helper()
	for range n {
		if err := to.Record(t.Context(), ledger.Record{Event: ledger.Intent, Server: "mail", Tool: "send"}); err != nil {
			t.Fatal(err)
		}
	}
}

// A sink keeps the numbers of rows that it acknowledged.
type sink struct {
	mu   sync.Mutex
	seqs []int64
	fail error // unless nil
	took func()
}

func (s *sink) Send(_ context.Context, _ string, rows []ledger.Link) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	for _, r := range rows {
		s.seqs = append(s.seqs, r.Seq)
	}
	if s.took != nil {
		s.took()
	}
	return nil
}

func (s *sink) set(fail error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

func (s *sink) got() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seqs)
}

func upTo(n int64) (all []int64) {
	for i := range n {
		all = append(all, i+1)
	}
	return all
}

// start has a bridge push until the returned function is called.
func start(t *testing.T, o Options) (stop func()) {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		New(o).Run(ctx)
	}()
	return func() { cancel(); <-over }
}

func never(string) bool { return false }

// All rows come in order, once each; a sink that fails gets the same rows later, and costs the
// other sink nothing.
func TestInOrderAtLeastOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, good, bad, said := memstore.New(nil), new(sink), &sink{fail: errors.New("it is away")}, new(bytes.Buffer)
		add(t, log, 2*maxRows+3)
		stop := start(t, Options{Log: log, State: documents.Memory(), Bridge: "one", Gone: never, Sinks: map[string]Sink{"good": good, "bad": bad}, Logger: slog.New(slog.NewTextHandler(said, nil))})
		defer stop()
		time.Sleep(time.Minute)
		if got, want := good.got(), upTo(2*maxRows+3); !slices.Equal(got, want) {
			t.Errorf("the sink has %d rows, want %d", len(got), len(want))
		}
		add(t, log, 1)
		bad.set(nil)
		time.Sleep(2 * longWait)
		for name, s := range map[string]*sink{"good": good, "bad": bad} {
			if got, want := s.got(), upTo(2*maxRows+4); !slices.Equal(got, want) {
				t.Errorf("%s has %d rows, want %d", name, len(got), len(want))
			}
		}
		stop()
		if text := said.String(); strings.Count(text, "records are not pushed") != 1 || strings.Count(text, "records are pushed again") != 1 {
			t.Errorf("it says\n%s", text)
		}
	})
}

// Of several bridges one pushes. Another goes on where it was, at once if it ended in order.
func TestOnePushes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, state, one, two := memstore.New(nil), documents.Memory(), new(sink), new(sink)
		var gone sync.Map
		isGone := func(name string) bool { _, ok := gone.Load(name); return ok }
		options := func(name string, s *sink) Options {
			return Options{Log: log, State: state, Bridge: name, Gone: isGone, Sinks: map[string]Sink{"s": s}}
		}
		stopOne := start(t, options("one", one))
		time.Sleep(5 * time.Second)
		stopTwo := start(t, options("two", two))
		add(t, log, 3)
		time.Sleep(5 * time.Second)
		if got := two.got(); len(got) > 0 || !slices.Equal(one.got(), upTo(3)) {
			t.Errorf("two has %v, one %v", got, one.got())
		}
		stopOne()
		add(t, log, 2)
		time.Sleep(2 * time.Second)
		if got := two.got(); !slices.Equal(got, []int64{4, 5}) {
			t.Errorf("after one has ended, two has %v", got)
		}
		gone.Store("two", true) // it was away for so long that others hold it to have ended
		stopOne = start(t, options("three", one))
		time.Sleep(2 * time.Second)
		add(t, log, 1)
		time.Sleep(2 * time.Second)
		if got := one.got(); !slices.Equal(got, []int64{1, 2, 3, 6}) || len(two.got()) != 2 {
			t.Errorf("after two is gone, three has %v and two %v", got, two.got())
		}
		stopTwo()
		stopOne()
	})
}

// What was sent by a bridge that lost its turn meanwhile counts as not sent: it comes again.
func TestWhoeverLostTheTurnAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, state := memstore.New(nil), documents.Memory()
		add(t, log, 2)
		slow := New(Options{Log: log, State: state, Bridge: "slow", Gone: never, Logger: slog.New(slog.DiscardHandler)})
		taking := &sink{took: func() {
			err := New(Options{State: state, Bridge: "other"}).change(t.Context(), func(s *state_) error { s.Owner = "other"; return nil })
			if err != nil {
				t.Error(err)
			}
		}}
		if n, err := slow.turn(t.Context(), "s", taking); !errors.Is(err, errTaken) {
			t.Errorf("it acknowledged %d rows, %v", n, err)
		}
		if waiting, err := Waiting(t.Context(), log, state, []string{"s"}); err != nil || waiting["s"] != 2 {
			t.Errorf("%v wait, %v", waiting, err)
		}
	})
}

type state_ = state

// A log that is another one than what was pushed is pushed from its beginning.
func TestAnotherLogIsPushedWhole(t *testing.T) {
	t.Parallel()
	log := memstore.New(nil)
	add(t, log, 5)
	store, links, err := log.LinksAfter(t.Context(), 0, 10, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	third := hex.EncodeToString(links[2].Hash[:])
	for name, row := range map[string]struct {
		at    Position
		first int64
	}{
		"nothing was pushed":                {Position{}, 1},
		"three rows were":                   {Position{store, 3, third}, 4},
		"another log's were":                {Position{"other", 3, third}, 1},
		"an older copy is in its place":     {Position{store, 9, third}, 1},
		"an older copy has gone on since":   {Position{store, 3, strings.Repeat("0", 64)}, 1},
		"all were, and there are no others": {Position{store, 5, hex.EncodeToString(links[4].Hash[:])}, 0},
	} {
		_, rows, err := batch(t.Context(), log, row.at)
		first := int64(0)
		if len(rows) > 0 {
			first = rows[0].Seq
		}
		if err != nil || first != row.first {
			t.Errorf("%s: it goes on with row %d, %v, want %d", name, first, err, row.first)
		}
	}
}

// Prune leaves what is not acknowledged, by the sink that has come least far.
func TestPruneKeepsWhatWasNotPushed(t *testing.T) {
	t.Parallel()
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name  string
		acked map[string]int64
		sinks []string
		want  int64
	}{
		{"nobody gets any", nil, nil, 8},
		{"nothing was pushed", nil, []string{"a"}, 0},
		{"four rows were", map[string]int64{"a": 4}, []string{"a"}, 4},
		{"one sink is behind", map[string]int64{"a": 6, "b": 2}, []string{"a", "b"}, 2},
		{"one sink has nothing", map[string]int64{"a": 6}, []string{"a", "b"}, 0},
		{"one that is configured no more is behind", map[string]int64{"a": 6, "b": 2}, []string{"a"}, 6},
		{"all were", map[string]int64{"a": 9}, []string{"a"}, 8},
	} {
		b, from := book{memstore.New(nil)}, documents.Memory()
		for i := range 9 {
			if err := b.Record(t.Context(), ledger.Record{Event: ledger.Intent, Time: began.Add(time.Duration(i) * time.Minute)}); err != nil {
				t.Fatal(err)
			}
		}
		store, links, err := b.LinksAfter(t.Context(), 0, 10, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		s := state{Sinks: map[string]Position{}}
		for name, seq := range row.acked {
			s.Sinks[name] = Position{store, seq, hex.EncodeToString(links[seq-1].Hash[:])}
		}
		text, _ := json.Marshal(s)
		if err := from.Change(t.Context(), document, func([]byte) ([]byte, error) { return text, nil }); err != nil {
			t.Fatal(err)
		}
		closed := 0
		kept := Keeping(b, row.sinks, func(context.Context) (documents.Store, func(), error) { return from, func() { closed++ }, nil })
		if from, err := ledger.KeptFrom(t.Context(), kept, began.Add(8*time.Minute)); err != nil || !from.Equal(began.Add(time.Duration(row.want)*time.Minute)) {
			t.Errorf("%s: rows stay from %v on, %v", row.name, from, err)
		}
		n, err := kept.Prune(t.Context(), began.Add(8*time.Minute))
		if err != nil || n != row.want {
			t.Errorf("%s: %d rows were pruned, %v, want %d", row.name, n, err, row.want)
		}
		if len(row.sinks) > 0 && closed != 2 {
			t.Errorf("%s: the documents were closed %d times", row.name, closed)
		}
	}
	b := book{memstore.New(nil)}
	add(t, b, 2)
	unknown := Keeping(b, []string{"a"}, func(context.Context) (documents.Store, func(), error) { return nil, nil, errors.New("it is away") })
	if n, err := unknown.Prune(t.Context(), time.Now().Add(time.Hour)); err == nil || n != 0 {
		t.Errorf("%d rows were pruned although nobody knows what was pushed", n)
	}
}

// What a webhook gets, byte for byte, and signed.
func TestWebhook(t *testing.T) {
	t.Parallel()
	log, secret := memstore.New(nil), "0123456789abcdef"
	add(t, log, 2)
	store, links, err := log.LinksAfter(t.Context(), 0, 10, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	status, other := http.StatusNoContent, 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other++ }))
	defer elsewhere.Close()
	var body []byte
	var header http.Header
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		header = r.Header
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(status)
	}))
	defer at.Close()
	w := &Webhook{URL: at.URL + "/secret-path", Secret: []byte(secret), Version: "1", Now: func() time.Time { return time.Unix(1700000000, 0) }}
	if err := w.Send(t.Context(), store, links); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"store":%q,"rows":[{"seq":1,"hash":"%x","record":%s},{"seq":2,"hash":"%x","record":%s}]}`, store, links[0].Hash, links[0].Body, links[1].Hash, links[1].Body)
	if string(body) != want || !json.Valid(body) {
		t.Errorf("it gets\n%s\nwant\n%s", body, want)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("1700000000." + want))
	for name, want := range map[string]string{"Codemode-Timestamp": "1700000000", "Codemode-Signature": "v1=" + hex.EncodeToString(mac.Sum(nil)), "Codemode-Delivery": store + "/1-2", "Content-Type": "application/json"} {
		if got := header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for code, want := range map[int]string{http.StatusTemporaryRedirect: "redirects, which is not followed", http.StatusNotFound: "answered 404", http.StatusInternalServerError: "answered 500", http.StatusOK: ""} {
		status = code
		err := w.Try(t.Context())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-path")) {
			t.Errorf("%d: %v, want %q", code, err, want)
		}
	}
	if other != 0 {
		t.Error("a redirect was followed")
	}
	at.Close()
	if err := w.Try(t.Context()); err == nil || strings.Contains(err.Error(), "secret-path") {
		t.Errorf("away: %v", err)
	}
}
