package running

import (
	"encoding/json"
	"fmt"
	"strconv"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

// Statuses converts the states of servers for package instance.
func Statuses(all []upstream.Status) (servers []instance.ServerStatus) {
	for _, u := range all {
		s := instance.ServerStatus{Name: u.Name, State: string(u.State), Tools: u.Tools, PID: u.PID, Sessions: u.Sessions, Why: u.Why(), Protocol: u.Protocol, Version: u.Version}
		if box := u.BoxStatus(); box != nil {
			s.Box, _ = canon.JSON(box) // texts alone
		}
		servers = append(servers, s)
	}
	return servers
}

// Print prints the states of servers, each with the kind that the configuration says.
func Print(con *cli.Console, cfg *config.Config, servers []instance.ServerStatus) error {
	type row struct {
		Name     string `json:"name"`
		Type     string `json:"type"`
		State    string `json:"state"`
		Tools    int    `json:"tools"`
		Protocol string `json:"protocol,omitempty"`
		Version  string `json:"version,omitempty"`
		Why      string `json:"why,omitempty"`

		Box *upstream.BoxStatus `json:"box,omitempty"`
	}
	rows, table := []row{}, [][]string{{"name", "type", "state", "tools", "protocol", "box", "why"}}
	for _, s := range servers {
		r := row{s.Name, string(cfg.Servers[s.Name].Type), s.State, s.Tools, s.Protocol, s.Version, s.Why, nil}
		kept := ""
		if len(s.Box) > 0 {
			if err := json.Unmarshal(s.Box, &r.Box); err != nil {
				return fmt.Errorf("reading the box of server %s: %w", s.Name, err)
			}
			kept = r.Box.Is
		}
		rows = append(rows, r)
		table = append(table, []string{r.Name, r.Type, r.State, strconv.Itoa(r.Tools), r.Protocol, kept, cli.FirstLine(upstream.Brief(r.Why))})
	}
	if con.JSON {
		return con.PrintJSON(rows)
	}
	return con.Table(table)
}
