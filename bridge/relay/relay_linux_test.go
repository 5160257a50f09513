package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"codemode-bridge/sandbox/confine"

	"github.com/google/go-cmp/cmp"
)

// tries are what the program in the box connects to.
const triesVariable = "CODEMODE_TEST_TRIES"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "box" {
		os.Exit(confine.Main())
	}
	if text := os.Getenv(triesVariable); text != "" {
		os.Exit(connect(text))
	}
	os.Exit(m.Run())
}

// connect connects to each address, and prints what it read there.
func connect(text string) int {
	var tries []string
	if err := json.Unmarshal([]byte(text), &tries); err != nil {
		return 1
	}
	got := map[string]string{}
	for _, to := range tries {
		got[to] = greeting(to)
	}
	if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
		return 1
	}
	return 0
}

func greeting(to string) string {
	c, err := net.DialTimeout("tcp", to, time.Minute)
	var none *net.DNSError
	switch {
	case errors.As(err, &none) && none.IsNotFound:
		return "no such host"
	case err != nil:
		return "no connection"
	}
	defer c.Close()
	fmt.Fprint(c, "ping")
	c.(*net.TCPConn).CloseWrite()
	b, err := io.ReadAll(c)
	if err != nil || len(b) == 0 {
		return "closed"
	}
	return string(b)
}

// A server in a box reaches the hosts that the box names, on their ports, and no others;
// a name of the internet that leads to this machine leads nowhere.
func TestRelay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b, _ := io.ReadAll(c)
			fmt.Fprintf(c, "pong to %s", b)
			c.Close()
		}
	}()
	at := map[string]string{ // what the names are here
		"api.example.com": "203.0.113.7", "a.cdn.example.com": "203.0.113.8", "inside.example.com": "10.0.0.5",
		"meta.example.com": "169.254.169.254", "me.example.com": "127.0.0.1", "db.example.com": "10.1.2.3",
	}
	var hosts []Host
	var boxed []confine.Host
	for _, name := range []string{"api.example.com", "*.cdn.example.com", "inside.example.com", "meta.example.com", "me.example.com", "db.example.com", "10.1.2.3"} {
		hosts, boxed = append(hosts, Host{Name: name, Port: 443}), append(boxed, confine.Host{Name: name, Port: 443})
	}
	want := map[string]string{
		"api.example.com:443": "pong to ping", "API.example.com.:443": "pong to ping", "a.cdn.example.com:443": "pong to ping",
		"api.example.com:80": "no connection", "cdn.example.com:443": "no such host", "evil.example.com:443": "no such host",
		"api.example.com.evil.example:443": "no such host", "203.0.113.7:443": "no connection", "198.18.5.5:443": "closed",
		"inside.example.com:443": "closed", "meta.example.com:443": "closed", "me.example.com:443": "closed",
		"db.example.com:443": "pong to ping", "10.1.2.3:443": "pong to ping", l.Addr().String(): "no connection",
	}
	var tries []string
	for to := range want {
		tries = append(tries, to)
	}
	text, err := json.Marshal(tries)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p, err := confine.Box{Read: []string{filepath.Dir(self)}, Net: confine.Net{Hosts: boxed}}.Start(self, func() *exec.Cmd {
		c := exec.Command(self)
		c.Env = []string{triesVariable + "=" + string(text), "GODEBUG=netdns=go"}
		c.Stdout, c.Stderr = &out, os.Stderr
		return c
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if !p.Steps.On(confine.Network) {
		t.Skip("no box has a network of its own here: " + p.Steps[confine.Network])
	}
	var sockets []Socket
	for _, s := range p.Sockets {
		sockets = append(sockets, Socket{File: s.File, Port: s.Port})
	}
	r, err := Serve(sockets, Options{
		Names: confine.Names, Hosts: hosts, Log: slog.New(slog.DiscardHandler),
		Resolver: func(_ context.Context, name string) ([]netip.Addr, error) {
			a, ok := at[name]
			if !ok {
				return nil, fmt.Errorf("asked for %q", name)
			}
			return []netip.Addr{netip.MustParseAddr(a)}, nil
		},
		Dialer: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Port() != 443 {
				return nil, fmt.Errorf("port %d", to.Port())
			}
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := p.Cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%s: %v", out.Bytes(), err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	refused := r.Refused()
	slices.Sort(refused)
	if diff := cmp.Diff([]string{"api.example.com.evil.example", "cdn.example.com", "evil.example.com"}, refused); diff != "" {
		t.Error("the hosts that it was refused: ", diff)
	}
}
