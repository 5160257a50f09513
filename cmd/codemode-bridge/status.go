package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/instance"

	"github.com/spf13/cobra"
)

// statusCommand shows the processes that serve windows.
func statusCommand(con *console) *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show the bridges that the windows of this configuration share", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := con.file()
			if err != nil {
				return err
			}
			f, err := hostFolders(con)
			if err != nil {
				return &configError{err, "set XDG_STATE_HOME, or HOME"}
			}
			hosts := []hostStatus{}
			for _, place := range instance.In(f, file) {
				if s, err := askStatus(c.Context(), place); err == nil { // others have ended, or are about to
					hosts = append(hosts, s)
				}
			}
			slices.SortFunc(hosts, func(x, y hostStatus) int { return x.Since.Compare(y.Since) })
			if con.json {
				return con.printJSON(hosts)
			}
			return printHosts(con, hosts)
		},
	}
	con.jsonFlag(c)
	return c
}

func askStatus(ctx context.Context, place *instance.Place) (s hostStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := place.Ask(ctx, instance.Status, "")
	if err != nil {
		return s, err
	}
	defer conn.Close()
	return s, json.NewDecoder(conn).Decode(&s)
}

func printHosts(con *console, hosts []hostStatus) error {
	if len(hosts) == 0 {
		_, err := fmt.Fprintln(con.out, "no windows share a bridge with this configuration")
		return err
	}
	for i, h := range hosts {
		if i > 0 {
			fmt.Fprintln(con.out)
		}
		var pids []string
		for _, w := range h.Windows {
			pids = append(pids, strconv.Itoa(w.PID))
		}
		fmt.Fprintf(con.out, "process %d, version %s, since %s: %s", h.PID, h.Version, h.Since.Local().Format(time.DateTime), count(len(h.Windows), "window"))
		if len(pids) > 0 {
			fmt.Fprintf(con.out, " (%s)", strings.Join(pids, ", "))
		}
		fmt.Fprintf(con.out, ", %s\n", count(h.Runs, "run"))
		table := [][]string{{"server", "state", "tools", "process", "of sessions", "why"}}
		for _, s := range h.Servers {
			pid := ""
			if s.PID != 0 {
				pid = strconv.Itoa(s.PID)
			}
			own := ""
			if s.Sessions != 0 {
				own = fmt.Sprint("+", s.Sessions)
			}
			table = append(table, []string{s.Name, s.State, strconv.Itoa(s.Tools), pid, own, firstLine(s.Why)})
		}
		if err := con.table(table); err != nil {
			return err
		}
	}
	return nil
}
