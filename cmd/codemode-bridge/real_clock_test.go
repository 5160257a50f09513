//go:build real && linux && amd64

package main_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// clock has a bridge's machine show a time that is off. What measures how long something
// takes is right, as on a machine whose clock was set wrongly.
func clock(off time.Duration) func(*member) {
	return func(m *member) {
		m.launch = func(cmd *exec.Cmd) error {
			runtime.LockOSThread() // one thread traces the process
			defer runtime.UnlockOSThread()
			cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
			if err := cmd.Start(); err != nil {
				return err
			}
			pid := cmd.Process.Pid
			var status syscall.WaitStatus // it stops before its first instruction
			if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
				return fmt.Errorf("waiting for a program to begin: %v, %w", status, err)
			}
			if err := setOff(pid, off); err != nil {
				return fmt.Errorf("changing the clock of a program: %w", err)
			}
			return syscall.PtraceDetach(pid)
		}
	}
}

// setOff changes how a process reads the time: in the code that the system puts into each
// process for that, and which a program in Go calls. It asks the system, and adds to the
// seconds of the day's time (CLOCK_REALTIME, which is 0).
func setOff(pid int, off time.Duration) error {
	at, image, err := mapped(pid, "[vdso]")
	if err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return err
	}
	code := []byte{
		0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228: clock_gettime(edi, rsi)
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi
		0x75, 0x07, // jne over the next one
		0x48, 0x81, 0x06, // add qword [rsi], seconds
	}
	code = binary.LittleEndian.AppendUint32(code, uint32(int32(off/time.Second)))
	code = append(code, 0xc3) // ret
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" && s.Size >= uint64(len(code)) {
			memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer memory.Close()
			_, err = memory.WriteAt(code, at+int64(s.Value))
			return err
		}
	}
	return fmt.Errorf("the system has no code that reads the time, or too little, among %d symbols", len(symbols))
}

// mapped reads what a process has under a name, and says where.
func mapped(pid int, name string) (at int64, image []byte, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, nil, err
	}
	for line := range strings.Lines(string(maps)) {
		var end int64
		if !strings.HasSuffix(strings.TrimSpace(line), name) {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &at, &end); err != nil {
			return 0, nil, fmt.Errorf("reading %q: %w", line, err)
		}
		memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
		if err != nil {
			return 0, nil, err
		}
		defer memory.Close()
		image = make([]byte, end-at)
		_, err = memory.ReadAt(image, at)
		return at, image, err
	}
	return 0, nil, fmt.Errorf("process %d has no %s", pid, name)
}
