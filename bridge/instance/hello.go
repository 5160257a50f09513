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

// What a window may ask for.
const (
	Serve  = "serve"  // the window's client is served
	Talk   = "talk"   // what the host says on its standard error, for a window that is served
	Status = "status" // one JSON value, for which no identity is needed
)

// A hello is the window's line.
type hello struct {
	Join     int    `json:"join"`
	Identity string `json:"identity,omitempty"`
	Ask      string `json:"ask"`
	Window   string `json:"window,omitempty"`
	PID      int    `json:"pid,omitempty"`
}

// A Welcome is the host's line.
type Welcome struct {
	Join   int    `json:"join"`
	PID    int    `json:"pid"`              // of the host
	Window string `json:"window,omitempty"` // the host's name for the window that is served
	Log    string `json:"log,omitempty"`    // the host's log file
	// Refused says why the window is not served.
	Refused string `json:"refused,omitempty"`
}

// A Conn is a connection between a window and its host.
type Conn struct {
	*net.UnixConn
	// Ask is what the window wants, and Window for which one; on the host's side.
	Ask, Window string
	PID         int // of the window's process, as it says
	// Welcome is what the host said; on the window's side.
	Welcome Welcome
}

// Accept tells the window that it gets what it asked for.
func (c *Conn) Accept(w Welcome) error {
	w.Join = protocol
	c.SetDeadline(time.Now().Add(lineTime))
	if err := writeLine(c.UnixConn, w); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// receive reads a window's line on the host's side, and refuses whoever must
// not be there.
func (p *Place) receive(u *net.UnixConn) (*Conn, error) {
	u.SetDeadline(time.Now().Add(lineTime))
	if err := p.checkPeer(u); err != nil {
		return nil, err // and not a word
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
	case h.Ask != Status && h.Identity != hex.EncodeToString(p.digest):
		return refuse("the window is not like those that this bridge serves")
	case h.Ask != Serve && h.Ask != Talk && h.Ask != Status:
		return refuse(fmt.Sprintf("%.20q cannot be asked for", h.Ask))
	}
	return &Conn{UnixConn: u, Ask: h.Ask, Window: h.Window, PID: h.PID}, nil
}

// greet says the window's line and reads the host's.
func (p *Place) greet(u *net.UnixConn, ask, window string) (*Conn, error) {
	if err := p.checkPeer(u); err != nil {
		return nil, err
	}
	u.SetDeadline(time.Now().Add(lineTime))
	h := hello{Join: protocol, Ask: ask, Window: window, PID: os.Getpid()}
	if p.digest != nil {
		h.Identity = hex.EncodeToString(p.digest)
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
		return nil, errNobody // it ends
	case c.Welcome.Refused != "":
		return nil, errors.New(c.Welcome.Refused)
	case c.Welcome.Join != protocol:
		return nil, fmt.Errorf("the bridge that runs speaks version %d of the way to join, not %d", c.Welcome.Join, protocol)
	}
	return c, u.SetDeadline(time.Time{})
}

// checkPeer refuses a connection whose other end is another user's.
func (p *Place) checkPeer(u *net.UnixConn) error {
	uid, err := peer(u)
	if err != nil {
		return fmt.Errorf("asking who is at the other end of the socket: %w", err)
	}
	if uid != p.uid {
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
