package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/instance"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// statusCommand shows the shared bridges of a configuration.
func statusCommand(con *console) *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show the bridges that the windows of this configuration share", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := con.file()
			if err != nil {
				return err
			}
			f, err := instanceFolders(con)
			if err != nil {
				return &configError{err, "set XDG_STATE_HOME, or HOME"}
			}
			all := []instance.Status{}
			for _, meeting := range instance.In(f, file) {
				if s, err := meeting.Status(c.Context()); err == nil { // on an error it has ended, or is about to
					all = append(all, s)
				}
			}
			slices.SortFunc(all, func(x, y instance.Status) int { return x.Since.Compare(y.Since) })
			if con.JSON {
				return con.PrintJSON(all)
			}
			return printInstances(con, all)
		},
	}
	con.JSONFlag(c)
	return c
}

func printInstances(con *console, all []instance.Status) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(con.Out, "no windows share a bridge with this configuration")
		return err
	}
	for n, i := range all {
		if n > 0 {
			fmt.Fprintln(con.Out)
		}
		var pids []string
		for _, w := range i.Clients {
			pids = append(pids, strconv.Itoa(w.PID))
		}
		fmt.Fprintf(con.Out, "process %d, version %s, since %s: %s", i.PID, i.Version, i.Since.Local().Format(time.DateTime), cli.Count(len(i.Clients), "window"))
		if len(pids) > 0 {
			fmt.Fprintf(con.Out, " (%s)", strings.Join(pids, ", "))
		}
		fmt.Fprintf(con.Out, ", %s\n", cli.Count(i.Runs, "run"))
		table := [][]string{{"server", "state", "tools", "process", "of sessions", "why"}}
		for _, s := range i.Servers {
			pid := ""
			if s.PID != 0 {
				pid = strconv.Itoa(s.PID)
			}
			own := ""
			if s.Sessions != 0 {
				own = fmt.Sprint("+", s.Sessions)
			}
			table = append(table, []string{s.Name, s.State, strconv.Itoa(s.Tools), pid, own, cli.FirstLine(s.Why)})
		}
		if err := con.Table(table); err != nil {
			return err
		}
	}
	return nil
}
