package confine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Start starts a program under a profile of macOS's sandbox. Nobody has tried that yet, so
// no step counts as one that holds, and a box that is required is refused.
func (b Box) Start(_ string, command func() *exec.Cmd) (*Program, error) {
	places, _, err := b.places()
	if err != nil {
		return nil, err
	}
	const untried = "untried: a profile of sandbox-exec"
	steps := Steps{Files: untried, Network: untried, Processes: untried}
	if !b.Net.Any && !b.Net.None() {
		steps[Network] = "macOS does not tell hosts apart"
	}
	for _, step := range []Step{Landlock, Powers, Calls, Limits} {
		steps[step] = "not available on macOS"
	}
	if b.Require {
		return nil, &LacksError{b.Lacks(steps)}
	}
	temp, err := os.MkdirTemp("", "codemode-box-")
	if err != nil {
		return nil, fmt.Errorf("making a place for temporary files: %w", err)
	}
	folder := ending{folder: temp}
	if temp, err = filepath.EvalSymlinks(temp); err != nil {
		folder.Close()
		return nil, fmt.Errorf("making a place for temporary files: %w", err)
	}
	cmd := command()
	if b.Run != nil {
		b.Run = append([]string{cmd.Path}, b.Run...)
	}
	cmd.Args = append([]string{"sandbox-exec", "-p", b.seatbelt(places, temp), cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Env = "/usr/bin/sandbox-exec", b.environ(cmd.Env, temp)
	if err := cmd.Start(); err != nil {
		folder.Close()
		return nil, err
	}
	return &Program{Cmd: cmd, Steps: steps, control: killing{cmd.Process}, temp: folder}, nil
}
