package watch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"codemode-bridge/bridge/watch"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// looks runs a watcher and returns what it looked for: true where it had heard
// something.
func looks(t *testing.T, where func() []string, o watch.Options) <-chan bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	looked, ended := make(chan bool), make(chan struct{})
	go func() {
		defer close(ended)
		watch.Folders(ctx, where, func(heard bool) {
			select {
			case looked <- heard:
			case <-ctx.Done():
			}
		}, o)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	if !<-looked {
		t.Error("the first look is for a poll")
	}
	return looked
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHears(t *testing.T) {
	dir := t.TempDir()
	looked := looks(t, func() []string { return []string{dir} }, watch.Options{Quiet: time.Millisecond, Poll: time.Hour})
	write(t, filepath.Join(dir, "a"))
	if !<-looked {
		t.Error("a poll, before its time")
	}
}

func TestPolls(t *testing.T) {
	dir := t.TempDir()
	looked := looks(t, func() []string { return []string{dir} }, watch.Options{Poll: time.Millisecond, Deaf: true})
	if <-looked {
		t.Error("the deaf have heard something")
	}
}

// A new folder is noticed through the one above it, and then watched itself; the one
// above is no longer watched.
func TestFollows(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "dir")
	where := func() []string {
		if _, err := os.Stat(dir); err != nil {
			return []string{above}
		}
		return []string{dir}
	}
	looked := looks(t, where, watch.Options{Quiet: time.Millisecond, Poll: time.Hour})
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	<-looked
	write(t, filepath.Join(dir, "a"))
	<-looked
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 5 { // a removal is several changes; the rest are these
		write(t, filepath.Join(above, "b"))
		<-looked
	}
}

// Steady changes do not put off looking for ever.
func TestPatience(t *testing.T) {
	dir := t.TempDir()
	looked := looks(t, func() []string { return []string{dir} }, watch.Options{Quiet: 20 * time.Millisecond, Poll: time.Hour})
	for changes := 0; ; changes++ {
		select {
		case <-looked:
			return
		default:
			write(t, filepath.Join(dir, "a"))
		}
	}
}
