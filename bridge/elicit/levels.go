package elicit

//lint:file-ignore SA1019 logging is deprecated by the newest protocol; servers use it

import (
	"context"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/canon"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Levels are the levels of logging that clients have set, by session. The zero
// value is ready.
type Levels struct {
	mu    sync.Mutex
	known map[*mcp.ServerSession]string
}

// Of returns the level that the client of a session has set; "" if none.
func (l *Levels) Of(conn *mcp.ServerSession) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[conn]
}

// logLevels are those of the protocol, which are those of RFC 5424.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Middleware notes the level that a client sets, for as long as its session lasts,
// and refuses a word that is no level.
func (l *Levels) Middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		params, ok := req.GetParams().(*mcp.SetLoggingLevelParams)
		if ok && (params == nil || !slices.Contains(logLevels, string(params.Level))) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid params: the level is one of " + strings.Join(logLevels, ", ")}
		}
		res, err := next(ctx, method, req)
		conn, session := req.GetSession().(*mcp.ServerSession)
		if err != nil || !ok || params == nil || !session {
			return res, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.known == nil {
			l.known = map[*mcp.ServerSession]string{}
		}
		if _, before := l.known[conn]; !before {
			go func() {
				conn.Wait()
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.known, conn)
			}()
		}
		l.known[conn] = string(params.Level)
		return res, err
	}
}

// LevelOf returns the level of logging that a stateless client asks for, with the
// request; "" if it asks for none.
func LevelOf(req *mcp.CallToolRequest) string {
	level, _ := req.Params.Meta[mcp.MetaKeyLogLevel].(string)
	return canon.Escape(canon.Cut(level, 20))
}
