package rpc_test

import (
	"fmt"

	"codemode-bridge/bridge/rpc"
)

// A message that is refused is answered, with its id if that can be sent back.
func ExampleRead() {
	for _, line := range []string{
		`{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`,
		`{"jsonrpc": "1.0", "id": 2, "method": "tools/list"}`,
		`null`,
	} {
		message, wrong := rpc.Read([]byte(line))
		if wrong != nil {
			fmt.Println(string(wrong.Bytes()))
			continue
		}
		fmt.Println(message.Method, message.IsRequest())
	}
	// Output:
	// tools/list true
	// {"error":{"code":-32600,"message":"invalid request: invalid message version tag \"1.0\"; expected \"2.0\""},"id":2,"jsonrpc":"2.0"}
	// {"error":{"code":-32600,"message":"invalid request: a message is an object"},"id":null,"jsonrpc":"2.0"}
}
