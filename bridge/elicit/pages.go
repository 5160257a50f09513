package elicit

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
)

// maxURL bounds an address, in bytes.
const maxURL = 2000

// page returns the address of a page that a server wants opened. It is refused
// unless it is plain https on a public host: a page of this machine, of a router
// or of the company's network could do something by being opened, and its answer
// is shown to a person who trusts it. Names are judged as they are written, by
// the rules of browsers, and not resolved: the browser would resolve them again.
func page(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(address) > maxURL || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("a page is opened only at a plain https address")
	}
	if !publicHost(u.Hostname()) {
		return nil, fmt.Errorf("a page is opened only at a public host, and %s is one of this machine, of an internal network or written oddly", canon.Escape(u.Hostname()))
	}
	return u, nil
}

// internalNames are the last labels of names that are not of the public DNS, or
// not meant to be.
var internalNames = []string{"localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "arpa"}

// publicHost reports whether the host of an address is on the internet, as far as
// its text tells.
func publicHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return publicAddress(ip)
	}
	// A browser decodes or maps other characters, such as %31 and full-width digits.
	if strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return false
	}
	labels := strings.Split(strings.ToLower(strings.TrimSuffix(host, ".")), ".")
	last := labels[len(labels)-1]
	if len(labels) < 2 || slices.Contains(labels, "") || slices.Contains(internalNames, last) {
		return false
	}
	// Browsers take a host whose last label is a number for an IPv4 address:
	// 127.1, 0177.0.0.1 and 0x7f.0.0.1 are 127.0.0.1.
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// globalV6 holds the public addresses of IPv6, but for those in specialRanges.
var globalV6 = netip.MustParsePrefix("2000::/3")

// specialRanges are unicast addresses that are not public by the registries of
// IANA, or hold an IPv4 address that may not be.
var specialRanges = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("3fff::/20"),
}

func publicAddress(ip netip.Addr) bool {
	if ip = ip.Unmap(); ip.Zone() != "" || !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Is6() && !globalV6.Contains(ip) {
		return false
	}
	return !slices.ContainsFunc(specialRanges, func(r netip.Prefix) bool { return r.Contains(ip) })
}
