//go:build real

package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A roll restarts all bridges, one after the other, under load.
type roll struct {
	*balanced
	*testing.T
	kind, url string

	over                 atomic.Bool
	done, again, refused atomic.Int64
	opened               atomic.Int64 // sessions, after the first
}

// roll checks that what is asked at one bridge is answered at another, that every eval is
// answered, or refused before it began, and that no call is made twice. Clients with a
// session open another one once theirs is gone, and find what was paused.
func (r *balanced) roll(t *testing.T, kind, url string) {
	l := &roll{balanced: r, T: t, kind: kind, url: url}
	var clients sync.WaitGroup
	for c := range 4 {
		tool := "note"
		if c == 0 {
			tool = "ask"
		}
		clients.Go(func() { l.stateless(c, tool) })
	}
	first := l.opens(accepts)
	clients.Go(func() { l.inSessions(first) })
	for _, name := range r.names {
		before, opened := l.done.Load(), l.opened.Load()
		answers, finds := l.holds(name), l.waits(name)
		r.tell(t, name)
		answers()
		r.ended(t, name)
		finds()
		r.begin(t, name)
		eventually(t, "no eval was answered while "+name+" was restarted", func() bool { return l.done.Load() > before })
		l.Logf("%s: %d sessions were opened anew while %s was restarted", kind, l.opened.Load()-opened, name)
	}
	l.over.Store(true)
	clients.Wait()
	t.Logf("%s: %d evals were answered during the restarts, %d messages were sent again, %d evals refused before they began", kind, l.done.Load(), l.again.Load(), l.refused.Load())
	if l.opened.Load() == 0 { // all of them have ended, so that of the first one, too
		t.Errorf("%s: a session has outlived its bridge", kind)
	}
}

// lost reports whether a message met the end of a bridge at nginx, which then says 502: see
// docs/deploy/balancers.md.
func (l *roll) lost(err error) bool {
	return l.kind == "nginx" && err != nil && (strings.Contains(err.Error(), "status 502") || strings.Contains(err.Error(), "Bad Gateway"))
}

// sends calls a tool as a client without a session does that is told to try again. What
// was asked may be answered again, too, if nobody knows whether the answer has arrived.
func (l *roll) sends(tool string, arguments, more map[string]any) (s stateless, err error) {
	for range 100 {
		s, err = post(l.url, annsReplicaToken, tool, arguments, more)
		if s.Error.Code != -32000 && (tool == "eval" && more == nil || !l.lost(err)) {
			break
		}
		l.again.Add(1)
		time.Sleep(50 * time.Millisecond)
	}
	return s, err
}

// stateless makes calls without a session, and answers what is asked.
func (l *roll) stateless(client int, tool string) {
	for i := 0; !l.over.Load(); i++ {
		time.Sleep(10 * time.Millisecond) // what waits for the bridges wants the processor, too
		key := fmt.Sprintf("%s load %d %d", l.kind, client, i)
		script := code(fmt.Sprintf(`return await codemode.marks__%s({key: %q})`, tool, key))
		s, err := l.sends("eval", script, nil)
		for called, arguments, tries := "eval", script, 0; err == nil && tool == "ask" && tries < 10; tries++ {
			if len(s.Result.InputRequests) > 0 {
				s, err = l.sends(called, arguments, s.yes())
			} else if run := s.paused(); run != "" { // its bridge is ending: another one goes on
				called, arguments = "eval_resume", map[string]any{"run": run}
				s, err = l.sends(called, arguments, nil)
			} else {
				break
			}
		}
		n := l.marks.of(key)
		switch {
		case l.lost(err) && n == 0:
			l.refused.Add(1)
		case err != nil:
			l.Errorf("%s: %v (made %d times)", key, err, n)
		case s.value() != fmt.Sprintf("%q", key) || n != 1:
			l.Errorf("%s: %s (made %d times)", key, s.value(), n)
		default:
			l.done.Add(1)
		}
	}
}

// holds has a person asked without a session. What it returns is called once a bridge was
// told to end: it refuses the answer, of which nothing happens, and another bridge takes it.
func (l *roll) holds(name string) (answers func()) {
	l.Helper()
	key := l.kind + " held for " + name
	script, at := code(fmt.Sprintf(`return await codemode.marks__ask({key: %q})`, key)), "http://127.0.0.1:"+l.ports[name]
	asked, err := l.sends("eval", script, nil)
	if err != nil || len(asked.Result.InputRequests) != 1 {
		l.Fatalf("%s: nobody is asked: %+v, %v", l.kind, asked, err)
	}
	return func() {
		l.Helper()
		eventually(l.T, name+" does not begin to end", func() bool {
			res, err := http.Get(at + "/readyz")
			if err != nil {
				return errors.Is(err, syscall.ECONNREFUSED) // it has ended, on a machine without time
			}
			res.Body.Close()
			return res.StatusCode == http.StatusServiceUnavailable
		})
		s, err := post(at+"/mcp", annsReplicaToken, "eval", script, asked.yes())
		if n := l.marks.of(key); !errors.Is(err, syscall.ECONNREFUSED) && (err != nil || s.status != http.StatusServiceUnavailable || s.Error.Code != -32000 || n != 0) {
			l.Errorf("%s: %s is ending, and answers an answer %+v, %v (made %d times)", l.kind, name, s, err, n)
		}
		s, err = l.sends("eval", script, asked.yes())
		for tries := 0; err == nil && s.paused() != "" && tries < 10; tries++ { // it was asked at the bridge that is ending
			s, err = l.sends("eval_resume", map[string]any{"run": s.paused()}, nil)
		}
		if n := l.marks.of(key); err != nil || s.value() != fmt.Sprintf("%q", key) || n != 1 {
			l.Errorf("%s: the answer that %s refused is answered %s, %v (made %d times)", l.kind, name, s.value(), err, n)
		}
	}
}

// opens opens a session of the older protocol, behind the balancer. A bridge that is ending
// refuses that, and nginx may meet its end.
func (l *roll) opens(answers func(context.Context) *mcp.ElicitResult) *mcp.ClientSession {
	client := mcp.NewClient(&mcp.Implementation{Name: "session", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return answers(ctx), nil },
	})
	for tries := 0; ; tries++ {
		transport := &mcp.StreamableClientTransport{Endpoint: l.url, MaxRetries: -1, DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: bearer(annsReplicaToken)}}
		s, err := client.Connect(context.Background(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err == nil {
			return s
		}
		if tries > 100 {
			l.Errorf("%s: opening a session: %v", l.kind, err)
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func accepts(context.Context) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once"}}
}

// inSessions makes calls in a session, and in another one once its bridge is gone; the last
// one after all bridges were restarted.
func (l *roll) inSessions(s *mcp.ClientSession) {
	for i, last := 0, false; s != nil && !last; i++ {
		time.Sleep(10 * time.Millisecond)
		last = l.over.Load()
		key := fmt.Sprintf("%s session %d", l.kind, i)
		text, err := called(s, "eval", code(fmt.Sprintf(`return await codemode.marks__note({key: %q})`, key)))
		n := l.marks.of(key)
		switch {
		case errors.Is(err, mcp.ErrSessionMissing) && n == 0, l.lost(err) && n == 0:
			s.Close()
			s = l.opens(accepts)
			l.opened.Add(1)
		case err != nil || text != fmt.Sprintf("%q", key) || n != 1:
			l.Errorf("%s: %s, %v (made %d times)", key, text, err, n)
			last = true
		default:
			l.done.Add(1)
		}
	}
	if s != nil {
		s.Close()
	}
}

// called calls a tool in a session, and returns the value of the script; else what came
// instead, and the run if it is paused.
func called(s *mcp.ClientSession, tool string, arguments map[string]any) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(res.StructuredContent)
	var out struct {
		Status, Run string
		Result      json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	switch {
	case err != nil || res.IsError:
		return string(text), err
	case out.Status == "paused":
		return out.Run, nil
	}
	return string(out.Result), nil
}

// waits has a person asked in a session at a bridge, who does not answer while it is there.
// What it returns is called once the bridge has ended: the session is gone, and in
// another one the run is found and goes on.
func (l *roll) waits(name string) (finds func()) {
	l.Helper()
	key := l.kind + " waits at " + name
	asked := make(chan struct{})
	var s *mcp.ClientSession
	for range 100 {
		s = l.opens(func(ctx context.Context) *mcp.ElicitResult {
			close(asked)
			<-ctx.Done()
			return &mcp.ElicitResult{Action: "cancel"}
		})
		if s == nil || strings.HasPrefix(s.ID(), name+".") {
			break
		}
		s.Close()
	}
	if s == nil || !strings.HasPrefix(s.ID(), name+".") {
		l.Fatalf("%s: no session is opened at %s", l.kind, name)
	}
	type answer struct {
		text string
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		text, err := called(s, "eval", code(fmt.Sprintf(`return await codemode.marks__ask({key: %q})`, key)))
		answered <- answer{text, err}
	}()
	select {
	case <-asked:
	case <-time.After(3 * time.Minute):
		l.Fatalf("%s: nobody is asked in a session at %s", l.kind, name)
	}
	return func() {
		l.Helper()
		paused := <-answered
		if paused.err != nil || paused.text == "" || strings.ContainsAny(paused.text, `"{ `) {
			l.Errorf("%s: %s has ended, and its client gets %q, %v", l.kind, name, paused.text, paused.err)
			return
		}
		if text, err := called(s, "eval", code("return 1")); !errors.Is(err, mcp.ErrSessionMissing) && !l.lost(err) {
			l.Errorf("%s: a call in the session of %s, which has ended, is answered %q, %v", l.kind, name, text, err)
		}
		s.Close()
		next := l.opens(accepts)
		if next == nil {
			return
		}
		defer next.Close()
		text, err := called(next, "eval_resume", map[string]any{"run": paused.text})
		if n := l.marks.of(key); err != nil || text != fmt.Sprintf("%q", key) || n != 1 {
			l.Errorf("%s: in a new session at %s the run answers %q, %v (made %d times)", l.kind, next.ID(), text, err, n)
		}
	}
}
