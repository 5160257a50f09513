package logincmd

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/login"
)

// A Page logs in to servers for the page. The browser returns to a port of this
// process, which stays open for as long as a login may take.
type Page struct {
	o   PageOptions
	ctx context.Context // ends with the page

	mu    sync.Mutex
	begun map[string]context.CancelFunc // by server
}

// PageOptions are the settings of a Page.
type PageOptions struct {
	Logins *Logins
	Config func() *config.Config // in force
	Go     func(func())          // runs what ends with the bridge
	Log    *slog.Logger
}

// NewPage makes a Page; ctx ends its logins.
func NewPage(ctx context.Context, o PageOptions) *Page {
	return &Page{o: o, ctx: ctx, begun: map[string]context.CancelFunc{}}
}

// Begin begins the login that all use at a server.
func (l *Page) Begin(ctx context.Context, server, by string) (string, error) {
	cfg := l.o.Config()
	s := cfg.Servers[server]
	if s == nil || s.Auth.Per == config.AuthPrincipal {
		return "", login.ErrNoLogin
	}
	at, ok := ServerOf(s)
	if !ok {
		return "", login.ErrNoLogin
	}
	client := l.o.Logins.Client(cfg, at)
	waiting, cancel := context.WithTimeout(l.ctx, login.WaitTime)
	l.replace(server, cancel) // frees its port, which the next may need
	back, err := login.Listen(s.Auth.RedirectPort != 0, cmp.Or(s.Auth.RedirectPort, client.Redirect()))
	if err != nil {
		cancel()
		return "", err
	}
	attempt, err := client.Begin(ctx, back.URL())
	if err != nil {
		back.Close()
		cancel()
		return "", err
	}
	l.o.Go(func() {
		defer cancel()
		switch _, err := back.Wait(waiting, attempt); {
		case err == nil:
			l.o.Log.Info("logged in to a server", "server", server, "by", by)
		case !errors.Is(context.Cause(waiting), context.Canceled):
			l.o.Log.Warn("logging in to a server", "server", server, "by", by, "err", err)
		}
	})
	return attempt.Link(), nil
}

// replace cancels the login that was begun earlier at the same server, if any.
func (l *Page) replace(server string, cancel context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.begun[server]; before != nil {
		before()
	}
	l.begun[server] = cancel
}
