package webguard

import (
	"bytes"
	"net"
	"strconv"
)

// Strict returns l with connections on which a request that has both a
// Content-Length and a Transfer-Encoding is answered with 400. Programs differ on
// where the body of such a request ends, so what one takes for a body can be the
// next request to another. RFC 9112 lets a server take the Transfer-Encoding
// alone; net/http does, and hides the other header from its handlers.
//
// A folded header, which hides a name or a value from whoever reads line by line,
// is answered with 400, too.
func Strict(l net.Listener) net.Listener { return strictListener{l} }

type strictListener struct{ net.Listener }

func (l strictListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &strictConn{Conn: c}, nil
}

type strictConn struct {
	net.Conn
	framing framing // for one reader at a time: net/http has no more
}

func (c *strictConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.framing.check(b[:n])
	return n, err
}

// A framing follows the requests on a connection, as net/http splits them, and
// holds no more of them than the beginning of a line.
//
//	request line ─▶ headers ─┬─▶ body of Content-Length ─────────────────┐
//	     ▲                   ├─▶ size of chunk ─▶ chunk ─▶ its end ─▶ ...│
//	     │                   │        └─▶ trailers ─┐                    │
//	     └───────────────────┴──────────────────────┴────────────────────┘
//
// It refuses a request by putting a NUL where the headers become wrong, never at
// the end of a line: then net/http answers 400 and closes the connection, once it
// has read the headers, or at the end of a line without a colon.
type framing struct {
	state   state
	line    []byte // without its end; of a long one a part, see keep
	named   bool   // the line's colon was there
	old     bool   // HTTP/1.0, which has no chunks
	length  bool   // there was a Content-Length
	chunked bool   // there was a Transfer-Encoding
	left    int64  // of the body or chunk
}

type state int

const (
	requestLine state = iota
	headers
	body
	chunkSize
	chunk
	chunkEnd
	trailers
	lost // net/http will close the connection
)

// keep is how many bytes of a line are kept: the end of a request line, which has
// the version, and the beginning of any other line.
const keep = 256

// check follows the bytes that were read, and overwrites one if the request is to
// be refused.
func (f *framing) check(b []byte) {
	for i := 0; i < len(b); i++ {
		switch {
		case f.state == lost:
			return
		case f.state == body || f.state == chunk:
			n := min(f.left, int64(len(b)-i))
			i += int(n) - 1
			if f.left -= n; f.left == 0 && f.state == chunk {
				f.state = chunkEnd
			} else if f.left == 0 {
				*f = framing{line: f.line[:0]}
			}
		case b[i] == '\n':
			f.endLine()
			f.line, f.named = f.line[:0], false
		case b[i] == ':' && f.state == headers && !f.named:
			if f.named = true; !f.name() {
				b[i], f.state = 0, lost
			}
			f.line = append(f.line, ':')
		case f.folds(b[i]) || f.full() && f.named && f.is("Content-Length"):
			b[i], f.state = 0, lost
		default:
			f.add(b[i])
		}
	}
}

// folds reports whether a line that begins with c continues the previous header.
func (f *framing) folds(c byte) bool {
	return f.state == headers && len(f.line) == 0 && (c == ' ' || c == '\t')
}

func (f *framing) full() bool { return len(f.line) >= keep }

func (f *framing) add(c byte) {
	if f.full() {
		if f.state != requestLine {
			return
		}
		f.line = append(f.line[:0], f.line[keep/2:]...)
	}
	f.line = append(f.line, c)
}

// name notes the header whose name ends here, and reports whether the request may
// have it besides the others.
func (f *framing) name() bool {
	f.length = f.length || f.is("Content-Length")
	f.chunked = f.chunked || f.is("Transfer-Encoding")
	return !f.length || !f.chunked
}

func (f *framing) is(name string) bool {
	return len(f.line) >= len(name) && bytes.EqualFold(f.line[:len(name)], []byte(name)) && (len(f.line) == len(name) || f.line[len(name)] == ':')
}

// endLine handles a line that is complete.
func (f *framing) endLine() {
	line := bytes.TrimSuffix(f.line, []byte("\r"))
	switch f.state {
	case requestLine:
		if len(line) > 0 { // net/http takes empty lines before a request
			f.old, f.state = bytes.HasSuffix(line, []byte("HTTP/1.0")), headers
		}
	case headers:
		switch {
		case len(line) == 0:
			f.endHeaders()
		case f.named && f.is("Content-Length"):
			// What is not a number here is not one to net/http either: it answers
			// 400 after the headers.
			n, _ := strconv.ParseUint(string(bytes.Trim(line[len("Content-Length:"):], " \t")), 10, 63)
			f.left = int64(n)
		}
	case chunkSize:
		digits := bytes.TrimRight(line, " \t")
		if at := bytes.IndexByte(line, ';'); at >= 0 {
			digits = bytes.TrimRight(line[:at], " \t")
		}
		n, err := strconv.ParseUint(string(digits), 16, 63)
		switch f.left = int64(n); {
		case err != nil:
			f.state = lost
		case n == 0:
			f.state = trailers
		default:
			f.state = chunk
		}
	case chunkEnd:
		f.state = chunkSize
	case trailers:
		if len(line) == 0 {
			*f = framing{line: f.line}
		}
	}
}

func (f *framing) endHeaders() {
	switch {
	case f.chunked && !f.old:
		f.state = chunkSize
	case f.length && f.left > 0:
		f.state = body
	default:
		*f = framing{line: f.line}
	}
}
