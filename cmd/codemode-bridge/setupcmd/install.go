package setupcmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

type installOptions struct {
	scope                     string
	takeOver, print, yes, dry bool
	noQueue, allowed          bool
	managed                   bool
	root                      string // below which the machine's files are; empty: /
	accept                    cli.Acceptance
}

// Install is the command that puts the bridge into the file of a client.
func (con *Bridge) Install() *cobra.Command {
	var o installOptions
	c := &cobra.Command{
		Use: "install client", Short: "Put the bridge into the configuration of a client", Args: oneClient,
		Long: "Adds the server " + setup.EntryName + " to the configuration of a client: " + strings.Join(setup.ClientNames(), ", ") + ".\n" +
			"It shows the change and asks; comments and order stay, and a copy of the file is kept beside it. With\n" +
			"--take-over, the client's own servers move into the bridge's configuration: otherwise the model can call\n" +
			"their tools past the bridge. What you have allowed the client to call of these without asking is shown then,\n" +
			"as far as scripts would have to ask for it, and you are asked whether they may, too. uninstall undoes both.\n" +
			"With --managed, an administrator puts the bridge into the client's settings for the whole machine, where it\n" +
			"has such: each person's bridge then has their own configuration, or all have the one of --config.",
		Example: "  codemode-bridge install claude-code\n  codemode-bridge install vscode --scope project --take-over --dry-run\n  sudo codemode-bridge install claude-code --managed --config /etc/codemode/config.json",
		RunE:    func(c *cobra.Command, args []string) error { return install(c.Context(), con, args[0], o) },
	}
	f := c.Flags()
	f.BoolVar(&o.noQueue, "no-queue", false, "leave the bridge's configuration as it is for a client that cannot show questions")
	f.BoolVar(&o.takeOver, "take-over", false, "move the client's own servers into the bridge's configuration")
	f.BoolVar(&o.print, "print", false, "print what to add to the client's file, and change nothing")
	cli.AcceptFlag(c, &o.accept)
	allowedFlag(c, &o.allowed)
	installFlags(con, c, &o)
	return c
}

// Uninstall is the command that undoes Install.
func (con *Bridge) Uninstall() *cobra.Command {
	var o installOptions
	c := &cobra.Command{
		Use: "uninstall client", Short: "Take the bridge out of the configuration of a client", Args: oneClient,
		Long: "Removes what install added, and puts back the servers that it took over. Other edits since then stay.\n" +
			"The bridge's own configuration keeps its servers.",
		RunE: func(_ *cobra.Command, args []string) error { return uninstall(con, args[0], o) },
	}
	installFlags(con, c, &o)
	return c
}

// oneClient wants one argument, the client; without it, the error lists the clients.
func oneClient(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return &cli.UsageError{Err: fmt.Errorf("%s needs a client: %s", cli.Command(c), strings.Join(setup.ClientNames(), ", "))}
	}
	return cli.MaxArgs(1)(c, args)
}

func installFlags(con *Bridge, c *cobra.Command, o *installOptions) {
	f := c.Flags()
	f.StringVar(&o.scope, "scope", "", "whose file: `user`, project (of the folder you are in) or local (of you in that folder)")
	f.BoolVar(&o.managed, "managed", false, "the client's settings for the whole machine, which an administrator writes")
	f.StringVar(&o.root, "root", "", "with --managed: the `folder` of a machine's files that is being made, such as an image, in place of /")
	c.MarkFlagsMutuallyExclusive("scope", "managed")
	f.BoolVarP(&o.yes, "yes", "y", false, "change without asking")
	f.BoolVar(&o.dry, "dry-run", false, "show the change and make none")
	con.JSONFlag(c)
	c.ValidArgsFunction = cobra.FixedCompletions(setup.ClientNames(), cobra.ShellCompDirectiveNoFileComp)
	cli.CompleteWith(c, "scope", cobra.FixedCompletions([]cobra.Completion{string(clients.User), string(clients.Project), string(clients.Local)}, cobra.ShellCompDirectiveNoFileComp))
}

// clientPlace says in which file the named client keeps its servers.
func clientPlace(con *Bridge, name, scope string) (clients.Place, error) {
	c, ok := clients.Find(name)
	if !ok {
		return clients.Place{}, &cli.UsageError{Err: fmt.Errorf("there is no client %q; there are: %s", name, strings.Join(setup.ClientNames(), ", "))}
	}
	return placeOn(con.System(), c, clients.Scope(cmp.Or(scope, string(c.Scopes[0]))))
}

func placeOn(s clients.System, c clients.Client, scope clients.Scope) (clients.Place, error) {
	place, err := c.Place(s, scope)
	if err != nil {
		return place, &cli.UsageError{Err: err}
	}
	return place, nil
}

// installRecords is the folder of the records from which uninstall restores.
func installRecords(con *Bridge) (clients.Records, error) {
	places, err := config.Paths(con.Env)
	if err != nil {
		return clients.Records{}, con.Refuse(err, "")
	}
	return clients.Records{Folder: filepath.Join(places.StateDir, "installs")}, nil
}

// place is the client's file that the options name.
func (o installOptions) place(con *Bridge, name string) (clients.Place, error) {
	scope := o.scope
	if o.managed {
		scope = string(clients.Managed)
	}
	place, err := clientPlace(con, name, scope)
	if err != nil || o.root == "" {
		return place, err
	}
	s := con.System()
	if !o.managed || s.OS == "windows" {
		return place, &cli.UsageError{Err: errors.New("--root is for --managed, on Linux and macOS")}
	}
	if s.Root, err = filepath.Abs(o.root); err != nil {
		return place, con.Refuse(fmt.Errorf("reading --root: %w", err), "")
	}
	return placeOn(s, place.Client, clients.Managed)
}

// install puts the bridge into the file of a client.
func install(ctx context.Context, con *Bridge, name string, o installOptions) error {
	if o.allowed && !o.takeOver {
		return &cli.UsageError{Err: errors.New("--allowed is about servers that move: it needs --take-over")}
	}
	if o.managed {
		return con.installManaged(name, o)
	}
	place, err := o.place(con, name)
	if err != nil {
		return err
	}
	path, err := con.File()
	if err != nil {
		return err
	}
	command, err := con.Entry(path)
	if err != nil {
		return err
	}
	kept, err := con.Copy()
	if err != nil {
		return err
	}
	if kept != nil {
		con.Told("%s", kept.Words(con.HomeShort))
	}
	if o.print {
		if kept != nil {
			con.Told("install without --print makes it; or copy both programs yourself, from %s", con.HomeShort(kept.From))
		}
		fmt.Fprintf(con.Err, "add this to %s:\n", con.HomeShort(place.File))
		_, err := fmt.Fprint(con.Out, place.Snippet(setup.EntryName, command))
		return err
	}
	cfg, err := con.Load()
	if err != nil { // a bridge with this configuration would not start
		return err
	}
	records, err := installRecords(con)
	if err != nil {
		return err
	}
	in, err := setup.Install(place, records)
	if err != nil {
		return err
	}
	if o.takeOver {
		if err := takeOver(con, in, path, o); err != nil {
			return err
		}
	}
	queued := queueing{}
	if !place.Client.Asks && !o.noQueue {
		if queued, err = queueFor(con, in, path); err != nil {
			return err
		}
	}
	con.recordPath(in, cfg)
	nothing, err := in.Prepare(command)
	if err != nil {
		return err
	}
	if nothing {
		if err := o.keep(kept); err != nil {
			return err
		}
		if con.JSON {
			return con.PrintJSON(in.Row(false, ""))
		}
		fmt.Fprintf(con.Err, "%s has %s already, and nothing is to be changed in %s\n", place, setup.EntryName, con.HomeShort(place.File))
		sayStaying(con, in)
		return nil
	}
	if err := showInstallation(con, in, path); err != nil {
		return err
	}
	if o.dry {
		if con.JSON {
			return con.PrintJSON(in.Row(false, ""))
		}
		fmt.Fprintln(con.Err, cli.ErrNothingDone)
		return nil
	}
	if err := con.Confirm("make this change?", o.yes); err != nil {
		return err
	}
	rules := in.OldRules(con.System())
	offers, settled, err := takeAllowed(ctx, con, in, path, o)
	if err != nil {
		return err
	}
	if settled {
		rules = nil
	}
	if err := o.keep(kept); err != nil {
		return err
	}
	backup, err := in.Write(func() error {
		return con.Rewrite(path, func(text []byte) ([]byte, error) {
			if !bytes.Equal(text, in.Before) {
				return nil, setup.ErrChanged
			}
			return in.After, nil
		})
	})
	if err != nil {
		return err
	}
	if con.JSON {
		row := in.Row(true, backup)
		queued.add(row)
		if len(offers) > 0 {
			row["allowed"] = offers
		}
		return con.PrintJSON(row)
	}
	fmt.Fprintf(con.Err, "%s starts the bridge as %s from now on; restart it if it runs\n", place.Client.Title, setup.EntryName)
	if err := queued.say(con, place); err != nil {
		return err
	}
	if backup != "" {
		fmt.Fprintf(con.Err, "a copy of its file is at %s\n", con.HomeShort(backup))
	}
	again := ""
	if o.scope != "" {
		again = " --scope " + o.scope
	}
	fmt.Fprintf(con.Err, "undo: codemode-bridge uninstall %s%s\n", place.Client.Name, again)
	sayStaying(con, in)
	sayPrompts(con, in, rules)
	return nil
}

// keep makes the copy that clients start, if there has to be one.
func (o installOptions) keep(kept *setup.Copy) error {
	if kept == nil || o.dry {
		return nil
	}
	return kept.Make()
}

// recordPath has the entry of a client that is started from the desktop give the bridge
// the person's PATH, if servers need it.
func (con *Bridge) recordPath(in *setup.Installation, cfg *config.Config) {
	var programs []string
	for _, name := range cfg.ServerNames() {
		if s := cfg.Servers[name]; !s.Disabled && s.Type == config.KindStdio {
			programs = append(programs, s.Command.Reveal())
		}
	}
	for _, s := range in.Moving {
		programs = append(programs, s.Command)
	}
	path, missing := setup.PathFor(con.System(), in.Place.Client, programs)
	if in.Place.Path = path; path != "" && !con.JSON {
		con.Told("%s does not have your PATH, on which %s is found: the entry records it; after a change of it, install again", in.Place.Client.Title, strings.Join(missing, ", "))
	}
}

// sayPrompts says which prompts of the client itself remain, and that its old rules for
// tools of the named servers, which have moved, do nothing any more.
func sayPrompts(con *Bridge, in *setup.Installation, rules []string) {
	client := in.Place.Client
	if client.Prompts != "" {
		con.Told("%s may ask before it calls eval, besides what the bridge asks about the calls of a script; to have the bridge alone ask: %s", client.Title, client.Prompts)
	}
	if len(rules) > 0 {
		con.Told("what %s allowed for the tools of %s does nothing any more, since scripts call these now: %s, and then %s brings over what can be",
			client.Title, strings.Join(rules, ", "), con.Typed("uninstall "+client.Name), con.Typed("install "+client.Name+" --take-over --allowed"))
	}
}

// takeOver determines which servers of the client move into our configuration.
func takeOver(con *Bridge, in *setup.Installation, path string, o installOptions) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	in.Choose = func(question string, _ []*setup.Server) (bool, error) {
		return con.choose(question, o.yes || o.dry || con.JSON)
	}
	err = in.TakeOver(con.System(), !o.accept.Unconfined, text, func(text []byte) (*config.Config, error) {
		cfg, err := con.Parse(path, text)
		if err != nil {
			return nil, err
		}
		return con.Filled(cfg), nil
	}, func(some []*setup.Server, question string) error {
		return acceptServers(con, o.accept, some, question, o.yes || o.dry || con.JSON)
	})
	if err != nil || con.JSON {
		return err
	}
	for _, line := range append(setup.BoxWords(in.Moving, cli.NoConfine), setup.SessionWords(in.Moving)...) {
		con.Told("%s", line)
	}
	return nil
}

// choose asks the person at a terminal. Where nobody is asked it is a yes, which the
// person is told of.
func (con *Bridge) choose(question string, quiet bool) (bool, error) {
	if !quiet && con.HasPerson() {
		return con.Agree(question)
	}
	if !con.JSON {
		con.Told("%s yes, as nobody is asked", question)
	}
	return true, nil
}

// showInstallation prints the changes that are about to be made.
func showInstallation(con *Bridge, in *setup.Installation, path string) error {
	if con.JSON {
		return nil
	}
	configuration, file := in.Diffs(con.HomeShort(path), con.HomeShort(in.Place.File))
	if len(in.Moving) > 0 {
		if err := con.Table(setup.Table(in.Moving)); err != nil {
			return err
		}
		fmt.Fprintln(con.Out)
	}
	con.PrintLines(configuration)
	con.PrintLines(file)
	return nil
}

// sayStaying says which servers stay in the client's own file.
func sayStaying(con *Bridge, in *setup.Installation) {
	why, own := in.Staying()
	for _, line := range why {
		fmt.Fprintln(con.Err, line)
	}
	if len(own) > 0 {
		fmt.Fprintf(con.Err, "%s still has servers of its own, which the model can call past the bridge: %s; --take-over moves them\n", in.Place.Client.Title, strings.Join(own, ", "))
	}
}

// uninstall takes the bridge out of the file of a client.
func uninstall(con *Bridge, name string, o installOptions) error {
	place, err := o.place(con, name)
	if err != nil {
		return err
	}
	records, err := installRecords(con)
	if err != nil {
		return err
	}
	r, err := setup.Uninstall(place, records)
	if errors.Is(err, setup.ErrNotInstalled) {
		return fmt.Errorf("%s %w in %s", place, err, con.HomeShort(place.File))
	}
	if err != nil {
		return err
	}
	if !con.JSON {
		con.PrintLines(r.Diff(con.HomeShort(place.File)))
	}
	row := map[string]any{"client": place.Client.Name, "scope": place.Scope, "file": place.File, "back": r.Back, "written": !o.dry}
	if o.dry {
		if con.JSON {
			return con.PrintJSON(row)
		}
		fmt.Fprintln(con.Err, cli.ErrNothingDone)
		return nil
	}
	if err := con.Confirm("make this change?", o.yes); err != nil {
		return err
	}
	if err := r.Write(); err != nil {
		return o.administrator(con, "uninstall "+name, err)
	}
	if con.JSON {
		return con.PrintJSON(row)
	}
	fmt.Fprintf(con.Err, "%s does not start the bridge any more; restart it if it runs\n", place.Client.Title)
	if len(r.Back) > 0 {
		fmt.Fprintf(con.Err, "it has its own servers again: %s; the bridge's configuration keeps them too (servers remove NAME)\n", canon.Escape(strings.Join(r.Back, ", ")))
	}
	if !r.Whole && r.Backup != "" {
		fmt.Fprintf(con.Err, "its file was edited since; the copy from before is at %s\n", con.HomeShort(r.Backup))
	}
	return nil
}

// installManaged puts the bridge into a client's settings for the whole machine.
func (con *Bridge) installManaged(name string, o installOptions) error {
	if o.takeOver || o.allowed {
		return &cli.UsageError{Err: errors.New("--take-over moves one person's servers: each person does that without --managed")}
	}
	place, err := o.place(con, name)
	if err != nil {
		return err
	}
	command, err := con.managedEntry()
	if err != nil {
		return err
	}
	if o.print {
		fmt.Fprintf(con.Err, "add this to %s:\n", place.File)
		_, err := fmt.Fprint(con.Out, place.Snippet(setup.EntryName, command))
		return err
	}
	records, err := installRecords(con)
	if err != nil {
		return err
	}
	in, err := setup.Install(place, records)
	if err != nil {
		return o.administrator(con, "install "+name, err)
	}
	nothing, err := in.Prepare(command)
	if err != nil {
		return err
	}
	if !nothing {
		if err := showInstallation(con, in, ""); err != nil {
			return err
		}
	}
	if nothing || o.dry {
		if con.JSON {
			return con.PrintJSON(in.Row(false, ""))
		}
		if nothing {
			_, err = fmt.Fprintf(con.Err, "%s has %s already, and nothing is to be changed in %s\n", place, setup.EntryName, place.File)
			return err
		}
		fmt.Fprintln(con.Err, cli.ErrNothingDone)
		return nil
	}
	if err := con.Confirm("make this change?", o.yes); err != nil {
		return err
	}
	backup, err := in.Write(nil)
	if err != nil {
		return o.administrator(con, "install "+name, err)
	}
	if con.JSON {
		return con.PrintJSON(in.Row(true, backup))
	}
	people, _ := place.Client.Managed(con.System())
	fmt.Fprintf(con.Err, "wrote %s: %s starts the bridge as %s from now on, for everybody on this machine; restart it if it runs\n", place.File, place.Client.Title, setup.EntryName)
	if backup != "" {
		fmt.Fprintf(con.Err, "a copy of the file before is at %s\n", backup)
	}
	con.Told("%s", people)
	if folder := filepath.ToSlash(command[0]); strings.HasPrefix(folder, "/home/") || strings.HasPrefix(folder, "/Users/") || strings.HasPrefix(folder, "/root/") {
		con.Told("the program lies in somebody's home, %s: others may not be able to start it, and its owner can replace it; install it for the machine first", command[0])
	}
	if !place.Client.Asks {
		con.Told("%s cannot show questions: they wait for approvers where the profile has \"elicitationFallback\": \"queue\", and are refused elsewhere", place.Client.Title)
	}
	fmt.Fprintf(con.Err, "undo: codemode-bridge uninstall %s%s\n", place.Client.Name, o.machine())
	return nil
}

// managedEntry is the command with which a client of the whole machine starts the bridge: with the
// configuration of --config, or with each person's own.
func (con *Bridge) managedEntry() ([]string, error) {
	if kept, err := con.Copy(); err != nil || kept != nil {
		if err == nil {
			err = con.Refuse(fmt.Errorf("this program is in a cache of one person, %s, and cannot be started by others", kept.From), "install it for the machine first: docs/install.md")
		}
		return nil, err
	}
	path, err := con.File()
	if err != nil {
		return nil, err
	}
	command, err := con.Entry(path)
	if err != nil {
		return nil, err
	}
	if !con.Named() {
		return command[:2], nil
	}
	_, err = con.Load() // a bridge with this configuration has to start
	return command, err
}

// machine are the flags that say which machine's settings are meant.
func (o installOptions) machine() string {
	if o.root == "" {
		return " --managed"
	}
	return " --managed --root " + cli.Word(o.root)
}

// administrator explains an error of writing the settings of a whole machine.
func (o installOptions) administrator(con *Bridge, command string, err error) error {
	if !o.managed || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return con.Refuse(fmt.Errorf("only an administrator may change it: %w", err), "sudo "+con.Typed(command+o.machine())+", or on Windows a terminal that runs as administrator; --print shows what to add")
}
