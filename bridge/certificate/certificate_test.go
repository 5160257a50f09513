package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/mcphttptest"
)

// until is when the certificates of the tests end.
var until = time.Now().Add(90 * 24 * time.Hour).Truncate(time.Second)

func in(dir string) (cert, key string) {
	return filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
}

// serial connects and returns the serial number of the certificate that it is shown.
func serial(t *testing.T, at string, trust *x509.CertPool) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", at, &tls.Config{RootCAs: trust, ServerName: "bridge.test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func listening(t *testing.T, f *Files) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			t.Error("a handler is not told of TLS")
		}
		_, _ = io.WriteString(w, "hello")
	})), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	var ended sync.WaitGroup
	ended.Go(func() { _ = server.Serve(f.Listen(l)) })
	t.Cleanup(func() { server.Close(); ended.Wait() })
	return l.Addr().String()
}

// A new certificate is shown to new connections, while those that are open go on; one that
// cannot be used changes nothing.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	cert, key := in(dir)
	first := mcphttptest.Certificate(t, dir, 1, until)
	f, err := Load(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	at := listening(t, f)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: first}}}
	get := func() {
		t.Helper()
		r, err := client.Get("https://" + at)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if text, err := io.ReadAll(r.Body); err != nil || string(text) != "hello" {
			t.Errorf("%q, %v", text, err)
		}
	}
	get()
	second := mcphttptest.Certificate(t, dir, 2, until.Add(time.Hour))
	log := slog.New(slog.DiscardHandler)
	if err := f.Reload(log); err != nil {
		t.Fatal(err)
	}
	get() // on the connection of before, which trusts the first alone
	if n := serial(t, at, second); n != 2 || !f.Expires().Equal(until.Add(time.Hour)) {
		t.Errorf("certificate %d until %v", n, f.Expires())
	}
	for what, spoil := range map[string]func() error{
		"no PEM":      func() error { return os.WriteFile(cert, []byte("none"), 0o600) },
		"another key": func() error { mcphttptest.Certificate(t, dir, 3, until); return os.WriteFile(key, nil, 0o600) },
		"gone":        func() error { return os.Remove(cert) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if err := f.Reload(log); err == nil || !strings.Contains(err.Error(), "stays in force") {
			t.Errorf("%s: %v", what, err)
		}
		if n := serial(t, at, second); n != 2 {
			t.Errorf("%s: certificate %d", what, n)
		}
	}
}

func TestOldVersionsAreRefused(t *testing.T) {
	dir := t.TempDir()
	trust := mcphttptest.Certificate(t, dir, 1, until)
	f, err := Load(in(dir))
	if err != nil {
		t.Fatal(err)
	}
	at := listening(t, f)
	if c, err := tls.Dial("tcp", at, &tls.Config{RootCAs: trust, ServerName: "bridge.test", MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
		c.Close()
		t.Error("it speaks TLS 1.1")
	}
}

// The files are followed: the one that comes second makes the certificate whole.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	mcphttptest.Certificate(t, dir, 1, time.Now().Add(time.Hour))
	f, err := Load(in(dir))
	if err != nil {
		t.Fatal(err)
	}
	said := new(safe)
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { f.Watch(ctx, slog.New(slog.NewTextHandler(said, nil))) })
	mcphttptest.Certificate(t, dir, 2, until)
	for deadline := time.Now().Add(3 * time.Minute); !f.Expires().Equal(until); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it is not taken over:\n%s", said)
		}
	}
	stop()
	watching.Wait()
	if !strings.Contains(said.String(), "ends soon") {
		t.Errorf("of the first it said\n%s", said)
	}
}

type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestBroken(t *testing.T) {
	dir := t.TempDir()
	cert, key := in(dir)
	var broken *Error
	if _, err := Load(cert, key); !errors.As(err, &broken) || !strings.Contains(err.Error(), cert+": no such file") {
		t.Errorf("missing: %v", err)
	}
	mcphttptest.Certificate(t, dir, 1, until)
	if err := os.WriteFile(key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(cert, key); !errors.As(err, &broken) || !strings.Contains(err.Error(), cert+" and "+key) || broken.Hint() == "" {
		t.Errorf("no key: %v", err)
	}
	if is := Look(cert, key); is.Wrong == nil || is.Hint == "" {
		t.Errorf("looked at: %+v", is)
	}
	mcphttptest.Certificate(t, dir, 1, until)
	if is := Look(cert, key); is.Wrong != nil || !is.Expires.Equal(until) || strings.Join(is.Hosts, " ") != "bridge.test 127.0.0.1" {
		t.Errorf("looked at: %+v", is)
	}
}
