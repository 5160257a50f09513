//go:build unix

package instance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// An instance serves two clients and ends after the last; both hear what it says.
func TestInstanceLife(t *testing.T) {
	meeting := at(t, folders(t))
	listener, err := meeting.Own(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := New(listener, Options{Version: "1.2", Log: "/the/log"})
	fmt.Fprintln(i.Stderr(), "said early")
	ready, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- i.Serve(t.Context(), theirs, Bridge{
			Logger: slog.New(slog.DiscardHandler),
			Status: func() ([]ServerStatus, int) { return []ServerStatus{{Name: "files"}}, 3 },
			Serve: func(_ context.Context, client io.ReadWriteCloser) error {
				defer client.Close()
				for lines := bufio.NewScanner(client); lines.Scan(); {
					if _, err := fmt.Fprintln(client, strings.Replace(lines.Text(), `"method":"ping"`, `"result":{}`, 1)); err != nil {
						return err
					}
				}
				return nil
			},
		})
		listener.Close()
		i.Disconnect()
	}()
	if _, err := io.ReadAll(ready); err != nil {
		t.Fatal(err)
	}
	first, err := meeting.Join(t.Context(), nobody)
	if err != nil {
		t.Fatal(err)
	}
	if first.Welcome.Log != "/the/log" || first.Welcome.PID != os.Getpid() || !i.OnlyOne() {
		t.Errorf("welcome %+v", first.Welcome)
	}
	second, err := meeting.Join(t.Context(), nobody)
	if err != nil {
		t.Fatal(err)
	}
	status, err := meeting.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	me := ClientStatus{PID: os.Getpid()}
	want := Status{PID: os.Getpid(), Version: "1.2", Clients: []ClientStatus{me, me}, Servers: []ServerStatus{{Name: "files"}}, Runs: 3}
	if diff := cmp.Diff(want, status, cmpopts.IgnoreFields(Status{}, "Since"), cmpopts.IgnoreFields(ClientStatus{}, "Since")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for n, conn := range []*Conn{first, second} {
		in, out := io.Pipe()
		var answers, said strings.Builder
		go func() {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", n)
			out.Close()
		}()
		if err := meeting.Relay(t.Context(), Client{ReadWriter: readWriter{in, &answers}}, conn, &said, time.Minute); err != nil {
			t.Error(err)
		}
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`+"\n", n); answers.String() != want {
			t.Errorf("client %d got %q", n, answers.String())
		}
		if early := said.String() == "said early\n"; early != (n == 0) {
			t.Errorf("client %d heard %q", n, said.String())
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type readWriter struct {
	io.Reader
	io.Writer
}

// A process that serves no windows answers what its status and state are; nobody can join
// it, and it leaves nothing behind.
func TestAnswer(t *testing.T) {
	f := folders(t)
	meeting := at(t, f)
	listener, err := meeting.Own(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	end, err := Answer(listener, Options{Version: "1.2", Endpoint: "http://here/mcp"}, Bridge{
		Logger: slog.New(slog.DiscardHandler),
		Status: func() ([]ServerStatus, int) { return []ServerStatus{{Name: "files"}}, 3 },
		More:   func() any { return map[string]int{"x": 1} },
	})
	if err != nil {
		t.Fatal(err)
	}
	found := In(f, "config")
	if len(found) != 1 {
		t.Fatalf("%d can be asked", len(found))
	}
	want := State{Status{PID: os.Getpid(), Version: "1.2", Endpoint: "http://here/mcp", Clients: []ClientStatus{}, Servers: []ServerStatus{{Name: "files"}}, Runs: 3}, []byte(`{"x":1}`)}
	state, err := found[0].State(t.Context())
	if diff := cmp.Diff(want, state, cmpopts.IgnoreFields(Status{}, "Since")); err != nil || diff != "" {
		t.Errorf("state, %v (-want +got):\n%s", err, diff)
	}
	status, err := found[0].Status(t.Context())
	if diff := cmp.Diff(want.Status, status, cmpopts.IgnoreFields(Status{}, "Since")); err != nil || diff != "" {
		t.Errorf("status, %v (-want +got):\n%s", err, diff)
	}
	if c, err := meeting.ask(t.Context(), askServe, ""); !errors.Is(err, ErrNoInstance) {
		t.Errorf("a window joins: %+v, %v", c, err)
	}
	end()
	if _, err := found[0].State(t.Context()); !errors.Is(err, ErrNoInstance) {
		t.Errorf("after its end: %v", err)
	}
	entries, err := os.ReadDir(f.State)
	if err != nil || len(entries) != 1 || entries[0].Name() != "key" {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
