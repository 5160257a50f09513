package watchfile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline is when a test gives up waiting. No test expects anything sooner.
const deadline = 3 * time.Minute

// never stands for a poll that must not be what a test sees.
const never = time.Hour

// A watched is a running Watch and what it told.
type watched struct {
	t       *testing.T
	changed chan string
	lost    chan error
	stop    func()
}

func watchFile(t *testing.T, path string, o Options) *watched {
	t.Helper()
	w := &watched{t: t, changed: make(chan string, 1000), lost: make(chan error, 1000)}
	o.Lost = func(err error) { w.lost <- err }
	if o.Quiet == 0 {
		o.Quiet = 10 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { Watch(ctx, path, func(data []byte) { w.changed <- string(data) }, o) })
	w.stop = func() { cancel(); done.Wait() }
	t.Cleanup(w.stop)
	return w
}

// until waits for a content, and returns what was told before it.
func (w *watched) until(want string) (before []string) {
	w.t.Helper()
	timeout := time.After(deadline)
	for {
		select {
		case got := <-w.changed:
			if got == want {
				return before
			}
			before = append(before, got)
		case <-timeout:
			w.t.Fatalf("never heard of %q, but of %q", want, before)
		}
	}
}

func (w *watched) untilLost() error {
	w.t.Helper()
	select {
	case err := <-w.lost:
		return err
	case <-time.After(deadline):
		w.t.Fatal("never heard that the file is gone")
		return nil
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func digestOf(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

// Every way in which a file changes, noticed once by notification and once by
// polling alone.
func TestWatch(t *testing.T) {
	ways := []struct {
		name   string
		change func(t *testing.T, folder, path, text string)
	}{
		{"written in place", func(t *testing.T, _, path, text string) { write(t, path, text) }},
		{"renamed over", func(t *testing.T, folder, path, text string) {
			temporary := filepath.Join(folder, ".c.json.tmp")
			write(t, temporary, text)
			must(t, os.Rename(temporary, path))
		}},
		{"removed and written", func(t *testing.T, _, path, text string) {
			must(t, os.Remove(path))
			write(t, path, text)
		}},
		{"backed up and written, as vim does", func(t *testing.T, _, path, text string) {
			must(t, os.Rename(path, path+"~"))
			write(t, path, text)
			must(t, os.Remove(path+"~"))
		}},
		{"in two halves", func(t *testing.T, _, path, text string) {
			f, err := os.Create(path)
			must(t, err)
			_, err = f.WriteString(text[:1])
			must(t, err)
			_, err = f.WriteString(text[1:])
			must(t, err)
			must(t, f.Close())
		}},
		{"with its folder", func(t *testing.T, folder, path, text string) {
			must(t, os.RemoveAll(folder))
			must(t, os.Mkdir(folder, 0o700))
			write(t, path, text)
		}},
	}
	for _, by := range []struct {
		name    string
		options Options
	}{
		{"notified", Options{Poll: never}},
		{"polling", Options{Poll: 10 * time.Millisecond, deaf: true}},
	} {
		t.Run(by.name, func(t *testing.T) {
			for _, way := range ways {
				t.Run(way.name, func(t *testing.T) {
					folder := filepath.Join(t.TempDir(), "etc")
					must(t, os.Mkdir(folder, 0o700))
					path := filepath.Join(folder, "c.json")
					write(t, path, "zero")
					o := by.options
					if way.name == "with its folder" && o.Poll == never && runtime.GOOS != "linux" {
						o.Poll = 100 * time.Millisecond // others do not tell of a folder's return
					}
					w := watchFile(t, path, o)
					w.until("zero")
					for i := range 3 {
						way.change(t, folder, path, fmt.Sprint("content ", i))
						w.until(fmt.Sprint("content ", i))
					}
				})
			}
		})
	}
}

func links(t *testing.T, target, link string) {
	t.Helper()
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
}

// Kubernetes mounts a config map as c.json -> ..data/c.json, ..data -> a
// folder with a date, and redirects ..data to another folder by a rename.
func TestWatchKubernetes(t *testing.T) {
	folder := t.TempDir()
	turn := func(i int) {
		dated := filepath.Join(folder, fmt.Sprint("..2026_", i))
		must(t, os.Mkdir(dated, 0o700))
		write(t, filepath.Join(dated, "c.json"), fmt.Sprint("content ", i))
		links(t, filepath.Base(dated), filepath.Join(folder, "..data_tmp"))
		must(t, os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")))
		if i > 0 {
			must(t, os.RemoveAll(filepath.Join(folder, fmt.Sprint("..2026_", i-1))))
		}
	}
	turn(0)
	path := filepath.Join(folder, "c.json")
	links(t, filepath.Join("..data", "c.json"), path)
	w := watchFile(t, path, Options{Poll: never})
	w.until("content 0")
	for i := 1; i < 5; i++ {
		turn(i)
		w.until(fmt.Sprint("content ", i))
	}
}

// A link to a file somewhere else: the file changes there, then the link is
// redirected here.
func TestWatchLink(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	one, two, path := filepath.Join(there, "one"), filepath.Join(there, "two"), filepath.Join(here, "c.json")
	write(t, one, "one")
	write(t, two, "two")
	links(t, one, path)
	w := watchFile(t, path, Options{Poll: never})
	w.until("one")
	write(t, one+".tmp", "one again")
	must(t, os.Rename(one+".tmp", one))
	w.until("one again")
	links(t, two, path+".tmp")
	must(t, os.Rename(path+".tmp", path))
	w.until("two")
	write(t, two, "two again")
	w.until("two again")
}

func TestWatchLostAndFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	write(t, path, "one")
	w := watchFile(t, path, Options{Poll: never})
	w.until("one")

	must(t, os.Remove(path))
	if err := w.untilLost(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("lost: %v", err)
	}
	write(t, path, "one")
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, 0o700))
	must(t, os.Remove(path))
	write(t, path, "two")
	if before := w.until("two"); len(before) > 0 {
		t.Errorf("the same content was told again: %q", before)
	}
}

func TestWatchFolderInItsPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	write(t, path, "one")
	w := watchFile(t, path, Options{Poll: never})
	w.until("one")
	must(t, os.Remove(path))
	w.untilLost()
	write(t, path, "two")
	w.until("two")
	must(t, os.Rename(path, path+".old"))
	must(t, os.Mkdir(path, 0o700))
	w.untilLost()
	must(t, os.Remove(path))
	write(t, path, "three")
	w.until("three")
}

func TestWatchPermission(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("nothing is unreadable here")
	}
	path := filepath.Join(t.TempDir(), "c.json")
	write(t, path, "one")
	w := watchFile(t, path, Options{Poll: never})
	w.until("one")
	must(t, os.Chmod(path, 0))
	if err := w.untilLost(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("lost: %v", err)
	}
	must(t, os.Chmod(path, 0o600))
	write(t, path, "two")
	w.until("two")
}

// What was loaded before the watch began is known; what came in between is not
// missed.
func TestWatchKnowsWhatWasLoaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	write(t, path, "one")
	w := watchFile(t, path, Options{Poll: never, Loaded: digestOf("one")})
	write(t, path, "two")
	if before := w.until("two"); slices.Contains(before, "one") {
		t.Errorf("told of what was loaded: %q", before)
	}
	w = watchFile(t, path, Options{Poll: never, Loaded: digestOf("one")})
	w.until("two")
}

// Touching, rewriting and neighbours are no change.
func TestWatchSameContent(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "c.json")
	write(t, path, "one")
	w := watchFile(t, path, Options{Poll: 10 * time.Millisecond})
	w.until("one")
	for i := range 20 {
		temporary := filepath.Join(folder, fmt.Sprint("other", i))
		write(t, temporary, "one")
		must(t, os.Rename(temporary, path))
		must(t, os.Chtimes(path, time.Time{}, time.Unix(int64(i)*1000, 0)))
		write(t, filepath.Join(folder, "neighbour"), fmt.Sprint(i))
	}
	write(t, path, "two")
	if before := w.until("two"); len(before) > 0 && slices.Contains(before, "one") {
		t.Errorf("told again of the same: %q", before)
	}
}

// While a file is replaced without pause, changes are still told of, and the
// last one is what counts.
func TestWatchNeverQuiet(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "c.json")
	write(t, path, "start")
	w := watchFile(t, path, Options{Poll: never, Quiet: 50 * time.Millisecond})
	w.until("start")

	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			temporary := filepath.Join(folder, "tmp")
			if os.WriteFile(temporary, fmt.Append(nil, "content ", i), 0o600) != nil || os.Rename(temporary, path) != nil {
				return
			}
		}
	})
	for range 3 {
		select {
		case text := <-w.changed:
			if !strings.HasPrefix(text, "content ") {
				t.Errorf("told of %q", text)
			}
		case <-time.After(deadline):
			t.Error("nothing was told of a file that never rests")
		}
	}
	close(stop)
	writer.Wait()
	write(t, path, "end")
	w.until("end")
}

func TestWatchEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "c.json")
	w := watchFile(t, path, Options{})
	w.untilLost()
	w.stop() // returns; goleak sees what it left behind
}

func TestFolders(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	join := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	for _, folder := range []string{"a", "b", "c"} {
		must(t, os.Mkdir(join(folder), 0o700))
	}
	write(t, join("c", "file"), "")
	links(t, join("c"), join("b", "c-link"))
	links(t, filepath.Join("..", "b", "c-link", "file"), join("a", "link"))
	links(t, "loop2", join("loop1"))
	links(t, "loop1", join("loop2"))
	for _, r := range []struct {
		path string
		want []string
	}{
		{join("c", "file"), []string{join("c")}},
		{join("a", "link"), []string{join("a"), join("b"), join("c")}},
		{join("a", "missing"), []string{join("a")}},
		{join("a", "missing", "deeper", "file"), []string{join("a")}},
		{join("loop1"), []string{root}},
	} {
		found := folders(r.path)
		for _, folder := range r.want {
			if !found[folder] {
				t.Errorf("%s: %s is not watched", r.path, folder)
			}
		}
		if len(found) != len(r.want) {
			t.Errorf("%s: %v is watched, want %v", r.path, found, r.want)
		}
	}
}
