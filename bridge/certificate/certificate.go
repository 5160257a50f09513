// Package certificate serves TLS with a certificate in files, and takes a renewed one while
// connections are open.
package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge/watchfile"
)

// soon is how long before its end a certificate is spoken of.
const soon = 7 * 24 * time.Hour

// An Error is a certificate that cannot be served with.
type Error struct {
	File string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("reading the certificate: %s: %v", e.File, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (*Error) Hint() string {
	return "tls.cert names a PEM file with the certificate and its chain, tls.key one with its key, both readable for the user that the bridge runs as"
}

// Files are the certificate that is in force, and where new ones come from.
type Files struct {
	cert, key string
	now       atomic.Pointer[tls.Certificate]
	one       sync.Mutex // held while the files are read
}

// Load reads a certificate with its chain, and its key.
func Load(cert, key string) (*Files, error) {
	f := &Files{cert: cert, key: key}
	is, err := f.read()
	if err != nil {
		return nil, err
	}
	f.now.Store(is)
	return f, nil
}

func (f *Files) read() (*tls.Certificate, error) {
	cert, err := os.ReadFile(f.cert)
	if err != nil {
		return nil, &Error{f.cert, without(err)}
	}
	key, err := os.ReadFile(f.key)
	if err != nil {
		return nil, &Error{f.key, without(err)}
	}
	is, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, &Error{f.cert + " and " + f.key, err}
	}
	if is.Leaf == nil {
		if is.Leaf, err = x509.ParseCertificate(is.Certificate[0]); err != nil {
			return nil, &Error{f.cert, err}
		}
	}
	return &is, nil
}

// without drops the path, which is named anyway.
func without(err error) error {
	if at := (*os.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// A State is how a certificate in files is.
type State struct {
	Wrong   error // why it cannot be served with; nil if it can
	Hint    string
	Expires time.Time
	Hosts   []string
}

// Look reads a certificate to say how it is.
func Look(cert, key string) *State {
	f, err := Load(cert, key)
	if err != nil {
		return &State{Wrong: err, Hint: (*Error)(nil).Hint()}
	}
	return &State{Expires: f.Expires(), Hosts: f.Hosts()}
}

// Expires returns when the certificate in force ends.
func (f *Files) Expires() time.Time { return f.now.Load().Leaf.NotAfter }

// Hosts returns the names and addresses that the certificate in force is for, without
// those that stand for many.
func (f *Files) Hosts() []string {
	leaf := f.now.Load().Leaf
	all := append([]string{}, leaf.DNSNames...)
	all = slices.DeleteFunc(all, func(name string) bool { return strings.Contains(name, "*") })
	for _, ip := range leaf.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}

// Reload reads the files anew. With an error, the certificate of before stays in force; a
// renewal may write one of the files after the other, so that they do not fit for a moment.
func (f *Files) Reload(log *slog.Logger) error {
	f.one.Lock()
	defer f.one.Unlock()
	is, err := f.read()
	if err != nil {
		return fmt.Errorf("%w; the one that ends on %s stays in force", err, f.Expires().Format(time.DateOnly))
	}
	if string(is.Certificate[0]) == string(f.now.Load().Certificate[0]) {
		return nil
	}
	f.now.Store(is)
	log.Info("a new certificate is in force", "file", f.cert, "until", is.Leaf.NotAfter)
	return nil
}

// Watch reloads the files whenever one of them changes, until ctx ends, and says so.
func (f *Files) Watch(ctx context.Context, log *slog.Logger) {
	if time.Until(f.Expires()) < soon {
		log.Warn("the certificate ends soon, or has ended", "file", f.cert, "until", f.Expires())
	}
	f.watch(ctx, log, watchfile.Options{})
}

func (f *Files) watch(ctx context.Context, log *slog.Logger, o watchfile.Options) {
	reload := func([]byte) {
		if err := f.Reload(log); err != nil {
			log.Warn("the new certificate cannot be used", "err", err)
		}
	}
	o.Lost = func(error) { reload(nil) }
	var both sync.WaitGroup
	both.Go(func() { watchfile.Watch(ctx, f.cert, reload, o) })
	both.Go(func() { watchfile.Watch(ctx, f.key, reload, o) })
	both.Wait()
}

// Listen makes the connections of l TLS, from version 1.2 on. Those that are open stay as
// they are when a certificate is replaced.
func (f *Files) Listen(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.now.Load(), nil },
	})
}

// over says that a request came over TLS, where what is below does not show that.
var over = &tls.ConnectionState{HandshakeComplete: true}

// Handler tells h that its requests come over TLS.
func Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			r.TLS = over
		}
		h.ServeHTTP(w, r)
	})
}
