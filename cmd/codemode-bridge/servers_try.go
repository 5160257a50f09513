package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/upstream"

	"github.com/spf13/cobra"
)

// tryServersCommand connects to servers and says how that went.
func tryServersCommand(con *console) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "test [name...]", Short: "Connect to servers, list their tools, and say what is wrong",
		Long: "Connects to the named servers, or with --all to every one that is not disabled, lists their tools and says\n" +
			"how long that took, or what is wrong, with the last lines that a program wrote to its standard error. The\n" +
			"exit code is 1 if one of them cannot be used. Where a program gets a login by itself, as mcp-remote does, the link is\n" +
			"shown and the login waited for.",
		Args: func(c *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return &usageError{errors.New("servers test takes names, or --all")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return tryServers(c.Context(), con, args, all) },
	}
	c.Flags().BoolVar(&all, "all", false, "every server that is not disabled")
	c.ValidArgsFunction = con.completeServers
	con.jsonFlag(c)
	return c
}

// A tried is how connecting to a server went.
type tried struct {
	Name     string   `json:"name"`
	OK       bool     `json:"ok"`
	State    string   `json:"state"`
	Took     int64    `json:"tookMs"`
	Tools    []string `json:"tools"`
	Protocol string   `json:"protocol,omitempty"`
	Program  string   `json:"program,omitempty"`
	Version  string   `json:"version,omitempty"`
	Why      string   `json:"why,omitempty"`

	listed []upstream.Tool
}

func tryServers(ctx context.Context, con *console, names []string, all bool) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	if names, err = chosenServers(cfg, names, all); err != nil {
		return err
	}
	rows := make([]tried, len(names))
	var trying sync.WaitGroup
	logins := logins(con)
	defer logins.Close()
	for _, spec := range specsWithLogins(cfg, logins) {
		if i := slices.Index(names, spec.Name); i >= 0 {
			trying.Go(func() { rows[i] = try(ctx, spec, con.waitForLogin) })
		}
	}
	trying.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	failed := 0
	for _, r := range rows {
		if !r.OK {
			failed++
		}
	}
	if con.json {
		err = con.printJSON(rows)
	} else {
		err = printTried(con, rows)
	}
	if err == nil && failed > 0 {
		err = &exitError{exitFailed}
	}
	return err
}

// waitForLogin shows where to log in to a server whose program waits for that.
func (con *console) waitForLogin(server, link string) {
	fmt.Fprintf(con.err, "%s waits for a login; open this in a browser:\n\n  %s\n\n", server, link)
}

// try connects to one server alone and leaves it again. Where the server's program
// gets a login by itself, it is waited for only if asks, which is told the link, is
// not nil.
func try(ctx context.Context, spec upstream.Spec, asks func(server, link string)) tried {
	changed := make(chan struct{}, 1)
	set := upstream.New(upstream.Options{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), ClientVersion: version,
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default: // somebody will look
			}
		},
	})
	defer set.Close()
	begun := time.Now()
	set.Apply([]upstream.Spec{spec})
	if err := set.WaitReady(ctx); err != nil {
		return tried{Name: spec.Name, Why: err.Error()}
	}
	for told := ""; asks != nil && ctx.Err() == nil; {
		link := set.Status()[0].Login
		if link == "" {
			break
		}
		if link != told {
			asks(spec.Name, link)
			told = link
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	r := tried{Name: spec.Name, Took: time.Since(begun).Milliseconds(), Tools: []string{}}
	for _, s := range set.Status() {
		r.OK = s.State == upstream.Connected
		r.State, r.Protocol, r.Program, r.Version, r.Why = string(s.State), s.Protocol, s.Program, s.Version, s.Err
	}
	r.listed = set.Tools()[spec.Name]
	for _, tool := range r.listed {
		r.Tools = append(r.Tools, tool.Name)
	}
	return r
}

// took is how long something took, for people.
func took(milliseconds int64) string {
	if milliseconds < 1000 {
		return fmt.Sprintf("%d ms", milliseconds)
	}
	return fmt.Sprintf("%.1f s", float64(milliseconds)/1000)
}

func printTried(con *console, rows []tried) error {
	table := [][]string{{"name", "state", "tools", "time", "protocol", "server"}}
	for _, r := range rows {
		table = append(table, []string{r.Name, r.State, strconv.Itoa(len(r.Tools)), took(r.Took), r.Protocol, strings.TrimSpace(r.Program + " " + r.Version)})
	}
	if err := con.table(table); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Why != "" {
			fmt.Fprintf(con.err, "%s: %s\n", r.Name, strings.ReplaceAll(r.Why, " | ", "\n  "))
		}
	}
	return nil
}
