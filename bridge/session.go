package bridge

import (
	"time"

	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/forms"
	"codemode-bridge/bridge/handles"
	"codemode-bridge/sandbox"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A session is one client's connection: a pipe, or an HTTP session of the
// older protocol. A stateless HTTP request has a connection of its own in the
// SDK, so it gets a session that ends with it.
type session struct {
	id      string
	client  string             // the client's own name for itself, untrusted
	conn    *mcp.ServerSession // nil on the command line
	owner   string             // the principal
	started time.Time
	remote  bool // its client is perhaps on another machine
	brief   bool // ends with the request: nothing can be left for a later script
	sandbox *sandbox.Session
	handles *handles.Store
	slots   chan struct{}    // holds one token for each script that runs
	prompts *elicit.Queue    // whose questions are before the person
	reflex  *forms.Reflex    // whether the client answers them by itself
	can     elicit.Abilities // what the client does for servers that ask
	// A stateless client has said with its first request how much it wants to
	// hear of servers' logs.
	stateless bool
	logLevel  string

	boundBefore []string // profiles that bound it before its run was suspended

	// Guarded by roster.mu.
	runs         int    // under way
	ran          bool   // there was one
	addedProfile string // the profile that binds it beside its tool's, if any
	closed       bool
	gone         bool
}

// maxRuns bounds the scripts of one session that run at the same time, so that
// one client cannot take all workers. Further ones wait their turn.
const maxRuns = 16

// session returns the session that a request came on, and makes it where there
// is none yet. It ends when the connection does.
func (s *Server) session(req *mcp.CallToolRequest) (*session, error) {
	sess, first, err := s.roster.admit(req.Session, func() *session { return s.newSession(req) }, func(sess *session) {
		if p := principal(req); sess.owner == "" && p != "" { // what greeted it did not say whose it is
			sess.owner, sess.handles = p, s.runner.handles.Of(p)
		}
	})
	if err != nil {
		return nil, err
	}
	if first {
		// The SDK has no hook for the end of a session; Wait returns then.
		go func() {
			sess.conn.Wait()
			s.roster.disconnect(sess)
			s.runner.closeSession(sess)
		}()
	}
	return sess, nil
}

func (s *Server) newSession(req *mcp.CallToolRequest) *session {
	sess := &session{
		id:      newID("s"),
		started: s.o.Now(),
		conn:    req.Session,
		owner:   principal(req),
		remote:  req.Session.ID() != "" || req.Extra != nil && req.Extra.Header != nil,
		sandbox: s.o.Pool.Session(),
		handles: s.runner.handles.Of(principal(req)),
		slots:   make(chan struct{}, maxRuns),
		prompts: elicit.NewQueue(),
		can:     elicit.AbilitiesOf(req),
	}
	sess.brief = sess.remote && req.Session.ID() == ""
	sess.reflex = s.reflexOf(sess.brief, sess.owner)
	if sess.stateless = req.ProtocolVersion() >= statelessProtocol; sess.stateless {
		sess.logLevel = elicit.LevelOf(req)
	}
	if info := req.ClientInfo(); info != nil {
		sess.client = info.Name
	}
	return sess
}

// greet makes the session of a client that has just connected, so that it is
// listed, and can be tightened, before its first script.
func (s *Server) greet(req *mcp.InitializedRequest) {
	if req.Extra != nil && req.Extra.Header != nil && req.Session.ID() == "" {
		return // its connection ends with this message
	}
	// An error means that the bridge is closing: the next request is told.
	_, _ = s.session(&mcp.CallToolRequest{Session: req.Session, Extra: req.Extra, Params: &mcp.CallToolParamsRaw{}})
}
