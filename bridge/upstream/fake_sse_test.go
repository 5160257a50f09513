//go:build unix

package upstream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// sse is the spec of a fake that is a server of the old HTTP transport: one
// standing stream for all its messages, and requests that are POSTed.
func (s script) sse(t *testing.T) Spec {
	t.Helper()
	f := &sseFake{fake: newFake(s), streams: map[string]*sseWire{}}
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		close(f.over)
		server.CloseClientConnections()
		server.Close()
	})
	return Spec{Name: "fake", Kind: SSE, URL: server.URL, Limits: patient}
}

type sseFake struct {
	*fake
	smu     sync.Mutex
	streams map[string]*sseWire
}

func (f *sseFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.Status != 0 {
		http.Error(w, "no", f.Status)
		return
	}
	if r.Method == http.MethodGet {
		f.stream(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.smu.Lock()
	s := f.streams[r.URL.Query().Get("s")]
	f.smu.Unlock()
	if s == nil {
		http.NotFound(w, r)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	go f.handle(body, s)
}

// stream serves one standing stream until a message on it crashes the server or
// the client goes away.
func (f *sseFake) stream(w http.ResponseWriter, r *http.Request) {
	name := time.Now().Format("150405.000000000")
	s := &sseWire{httpWire: httpWire{w: w, r: r, split: f.Split, over: f.over}, crashed: make(chan struct{})}
	f.smu.Lock()
	f.streams[name] = s
	f.smu.Unlock()
	_ = s.raw([]byte("event: endpoint\ndata: /?s=" + name + "\n\n"))
	crashed := false
	select {
	case <-r.Context().Done():
	case <-f.over:
	case <-s.crashed:
		crashed = true
	}
	f.smu.Lock()
	delete(f.streams, name)
	f.smu.Unlock()
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	if crashed {
		panic(http.ErrAbortHandler)
	}
}

type sseWire struct {
	httpWire
	mu      sync.Mutex
	gone    bool // the handler has returned: w may not be used
	once    sync.Once
	crashed chan struct{}
}

func (w *sseWire) line(s string) { _ = w.raw([]byte("data: " + s + "\n\n")) }
func (w *sseWire) lines(n int, s string) {
	for range n {
		w.line(s)
	}
}
func (w *sseWire) raw(p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return io.ErrClosedPipe
	}
	return w.httpWire.raw(p)
}
func (w *sseWire) slowly(s string, each time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range []byte("data: " + s + "\n\n") {
		if w.gone || w.httpWire.raw([]byte{b}) != nil {
			return
		}
		w.mu.Unlock()
		time.Sleep(each)
		w.mu.Lock()
	}
}
func (w *sseWire) crash() { w.once.Do(func() { close(w.crashed) }) }
func (w *sseWire) lockstep(head string, n int, filler, tail string) {
	long(w.raw, "data: "+head, n, filler, tail+"\n\n")
}
