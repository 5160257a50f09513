package setupcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

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
	fmt.Fprintf(con.Err, "undo: codemode-bridge uninstall %s --managed\n", place.Client.Name)
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

// administrator explains an error of writing the settings of a whole machine.
func (o installOptions) administrator(con *Bridge, command string, err error) error {
	if !o.managed || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return con.Refuse(fmt.Errorf("only an administrator may change it: %w", err), "sudo "+con.Typed(command+" --managed")+", or on Windows a terminal that runs as administrator; --print shows what to add")
}
