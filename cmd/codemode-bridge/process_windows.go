package main

import "syscall"

// processLives is not needed here: a file that a process has open cannot be
// removed.
func processLives(int) bool { return false }

// detached makes a child that has no console.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{HideWindow: true} }
