// Package builtin holds the MCP servers that run inside the bridge.
package builtin

import "github.com/modelcontextprotocol/go-sdk/mcp"

// New makes the built-in server of that name. It reports whether there is one.
// Each call gives a server of its own.
func New(name string) (*mcp.Server, bool) {
	return nil, false
}

// Names are the names of the built-in servers, sorted.
func Names() []string {
	return []string{"time", "utils"}
}
