package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/setup"

	"github.com/spf13/cobra"
)

// addServerEdits gives the group of servers the commands that change which
// there are. Comments and order of the file stay; what would be a mistake is
// not written; a bridge that runs takes an edit over by itself.
func addServerEdits(con *console, group *cobra.Command) {
	remove := &cobra.Command{
		Use: "remove name", Short: "Remove a server from the configuration", Args: exactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return editServer(con, args[0], "removed", func(text []byte, at string) ([]byte, error) { return config.Remove(text, at) })
		},
	}
	enable := &cobra.Command{
		Use: "enable name", Short: "Use a server that is disabled", Args: exactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return switchServer(con, args[0], false) },
	}
	disable := &cobra.Command{
		Use: "disable name", Short: "Keep a server in the configuration without using it", Args: exactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return switchServer(con, args[0], true) },
	}
	for _, c := range []*cobra.Command{remove, enable, disable} {
		c.ValidArgsFunction = con.completeServers
		con.jsonFlag(c)
	}
	group.AddCommand(addServerCommand(con), addJSONCommand(con), remove, enable, disable, tryServersCommand(con))
}

// completeServers offers the servers of the configuration.
func (con *console) completeServers(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	cfg, err := con.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cfg.ServerNames(), cobra.ShellCompDirectiveNoFileComp
}

// newServer is what the flags of servers add say.
type newServer struct {
	transport, cwd    string
	headers, env      []string
	passEnv           []string
	disabled, replace bool
}

func addServerCommand(con *console) *cobra.Command {
	var o newServer
	c := &cobra.Command{
		Use: "add name [url | -- command args...]", Short: "Add a server to the configuration", Args: minArgs(2),
		Long: "Adds a server: a program that is started, or an address. Values stand in the file as they are written\n" +
			"here; '${NAME}', in single quotes, is a variable and keeps a secret out of it.",
		Example: "  codemode-bridge servers add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes\n" +
			"  codemode-bridge servers add airtable --env 'AIRTABLE_API_KEY=${AIRTABLE_API_KEY}' -- npx -y airtable-mcp-server\n" +
			"  codemode-bridge servers add github https://api.githubcopilot.com/mcp/ --header 'Authorization=Bearer ${GITHUB_TOKEN}'",
		RunE: func(c *cobra.Command, args []string) error {
			server, err := o.server(args, c.ArgsLenAtDash())
			if err != nil {
				return &usageError{err}
			}
			return addServer(con, args[0], server.Text(), o.replace)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.transport, "transport", "t", "", "how it is reached: `stdio`, http or sse (default: by what is given)")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "a `NAME=VALUE` that is sent with every message; may be repeated")
	f.StringArrayVarP(&o.env, "env", "e", nil, "a `NAME=VALUE` that the program gets; may be repeated")
	f.StringArrayVar(&o.passEnv, "pass-env", nil, "the `name` of a variable that is let through to the program; may be repeated")
	f.StringVar(&o.cwd, "cwd", "", "the `folder` that the program starts in")
	f.BoolVar(&o.disabled, "disabled", false, "add it without using it")
	f.BoolVar(&o.replace, "force", false, "replace a server of this name")
	con.jsonFlag(c)
	completeWith(c, "transport", cobra.FixedCompletions([]cobra.Completion{"stdio", "http", "sse"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// server is what the command line describes; dash is how many arguments stand
// before the "--", or -1.
func (o newServer) server(args []string, dash int) (*setup.Server, error) {
	s := &setup.Server{As: args[0], Server: clients.Server{Name: args[0], Cwd: o.cwd, PassEnv: o.passEnv, Disabled: o.disabled}}
	rest := args[1:]
	u, err := url.Parse(rest[0])
	address := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" || o.transport == "http" || o.transport == "sse"
	switch {
	case dash == 0:
		return nil, errors.New(`the name comes before the "--"`)
	case dash > 1:
		return nil, errors.New(`between the name and the "--" stand flags alone`)
	case address && o.transport != "stdio" && dash < 0:
		if len(rest) > 1 {
			return nil, fmt.Errorf("an address has no arguments, but %q follows it", rest[1])
		}
		s.Kind, s.URL = clients.HTTP, rest[0]
		if o.transport == "sse" {
			s.Kind = clients.SSE
		}
	case o.transport != "" && o.transport != "stdio":
		return nil, fmt.Errorf("--transport %s goes with an address, not with a command; it is stdio, http or sse", o.transport)
	default:
		s.Kind, s.Command, s.Args = clients.Stdio, rest[0], rest[1:]
	}
	if s.Env, err = pairs("--env", o.env, "="); err != nil {
		return nil, err
	}
	if s.Headers, err = pairs("--header", o.headers, "=:"); err != nil {
		return nil, err
	}
	switch {
	case s.Kind != clients.Stdio && (len(s.Env) > 0 || len(s.PassEnv) > 0 || s.Cwd != ""):
		return nil, errors.New("--env, --pass-env and --cwd are for programs; a server at an address has --header")
	case s.Kind == clients.Stdio && len(s.Headers) > 0:
		return nil, errors.New("--header is for servers at an address; a program has --env")
	}
	return s, nil
}

// pairs reads NAME=VALUE; for headers, NAME: VALUE as well.
func pairs(flag string, all []string, separators string) (map[string]string, error) {
	m := map[string]string{}
	for _, one := range all {
		i := strings.IndexAny(one, separators)
		if i <= 0 {
			return nil, fmt.Errorf("%s takes NAME=VALUE", flag) // what was given may be a secret
		}
		name, value := one[:i], one[i+1:]
		if one[i] == ':' {
			value = strings.TrimSpace(value)
		}
		m[name] = value
	}
	return m, nil
}

func addJSONCommand(con *console) *cobra.Command {
	var replace bool
	c := &cobra.Command{
		Use: "add-json name json", Short: "Add a server as its documentation has it for other clients", Args: exactArgs(2),
		Long: "Adds a server from a piece of JSON: as the configuration has it, or as other clients have it. A piece with\n" +
			"mcpServers or servers around it will do if it has one server. Variables become \"${NAME}\".",
		Example: `  codemode-bridge servers add-json time '{"command": "uvx", "args": ["mcp-server-time"]}'`,
		RunE: func(_ *cobra.Command, args []string) error {
			text, notes, err := serverJSON(con, args[0], []byte(args[1]))
			if err != nil {
				return err
			}
			for _, note := range notes {
				fmt.Fprintln(con.err, note)
			}
			return addServer(con, args[0], text, replace)
		},
	}
	c.Flags().BoolVar(&replace, "force", false, "replace a server of this name")
	con.jsonFlag(c)
	return c
}

// serverJSON is a piece of JSON as the configuration has it. What is good as it
// stands stays so, comments included.
func serverJSON(con *console, name string, text []byte) (config.JSONC, []string, error) {
	for _, key := range []string{"/mcpServers", "/servers", "/context_servers", "/mcp"} {
		section, err := config.Section(text, key)
		if err != nil {
			return nil, nil, &usageError{fmt.Errorf("the JSON of %s is not JSON: write it in single quotes, as one argument", name)}
		}
		if section == nil {
			continue
		}
		place, err := clients.At(clientSystem(con), "the JSON", text)
		if err != nil {
			return nil, nil, &usageError{err}
		}
		servers, err := place.Servers(text)
		if err != nil {
			return nil, nil, &usageError{err}
		}
		if len(servers) != 1 {
			return nil, nil, &usageError{fmt.Errorf("the JSON has %s, not one", count(len(servers), "server"))}
		}
		return translated(con, servers[0])
	}
	alone, err := config.Insert([]byte("{}"), "/servers/"+config.ServerName(name), config.JSONC(text))
	if err == nil {
		if _, err = config.Parse("config.json", alone, func(string) (string, bool) { return "x", true }); err == nil {
			return text, nil, nil
		}
	}
	server, err := clients.Entry(clientSystem(con), name, text)
	if err != nil {
		return nil, nil, &usageError{fmt.Errorf("reading the JSON of %s: %w", name, err)}
	}
	return translated(con, server)
}

// translated is a client's server as the configuration has it.
func translated(con *console, s clients.Server) (config.JSONC, []string, error) {
	if s.Problem != "" {
		return nil, nil, &usageError{fmt.Errorf("the server cannot be added: %s", s.Problem)}
	}
	notes := s.Notes
	s.Notes = nil
	return (&setup.Server{Server: s}).Text(), notes, nil
}

// addServer writes a server into the configuration.
func addServer(con *console, name string, text config.JSONC, replace bool) error {
	if legal := config.ServerName(name); legal != name {
		return &usageError{fmt.Errorf("a server cannot be called %q: letters, digits, - and single _ between them, and no name that scripts need; %q would do", name, legal)}
	}
	done := "added"
	err := editConfig(con, func(old []byte, cfg *config.Config) ([]byte, error) {
		at := setup.ServersKey(cfg) + "/" + name
		if !cfg.Has(at) {
			return config.Insert(old, at, text)
		}
		if !replace {
			return nil, &usageError{fmt.Errorf("the configuration has a server %q already; --force replaces it", name)}
		}
		done = "replaced"
		return config.Replace(old, at, config.JSONC(strings.ReplaceAll(string(text), "\n", "\n    ")))
	})
	if err != nil {
		return err
	}
	return sayServer(con, name, done)
}

// sayServer says that an edit was made.
func sayServer(con *console, name, done string) error {
	if con.json {
		return con.printJSON(map[string]string{"server": name, "done": done})
	}
	_, err := fmt.Fprintf(con.out, "%s %s\n", done, name)
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
	return &usageError{fmt.Errorf("there is no server %q; %s", name, known)}
}

// switchServer enables or disables a server.
func switchServer(con *console, name string, off bool) error {
	done := "enabled"
	if off {
		done = "disabled"
	}
	return editServer(con, name, done, func(text []byte, at string) ([]byte, error) {
		said, err := config.Section(text, at+"/disabled")
		switch {
		case err != nil:
			return nil, err
		case said == nil && off:
			return config.Insert(text, at+"/disabled", true)
		case said == nil:
			return text, nil
		case off:
			return config.Replace(text, at+"/disabled", config.JSONC("true"))
		}
		return config.Remove(text, at+"/disabled")
	})
}

// chosenServers are the servers that a command is about.
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
			return nil, &usageError{fmt.Errorf("the server %q is disabled; servers enable %s turns it on", name, name)}
		}
	}
	return slices.Clone(names), nil
}
