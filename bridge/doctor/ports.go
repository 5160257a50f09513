package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/certificate"
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
	all = append(all, port(ctx, "http.listen", c.Listen, c.Certificates["http.tls"]))
	for _, key := range slices.Sorted(maps.Keys(c.Certificates)) {
		all = append(all, lasts(key, c.Certificates[key], time.Now()))
	}
	all = append(all, issuer(ctx, c)...)
	if c.Page == "" {
		return append(all, fine("approvals.listen", "off: there is no approval page"))
	}
	return append(all, port(ctx, "approvals.listen", c.Page, c.Certificates["approvals.tls"]))
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

// renew is how long before its end a certificate should have been renewed.
const renew = 14 * 24 * time.Hour

// lasts checks how long a certificate is good.
func lasts(key string, c *certificate.State, now time.Time) Finding {
	until := c.Expires.Local().Format("2006-01-02 15:04")
	switch {
	case c.Wrong != nil:
		return failing(key, c.Wrong.Error(), c.Hint)
	case now.After(c.Expires):
		return failing(key, "the certificate ended on "+until, "renew it: the bridge takes new files over while it runs")
	case now.Add(renew).After(c.Expires):
		return warning(key, "the certificate ends on "+until, "renew it: the bridge takes new files over while it runs")
	}
	return fine(key, fmt.Sprintf("the certificate is for %s, until %s", strings.Join(c.Hosts, ", "), until))
}

// anyCertificate accepts each, since nothing is sent and one header is read.
var anyCertificate = &tls.Config{InsecureSkipVerify: true}

// port checks whether serve could listen on an address, or a bridge does already.
func port(ctx context.Context, key, address string, cert *certificate.State) Finding {
	l, err := net.Listen("tcp", address)
	if err == nil {
		l.Close()
		return fine(key, address+" is free")
	}
	if isBridgeAt(ctx, address, cert != nil) {
		return fine(key, "a bridge listens on "+address)
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	return warning(key, fmt.Sprintf("serve cannot listen on %s: %v", address, err), "end the program that has it, or name another address")
}

// isBridgeAt reports whether what listens on an address is a bridge.
func isBridgeAt(ctx context.Context, address string, encrypted bool) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	scheme := "http://"
	if encrypted {
		scheme = "https://"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return false
	}
	answer, err := (&http.Transport{DisableKeepAlives: true, TLSClientConfig: anyCertificate}).RoundTrip(r) // no proxy, no redirect
	if err != nil {
		return false
	}
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<10)
	answer.Body.Close()
	return answer.Header.Get("Server") == "codemode-bridge"
}
