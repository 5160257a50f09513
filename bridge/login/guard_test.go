package login

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestNetworkOf(t *testing.T) {
	for text, want := range map[string]network{
		"8.8.8.8": public, "2606:4700::1111": public, "::ffff:8.8.8.8": public, "64:ff9b::8.8.8.8": public,
		"127.0.0.1": loopback, "127.9.9.9": loopback, "::1": loopback, "::ffff:127.0.0.1": loopback, "64:ff9b::7f00:1": loopback,
		"10.0.0.1": private, "172.16.0.1": private, "192.168.1.1": private, "fd00::1": private, "::ffff:10.0.0.1": private, "64:ff9b::10.0.0.1": private,
		"169.254.169.254": linkLocal, "fe80::1": linkLocal, "fe80::1%eth0": linkLocal, "::ffff:169.254.169.254": linkLocal,
		"100.64.0.1": shared, "100.127.255.255": shared,
		"0.0.0.0": reserved, "::": reserved, "0.1.2.3": reserved, "255.255.255.255": reserved, "224.0.0.1": reserved, "ff02::1": reserved,
		"240.0.0.1": reserved, "198.18.0.1": reserved, "192.0.2.1": reserved, "::127.0.0.1": reserved, "2002:7f00:1::": reserved,
		"64:ff9b:1::7f00:1": reserved, "2001::1": reserved, "fec0::1": reserved,
	} {
		if got := networkOf(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	if got := networkOf(netip.Addr{}); got != reserved {
		t.Errorf("no address is %s", got)
	}
}

func TestCheckURL(t *testing.T) {
	for _, good := range []string{
		"https://auth.example.com/authorize?a=b&c=%27%28d", "https://auth.example.com:8443", "http://127.0.0.1:1/x", "http://localhost:80/", "http://[::1]:80/",
	} {
		if _, err := checkURL(good); err != nil {
			t.Errorf("%s is refused: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "x", "/x", "//auth.example.com/", "-https://auth.example.com", "--help", "https:", "https://", "https:///x", "https://-x/", "https://:443/",
		"http://auth.example.com/", "http://10.0.0.1/", "http://2130706433/", "http://0x7f000001/", "http://127.0.0.1.example.com/",
		"file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "ftp://auth.example.com", "ms-msdt:/id", "vscode://x", "HTTPS+x://a",
		"https://a.example/$(id)", "https://a.example/`id`", `https://a.example/"`, "https://a.example/'", "https://a.example/x y", "https://a.example/\n", "https://a.example/\x00",
		"https://a.example/|x", `https://a.example/\x`, "https://a.example/<x>", "https://a.example/{x}", "https://a.example/^", "https://a.example/\u202e", "https://exämple.com/",
		"https://user:password@a.example/", "https://user@a.example/", "https://a.example:99999999999/%zz",
	} {
		if u, err := checkURL(bad); err == nil {
			t.Errorf("%q is taken as %s", bad, u)
		}
	}
}

// An address is judged by what is really connected to, however it is written and
// however often its name is looked up.
func TestDialRefuses(t *testing.T) {
	var asked atomic.Int64
	resolver := fakeDNS(t, func(name string) [][4]byte {
		asked.Add(1)
		switch name {
		case "twice.example.":
			if asked.Load() <= 2 { // once for each kind of address
				return [][4]byte{{203, 0, 114, 1}}
			}
			return [][4]byte{{127, 0, 0, 1}}
		case "metadata.example.":
			return [][4]byte{{169, 254, 169, 254}}
		case "home.example.", "2130706433.", "0177.0.0.1.", "0x7f000001.", "127.1.":
			return [][4]byte{{127, 0, 0, 1}} // as a system's own resolver would
		case "office.example.":
			return [][4]byte{{10, 0, 0, 1}}
		}
		return nil
	})
	if ips, err := resolver.LookupNetIP(context.Background(), "ip4", "twice.example"); err != nil || networkOf(ips[0]) != public {
		t.Fatalf("the first look-up: %v %v", ips, err)
	}
	asked.Store(2)
	g := newGuard(resolver, nil)
	for address, home := range map[string]network{
		"https://twice.example/":               public,
		"https://home.example/":                public,
		"https://2130706433/":                  public,
		"https://0177.0.0.1/":                  public,
		"https://0x7f000001/":                  public,
		"https://127.1/":                       public,
		"https://127.0.0.1:1/":                 public,
		"https://[::1]:1/":                     public,
		"https://[::ffff:127.0.0.1]:1/":        public,
		"https://[::ffff:a00:1]:1/":            public,
		"https://[64:ff9b::a9fe:a9fe]:1/":      public,
		"https://metadata.example/":            public,
		"https://169.254.169.254/":             private,
		"https://office.example/":              loopback,
		"https://10.0.0.1/":                    loopback,
		"https://192.168.1.1/":                 shared,
		"https://100.64.0.1/":                  private,
		"https://0.0.0.0/":                     loopback,
		"https://[::]/":                        loopback,
		"https://[::127.0.0.1]/":               loopback,
		"https://home.example:443/x?y":         private,
		"https://metadata.example/latest/data": loopback,
	} {
		_, err := g.getJSON(context.Background(), home, address, &struct{}{})
		// Go's own resolver does not take numbers for names; others do.
		if err == nil || !strings.Contains(err.Error(), "it leads to ") && !strings.HasSuffix(err.Error(), ": no such host") {
			t.Errorf("%s from a server in %s: %v", address, home, err)
		}
	}
}

// fakeDNS is a resolver that asks a server of the test.
func fakeDNS(t *testing.T, answer func(name string) [][4]byte) *net.Resolver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-ended })
	go func() {
		defer close(ended)
		for buf := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Additionals = true, nil
			all := answer(q.Name.String())
			if q.Type == dnsmessage.TypeA {
				for _, a := range all {
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: a}})
				}
			}
			if len(all) == 0 {
				m.RCode = dnsmessage.RCodeNameError
			}
			if packed, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return c, err
		}
		c.Close()
		return nil, net.ErrClosed
	}}
}

func TestFollow(t *testing.T) {
	request := func(method, address string, r *reach) *http.Request {
		req, err := http.NewRequestWithContext(context.WithValue(context.Background(), reachKey{}, r), method, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		return req
	}
	for _, row := range []struct {
		what, from, to string
		hops           int
		follows        bool
		home           network // afterwards
	}{
		{"to another path", "http://127.0.0.1:80/a", "http://127.0.0.1/b", 1, true, loopback},
		{"to another port", "http://127.0.0.1:80/a", "http://127.0.0.1:81/b", 1, true, public},
		{"to another host", "https://a.example/", "https://b.example/", 1, true, public},
		{"to http", "https://localhost/", "http://localhost/", 1, false, loopback},
		{"to a file", "https://a.example/", "file:///etc/passwd", 1, false, loopback},
		{"for the fourth time", "https://a.example/", "https://a.example/b", maxRedirects + 1, false, loopback},
	} {
		r := &reach{loopback}
		via := make([]*http.Request, row.hops)
		for i := range via {
			via[i] = request(http.MethodGet, row.from, r)
		}
		err := follow(request(http.MethodGet, row.to, r), via)
		if (err == nil) != row.follows || r.home != row.home {
			t.Errorf("%s: %v, then it may go to %s", row.what, err, r.home)
		}
	}
	if err := follow(request(http.MethodPost, "https://a.example/", &reach{}), nil); err != http.ErrUseLastResponse {
		t.Errorf("a POST is redirected: %v", err)
	}
	for to, want := range map[string]error{"https://a.example/b": nil, "https://a.example:444/": http.ErrUseLastResponse, "https://b.a.example/": http.ErrUseLastResponse} {
		posted := []*http.Request{request(http.MethodPost, "https://a.example/", &reach{})}
		if err := follow(request(http.MethodGet, to, &reach{}), posted); err != want {
			t.Errorf("a POST that becomes a GET of %s: %v", to, err)
		}
	}
}

// networkAt never panics, and takes only addresses for public.
func FuzzNetworkAt(f *testing.F) {
	for _, seed := range []string{"127.0.0.1:1", "[::1]:1", "x:1", "", "[fe80::1%eth0]:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := netip.ParseAddrPort(text)
		if got := networkAt(text); err != nil && got != reserved {
			t.Errorf("%q is %s", text, got)
		} else if err == nil && at.Addr().Unmap().Is4() && binary.BigEndian.Uint32(at.Addr().Unmap().AsSlice())>>24 == 127 && got != loopback {
			t.Errorf("%q is %s", text, got)
		}
	})
}
