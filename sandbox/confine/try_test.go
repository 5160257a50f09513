package confine

import (
	"os"
	"os/exec"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "box" {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

func TestTry(t *testing.T) {
	dir := t.TempDir()
	p, err := Box{Write: []string{dir}, Net: Net{}}.Start(os.Args[0], func() *exec.Cmd {
		c := exec.Command("/bin/sh", "-c", "id; ls / /etc /dev /tmp; cat /etc/shadow; ls /root /work; touch "+dir+"/a && echo wrote; touch /usr/x; echo $$; ps ax; mount | head -50; cat /proc/self/status | grep -E 'Cap|Secc|NoNew'; unshare -Ur true; python3 -c 'import socket; socket.create_connection((\"1.1.1.1\",80),2)'")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.Env = []string{"PATH=/usr/bin:/bin", "HOME=/root"}
		return c
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(p.Steps, p.Cmd.Wait())
}
