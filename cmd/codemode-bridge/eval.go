package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/evalcmd"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"

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
			source, err := evalcmd.ReadScript(&con.Console, o.file, o.saved, args)
			if err != nil {
				return err
			}
			if o.input != "" && !json.Valid([]byte(o.input)) {
				return &cli.UsageError{Err: errors.New("--input must be JSON")}
			}
			return onceRecorded(c.Context(), con, func(ctx context.Context, p *parts) error {
				defer askHere(ctx, con, p)()
				p.start.Source = source
				if o.profile == evalProfile {
					o.profile = ""
				}
				if _, err := namedProfile(p.cfg.Profiles, cmp.Or(o.profile, evalProfile)); err != nil {
					return err
				}
				result, err := p.server.Eval(ctx, o.profile, source, json.RawMessage(o.input), evalcmd.Unasked(&con.Console))
				if err != nil {
					return err
				}
				// Before the servers are closed: nobody waits for that.
				if err := evalcmd.Print(&con.Console, result, o.media); ctx.Err() == nil {
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

// once is onceTold with the configuration on disk, and all servers.
func once(ctx context.Context, con *console, do func(context.Context, *parts) error) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	return onceTold(ctx, con, cfg, nil, do)
}

// onceTold calls do, which must not call a tool, with a bridge that knows the state of the
// named servers, or of all for nil: from the bridge that runs with this configuration, or
// by connecting to them, for which alone secrets are asked for.
func onceTold(ctx context.Context, con *console, cfg *config.Config, names []string, do func(context.Context, *parts) error) error {
	told := askRunning(ctx, con, cfg, names)
	lives := resting
	if told == nil {
		lives = brief
		var below []string
		for _, name := range names {
			below = append(below, ofServer(name)...)
		}
		var err error
		if cfg, err = con.withSecrets(ctx, cfg, below...); err != nil {
			return err
		}
	}
	if names != nil {
		cfg.Servers = maps.Clone(cfg.Servers)
		maps.DeleteFunc(cfg.Servers, func(name string, _ *config.Server) bool { return !slices.Contains(names, name) })
	}
	return onceWith(ctx, con, cfg, lives, func(ctx context.Context, p *parts) error {
		if told != nil {
			p.hear(told)
		} else {
			p.ready(ctx, con)
		}
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
// client's, and like those each waits for its own server alone. No server starts before
// parts.start says so.
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
	return onceWith(ctx, con, cfg, single, func(ctx context.Context, p *parts) error {
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

// complain says which servers could not be reached: with the reasons for one or two;
// for more, whose reasons nobody would read each time, with how to find out.
func complain(con *console, p *parts) {
	var down, why []string
	for _, s := range p.states() {
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
