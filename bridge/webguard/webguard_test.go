package webguard

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func request(headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "http://127.0.0.1:7421/", nil)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	return r
}

func TestHost(t *testing.T) {
	allowed := []string{"approve.example", "only.example:8443"}
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:1": true, "localhost:7421": true, "LOCALHOST": true, "[::1]": true, "[::1]:7421": true,
		"approve.example": true, "APPROVE.example:99": true, "only.example:8443": true,
		"only.example": false, "only.example:1": false, "": false, ":7421": false, "evil.example": false, "localhost.": false, "127.1": false, "0.0.0.0:7421": false,
		"127.0.0.1.evil.example": false, "localhost:http": false, "localhost:": false, "[::1": false, "::1": true, "[::ffff:127.0.0.1]:7421": false, "approve.example.": false,
		"192.0.2.7:7421": false, "127.0.0.1:7421@evil.example": false,
	} {
		if got := Host(request("Host", host), allowed); got != want {
			t.Errorf("host %q: %v", host, got)
		}
	}
	// The address that a request came in on is ours, whatever it is.
	r := request("Host", "192.0.2.7:7421")
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP("192.0.2.7"), Port: 7421})))
	if !Host(r, nil) {
		t.Error("the address it came in on is refused")
	}
}

func TestOrigin(t *testing.T) {
	allowed := []string{"https://chat.example"}
	for _, row := range []struct {
		want    bool
		headers []string
	}{
		{true, nil},
		{true, []string{"Origin", "http://127.0.0.1:7421"}},
		{true, []string{"Origin", "https://127.0.0.1:7421"}}, // a proxy may speak TLS for us
		{true, []string{"Origin", "https://chat.example"}},
		{true, []string{"Sec-Fetch-Site", "none"}},
		{true, []string{"Sec-Fetch-Site", "same-origin"}},
		{false, []string{"Sec-Fetch-Site", "same-site"}},
		{false, []string{"Sec-Fetch-Site", "cross-site"}},
		{false, []string{"Sec-Fetch-Site", "Same-Origin"}},
		{false, []string{"Origin", ""}},
		{false, []string{"Origin", "null"}},
		{false, []string{"Origin", "http://chat.example"}},
		{false, []string{"Origin", "https://chat.example.evil"}},
		{false, []string{"Origin", "http://127.0.0.1"}},
		{false, []string{"Origin", "http://127.0.0.1:7420"}},
		{false, []string{"Origin", "http://127.0.0.1:7421/"}},
		{false, []string{"Origin", "http://evil.example@127.0.0.1:7421/x"}},
		{false, []string{"Origin", "ftp://127.0.0.1:7421"}},
		{false, []string{"Origin", "http://127.0.0.1:7421", "Origin", "http://127.0.0.1:7421"}},
	} {
		if got := Origin(request(row.headers...), allowed); got != row.want {
			t.Errorf("%q: %v", row.headers, got)
		}
	}
}
