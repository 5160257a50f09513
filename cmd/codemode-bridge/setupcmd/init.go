package setupcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/profiles/templates"

	"github.com/spf13/cobra"
)

// Init is the command that writes a first configuration, with the servers that the person's
// clients have.
func (con *Bridge) Init() *cobra.Command {
	var o initOptions
	names := setup.ClientNames()
	c := &cobra.Command{
		Use: "init", Short: "Write a configuration with your clients' servers", Args: cli.NoArgs,
		Long: "Looks for MCP servers in the files of your clients (" + strings.Join(names, ", ") + "),\n" +
			"shows them, and writes a configuration with them, with the folder that you are in as the workspace, and a\n" +
			"template that says what scripts may do. Where the bridge knows what the tools of a server do, you are asked\n" +
			"once whether you accept that (servers known NAME shows it); the version is pinned then, and where the\n" +
			"bridge proposes a box for it, it is confined to that (--no-confine leaves it out).\n" +
			"Files in the folder that you are in come with it, from whoever wrote it: they are told of, and read if\n" +
			"--from names them. Each server that is on is started once,\n" +
			"because the tools that they list now are what you use: they are accepted as they are, and those that are\n" +
			"new or change later stay hidden from scripts until tools review accepts them. What you have allowed your\n" +
			"clients to call without asking is shown then, as far as scripts would have to ask for it, and you are asked\n" +
			"once whether they may, too. For each value that looks like a secret you are asked, at a terminal, whether it moves\n" +
			"into the keyring, and \"${keyring:NAME}\" into the configuration; without a keyring, into a file of yours alone.\n" +
			"The clients' own files stay as they are: install --take-over changes one.",
		Example: "  codemode-bridge init\n  codemode-bridge init --from cursor --from ~/work/.mcp.json --dry-run",
		RunE:    func(c *cobra.Command, _ []string) error { return initConfig(c.Context(), con, o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.from, "from", nil, "look only here: a `client` (its file for you) or a file; may be repeated")
	f.BoolVarP(&o.yes, "yes", "y", false, "write without asking")
	f.BoolVar(&o.dry, "dry-run", false, "show what would be written and write nothing")
	f.BoolVar(&o.pin, "pin", true, "start the servers once and accept the tools that they have now; new and changed ones stay hidden from scripts")
	f.StringVar(&o.template, "template", "coding", "what scripts may do: the `name` of a template (profiles templates)")
	cli.AcceptFlag(c, &o.accept)
	allowedFlag(c, &o.allowed)
	f.BoolVar(&o.force, "force", false, "replace a configuration that is there; a copy is kept")
	con.JSONFlag(c)
	cli.Complete(c, "template", templates.Names())
	cli.CompleteWith(c, "from", cobra.FixedCompletions(names, cobra.ShellCompDirectiveDefault))
	return c
}

type initOptions struct {
	from            []string
	template        string
	accept          cli.Acceptance
	allowed         bool
	yes, dry, force bool
	pin             bool
}

func initConfig(ctx context.Context, con *Bridge, o initOptions) error {
	path, err := con.File()
	if err != nil {
		return err
	}
	if o.allowed && !o.pin {
		return &cli.UsageError{Err: errors.New("--allowed needs the tools that servers list: leave --pin=false out")}
	}
	file, err := clients.ReadFile(path)
	if err != nil {
		return err
	}
	if file.Existed && !o.force && !o.dry {
		return con.Refuse(fmt.Errorf("there is a configuration at %s already", con.Shown(path)),
			"--force replaces it and keeps a copy; servers add adds a server, install --take-over those of a client")
	}
	plan, err := planned(con, path, o.template)
	if err != nil {
		return err
	}
	if !plan.Identify(file.Text) {
		con.Told("the id of the configuration that is there cannot be read: the new one has another, and paused runs and open questions stay with the old one")
	}
	found := setup.NewFirst(con.System())
	if !o.accept.Unconfined {
		found.Boxes = setup.NewBoxes(con.System(), plan.Workspace)
	}
	err = found.Find(o.from, func(place clients.Place, err error) { fmt.Fprintf(con.Err, "passed over %s: %v\n", place, err) })
	if errors.Is(err, setup.ErrNoSource) {
		return &cli.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	write := func() ([]byte, error) {
		return setup.First(found, plan, func(text []byte) error {
			_, err := con.Parse(path, text)
			return err
		})
	}
	if _, err := write(); err != nil { // now it is known which servers can be taken
		return err
	}
	if con.JSON && !o.yes && !o.dry {
		return &cli.UsageError{Err: errors.New("--json asks nothing: add --yes or --dry-run")}
	}
	if !con.JSON {
		if err := printFound(con, found); err != nil {
			return err
		}
		if plan.NoWorkspace != "" {
			con.Told("no workspace is named: %s; scripts work on the folder that their client works in", canon.Escape(plan.NoWorkspace))
		}
	}
	if err := chooseFound(con, found, o.yes || o.dry || con.JSON); err != nil {
		return err
	}
	if some, question := setup.Acceptable(found.New()); len(some) > 0 {
		if err := acceptServers(con, o.accept, some, question, o.yes || o.dry || con.JSON); err != nil {
			return err
		}
	}
	text, err := write()
	if err != nil {
		return err
	}
	if !con.JSON {
		for _, line := range append(setup.BoxWords(found.New(), cli.NoConfine), setup.SessionWords(found.New())...) {
			con.Told("%s", line)
		}
	}
	if o.dry {
		return showFirst(con, found, path, file.Text, text)
	}
	if err := con.Confirm(firstQuestion(con, o, path, plan, found.New()), o.yes); err != nil {
		return err
	}
	if err := keepSecrets(ctx, con, found.New(), path, o.yes || con.JSON); err != nil {
		return err
	}
	if text, err = write(); err != nil {
		return err
	}
	if o.pin {
		if err := con.Pin(ctx, path, text, found.New()); err != nil {
			return err
		}
		if err := bringOver(con, &plan, found, path, text, o); err != nil {
			return err
		}
		if text, err = write(); err != nil {
			return err
		}
	}
	return writeFirst(con, o, found, path, file, text)
}

// chooseFound asks about servers that are in the configuration twice, and about those that
// run commands and would be more clients' than now.
func chooseFound(con *Bridge, found *setup.Import, quiet bool) error {
	leave := func(some []*setup.Server, question string, why func(*setup.Server) string) error {
		if len(some) == 0 {
			return nil
		}
		keep, err := con.choose(question, quiet)
		for _, s := range some {
			if err == nil && !keep {
				s.Problem = why(s)
			}
		}
		return err
	}
	twins := setup.Twins(found.New())
	err := leave(twins, setup.TwinsQuestion(twins), func(s *setup.Server) string { return "it is " + s.Twin + " with other arguments or variables" })
	if err != nil {
		return err
	}
	only, question := setup.OneOnly(found.New())
	return leave(only, question, func(s *setup.Server) string { return "only " + s.From[0] + " is to have it" })
}

// bringOver offers what the person has allowed their clients to call without asking.
func bringOver(con *Bridge, plan *setup.Plan, found *setup.Import, path string, text []byte, o initOptions) error {
	cfg, err := con.Parse(path, text)
	if err != nil {
		return err
	}
	found.Offer(o.from, cfg.Profiles.Default())
	yes, err := agreeToOffers(con, found, o.allowed, o.yes)
	if err != nil {
		return err
	}
	if !yes {
		if !con.JSON && found.Offered() > 0 {
			con.Told("what your clients may call is not brought over: %s does it, and your own rules can", con.Typed("init --force --allowed"))
		}
		return nil
	}
	plan.Rules = found.TakeOffers()
	return nil
}

// firstResult is what --json prints of a new configuration.
func firstResult(found *setup.Import, path string, written bool) map[string]any {
	result := map[string]any{"file": path, "written": written, "servers": setup.Rows(found.Servers)}
	if len(found.LeftOut) > 0 {
		result["left_out"] = found.LeftOut
	}
	if len(found.Offers) > 0 {
		result["allowed"] = found.Offers
	}
	return result
}

// showFirst shows what would be written.
func showFirst(con *Bridge, found *setup.Import, path string, before, after []byte) error {
	if con.JSON {
		return con.PrintJSON(firstResult(found, path, false))
	}
	fmt.Fprintln(con.Out)
	con.PrintLines(setup.Diff(con.Shown(path), before, after, append(setup.Secrets(before), found.Secrets()...)))
	fmt.Fprintln(con.Err, "nothing was written")
	return nil
}

// firstQuestion asks whether to write, and to start the servers before that.
func firstQuestion(con *Bridge, o initOptions, path string, plan setup.Plan, taken []*setup.Server) string {
	question := fmt.Sprintf("write %s with %s of your clients, %s?", con.HomeShort(con.Shown(path)), cli.Count(len(taken), "server"), plan.Words(con.HomeShort))
	if on := len(setup.Pinnable(taken)); o.pin && on > 0 {
		question = fmt.Sprintf("start %s of these once, now, to accept the tools that they have (--pin=false: start nothing), and %s", cli.Count(on, "server"), question)
	}
	return question
}

// writeFirst writes a new configuration, and says what to do next.
func writeFirst(con *Bridge, o initOptions, found *setup.Import, path string, file *clients.File, text []byte) error {
	result := firstResult(found, path, true)
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
	taken := found.New()
	tellSecrets(con, taken, con.HasPerson() && !o.yes)
	for _, line := range setup.PinnedWords(taken, con.Typed("tools review"), con.Typed("init --force")) {
		con.Told("%s", line)
	}
	fmt.Fprintf(con.Err, "next: %s\n", con.Typed("doctor"))
	fmt.Fprintf(con.Err, "      %s\n", con.Typed("install "+found.Client()))
	fmt.Fprintln(con.Err, "      the same with --take-over, so that the model cannot call its servers past the bridge")
	return nil
}

// planned says what a new configuration has besides servers: a template, and the folder
// that the person is in.
func planned(con *Bridge, path, template string) (setup.Plan, error) {
	t, ok := templates.Find(template)
	if !ok {
		return setup.Plan{}, &cli.UsageError{Err: fmt.Errorf("there is no template %q; there are: %s", template, strings.Join(templates.Names(), ", "))}
	}
	p := setup.Plan{Profile: strings.ReplaceAll(t.Name, "-", "_"), Extends: t.Reference()}
	p.WorkspaceIn(con.System().Folder, con.OwnFiles(path))
	return p, nil
}

// printFound prints the servers that were found, and the places that were left out.
func printFound(con *Bridge, found *setup.Import) error {
	for _, l := range found.LeftOut {
		con.Told("left out: %s of %s; %s (--from %s takes them, beside a --from for each client that you want)",
			cli.Count(l.Servers, "server"), l.Place, l.Why, l.From)
	}
	if len(found.Servers) == 0 {
		fmt.Fprintln(con.Err, "your clients have no servers that could be found")
		return nil
	}
	return con.Table(setup.Table(found.Servers))
}

// acceptServers marks the servers of which the person accepts what is known.
func acceptServers(con *Bridge, a cli.Acceptance, some []*setup.Server, question string, quiet bool) error {
	if len(some) == 0 {
		return nil
	}
	yes, err := a.Settle(con.Console, question, quiet)
	for _, s := range some {
		s.Accepted = yes
	}
	return err
}
