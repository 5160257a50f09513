package main_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
)

// Both listeners of serve refuse a request whose body could end at two places, even as
// the second request of a connection.
func TestBothFramingHeadersAreRefused(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	page := free.Addr().String()
	free.Close()
	at, err := url.Parse(serve(t, fmt.Sprintf(`{"servers": {}, "approvals": {"listen": %q}}`, page)).endpoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{at.Host, page} {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %[1]s\r\n\r\nPOST /mcp HTTP/1.1\r\nHost: %[1]s\r\nContent-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", host)
		in, statuses := bufio.NewReader(c), []int{}
		for {
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				break
			}
			statuses = append(statuses, res.StatusCode)
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				break
			}
		}
		if n := len(statuses); n != 2 || statuses[0] == http.StatusBadRequest || statuses[1] != http.StatusBadRequest {
			t.Errorf("%s answers %v", host, statuses)
		}
	}
}
