// Package versioncmd has the command that says which version of the program this is, and
// what else it consists of.
package versioncmd

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"codemode-bridge/bridge/instance"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A Build is what the linker says of this program.
type Build struct {
	Version string
	Commit  string // empty if the linker was told of none
}

// Revision is the commit that the program was built from, with "-modified" if files
// differed from it; empty if that is not known.
func (b Build) Revision() string {
	info, ok := debug.ReadBuildInfo()
	if b.Commit != "" || !ok {
		return b.Commit
	}
	of := map[string]string{}
	for _, s := range info.Settings {
		of[s.Key] = s.Value
	}
	if of["vcs.modified"] == "true" {
		return of["vcs.revision"] + "-modified"
	}
	return of["vcs.revision"]
}

// A Program is the command's.
type Program struct {
	*cli.Console
	Build
	// Worker is where the worker is; the error says why it is not there.
	Worker func() (string, error)
	// Folders are those in which windows meet.
	Folders func() (instance.Folders, error)
	// Protocols are the versions of MCP that clients may speak, the newest first.
	Protocols []string
}

// A report is what --json prints.
type report struct {
	Version   string   `json:"version"`
	Commit    string   `json:"commit,omitempty"`
	Go        string   `json:"go"`
	Platform  string   `json:"platform"`
	Worker    worker   `json:"worker"`
	Protocols []string `json:"protocols"` // of MCP
}

// A worker is the program that runs scripts.
type worker struct {
	Path    string `json:"path,omitempty"`
	Version string `json:"version,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Wrong   string `json:"wrong,omitempty"` // why it could not be asked
}

// Command returns the command.
func (p *Program) Command() *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cli.NoArgs,
		Long: "Prints the version, and with --json the commit, the worker beside it, and the versions of MCP that clients may speak.",
		RunE: func(c *cobra.Command, _ []string) error {
			r := report{Version: p.Version, Commit: p.Revision(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Protocols: p.Protocols}
			if p.JSON {
				path, err := p.Worker()
				r.Worker.Path = path
				if err == nil {
					var is Build
					is, err = AskWorker(c.Context(), path)
					r.Worker.Version, r.Worker.Commit = is.Version, is.Commit
				}
				if err != nil {
					r.Worker.Wrong = err.Error()
				}
				return p.PrintJSON(r)
			}
			words := []string{r.Go, r.Platform}
			if r.Commit != "" {
				words = append(words, "commit "+r.Commit)
			}
			_, err := fmt.Fprintf(p.Out, "codemode-bridge %s (%s)\n", r.Version, strings.Join(words, ", "))
			return err
		},
	}
	p.JSONFlag(c)
	return c
}
