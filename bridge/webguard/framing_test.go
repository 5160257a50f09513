package webguard

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	plain   = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
	chunks  = "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n3\r\na\r\n\r\n0\r\nX-Trailer: y\r\n\r\n"
	without = "GET /c HTTP/1.1\r\nHost: x\r\n\r\n"
	both    = "POST /d HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	hidden  = "POST /e HTTP/1.1\r\nHost: x\r\nContent-Length: 82\r\n\r\nPOST /f HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0123456789\r\n\r\n"
)

// On a connection that is kept, and with requests that come together, the ones
// before are answered, and the one with both headers is the last.
func TestBothFramingHeaders(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d %v", r.URL.Path, len(body), err)
	}))
	server.Listener = Strict(server.Listener)
	server.Start()
	t.Cleanup(server.Close)
	for _, row := range []struct{ sent, want string }{
		{plain + chunks + without + plain, "200 /a 5 <nil>; 200 /b 8 <nil>; 200 /c 0 <nil>; 200 /a 5 <nil>"},
		{hidden + "\r\n" + without, "200 /e 82 <nil>; 200 /c 0 <nil>"},
		{both + without, "400"},
		{plain + chunks + both + without, "200 /a 5 <nil>; 200 /b 8 <nil>; 400"},
		{strings.Replace(both, "Transfer-Encoding", "tRANSFER-eNCODING", 1), "400"},
		{"POST /d HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nContent-length:\t0\n\n0\n\n", "400"},
		{"POST /d HTTP/1.0\r\nHost: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
		{"GET /c HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + both, "200 /c 0 <nil>; 400"},
		{"POST /d HTTP/1.1\r\nHost: x\r\nX: y\r\n Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"POST /d HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n 5\r\n\r\nhello", "400"},
		{"GET /c HTTP/1.1\r\nHost: x\r\nX-Content-Length: 5\r\nContent-Length-X: 6\r\nX: Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "200 /c 0 <nil>"},
		{"GET /" + strings.Repeat("a", 1000) + " HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("b", 1000) + "\r\n\r\n" + both, "200 /" + strings.Repeat("a", 1000) + " 0 <nil>; 400"},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			c, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for rest := row.sent; rest != ""; {
					n := min(piece, len(rest))
					if _, err := io.WriteString(c, rest[:n]); err != nil {
						return // it has been answered
					}
					rest = rest[n:]
				}
				c.(*net.TCPConn).CloseWrite()
			}()
			var got []string
			for in := bufio.NewReader(c); ; {
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					break
				}
				body, _ := io.ReadAll(res.Body)
				if res.StatusCode == http.StatusOK {
					got = append(got, "200 "+string(body))
				} else {
					got = append(got, fmt.Sprint(res.StatusCode))
				}
			}
			c.Close()
			if all := strings.Join(got, "; "); all != row.want {
				t.Errorf("%.200q in pieces of %d: answered %.200s, want %.200s", row.sent, piece, all, row.want)
			}
		}
	}
}

// A request that is refused is answered once it is whole, wherever its headers
// are wrong and however it comes: not only when the server gives up waiting.
func TestRefusedAtOnce(t *testing.T) {
	const begins = "POST /d HTTP/1.1\r\nHost: x\r\n"
	blanks := strings.Repeat(" ", 2*keep)
	for _, request := range []string{
		begins + "X: y\r\n folded\r\n\r\n",
		begins + "X: y\r\n\tfolded: z\r\n\r\n",
		begins + "X: y\n folded\n\n",
		begins + "X: y\r\n \r\n\r\n",
		"POST /d HTTP/1.1\r\n Host: x\r\n\r\n",
		begins + "Content-Length: five\r\n\r\n",
		begins + "Content-Length: 9223372036854775808\r\n\r\n",
		begins + "Content-Length:\r\n\r\n",
		begins + "Content-Length:\n\n",
		begins + "Content-Length: 0" + blanks + "\r\n\r\n",
		begins + "Content-Length:" + blanks + "0\n\n",
		begins + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
		begins + "Transfer-Encoding: chunked\nContent-Length: 0\n\n",
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got := refusal(t, request, piece)
				if got != http.StatusBadRequest || time.Since(began) != 0 {
					t.Errorf("%.200q in pieces of %d: status %d after %v", request, piece, got, time.Since(began))
				}
			})
		}
	}
}

// refusal sends a request in pieces, and returns the status of what comes back;
// 0 if it is nothing.
func refusal(t *testing.T, request string, piece int) int {
	client, served := net.Pipe()
	l := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conn <- served
	server := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a handler has it") })}
	var all sync.WaitGroup
	all.Go(func() {
		if err := server.Serve(Strict(l)); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	all.Go(func() {
		for rest := request; rest != ""; {
			n := min(piece, len(rest))
			if _, err := io.WriteString(client, rest[:n]); err != nil {
				return // it has been answered
			}
			rest = rest[n:]
		}
	})
	status := 0
	if res, err := http.ReadResponse(bufio.NewReader(client), nil); err == nil {
		status = res.StatusCode
		res.Body.Close()
	}
	client.Close()
	server.Close()
	all.Wait()
	return status
}

// A oneConn accepts one connection.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// However a connection's bytes come, net/http reads no request from them that had
// both headers, and nothing is spoiled in what it reads whole.
func FuzzFraming(f *testing.F) {
	for _, s := range []string{plain, chunks, without, both, hidden, plain + chunks + both, both + plain, "\r\n\n" + without, "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n\n\n\n" + both} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, sent []byte, piece int) {
		read := bytes.Clone(sent)
		var whole framing
		whole.check(read)
		pieces, again := framing{}, bytes.Clone(sent)
		for rest := again; len(rest) > 0; {
			n := min(max(piece, 1), len(rest))
			pieces.check(rest[:n])
			rest = rest[n:]
		}
		if !bytes.Equal(read, again) {
			t.Fatalf("%q is read as %q at once and as %q in pieces", sent, read, again)
		}
		in := bytes.NewReader(read)
		buffered := bufio.NewReader(in)
		for method := ""; ; {
			if method == "POST" { // as net/http does
				for next, _ := buffered.Peek(1); len(next) == 1 && (next[0] == '\r' || next[0] == '\n'); next, _ = buffered.Peek(1) {
					buffered.Discard(1)
				}
			}
			begins := len(read) - in.Len() - buffered.Buffered()
			r, err := http.ReadRequest(buffered)
			if err != nil {
				return
			}
			method = r.Method
			ends := len(read) - in.Len() - buffered.Buffered()
			var length, encoding bool
			for line := range strings.Lines(string(sent[begins:ends])) {
				name, _, _ := strings.Cut(line, ":")
				length = length || strings.EqualFold(name, "Content-Length")
				encoding = encoding || strings.EqualFold(name, "Transfer-Encoding")
			}
			if length && encoding && bytes.Equal(sent[begins:ends], read[begins:ends]) {
				t.Fatalf("a request with both headers is read: %q", sent[begins:ends])
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil || r.Close {
				return
			}
		}
	})
}
