package login

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of one request to a server of logins.
const (
	patience     = 20 * time.Second
	maxBody      = 1 << 20
	maxHeader    = 64 << 10
	maxRedirects = 3
)

// A network is the part of the address space that an address lies in. What a
// server says of its logins may lead to public addresses and to the network that
// the server itself is in, and to no other: else a server on the internet could
// have us ask our own machine or a cloud's metadata service.
type network string

// The networks. Nothing ever leads to a reserved address.
const (
	public    network = "public"
	loopback  network = "loopback"
	private   network = "private"    // RFC 1918, and fc00::/7
	linkLocal network = "link-local" // 169.254.0.0/16, and fe80::/10
	shared    network = "shared"     // 100.64.0.0/10, behind a carrier's NAT
	reserved  network = "reserved"
)

var sharedRange = netip.MustParsePrefix("100.64.0.0/10")

// translated holds the IPv6 form of public IPv4 addresses where a network has
// IPv6 only (RFC 6052).
var translated = netip.MustParsePrefix("64:ff9b::/96")

// reservedRanges are special by the registries of IANA, or hold an IPv4 address
// in a form that some system may unwrap.
var reservedRanges = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// networkOf says in which network an address lies.
func networkOf(ip netip.Addr) network {
	ip = ip.Unmap().WithZone("")
	if translated.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case !ip.IsValid():
		return reserved
	case ip.IsLoopback():
		return loopback
	case ip.IsPrivate():
		return private
	case ip.IsLinkLocalUnicast():
		return linkLocal
	case sharedRange.Contains(ip):
		return shared
	case !ip.IsGlobalUnicast():
		return reserved
	}
	for _, r := range reservedRanges {
		if r.Contains(ip) {
			return reserved
		}
	}
	return public
}

// networkAt is networkOf for an address with a port.
func networkAt(address string) network {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return reserved
	}
	return networkOf(at.Addr())
}

// A guard makes the requests about logins. It checks the address that a connection is
// really made to, after each resolution of a name, so that neither the notation of an
// address nor a name that later resolves differently gets past it.
type guard struct {
	client *http.Client
	// proxies are the addresses of the proxies that the environment names: a
	// connection to one is the person's own wish. What a proxy connects to cannot
	// be seen from here.
	proxies sync.Map
}

// A reach is how far a request may lead.
type reach struct {
	home network // where it may go beside public addresses; public: nowhere else
}

type reachKey struct{}

// anywhere is the reach of a request to an address in the configuration.
var anywhere = &reach{home: "anywhere"}

func newGuard(resolver *net.Resolver, config *tls.Config) *guard {
	g := &guard{}
	dialer := &net.Dialer{Timeout: patience / 2, Resolver: resolver}
	checked := *dialer
	checked.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		home := public
		if r, ok := ctx.Value(reachKey{}).(*reach); ok {
			home = r.home
		}
		if at := networkAt(address); home != anywhere.home && (at == reserved || at != public && at != home) {
			return &addressError{address, at}
		}
		return nil
	}
	g.client = &http.Client{
		Timeout: patience,
		Transport: &http.Transport{
			Proxy: func(req *http.Request) (*url.URL, error) {
				proxy, err := http.ProxyFromEnvironment(req)
				if proxy != nil {
					g.proxies.Store(hostPort(proxy), true)
				}
				return proxy, err
			},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if _, ok := g.proxies.Load(address); ok {
					return dialer.DialContext(ctx, network, address)
				}
				return checked.DialContext(ctx, network, address)
			},
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    patience / 2,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: maxHeader,
			// A connection that is kept was checked for another request.
			DisableKeepAlives: true,
		},
		CheckRedirect: follow,
	}
	return g
}

// follow decides whether a redirect is followed: a few times, to addresses that a
// server may name, and beyond the origin to public addresses only. A POST is not sent
// again, and does not lead to another origin: what a redirect makes a GET still has
// the headers, with those of the configuration or a client's secret.
func follow(req *http.Request, via []*http.Request) error {
	if req.Method != http.MethodGet || via[0].Method != http.MethodGet && origin(via[0].URL) != origin(req.URL) {
		return http.ErrUseLastResponse
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if _, err := checkURL(req.URL.String()); err != nil {
		return fmt.Errorf("a redirect: %w", err)
	}
	last := via[len(via)-1].URL
	if last.Scheme == "https" && req.URL.Scheme != "https" {
		return errors.New("a redirect from https to http")
	}
	if r, ok := req.Context().Value(reachKey{}).(*reach); ok && origin(last) != origin(req.URL) {
		r.home = public
	}
	return nil
}

// An addressError says why a connection was not made.
type addressError struct {
	address string
	network network
}

func (e *addressError) Error() string {
	if e.network == reserved {
		return fmt.Sprintf("it leads to %s, which is no address of a server", e.address)
	}
	return fmt.Sprintf("it leads to %s, a %s address, which this server may not name", e.address, e.network)
}

// An answer is the answer to a request, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do makes one request. It may lead to public addresses and to home.
func (g *guard) do(ctx context.Context, home network, req *http.Request) (*answer, error) {
	if _, err := checkURL(req.URL.String()); err != nil {
		return nil, err
	}
	req = req.WithContext(context.WithValue(ctx, reachKey{}, &reach{home}))
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, plain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", plain(err))
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxBody)
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: body}, nil
}

// getJSON fetches a document. found is false if the server has none.
func (g *guard) getJSON(ctx context.Context, home network, address string, into any) (found bool, err error) {
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return false, errNotURL
	}
	req.Header.Set("Accept", "application/json")
	a, err := g.do(ctx, home, req)
	switch {
	case err != nil:
		return false, err
	case a.status >= 400 && a.status < 500:
		return false, nil
	case a.status != http.StatusOK:
		return false, fmt.Errorf("HTTP status %d", a.status)
	}
	if !isJSON(a.header) {
		return false, errors.New("the answer is not JSON")
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return false, errors.New("the answer is not the JSON object that it should be")
	}
	return true, nil
}

func isJSON(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// plain removes the address, which may carry a code, from an error of net/http.
func plain(err error) error {
	var refused *addressError
	var web *url.Error
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	case errors.As(err, &cert):
		return cert
	case errors.As(err, &web):
		if web.Timeout() {
			return errors.New("no answer in time")
		}
		return web.Err
	}
	return err
}

var errNotURL = errors.New("it is not a URL")

// checkURL reads an address that a server named or that a browser is to open.
// It is https, or http on this machine, and nothing in it could mean something
// to a shell or a program that is started with it.
func checkURL(text string) (*url.URL, error) {
	for _, r := range text {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune("\"'`\\<>{}|^$()", r) {
			return nil, fmt.Errorf("an address has the character %q in it", r)
		}
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errNotURL
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("an address must begin with https://, not with %q", cut(u.Scheme+":", 20))
	case u.Hostname() == "" || strings.HasPrefix(u.Host, "-"):
		return nil, errors.New("an address names no host")
	case u.User != nil:
		return nil, errors.New("an address has a user name in it")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return nil, fmt.Errorf("%s is not https, and not on this machine", origin(u))
	}
	return u, nil
}

// isLoopback reports whether a host is this machine by its name alone.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// origin is scheme, host and port.
func origin(u *url.URL) string { return u.Scheme + "://" + hostPort(u) }

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// sameIssuer compares issuers but for a last slash, which is often left out.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "..."
	}
	return text
}
