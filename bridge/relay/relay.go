// Package relay lets a program in a box reach the hosts that its box names, and no others.
//
// Inside the box every allowed name has an address that means nothing elsewhere
// (Options.Names), and a connection to it ends here. The name is then looked up on this
// side, the address that it has is checked, and the two connections are joined:
//
//	server: "api.example.com"?       ──▶  Lookup: 198.18.0.1
//	server: connect 198.18.0.1:443   ──▶  Relay: api.example.com is 203.0.113.7: connect
//
// So a server needs no setting of a proxy, a name that is not allowed does not exist, an
// address without a name leads nowhere, and a name that leads to this machine or its
// network is refused unless the box names that, too.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Host is a name with a port that the program in the box may connect to.
type Host struct {
	// Name is a host name, "*." and a domain for all names below it, or an address.
	Name string
	Port uint16
}

// A Socket is a socket in the box's network. It listens for connections to a port of any
// address; or it gets questions about names over UDP, and its Port is 0.
type Socket struct {
	File *os.File
	Port uint16
}

// Options of a relay. Names and Log are required.
type Options struct {
	Names netip.Prefix // of IPv4, from which names get their addresses in the box
	Hosts []Host
	// Met is called with each host that is connected to. Where it is set, every host is
	// let through, this machine and its network included: it is for programs that are
	// watched, not confined. It may be called from several goroutines.
	Met func(name string, port uint16)
	Log *slog.Logger
	// Dial connects to a host of Hosts by its name; nil: the name is looked up with
	// Resolver, and an address that the box may reach is connected to with Dialer.
	Dial     func(ctx context.Context, name string, port uint16) (net.Conn, error)
	Resolver func(ctx context.Context, name string) ([]netip.Addr, error)   // nil: the system's
	Dialer   func(ctx context.Context, to netip.AddrPort) (net.Conn, error) // nil: TCP
	Ours     func() []netip.Prefix                                          // this machine's networks; nil: those of its interfaces
}

// Bounds of one box.
const (
	maxNames       = 1024 // names that got an address
	maxConnections = 256  // at a time
	maxRefused     = 16   // hosts that are remembered, and logged, as refused
	dialTimeout    = 20 * time.Second
)

// A Relay serves the sockets of one box.
type Relay struct {
	o    Options
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
	room chan struct{} // one for each connection
	// quiet counts what was logged of connections: a program may cause any number.
	quiet atomic.Int64

	mu    sync.Mutex
	names []string // by their addresses' place in Options.Names
	// refused are the hosts that were asked for and are not the box's.
	refused []string
}

// Serve serves the sockets until Close. They are the relay's from now on, also on an
// error.
func Serve(sockets []Socket, o Options) (*Relay, error) {
	if o.Resolver == nil {
		o.Resolver = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	if o.Dialer == nil {
		o.Dialer = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", to.String())
		}
	}
	if o.Ours == nil {
		o.Ours = networks
	}
	r := &Relay{o: o, room: make(chan struct{}, maxConnections)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	var errs []error
	for _, s := range sockets {
		errs = append(errs, r.serve(s))
		s.File.Close()
	}
	if err := errors.Join(errs...); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Add serves one more socket, as Serve does. It is not to be called after Close.
func (r *Relay) Add(s Socket) error {
	defer s.File.Close()
	return r.serve(s)
}

// Close ends all connections.
func (r *Relay) Close() {
	r.stop()
	r.work.Wait()
}

// Refused returns the hosts that the program asked for and that its box does not name,
// each once, as it asked: a name, or a host with a port.
func (r *Relay) Refused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.refused)
}

// refuse notes that a host was asked for in vain. Only the first hosts are noted, since a
// program may ask for any number.
func (r *Relay) refuse(host string) {
	if name, _, err := net.SplitHostPort(host); !plain(host) && (err != nil || !plain(name) && !isAddress(name)) {
		return // it would be a text of the server's in ours, and in commands that we propose
	}
	r.mu.Lock()
	first := len(r.refused) < maxRefused && !slices.Contains(r.refused, host)
	if first {
		r.refused = append(r.refused, host)
	}
	r.mu.Unlock()
	if first {
		r.o.Log.Warn("a server asked for a host that its box does not name", "host", host)
	}
}

func (r *Relay) serve(s Socket) error {
	if s.Port == 0 {
		conn, err := net.FilePacketConn(s.File)
		if err != nil {
			return fmt.Errorf("serving names to a box: %w", err)
		}
		r.closing(conn)
		r.work.Go(func() { r.answer(conn) })
		return nil
	}
	l, err := net.FileListener(s.File)
	if err != nil {
		return fmt.Errorf("serving connections of a box: %w", err)
	}
	r.closing(l)
	r.work.Go(func() { r.accept(l, s.Port) })
	return nil
}

// closing closes what is served when the relay ends.
func (r *Relay) closing(c io.Closer) { context.AfterFunc(r.ctx, func() { c.Close() }) }

func (r *Relay) accept(l net.Listener, port uint16) {
	for {
		in, err := l.Accept()
		if err != nil {
			if !r.goesOn(err) {
				return
			}
			continue // this one is gone; the next may not be
		}
		select {
		case r.room <- struct{}{}:
		default:
			in.Close()
			if r.quiet.Add(1) <= maxRefused {
				r.o.Log.Warn("a server in a box has too many connections", "most", maxConnections)
			}
			continue
		}
		r.work.Go(func() {
			defer func() { <-r.room }()
			defer in.Close()
			if err := r.relay(in, port); err != nil && r.ctx.Err() == nil && r.quiet.Add(1) <= maxRefused {
				r.o.Log.Info("a connection of a server in a box was refused", "error", err)
			}
		})
	}
}

// pause is how long the relay rests when a socket fails: this process may have no
// descriptor left, and fail again at once.
const pause = 50 * time.Millisecond

// goesOn rests after an error of a socket, and reports whether the socket is still served.
func (r *Relay) goesOn(err error) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	rest := time.NewTimer(pause)
	defer rest.Stop()
	select {
	case <-r.ctx.Done():
		return false
	case <-rest.C:
		return true
	}
}

// relay joins a connection from the box to the one it means.
func (r *Relay) relay(in net.Conn, port uint16) error {
	local, err := netip.ParseAddrPort(in.LocalAddr().String())
	if err != nil {
		return err
	}
	name, ok := r.meant(local.Addr().Unmap())
	if !ok {
		return fmt.Errorf("%s is no address of a host that its box names", local.Addr())
	}
	if r.o.Met != nil {
		r.o.Met(name, port)
	} else if !allowed(r.o.Hosts, name, port) {
		r.refuse(net.JoinHostPort(name, strconv.Itoa(int(port))))
		return fmt.Errorf("its box does not name %s with port %d", name, port)
	}
	ctx, cancel := context.WithTimeout(r.ctx, dialTimeout)
	defer cancel()
	dial := r.o.Dial
	if dial == nil {
		dial = r.dial
	}
	out, err := dial(ctx, name, port)
	if err != nil {
		return fmt.Errorf("connecting to %s port %d: %w", name, port, err)
	}
	defer out.Close()
	defer context.AfterFunc(r.ctx, func() { in.Close(); out.Close() })()
	join(in, out)
	return nil
}

// meant returns the name or address that a program in the box connects to.
func (r *Relay) meant(local netip.Addr) (string, bool) {
	if !r.o.Names.Contains(local) {
		if local.IsLoopback() {
			return "localhost", true
		}
		return local.String(), true
	}
	first, at := r.o.Names.Addr().As4(), local.As4()
	n := int(at[1]-first[1])<<16 | int(at[2])<<8 | int(at[3])
	r.mu.Lock()
	defer r.mu.Unlock()
	if n < 1 || n > len(r.names) {
		return "", false
	}
	return r.names[n-1], true
}

// address returns the address that a name has in the box.
func (r *Relay) address(name string) (netip.Addr, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.names, name)
	if i < 0 {
		if len(r.names) == maxNames {
			return netip.Addr{}, false
		}
		i = len(r.names)
		r.names = append(r.names, name)
	}
	n := i + 1
	a := r.o.Names.Addr().As4()
	a[1], a[2], a[3] = a[1]+byte(n>>16), byte(n>>8), byte(n)
	return netip.AddrFrom4(a), true
}

// dial connects to a name as it is known here, at an address that the box may reach.
func (r *Relay) dial(ctx context.Context, name string, port uint16) (net.Conn, error) {
	var addresses []netip.Addr
	if a, err := netip.ParseAddr(name); err == nil && a.Zone() == "" {
		addresses = []netip.Addr{a}
	} else if addresses, err = r.o.Resolver(ctx, name); err != nil {
		return nil, err
	}
	err := errors.New("it has no address")
	ours := r.o.Ours()
	for _, a := range addresses {
		a = a.WithZone("").Unmap()
		if r.o.Met == nil && !reachable(r.o.Hosts, name, a, ours) {
			err = fmt.Errorf("its address %s belongs to this machine or its network, which its box does not name", a)
			continue
		}
		var conn net.Conn
		if conn, err = r.o.Dialer(ctx, netip.AddrPortFrom(a, port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// allowed reports whether the hosts have the name with the port.
func allowed(hosts []Host, name string, port uint16) bool {
	return slices.ContainsFunc(hosts, func(h Host) bool { return h.Port == port && names(h.Name, name) })
}

// names reports whether a host of a box names name. What is no plain name, such as an
// address with a zone that ends like one, is below no domain.
func names(host, name string) bool {
	if domain, ok := strings.CutPrefix(host, "*."); ok {
		return plain(name) && strings.HasSuffix(name, "."+domain)
	}
	return host == name
}

func isAddress(name string) bool {
	a, err := netip.ParseAddr(name)
	return err == nil && a.Zone() == ""
}

// plain reports whether a name is made of what names of hosts are made of.
func plain(name string) bool {
	return name != "" && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "-") && !strings.Contains(name, "..") &&
		!strings.ContainsFunc(name, func(c rune) bool {
			return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_')
		})
}

// reachable reports whether a name may lead to an address: anywhere on the internet, and
// to this machine or its network if the box names that very address, or the name is
// localhost. Ours are the networks that this machine is on.
func reachable(hosts []Host, name string, a netip.Addr, ours []netip.Prefix) bool {
	if name == "localhost" {
		return a.IsLoopback()
	}
	if a.IsGlobalUnicast() && !a.IsPrivate() && !slices.ContainsFunc(slices.Concat(reserved, ours), func(p netip.Prefix) bool { return p.Contains(a) }) {
		return true
	}
	return slices.ContainsFunc(hosts, func(h Host) bool { return h.Name == a.String() })
}

// reserved are addresses that look like the internet's and are not.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("168.63.129.16/32"), // this machine, in Microsoft's cloud
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("::ffff:0:0:0/96"), netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
}

// networks returns the networks that this machine is on, with its own addresses.
func networks() (all []netip.Prefix) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addresses {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Bits() > 0 {
			all = append(all, p.Masked())
		}
	}
	return all
}

// join copies both ways until both are done, or one of them fails.
func join(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			if _, err := io.Copy(way[0], way[1]); err != nil {
				a.Close()
				b.Close()
				return
			}
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				half.CloseWrite()
			}
		})
	}
	both.Wait()
}
