package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"

	"github.com/coder/websocket"
)

const (
	heartbeat    = 15 * time.Second
	writeTimeout = 10 * time.Second // for one event; then the reader has gone
)

// An Event is what a stream sends. It holds no arguments.
//
//	hello    the stream has begun; what is pending follows
//	pending  a request can be answered, has one more approval, or one more call
//	settled  a request cannot be answered any more
//	runs     runs have started, continued or ended
//	grants   grants were given, used or revoked
//	tools    servers' tools, or the accepted definitions, have changed
//	config   a pending configuration waits to be confirmed, or none does any more
type Event struct {
	Type string `json:"type"`
	// Of pending and settled.
	ID      string    `json:"id,omitempty"`
	Tool    string    `json:"tool,omitempty"`
	Server  string    `json:"server,omitempty"`
	Risk    string    `json:"risk,omitempty"`
	Run     string    `json:"run,omitempty"`
	Until   time.Time `json:"until,omitzero"`
	Missing string    `json:"missing,omitempty"` // yeses, where one is not enough
	Status  string    `json:"status,omitempty"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at,omitzero"`

	Now time.Time `json:"now"` // the bridge's clock
}

func (s *Site) event(kind string, e approval.StoredRequest) Event {
	now := s.o.Now()
	out := Event{Type: kind, ID: e.ID, Tool: canon.Escape(strings.Join(e.Scripts(), ", ")), Server: canon.Escape(strings.Join(e.Servers(), ", ")), Risk: e.Decision.Risk.String(), Run: e.Run,
		Until: e.Until, Missing: canon.Escape(e.Missing()), Status: status(e, now), Now: now}
	if e.Verdict != nil {
		out.By, out.At, out.Missing = canon.Escape(cmp.Or(e.Verdict.By, e.Verdict.Stopped)), e.Verdict.Time, ""
	}
	return out
}

// A watch finds out what has changed since it last looked.
type watch struct {
	site          *Site
	calls         bool              // a call that joins a request is news too, and so is a model summary
	known         map[string]string // pending requests, each with a text that changes when there is news
	grants        string
	pendingConfig string // the digest of the configuration that waits
}

// look returns what is new among requests and grants, settled requests first.
func (w *watch) look(ctx context.Context) ([]Event, error) {
	entries, err := w.site.pending(ctx)
	if err != nil {
		return nil, err
	}
	var events []Event
	open := map[string]string{}
	for _, e := range entries {
		word := fmt.Sprint(len(e.Votes), " yeses")
		if w.calls {
			word += e.Digest().String() + e.Says
		}
		if open[e.ID] = word; w.known[e.ID] != word {
			events = append(events, w.site.event("pending", e))
		}
	}
	for id := range w.known {
		if _, ok := open[id]; ok {
			continue
		}
		if e, err := w.site.entry(ctx, id); err == nil {
			events = append([]Event{w.site.event("settled", e)}, events...)
		}
	}
	w.known = open
	all, err := w.site.o.Requests.Grants(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the grants: %w", err)
	}
	grants := ""
	for _, g := range all {
		grants += fmt.Sprintf("%s %d ", g.ID, g.Left)
	}
	if grants != w.grants {
		events = append(events, Event{Type: "grants", Now: w.site.o.Now()})
	}
	w.grants = grants
	if w.site.o.Config == nil {
		return events, nil
	}
	waits, err := w.site.o.Config.Pending(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration that waits: %w", err)
	}
	held := ""
	if waits != nil {
		held = waits.Digest
		if waits.Rejected != nil {
			held += " rejected by " + waits.Rejected.By
		}
	}
	if held != w.pendingConfig {
		events = append(events, Event{Type: "config", Now: w.site.o.Now()})
	}
	w.pendingConfig = held
	return events, nil
}

// streams sends events to whoever holds a connection open for them.
type streams struct{ *Site }

// follow sends events until ctx ends, a send fails, or the caller would no longer be
// admitted. A nil event is a heartbeat.
func (s streams) follow(ctx context.Context, who *caller, send func(*Event) error) error {
	w := &watch{site: s.Site, calls: true}
	var ended <-chan time.Time
	if !who.until.IsZero() {
		t := time.NewTimer(who.until.Sub(s.o.Now()))
		defer t.Stop()
		ended = t.C
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	next := &Event{Type: "hello", Now: s.o.Now()}
	var runs, tools <-chan struct{} // kept until they are heard
	for {
		requested := s.o.Requests.Changed() // before looking: nothing is missed
		if runs == nil && s.o.Runs != nil {
			runs = s.o.Runs.Changed()
		}
		if tools == nil && s.o.Tools != nil {
			tools = s.o.Tools.Changed()
		}
		if !who.still() {
			return errUnauthenticated
		}
		if err := send(next); err != nil {
			return err
		}
		events, err := w.look(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := send(&e); err != nil {
				return err
			}
		}
		select {
		case <-requested:
			next = nil
		case <-runs:
			next, runs = &Event{Type: "runs", Now: s.o.Now()}, nil
		case <-tools:
			next, tools = &Event{Type: "tools", Now: s.o.Now()}, nil
		case <-beat.C:
			next = nil
		case <-ended:
			return errUnauthenticated
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// events is the stream: server-sent events, or a WebSocket for whoever asks for one.
// Pending requests are sent first, so reconnecting loses nothing.
func (s streams) events(who *caller, w http.ResponseWriter, r *http.Request) error {
	select {
	case s.streamSlots <- struct{}{}:
		defer func() { <-s.streamSlots }()
	default:
		return &failure{http.StatusServiceUnavailable, "too_many", fmt.Sprintf("there are %d event streams already", cap(s.streamSlots)), ""}
	}
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return s.socket(who, w, r)
	}
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Time{}) // the server's is for the request, which has been read
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not buffer
	err := s.follow(r.Context(), who, func(e *Event) error {
		control.SetWriteDeadline(time.Now().Add(writeTimeout)) // where the connection knows no deadlines, none is kept
		text := ":\n\n"
		if e != nil {
			data, err := json.Marshal(e)
			if err != nil {
				return err
			}
			text = fmt.Sprintf("event: %s\ndata: %s\n\n", e.Type, data)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return err
		}
		return control.Flush()
	})
	s.o.Logger.Debug("an event stream has ended", "approver", who.Name, "err", err)
	return nil
}

// socket serves the same events over a WebSocket, one JSON text each.
func (s streams) socket(who *caller, w http.ResponseWriter, r *http.Request) error {
	if who.channel == "page" && r.Header.Get("Origin") == "" {
		return &failure{http.StatusForbidden, "origin", "a socket with a cookie must say where it comes from", ""}
	}
	var hosts []string // ServeHTTP has checked the origin; the library does so again, by its host
	for _, origin := range s.o.Origins {
		if u, err := url.Parse(origin); err == nil {
			hosts = append(hosts, u.Host)
		}
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: hosts})
	if err != nil {
		s.o.Logger.Debug("refusing a socket", "err", err)
		return nil // Accept has answered
	}
	defer conn.CloseNow()
	ctx := conn.CloseRead(r.Context())
	err = s.follow(ctx, who, func(e *Event) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		if e == nil {
			return conn.Ping(ctx)
		}
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return conn.Write(ctx, websocket.MessageText, data)
	})
	if err == errUnauthenticated {
		conn.Close(websocket.StatusPolicyViolation, "signed out")
	} else {
		conn.Close(websocket.StatusGoingAway, "")
	}
	return nil
}
