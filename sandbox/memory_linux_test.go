package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestMachineMemory(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	info := write("meminfo", "MemTotal:        8048576 kB\nMemFree:         1048576 kB\n")
	if n, ok := totalMemory(info); !ok || n != 8048576<<10 {
		t.Errorf("the machine has %d, %v", n, ok)
	}
	write("memory.max", "max\n")
	write("a/memory.max", "1073741824\n")
	write("a/b/memory.max", "max\n")
	write("a/b/c/memory.max", "2147483648\n")
	write("memory/x/memory.limit_in_bytes", "536870912\n")
	for _, row := range []struct {
		own  string
		want int64
	}{
		{"0::/a/b/c\n", 1 << 30},
		{"0::/\n", 0},
		{"0::/gone\n", 0},
		{"5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n", 1 << 29},
		{"garbage\n", 0},
	} {
		if n, ok := groupMemory(root, write("own", row.own)); n != row.want || ok != (row.want > 0) {
			t.Errorf("%q has %d, %v; want %d", row.own, n, ok, row.want)
		}
	}
	if n, ok := residentMemory(os.Getpid()); !ok || n < 1<<20 {
		t.Errorf("this process uses %d, %v", n, ok)
	}
	if all, ok := machineMemory(); !ok || all < 64<<20 {
		t.Errorf("this machine has %d, %v", all, ok)
	}
}

// A script that takes the memory of all scripts together is ended, and its error
// says why.
func TestRealWorkerKeepsTheBudget(t *testing.T) {
	pool := workers(t, Options{Warm: -1, Memory: 100 << 20})
	_, err := eval(t, pool.Session(), "const all = []; for (let i = 0; i < 150; i++) all.push(new Uint8Array(1 << 20).fill(1)); await codemode.echo__wait({}); return all.length", &recorder{answer: waitForEver})
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Limit != LimitTotalMemory || limit.Error() != "total memory limit of 100 MB exceeded" {
		t.Errorf("got %v", err)
	}
	gives(t, pool.Session(), "return 1", nil, "1")
}
