package bridge

import "github.com/modelcontextprotocol/go-sdk/mcp"

// What an HTTP endpoint needs of the bridge: see mcphttp.Bridge.

// MCP is the server that answers in every session.
func (s *Server) MCP() *mcp.Server { return s.mcp }

// Used reports whether scripts ran in the session of a connection, and whether
// one runs now.
func (s *Server) Used(conn *mcp.ServerSession) (ran, running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[conn]
	return sess != nil && sess.ran, sess != nil && sess.runs > 0
}

// Abandon stops the runs of the HTTP session of an id that its owner, a principal,
// ends. The SDK waits for them, and would wait as long as they like.
func (s *Server) Abandon(id, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.live {
		if conn := r.session.conn; conn != nil && id != "" && conn.ID() == id && r.session.owner == owner {
			r.stop(errSessionEnded)
		}
	}
}

// Events wraps the store of what is sent to HTTP sessions, to see what clients
// are told.
func (s *Server) Events(store mcp.EventStore) mcp.EventStore {
	return s.withdrawals.Events(store)
}
