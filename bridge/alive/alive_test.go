package alive

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"codemode-bridge/bridge/filelock"
)

// here is the process that TestGone kills, in its folder: without a reference, its file
// would be closed by a collection of garbage.
var here *Member

// TestMain runs the process that TestGone kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ALIVE_TEST_DIR"); dir != "" {
		var err error
		if here, err = Join(dir, "child"); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("joined\n")
		time.Sleep(time.Hour) // the runtime would end a process that waits for nothing
	}
	os.Exit(m.Run())
}

func TestGone(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "ALIVE_TEST_DIR="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "joined\n" {
		t.Fatal(line, err)
	}
	if Gone(dir, "child") {
		t.Error("the child is there")
	}
	if !Gone(dir, "other") || !Gone(dir, "../child") {
		t.Error("nobody else is there")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed
	if !Gone(dir, "child") {
		t.Error("the child was killed")
	}
	other, err := os.Open(filepath.Join(dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	if err := filelock.TryShared(other); err != nil || !Gone(dir, "child") {
		t.Errorf("while another asks the same, it is not gone (%v)", err)
	}
	other.Close()

	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "child"), long, long); err != nil {
		t.Fatal(err)
	}
	m, err := Join(dir, "me")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "child")); !os.IsNotExist(err) {
		t.Errorf("what the child left behind is there: %v", err)
	}
	if Gone(dir, "me") {
		t.Error("this process is there")
	}
	if _, err := Join(dir, "me"); err == nil {
		t.Error("two joined under one name")
	}
	if err := m.Leave(); err != nil || !Gone(dir, "me") {
		t.Errorf("after leaving: %v", err)
	}
}
