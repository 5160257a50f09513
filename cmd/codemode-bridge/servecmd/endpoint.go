package servecmd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"

	"codemode-bridge/bridge/certificate"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/bridge/webguard"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

// An Endpoint is a listener, with the certificate of its connections.
type Endpoint struct {
	net.Listener
	Certificate *certificate.Files // nil: plain HTTP
}

// The names of the sockets that a service manager may have opened for the bridge.
const (
	SocketHTTP = "http"
	SocketPage = "page"
)

// Listen opens an endpoint: on the socket with a name, if the service manager has opened
// one, or else at an address.
func Listen(socket, address string, t config.TLS) (*Endpoint, error) {
	e := new(Endpoint)
	if t != (config.TLS{}) {
		var err error
		if e.Certificate, err = certificate.Load(t.Cert, t.Key); err != nil {
			return nil, err
		}
	}
	if e.Listener = inherited(socket); e.Listener == nil {
		var err error
		if e.Listener, err = net.Listen("tcp", address); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Open opens the endpoint of clients. What others can reach without a token is refused.
func Open(address string, h config.HTTP) (*Endpoint, error) {
	if given := inherited(SocketHTTP); given != nil {
		address = given.Addr().String()
	}
	if err := MayListen(address, h.AsksForTokens()); err != nil {
		if open := new(OpenError); errors.As(err, &open) {
			err = &cli.SetupError{Err: err, Do: open.Hint()}
		}
		return nil, err
	}
	e, err := Listen(SocketHTTP, address, h.TLS)
	if broken := new(certificate.Error); errors.As(err, &broken) {
		return nil, &cli.SetupError{Err: fmt.Errorf("http.tls: %w", err), Do: broken.Hint()}
	}
	if err != nil {
		return nil, &cli.SetupError{Err: fmt.Errorf("listening on %s: %w", address, err), Do: hintFor(err)}
	}
	return e, nil
}

func hintFor(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program has it, perhaps another bridge (codemode-bridge status): end that, or choose another address with --listen or http.listen; port 0 takes a free one"
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 are for root: choose another with --listen or http.listen, or let a proxy or systemd listen there"
	}
	return "choose another address with --listen or http.listen; port 0 takes a free one"
}

// PageHint says what to do about an approval page that cannot be served.
func PageHint(err error) string {
	if errors.As(err, new(*certificate.Error)) {
		return "approvals.tls names the files of its certificate"
	}
	return "approvals.listen names another address"
}

// Base is the address of the endpoint for people, such as https://bridge.example.com:7420.
// Where it listens everywhere, a certificate says by which name others know the machine.
func (e *Endpoint) Base() string {
	base := strings.TrimSuffix(mcphttp.Address(e.Addr()), "/mcp")
	if e.Certificate == nil {
		return base
	}
	for _, name := range e.Certificate.Hosts() {
		if net.ParseIP(name) == nil {
			base = strings.Replace(base, "THIS-MACHINE", name, 1)
		}
	}
	return "https" + strings.TrimPrefix(base, "http")
}

// Address is where clients connect.
func (e *Endpoint) Address() string { return e.Base() + "/mcp" }

// Hosts are by which names the endpoint is called besides those of the configuration.
func (e *Endpoint) Hosts() (all []string) {
	if host, _, err := net.SplitHostPort(e.Addr().String()); err == nil {
		if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
			all = append(all, host)
		}
	}
	if e.Certificate != nil {
		all = append(all, e.Certificate.Hosts()...)
	}
	return all
}

// Serve answers requests until the server is shut down.
func (e *Endpoint) Serve(server *http.Server) error {
	if e.Certificate == nil {
		return server.Serve(webguard.Strict(e.Listener))
	}
	server.Handler = certificate.Handler(server.Handler)
	return server.Serve(webguard.Strict(e.Certificate.Listen(e.Listener)))
}

// Cautions says what is worth a thought about where the endpoint is.
func (e *Endpoint) Cautions(log *slog.Logger) {
	tcp, ok := e.Addr().(*net.TCPAddr)
	if ok && !tcp.IP.IsLoopback() && e.Certificate == nil {
		log.Warn("others reach this address without TLS: tokens and answers travel in the clear unless a proxy before it encrypts them; http.tls names a certificate", "address", e.Addr().String())
	}
}

// Certificates are those that a configuration names, as doctor looks at them.
func Certificates(cfg *config.Config) map[string]*certificate.State {
	all := make(map[string]*certificate.State)
	for key, t := range map[string]config.TLS{"http.tls": cfg.HTTP.TLS, "approvals.tls": cfg.Approvals.TLS} {
		if t != (config.TLS{}) {
			all[key] = certificate.Look(t.Cert, t.Key)
		}
	}
	return all
}
