package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// initCommand writes a first configuration, with the servers that the person's
// clients have.
func initCommand(con *console) *cobra.Command {
	var o initOptions
	names := setup.ClientNames()
	c := &cobra.Command{
		Use: "init", Short: "Write a configuration with your clients' servers", Args: cli.NoArgs,
		Long: "Looks for MCP servers in the files of your clients (" + strings.Join(names, ", ") + "),\n" +
			"shows them, and writes a configuration with them. Files in the folder that you are in come with it, from\n" +
			"whoever wrote it: they are told of, and read if --from names them. Each server that is on is started once,\n" +
			"because the tools that they list now are what you use: they are accepted as they are, and those that are\n" +
			"new or change later stay hidden from scripts until tools review accepts them. The clients' own files stay\n" +
			"as they are: install --take-over changes one.",
		Example: "  codemode-bridge init\n  codemode-bridge init --from cursor --from ~/work/.mcp.json --dry-run",
		RunE:    func(c *cobra.Command, _ []string) error { return initConfig(c.Context(), con, o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.from, "from", nil, "look only here: a `client` (its file for you) or a file; may be repeated")
	f.BoolVarP(&o.yes, "yes", "y", false, "write without asking")
	f.BoolVar(&o.dry, "dry-run", false, "show what would be written and write nothing")
	f.BoolVar(&o.pin, "pin", true, "start the servers once and accept the tools that they have now; new and changed ones stay hidden from scripts")
	f.BoolVar(&o.force, "force", false, "replace a configuration that is there; a copy is kept")
	con.JSONFlag(c)
	cli.CompleteWith(c, "from", cobra.FixedCompletions(names, cobra.ShellCompDirectiveDefault))
	return c
}

type initOptions struct {
	from            []string
	yes, dry, force bool
	pin             bool
}

func initConfig(ctx context.Context, con *console, o initOptions) error {
	path, err := con.file()
	if err != nil {
		return err
	}
	file, err := clients.ReadFile(path)
	if err != nil {
		return err
	}
	if file.Existed && !o.force && !o.dry {
		return &configError{fmt.Errorf("there is a configuration at %s already", con.shown(path)),
			"--force replaces it and keeps a copy; servers add adds a server, install --take-over those of a client"}
	}
	found := setup.NewFirst(clientSystem(con))
	err = found.Find(o.from, func(place clients.Place, err error) { fmt.Fprintf(con.Err, "passed over %s: %v\n", place, err) })
	if errors.Is(err, setup.ErrNoSource) {
		return &cli.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	good := func(text []byte) error {
		_, err := config.Parse(path, text, con.Env, con.policy(path))
		return err
	}
	text, err := setup.First(found, good)
	if err != nil {
		return err
	}
	if con.JSON && !o.yes && !o.dry {
		return &cli.UsageError{Err: errors.New("--json asks nothing: add --yes or --dry-run")}
	}
	if !con.JSON {
		if err := printFound(con, found); err != nil {
			return err
		}
	}
	taken := found.New()
	result := map[string]any{"file": path, "written": !o.dry, "servers": setup.Rows(found.Servers)}
	if len(found.LeftOut) > 0 {
		result["left_out"] = found.LeftOut
	}
	if o.dry {
		if con.JSON {
			return con.PrintJSON(result)
		}
		fmt.Fprintln(con.Out)
		con.PrintLines(setup.Diff(con.shown(path), file.Text, text, append(setup.Secrets(file.Text), found.Secrets()...)))
		fmt.Fprintln(con.Err, "nothing was written")
		return nil
	}
	question := fmt.Sprintf("write %s with %s of your clients?", con.shown(path), cli.Count(len(taken), "server"))
	if on := len(pinnable(taken)); o.pin && on > 0 {
		question = fmt.Sprintf("start %s of these once, now, to accept the tools that they have (--pin=false: start nothing), and %s", cli.Count(on, "server"), question)
	}
	if err := confirm(con, question, o.yes); err != nil {
		return err
	}
	if o.pin {
		if err := pinTools(ctx, con, path, text, taken); err != nil {
			return err
		}
		if text, err = setup.First(found, good); err != nil {
			return err
		}
		result["servers"] = setup.Rows(found.Servers)
	}
	if file.Existed {
		backup, err := file.Backup()
		if err != nil {
			return err
		}
		result["backup"] = backup
		fmt.Fprintf(con.Err, "a copy of the old one is at %s\n", con.HomeShort(backup))
	}
	file.Private()
	if err := file.Write(text); err != nil {
		return err
	}
	if con.JSON {
		return con.PrintJSON(result)
	}
	fmt.Fprintf(con.Err, "wrote %s, which only you can read\n", con.HomeShort(path))
	if slices.ContainsFunc(taken, func(s *setup.Server) bool { return len(s.Secrets) > 0 }) {
		con.Told(`values of env and headers stand in it as your clients had them; better: write "${NAME}" and set NAME`)
	}
	sayPinned(con, taken)
	nextSteps(con, found)
	return nil
}

// nextSteps prints what to do next with a new configuration.
func nextSteps(con *console, found *setup.Import) {
	client := "CLIENT"
	for _, s := range found.Servers {
		if i := slices.IndexFunc(clients.All(), func(c clients.Client) bool { return strings.HasPrefix(s.From[0], c.Title+" (") }); i >= 0 {
			client = clients.All()[i].Name
			break
		}
	}
	with := ""
	if con.configPath != "" {
		with = " --config " + con.configPath
	}
	fmt.Fprintf(con.Err, "next: codemode-bridge doctor%s\n", with)
	fmt.Fprintf(con.Err, "      codemode-bridge install %s%s\n", client, with)
	fmt.Fprintln(con.Err, "      the same with --take-over, so that the model cannot call its servers past the bridge")
}

// printFound prints the servers that were found, and the places that were left out.
func printFound(con *console, found *setup.Import) error {
	for _, l := range found.LeftOut {
		con.Told("left out: %s of %s; whoever wrote this folder may have named the programs (--from %s takes them, beside a --from for each client that you want)",
			cli.Count(l.Servers, "server"), l.Place, l.From)
	}
	if len(found.Servers) == 0 {
		fmt.Fprintln(con.Err, "your clients have no servers that could be found")
		return nil
	}
	return printServers(con, found.Servers)
}

// clientSystem says where to look for the files of clients.
func clientSystem(con *console) clients.System {
	folder, err := os.Getwd()
	if err != nil {
		folder = ""
	}
	return clients.System{OS: runtime.GOOS, Env: con.Env, Folder: folder}
}

// printServers prints servers as a table with everything that they run and use,
// because the person decides by it.
func printServers(con *console, all []*setup.Server) error {
	rows := [][]string{{"name", "how it runs"}}
	for _, s := range all {
		more := []string{"from " + strings.Join(s.From, ", ")}
		if names := s.VariableNames(); names != "" {
			more = append(more, "given "+names)
		}
		if uses := s.Uses(); len(uses) > 0 {
			more = append(more, "reads ${"+strings.Join(uses, "} ${")+"}")
		}
		if remark := s.Remark(); remark != "" {
			more = append(more, remark)
		}
		rows = append(rows, []string{canon.Escape(s.Name), s.Runs() + "\n" + strings.Join(more, "; ")})
	}
	return con.Table(rows)
}

// confirm asks at the terminal, unless --yes has answered in advance.
func confirm(con *console, question string, yes bool) error {
	if yes {
		return nil
	}
	file, ok := con.In.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &cli.UsageError{Err: errors.New("there is no terminal to ask at: --yes goes ahead, --dry-run only shows")}
	}
	fmt.Fprint(con.Err, con.Fitted(question+" [y/N]"), " ")
	var answer string
	if _, err := fmt.Fscanln(file, &answer); err != nil && !errors.Is(err, io.EOF) && err.Error() != "unexpected newline" {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if answer = strings.ToLower(answer); answer == "y" || answer == "yes" {
		return nil
	}
	return errNothingDone
}

var errNothingDone = errors.New("nothing was changed")
