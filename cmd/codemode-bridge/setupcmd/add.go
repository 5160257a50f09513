package setupcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/bridge/secrets"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// AddServer is the command that adds a server to the configuration.
func (con *Bridge) AddServer() *cobra.Command {
	var o setup.Flags
	var accept cli.Acceptance
	var untried bool
	c := &cobra.Command{
		Use: "add name [url | json | -- command args...]", Short: "Add a server to the configuration", Args: cli.MinArgs(2),
		Long: "Adds a server: a program that is started, an address, or the JSON of its documentation, in single quotes, as\n" +
			"the configuration or other clients have it, alone or with mcpServers around it. Values stand in the file as they are written\n" +
			"here; '${NAME}', in single quotes, is a variable and keeps a secret out of it. If the bridge knows the server, it says\n" +
			"so; once you accept that, the version is pinned and rules about what calls mean hold for it. Then it connects to\n" +
			"the server and says what it has, or what is wrong (--no-try leaves that out).",
		Example: "  codemode-bridge servers add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes\n" +
			"  codemode-bridge servers add airtable --env 'AIRTABLE_API_KEY=${AIRTABLE_API_KEY}' -- npx -y airtable-mcp-server\n" +
			"  codemode-bridge servers add github https://api.githubcopilot.com/mcp/ --header 'Authorization=Bearer ${GITHUB_TOKEN}'\n" +
			`  codemode-bridge servers add time '{"command": "uvx", "args": ["mcp-server-time"]}'`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 && c.ArgsLenAtDash() < 0 && strings.HasPrefix(strings.TrimSpace(args[1]), "{") {
				for _, flag := range []string{"transport", "header", "env", "pass-env", "cwd", "disabled"} {
					if c.Flags().Changed(flag) {
						return &cli.UsageError{Err: fmt.Errorf("--%s does not go with JSON: write it there", flag)}
					}
				}
				return addServerJSON(c.Context(), con, args[0], args[1], o.Replace, untried, accept)
			}
			server, err := setup.FromFlags(o, args, c.ArgsLenAtDash())
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			return addServer(c.Context(), con, args[0], server.Text(), o.Replace, untried, accept)
		},
	}
	cli.AcceptFlag(c, &accept)
	f := c.Flags()
	f.StringVarP(&o.Transport, "transport", "t", "", "how it is reached: `stdio`, http or sse (default: inferred)")
	f.StringArrayVarP(&o.Headers, "header", "H", nil, "a `NAME=VALUE` that is sent with every message; may be repeated")
	f.StringArrayVarP(&o.Env, "env", "e", nil, "a `NAME=VALUE` that the program gets; may be repeated")
	f.StringArrayVar(&o.PassEnv, "pass-env", nil, "the `name` of a variable that is let through to the program; may be repeated")
	f.StringVar(&o.Cwd, "cwd", "", "the `folder` that the program starts in")
	f.BoolVar(&o.Disabled, "disabled", false, "add it, disabled")
	f.BoolVar(&o.Replace, "force", false, "replace a server of this name")
	f.BoolVar(&untried, "no-try", false, noTry)
	con.JSONFlag(c)
	cli.CompleteWith(c, "transport", cobra.FixedCompletions([]cobra.Completion{"stdio", "http", "sse"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// noTry is what the flag --no-try does.
const noTry = "add it without connecting to it"

// AddServerJSON is an older spelling of AddServer for a server that is given as JSON.
func (con *Bridge) AddServerJSON() *cobra.Command {
	var replace, untried bool
	var accept cli.Acceptance
	c := &cobra.Command{
		Use: "add-json name json", Short: "Add a server from the JSON in its documentation", Args: cli.ExactArgs(2),
		Long: "Adds a server from a piece of JSON: as the configuration has it, or as other clients have it. A piece with\n" +
			"mcpServers or servers around it will do if it has one server. Variables become \"${NAME}\".",
		Example: `  codemode-bridge servers add-json time '{"command": "uvx", "args": ["mcp-server-time"]}'`,
		RunE: func(c *cobra.Command, args []string) error {
			return addServerJSON(c.Context(), con, args[0], args[1], replace, untried, accept)
		},
	}
	cli.AcceptFlag(c, &accept)
	c.Flags().BoolVar(&replace, "force", false, "replace a server of this name")
	c.Flags().BoolVar(&untried, "no-try", false, noTry)
	con.JSONFlag(c)
	return con.Older(c, "servers add NAME JSON")
}

// addServerJSON is addServer for a server that is given as JSON.
func addServerJSON(ctx context.Context, con *Bridge, name, given string, replace, untried bool, accept cli.Acceptance) error {
	text, notes, err := setup.FromJSON(con.System(), name, []byte(given))
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	for _, note := range notes {
		fmt.Fprintln(con.Err, note)
	}
	if err := agreeToTake(con, name, text); err != nil {
		return err
	}
	return addServer(ctx, con, name, text, replace, untried, accept)
}

// agreeToTake asks whether a server may have what its JSON takes from this machine: who
// copies that out of a document does not expect it to run a command or to read a file.
func agreeToTake(con *Bridge, name string, text jsonc.Text) error {
	plain, err := text.MarshalJSON()
	var server any
	if err == nil {
		err = json.Unmarshal(plain, &server)
	}
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("reading the JSON of %s: %w", name, err)}
	}
	what := taken(server)
	if len(what) == 0 {
		return nil
	}
	if !con.HasPerson() {
		return &cli.UsageError{Err: fmt.Errorf("the JSON of %s has %s, and there is no terminal to ask at: take that out, or write the server into the configuration file", name, strings.Join(what, ", "))}
	}
	return con.Confirm(fmt.Sprintf("the JSON of %s has it get what is on this machine: %s; add it?", name, strings.Join(what, ", ")), false)
}

// taken returns the references in a JSON value that run a command or read a file, for
// people to read.
func taken(value any) (all []string) {
	switch v := value.(type) {
	case string:
		x, _ := secrets.Expand(v, nil, nil)
		for _, r := range x.Named {
			switch r.Kind {
			case secrets.Exec:
				all = append(all, canon.Escape(r.String())+" (runs a command)")
			case secrets.File:
				all = append(all, canon.Escape(r.String())+" (reads a file)")
			}
		}
	case []any:
		for _, one := range v {
			all = append(all, taken(one)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, taken(v[key])...)
		}
	}
	return all
}

// addServer writes a server into the configuration and, unless it is to be left untried or
// is disabled, connects to it once. It is added whatever comes of that.
func addServer(ctx context.Context, con *Bridge, name string, text jsonc.Text, replace, untried bool, accept cli.Acceptance) error {
	if legal := config.ServerName(name); legal != name {
		return &cli.UsageError{Err: fmt.Errorf("a server cannot be called %q: letters, digits, - and single _ between them, and no name that scripts need; %q would do", name, legal)}
	}
	there := &cli.UsageError{Err: fmt.Errorf("the configuration has a server %q already; --force replaces it", name)}
	cfg, err := con.Load() // before anybody is told or asked something about a server that cannot be added
	if err != nil {
		return err
	}
	if _, has := cfg.Servers[name]; has && !replace {
		return there
	}
	words, says := setup.Known(text)
	if !con.JSON {
		con.Told("%s is %s", name, words)
	}
	accepted := false
	if says != "" {
		var err error
		accepted, err = accept.Settle(con.Console, setup.AcceptQuestion(name), con.JSON)
		if err == nil && accepted {
			text, err = setup.Accept(text)
		}
		if err != nil {
			return err
		}
	}
	text, separate := setup.PerSession(text)
	if separate && !con.JSON {
		con.Told("%s", setup.SessionsOf(name))
	}
	done := "added"
	err = con.Edit(func(old []byte, cfg *config.Config) ([]byte, error) {
		text := text
		if accepted && !accept.Unconfined {
			var err error
			if text, err = con.Confined("", name, text, cfg); err != nil {
				return nil, err
			}
		}
		next, replaced, err := setup.AddServer(old, cfg, name, text, replace)
		switch {
		case errors.Is(err, setup.ErrThere):
			return nil, there
		case replaced:
			done = "replaced"
		}
		return next, err
	})
	if err != nil {
		return err
	}
	if off, err := jsonc.Section(text, "/disabled"); untried || err != nil || string(off) == "true" {
		return con.SayServer(name, done)
	}
	return con.tryAdded(ctx, name, done)
}

// tryAdded says that a server was added, and how connecting to it went.
func (con *Bridge) tryAdded(ctx context.Context, name, done string) error {
	if !con.JSON {
		if err := con.SayServer(name, done); err != nil {
			return err
		}
	}
	tried, err := con.Try(ctx, name)
	switch {
	case err != nil:
		return err
	case con.JSON:
		return con.PrintJSON(map[string]any{"server": name, "done": done, "tried": tried})
	case tried.OK:
		con.Told("%s answers: %s", name, tried.Text)
		return nil
	}
	con.Told("%s does not work yet: %s", name, tried.Text)
	for _, line := range tried.Said {
		con.Told("  %s", line)
	}
	con.Told("do: %s", tried.Do)
	return nil
}

// Confined returns the text of a configuration, or of a server alone, with the box that is
// proposed for the accepted server at a JSON pointer, and says so.
func (con *Bridge) Confined(at, name string, text []byte, cfg *config.Config) ([]byte, error) {
	next, p, err := setup.NewBoxes(con.System(), cfg.Evaluation.Workspace...).ConfineIn(text, at)
	switch {
	case err != nil || con.JSON:
	case len(p.Box) > 0:
		con.Told("%s is confined: %s (%s leaves that out)", name, canon.Escape(p.Words), cli.NoConfine)
	case p.Why != "":
		con.Told("%s", p.Unconfined(name))
	}
	return next, err
}

// SayServer says that an edit of a server was made.
func (con *Bridge) SayServer(name, done string) error {
	if con.JSON {
		return con.PrintJSON(map[string]string{"server": name, "done": done})
	}
	_, err := fmt.Fprintf(con.Out, "%s %s\n", done, name)
	return err
}
