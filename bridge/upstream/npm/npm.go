// Package npm says where npm gets packages from, and connects to it.
package npm

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// A Host is one that a registry is at.
type Host struct {
	Name string
	Port uint16
}

// Settings are what is configured for fetching packages.
type Settings struct {
	Registry  string
	Variables map[string]string // that tell npm
	Files     []string          // that these name
	Hosts     []Host            // the registries
	proxy     func(*url.URL) (*url.URL, error)
}

const defaultRegistry = "https://registry.npmjs.org/"

// Read reads the settings of npm that say where packages come from, first the
// variables for the child, then ours, then .npmrc. Tokens are not among them:
// installation scripts could take them. Lookup finds a variable in an environment.
func Read(ours, child []string, lookup func(environ []string, name string) (string, bool)) Settings {
	found := map[string]string{}
	home, _ := lookup(ours, "HOME")
	text, err := os.ReadFile(filepath.Join(home, ".npmrc"))
	if err != nil {
		text = nil // most people have none
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, "="); ok {
			found[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	for _, entry := range slices.Concat(ours, child) {
		name, value, _ := strings.Cut(entry, "=")
		if setting, ok := strings.CutPrefix(strings.ToLower(name), "npm_config_"); ok && value != "" {
			found[strings.ReplaceAll(setting, "_", "-")] = value
		}
	}
	n := Settings{Registry: cmp.Or(found["registry"], defaultRegistry), Variables: map[string]string{}}
	n.addHost(n.Registry)
	for name, value := range found {
		switch {
		case strings.HasPrefix(name, "@") && strings.HasSuffix(name, ":registry"):
			n.addHost(value)
		case name == "registry", name == "strict-ssl":
		case name == "cafile":
			n.Files = append(n.Files, value)
		default:
			continue
		}
		n.Variables["npm_config_"+strings.ReplaceAll(name, "-", "_")] = value
	}
	for _, name := range []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if value, ok := lookup(ours, name); ok && filepath.IsAbs(value) {
			n.Variables[name] = value
			n.Files = append(n.Files, value)
		}
	}
	variable := func(names ...string) string {
		for _, name := range names {
			if value, ok := lookup(ours, name); ok && value != "" {
				return value
			}
		}
		return ""
	}
	n.proxy = (&httpproxy.Config{
		HTTPSProxy: cmp.Or(found["https-proxy"], found["proxy"], variable("HTTPS_PROXY", "https_proxy")),
		HTTPProxy:  cmp.Or(found["proxy"], variable("HTTP_PROXY", "http_proxy")),
		NoProxy:    cmp.Or(found["noproxy"], variable("NO_PROXY", "no_proxy")),
	}).ProxyFunc()
	return n
}

// addHost lets the box reach a registry.
func (n *Settings) addHost(registry string) {
	u, err := url.Parse(registry)
	if err != nil || u.Hostname() == "" {
		return
	}
	port := uint64(443)
	if u.Scheme == "http" {
		port = 80
	}
	if given, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		port = given
	}
	h := Host{Name: strings.ToLower(u.Hostname()), Port: uint16(port)}
	if ip := net.ParseIP(h.Name); ip != nil && ip.IsLoopback() {
		h.Name = "localhost"
	}
	if !slices.Contains(n.Hosts, h) {
		n.Hosts = append(n.Hosts, h)
	}
}

// Dial connects to a registry, through the proxy that is configured. It may be on this
// machine or its network: who configured it said so.
func (n Settings) Dial(ctx context.Context, name string, port uint16) (net.Conn, error) {
	to := net.JoinHostPort(name, strconv.Itoa(int(port)))
	target := &url.URL{Scheme: "https", Host: to}
	if port == 80 {
		target.Scheme = "http"
	}
	proxy, err := n.proxy(target)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the proxy: %w", err)
	}
	if proxy == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", to)
	}
	return throughProxy(ctx, proxy, to)
}

// throughProxy connects through an HTTP proxy.
func throughProxy(ctx context.Context, proxy *url.URL, to string) (net.Conn, error) {
	at := proxy.Host
	var conn net.Conn
	var err error
	switch proxy.Scheme {
	case "http":
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", withPort(at, "80"))
	case "https":
		conn, err = new(tls.Dialer).DialContext(ctx, "tcp", withPort(at, "443"))
	default:
		return nil, fmt.Errorf("a proxy of the kind %q is not supported here; those for http and https are", proxy.Scheme)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to the proxy: %w", err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: to}, Host: to, Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		ask.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	in := bufio.NewReader(conn)
	err = ask.Write(conn)
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(in, ask)
	}
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("asking the proxy: %w", err)
	}
	return buffered{conn, in}, nil
}

func withPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(host, port)
}

// A buffered is a connection of which some has been read.
type buffered struct {
	net.Conn
	in io.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

// CloseWrite ends what is sent, where that can be told.
func (b buffered) CloseWrite() error {
	if half, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
