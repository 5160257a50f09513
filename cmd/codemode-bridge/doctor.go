package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/doctor"
	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/cmd/codemode-bridge/approverscmd"
	"codemode-bridge/cmd/codemode-bridge/cautions"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/logincmd"
	"codemode-bridge/cmd/codemode-bridge/policycmd"
	"codemode-bridge/cmd/codemode-bridge/pushcmd"
	"codemode-bridge/cmd/codemode-bridge/servecmd"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
	"codemode-bridge/sandbox"

	"github.com/spf13/cobra"
)

// A diagnosis is what --json prints.
type diagnosis struct {
	Version  string           `json:"version"`
	Go       string           `json:"go"`
	Platform string           `json:"platform"`
	Config   string           `json:"config"`
	OK       bool             `json:"ok"` // nothing fails
	Warnings int              `json:"warnings"`
	Failures int              `json:"failures"`
	Findings []doctor.Finding `json:"findings"`
}

// doctorCommand looks at everything that a bridge depends on.
func doctorCommand(con *console) *cobra.Command {
	limit := 30 * time.Second
	c := &cobra.Command{
		Use: "doctor", Short: "Find what is wrong with this installation, and say what to do", Args: cli.NoArgs,
		Long: "Looks at the configuration, connects to every server that no running bridge of this configuration is connected to,\n" +
			"and looks at logins, the sandbox, the audit log, the ports and the configurations of your clients. It changes nothing. The exit code is 1 if something does not work;\n" +
			"warnings alone leave it 0.",
		RunE: func(c *cobra.Command, _ []string) error { return examine(c.Context(), con, limit) },
	}
	c.Flags().DurationVar(&limit, "timeout", limit, "how long each server may take to start and list its tools")
	con.JSONFlag(c)
	return c
}

// examine runs all checks, and prints each result as it comes.
func examine(ctx context.Context, con *console, limit time.Duration) error {
	if limit <= 0 {
		return &cli.UsageError{Err: fmt.Errorf("--timeout %v leaves no time", limit)}
	}
	path, err := con.file()
	if err != nil {
		return err
	}
	logins := logins(con)
	defer logins.Close()
	up := doctor.New(examination(ctx, con, path, limit, logins))
	out := doctor.Paper{Out: con.Out, Width: con.Width(), Colour: con.Colour()}
	if !con.JSON {
		fmt.Fprintf(con.Out, "codemode-bridge %s (%s, %s/%s)\n%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, con.HomeShort(path))
	}
	all, named := []doctor.Finding{}, documents()
	for _, area := range up.Areas() {
		if area.Slow != "" && up.Usable() {
			con.Step(area.Slow)
		}
		found := area.Check(ctx)
		if err := context.Cause(ctx); err != nil {
			return err
		}
		for i := range found {
			found[i].Do = named.In(found[i].Do)
		}
		if !con.JSON {
			out.Area(area.Name, found)
		}
		all = append(all, found...)
	}
	count := map[doctor.Level]int{}
	for _, f := range all {
		count[f.Level]++
	}
	if con.JSON {
		err = con.PrintJSON(diagnosis{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, path, count[doctor.Fail] == 0, count[doctor.Warn], count[doctor.Fail], all})
	} else {
		out.Foot(count[doctor.Warn], count[doctor.Fail])
	}
	if err == nil && count[doctor.Fail] > 0 {
		err = &cli.ExitError{Code: cli.ExitFailed}
	}
	return err
}

// examination tells package doctor what it needs to know of this installation.
func examination(ctx context.Context, con *console, path string, limit time.Duration, logins *logincmd.Logins) doctor.Options {
	var cfg *config.Config // nil if it cannot be used
	var secrets recorder.Secrets
	secrets.HideLogins(logins.Hide)
	places, err := config.Paths(con.Env)
	return doctor.Options{
		Version: version, File: path, Limit: limit, System: clientSystem(con),
		State: places.StateDir, Cache: places.CacheDir, NoPlaces: err,
		Entry: func() ([]string, error) { return clientEntry(con, path) },
		Read: func() (*doctor.Config, []doctor.Problem) {
			var err error
			if cfg, err = con.load(); err != nil {
				cfg = nil
				return nil, problemsOf(err)
			}
			if cfg, err = con.withSecrets(ctx, cfg); err != nil {
				cfg = nil
				return nil, problemsOf(err)
			}
			secrets.Learn(hidden(cfg, con.Env), con.Env)
			return examined(con, cfg, logins), nil
		},
		Waits: func(servers []string) (answered func(string), end func()) {
			said := con.waitFor(servers)
			return said.Answered, said.Close
		},
		Running: func(ctx context.Context) map[string]doctor.Trial {
			all := map[string]doctor.Trial{}
			if told := askRunning(ctx, con, cfg, []string{}); told != nil {
				tools := told.Tools()
				for _, s := range told.States() {
					if t, ok := doctor.Running(s, tools[s.Name]); ok {
						all[s.Name] = t
					}
				}
			}
			return all
		},
		Builds:  func(ctx context.Context) []doctor.Difference { return programOf(con).Differences(ctx, path) },
		Sandbox: func(ctx context.Context) (map[string]string, *doctor.Problem) { return trySandbox(ctx, cfg) },
		Typed:   func(command string) string { return typed(con, command) },
		Short:   func(path string) string { return con.HomeShort(path) },
		Hide:    secrets.Hide, ArgSecrets: recorder.ArgSecrets,
	}
}

// problemsOf converts an error for package doctor.
func problemsOf(err error) []doctor.Problem {
	var problems config.Problems
	var setup *configError
	switch {
	case errors.As(err, &problems):
		var all []doctor.Problem
		for _, p := range problems {
			all = append(all, doctor.Problem{About: p.Path, Text: p.Message, Do: p.Hint, File: p.File, Line: p.Line, Column: p.Column})
		}
		return all
	case errors.As(err, &setup):
		return []doctor.Problem{{Text: err.Error(), Do: setup.hint}}
	}
	return []doctor.Problem{{Text: err.Error()}}
}

// examined converts a configuration for package doctor.
func examined(con *console, cfg *config.Config, logins *logincmd.Logins) *doctor.Config {
	c := &doctor.Config{
		Profiles: cfg.Profiles.Names(), Evaluates: cfg.Profiles.Enabled(), Unrestricted: cfg.Profiles.Default() == cfg.Profiles.Unrestricted(),
		Listen: cfg.HTTP.Listen.Reveal(), MayListen: servecmd.MayListen(cfg.HTTP.Listen.Reveal(), cfg.HTTP.AsksForTokens()), Certificates: servecmd.Certificates(cfg),
		Audit: doctor.Audit{Enabled: cfg.Audit.Enabled, Path: cfg.Audit.Path, Database: storecmd.Named(cfg.Audit), Requests: cfg.Audit.Requests(), Open: func(ctx context.Context) (doctor.LogState, error) { return openForDoctor(ctx, con, cfg) },
			Centre: func(ctx context.Context) (doctor.CentreState, error) {
				is, err := enrollOf(con).Look(ctx, cfg.Audit)
				return doctor.CentreState(is), err
			}},
		Reached: func(ctx context.Context) (all []doctor.Reach) {
			for _, to := range pushcmd.Reached(ctx, cfg.Audit, getenv(con.Env), version) {
				all = append(all, doctor.Reach(to))
			}
			return all
		},
		Review: func() (unreviewed, blocked int, err error) {
			return openPins(con, cfg).Count(cfg.ServerNames())
		},
	}
	if auth := cfg.HTTP.Auth; !auth.IsZero() {
		c.Issuer, c.AskIssuer = auth.Issuer.String(), func(ctx context.Context) (all []doctor.IssuerProblem) {
			for _, p := range servecmd.ResourceOf(auth, slog.New(slog.DiscardHandler)).Check(ctx) {
				all = append(all, doctor.IssuerProblem{Text: p.Text, Do: p.Do, Fatal: p.Fatal})
			}
			return all
		}
	}
	c.NoLock = lockProblem(con, cfg)
	c.Proposed, _ = openPins(con, cfg).Proposed() // Review and NoLock say what cannot be read
	if page := cfg.Approvals.Listen.Reveal(); page != config.ListenOff {
		c.Page = page
	}
	c.NoWorkspace = noWorkspace(con, cfg)
	for _, one := range cautions.Of(cfg) {
		c.Cautions = append(c.Cautions, doctor.Problem{Text: one.Text, Do: one.Do, File: one.File, Line: one.Line, Column: one.Column, Server: one.Server, Where: one.Where})
	}
	for _, trouble := range policycmd.Troubles(cfg, con.Env) {
		file, line, column := cfg.Place("/include")
		c.Cautions = append(c.Cautions, doctor.Problem{Text: trouble, Do: "codemode-bridge policy list shows all that is included", File: file, Line: line, Column: column})
	}
	if approverscmd.NobodyMayConfirm(cfg) {
		c.NobodyConfirms = approverscmd.NobodyConfirms
	}
	for _, spec := range specsWithLogins(cfg, logins, con.Env) {
		configured := cfg.Servers[spec.Name]
		s := doctor.Server{Name: spec.Name, Disabled: spec.Disabled, NoAuth: configured.Auth.Type == config.AuthNone, Spec: spec, Known: configured.Recognize(), Sharing: says(cfg, spec.Name, "perSession")}
		if at, ok := logincmd.ServerOf(configured); ok {
			if s.Login = logins.Client(cfg, at).Stored; configured.Auth.Per == config.AuthPrincipal {
				s.Accounts = func(ctx context.Context) ([]login.Connection, error) {
					cfg, err := con.withSecrets(ctx, cfg, storecmd.Pointers...)
					if err != nil {
						return nil, err
					}
					return logins.At(cfg, at).Connections(ctx)
				}
			}
		}
		c.Servers = append(c.Servers, s)
	}
	return c
}

// openForDoctor opens an audit log for reading.
func openForDoctor(ctx context.Context, con *console, cfg *config.Config) (doctor.LogState, error) {
	cfg, err := con.withSecrets(ctx, cfg, storecmd.Pointers...)
	if err != nil {
		return doctor.LogState{}, err
	}
	s, err := storecmd.Look(ctx, cfg.Audit)
	return doctor.LogState(s), err
}

// trySandbox has a worker parse a script, and returns how the worker is confined.
// With a nil cfg, the default limits hold.
func trySandbox(ctx context.Context, cfg *config.Config) (steps map[string]string, problem *doctor.Problem) {
	program, err := worker()
	if err != nil {
		return nil, &problemsOf(err)[0]
	}
	o := sandbox.Options{Worker: program, Warm: warm(0), MaxWorkers: 1}
	if cfg != nil {
		o.Limits = limits(cfg.Sandbox)
	}
	pool, err := sandbox.NewPool(o)
	if err != nil {
		return nil, &doctor.Problem{Text: err.Error()}
	}
	defer pool.Close()
	if err := pool.Check(ctx, "return 1"); err != nil {
		return nil, &doctor.Problem{Text: "no script can run: " + err.Error(), Do: "install codemode-bridge and codemode-worker from the same release into one folder"}
	}
	return pool.Status().Hardening, nil
}

// typed is a command as the person would type it, with the --config and --env that
// they gave to this one.
func typed(con *console, command string) string {
	if con.configPath != "" {
		command += " --config " + cli.Word(con.configPath)
	}
	if con.environment != "" {
		command += " --env " + cli.Word(con.environment)
	}
	return "codemode-bridge " + command
}
