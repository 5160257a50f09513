// Codemode-bridge is one MCP server that stands in front of many: it shows a
// client one code tool, and lets the scripts call the tools of all.
//
// This package is the wiring: flags, signals, output, and the one function
// that puts the parts together (build, in parts.go). It is the only reader of
// the environment and of the configuration file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"

	"github.com/spf13/cobra"
)

// version is the release; the linker may set another.
var version = "0.1.0"

// Exit codes. They are part of the command line's contract (docs/reference/cli.md).
const (
	exitOK          = 0
	exitFailed      = 1 // the script, the tool or the server failed
	exitUsage       = 2 // the command line is wrong
	exitConfig      = 3 // the configuration is wrong or cannot be read
	exitDenied      = 4 // eval: a call was denied and the script did not catch it
	exitNotWhole    = 5 // audit: the log is not what was written
	exitKept        = 6 // approvals: the bridge that asked has not taken the answer yet
	exitInterrupted = 130
)

func main() { os.Exit(mainCode()) }

// mainCode runs the command line and returns the exit code.
func mainCode() int {
	keepDescriptors()
	// The first signal ends things in order, the second at once.
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		stop(errInterrupted)
		<-signals
		os.Exit(exitInterrupted)
	}()
	con := &console{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}
	root := rootCommand(con)
	err := root.ExecuteContext(ctx)
	return con.exitCode(err)
}

var errInterrupted = errors.New("interrupted")

// A console is how the program was called: its streams, its environment, and
// the flags that all commands share. The commands are functions over it.
type console struct {
	in       io.Reader
	out, err io.Writer
	env      config.Env

	configPath  string // --config
	environment string // --env: which overlay of the configuration holds
	logFile     string // --log
	json        bool   // --json

	// covers refuses an edit of the configuration that the clients of a shared
	// bridge cannot all follow; nil if this process is none.
	covers func(cfg *config.Config, looked []string) error
}

// rootCommand is the whole command line.
func rootCommand(con *console) *cobra.Command {
	root := &cobra.Command{
		Use:           "codemode-bridge",
		Short:         "One MCP server in front of many, with one code tool",
		Long:          "codemode-bridge connects to MCP servers and shows a client one code tool, eval.\nA script calls their tools as codemode.server__tool(args).",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
	}
	root.SetOut(con.out)
	root.SetErr(con.err)
	root.SetIn(con.in)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w (%s --help lists the flags)", err, c.CommandPath())}
	})
	root.PersistentFlags().StringVarP(&con.configPath, "config", "c", "", "the configuration `file` (default: $CODEMODE_CONFIG, then the user's own)")
	root.PersistentFlags().StringVar(&con.environment, "env", "", "the `environment`: NAME lays config.NAME.json over the profiles of config.json")
	_ = root.RegisterFlagCompletionFunc("env", con.completeEnvironments) // the flag is there
	root.AddCommand(runCommand(con), hostCommand(con), openapiCommand(con), serveCommand(con), evalCommand(con), checkCommand(con), configCommand(con), initCommand(con), installCommand(con), uninstallCommand(con), serversCommand(con), toolsCommand(con), profilesCommand(con), scriptsCommand(con), approvalsCommand(con), approversCommand(con), grantsCommand(con), auditCommand(con), runsCommand(con), tailCommand(con), statusCommand(con), doctorCommand(con), versionCommand(con))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	// A command that only groups others must not pass over a wrong word.
	for _, c := range root.Commands() {
		if c.HasSubCommands() && c.RunE == nil {
			c.RunE = func(c *cobra.Command, args []string) error {
				if len(args) > 0 {
					return &usageError{fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())}
				}
				return c.Help()
			}
		}
	}
	return root
}

func versionCommand(con *console) *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			line := map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						line["revision"] = s.Value
					}
				}
			}
			if con.json {
				return con.printJSON(line)
			}
			_, err := fmt.Fprintf(con.out, "codemode-bridge %s (%s, %s)\n", version, line["go"], line["platform"])
			return err
		},
	}
	con.jsonFlag(c)
	return c
}

// A usageError is a command line that makes no sense.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// An exitError ends the program with a code, after its own output was written.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitCode prints err for a person, unless that has been done, and says with
// which code the program ends.
func (con *console) exitCode(err error) int {
	var exit *exitError
	var usage *usageError
	var input *audit.InputError
	var problems config.Problems
	var setup *configError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		fmt.Fprintln(con.err, "codemode-bridge: interrupted")
		return exitInterrupted
	case errors.As(err, &problems):
		fmt.Fprintln(con.err, problems)
		fmt.Fprintf(con.err, "codemode-bridge: the configuration has %s\n", count(len(problems), "mistake"))
		return exitConfig
	case errors.As(err, &setup):
		fmt.Fprintf(con.err, "codemode-bridge: %v\n", err)
		if setup.hint != "" {
			fmt.Fprintf(con.err, "hint: %s\n", setup.hint)
		}
		return exitConfig
	case errors.As(err, &usage), errors.As(err, &input), isCobraUsage(err):
		fmt.Fprintf(con.err, "codemode-bridge: %v\n", err)
		if isCobraUsage(err) {
			fmt.Fprintln(con.err, "hint: codemode-bridge help lists the commands")
		}
		return exitUsage
	default:
		fmt.Fprintf(con.err, "codemode-bridge: %s\n", canon.EscapeLines(err.Error()))
		return exitFailed
	}
}
