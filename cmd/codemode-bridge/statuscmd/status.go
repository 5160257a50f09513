// Package statuscmd has the command that shows the running bridges of a configuration:
// the processes that windows share, and each `serve`, which announces itself in a folder
// of the state folder. A Bridge, which the program fills in, says where these are.
package statuscmd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/replica"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A Bridge is what the command needs of the program.
type Bridge struct {
	*cli.Console

	File    func() (string, error)           // the configuration's path, absolute
	Folders func() (instance.Folders, error) // where windows meet
	Serving func() (string, error)           // where each `serve` announces itself
	// OnDisk says what is wrong with the configuration on disk, or what of it waits for an
	// approver, and what to do; empty if nothing is.
	OnDisk func() (wrong, do string)
	// Replicas returns the bridges that share the store, where that is a database.
	Replicas func(ctx context.Context) ([]replica.Replica, error)
}

// A report is what --json prints.
type report struct {
	Shared  []instance.Status `json:"shared"`  // by windows
	Serving []served          `json:"serving"` // over HTTP
	// Configuration says what is wrong with the file on disk.
	Configuration string `json:"configuration,omitempty"`
	Do            string `json:"do,omitempty"`
	// Replicas are all bridges that share the store, on whatever machine.
	Replicas []replica.Replica `json:"replicas,omitempty"`
	others   []string
}

// A served is a `serve`, with what it answers if it can be asked.
type served struct {
	Serving
	Servers []instance.ServerStatus `json:"servers,omitempty"`
	Runs    *int                    `json:"runs,omitempty"`
}

// Command returns the command.
func (con *Bridge) Command() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show the running bridges of this configuration", Args: cli.NoArgs,
		Long: "Shows the bridges that run with this configuration: the processes that the windows of your clients share, with\n" +
			"their servers, and each serve, likewise. Where the file on disk was changed and is not in force, it says why.",
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := con.File()
			if err != nil {
				return err
			}
			f, err := con.Folders()
			if err != nil {
				return err
			}
			dir, err := con.Serving()
			if err != nil {
				return err
			}
			r := report{Shared: []instance.Status{}, Serving: []served{}}
			answered := map[string]instance.Status{} // by address
			for _, meeting := range instance.In(f, file) {
				s, err := meeting.Status(c.Context())
				switch {
				case err != nil: // it has ended, or is about to
				case s.Endpoint != "":
					answered[s.Endpoint] = s
				default:
					r.Shared = append(r.Shared, s)
				}
			}
			slices.SortFunc(r.Shared, func(x, y instance.Status) int { return x.Since.Compare(y.Since) })
			for _, s := range servings(dir) {
				if s.File == file {
					one := served{Serving: s}
					if is, ok := answered[s.Endpoint]; ok {
						one.Servers, one.Runs = is.Servers, &is.Runs
					}
					r.Serving = append(r.Serving, one)
				} else if !slices.Contains(r.others, s.File) {
					r.others = append(r.others, s.File)
				}
			}
			r.Configuration, r.Do = con.OnDisk()
			if r.Replicas, err = con.Replicas(c.Context()); err != nil {
				con.Told("the bridges on other machines: %s", canon.EscapeLines(err.Error()))
			}
			if con.JSON {
				return con.PrintJSON(r)
			}
			return con.print(r)
		},
	}
	con.JSONFlag(c)
	return c
}

func shares(bridges int) string {
	if bridges == 1 {
		return "one bridge uses"
	}
	return fmt.Sprintf("%d bridges share", bridges)
}

func (con *Bridge) print(r report) error {
	if len(r.Shared)+len(r.Serving) == 0 {
		if _, err := fmt.Fprintln(con.Out, "no bridge runs with this configuration"); err != nil {
			return err
		}
	}
	for n, s := range r.Shared {
		if n > 0 {
			fmt.Fprintln(con.Out)
		}
		if err := con.printShared(s); err != nil {
			return err
		}
	}
	for n, s := range r.Serving {
		if n+len(r.Shared) > 0 {
			fmt.Fprintln(con.Out)
		}
		line := fmt.Sprintf("process %d, version %s, since %s: serves %s", s.PID, s.Version, s.Since.Local().Format(time.DateTime), s.Endpoint)
		if s.Page != "" {
			line += ", page at " + s.Page
		}
		if s.Runs != nil {
			line += ", " + cli.Count(*s.Runs, "run")
		}
		if _, err := fmt.Fprintln(con.Out, canon.Escape(line)); err != nil {
			return err
		}
		if len(s.Servers) > 0 {
			if err := con.Table(serverRows(s.Servers)); err != nil {
				return err
			}
		}
		con.refused(s.Refused)
	}
	if len(r.Replicas) > 0 {
		if _, err := fmt.Fprintf(con.Out, "\n%s the store:\n", shares(len(r.Replicas))); err != nil {
			return err
		}
	}
	for _, one := range r.Replicas {
		if _, err := fmt.Fprintln(con.Out, "  "+canon.Escape(one.Line())); err != nil {
			return err
		}
	}
	if len(r.others) > 0 {
		con.Told("bridges serve other configurations: %s; codemode-bridge status --config FILE shows one", canon.Escape(strings.Join(r.others, ", ")))
	}
	if r.Configuration != "" {
		con.Told("the configuration on disk: %s", canon.EscapeLines(r.Configuration))
		con.Told("do: %s", r.Do)
	}
	return nil
}

// refused says that a bridge goes on with what was in force before.
func (con *Bridge) refused(why string) {
	if why != "" {
		con.Told("  it goes on with the last good configuration; the one on disk was refused: %s", canon.EscapeLines(why))
	}
}

func (con *Bridge) printShared(s instance.Status) error {
	var pids []string
	for _, w := range s.Clients {
		pids = append(pids, strconv.Itoa(w.PID))
	}
	fmt.Fprintf(con.Out, "process %d, version %s, since %s: %s", s.PID, s.Version, s.Since.Local().Format(time.DateTime), cli.Count(len(s.Clients), "window"))
	if len(pids) > 0 {
		fmt.Fprintf(con.Out, " (%s)", strings.Join(pids, ", "))
	}
	fmt.Fprintf(con.Out, ", %s\n", cli.Count(s.Runs, "run"))
	if err := con.Table(serverRows(s.Servers)); err != nil {
		return err
	}
	con.refused(s.Refused)
	return nil
}

// serverRows are the servers of a bridge, as a table.
func serverRows(servers []instance.ServerStatus) [][]string {
	table := [][]string{{"server", "state", "tools", "process", "of sessions", "why"}}
	for _, one := range servers {
		pid := ""
		if one.PID != 0 {
			pid = strconv.Itoa(one.PID)
		}
		own := ""
		if one.Sessions != 0 {
			own = fmt.Sprint("+", one.Sessions)
		}
		table = append(table, []string{one.Name, one.State, strconv.Itoa(one.Tools), pid, own, cli.FirstLine(upstream.Brief(one.Why))})
	}
	return table
}
