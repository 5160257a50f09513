package metrics

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"codemode-bridge/bridge/webguard"
)

// A SiteOptions says who may read metrics, and where.
type SiteOptions struct {
	Listen string   // host:port
	Token  string   // the bearer token that is required; empty: none is
	Hosts  []string // Host headers that are let in beside loopback names and the address
}

// A Site serves /metrics on a listener of its own.
type Site struct {
	server *http.Server
	failed chan error
	// Address is where it is, with the port that it got.
	Address string
}

// Serve serves metrics until Close. The error says that the address is taken, or that
// others could reach it without a token.
func (m *Metrics) Serve(o SiteOptions) (*Site, error) {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the metrics: %w", err)
	}
	if ip := net.ParseIP(host); o.Token == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("serving metrics: %s can be reached by others, and there is no token: set metrics.token, or listen on 127.0.0.1", o.Listen)
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("serving metrics: %w", err)
	}
	s := &Site{failed: make(chan error, 1), Address: "http://" + l.Addr().String() + "/metrics", server: &http.Server{
		Handler: m.guarded(o), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 20 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 120 * time.Second, MaxHeaderBytes: 32 << 10,
	}}
	go func() { s.failed <- s.server.Serve(webguard.Strict(l)) }()
	return s, nil
}

// Close ends it. Scrapes under way get a second to end.
func (s *Site) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		s.server.Close()
	}
	<-s.failed
}

// guarded is the handler behind its checks: the host, then the token.
func (m *Metrics) guarded(o SiteOptions) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	want := sha256.Sum256([]byte(o.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Server", "codemode-bridge")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if !webguard.Host(r, o.Hosts) {
			http.Error(w, fmt.Sprintf("Forbidden: host %q is not ours; add it to metrics.allowedHosts if it is", r.Host), http.StatusForbidden)
			return
		}
		if !webguard.Origin(r, nil) {
			http.Error(w, "Forbidden: cross-origin request", http.StatusForbidden)
			return
		}
		if o.Token != "" {
			scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			got := sha256.Sum256([]byte(token))
			if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
				h.Set("WWW-Authenticate", "Bearer")
				http.Error(w, "Unauthorized: a scrape needs the bearer token metrics.token", http.StatusUnauthorized)
				return
			}
		}
		mux.ServeHTTP(w, r)
	})
}
