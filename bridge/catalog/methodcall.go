package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
)

// MethodCall is what a call of codemode.resources or codemode.prompts is as the call of
// a tool: the server is taken out of the arguments and put before the name. The name is
// as in scripts: resources.read.
func MethodCall(name string, raw json.RawMessage, servers []string) (path string, args json.RawMessage, err error) {
	var scripts []string
	method := ""
	for path, m := range methods {
		if scripts = append(scripts, m.script); m.script == name {
			method = path
		}
	}
	if method == "" {
		slices.Sort(scripts)
		return "", nil, fmt.Errorf("there is no codemode.%s: there are %s", name, strings.Join(scripts, ", "))
	}
	server, args, err := splitServer(raw)
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("codemode.%s: %w", name, err)
	case server != "":
		return configured(servers, server) + "__" + method, args, nil
	case method == ReadResource || method == GetPrompt:
		return "", nil, fmt.Errorf("codemode.%s: the first argument must be the name of a server", name)
	}
	return method, args, nil
}

// splitServer takes the server's name out of arguments.
func splitServer(raw json.RawMessage) (server string, rest json.RawMessage, err error) {
	var args map[string]json.RawMessage
	if err := json.Unmarshal(raw, &args); err != nil {
		return "", nil, fmt.Errorf("the arguments must be an object: %w", err)
	}
	if given, ok := args["server"]; ok {
		if err := json.Unmarshal(given, &server); err != nil || server == "" {
			return "", nil, fmt.Errorf("the server must be its name, not %s", canon.Cut(string(given), 60))
		}
	}
	delete(args, "server")
	rest, err = json.Marshal(args)
	return server, rest, err
}

// configured is a server's name as it is configured: scripts know it with "_"
// in the place of "-".
func configured(servers []string, name string) string {
	if slices.Contains(servers, name) {
		return name
	}
	for _, s := range servers {
		if strings.ReplaceAll(s, "-", "_") == name {
			return s
		}
	}
	return name
}
