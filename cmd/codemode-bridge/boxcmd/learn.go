// Package boxcmd has the command that finds out which box a server needs.
package boxcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/bridge/learned"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/sandbox/confine"

	"github.com/spf13/cobra"
)

// A Bridge is what the command needs of the program.
type Bridge struct {
	*cli.Console

	Version string // of the program, as servers are told
	Load    func() (*config.Config, error)
	Worker  func() (path string, err error)             // codemode-worker
	Usable  func(cfg *config.Config, name string) error // says why a server can't be started
	// Ready fills in the secrets that a server names.
	Ready    func(ctx context.Context, cfg *config.Config, name string) (*config.Config, error)
	OwnFiles func(cfg *config.Config) []string // of a bridge with that configuration
	Flag     func(cfg *config.Config) string   // " --config FILE", where that is needed
	// Edit changes the configuration, and says so if the edit would be a mistake.
	Edit func(edit func(text []byte, cfg *config.Config) ([]byte, error)) error
}

// learnOptions are the flags of servers learn.
type learnOptions struct {
	tools, args []string
	lasts       time.Duration
	apply, run  bool
}

// Learn is the command that runs a server without a box, and proposes one.
func (con *Bridge) Learn() *cobra.Command {
	var o learnOptions
	c := &cobra.Command{
		Use: "learn name", Short: "Run a server, watch what it uses, and propose its box", Args: cli.ExactArgs(1),
		Long: "Starts a server outside of any box and watches which files it reads and writes, which hosts it connects to and\n" +
			"which programs it starts. Calls are made as --call and --args say, or as lines of JSON on standard input say; they\n" +
			"are real, and no policy decides about them. In the end it shows what was used, and the smallest box that has it;\n" +
			"--apply writes that. Keys, tokens, the bridge's own files and sockets of this machine are shown and not proposed.",
		Example: "  codemode-bridge servers learn files --call list_directory --args '{\"path\": \"/srv/notes\"}' --apply\n" +
			"  codemode-bridge servers learn files --for 2m <calls.jsonl",
		RunE: func(c *cobra.Command, args []string) error { return learnServer(c.Context(), con, args[0], o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.tools, "call", nil, "a `tool` to call; may be repeated")
	f.StringArrayVar(&o.args, "args", nil, "the arguments of a --call, as `JSON`, in the same order; may be repeated")
	f.DurationVar(&o.lasts, "for", 0, "how `long` to watch at most; with --call, how long to watch at all (default: until the calls are made)")
	f.BoolVar(&o.apply, "apply", false, "write the box into the configuration")
	f.BoolVar(&o.run, "run", false, "let it start no programs but those that it started")
	con.JSONFlag(c)
	return c
}

func learnServer(ctx context.Context, con *Bridge, name string, o learnOptions) error {
	calls, err := learned.Pairs(o.tools, o.args)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	cfg, err := con.Load()
	if err != nil {
		return err
	}
	if err := con.Usable(cfg, name); err != nil {
		return err
	}
	if cfg, err = con.Ready(ctx, cfg, name); err != nil {
		return err
	}
	s := cfg.Servers[name]
	if s.Unready != nil {
		return fmt.Errorf("%s cannot be started: %s", name, s.WhyUnready())
	}
	if s.Command.Reveal() == "" {
		return &cli.UsageError{Err: fmt.Errorf("%s is no program that the bridge starts: there is nothing to put in a box", name)}
	}
	server, err := learnable(con, s)
	if err != nil {
		return err
	}
	around, err := surroundings(con, cfg, server, name)
	if err != nil {
		return err
	}
	session, err := learned.Start(ctx, server)
	if err != nil {
		return fmt.Errorf("%s can't be learned here: %w (write its box by hand, and widen it with servers allow where it is too small)", name, err)
	}
	err = useServer(ctx, con, name, session, calls, o)
	seen := session.Close()
	if err != nil {
		return err
	}
	around.Own, _ = session.Named()
	around.Run = o.run
	around.Had = append(around.Had, session.Temp())
	return showLearned(con, cfg, name, learned.Propose(seen, around), o.apply)
}

// learnable is how a server is started.
func learnable(con *Bridge, s *config.Server) (learned.Server, error) {
	launcher, err := con.Worker()
	if err != nil {
		return learned.Server{}, err
	}
	env := upstream.Inherited(s.PassEnv, os.Environ())
	for name, value := range config.RevealMap(s.Env) {
		env = append(env, name+"="+value)
	}
	command, err := learned.Look(s.Command.Reveal(), env)
	if err != nil {
		return learned.Server{}, fmt.Errorf("starting %s: %w", s.Name, err)
	}
	dir := s.Cwd.Reveal()
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return learned.Server{}, fmt.Errorf("starting %s: %w", s.Name, err)
		}
	}
	return learned.Server{Launcher: launcher, Command: command, Args: config.Reveal(s.Args), Env: env, Dir: dir, Version: con.Version}, nil
}

// useServer makes the calls, and goes on for as long as it should.
func useServer(ctx context.Context, con *Bridge, name string, session *learned.Session, calls []learned.Call, o learnOptions) error {
	tools, err := session.Tools(ctx)
	if err != nil {
		return err
	}
	con.Told("%s runs without a box, with %s: %s", name, cli.Count(len(tools), "tool"), strings.Join(tools, ", "))
	if named, why := session.Named(); !named {
		con.Told("the names of its hosts are not known, because it can't have a network of its own: %s", why)
	}
	lasts := ctx
	if o.lasts > 0 {
		var cancel context.CancelFunc
		lasts, cancel = context.WithTimeout(ctx, o.lasts)
		defer cancel()
	}
	for _, call := range calls {
		makeCall(lasts, con, session, call)
	}
	if len(calls) == 0 {
		readCalls(lasts, con, session)
	} else if o.lasts > 0 {
		select {
		case <-lasts.Done():
		case <-session.Ended():
		}
	}
	return nil
}

func makeCall(ctx context.Context, con *Bridge, session *learned.Session, call learned.Call) {
	if err := session.Make(ctx, call); err != nil {
		con.Told("%v", err)
		return
	}
	con.Told("%s: done", call.Tool)
}

// readCalls makes the calls of standard input, until that, the time or the server ends. The
// goroutine that reads ends with the program.
func readCalls(ctx context.Context, con *Bridge, session *learned.Session) {
	con.Told(`calls are read from standard input, one a line: {"tool": "NAME", "args": {}}; its end or Ctrl-C ends this`)
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(con.In); in.Scan(); {
			select {
			case lines <- []byte(in.Text()):
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-session.Ended():
			con.Told("the server has ended")
			return
		case line, more := <-lines:
			if !more {
				return
			}
			if len(strings.TrimSpace(string(line))) == 0 {
				continue
			}
			call, err := learned.ParseCall(line)
			if err != nil {
				con.Told("%v", err)
				continue
			}
			makeCall(ctx, con, session, call)
		}
	}
}

// surroundings is what a proposal has to know of this machine.
func surroundings(con *Bridge, cfg *config.Config, server learned.Server, name string) (learned.Around, error) {
	home, _ := con.Env("HOME")
	a := learned.Around{Home: home, Temp: []string{"/tmp", "/var/tmp"}, System: confine.Had}
	a.Had = append(confine.Needs(server.Command, server.Env), learned.Kept(home, server.Env)...)
	a.Fetched = upstream.Fetches(server.Command, server.Args, os.Environ(), server.Env)
	here, err := os.Getwd()
	if err != nil {
		return a, fmt.Errorf("finding the folder that this is started in: %w", err)
	}
	asked := &config.Server{Name: name, Confine: &config.Confine{Read: config.Folders{config.WorkspaceWord}}}
	if box, err := cfg.Box(asked, here); err == nil { // without a workspace there is none to propose
		a.Workspace = box.Read
	}
	own, err := workspace.New(nil, con.OwnFiles(cfg))
	if err != nil {
		return a, err
	}
	a.Secret = func(path string) string { return own.Locate(path, "").Secret }
	return a, nil
}

// showLearned shows a proposal, and writes it.
func showLearned(con *Bridge, cfg *config.Config, name string, p learned.Proposal, apply bool) error {
	was := cfg.Servers[name].Confine
	text, err := learned.Text(p.Confine(con.HomeShort, was != nil && was.Require))
	if err != nil {
		return err
	}
	if !con.JSON {
		con.PrintLines(p.Lines(con.HomeShort))
		con.PrintLines([]string{"the smallest box with that", `  "confine": ` + text})
	}
	if apply {
		if err := writeBox(con, name, text); err != nil {
			return err
		}
	} else {
		con.Told("write it into the server %s of %s, or run this again with --apply", name, con.HomeShort(cfg.File))
	}
	if con.JSON {
		return con.PrintJSON(map[string]any{
			"server": name, "confine": json.RawMessage(text), "used": p.Used, "notProposed": p.Not, "applied": apply,
		})
	}
	return nil
}

// writeBox gives a server a box, in the place of the one that it has.
func writeBox(con *Bridge, name, box string) error {
	var diff []string
	var suffix string
	err := con.Edit(func(text []byte, cfg *config.Config) ([]byte, error) {
		if err := con.Usable(cfg, name); err != nil {
			return nil, err
		}
		at := setup.ServersKey(cfg) + "/" + name + "/confine"
		section, err := jsonc.Section(text, at)
		if err != nil {
			return nil, err
		}
		var next []byte
		if section == nil {
			next, err = jsonc.Insert(text, at, jsonc.Text(box))
		} else {
			next, err = jsonc.Replace(text, at, jsonc.Text(box))
		}
		if err != nil {
			return nil, err
		}
		diff, suffix = setup.Diff(con.HomeShort(cfg.File), text, next, setup.Secrets(text)), con.Flag(cfg)
		return next, nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(con.Err, strings.Join(diff, "\n"))
	con.Told("if the edit waits for an approver, codemode-bridge config confirm takes it over%s", suffix)
	return nil
}
