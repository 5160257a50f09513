//go:build unix

package instance

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func folders(t *testing.T) Folders {
	return Folders{State: filepath.Join(t.TempDir(), "windows"), Runtime: filepath.Join(t.TempDir(), "runtime")}
}

func at(t *testing.T, f Folders, identity ...string) *Rendezvous {
	t.Helper()
	p, err := At(f, "config", identity)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// echo makes an instance that sends back what it gets. The function that it returns
// ends the instance.
func echo(t *testing.T, p *Rendezvous) (h *Listener, end func()) {
	t.Helper()
	h, err := p.Own(t.Context())
	if err == nil {
		err = h.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.Serve(func(c *Conn) {
			defer c.Close()
			if c.accept(Welcome{PID: os.Getpid(), Client: "w1"}) == nil {
				io.Copy(c, c)
			}
		}, func(error) {})
	}()
	var once sync.Once
	end = func() { once.Do(func() { h.Close(); <-served }) }
	t.Cleanup(end)
	return h, end
}

func nobody(context.Context) error { return errors.New("nobody was to be started") }

// says sends a line and expects it back.
func says(t *testing.T, c *Conn, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(c).ReadString('\n'); got != line {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestJoin(t *testing.T) {
	f := folders(t)
	p := at(t, f, "a", "b")
	started := 0
	var end func()
	c, err := p.Join(t.Context(), func(context.Context) error {
		started++
		_, end = echo(t, at(t, f, "a", "b")) // as another process has it
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Welcome.PID != os.Getpid() || c.Welcome.Client != "w1" || started != 1 {
		t.Errorf("welcome %+v, started %d", c.Welcome, started)
	}
	says(t, c, "raw bytes\n")
	other, err := p.Join(t.Context(), nobody)
	if err != nil {
		t.Fatal(err)
	}
	says(t, other, "of another\n")
	if info, err := os.Stat(p.socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	if all := In(f, "config"); len(all) != 1 || len(In(f, "other")) != 0 {
		t.Errorf("rendezvous %v", all)
	}
	c.Close()
	other.Close()
	end()
	entries, err := os.ReadDir(f.State)
	if err != nil || len(entries) != 1 || entries[0].Name() != "key" {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if _, err := p.Join(t.Context(), nobody); err == nil || !strings.Contains(err.Error(), "nobody was to be started") {
		t.Errorf("after the end: %v", err)
	}
}

func TestDifferentIdentitiesDoNotMeet(t *testing.T) {
	f := folders(t)
	echo(t, at(t, f, "X=1"))
	for _, identity := range [][]string{{"X=2"}, {"X=", "1"}, {"X=1", ""}, nil} {
		if _, err := at(t, f, identity...).Join(t.Context(), nobody); err == nil {
			t.Errorf("%q met X=1", identity)
		}
	}
	// Nor where their short names are the same.
	p := at(t, f, "X=1")
	p.digest = make([]byte, len(p.digest))
	if _, err := p.Join(t.Context(), nobody); err == nil || !strings.Contains(err.Error(), "not like those") {
		t.Errorf("a wrong digest: %v", err)
	}
	// Names are keyed: in another folder the same identity has another.
	if other := at(t, folders(t), "X=1"); filepath.Base(other.socket) == filepath.Base(at(t, f, "X=1").socket) {
		t.Error("the name of the socket tells what went into it")
	}
}

func TestOneOfManyStartsTheInstance(t *testing.T) {
	f := folders(t)
	var started atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p, err := At(f, "config", []string{"same"}) // which makes the key, too
			if err != nil {
				t.Error(err)
				return
			}
			c, err := p.Join(t.Context(), func(context.Context) error {
				started.Add(1)
				echo(t, p)
				return nil
			})
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	all.Wait()
	if n := started.Load(); n != 1 {
		t.Errorf("%d instances were started", n)
	}
}

func TestInstanceThatWasKilled(t *testing.T) {
	f := folders(t)
	p := at(t, f)
	h, err := p.Own(t.Context())
	if err == nil {
		err = h.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	h.listener.SetUnlinkOnClose(false)
	h.listener.Close()
	h.lock.file.Close() // the system's part; the files stay
	if _, err := os.Lstat(p.socket); err != nil {
		t.Fatal(err)
	}
	c, err := p.Join(t.Context(), func(context.Context) error { echo(t, p); return nil })
	if err != nil {
		t.Fatal(err)
	}
	says(t, c, "anew\n")
	c.Close()
}

// An instance that ends refuses clients first and lets go of the rendezvous last.
func TestInstanceWaitsForTheOneBefore(t *testing.T) {
	p := at(t, folders(t))
	h, err := p.Own(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Own(short); !errors.Is(err, context.Canceled) {
		t.Errorf("two instances of one rendezvous: %v", err)
	}
	next := make(chan error)
	go func() {
		h, err := p.Own(t.Context())
		if err == nil {
			h.Close()
		}
		next <- err
	}()
	h.Close()
	if err := <-next; err != nil {
		t.Error(err)
	}
}

func TestOtherUsersAreRefused(t *testing.T) {
	f := folders(t)
	p := at(t, f)
	_, end := echo(t, p)
	stranger := *p
	stranger.uid++
	if _, err := stranger.Join(t.Context(), nobody); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("a client and a stranger's instance: %v", err)
	}
	end()

	h, err := p.Own(t.Context())
	if err == nil {
		h.at = &stranger // so that this user is a stranger to it
		err = h.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	why := make(chan error, 1)
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.Serve(func(c *Conn) { t.Error("a stranger was heard"); c.Close() }, func(err error) { why <- err })
	}()
	if _, err := p.ask(t.Context(), askServe, ""); err == nil {
		t.Error("a stranger was served")
	}
	if err := <-why; !strings.Contains(err.Error(), "another user") {
		t.Errorf("refused because %v", err)
	}
	h.Close()
	<-served
}

func TestFolderMustBePrivate(t *testing.T) {
	f := folders(t)
	if err := os.Mkdir(f.State, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(f.State, 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := At(f, "config", nil); err == nil || !strings.Contains(err.Error(), "open to other users (mode 0750)") {
		t.Errorf("an open folder: %v", err)
	}
	if len(In(f, "config")) != 0 {
		t.Error("an open folder is looked into")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if _, err := At(Folders{State: link}, "config", nil); err == nil {
		t.Error("a link is followed")
	}
}

func TestLongNames(t *testing.T) {
	f := folders(t)
	f.State = filepath.Join(f.State, strings.Repeat("long/", 25))
	short, err := os.MkdirTemp("", "join")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	f.Runtime = filepath.Join(short, "r")
	p := at(t, f)
	echo(t, p)
	c, err := p.Join(t.Context(), nobody)
	if err != nil {
		t.Fatal(err)
	}
	says(t, c, "near\n")
	c.Close()
	if len(In(f, "config")) != 1 {
		t.Error("it is not found")
	}
	f.Runtime = f.State
	if _, err := At(f, "config", nil); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("no folder with a short name: %v", err)
	}
}

// Every byte after the two lines reaches whoever is to read it.
func TestReadLineReadsNoMore(t *testing.T) {
	r := strings.NewReader("{\"join\":1,\"ask\":\"serve\"}\nrest")
	var h hello
	if err := readLine(r, &h); err != nil || h.Ask != askServe {
		t.Fatal(h, err)
	}
	if rest, _ := io.ReadAll(r); string(rest) != "rest" {
		t.Errorf("left: %q", rest)
	}
	if err := readLine(strings.NewReader(strings.Repeat("x", maxLine+1)), &h); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a line without end: %v", err)
	}
}

// The last words of the next instance are neither emptied nor removed by the one
// before.
func TestWhatTheNextInstanceSays(t *testing.T) {
	p := at(t, folders(t))
	first, err := p.Own(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = p.startOne(t.Context(), func(ctx context.Context) error {
		said, err := os.OpenFile(p.LastWords(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer said.Close()
		first.Close()
		next, err := p.Own(ctx)
		if err != nil {
			return err
		}
		defer next.Close()
		if _, err := said.WriteString("crashed"); err != nil {
			return err
		}
		if text, err := os.ReadFile(p.LastWords()); string(text) != "crashed" {
			t.Errorf("it said %q, %v", text, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	last, err := p.Own(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(p.LastWords()); err != nil || len(text) > 0 {
		t.Errorf("the next begins with %q, %v", text, err)
	}
	last.Close()
	if _, err := os.Stat(p.LastWords()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty file is left behind: %v", err)
	}
}
