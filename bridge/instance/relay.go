package instance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/rpc"
)

// lastAnswers is how long a client that will send nothing more waits for answers;
// then what is still open is cancelled. So a shell that pipes a request into `run`
// gets its answer.
const lastAnswers = 2 * time.Second

// errGone says that an instance has ended while a client still needed it.
var errGone = errors.New("the bridge that served this window has ended")

// A Client is what a process has of its client. Nothing has been read from it.
type Client struct {
	io.ReadWriter // its messages
	// In and Out are the two ends behind it, which are handed to the instance if it can
	// use them; nil: they are not.
	In, Out *os.File
}

// Relay has the instance serve this process's client, until one of them goes away or ctx
// ends. Where the client's two ends are pipes the instance gets them, and this process
// only waits; else it carries the messages. What the instance says goes to stderr.
// The instance may take leave to end the session once the client is gone.
func (r *Rendezvous) Relay(ctx context.Context, client Client, conn *Conn, stderr io.Writer, leave time.Duration) error {
	defer conn.Close()
	heard := r.hear(ctx, stderr, conn.Welcome.Client)
	defer heard()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	handed, note, err := offer(conn, client)
	stop()
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case err != nil:
		return r.lost(conn)
	case handed:
		return r.attend(ctx, client.Out, conn, note, leave)
	}
	return r.carry(ctx, client, conn, leave)
}

// attend waits while the instance serves the client by itself. If the instance is gone
// before the client, it answers the requests that are open by the note.
func (r *Rendezvous) attend(ctx context.Context, out io.Writer, conn *Conn, note *os.File, leave time.Duration) error {
	if note != nil {
		defer note.Close()
	}
	var leaving sync.Once
	left := make(chan struct{})
	goAway := func() {
		leaving.Do(func() {
			close(left)
			conn.SetWriteDeadline(time.Now().Add(leave))
			_, _ = conn.Write([]byte{sayEnd}) // the instance may have gone
			// An instance that does not let go must not keep this process.
			conn.SetReadDeadline(time.Now().Add(leave))
		})
	}
	defer context.AfterFunc(ctx, goAway)()
	var b [1]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			break
		}
		if b[0] == sayEnd {
			goAway()
		}
	}
	select {
	case <-left:
		return context.Cause(ctx)
	default:
	}
	if note == nil {
		return r.lost(conn)
	}
	open, half, err := readNote(note)
	if err != nil {
		return errors.Join(r.lost(conn), err)
	}
	if half {
		_, _ = out.Write([]byte{'\n'}) // or the next answer would be a part of it
	}
	for _, ids := range open {
		var answers [][]byte
		for _, id := range ids {
			answers = append(answers, lostAnswer(id))
		}
		line := answers[0]
		if len(ids) > 1 {
			line = slices.Concat([]byte{'['}, bytes.Join(answers, []byte{','}), []byte{']'})
		}
		_, _ = out.Write(append(line, '\n')) // the client may have gone
	}
	return r.lost(conn)
}

// carry carries messages between this process's client and the instance.
func (r *Rendezvous) carry(ctx context.Context, client io.ReadWriter, conn *Conn, leave time.Duration) error {
	var leaving sync.Once
	left := make(chan struct{})
	goAway := func() {
		leaving.Do(func() {
			close(left)
			conn.CloseWrite()
			// An instance that does not let go must not keep this process.
			conn.SetReadDeadline(time.Now().Add(leave))
		})
	}
	defer context.AfterFunc(ctx, goAway)()
	var open openRequests
	go func() { // ends with the process at the latest
		defer goAway()
		in := bufio.NewReader(client)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				for end := time.Now().Add(lastAnswers); len(open.ids()) > 0 && time.Now().Before(end); {
					time.Sleep(5 * time.Millisecond)
				}
				return
			}
			open.asked(line)
			if _, err := conn.Write(line); err != nil {
				return
			}
		}
	}()

	out := bufio.NewReaderSize(conn, 64<<10)
	for {
		line, err := out.ReadBytes('\n')
		if err != nil { // half a line is not a message
			break
		}
		open.answered(line)
		if _, err := client.Write(line); err != nil {
			goAway() // the client is gone; what is still to come has no reader
		}
	}
	select {
	case <-left:
		return context.Cause(ctx)
	default:
	}
	for _, id := range open.ids() {
		client.Write(append(lostAnswer(id), '\n'))
	}
	return r.lost(conn)
}

// lostAnswer answers a request that the instance has taken along.
func lostAnswer(id json.RawMessage) []byte {
	return (&rpc.Error{ID: id, Code: -32000, Message: errGone.Error() + "; what its calls did is in the audit log"}).Bytes()
}

// lost says that the instance has gone.
func (r *Rendezvous) lost(conn *Conn) error {
	hint := ""
	if info, err := os.Stat(r.LastWords()); err == nil && info.Size() > 0 {
		hint = "; its last words are in " + r.LastWords()
	}
	return fmt.Errorf("%w (process %d)%s", errGone, conn.Welcome.PID, hint)
}

// hear copies what the instance says to stderr. The function that it returns waits,
// for a short time, until all of it has come.
func (r *Rendezvous) hear(ctx context.Context, stderr io.Writer, client string) (wait func()) {
	talk, err := r.ask(ctx, askTalk, client)
	if err != nil {
		return func() {} // it is in the log
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(stderr, talk)
	}()
	return func() {
		talk.SetReadDeadline(time.Now().Add(2 * time.Second))
		<-done
		talk.Close()
	}
}

// openRequests are the client's requests that have no answer yet.
type openRequests struct {
	mu   sync.Mutex
	open []rpc.Message // in the order in which they came
}

func (o *openRequests) asked(line []byte) {
	if m := rpc.Peek(line); m.IsRequest() {
		o.mu.Lock()
		o.open = append(o.open, rpc.Message{ID: m.ID})
		o.mu.Unlock()
	}
}

func (o *openRequests) answered(line []byte) {
	m := rpc.Peek(line)
	if !m.IsResponse() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.IndexFunc(o.open, func(open rpc.Message) bool { return open.Key() == m.Key() }); i >= 0 {
		o.open = slices.Delete(o.open, i, i+1)
	}
}

func (o *openRequests) ids() []json.RawMessage {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []json.RawMessage
	for _, m := range o.open {
		all = append(all, m.ID)
	}
	return all
}
