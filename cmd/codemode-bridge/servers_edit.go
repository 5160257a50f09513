package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// addServerEdits adds the commands that change which servers there are. They keep the
// file's comments and order, and write nothing that would be a mistake. A running
// bridge takes an edit over by itself.
func addServerEdits(con *console, group *cobra.Command) {
	remove := &cobra.Command{
		Use: "remove name", Short: "Remove a server from the configuration", Args: cli.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return editServer(con, args[0], "removed", func(text []byte, at string) ([]byte, error) { return config.Remove(text, at) })
		},
	}
	enable := &cobra.Command{
		Use: "enable name", Short: "Enable a disabled server", Args: cli.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return switchServer(con, args[0], false) },
	}
	disable := &cobra.Command{
		Use: "disable name", Short: "Disable a server, keeping it in the configuration", Args: cli.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return switchServer(con, args[0], true) },
	}
	accept := &cobra.Command{
		Use: "accept name", Short: "Accept what the bridge knows of a server, and pin its version", Args: cli.ExactArgs(1),
		Long: "Accepts what the bridge knows of a server of the configuration, as servers known shows it: \"known\" is written,\n" +
			"and the version that was verified is pinned where none is. Its calls are then judged by what they do.",
		RunE: func(_ *cobra.Command, args []string) error { return acceptServer(con, args[0]) },
	}
	for _, c := range []*cobra.Command{remove, enable, disable, accept} {
		c.ValidArgsFunction = con.completeServers
		con.JSONFlag(c)
	}
	group.AddCommand(addServerCommand(con), addJSONCommand(con), remove, enable, disable, accept, allowServerCommand(con), tryServersCommand(con), learnServerCommand(con), knownServersCommand(con))
}

// completeServers completes with the servers of the configuration.
func (con *console) completeServers(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	cfg, err := con.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cfg.ServerNames(), cobra.ShellCompDirectiveNoFileComp
}

func addServerCommand(con *console) *cobra.Command {
	var o setup.Flags
	var accept cli.Acceptance
	c := &cobra.Command{
		Use: "add name [url | -- command args...]", Short: "Add a server to the configuration", Args: cli.MinArgs(2),
		Long: "Adds a server: a program that is started, or an address. Values stand in the file as they are written\n" +
			"here; '${NAME}', in single quotes, is a variable and keeps a secret out of it. If the bridge knows the server, it says\n" +
			"so; once you accept that, the version is pinned and rules about what calls mean hold for it.",
		Example: "  codemode-bridge servers add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes\n" +
			"  codemode-bridge servers add airtable --env 'AIRTABLE_API_KEY=${AIRTABLE_API_KEY}' -- npx -y airtable-mcp-server\n" +
			"  codemode-bridge servers add github https://api.githubcopilot.com/mcp/ --header 'Authorization=Bearer ${GITHUB_TOKEN}'",
		RunE: func(c *cobra.Command, args []string) error {
			server, err := setup.FromFlags(o, args, c.ArgsLenAtDash())
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			return addServer(con, args[0], server.Text(), o.Replace, accept)
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
	con.JSONFlag(c)
	cli.CompleteWith(c, "transport", cobra.FixedCompletions([]cobra.Completion{"stdio", "http", "sse"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func addJSONCommand(con *console) *cobra.Command {
	var replace bool
	var accept cli.Acceptance
	c := &cobra.Command{
		Use: "add-json name json", Short: "Add a server from the JSON in its documentation", Args: cli.ExactArgs(2),
		Long: "Adds a server from a piece of JSON: as the configuration has it, or as other clients have it. A piece with\n" +
			"mcpServers or servers around it will do if it has one server. Variables become \"${NAME}\".",
		Example: `  codemode-bridge servers add-json time '{"command": "uvx", "args": ["mcp-server-time"]}'`,
		RunE: func(_ *cobra.Command, args []string) error {
			text, notes, err := setup.FromJSON(clientSystem(con), args[0], []byte(args[1]))
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			for _, note := range notes {
				fmt.Fprintln(con.Err, note)
			}
			return addServer(con, args[0], text, replace, accept)
		},
	}
	cli.AcceptFlag(c, &accept)
	c.Flags().BoolVar(&replace, "force", false, "replace a server of this name")
	con.JSONFlag(c)
	return c
}

// addServer writes a server into the configuration.
func addServer(con *console, name string, text config.JSONC, replace bool, accept cli.Acceptance) error {
	if legal := config.ServerName(name); legal != name {
		return &cli.UsageError{Err: fmt.Errorf("a server cannot be called %q: letters, digits, - and single _ between them, and no name that scripts need; %q would do", name, legal)}
	}
	words, says := setup.Known(text)
	if !con.JSON {
		con.Told("%s is %s", name, words)
	}
	if says != "" {
		yes, err := accept.Settle(&con.Console, setup.AcceptQuestion(name), con.JSON)
		if err == nil && yes {
			text, err = setup.Accept(text)
		}
		if err != nil {
			return err
		}
	}
	done := "added"
	err := editConfig(con, func(old []byte, cfg *config.Config) ([]byte, error) {
		next, there, err := setup.AddServer(old, cfg, name, text, replace)
		switch {
		case errors.Is(err, setup.ErrThere):
			return nil, &cli.UsageError{Err: fmt.Errorf("the configuration has a server %q already; --force replaces it", name)}
		case there:
			done = "replaced"
		}
		return next, err
	})
	if err != nil {
		return err
	}
	return sayServer(con, name, done)
}

// sayServer says that an edit of a server was made.
func sayServer(con *console, name, done string) error {
	if con.JSON {
		return con.PrintJSON(map[string]string{"server": name, "done": done})
	}
	_, err := fmt.Fprintf(con.Out, "%s %s\n", done, name)
	return err
}

// editServer changes a server that the configuration has.
func editServer(con *console, name, done string, edit func(text []byte, at string) ([]byte, error)) error {
	err := editConfig(con, func(text []byte, cfg *config.Config) ([]byte, error) {
		if _, ok := cfg.Servers[name]; !ok {
			return nil, unknownServer(cfg, name)
		}
		return edit(text, setup.ServersKey(cfg)+"/"+name)
	})
	if err != nil {
		return err
	}
	return sayServer(con, name, done)
}

func unknownServer(cfg *config.Config, name string) error {
	known := "the configuration has none"
	if names := cfg.ServerNames(); len(names) > 0 {
		known = "there are: " + strings.Join(names, ", ")
	}
	return &cli.UsageError{Err: fmt.Errorf("there is no server %q; %s", name, known)}
}

// switchServer enables or disables a server.
func switchServer(con *console, name string, off bool) error {
	done := "enabled"
	if off {
		done = "disabled"
	}
	return editServer(con, name, done, func(text []byte, at string) ([]byte, error) {
		return setup.Switch(text, at, off)
	})
}

// chosenServers returns the names of the servers that a command is about: those given,
// which must exist and be enabled, or all enabled ones.
func chosenServers(cfg *config.Config, names []string, all bool) ([]string, error) {
	if all {
		return serverNames(cfg), nil
	}
	for _, name := range names {
		server, ok := cfg.Servers[name]
		if !ok {
			return nil, unknownServer(cfg, name)
		}
		if server.Disabled {
			return nil, &cli.UsageError{Err: fmt.Errorf("the server %q is disabled; servers enable %s turns it on", name, name)}
		}
	}
	return slices.Clone(names), nil
}
