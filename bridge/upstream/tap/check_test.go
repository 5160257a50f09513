package tap

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

var errTooLate = errors.New("another bridge has it")

// A line is not written once the check of its call refuses it. The session goes on.
func TestCheckOfALine(t *testing.T) {
	c := pipedConn(t)
	for _, late := range []bool{false, true, false} {
		ctx := WithCheck(t.Context(), func() error {
			if late {
				return errTooLate
			}
			return nil
		})
		x := NewExchange(ctx, nil, nil)
		in := x.In(t.Context())
		err := c.Write(in, toolCall(t, 1, "x"))
		_, why := x.Outcome()
		if !late {
			if line, read := c.requests.ReadString('\n'); err != nil || read != nil || !strings.Contains(line, "tools/call") || !x.Sent() || why != nil {
				t.Errorf("it is not sent: %v, %v, %q, %v", err, read, line, why)
			}
		} else if err == nil || in.Err() == nil || x.Sent() || !Barred(why) || !errors.Is(why, errTooLate) || !Barred(context.Cause(in)) || why.Error() != "it was not sent: another bridge has it" {
			t.Errorf("it is sent: %v, %v, %t, %v", err, in.Err(), x.Sent(), why)
		}
		x.End()
		<-in.Done() // the context of the request does not outlive it
	}
}

// Over HTTP the check is asked before a connection is made, and when there is one.
func TestCheckOfARequest(t *testing.T) {
	var got atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && strings.Contains(string(body), "tools/call") {
			got.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`) // the test fails without it
	}))
	defer server.Close()
	for passes := range 3 {
		w, err := NewHTTP(New(Options{Server: "x", Limit: 1 << 20}), HTTPOptions{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		x := NewExchange(WithCheck(t.Context(), func() error {
			if asked++; asked > passes {
				return errTooLate
			}
			return nil
		}), nil, nil)
		r, err := http.NewRequestWithContext(x.In(t.Context()), http.MethodPost, server.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		got.Store(0)
		if res, err := w.RoundTrip(r); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		_, why := x.Outcome()
		if passes == 2 {
			if got.Load() != 1 || why != nil || !x.Sent() {
				t.Errorf("it is not sent: %d, %v", got.Load(), why)
			}
		} else if got.Load() != 0 || !errors.Is(why, errTooLate) || x.Sent() {
			t.Errorf("checked %d times: sent %d times, %v, %t", asked, got.Load(), why, x.Sent())
		}
		x.End()
		w.Close()
	}
}
