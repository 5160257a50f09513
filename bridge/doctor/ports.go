package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

// ports checks whether serve could listen where the configuration says.
func (up *Checkup) ports(ctx context.Context) []Finding {
	c := up.config
	if c == nil {
		return nil
	}
	var all []Finding
	if c.MayListen != nil {
		all = append(all, warning("http.listen", "serve refuses it: "+c.MayListen.Error(), "listen on 127.0.0.1, or add a token to http.tokens, or http.auth"))
	}
	all = append(all, port(ctx, "http.listen", c.Listen))
	all = append(all, issuer(ctx, c)...)
	if c.Page == "" {
		return append(all, fine("approvals.listen", "off: there is no approval page"))
	}
	return append(all, port(ctx, "approvals.listen", c.Page))
}

// issuer checks whether tokens of the configured issuer can be checked, and had.
func issuer(ctx context.Context, c *Config) (all []Finding) {
	if c.Issuer == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	found := c.AskIssuer(ctx)
	if !slices.ContainsFunc(found, func(p IssuerProblem) bool { return p.Fatal }) {
		all = append(all, fine("http.auth", "tokens of "+c.Issuer+" can be checked"))
	}
	for _, p := range found {
		if p.Fatal {
			all = append(all, failing("http.auth", p.Text, p.Do))
		} else {
			all = append(all, warning("http.auth", p.Text, p.Do))
		}
	}
	return all
}

// port checks whether serve could listen on an address, or a bridge does already.
func port(ctx context.Context, key, address string) Finding {
	l, err := net.Listen("tcp", address)
	if err == nil {
		l.Close()
		return fine(key, address+" is free")
	}
	if isBridgeAt(ctx, address) {
		return fine(key, "a bridge listens on "+address)
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	return warning(key, fmt.Sprintf("serve cannot listen on %s: %v", address, err), "end the program that has it, or name another address")
}

// isBridgeAt reports whether what listens on an address is a bridge.
func isBridgeAt(ctx context.Context, address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return false
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r) // no proxy, no redirect
	if err != nil {
		return false
	}
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<10)
	answer.Body.Close()
	return answer.Header.Get("Server") == "codemode-bridge"
}
