package tap

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"
)

// How long to wait before a stream of announcements that ended is opened
// again; it doubles with each one that did not last.
const (
	listenAgain   = time.Second
	listenLongest = time.Minute
	listenLasts   = 30 * time.Second
)

// A listening is the body of the answer to subscriptions/listen, the stream on
// which a server of 2026-07-28 announces changes. The SDK opens it once and does
// nothing when it ends, as it does with each restart of the server or of a
// proxy on the way. So the listening asks again, by itself, and has the tools
// listed, since a change may have gone unannounced meanwhile:
//
//	read --(the stream ends)--> list the tools --> wait --> ask again --> read
//
// It ends when it is closed or the session ends.
type listening struct {
	tap *HTTP
	req *http.Request // as it was sent; its context is the stream's
	id  []byte

	stream *events // Read's own
	began  time.Time
	pause  time.Duration

	mu     sync.Mutex
	body   io.ReadCloser // of stream; nil once the listening is closed
	closed bool
}

func newListening(w *HTTP, req *http.Request, body io.ReadCloser, id []byte) *listening {
	l := &listening{tap: w, req: req, id: id}
	l.take(body)
	return l
}

// take makes body the one that is read, and reports whether it is wanted.
func (l *listening) take(body io.ReadCloser) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = body.Close()
		return false
	}
	l.body, l.began = body, time.Now()
	l.stream = newEvents(body, l.tap.tap, nil)
	l.stream.swallow = l.id
	return true
}

func (l *listening) Read(p []byte) (int, error) {
	for {
		n, err := l.stream.Read(p)
		if n > 0 || err == nil {
			return n, nil
		}
		if !l.reopen(err) {
			return 0, io.EOF
		}
	}
}

// reopen asks for the stream again until there is one. It reports false when
// the listening is over.
func (l *listening) reopen(why error) bool {
	_ = l.stream.Close()
	if time.Since(l.began) >= listenLasts {
		l.pause = 0
	}
	for {
		if l.req.Context().Err() != nil {
			return false
		}
		l.pause = min(max(2*l.pause, listenAgain), listenLongest)
		l.tap.tap.log.Debug("the stream on which the server announces changes ended", "why", why, "again in", l.pause)
		l.tap.tap.announce()
		timer := time.NewTimer(l.pause)
		select {
		case <-timer.C:
		case <-l.req.Context().Done():
			timer.Stop()
			return false
		}
		body, err := l.ask()
		if err == nil {
			l.tap.tap.announce()
			return l.take(body)
		}
		why = err
	}
}

// ask sends the request again and returns the body of a stream.
func (l *listening) ask() (io.ReadCloser, error) {
	req := l.req.Clone(l.req.Context())
	body, err := l.req.GetBody()
	if err != nil {
		return nil, err
	}
	req.Body = body
	resp, err := l.tap.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && media == "text/event-stream" {
		return resp.Body, nil
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, StatusError(resp.StatusCode)
	}
	return nil, errors.New("the answer is not a stream of events")
}

func (l *listening) Close() error {
	l.mu.Lock()
	l.closed = true
	body := l.body
	l.mu.Unlock()
	return body.Close()
}
