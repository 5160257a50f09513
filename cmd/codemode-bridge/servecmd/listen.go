package servecmd

import (
	"fmt"
	"log/slog"
	"net"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/identity"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

// An OpenError is an address that others can reach without a token.
type OpenError struct{ Address string }

func (e *OpenError) Error() string {
	return e.Address + " can be reached by others, and http.tokens has no token"
}

// Hint says what to do about it.
func (*OpenError) Hint() string {
	return "listen on 127.0.0.1, or add a token to http.tokens, or http.auth"
}

// MayListen refuses an address that others can reach without a token.
func MayListen(address string, tokens bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("reading the address %q: %w", address, err)}
	}
	if ip := net.ParseIP(host); tokens || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return &OpenError{address}
}

// ResourceOf makes what lets the bearers of an issuer's tokens in.
func ResourceOf(a config.OAuth, log *slog.Logger) *identity.Resource {
	return identity.New(identity.Options{
		Issuer: a.Issuer.Reveal(), Resource: a.Resource.Reveal(), Audiences: a.Audiences, Scopes: a.Scopes, Groups: a.Groups,
		ClientID: a.Introspection.ClientID.Reveal(), ClientSecret: a.Introspection.ClientSecret.Reveal(), Introspection: a.Introspection.URL.Reveal(), Logger: log,
	})
}
