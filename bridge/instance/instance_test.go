//go:build unix

package instance

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A client that does not read is disconnected, so that the others need not wait for it.
func TestAClientThatDoesNotReadIsLetGo(t *testing.T) {
	t.Parallel()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ours, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	side := stream{&Conn{UnixConn: ours}, t.Context(), time.Minute}
	if _, err := side.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 5)); err != nil {
		t.Fatalf("a client that reads: %v", err)
	}
	side.wait = time.Millisecond
	if _, err := side.Write(make([]byte, 8<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a message that nobody reads: %v", err)
	}
	if _, err := side.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("its connection is open: %v", err)
	}
}
