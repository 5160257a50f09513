// Package webguard tells requests that are meant for this endpoint from those that
// a web page elsewhere makes a browser send to it.
//
// A page can make the browser that it is open in send requests to loopback, even
// under a name of its own that it has rebound to our address. So every listener
// refuses a request, whatever its method, unless the Host header names the endpoint
// and the browser does not say that another site sent it. Strict refuses what two
// programs could read as different requests.
package webguard

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Host reports whether a request's Host header names this endpoint: a loopback name
// with any port (that of a tunnel, perhaps), the very address that the request came
// in on (a rebound name is not an address), or one of allowed, which are names with
// or without a port.
func Host(r *http.Request, allowed []string) bool {
	host := r.Host
	is := func(name string) bool {
		return slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, name) })
	}
	if is(host) {
		return true
	}
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if port == "" || strings.Trim(port, "0123456789") != "" {
			return false
		}
		name = h
		if is(h) {
			return true
		}
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		name = host[1 : len(host)-1]
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if tcp, ok := local.(*net.TCPAddr); ok && name == tcp.IP.String() {
		return true
	}
	return strings.EqualFold(name, "localhost") || name == "127.0.0.1" || name == "::1"
}

// Origin reports whether a request comes from no web page, from one of this
// endpoint's own, or from an allowed origin, such as "https://ci.example.com".
func Origin(r *http.Request, allowed []string) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		site := r.Header.Get("Sec-Fetch-Site")
		return site == "" || site == "none" || site == "same-origin"
	}
	if len(origins) > 1 {
		return false
	}
	if slices.Contains(allowed, origins[0]) {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, r.Host) && u.Path == ""
}
