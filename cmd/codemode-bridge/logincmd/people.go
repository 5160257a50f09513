package logincmd

import (
	"context"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/login"
)

// People are the accounts of people for the page.
type People struct{ PageOptions }

// Any reports whether there is a server at which people have accounts.
func (p People) Any() bool {
	for _, s := range p.Config().Servers {
		if s.Auth.Per == config.AuthPrincipal {
			return true
		}
	}
	return false
}

// Person is whose accounts those of an approver are: their own as a client, if that is
// known.
func (p People) Person(who approval.Approver) string {
	if who.Principal != "" {
		return who.Principal
	}
	return PersonOf(p.Config(), who.Name)
}

// at returns the accounts at a server.
func (p People) at(cfg *config.Config, server string) (*login.AccountsAt, error) {
	s := cfg.Servers[server]
	if s == nil || s.Disabled || s.Auth.Per != config.AuthPrincipal {
		return nil, login.ErrNoLogin
	}
	at, ok := ServerOf(s)
	if !ok {
		return nil, login.ErrNoLogin
	}
	return p.Logins.At(cfg, at), nil
}

// List returns the servers at which somebody may have an account.
func (p People) List(ctx context.Context, who approval.Approver) (all []login.Connection, err error) {
	cfg := p.Config()
	for _, name := range cfg.ServerNames() {
		at, err := p.at(cfg, name)
		if err != nil {
			continue // nobody has accounts there
		}
		c, _, err := at.Connection(ctx, p.Person(who))
		if err != nil { // it can be connected again
			p.Log.Warn("reading an account", "server", name, "err", err)
			c.Ended = true
		}
		c.Server, c.Pasted = name, cfg.Servers[name].Type == config.KindStdio
		all = append(all, c)
	}
	return all, nil
}

// Begin begins to connect somebody's account.
func (p People) Begin(ctx context.Context, who approval.Approver, server, redirect, state string) (link string, keep []byte, err error) {
	at, err := p.at(p.Config(), server)
	if err != nil {
		return "", nil, err
	}
	attempt, err := at.Begin(ctx, p.Person(who), redirect, state)
	if err != nil {
		return "", nil, err
	}
	keep, err = attempt.Keep()
	return attempt.Link(), keep, err
}

// Finish connects the account that somebody began to connect, here or at another bridge.
func (p People) Finish(ctx context.Context, who approval.Approver, server string, kept []byte, returned string) error {
	at, err := p.at(p.Config(), server)
	if err != nil {
		return err
	}
	attempt, err := at.Continue(p.Person(who), kept)
	if err != nil {
		return err
	}
	_, err = attempt.Finish(ctx, "?"+returned)
	return err
}

// Paste connects somebody's account by a token that they made.
func (p People) Paste(ctx context.Context, who approval.Approver, server, token string) error {
	at, err := p.at(p.Config(), server)
	if err != nil {
		return err
	}
	return at.Paste(ctx, p.Person(who), token)
}

// Disconnect deletes somebody's account.
func (p People) Disconnect(ctx context.Context, who approval.Approver, server string) (revoked bool, notRevoked, err error) {
	at, err := p.at(p.Config(), server)
	if err != nil {
		return false, nil, err
	}
	return at.Disconnect(ctx, p.Person(who))
}
