package versioncmd

import (
	"context"
	"fmt"

	"codemode-bridge/bridge/instance"
)

// A Difference is a program of the installation that comes from another build.
type Difference = struct{ About, Text, Do string }

// Differences says which of the worker and the bridges that run with a configuration
// file come from another build.
func (p *Program) Differences(ctx context.Context, file string) (all []Difference) {
	own := Build{p.Version, p.Revision()}
	if path, err := p.Worker(); err == nil { // the check of the sandbox says that it is missing
		switch is, err := AskWorker(ctx, path); {
		case err != nil:
			all = append(all, Difference{path, err.Error(), together})
		case !own.same(is):
			all = append(all, Difference{path, fmt.Sprintf("the worker is %s, this program %s", is, own), together})
		}
	}
	f, err := p.Folders()
	if err != nil {
		return all // no bridge could run
	}
	for _, meeting := range instance.In(f, file) {
		one, err := meeting.Status(ctx)
		if err != nil {
			continue // it has ended, or is about to
		}
		if is := (Build{one.Version, one.Commit}); !own.same(is) {
			do := "close its windows: those that open now are served by a bridge of this version, which takes up the runs that wait"
			if one.Endpoint != "" {
				do = "restart serve: the runs that wait go on in the new one"
			}
			all = append(all, Difference{fmt.Sprintf("process %d", one.PID), fmt.Sprintf("the bridge that runs is %s, this program %s", is, own), do})
		}
	}
	return all
}

const together = "install codemode-bridge and codemode-worker from the same release into one folder"

// same reports whether another program comes from the same build, as far as both know
// their commits.
func (b Build) same(other Build) bool {
	return b.Version == other.Version && (b.Commit == "" || other.Commit == "" || b.Commit == other.Commit)
}

func (b Build) String() string {
	if b.Commit == "" {
		return b.Version
	}
	return b.Version + " (commit " + b.Commit + ")"
}
