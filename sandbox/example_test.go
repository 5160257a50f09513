package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox"
	"codemode-bridge/sandbox/worker"
)

// A clock is a host with one tool.
type clock struct{}

func (clock) Preview(r analysis.Report) { fmt.Println("calls that can be read:", len(r.Calls)) }
func (clock) Idle(int)                  {}

func (clock) Call(_ context.Context, c sandbox.Call, answer func(sandbox.Reply)) {
	fmt.Printf("call %d: %s %s\n", c.Number, c.Name, c.Args)
	answer(sandbox.Reply{Value: json.RawMessage(`{"iso":"2026-03-01T12:00:00Z"}`)})
}

// A script runs in a worker; its calls come to the host. (Serve has the worker in
// this process, which is for tests: Options.Worker names the program.)
func ExampleSession_Run() {
	pool, err := sandbox.NewPool(sandbox.Options{Serve: worker.Serve, Warm: -1})
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	session := pool.Session()
	defer session.Close()

	names := &sandbox.Names{Revision: "1", Names: []string{"time__now"}, Servers: []string{"time"}}
	result, err := session.Run(context.Background(), sandbox.Script{
		Source: `const { iso } = await codemode.time__now({ zone: "UTC" });
			return iso.slice(0, 4);`,
		Names: names,
	}, clock{})
	fmt.Printf("%s, %d call, %v\n", result.Value, result.Calls, err)

	// Output:
	// calls that can be read: 1
	// call 1: time__now {"zone":"UTC"}
	// "2026", 1 call, <nil>
}

// What a script threw is told in its own lines.
func ExampleScriptError() {
	pool, err := sandbox.NewPool(sandbox.Options{Serve: worker.Serve, Warm: -1})
	if err != nil {
		panic(err)
	}
	defer pool.Close()

	_, err = pool.Session().Run(context.Background(), sandbox.Script{Source: "const items = null;\nreturn items.length;"}, clock{})
	var failed *sandbox.ScriptError
	if errors.As(err, &failed) {
		fmt.Println(failed)
		fmt.Println(failed.Frame)
	}

	// Output:
	// calls that can be read: 0
	// TypeError: cannot read properties of undefined or null (reading 'length') (line 2, column 14)
	//   1 | const items = null;
	// > 2 | return items.length;
	//     |              ^
}
