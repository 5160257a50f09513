package upstream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/relay"
	"codemode-bridge/bridge/upstream/tap"

	"github.com/google/uuid"
	"golang.org/x/time/rate"
)

// How long a child has to end by itself after its stdin was closed, and then after
// it was asked to. Together they stay below the three seconds after which nothing of
// it may be left.
const (
	politely = 1500 * time.Millisecond
	firmly   = 700 * time.Millisecond
)

// defaultVariables are the variables of our own environment that every child gets:
// those that programs need to find their files and the user's, and nothing that could
// be secret. An entry ending in * stands for all names that begin with it.
var defaultVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LC_*", "XDG_*",
	// Windows:
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "PATHEXT",
	"PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP",
	"USERNAME", "USERPROFILE", "WINDIR",
}

// marker is the variable that shows which processes descend from which child,
// wherever they are in the process tree.
const marker = "CODEMODE_BRIDGE_CHILD"

// Inherited returns the part of our own environment, in the form of os.Environ, that
// children see, including the variables in passEnv.
func Inherited(passEnv, ours []string) []string {
	var env []string
	for _, entry := range ours {
		name, _, _ := strings.Cut(entry, "=")
		wanted := slices.ContainsFunc(defaultVariables, func(v string) bool {
			if prefix, ok := strings.CutSuffix(v, "*"); ok {
				return strings.HasPrefix(name, prefix)
			}
			return sameVariable(name, v)
		}) || slices.ContainsFunc(passEnv, func(v string) bool { return sameVariable(name, v) })
		if wanted && name != "" {
			env = append(env, entry)
		}
	}
	return env
}

// environment returns the environment of spec's child, from ours and the spec's.
func environment(spec Spec, ours []string) []string {
	env := Inherited(spec.PassEnv, ours)
	for name, value := range spec.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// A process is the child of a stdio server. Its reader of stderr and its
// watcher are goroutines that end with it; stop waits for them.
type process struct {
	*contained
	group  group
	cookie string // value of the marker
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	said   tail
	exited chan struct{} // closed when the child was reaped
	once   sync.Once
	ended  sync.WaitGroup
}

// start starts the child. The child is not bound to a context: it lives until stop.
// asks is called with each login link that the child writes to its stderr.
func start(spec Spec, ours []string, log *slog.Logger, shown redactor, asks func(link string)) (*process, error) {
	p := &process{exited: make(chan struct{}), cookie: uuid.NewString(), said: tail{own: spec.Own, shown: shown, asks: asks}}
	run, err := spec.program(ours)
	if err != nil {
		return nil, &startError{err}
	}
	run.env = append(run.env, marker+"="+p.cookie)

	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	var ends []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range ends {
				f.Close()
			}
			return nil, &startError{err}
		}
		if len(ends) == 0 {
			ends, theirs = append(ends, w), append(theirs, r)
		} else {
			ends, theirs = append(ends, r), append(theirs, w)
		}
	}
	p.stdin, p.stdout, p.stderr = ends[0], ends[1], ends[2]
	run.files = [3]*os.File(theirs)
	if p.contained, err = run.run(spec.Box, relay.Options{Log: log}); err != nil {
		for _, f := range ends {
			f.Close()
		}
		// The error of fork names the command and, if that is what is
		// missing, the directory.
		return nil, &startError{err}
	}
	p.note(log)
	p.group = newGroup(p.cmd.Process)
	p.ended.Go(func() { p.said.read(p.stderr, log) })
	p.ended.Go(func() {
		_ = p.cmd.Wait() // the process state says how it ended
		close(p.exited)
		// A grandchild may hold the pipe open. By now the child's own output
		// has been read: it is at most what the pipe holds.
		time.AfterFunc(300*time.Millisecond, func() { _ = p.stdout.Close() })
	})
	return p, nil
}

// program returns what the child of a spec runs, and in which folder: ours, unless the
// spec names another. A box has to know it.
func (s Spec) program(ours []string) (program, error) {
	env := environment(s, ours)
	path, err := lookPath(s.Command, env)
	if err != nil {
		return program{}, err
	}
	p := program{path: path, args: append([]string{s.Command}, s.Args...), dir: s.Dir, env: env}
	if s.Box != nil && p.dir == "" {
		p.dir, err = os.Getwd()
	}
	return p, err
}

// lookPath finds a command in the PATH that the child will have.
func lookPath(command string, env []string) (string, error) {
	if command == "" {
		return "", errors.New("no command is configured")
	}
	path, ok := lookup(env, "PATH")
	if !ok || filepath.Base(command) != command || !searchable {
		return exec.LookPath(command)
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, command)
		if !filepath.IsAbs(file) {
			continue // never run a program from whatever directory we happen to be in
		}
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", &missingError{command, path}
}

// A missingError says that no folder of a PATH has a command.
type missingError struct{ command, path string }

func (e *missingError) Error() string {
	return fmt.Sprintf("executable file not found: no folder of the PATH has %q%s"+
		`write the whole path as "command", or set "PATH" in the server's "env"; searched: %s`, e.command, shortPath, tap.Escape(e.path, tap.MaxLine))
}

const shortPath = "; what a desktop application starts has a short PATH: "

// Brief returns why a server does not work for a row of a table: of a program that is
// missing without the advice and the PATH that was searched.
func Brief(why string) string {
	brief, _, _ := strings.Cut(why, shortPath)
	return brief
}

func (e *missingError) Unwrap() error { return exec.ErrNotFound }

func (p *process) pid() int { return p.cmd.Process.Pid }

// howItEnded says how the process ended, or that it did not. It first waits a moment,
// in case the process is just ending.
func (p *process) howItEnded() string {
	text := "the process closed its output"
	select {
	case <-p.exited:
		text = "the process ended: " + p.cmd.ProcessState.String()
		// Its last words may still be in the pipe.
		p.said.wait(200 * time.Millisecond)
	case <-time.After(500 * time.Millisecond):
	}
	return text
}

// stop ends the process and everything that it started, and returns when nothing of it is
// left: once its stdin is closed it has patience to end by itself, and is then asked to,
// firmly in the end.
func (p *process) stop(patience time.Duration) {
	p.once.Do(func() {
		_ = p.stdin.Close()
		asked := false
		if !p.exitsWithin(patience) {
			p.terminate()
			asked = true
			if !p.exitsWithin(firmly) {
				p.group.kill(p.cookie)
				_ = p.cmd.Process.Kill()
				<-p.exited
			}
		}
		// What the child left behind: the server behind npx, daemons.
		if p.group.alive(p.cookie) {
			if !asked {
				p.terminate()
				for end := time.Now().Add(firmly); p.group.alive(p.cookie) && time.Now().Before(end); {
					time.Sleep(20 * time.Millisecond)
				}
			}
			p.group.kill(p.cookie)
		}
		p.group.close()
		p.close()
		_ = p.stdout.Close()
		_ = p.stderr.Close()
	})
	p.ended.Wait()
}

func (p *process) terminate() { p.group.terminate(p.cookie) }

func (p *process) exitsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// A tail reads the stderr of a child to its end, logs it line by line, and keeps
// the last lines for error messages.
type tail struct {
	own   bool // its lines may be reports
	shown redactor
	asks  func(link string) // of links to a login

	mu    sync.Mutex
	lines []string      // as they were read, cut
	why   string        // the last error that was reported
	done  chan struct{} // closed at the end of stderr
}

const keptLines = 6

// stackFrame matches a line of a stack as Node prints it: it says where, not what, and
// ten of them would leave no room for the error above them.
var stackFrame = regexp.MustCompile(`^at (.*[(/].*:\d+:\d+\)?( \{)?|.* \((<anonymous>|native)\))$`)

// loginLink matches the link to an OAuth authorization server that a program which
// obtains its own login, such as mcp-remote, asks a person to open.
var loginLink = regexp.MustCompile(`https?://[^\s"'<>]+[?&]response_type=code[^\s"'<>]*`)

func (t *tail) init() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		t.done = make(chan struct{})
	}
	return t.done
}

func (t *tail) read(r io.Reader, log *slog.Logger) {
	defer close(t.init())
	limiter, unlogged := rate.NewLimiter(20, 100), 0
	size := 8 << 10
	if t.own {
		size = 64 << 10 // a report must fit
	}
	buffered := bufio.NewReaderSize(r, size)
	for {
		// A line longer than the buffer counts as several.
		line, err := buffered.ReadSlice('\n')
		if text := strings.TrimSpace(string(line)); t.own && t.report(text, log, limiter) {
			continue
		} else if text != "" {
			if !stackFrame.MatchString(text) {
				t.mu.Lock()
				if t.lines = append(t.lines, text); len(t.lines) > keptLines {
					t.lines = slices.Delete(t.lines, 0, 1)
				}
				t.mu.Unlock()
			}
			if link := loginLink.FindString(text); link != "" && len(link) <= maxLink {
				t.asks(t.shown.show(link, maxLink))
			}
			if limiter.Allow() {
				log.Debug("stderr of the server", "line", t.shown.show(text, tap.MaxLine), "unlogged", unlogged)
				unlogged = 0
			} else {
				unlogged++
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		runtime.Gosched() // a flood of lines must not hold up others
	}
}

// report logs a line if it is a report of one of our own programs, and says whether it
// is. The program may have read hostile data: its texts are shown like those of any
// server.
func (t *tail) report(line string, log *slog.Logger, limiter *rate.Limiter) bool {
	var attrs map[string]any
	var level slog.Level
	if json.Unmarshal([]byte(line), &attrs) != nil {
		return false
	}
	message, isText := attrs[slog.MessageKey].(string)
	name, hasLevel := attrs[slog.LevelKey].(string)
	if !isText || !hasLevel || level.UnmarshalText([]byte(name)) != nil {
		return false
	}
	delete(attrs, slog.MessageKey)
	delete(attrs, slog.LevelKey)
	delete(attrs, slog.TimeKey)
	if why, ok := attrs["err"].(string); ok && level >= slog.LevelError {
		t.mu.Lock()
		t.why = why
		t.mu.Unlock()
		return true // reported by whoever notices that the process ended
	}
	if !limiter.Allow() {
		return true
	}
	var args []any
	for _, key := range slices.Sorted(maps.Keys(attrs)) {
		args = append(args, t.shown.show(key, tap.MaxName), t.shown.show(fmt.Sprint(attrs[key]), tap.MaxMessage))
	}
	log.Log(context.Background(), level, t.shown.show(message, tap.MaxMessage), args...) // a process's output belongs to no request
	return true
}

// reason is the last error that a program of ours reported; empty if there is none.
func (t *tail) reason() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// wait waits for the end of stderr, at most d.
func (t *tail) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.init():
	case <-timer.C:
	}
}

// shownLines returns the last lines, safe to show.
func (t *tail) shownLines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	shown := make([]string, len(t.lines))
	for i, line := range t.lines {
		shown[i] = t.shown.show(line, tap.MaxLine)
	}
	return shown
}

// last returns the last lines, to be appended to an error message.
func (t *tail) last() string {
	lines := t.shownLines()
	if len(lines) == 0 {
		return ""
	}
	return "; its stderr ends: " + strings.Join(lines, " | ")
}
