package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"

	"github.com/spf13/cobra"
)

// entryName is what clients call the bridge. It is short because tools have
// full names there, which have a limit.
const entryName = "codemode"

type installOptions struct {
	scope                     string
	takeOver, print, yes, dry bool
}

// installCommand puts the bridge into the file of a client.
func installCommand(con *console) *cobra.Command {
	var o installOptions
	c := &cobra.Command{
		Use: "install client", Short: "Put the bridge into the configuration of a client", Args: oneClient,
		Long: "Adds the server " + entryName + " to the configuration of a client: " + strings.Join(clientNames(), ", ") + ".\n" +
			"It shows the change and asks; comments and order stay, and a copy of the file is kept beside it. With\n" +
			"--take-over, the client's own servers move into the bridge's configuration: otherwise the model can call\n" +
			"their tools past the bridge. uninstall undoes both.",
		Example: "  codemode-bridge install claude-code\n  codemode-bridge install vscode --scope project --take-over --dry-run",
		RunE:    func(_ *cobra.Command, args []string) error { return install(con, args[0], o) },
	}
	f := c.Flags()
	f.BoolVar(&o.takeOver, "take-over", false, "move the client's own servers into the bridge's configuration")
	f.BoolVar(&o.print, "print", false, "print what to add to the client's file, and change nothing")
	installFlags(con, c, &o)
	return c
}

// uninstallCommand undoes installCommand.
func uninstallCommand(con *console) *cobra.Command {
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

// oneClient is wrong usage without a client: it says which there are.
func oneClient(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return &usageError{fmt.Errorf("%s needs a client: %s", command(c), strings.Join(clientNames(), ", "))}
	}
	return maxArgs(1)(c, args)
}

func installFlags(con *console, c *cobra.Command, o *installOptions) {
	f := c.Flags()
	f.StringVar(&o.scope, "scope", "", "whose file: `user`, project (of the folder you are in) or local (of you in that folder)")
	f.BoolVarP(&o.yes, "yes", "y", false, "change without asking")
	f.BoolVar(&o.dry, "dry-run", false, "show the change and make none")
	con.jsonFlag(c)
	c.ValidArgsFunction = cobra.FixedCompletions(clientNames(), cobra.ShellCompDirectiveNoFileComp)
	completeWith(c, "scope", cobra.FixedCompletions([]cobra.Completion{string(clients.User), string(clients.Project), string(clients.Local)}, cobra.ShellCompDirectiveNoFileComp))
}

// clientPlace is where the client that the person names has its servers.
func clientPlace(con *console, name, scope string) (clients.Place, error) {
	c, ok := clients.Find(name)
	if !ok {
		return clients.Place{}, &usageError{fmt.Errorf("there is no client %q; there are: %s", name, strings.Join(clientNames(), ", "))}
	}
	place, err := c.Place(clientSystem(con), clients.Scope(cmp.Or(scope, string(c.Scopes[0]))))
	if err != nil {
		return place, &usageError{err}
	}
	return place, nil
}

// installRecords are where what undoes an install is kept.
func installRecords(con *console) (clients.Records, error) {
	places, err := config.Paths(con.env)
	if err != nil {
		return clients.Records{}, &configError{err: err}
	}
	return clients.Records{Folder: filepath.Join(places.StateDir, "installs")}, nil
}

// clientEntry is the command with which clients start this bridge.
func clientEntry(con *console, path string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	command := []string{self, "run", "--config", path}
	if con.environment != "" {
		command = append(command, "--env", con.environment)
	}
	return command, nil
}

// An installation is one change of a client's file, on its way.
type installation struct {
	place   clients.Place
	file    *clients.File
	servers []clients.Server // that the file has
	after   []byte
	record  *clients.Record
	earlier *clients.Record
	// Of a take-over: what moves, why others stay, and our configuration
	// before and after.
	moving    []*adopted
	staying   map[string]string
	cfg, next []byte
}

func install(con *console, name string, o installOptions) error {
	place, err := clientPlace(con, name, o.scope)
	if err != nil {
		return err
	}
	path, err := con.file()
	if err != nil {
		return err
	}
	command, err := clientEntry(con, path)
	if err != nil {
		return err
	}
	if o.print {
		fmt.Fprintf(con.err, "add this to %s:\n", homeShort(con, place.File))
		_, err := fmt.Fprint(con.out, place.Snippet(entryName, command))
		return err
	}
	if _, err := con.load(); err != nil { // the client would not get it to run
		return err
	}
	records, err := installRecords(con)
	if err != nil {
		return err
	}
	in := &installation{place: place, staying: map[string]string{}}
	if in.file, err = clients.ReadFile(place.File); err != nil {
		return err
	}
	if in.servers, err = place.Servers(in.file.Text); err != nil {
		return err
	}
	if in.earlier, err = records.Load(place); err != nil {
		return err
	}
	if o.takeOver {
		if err := takeOver(con, in, path); err != nil {
			return err
		}
	}
	_, same, err := place.Installed(in.file.Text, entryName, command)
	if err != nil {
		return err
	}
	if same && len(in.moving) == 0 {
		if con.json {
			return con.printJSON(in.row(false, ""))
		}
		fmt.Fprintf(con.err, "%s has %s already, and nothing is to be changed in %s\n", place, entryName, homeShort(con, place.File))
		sayStaying(con, in)
		return nil
	}
	var out []string
	for _, s := range in.moving {
		out = append(out, s.Name)
	}
	in.after, in.record, err = place.Install(in.file.Text, in.file.Existed, entryName, command, out, in.earlier)
	if err != nil {
		return err
	}
	if err := showInstallation(con, in, path); err != nil {
		return err
	}
	if o.dry {
		if con.json {
			return con.printJSON(in.row(false, ""))
		}
		fmt.Fprintln(con.err, errNothingDone)
		return nil
	}
	if err := confirm(con, "make this change?", o.yes); err != nil {
		return err
	}
	backup, err := writeInstallation(con, in, records, path)
	if err != nil {
		return err
	}
	if con.json {
		return con.printJSON(in.row(true, backup))
	}
	fmt.Fprintf(con.err, "%s starts the bridge as %s from now on; restart it if it runs\n", place.Client.Title, entryName)
	if backup != "" {
		fmt.Fprintf(con.err, "a copy of its file is at %s\n", homeShort(con, backup))
	}
	again := ""
	if o.scope != "" {
		again = " --scope " + o.scope
	}
	fmt.Fprintf(con.err, "undo: codemode-bridge uninstall %s%s\n", place.Client.Name, again)
	sayStaying(con, in)
	return nil
}

// takeOver finds which servers of the client move, and writes our
// configuration with them.
func takeOver(con *console, in *installation, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	cfg, err := config.Parse(con.shown(path), text, con.env, con.policy(path))
	if err != nil {
		return err
	}
	d := newAdoption(con)
	if err := d.has(text, cfg); err != nil {
		return err
	}
	in.cfg, in.next = text, text
	for _, s := range in.servers {
		if s.Name == entryName {
			continue
		}
		one := d.add(s, in.place)
		switch {
		case s.Problem != "":
			in.staying[s.Name] = s.Problem
			continue
		case len(one.unset) > 0 && !s.Disabled:
			in.staying[s.Name] = "set " + needs(one.unset) + " first"
			continue
		case one.known && !s.Disabled && cfg.Servers[one.as] != nil && cfg.Servers[one.as].Disabled:
			in.staying[s.Name] = "the bridge has it disabled; first: codemode-bridge servers enable " + one.as
			continue
		}
		if !one.known {
			next, err := config.Insert(in.next, serversKey(cfg)+"/"+one.as, one.text())
			if err == nil {
				_, err = config.Parse(con.shown(path), next, con.env, con.policy(path))
			}
			if err != nil {
				in.staying[s.Name] = firstProblem(err)
				continue
			}
			in.next = next
		}
		in.moving = append(in.moving, one)
	}
	return nil
}

// showInstallation prints what is going to be changed.
func showInstallation(con *console, in *installation, path string) error {
	if con.json {
		return nil
	}
	var secrets []string
	for _, s := range in.servers {
		secrets = append(secrets, s.Secrets...)
	}
	if len(in.moving) > 0 {
		if err := printAdopted(con, in.moving); err != nil {
			return err
		}
		fmt.Fprintln(con.out)
		if string(in.next) != string(in.cfg) {
			printDiff(con.out, homeShort(con, path), in.cfg, in.next, append(secretsIn(in.cfg, in.next), secrets...))
		}
	}
	printDiff(con.out, homeShort(con, in.place.File), in.file.Text, in.after, secrets)
	return nil
}

// writeInstallation makes the change: first what undoes it, then our configuration, then
// the client's file. What fails leaves the client's file as it was.
func writeInstallation(con *console, in *installation, records clients.Records, path string) (backup string, err error) {
	if in.file.Existed && in.record.Backup == "" {
		if backup, err = in.file.Backup(); err != nil {
			return "", err
		}
		in.record.Backup = backup
	}
	if err := records.Save(in.place, in.record); err != nil {
		return "", errors.Join(err, removeIf(backup))
	}
	if string(in.next) != string(in.cfg) {
		err = rewrite(con, path, func(text []byte) ([]byte, error) {
			if string(text) != string(in.cfg) {
				return nil, errChanged
			}
			return in.next, nil
		}, func(*config.Config) error { return nil })
	}
	if err == nil {
		err = in.file.Write(in.after)
	}
	if err == nil {
		return backup, nil
	}
	restored := records.Drop(in.place)
	if in.earlier != nil {
		restored = records.Save(in.place, in.earlier)
	}
	return "", errors.Join(err, restored, removeIf(backup))
}

// removeIf removes a file that has a name.
func removeIf(path string) error {
	if path == "" {
		return nil
	}
	return os.Remove(path)
}

// sayStaying says which servers the client still has for itself.
func sayStaying(con *console, in *installation) {
	moved := map[string]bool{entryName: true}
	for _, s := range in.moving {
		moved[s.Name] = true
	}
	var own []string
	for _, s := range in.servers {
		if why, ok := in.staying[s.Name]; ok {
			fmt.Fprintf(con.err, "%s stays with %s: %s\n", canon.Visible(s.Name), in.place.Client.Title, canon.Visible(why))
		} else if !moved[s.Name] && !s.Disabled && s.Problem == "" {
			own = append(own, canon.Visible(s.Name))
		}
	}
	if len(own) > 0 {
		fmt.Fprintf(con.err, "%s still has servers of its own, which the model can call past the bridge: %s; --take-over moves them\n", in.place.Client.Title, strings.Join(own, ", "))
	}
}

// row is an installation as --json prints it.
func (in *installation) row(written bool, backup string) map[string]any {
	row := map[string]any{"client": in.place.Client.Name, "scope": in.place.Scope, "file": in.place.File, "written": written}
	if backup != "" {
		row["backup"] = backup
	}
	if in.cfg != nil {
		row["moved"], row["staying"] = adoptedRows(in.moving), in.staying
	}
	return row
}

func uninstall(con *console, name string, o installOptions) error {
	place, err := clientPlace(con, name, o.scope)
	if err != nil {
		return err
	}
	records, err := installRecords(con)
	if err != nil {
		return err
	}
	record, err := records.Load(place)
	if err != nil {
		return err
	}
	file, err := clients.ReadFile(place.File)
	if err != nil {
		return err
	}
	servers, err := place.Servers(file.Text)
	if err != nil {
		return err
	}
	if record == nil { // put in by hand, or by a bridge whose state is gone
		if !slices.ContainsFunc(servers, func(s clients.Server) bool { return s.Name == entryName }) {
			return fmt.Errorf("%s has no %s in %s", place, entryName, homeShort(con, place.File))
		}
		record = &clients.Record{Name: entryName, Existed: true}
	}
	var backup []byte
	if record.Backup != "" {
		kept, err := clients.ReadFile(record.Backup)
		if err != nil {
			return err
		}
		backup = kept.Text
	}
	after, err := place.Uninstall(file.Text, backup, record)
	if err != nil {
		return err
	}
	back := []string{}
	for _, m := range record.Moved {
		if !slices.ContainsFunc(servers, func(s clients.Server) bool { return s.Name == m.Name && m.Name != entryName }) {
			back = append(back, m.Name)
		}
	}
	whole := clients.SHA(after) == record.Before
	if !con.json {
		printDiff(con.out, homeShort(con, place.File), file.Text, after, hiddenServers(con, place, file.Text, after))
	}
	row := map[string]any{"client": place.Client.Name, "scope": place.Scope, "file": place.File, "back": back, "written": !o.dry}
	if o.dry {
		if con.json {
			return con.printJSON(row)
		}
		fmt.Fprintln(con.err, errNothingDone)
		return nil
	}
	if err := confirm(con, "make this change?", o.yes); err != nil {
		return err
	}
	if after == nil {
		err = file.Remove()
	} else {
		err = file.Write(after)
	}
	if err == nil {
		err = records.Drop(place)
	}
	if err == nil && whole && record.Backup != "" { // it holds nothing that the file does not
		if err = os.Remove(record.Backup); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	if con.json {
		return con.printJSON(row)
	}
	fmt.Fprintf(con.err, "%s does not start the bridge any more; restart it if it runs\n", place.Client.Title)
	if len(back) > 0 {
		fmt.Fprintf(con.err, "it has its own servers again: %s; the bridge's configuration keeps them too (servers remove NAME)\n", canon.Visible(strings.Join(back, ", ")))
	}
	if !whole && record.Backup != "" {
		fmt.Fprintf(con.err, "its file was edited since; the copy from before is at %s\n", homeShort(con, record.Backup))
	}
	return nil
}

// hiddenServers are the texts of a client's file, in all its states, that are not to
// be shown.
func hiddenServers(con *console, place clients.Place, texts ...[]byte) []string {
	all := map[string]bool{}
	for _, text := range texts {
		servers, err := place.Servers(text)
		if err != nil {
			continue // what cannot be read was refused already
		}
		for _, s := range servers {
			for _, secret := range s.Secrets {
				all[secret] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}
