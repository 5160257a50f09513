package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codemode-bridge/bridge/profileview"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// completeProfiles completes the first argument of a command with the names of
// profiles; with none if the configuration cannot be read.
func (con *console) completeProfiles(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	cfg, err := con.load()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := []cobra.Completion{cobra.CompletionWithDesc(evalProfile, "the one that binds eval")}
	for _, name := range cfg.Profiles.Names() {
		p, _ := cfg.Profiles.Profile(name)
		names = append(names, cobra.CompletionWithDesc(name, "binds "+strings.Join(profileview.Tools(cfg.Profiles, p), " and ")))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeApprovers completes the names of approvers.
func (con *console) completeApprovers(*cobra.Command, []string, string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	if cfg, err := con.load(); err == nil {
		for _, a := range cfg.Approvals.Approvers {
			names = append(names, a.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeNames has the shell complete profiles, servers and approvers wherever they are
// named and no command knows better.
func (con *console) completeNames(root *cobra.Command) {
	cli.CompleteNames(root, map[string]cobra.CompletionFunc{
		"--profile": func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return con.completeProfiles(c, nil, typed)
		},
		"--server": con.completeServers, "servers login": con.completeServers, "servers logout": con.completeServers, "servers accept": con.completeServers,
		"approvers remove": con.completeApprovers, "approvers delegate": con.completeApprovers,
	})
}

// completeEnvironments completes --env with the environments that have an overlay
// beside the configuration.
func (con *console) completeEnvironments(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	path, err := con.file()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	extension := filepath.Ext(path)
	start := strings.TrimSuffix(filepath.Base(path), extension) + "."
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, e := range entries {
		name, found := strings.CutPrefix(strings.TrimSuffix(e.Name(), extension), start)
		if found && name != "" && strings.HasSuffix(e.Name(), extension) && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}
