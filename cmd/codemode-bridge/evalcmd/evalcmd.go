// Package evalcmd has what the commands that run a script read and print: the script, as
// the command line names it, and the answer of the eval tool.
package evalcmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/evalview"
	"codemode-bridge/bridge/scripts"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ReadScript returns the source of the script that the command line names.
func ReadScript(con *cli.Console, file, saved string, args []string) (string, error) {
	switch {
	case file != "" && len(args) > 0:
		return "", &cli.UsageError{Err: errors.New("give the script as an argument or with --file, not both")}
	case saved != "" && (file != "" || len(args) > 0):
		return "", &cli.UsageError{Err: errors.New("--script names a saved script; give no other beside it")}
	case saved != "":
		return scripts.Call(saved), nil
	case file == "-" || len(args) == 1 && args[0] == "-":
		b, err := io.ReadAll(io.LimitReader(con.In, 16<<20))
		return string(b), err
	case file != "":
		b, err := os.ReadFile(file)
		if err != nil {
			return "", &cli.UsageError{Err: fmt.Errorf("reading the script: %w", err)}
		}
		return string(b), nil
	case len(args) == 1:
		if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() {
			return "", &cli.UsageError{Err: fmt.Errorf("%s is a file: eval --file %s runs it", args[0], args[0])}
		}
		return args[0], nil
	default:
		return "", &cli.UsageError{Err: errors.New("no script: give it as an argument, with --file, on standard input with -, or a saved one with --script")}
	}
}

// Unasked returns a function that says, once for each tool, that calls were denied
// because there was nobody to ask. The script may have caught the error, and then
// nothing else would tell.
func Unasked(con *cli.Console) func(*approval.DeniedError) {
	var mu sync.Mutex
	said := map[string]bool{}
	return func(e *approval.DeniedError) {
		mu.Lock()
		defer mu.Unlock()
		if said[e.Tool] {
			return
		}
		said[e.Tool] = true
		fmt.Fprintln(con.Err, "denied:", canon.EscapeLines(e.Message))
		if len(said) == 1 && e.Reason == approval.NoApprover {
			con.Told(`hint: at the command line approvers alone can say yes: codemode-bridge approvers add NAME, and "elicitationFallback": "queue" in the profile, so that it waits for them`)
		}
	}
}

// Print prints the answer of an eval tool: the result to standard output, logs,
// notes and errors to standard error.
func Print(con *cli.Console, result *mcp.CallToolResult, mediaDir string) error {
	answer, err := evalview.Read(result)
	if err != nil {
		return err
	}
	if err := evalview.WriteMedia(con.Err, result.Content, mediaDir); err != nil {
		return err
	}
	if con.JSON {
		if err := con.PrintJSON(answer.Whole); err != nil {
			return err
		}
	} else {
		for _, line := range answer.Said {
			fmt.Fprintln(con.Err, canon.EscapeLines(line))
		}
		if answer.Result != nil {
			if err := con.PrintJSON(answer.Result); err != nil {
				return err
			}
		}
	}
	switch {
	case answer.Denied:
		return &cli.ExitError{Code: cli.ExitDenied}
	case answer.Failed:
		return &cli.ExitError{Code: cli.ExitFailed}
	}
	return nil
}
