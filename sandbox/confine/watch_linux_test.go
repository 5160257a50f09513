package confine

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// database is where the watched program connects to.
var database = netip.MustParseAddrPort("203.0.113.7:5432")

const watchedVariable = "CODEMODE_TEST_WATCHED"

// useThings is the watched program of TestWatch.
func useThings(folder string) (code int) {
	in := func(name string) string { return filepath.Join(folder, name) }
	os.Chdir(folder)
	os.ReadFile("had")
	os.ReadFile(in("missing"))
	os.WriteFile(in("new"), nil, 0o600)
	os.Rename(in("new"), in("renamed"))
	os.Mkdir(in("folder"), 0o700)
	os.WriteFile(in("had"), []byte("x"), 0o600)
	exec.Command("/bin/true").Run()
	net.Dial("tcp", database.String())
	net.LookupHost("api.example.com")
	return 0
}

// What a program uses is seen before it happens, whatever of it succeeds.
func TestWatch(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	if err := os.WriteFile(in("had"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w, err := Watch(self, func() *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), watchedVariable+"="+folder)
		cmd.Stderr = os.Stderr
		return cmd
	})
	if err != nil && strings.Contains(err.Error(), "watching system calls: ") {
		t.Skip("no system call can be watched here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range w.Sockets {
		s.File.Close() // nobody answers
	}
	var seen []Use
	var served sync.WaitGroup
	w.Follow(func(u Use) {
		seen = append(seen, u)
		if !w.Own || u.To != database {
			return
		}
		s, err := w.Listen(database.Port())
		if err != nil {
			t.Error(err)
			return
		}
		l, err := net.FileListener(s.File)
		s.File.Close()
		if err != nil {
			t.Error(err)
			return
		}
		served.Go(func() {
			defer l.Close()
			conn, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if got := conn.LocalAddr().String(); got != database.String() {
				t.Errorf("a connection to another address than the program meant: %s", got)
			}
		})
	})
	if err := w.Cmd.Wait(); err != nil {
		t.Error(err)
	}
	w.Close()
	served.Wait()
	want := []Use{
		{Kind: Starts, Path: self},
		{Kind: Reads, Path: in("had")},
		{Kind: Writes, Path: in("new"), New: true, Place: true},
		{Kind: Writes, Path: in("new"), Place: true},
		{Kind: Writes, Path: in("renamed"), New: true, Place: true},
		{Kind: Writes, Path: in("folder"), New: true, Place: true},
		{Kind: Writes, Path: in("had")},
		{Kind: Starts, Path: "/bin/true"},
		{Kind: Connects, To: database},
	}
	got := slices.DeleteFunc(slices.Clone(seen), func(u Use) bool { return !slices.Contains(want, u) })
	compare := cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("(-want +got):\n%s\nall: %+v", diff, seen)
	}
	if slices.ContainsFunc(seen, func(u Use) bool { return u.Path == in("missing") }) {
		t.Error("a file that is not there was read")
	}
	if w.Own && !slices.ContainsFunc(seen, func(u Use) bool { return u.To == netip.MustParseAddrPort("127.0.0.1:53") }) {
		t.Error("the program did not ask the bridge for a name")
	}
}
