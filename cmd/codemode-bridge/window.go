package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/rpc"
)

// How long a window waits for a host to be there, which may have to wait for
// another to end, and for its session to end once it was told to.
const (
	joinTime  = 45 * time.Second
	leaveTime = grace + 15*time.Second
)

// lastAnswers is how long a client that has said all it will say waits for
// answers: then what is still open is cancelled. A shell that pipes a request
// into `run` gets its answer by that.
const lastAnswers = 2 * time.Second

// joinHost serves the client by the process that serves all windows like this one,
// and starts that if need be. Joined false without an error means that this
// window has to be served by itself; the person has been told why.
func joinHost(ctx context.Context, con *console, client *stdio, cfg *config.Config, looked []string) (joined bool, err error) {
	place, err := meetingPlace(con, cfg, looked)
	var conn *instance.Conn
	if err == nil {
		joining, cancel := context.WithTimeout(ctx, joinTime)
		defer cancel()
		conn, err = place.Join(joining, func(ctx context.Context) error { return startHost(ctx, con, place, cfg) })
	}
	var failed *exitError
	switch {
	case errors.As(err, &failed), ctx.Err() != nil:
		return true, err
	case errors.Is(err, instance.ErrUnsupported):
		return false, nil // the reference says so
	case err != nil:
		fmt.Fprintf(con.err, "codemode-bridge: this window has servers of its own: %v\n", err)
		return false, nil
	}
	return true, pass(ctx, con, client, conn, place)
}

// saidAtMost bounds what is read of the words of a host that does not start.
const saidAtMost = 64 << 10

// startHost starts the process that serves windows, and returns when it
// listens. What keeps it from that is said here.
func startHost(ctx context.Context, con *console, place *instance.Place, cfg *config.Config) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	said, err := os.OpenFile(place.Said(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("starting a bridge for all windows: %w", err)
	}
	defer said.Close()
	before, err := io.ReadAll(io.LimitReader(said, saidAtMost)) // of a host that has not ended, or crashed
	if err != nil {
		return fmt.Errorf("starting a bridge for all windows: %w", err)
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting a bridge for all windows: %w", err)
	}
	defer ready.Close()
	cmd := exec.Command(self, "host", "--config", cfg.File, "--env", con.environment, "--ready", "3") // bound to no context: it outlives this process
	cmd.Stderr, cmd.SysProcAttr, cmd.ExtraFiles = said, detached(), []*os.File{theirs}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return fmt.Errorf("starting a bridge for all windows: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	n, _ := ready.Read(make([]byte, 1))
	switch {
	case n == 1:
		go cmd.Wait() // it may end before this process does
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	err = cmd.Wait()
	if _, seekErr := said.Seek(0, io.SeekStart); seekErr == nil {
		if all, err := io.ReadAll(io.LimitReader(said, int64(len(before))+saidAtMost)); err == nil {
			con.err.Write(bytes.TrimPrefix(all, before)) // as if it had been said here
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &exitError{exit.ExitCode()}
	}
	return fmt.Errorf("the bridge for all windows ended while it started (%v)", cmd.ProcessState)
}

// errHostGone is the end of a process that served windows.
var errHostGone = errors.New("the bridge that served this window has ended")

// pass carries messages between the client and the host until one of them
// goes away, or ctx ends.
func pass(ctx context.Context, con *console, client *stdio, host *instance.Conn, place *instance.Place) error {
	defer host.Close()
	fmt.Fprintf(con.err, "codemode-bridge %s: served by process %d, which all windows of %s share; its log is in %s\n", version, host.Welcome.PID, con.shownFile(), host.Welcome.Log)
	talked := hearTalk(ctx, con, place, host.Welcome.Window)
	defer talked()

	var leaving sync.Once
	left := make(chan struct{})
	leave := func() {
		leaving.Do(func() {
			close(left)
			host.CloseWrite()
			// A host that does not let go must not keep this process.
			host.SetReadDeadline(time.Now().Add(leaveTime))
		})
	}
	defer context.AfterFunc(ctx, leave)()
	var open openRequests
	go func() { // ends with the process at the latest
		defer leave()
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
			if _, err := host.Write(line); err != nil {
				return
			}
		}
	}()

	out := bufio.NewReaderSize(host, 64<<10)
	for {
		line, err := out.ReadBytes('\n')
		if err != nil { // half a line is none
			break
		}
		open.answered(line)
		if _, err := client.Write(line); err != nil {
			leave() // the client is gone; what is still to come has no reader
		}
	}
	select {
	case <-left:
		return context.Cause(ctx)
	default:
	}
	for _, id := range open.ids() {
		answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id,
			"error": map[string]any{"code": -32000, "message": errHostGone.Error() + "; what its calls did is in the audit log"}})
		if err == nil {
			client.Write(append(answer, '\n'))
		}
	}
	hint := ""
	if info, err := os.Stat(place.Said()); err == nil && info.Size() > 0 {
		hint = "; its last words are in " + place.Said()
	}
	return fmt.Errorf("%w (process %d)%s", errHostGone, host.Welcome.PID, hint)
}

// shownFile is the configuration as the person named it.
func (con *console) shownFile() string {
	path, err := con.file()
	if err != nil {
		return con.configPath
	}
	return con.shown(path)
}

// hearTalk copies what the host says to standard error. What it returns waits,
// not for long, until all of it has come.
func hearTalk(ctx context.Context, con *console, place *instance.Place, window string) (wait func()) {
	talk, err := place.Ask(ctx, instance.Talk, window)
	if err != nil {
		return func() {} // it is in the log
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(con.err, talk)
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
