package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/doctor"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lines"
	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/sandbox"

	"github.com/spf13/cobra"
	"golang.org/x/term"
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
		Use: "doctor", Short: "Look for what is wrong with this installation, and say what to do", Args: noArgs,
		Long: "Looks at the configuration, connects to every server, and looks at logins, the sandbox, the audit log, the ports\n" +
			"and the configurations of your clients. It changes nothing. The exit code is 1 if something does not work;\n" +
			"warnings alone leave it 0.",
		RunE: func(c *cobra.Command, _ []string) error { return examine(c.Context(), con, limit) },
	}
	c.Flags().DurationVar(&limit, "timeout", limit, "how long each server may take to start and list its tools")
	con.jsonFlag(c)
	return c
}

// examine looks at everything, and prints what it finds as it finds it.
func examine(ctx context.Context, con *console, limit time.Duration) error {
	if limit <= 0 {
		return &usageError{fmt.Errorf("--timeout %v leaves no time", limit)}
	}
	path, err := con.file()
	if err != nil {
		return err
	}
	logins := logins(con)
	defer logins.Close()
	up := doctor.New(examination(con, path, limit, logins))
	out := doctorPaper{con: con}
	if !con.json {
		out.head(path)
	}
	all := []doctor.Finding{}
	for _, area := range up.Areas() {
		if area.Slow != "" && up.Usable() {
			out.wait(area.Slow)
		}
		found := area.Check(ctx)
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !con.json {
			out.area(area.Name, found)
		}
		all = append(all, found...)
	}
	count := map[doctor.Level]int{}
	for _, f := range all {
		count[f.Level]++
	}
	if con.json {
		err = con.printJSON(diagnosis{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, path, count[doctor.Fail] == 0, count[doctor.Warn], count[doctor.Fail], all})
	} else {
		out.foot(count[doctor.Warn], count[doctor.Fail])
	}
	if err == nil && count[doctor.Fail] > 0 {
		err = &exitError{exitFailed}
	}
	return err
}

// examination is what there is to know of this installation.
func examination(con *console, path string, limit time.Duration, logins *login.Keeper) doctor.Options {
	var cfg *config.Config // nil: it cannot be used
	var secrets recorder.Secrets
	secrets.HideLogins(logins.Hide)
	places, err := config.Paths(con.env)
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
			secrets.Learn(given(specs(cfg)), con.env)
			return examined(con, cfg, logins), nil
		},
		Sandbox: func(ctx context.Context) (map[string]string, *doctor.Problem) { return trySandbox(ctx, cfg) },
		Typed:   func(command string) string { return typed(con, command) },
		Short:   func(path string) string { return homeShort(con, path) },
		Hide:    secrets.Hide,
	}
}

// problemsOf is an error as the doctor tells of it.
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

// examined is what a configuration says that the doctor wants to know.
func examined(con *console, cfg *config.Config, logins *login.Keeper) *doctor.Config {
	c := &doctor.Config{
		Profiles: cfg.Profiles.Names(), Evaluates: cfg.Profiles.Enabled(), Unrestricted: cfg.Profiles.Default() == cfg.Profiles.Unrestricted(),
		Listen: cfg.HTTP.Listen.Reveal(), MayListen: mayListen(cfg.HTTP.Listen.Reveal(), len(cfg.HTTP.Tokens) > 0),
		Audit: doctor.Audit{Enabled: cfg.Audit.Enabled, Path: cfg.Audit.Path, Requests: cfg.Audit.Requests(), Open: func(ctx context.Context) (int64, bool, bool, error) { return lastRow(ctx, cfg.Audit) }},
		Review: func() (unreviewed, blocked int, err error) {
			waiting, err := pins.Open(pinFolder(con, cfg.File)).Waiting(cfg.ServerNames())
			for _, w := range waiting {
				switch w.State {
				case pins.Blocked:
					blocked++
				case pins.New, pins.Changed, pins.Unknown:
					unreviewed++
				}
			}
			return unreviewed, blocked, err
		},
	}
	if page := cfg.Approvals.Listen.Reveal(); page != config.ListenOff {
		c.Page = page
	}
	if nobodyMayConfirm(cfg) {
		c.NobodyConfirms = nobodyConfirms
	}
	for _, spec := range specsWithLogins(cfg, logins) {
		configured := cfg.Servers[spec.Name]
		s := doctor.Server{Name: spec.Name, Disabled: spec.Disabled, NoAuth: configured.Auth.Type == config.AuthNone, Spec: spec}
		if at, ok := serverToLogIn(configured); ok {
			s.Login = logins.Client(at).Held
		}
		c.Servers = append(c.Servers, s)
	}
	return c
}

// lastRow opens an audit log for reading, and looks at its end.
func lastRow(ctx context.Context, place config.Audit) (last int64, opened, damaged bool, err error) {
	o := storeOptions(place)
	o.ReadOnly = true
	db, err := sqlstore.Open(ctx, o)
	if err != nil {
		return 0, false, false, err
	}
	defer db.Close()
	last, _, err = db.Head(ctx)
	if wrong := db.Err(); errors.Is(wrong, ledger.ErrDamaged) {
		return last, true, true, wrong
	}
	return last, true, false, err
}

// trySandbox has a worker parse a script, and returns what confines it. Without a
// configuration, the usual limits hold.
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
	if err := bridge.CheckScript(ctx, pool, "return 1"); err != nil {
		return nil, &doctor.Problem{Text: "no script can run: " + err.Error(), Do: "install codemode-bridge and codemode-worker from the same release into one folder"}
	}
	return pool.Status().Hardening, nil
}

// typed is a command as the person types it, with the configuration that they
// have named.
func typed(con *console, command string) string {
	if con.configPath != "" {
		command += " --config " + con.configPath
	}
	if con.environment != "" {
		command += " --env " + con.environment
	}
	return "codemode-bridge " + command
}

// A doctorPaper is the doctor's answer for a person, written as it is found.
type doctorPaper struct{ con *console }

// colour reports whether standard output shows colours.
func (p doctorPaper) colour() bool {
	file, ok := p.con.out.(*os.File)
	_, plain := p.con.env("NO_COLOR")
	return ok && !plain && term.IsTerminal(int(file.Fd()))
}

func (p doctorPaper) mark(l doctor.Level) string {
	sign, colour := "✓", "32"
	switch l {
	case doctor.Warn:
		sign, colour = "!", "33"
	case doctor.Fail:
		sign, colour = "✗", "31"
	}
	if p.colour() {
		sign = "\x1b[" + colour + "m" + sign + "\x1b[0m"
	}
	return "[" + sign + "]"
}

func (p doctorPaper) head(path string) {
	fmt.Fprintf(p.con.out, "codemode-bridge %s (%s, %s/%s)\n%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, homeShort(p.con, path))
}

// wait says on a terminal what takes a while.
func (p doctorPaper) wait(what string) {
	if file, ok := p.con.err.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprintf(p.con.err, "%s...\n", what)
	}
}

// area prints the findings of one area. Those that say the same of several
// things share a line.
func (p doctorPaper) area(name string, found []doctor.Finding) {
	if len(found) == 0 {
		return
	}
	worst := doctor.OK
	for _, f := range found {
		if f.Level.Worse(worst) {
			worst = f.Level
		}
	}
	fmt.Fprintf(p.con.out, "\n%s %s\n", p.mark(worst), name)
	for _, f := range doctor.Fold(found) {
		line := f.Text
		if f.About != "" {
			line = f.About + ": " + f.Text
		}
		if f.Line > 0 {
			line = f.File + ":" + strconv.Itoa(f.Line) + ":" + strconv.Itoa(f.Column) + ": " + f.Text
		}
		sign := " "
		if f.Level != doctor.OK {
			sign = p.mark(f.Level)
			sign = sign[1 : len(sign)-1]
		}
		p.print("  "+sign+" ", "    ", line)
		for _, said := range f.Said {
			p.print("      | ", "      | ", said)
		}
		if f.Do != "" {
			p.print("      do: ", "          ", f.Do)
		}
	}
}

// print writes a line behind one beginning, and what of it does not fit the
// terminal below, behind another that is as wide.
func (p doctorPaper) print(first, next, line string) {
	parts := []string{line}
	if width := p.con.width(); width > 0 {
		parts = lines.Hang(line, width-len(next), "")
	}
	for i, part := range parts {
		from := first
		if i > 0 {
			from = next
		}
		fmt.Fprintln(p.con.out, from+strings.TrimRight(part, " "))
	}
}

func (p doctorPaper) foot(warnings, failures int) {
	switch {
	case failures > 0 && warnings > 0:
		fmt.Fprintf(p.con.out, "\n%s, %s\n", count(failures, "failure"), count(warnings, "warning"))
	case failures > 0:
		fmt.Fprintf(p.con.out, "\n%s\n", count(failures, "failure"))
	case warnings > 0:
		fmt.Fprintf(p.con.out, "\nall works, with %s\n", count(warnings, "warning"))
	default:
		fmt.Fprintln(p.con.out, "\nall is well")
	}
}
