// Codemode-bridge is one MCP server that stands in front of many: it shows a
// client one code tool, and lets the scripts call the tools of all.
//
// This package is the commands and the wiring: flags, signals, and the one
// function that puts the parts together (build, in parts.go). It is the only
// reader of the environment and of the configuration file. What all commands
// share is in cli; the commands of the audit log are in auditcmd, and those that
// set the bridge up in setupcmd, those about tools in toolscmd.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/secrets"
	"codemode-bridge/cmd/codemode-bridge/accesscmd"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/explaincmd"
	"codemode-bridge/cmd/codemode-bridge/policycmd"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
	"codemode-bridge/cmd/codemode-bridge/versioncmd"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// version is the release, commit what it was built from, and docs the address of the
// documents as pages; the linker may set others.
var (
	version = "0.1.0"
	commit  string
	docs    string
)

func main() { os.Exit(mainCode()) }

// mainCode runs the command line and returns the exit code.
func mainCode() int {
	keepDescriptors()
	// The first signal shuts down in order, the second exits at once.
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		stop(errInterrupted)
		<-signals
		os.Exit(cli.ExitInterrupted)
	}()
	con := &console{Console: cli.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv}}
	con.shared = storecmd.NewShared(func(ctx context.Context, cfg *config.Config) (config.Audit, error) { return sharedPlace(ctx, con, cfg) })
	defer con.shared.Close()
	return con.exitCode(rootCommand(con).ExecuteContext(ctx))
}

var errInterrupted = errors.New("interrupted")

// A console is what every command gets: the streams, the environment, and the flags
// that all commands share.
type console struct {
	cli.Console

	configPath  string // --config
	environment string // --env: which overlay of the configuration applies
	logFile     string // --log
	replica     string // --name of serve
	shared      *storecmd.Shared
	asked       *secrets.Memory // of a command that needs secrets more than once; nil: none

	// covers returns an error for an edit of the configuration that the windows of
	// a shared bridge cannot all follow; nil in a process that is not shared.
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
	root.SetOut(con.Out)
	root.SetErr(con.Err)
	root.SetIn(con.In)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &cli.UsageError{Err: fmt.Errorf("%w (%s --help lists the flags)", err, c.CommandPath())}
	})
	root.PersistentFlags().StringVarP(&con.configPath, "config", "c", "", "the configuration `file` (default: $CODEMODE_CONFIG, then the user's own)")
	root.PersistentFlags().StringVar(&con.environment, "env", "", "the `environment`: NAME lays config.NAME.json over the profiles of config.json")
	_ = root.RegisterFlagCompletionFunc("env", con.completeEnvironments) // the flag is there
	setups := setupOf(con)
	root.AddCommand(
		runCommand(con), hostCommand(con), openapiCommand(con), serveCommand(con), evalCommand(con),
		setups.Init(), setups.Install(), setups.Uninstall(),
		checks(con).Check(), checks(con).Scripts(), configCommand(con), profilesCommand(con), (&policycmd.Bridge{Console: &con.Console, Load: con.load}).Command(),
		serversCommand(con), toolCommands(con).Command(), secretsOf(con).Command(),
		(&accesscmd.Bridge{Console: &con.Console, Load: con.load}).Command(), approvalsCommand(con), approvers(con).Command(), grantsCommand(con),
		logFlag(con, auditLogOf(con).Command()), logFlag(con, auditLogOf(con).Tail()), runsCommand(con),
		storesOf(con).Command(), storesOf(con).Backup(), storesOf(con).Restore(),
		laptopsOf(con).Command(), enrollOf(con).Command(),
		statusOf(con).Command(), doctorCommand(con), programOf(con).Command(),
	)
	con.completeNames(root)
	documents().Help(root)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	// A command that only groups others must refuse an unknown word.
	for _, c := range root.Commands() {
		if c.HasSubCommands() && c.RunE == nil {
			c.RunE = func(c *cobra.Command, args []string) error {
				if len(args) > 0 {
					return cli.UnknownCommand(c, args[0])
				}
				return c.Help()
			}
		}
	}
	return root
}

// built is what this program was built from.
func built() versioncmd.Build { return versioncmd.Build{Version: version, Commit: commit} }

// programOf gives package versioncmd access to the program.
func programOf(con *console) *versioncmd.Program {
	return &versioncmd.Program{Console: &con.Console, Build: built(), Worker: worker, Folders: func() (instance.Folders, error) { return instanceFolders(con) }, Protocols: mcp.SupportedProtocolVersions()}
}

// exitCode prints err for a person, unless the command has done so, and returns the
// code with which the program exits.
func (con *console) exitCode(err error) int {
	var exit *cli.ExitError
	var usage *cli.UsageError
	var input *audit.InputError
	var problems config.Problems
	var setup cli.Hinted
	switch {
	case err == nil:
		return cli.ExitOK
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		fmt.Fprintln(con.Err, "codemode-bridge: interrupted")
		return cli.ExitInterrupted
	case errors.As(err, &problems):
		fmt.Fprintln(con.Err, problems)
		fmt.Fprintf(con.Err, "codemode-bridge: the configuration has %s\n", cli.Count(len(problems), "mistake"))
		con.hint(documents().Hint(problems))
		return cli.ExitConfig
	case errors.As(err, &setup):
		fmt.Fprintf(con.Err, "codemode-bridge: %v\n", err)
		con.hint(setup.Hint())
		return cli.ExitConfig
	case errors.As(err, &usage), errors.As(err, &input), isCobraUsage(err):
		fmt.Fprintf(con.Err, "codemode-bridge: %v\n", err)
		if isCobraUsage(err) {
			fmt.Fprintln(con.Err, "hint: codemode-bridge help lists the commands")
		}
		return cli.ExitUsage
	default:
		fmt.Fprintf(con.Err, "codemode-bridge: %s\n", canon.EscapeLines(err.Error()))
		return cli.ExitFailed
	}
}

// hint prints what to do, if there is something.
func (con *console) hint(hint string) {
	if hint != "" {
		fmt.Fprintf(con.Err, "hint: %s\n", documents().In(hint))
	}
}

// documents are where this program's documents are.
func documents() explaincmd.Documents {
	program, _ := os.Executable() // without it they are named as the repository has them
	return explaincmd.Of(docs, program)
}

// isCobraUsage reports whether err is cobra's error for an unknown command, which has
// no type of its own.
func isCobraUsage(err error) bool {
	return errors.Unwrap(err) == nil && strings.HasPrefix(err.Error(), "unknown command ")
}
