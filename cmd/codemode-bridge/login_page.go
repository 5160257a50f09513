package main

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"codemode-bridge/bridge/admin"
	"codemode-bridge/bridge/login"
)

// pageLogins logs in to servers for the page. The browser returns to a port of this
// process, which stays open for as long as a login may take.
type pageLogins struct {
	parts *parts
	ctx   context.Context // ends with the page

	mu    sync.Mutex
	begun map[string]context.CancelFunc // by server
}

func newPageLogins(ctx context.Context, p *parts) *pageLogins {
	return &pageLogins{parts: p, ctx: ctx, begun: map[string]context.CancelFunc{}}
}

func (l *pageLogins) Begin(ctx context.Context, server, by string) (string, error) {
	s := l.parts.config().Servers[server]
	if s == nil {
		return "", admin.ErrUnknown
	}
	at, ok := serverToLogIn(s)
	if !ok {
		return "", admin.ErrUnknown
	}
	client := l.parts.logins.Client(at)
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
	l.parts.ended.Go(func() {
		defer cancel()
		switch _, err := back.Wait(waiting, attempt); {
		case err == nil:
			l.parts.log.Info("logged in to a server", "server", server, "by", by)
		case !errors.Is(context.Cause(waiting), context.Canceled):
			l.parts.log.Warn("logging in to a server", "server", server, "by", by, "err", err)
		}
	})
	return attempt.Link(), nil
}

// replace cancels the login that was begun earlier at the same server, if any.
func (l *pageLogins) replace(server string, cancel context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.begun[server]; before != nil {
		before()
	}
	l.begun[server] = cancel
}
