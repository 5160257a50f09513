// Package notify tells the person at this machine that somebody must answer a
// question: by the desktop's own notifications where there are any, and by the
// bell of a terminal.
//
// A notification says which tool waits and nothing of its arguments: it is
// shown on locked screens and kept in histories that nobody protects. What an
// upstream server wrote reaches a program of the desktop only as letters,
// digits, ".", "_" and "-", as one argument of its own, and no shell is in
// between.
//
// Questions come in bursts. [Notifier.Asked] never waits: questions that come while
// a notification is shown, or sooner after it than [Options.Every], share the next
// one.
package notify

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Options say how a person is told. The zero value tells nobody.
type Options struct {
	// Desktop shows a notification where the system has a way to.
	Desktop bool
	// Bell, if not nil, is a terminal whose bell is rung.
	Bell io.Writer
	// Every is the least time between two notifications; 10 s if zero.
	Every time.Duration
	// At is where questions are answered, such as the address of a page; it is
	// named in the notification.
	At string
	// Logger hears once of a desktop that cannot be reached; nil means
	// slog.Default().
	Logger *slog.Logger

	// run starts a program and waits for it; look finds one; system is
	// runtime.GOOS. They are for tests.
	run    func(ctx context.Context, c command) error
	look   func(program string) error
	system string
}

// A Notifier tells a person. Its methods may be called concurrently. It has one
// goroutine, which Close ends.
type Notifier struct {
	o      Options
	stop   context.CancelFunc
	ended  chan struct{}
	wake   chan struct{} // holds one token while there is something to tell
	failed bool          // the last notification failed, and was logged; the goroutine's own

	mu      sync.Mutex
	tool    string // of the last question
	waiting int    // questions that nobody has been told of
}

// New makes a notifier and starts its goroutine.
func New(o Options) *Notifier {
	if o.Every == 0 {
		o.Every = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.run == nil {
		o.run, o.look, o.system = run, look, runtime.GOOS
	}
	ctx, stop := context.WithCancel(context.Background()) // until Close
	n := &Notifier{o: o, stop: stop, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	go n.tell(ctx)
	return n
}

// Asked says that a question came up about a call of a tool, by its name in
// scripts.
func (n *Notifier) Asked(tool string) {
	n.mu.Lock()
	n.tool, n.waiting = tool, n.waiting+1
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Close ends the notifier and its goroutine. Nobody is told of questions that still
// wait.
func (n *Notifier) Close() {
	n.stop()
	<-n.ended
}

// tell shows a notification when questions wait, at most one in Options.Every.
func (n *Notifier) tell(ctx context.Context) {
	defer close(n.ended)
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		n.mu.Lock()
		text := message(n.tool, n.waiting)
		n.waiting = 0
		n.mu.Unlock()
		n.show(ctx, text)
		select {
		case <-ctx.Done():
			return
		case <-time.After(n.o.Every):
		}
	}
}

// show brings one notification to the terminal and the desktop.
func (n *Notifier) show(ctx context.Context, text string) {
	if n.o.Bell != nil {
		_, _ = io.WriteString(n.o.Bell, "\a") // a terminal that is gone has no bell
	}
	if !n.o.Desktop {
		return
	}
	if n.o.At != "" {
		text += ": " + n.o.At
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := n.desktop(ctx, text)
	if err != nil && !n.failed {
		n.o.Logger.Warn("nobody can be notified on the desktop; questions still wait on the page", "err", err)
	}
	n.failed = err != nil
}

// patience is how long a desktop may take to show something.
const patience = 10 * time.Second

func (n *Notifier) desktop(ctx context.Context, text string) error {
	c, ok := commandOf(n.o.system, title, text)
	if !ok {
		return fmt.Errorf("%s has no notifications that this program knows", n.o.system)
	}
	if err := n.o.look(c.program); err != nil {
		return err
	}
	return n.o.run(ctx, c)
}

const title = "codemode-bridge: a person is needed"

// message says which tool asks, and how many questions wait.
func message(tool string, waiting int) string {
	if waiting > 1 {
		return fmt.Sprintf("%d calls wait for an answer, the last of %s", waiting, plain(tool))
	}
	return "a call of " + plain(tool) + " waits for an answer"
}

// plain returns a tool's name with "?" for every character that is not a plain one,
// cut if it is long.
func plain(name string) string {
	const most = 60
	safe := strings.Map(func(c rune) rune {
		if 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.ContainsRune("_.-", c) {
			return c
		}
		return '?'
	}, name)
	if len(safe) > most {
		safe = safe[:most] + "..."
	}
	if safe == "" {
		return "a tool"
	}
	return safe
}

// A command is a program that shows a notification.
type command struct {
	program string
	args    []string
	env     []string // in addition to the bridge's own
}

// commandOf returns the command that shows a notification on a system. The texts are
// arguments or variables of their own; the scripts around them are fixed.
func commandOf(system, title, text string) (c command, ok bool) {
	switch system {
	case "linux", "freebsd", "openbsd", "netbsd", "dragonfly":
		return command{program: "notify-send", args: []string{"--app-name=codemode-bridge", "--", title, text}}, true
	case "darwin":
		return command{program: "osascript", args: []string{
			"-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run", title, text}}, true
	case "windows":
		return command{program: "powershell.exe", args: []string{"-NoProfile", "-NonInteractive", "-WindowStyle", "Hidden", "-Command", toast},
			env: []string{"CODEMODE_TITLE=" + title, "CODEMODE_TEXT=" + text}}, true
	}
	return command{}, false
}

// toast shows a notification on Windows. It takes its texts from the
// environment and sets them as text of the template, never as XML.
const toast = `$ErrorActionPreference = 'Stop'
[Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime] | Out-Null
$t = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$n = $t.GetElementsByTagName('text')
$n.Item(0).AppendChild($t.CreateTextNode($env:CODEMODE_TITLE)) | Out-Null
$n.Item(1).AppendChild($t.CreateTextNode($env:CODEMODE_TEXT)) | Out-Null
[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier('codemode-bridge').Show([Windows.UI.Notifications.ToastNotification]::new($t))`

// look reports whether a program is installed.
func look(program string) error {
	_, err := exec.LookPath(program)
	return err
}

// run starts a program, with no input and no output, and waits for it.
func run(ctx context.Context, c command) error {
	cmd := exec.CommandContext(ctx, c.program, c.args...)
	cmd.Env = append(os.Environ(), c.env...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("showing a notification with %s: %w", c.program, err)
	}
	return nil
}
