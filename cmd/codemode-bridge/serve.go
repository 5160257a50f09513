package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/approvalview"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/replica"
	"codemode-bridge/bridge/rpc"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/enrollcmd"
	"codemode-bridge/cmd/codemode-bridge/laptopscmd"
	"codemode-bridge/cmd/codemode-bridge/pushcmd"
	"codemode-bridge/cmd/codemode-bridge/servecmd"
	"codemode-bridge/cmd/codemode-bridge/storecmd"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// grace is how long runs may go on when the bridge is told to end.
const grace = servecmd.Grace

// tuneMemory trades memory for steady latency: most allocations are short-lived
// buffers of the SDK.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(1 << 30)
	}
}

// runCommand serves one client on standard input and output.
func runCommand(con *console) *cobra.Command {
	var alone bool
	var profile string
	c := &cobra.Command{
		Use: "run", Short: "Serve one client over standard input and output", Args: cli.NoArgs,
		Long: "Serves one MCP client over standard input and output. Standard output carries the protocol\nand nothing else; the log goes to standard error and to a file.\n\nThe windows of one user with the same configuration and environment share one background process, which ends\nwith the last of them.",
		RunE: func(c *cobra.Command, _ []string) error {
			// Nothing else that prints may reach the protocol's stream.
			stdout := os.Stdout
			os.Stdout = os.Stderr
			client := rpc.NewStdio(os.Stdin, stdout)
			start, err := beginServing(con)
			if err != nil {
				return err
			}
			if profile != "" {
				if _, ok := start.cfg.Profiles.Profile(profile); !ok {
					_, err := namedProfile(start.cfg.Profiles, profile)
					return cmp.Or(err, error(&cli.UsageError{Err: errors.New("run --profile takes the name of a profile")}))
				}
			}
			if len(start.cfg.Rules().For("", nil).Evals(access.Policy{Profiles: start.cfg.Profiles.Names(), Default: start.cfg.Profiles.Default().Name()})) == 0 {
				con.Told(`this window sees no tools: access has no entry with "local": true that gives it any (codemode-bridge access explain -)`)
			}
			if start.cfg.Windows.Share && !alone {
				joined, err := joinInstance(c.Context(), con, instance.Client{ReadWriter: client, In: os.Stdin, Out: stdout}, start.cfg, start.looked, profile)
				if joined || err != nil {
					return err
				}
			}
			tuneMemory()
			if start, err = start.ready(c.Context(), con); err != nil {
				return err
			}
			return live(c.Context(), con, start, func(ctx context.Context, p *parts) error {
				defer p.keepPage(con)()
				defer p.openNotices(false)()
				err := p.server.Serve(access.Bind(ctx, profile), client)
				if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
					return nil // the client went away, as clients do
				}
				return err
			})
		},
	}
	c.Flags().StringVarP(&profile, "profile", "p", "", "bind this window to one `profile`: there is eval, with that profile, and no other eval tool")
	cli.CompleteWith(c, "profile", con.completeProfiles)
	c.Flags().BoolVar(&alone, "alone", false, "run a separate bridge with its own servers (like windows.share: false)")
	return c
}

// serveCommand serves many clients over HTTP.
func serveCommand(con *console) *cobra.Command {
	var listen, name string
	c := &cobra.Command{
		Use: "serve", Short: "Serve many clients over HTTP", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			tuneMemory()
			if con.replica = name; name != "" && !replica.ValidName(name) {
				return &cli.UsageError{Err: fmt.Errorf("--name %q: a name has lower-case letters, digits and '-', at most 40", name)}
			}
			start, err := beginServing(con)
			if err != nil {
				return err
			}
			if start, err = start.ready(c.Context(), con); err != nil {
				return err
			}
			cfg := start.cfg
			if listen == "" {
				listen = cfg.HTTP.Listen.Reveal()
			}
			l, err := servecmd.Open(listen, cfg.HTTP)
			if err != nil {
				return err
			}
			defer l.Close()
			start.named = cfg.HTTP.AsksForTokens()
			return live(c.Context(), con, start, func(ctx context.Context, p *parts) error {
				pg, err := p.openPage(con, cfg.Approvals.Listen.Reveal())
				switch at := pageElsewhere(p.desk.members.Folder(), p.desk.conf.ID); {
				case err != nil && at != "":
					p.desk.page.Store(&at) // it shows the same requests
				case err != nil:
					p.log.Warn("there is no approval page here; "+servecmd.PageHint(err), "err", err)
				case pg != nil:
					defer pg.Close()
					p.announcePage(pg)
				}
				defer p.openNotices(true)()
				defer p.announceServing(con, l.Address(), pg)()
				greet(con, l.Address(), cfg, pg)
				return p.serveHTTP(ctx, con, l, pg)
			})
		},
	}
	c.Flags().StringVar(&name, "name", "", "what the ids of sessions begin with, so that a load balancer finds this bridge: `NAME`.xxxx (default: a name that begins with the machine's)")
	c.Flags().StringVar(&listen, "listen", "", "the `address` to listen on (default: http.listen of the configuration)")
	return c
}

// live builds a bridge with a configuration that has its secrets, follows its configuration, and ends it when serve returns.
func live(ctx context.Context, con *console, start beginning, serve func(context.Context, *parts) error) error {
	cfg := start.cfg
	l, err := openLogs(con, cfg)
	if err != nil {
		return err
	}
	defer l.Close()
	rec, err := con.openLog(ctx, cfg.Audit, l.logger)
	if err != nil {
		return err
	}
	defer func() {
		if err := rec.Close(); err != nil {
			l.logger.Error("closing the audit log", "err", err)
		}
	}()
	p, err := build(ctx, con, cfg, l, rec, lasting)
	if err != nil {
		return err
	}
	p.logins.Serve(p.desk.pageAddress, start.named) // before any run goes on
	rec.Enqueue(ctx, recorder.BridgeStarted(version, os.Getpid(), recordedAs(cfg)))
	if err := p.reloads.begin(ctx, start.file); err != nil {
		p.Close(0)
		return err
	}
	watching, stop := context.WithCancel(ctx)
	p.ended.Go(func() { p.reloads.watch(watching, start.file) })
	p.ended.Go(func() { p.pins.Watch(watching, p.views.Touch) })
	p.ended.Go(func() { rec.PruneHourly(watching, time.Duration(cfg.Audit.Keep), cfg.Audit.KeepRows) })
	p.ended.Go(func() { p.tidy(watching, time.Duration(cfg.Audit.Keep)) })
	p.ended.Go(func() { p.resumeAnswered(watching) })
	p.ended.Go(func() { enrollcmd.Send(watching, rec.Store(), p.config, version, l.logger) })
	p.ended.Go(func() {
		enrollcmd.Ask(watching, enrollcmd.Asking{Place: cfg.Audit, Store: p.desk.store, Configuration: p.desk.conf.ID, Approvers: func() bool { return p.desk.approvers.Load().Any() }, Logger: l.logger})
	})
	p.ended.Go(func() {
		pushcmd.Run(watching, pushcmd.Options{Store: rec.Store(), Place: cfg.Audit, Open: storecmd.OpenPushed, Bridge: p.desk.id, Gone: p.desk.members.Gone, Version: version, Log: l.logger})
	})
	err = serve(ctx, p)
	stop()
	p.Close(grace)
	rec.Enqueue(context.WithoutCancel(ctx), recorder.BridgeEnded(version, os.Getpid()))
	return err
}

// serveHTTP serves until ctx ends, and then drains.
func (p *parts) serveHTTP(ctx context.Context, con *console, l *servecmd.Endpoint, pg *page) error {
	cfg := p.config()
	s := servecmd.Serving{Bridge: p.server, Err: con.Err, Log: p.log, SessionsOf: func(name string, groups []string) (int, string) {
		g := p.config().Rules().For(name, groups)
		return g.Limits().Sessions, g.Entry()
	}, Unavailable: p.recorder.Unavailable}
	if len(cfg.HTTP.Tokens) > 0 {
		s.Tokens = p.tokens
	}
	if !cfg.HTTP.Auth.IsZero() {
		s.Resource = servecmd.ResourceOf(cfg.HTTP.Auth, p.log)
		p.ended.Go(func() { s.Resource.Warm(ctx) })
	}
	if storecmd.InDatabase(cfg.Audit) {
		s.Linger = servecmd.Linger
	}
	around, end, err := laptopscmd.Around(ctx, laptopscmd.Serving{Config: cfg, Book: p.recorder.Store(), Record: p.recorder, SQL: storecmd.SQL, Requests: p.desk.store, Shows: shows, Logger: p.log})
	if err != nil {
		return err
	}
	defer func() { _ = end() }() // nothing is lost: every change was committed
	if s.Around = around; pg != nil {
		s.Page = pg.certificate
	}
	return s.Serve(ctx, l, cfg.HTTP)
}

// shows shows a request in every way in which people see it; it panics if that cannot be.
func shows(e approval.StoredRequest) {
	_, _ = approvalview.NewRow(e, nil), approvalview.Lines(e, "", time.Now())
	_, _, _ = e.WiderWords(), e.Counts(), e.Choices(true)
}

// greet prints where the bridge is and how to connect to it.
func greet(con *console, endpoint string, cfg *config.Config, pg *page) {
	header, field := "", ""
	if len(cfg.HTTP.Tokens) > 0 && cfg.HTTP.Auth.IsZero() { // otherwise clients log in by themselves
		header = ` --header "Authorization: Bearer TOKEN"`
		field = `, "headers": {"Authorization": "Bearer TOKEN"}`
	}
	fmt.Fprintf(con.Err, "codemode-bridge %s\n", version)
	fmt.Fprintf(con.Err, "  endpoint     %s\n", endpoint)
	fmt.Fprintf(con.Err, "  servers      %s\n", cmp.Or(strings.Join(serverNames(cfg), ", "), "none"))
	if cfg.Audit.Enabled {
		fmt.Fprintf(con.Err, "  audit log    %s\n", cfg.Audit.Where())
	} else {
		fmt.Fprintf(con.Err, "  audit log    off\n")
	}
	fmt.Fprintf(con.Err, "  connect      claude mcp add --transport http codemode %s%s\n", endpoint, header)
	fmt.Fprintf(con.Err, "  or           {\"mcpServers\": {\"codemode\": {\"type\": \"http\", \"url\": %q%s}}}\n", endpoint, field)
	if pg != nil {
		link, owner := pg.site.LoginURL(pg.base)
		if owner {
			fmt.Fprintf(con.Err, "  approve      %s\n", link)
			fmt.Fprintf(con.Err, "               (that link is good once, for ten minutes; then: codemode-bridge approvers add NAME)\n")
		} else {
			fmt.Fprintf(con.Err, "  approve      %s\n               (with the token of an approver)\n", pg.base)
		}
	}
	fmt.Fprintf(con.Err, "Ctrl-C ends it. Its calls, live: codemode-bridge tail\n")
}
