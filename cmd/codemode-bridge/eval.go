package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/evalview"
	"codemode-bridge/bridge/scripts"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// evalCommand runs one script, behind the same gate as a client's.
func evalCommand(con *console) *cobra.Command {
	var o struct{ file, saved, profile, input, media string }
	c := &cobra.Command{
		Use: "eval [script]", Short: "Run one script and print its result", Args: cli.MaxArgs(1),
		Long: "Runs one script, given as an argument, in a file (--file), on standard input (-)\nor saved under a name (--script), and prints its result as JSON. Logs and errors go to standard error.",
		Example: `  codemode-bridge eval 'return await codemode.time__now({})'
  codemode-bridge eval --file report.ts --input '{"days": 7}'
  codemode-bridge eval --script weekly_report --input '{"days": 7}'
  echo 'return 1 + 1' | codemode-bridge eval -`,
		RunE: func(c *cobra.Command, args []string) error {
			source, err := readScript(con, o.file, o.saved, args)
			if err != nil {
				return err
			}
			if o.input != "" && !json.Valid([]byte(o.input)) {
				return &cli.UsageError{Err: errors.New("--input must be JSON")}
			}
			return onceRecorded(c.Context(), con, func(ctx context.Context, p *parts) error {
				defer askHere(ctx, con, p)()
				if o.profile == evalProfile {
					o.profile = ""
				}
				if _, err := namedProfile(p.cfg.Profiles, cmp.Or(o.profile, evalProfile)); err != nil {
					return err
				}
				result, err := p.server.Eval(ctx, o.profile, source, json.RawMessage(o.input), sayUnasked(con))
				if err != nil {
					return err
				}
				// Before the servers are closed: nobody waits for that.
				if err := printAnswer(con, result, o.media); ctx.Err() == nil {
					return err
				}
				return context.Cause(ctx)
			})
		},
	}
	f := c.Flags()
	f.StringVarP(&o.file, "file", "f", "", "read the script from a `file`; - is standard input")
	f.StringVarP(&o.saved, "script", "s", "", "run the saved script of this `name`, with --input as its input")
	f.StringVarP(&o.profile, "profile", "p", "", "run under a `profile`; - is what binds eval")
	f.StringVarP(&o.input, "input", "i", "", "a `JSON` value, the script's global input")
	f.StringVar(&o.media, "media", "", "write emitted media into a `folder`")
	con.JSONFlag(c)
	cli.CompleteWith(c, "profile", con.completeProfiles)
	return c
}

// readScript returns the source of the script that the command line names.
func readScript(con *console, file, saved string, args []string) (string, error) {
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

// once builds a bridge, waits for its servers, and calls do with it, which must not
// call a tool.
func once(ctx context.Context, con *console, do func(context.Context, *parts) error) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	return withoutRecords(ctx, con, cfg, do)
}

// withoutRecords is once with a configuration that was already read, and not changed.
func withoutRecords(ctx context.Context, con *console, cfg *config.Config, do func(context.Context, *parts) error) error {
	cfg, err := con.withSecrets(ctx, cfg)
	if err != nil {
		return err
	}
	return onceReady(ctx, con, cfg, do)
}

// onceReady is withoutRecords with a configuration that has its secrets.
func onceReady(ctx context.Context, con *console, cfg *config.Config, do func(context.Context, *parts) error) error {
	return onceWith(ctx, con, cfg, brief, func(ctx context.Context, p *parts) error {
		p.ready(ctx, con)
		return do(ctx, p)
	}, openNothing)
}

// onceResting is once with no server started and no secret asked for: do starts those that
// it needs, by parts.only.
func onceResting(ctx context.Context, con *console, do func(context.Context, *parts) error) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	return onceWith(ctx, con, cfg, resting, do, openNothing)
}

// onceRecorded is once for a do that may call tools: its calls are recorded like a
// client's, and like those each waits for its own server alone.
func onceRecorded(ctx context.Context, con *console, do func(context.Context, *parts) error) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	if err := mayRun(con, cfg); err != nil {
		return err
	}
	if cfg, err = con.withSecrets(ctx, cfg); err != nil {
		return err
	}
	return onceWith(ctx, con, cfg, brief, func(ctx context.Context, p *parts) error {
		if err := p.reloads.begin(ctx, cfg); err != nil {
			return err
		}
		return do(ctx, p)
	}, con.openLog)
}

// onceApart is onceRecorded without the servers, so that no tool can be called.
func onceApart(ctx context.Context, con *console, do func(context.Context, *parts) error) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	if cfg, err = inForce(ctx, con, cfg); err != nil {
		return err
	}
	cfg.Servers = nil
	return onceWith(ctx, con, cfg, brief, do, con.openLog)
}

func onceWith(ctx context.Context, con *console, cfg *config.Config, lives lifetime, do func(context.Context, *parts) error, open func(context.Context, config.Audit, *slog.Logger) (*auditLog, error)) (err error) {
	cfg.Sandbox.Result = profiles.Size(sandbox.DefaultLimits().Result) // the default: no model reads it
	cfg.Sandbox.Workers, cfg.Sandbox.Warm = 1, 0                       // one script at most
	l, err := openQuietLogs(con, cfg)                                  // complain reports what is wrong with servers
	if err != nil {
		return err
	}
	defer l.Close()
	rec, err := open(ctx, cfg.Audit, l.logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	p, err := build(ctx, con, cfg, l, rec, lives)
	if err != nil {
		return err
	}
	defer p.Close(time.Second)
	return do(ctx, p)
}

// sayUnasked returns a function that says, once for each tool, that calls were denied
// because there was nobody to ask. The script may have caught the error, and then
// nothing else would tell.
func sayUnasked(con *console) func(*approval.DeniedError) {
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

// complain says which servers could not be reached: with the reasons for one or two;
// for more, whose reasons nobody would read each time, with how to find out.
func complain(con *console, p *parts) {
	var down, why []string
	for _, s := range p.upstreams.Status() {
		switch {
		case s.Login != "": // and the program that waits for it ends with us
			con.Told("server %s: its program waits for a login: %s", s.Name, typed(con, "servers test "+s.Name))
		case s.Err != "":
			down, why = append(down, s.Name), append(why, cli.FirstLine(s.Err))
		}
	}
	if len(down) > 2 {
		con.Told("%s cannot be used: %s (why: %s)", cli.Count(len(down), "server"), strings.Join(down, ", "), typed(con, "servers list"))
		return
	}
	for i, name := range down {
		con.Told("server %s: %s", name, why[i])
	}
}

// printAnswer prints the answer of an eval tool: the result to standard output, logs,
// notes and errors to standard error.
func printAnswer(con *console, result *mcp.CallToolResult, mediaDir string) error {
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
