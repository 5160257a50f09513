package bridge

import "codemode-bridge/bridge/rpc"

// Versions of the protocol.
const (
	statelessProtocol     = rpc.StatelessProtocol
	newestSessionProtocol = rpc.NewestSessionProtocol
)
