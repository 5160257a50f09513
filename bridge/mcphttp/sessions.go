package mcphttp

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/rpc"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions bounds the sessions of the older protocol over HTTP. Opening one
// takes a single request, so whoever reaches the endpoint could have them all. So when
// no room is left, sessions are ended for new ones, and nobody who has to show a token,
// or comes from another machine, has more than half of them.
//
// A client whose session was ended to make room gets 404 and, as the protocol
// says, opens another one.
type sessions struct {
	bridge Bridge
	o      Options

	mu      sync.Mutex
	all     map[string]*session // by Mcp-Session-Id
	opening map[opener]int      // not in all yet
	busy    map[string]int      // by Mcp-Session-Id, in all or not yet: requests under way
	ending  map[string]bool     // taken out of all, to be closed
}

func newSessions(b Bridge, o Options) *sessions {
	return &sessions{bridge: b, o: o, all: map[string]*session{}, opening: map[opener]int{}, busy: map[string]int{}, ending: map[string]bool{}}
}

// An opener is who opened a session, as far as that is known.
type opener struct {
	principal string // "" without tokens
	address   string // "" for loopback, where everybody has the same one, proxies too
	bound     string // the profile of the endpoint; "": none
}

type session struct {
	opener
	conn  *mcp.ServerSession
	heard time.Time // when its client was last heard
}

// Quiet is how long a session that ran scripts must have been silent to be ended
// for another one: the scripts may have left grants and handles in it.
const Quiet = time.Minute

func openerOf(r *http.Request) (o opener) {
	if token := auth.TokenInfoFromContext(r.Context()); token != nil {
		o.principal = token.UserID
	}
	o.bound = access.Bound(r.Context())
	host, _, _ := net.SplitHostPort(r.RemoteAddr) // a server's request has both
	if ip, err := netip.ParseAddr(host); err != nil || !ip.Unmap().IsLoopback() {
		o.address = host
	}
	return o
}

// sessionsOf is how many sessions whoever makes a request may have, if the rules of access say that,
// and where they do.
func (o Options) sessionsOf(r *http.Request) (most int, where string) {
	if o.SessionsOf == nil {
		return 0, ""
	}
	who := rpc.Caller(r.Context(), &mcp.RequestExtra{TokenInfo: auth.TokenInfoFromContext(r.Context())})
	if most, where = o.SessionsOf(who.Name, who.Groups); most == 0 {
		where = ""
	}
	return most, where
}

// belongs reports whether a session of an id, if there is one, was opened at the endpoint of a
// profile.
func (h *sessions) belongs(id, bound string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.all[id]
	return s == nil || s.bound == bound
}

// open reserves a session for o, who may have so many (0: any number), and ends others if that
// needs their room. It reports whether there is room; if so, opened must follow.
func (h *sessions) open(o opener, most int) bool {
	h.mu.Lock()
	h.forgetEndedLocked()
	victims, room := h.victimsLocked(o, most)
	for id := range victims {
		h.ending[id] = true
	}
	if room {
		h.opening[o]++
	}
	h.mu.Unlock()
	h.end(victims)
	return room
}

// victimsLocked takes the sessions out of the table that have to end for one of o. If
// that would not make room, none is taken out.
func (h *sessions) victimsLocked(o opener, most int) (victims map[string]*session, room bool) {
	victims = map[string]*session{}
	if most == 0 {
		most = h.o.MaxSessions
	}
	for _, bound := range []struct {
		max int
		of  func(opener) bool
	}{
		{most, func(other opener) bool { return other.principal == o.principal }},
		{(h.o.MaxSessions + 1) / 2, func(other opener) bool { return o.principal != "" && other.principal == o.principal }},
		{(h.o.MaxSessions + 1) / 2, func(other opener) bool { return o.address != "" && other.address == o.address }},
		{h.o.MaxSessions, func(opener) bool { return true }},
	} {
		for h.countLocked(bound.of) >= bound.max {
			id := h.victimLocked(bound.of)
			if id == "" {
				maps.Copy(h.all, victims)
				return nil, false
			}
			victims[id] = h.all[id]
			delete(h.all, id)
		}
	}
	return victims, true
}

// opened completes what open began: id is the session's, "" if it was not made.
func (h *sessions) opened(o opener, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opening[o]--; h.opening[o] == 0 {
		delete(h.opening, o)
	}
	for conn := range h.bridge.MCP().Sessions() {
		if id != "" && conn.ID() == id {
			h.all[id] = &session{o, conn, h.o.Now()}
		}
	}
}

// may reports whether a session, if there is one of that id, is o's: another principal
// has no part in it.
func (h *sessions) may(id string, o opener) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.all[id]
	return s == nil || s.principal == o.principal
}

// hear notes that the client of a session has said something.
func (h *sessions) hear(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.all[id]; s != nil {
		s.heard = h.o.Now()
	}
}

// version returns the protocol version that a session asked for; "" if there is no
// session of that id.
func (h *sessions) version(id string) string {
	h.mu.Lock()
	s := h.all[id]
	h.mu.Unlock()
	if s == nil || s.conn.InitializeParams() == nil {
		return ""
	}
	return s.conn.InitializeParams().ProtocolVersion
}

func (h *sessions) forgetEndedLocked() {
	lives := map[*mcp.ServerSession]bool{}
	for conn := range h.bridge.MCP().Sessions() {
		lives[conn] = true
	}
	for id, s := range h.all {
		if !lives[s.conn] {
			delete(h.all, id)
		}
	}
}

func (h *sessions) countLocked(of func(opener) bool) int {
	n := 0
	for _, s := range h.all {
		if of(s.opener) {
			n++
		}
	}
	for o, opening := range h.opening {
		if of(o) {
			n += opening
		}
	}
	return n
}

// victimLocked returns the session to end for another one, of those that of chooses:
// the longest silent of those that never ran a script, else of those that have been
// silent for [Quiet], and none with a request or a script under way. "": there is none.
func (h *sessions) victimLocked(of func(opener) bool) (victim string) {
	best := false // whether the victim never ran a script
	for id, s := range h.all {
		if !of(s.opener) {
			continue
		}
		ran, running := h.bridge.Used(s.conn)
		if running || h.busy[id] > 0 || ran && h.o.Now().Sub(s.heard) < Quiet {
			continue
		}
		if victim == "" || !ran && !best || ran != best && s.heard.Before(h.all[victim].heard) {
			victim, best = id, !ran
		}
	}
	return victim
}

// end ends sessions, which are out of the table. No request of them is under
// way, and none comes in: see enter.
func (h *sessions) end(victims map[string]*session) {
	for id, s := range victims {
		h.o.Logger.Debug("a session is ended to make room for another", "session", id)
		if err := s.conn.Close(); err != nil {
			h.o.Logger.Debug("ending a session", "session", id, "err", err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range victims {
		delete(h.ending, id)
	}
}

// enter notes that a request of a session comes in, which may begin a script: the
// session does not end before leave. It reports false if the session is being ended.
func (h *sessions) enter(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ending[id] {
		return false
	}
	h.busy[id]++
	return true
}

func (h *sessions) leave(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy[id]--; h.busy[id] == 0 {
		delete(h.busy, id)
	}
}

// inUse reports whether a request of a session is under way.
func (h *sessions) inUse(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.busy[id] > 0
}
