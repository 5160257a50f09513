package instance

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// protocol is the version of the two lines.
const protocol = 1

// maxLine bounds a line, in bytes; lineTime is how long the other side may
// take for it.
const (
	maxLine  = 4 << 10
	lineTime = 10 * time.Second
)

// What a client process may ask for.
const (
	askServe  = "serve"  // its client is served
	askTalk   = "talk"   // what the instance says on its standard error, for a connection that is served
	askStatus = "status" // one JSON value, for which no identity is needed
	askState  = "state"  // likewise: the status with what the bridge adds to it
)

// What the two sides say, a byte each, once a client is to be served: first its process,
// with the client's two ends or without, then the instance, with a note or without. If
// they were handed over, only sayEnd comes after that: from the process, that nothing
// more is to be read; from the instance, that the client has gone.
const (
	sayCopy = 'c' // the process copies
	sayHand = 'h'
	sayEnd  = 'e'
)

// maxHanded bounds the clients whose pipes an instance has: each takes five descriptors
// and a thread that waits. The processes of others copy.
const maxHanded = 64

// A hello is the client process's line.
type hello struct {
	Join     int    `json:"join"`
	Identity string `json:"identity,omitempty"`
	Ask      string `json:"ask"`
	Client   string `json:"window,omitempty"`
	PID      int    `json:"pid,omitempty"`
	Bound    string `json:"bound,omitempty"` // the profile that binds the window
}

// A Welcome is the instance's line.
type Welcome struct {
	Join   int    `json:"join"`
	PID    int    `json:"pid"`              // of the instance
	Client string `json:"window,omitempty"` // the instance's name for the connection
	Log    string `json:"log,omitempty"`    // the folder of the instance's log
	// Refused says why the client is not served.
	Refused string `json:"refused,omitempty"`
}

// A Conn is a client connection: between a client's process and its instance.
type Conn struct {
	*net.UnixConn
	// On the instance's side: what is asked for, and for which other connection.
	ask, client string
	pid         int    // of the client's process, by its own account
	bound       string // the profile that binds the client; empty: none
	// Welcome is what the instance said; on the client's side.
	Welcome Welcome
}

// accept tells the client that it gets what it asked for.
func (c *Conn) accept(w Welcome) error {
	w.Join = protocol
	c.SetDeadline(time.Now().Add(lineTime))
	if err := writeLine(c.UnixConn, w); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// receive reads a client's line on the instance's side, and refuses whoever may not
// be served.
func (r *Rendezvous) receive(u *net.UnixConn) (*Conn, error) {
	u.SetDeadline(time.Now().Add(lineTime))
	if err := r.checkPeer(u); err != nil {
		return nil, err // without an answer
	}
	var h hello
	if err := readLine(u, &h); err != nil {
		return nil, err
	}
	refuse := func(why string) (*Conn, error) {
		writeLine(u, Welcome{Join: protocol, Refused: why})
		return nil, errors.New(why)
	}
	switch {
	case h.Join != protocol:
		return refuse(fmt.Sprintf("this bridge speaks version %d of the way to join, not %d", protocol, h.Join))
	case h.Ask != askStatus && h.Ask != askState && h.Identity != hex.EncodeToString(r.digest):
		return refuse("the window is not like those that this bridge serves")
	case h.Ask != askServe && h.Ask != askTalk && h.Ask != askStatus && h.Ask != askState:
		return refuse(fmt.Sprintf("%.20q cannot be asked for", h.Ask))
	}
	return &Conn{UnixConn: u, ask: h.Ask, client: h.Client, pid: h.PID, bound: h.Bound}, nil
}

// greet sends the client's line and reads the instance's.
func (r *Rendezvous) greet(u *net.UnixConn, ask, client string) (*Conn, error) {
	if err := r.checkPeer(u); err != nil {
		return nil, err
	}
	u.SetDeadline(time.Now().Add(lineTime))
	h := hello{Join: protocol, Ask: ask, Client: client, PID: os.Getpid(), Bound: r.Bound}
	if r.digest != nil {
		h.Identity = hex.EncodeToString(r.digest)
	}
	c := &Conn{UnixConn: u}
	err := writeLine(u, h)
	if err == nil {
		err = readLine(u, &c.Welcome)
	}
	var slow net.Error
	switch {
	case errors.As(err, &slow) && slow.Timeout():
		return nil, errors.New("the bridge that runs does not answer")
	case err != nil:
		return nil, ErrNoInstance // it is ending
	case c.Welcome.Refused != "":
		return nil, errors.New(c.Welcome.Refused)
	case c.Welcome.Join != protocol:
		return nil, fmt.Errorf("the bridge that runs speaks version %d of the way to join, not %d", c.Welcome.Join, protocol)
	}
	return c, u.SetDeadline(time.Time{})
}

// checkPeer refuses a connection whose other end is another user's.
func (r *Rendezvous) checkPeer(u *net.UnixConn) error {
	uid, err := peer(u)
	if err != nil {
		return fmt.Errorf("asking who is at the other end of the socket: %w", err)
	}
	if uid != r.uid {
		return fmt.Errorf("at the other end of the socket is another user (%d)", uid)
	}
	return nil
}

func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// readLine reads one line and not a byte more: what follows is not ours.
func readLine(r io.Reader, v any) error {
	var line []byte
	var b [1]byte
	for len(line) < maxLine {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return err
		}
		if b[0] == '\n' {
			return json.Unmarshal(line, v)
		}
		line = append(line, b[0])
	}
	return fmt.Errorf("the line has more than %d bytes", maxLine)
}
