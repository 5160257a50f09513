//go:build !linux && !darwin && !windows

package confine

import (
	"os/exec"
	"runtime"
)

// Start starts a program as it would be without a box, and says so.
func (b Box) Start(_ string, command func() *exec.Cmd) (*Program, error) {
	steps := make(Steps)
	for _, step := range []Step{Files, Processes, Network, Landlock, Powers, Calls, Limits} {
		steps[step] = "not available on " + runtime.GOOS
	}
	if b.Require {
		return nil, &LacksError{b.Lacks(steps)}
	}
	cmd := command()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Program{Cmd: cmd, Steps: steps, control: killing{cmd.Process}}, nil
}
