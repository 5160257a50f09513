// Package servecmd serves a bridge over HTTP until it is told to end, and then drains it.
//
// A bridge that drains says so at /readyz, so that a load balancer sends nothing new to it,
// and refuses what would begin a run, so that nothing is lost before the balancer has
// noticed. Runs that wait for people are suspended, for other bridges with the same store
// to go on with; the others may go on for a while, and their answers reach their clients.
package servecmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"codemode-bridge/bridge/certificate"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/identity"
	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

const (
	// Grace is how long runs may go on when the bridge is told to end.
	Grace = 10 * time.Second
	// Linger is how long a bridge that shares its store with others says at least that it
	// drains: load balancers look every second or two.
	Linger = 4 * time.Second
)

// A Bridge is what is served.
type Bridge interface {
	mcphttp.Bridge
	// Close refuses new runs, gives those under way grace to end, and suspends those that
	// wait for people.
	Close(grace time.Duration)
	// Running counts the runs that are under way.
	Running() int
}

// A Serving is a bridge that is served over HTTP.
type Serving struct {
	Bridge      Bridge
	Tokens      func() []mcphttp.Token // nil: there are never any
	Resource    *identity.Resource     // nil: no issuer's tokens are known
	SessionsOf  func(name string, groups []string) (most int, where string)
	Unavailable func() string                   // why calls are refused; "" if they are not
	Linger      time.Duration                   // how long draining takes at least
	Around      func(http.Handler) http.Handler // serves what else is at the address
	Page        *certificate.Files              // of the approval page; nil: none
	Err         io.Writer                       // told whom the end waits for
	Log         *slog.Logger
}

// Serve serves until ctx ends, and then drains. It tells a service manager when it begins
// and ends to serve.
func (s *Serving) Serve(ctx context.Context, l *Endpoint, h config.HTTP) error {
	var draining atomic.Bool
	o := mcphttp.Options{
		Hosts: config.Reveal(h.AllowedHosts), Origins: config.Reveal(h.AllowedOrigins),
		IdleTimeout: time.Duration(h.IdleTimeout), MaxSessions: h.MaxSessions, MaxBody: int64(h.MaxBody), Logger: s.Log,
		Tokens: s.Tokens, Resource: s.Resource, SessionsOf: s.SessionsOf, Draining: draining.Load,
	}
	o.Ready = func() error {
		if why := s.Unavailable(); why != "" {
			return fmt.Errorf("calls are refused: %s", why)
		}
		return nil
	}
	o.Hosts = append(o.Hosts, l.Hosts()...)
	l.Cautions(s.Log)
	server := &http.Server{
		Handler:           s.Around(mcphttp.Handler(s.Bridge, o)),
		ReadHeaderTimeout: 10 * time.Second, // no WriteTimeout: answers are streams
		ReadTimeout:       60 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    32 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- l.Serve(server) }()
	reloading, stop := context.WithCancel(ctx)
	var reloads sync.WaitGroup
	defer reloads.Wait()
	defer stop()
	reloads.Go(func() { s.reload(reloading, l) })
	Notify("READY=1\nSTATUS=serves " + l.Address())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	Notify("STOPPING=1\nSTATUS=draining")
	draining.Store(true)
	lingered := time.After(s.Linger)
	if n := s.Bridge.Running(); n > 0 {
		fmt.Fprintf(s.Err, "ending: waiting up to %v for %s; Ctrl-C again ends at once\n", Grace, cli.Count(n, "run"))
	}
	// Runs get their grace while the listener is still open, so that their answers
	// reach the clients. Streams that never end are then cut.
	s.Bridge.Close(Grace)
	<-lingered
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(ending) != nil {
		server.Close()
	}
	<-failed
	return nil
}

// reload takes over new certificates when their files change, and reads them anew when
// SIGHUP says so, until ctx ends.
func (s *Serving) reload(ctx context.Context, l *Endpoint) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	defer signal.Stop(told)
	var watching sync.WaitGroup
	defer watching.Wait()
	all := slices.DeleteFunc([]*certificate.Files{l.Certificate, s.Page}, func(f *certificate.Files) bool { return f == nil })
	for _, f := range all {
		watching.Go(func() { f.Watch(ctx, s.Log) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-told:
			Notify("RELOADING=1")
			said := "certificates were read anew; the configuration is followed without being told"
			for _, f := range all {
				if err := f.Reload(s.Log); err != nil {
					s.Log.Warn("the new certificate cannot be used", "err", err)
					said = "not every certificate could be read anew; the configuration is followed without being told"
				}
			}
			s.Log.Info(said)
			Notify("READY=1")
		}
	}
}
