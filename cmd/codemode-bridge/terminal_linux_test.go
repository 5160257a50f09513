package main_test

// What a person at a terminal sees and does, on a pseudo-terminal.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"
)

// A terminal is a pseudo-terminal with a program on it, and what the program wrote.
type terminal struct {
	*testing.T
	keys    *os.File
	process *exec.Cmd
	ended   chan struct{} // closed when it has ended and all was read

	mu    sync.Mutex
	wrote strings.Builder
}

// onTerminal starts a program with the terminal as those standard streams that cmd does not
// set. Typed is in the terminal's input before the program starts.
func onTerminal(t *testing.T, cmd *exec.Cmd, typed string) *terminal {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals: %v", err)
	}
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	term := &terminal{T: t, keys: keys, process: cmd, ended: make(chan struct{})}
	term.types(typed)
	cmd.Stdin, cmd.Stderr = screen, screen
	if cmd.Stdout == nil {
		cmd.Stdout = screen
	}
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(term.ended)
		io.Copy(term, keys) // returns, with an error, once no process has the terminal open
		cmd.Wait()
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-term.ended
		keys.Close()
	})
	return term
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrote.Write(p)
}

// all is everything that was written so far.
func (t *terminal) all() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrote.String()
}

func (t *terminal) types(keys string) {
	t.Helper()
	if _, err := io.WriteString(t.keys, keys); err != nil {
		t.Fatal(err)
	}
}

func (t *terminal) shows(text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("[terminal]\n%q", t.all())
		}
	}()
	eventually(t.T, fmt.Sprintf("%q is not shown", text), func() bool { return strings.Contains(t.all(), text) })
}

// signsIn starts approvals watch, with ahead typed before, and gives it a token.
func (c commandLine) signsIn(token, ahead string, env ...string) *terminal {
	c.Helper()
	cmd := c.program("", "approvals", "watch")
	cmd.Env = append(cmd.Env, env...)
	t := onTerminal(c.T, cmd, ahead)
	t.shows("your approver's token: ")
	t.types(token + "\r")
	return t
}

// leaves ends approvals watch as a person would, and takes back an answer that earlier keys
// may have begun.
func (t *terminal) leaves() {
	t.Helper()
	eventually(t.T, "q does not end it", func() bool {
		io.WriteString(t.keys, "\x7f\x7f\x7f\x7f\x04q") // fails once it has ended
		select {
		case <-t.ended:
			return true
		default:
			return false
		}
	})
}

// title is the terminal's title while n requests are shown.
func title(n int) string { return fmt.Sprintf("codemode approvals (%d)", n) }

// emptied reports whether the requests that were shown are gone. It is false before any
// were shown.
func (t *terminal) emptied() bool {
	all := t.all()
	return strings.LastIndex(all, title(0)) > strings.LastIndex(all, title(1))
}

func TestApprovalsOnATerminal(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, queueing)
	ann := strings.TrimSpace(c.does("", "approvers", "add", "ann", "--role", "admin"))

	const hostile = `const text = "a\u001b[5n\u001b]52;c;aGk=\u0007\u001bP1\u001b\\\u001bc\u202e\u200b\u009b31m\nWaiting: 0   approver: root\r\n";`
	_, result := c.evaluates(hostile + ` return typeof await codemode.utils__hash({text: text.repeat(50)})`)
	// What was typed ahead is taken neither for a token nor for an answer.
	term := c.signsIn(ann, "wrong\ray\r\rd")
	term.shows(title(1))
	term.types("v")
	eventually(t, "it cannot be allowed", func() bool {
		term.types("a\x7f\x7fy\r") // the second "a" is text, and deleted again
		return term.emptied()
	})
	if got := result(); got != `"object"` && got != `"string"` {
		t.Errorf("the script returned %s", got)
	}
	if strings.Contains(term.all(), ann) {
		t.Error("the token is on the screen")
	}
	wantInert(t, term.all())

	// Leaving answers nothing.
	id, result := c.evaluates(`return await codemode.utils__hash({text: "left"}).catch(e => e.reason)`)
	eventually(t, "it is not shown", func() bool { return strings.Count(term.all(), title(1)) == 2 })
	term.leaves()
	if code := term.process.ProcessState.ExitCode(); code != 0 {
		t.Errorf("q ends it with code %d", code)
	}
	// Nor does a terminal that goes away.
	term = c.signsIn(ann, "")
	term.shows(title(1))
	term.types("a")
	away := syscall.SIGHUP
	if signal.Ignored(away) { // as under nohup
		away = syscall.SIGTERM
	}
	if err := term.process.Process.Signal(away); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a signal does not end it", func() bool {
		select {
		case <-term.ended:
			return true
		default:
			return false
		}
	})
	if list := c.does("", "approvals", "list"); !strings.Contains(list, id) {
		t.Errorf("it is settled:\n%s", list)
	}
	c.does(ann, "approvals", "deny", id, "--token-stdin")
	if got := result(); got != `"declined"` {
		t.Errorf("the script returned %s", got)
	}
	if out, _, code := c.run("", "audit", "verify"); code != 0 {
		t.Errorf("the log is not whole: %s", out)
	}
}

// If no approver is available, an edit can be taken over, but only at a terminal by somebody
// who types the name of the file, and the log says so.
func TestConfigIsAcceptedOffline(t *testing.T) {
	b := newHeldBench(t)
	c := b.commandLine
	b.write(t, heldConfigText(loosePolicy))
	b.isHeld(`denylist: \"utils__*\" is gone`)
	accept := []string{"config", "confirm", "--offline", "--reason", "ann is ill"}
	term := onTerminal(t, c.program("", accept...), "config.json\r")
	<-term.ended
	if got := term.process.ProcessState.ExitCode(); got != 3 || !strings.Contains(term.all(), "the edit waits at a running bridge") {
		t.Errorf("while a bridge holds it: exit code %d\n%s", got, term.all())
	}
	b.kill()
	b.write(t, strings.Replace(heldConfigText(loosePolicy), `"surface"`, `"audit": {"enabled": false}, "surface"`, 1))
	term = onTerminal(t, c.program("", accept...), "config.json\r")
	<-term.ended
	if got := term.process.ProcessState.ExitCode(); got != 3 || !strings.Contains(term.all(), "could not be recorded") {
		t.Errorf("without a log to record it in: exit code %d\n%s", got, term.all())
	}
	b.write(t, heldConfigText(loosePolicy))
	c.refuses("waits for an approver", "", "eval", "return 1")
	c.refuses("no terminal", "config.json\n", accept...)
	answers := func(name, shown string, code int) {
		t.Helper()
		term := onTerminal(t, c.program("", accept...), "config.json\r") // what is typed ahead is no answer
		term.shows("to take it over without an approver: ")
		term.types(name + "\r")
		<-term.ended
		if got := term.process.ProcessState.ExitCode(); got != code || !strings.Contains(term.all(), shown) {
			t.Errorf("answered %s: exit code %d\n%s", name, got, term.all())
		}
	}
	answers("y", "another name", 2)
	c.refuses("waits for an approver", "", "eval", "return 1")
	answers("config.json", "taken over without an approver", 0)
	c.does("", "eval", "return 1")
	c.refuses("no configuration waits", annsToken, "config", "confirm", "--token-stdin")

	// A damaged record of what was confirmed does not let a file in either.
	records, err := filepath.Glob(filepath.Join(c.home, "codemode-bridge", "state", "confirmed", "*.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("the records are %q, %v", records, err)
	}
	if err := os.WriteFile(records[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.refuses("config confirm --offline", "", "eval", "return 1")
	answers("config.json", "taken over without an approver", 0)
	c.does("", "eval", "return 1")
	log := strings.ReplaceAll(c.does("", "audit", "query", "--json"), `": "`, `":"`)
	for _, words := range []string{`"channel":"offline"`, `"said":"ann is ill"`, "the first start with this file"} {
		if !strings.Contains(log, words) {
			t.Errorf("the audit log has no %s\n%s", words, log)
		}
	}
}

// Arguments that a person has edited in their editor are sent in place of the script's.
func TestArgumentsAreEditedInAnEditor(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, queueing)
	ann := strings.TrimSpace(c.does("", "approvers", "add", "ann", "--role", "admin"))
	editor := filepath.Join(c.home, "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\ncp \"$1\" "+c.home+"/before\necho '{\"text\": \"edited\"}' > \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, result := c.evaluates(`return await codemode.utils__base64_encode({text: "as it was"})`)
	term := c.signsIn(ann, "", "EDITOR="+editor, "VISUAL=")
	term.shows(title(1))
	before := filepath.Join(c.home, "before")
	eventually(t, "the editor is not started", func() bool {
		term.types("e")
		_, err := os.Stat(before)
		return err == nil
	})
	eventually(t, "it cannot be allowed", func() bool {
		term.types("\x7f\x7f\x7f\x7fy\r") // deletes an "e" too many
		return term.emptied()
	})
	if got := result(); !strings.Contains(got, "ZWRpdGVk") {
		t.Errorf("the script returned %s", got)
	}
	if text, err := os.ReadFile(before); err != nil || !strings.Contains(string(text), `"as it was"`) {
		t.Errorf("the editor was given %s, %v", text, err)
	}
}

// ours matches the control sequences of the screen's own renderer: moves, erasures, colours
// by plain numbers, modes, the title, and the bell.
var ours = regexp.MustCompile(`\x1b\[[0-9;]*[ABCDGHJKLMPSTXZbdfm@r` + "`" + `]|\x1b\[[?>=<][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p|\x1b\[[0-9]* q|\x1b\[c|\x1b\]2;codemode approvals \(\d+\)(\x07|\x1b\\)|\x1b\][12]?;?(\x07|\x1b\\)|\x1b[78M=>]|[\x07\x08\t\r\n]`)

// wantInert checks that a program wrote only text and control sequences of its renderer.
func wantInert(t *testing.T, wrote string) {
	t.Helper()
	rest := ours.ReplaceAllString(wrote, "")
	if i := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("the terminal was sent %q", rest[max(0, i-40):min(len(rest), i+80)])
	}
	for _, never := range []string{"\x1b[5n", "\x1b]52", "\x1bP", "\x1bc", "\u202e", "\u200b", "\u009b"} {
		if strings.Contains(wrote, never) {
			t.Errorf("the terminal was sent %q", never)
		}
	}
}

// What a tool or a script answers cannot control a terminal, and reaches a program
// unchanged.
func TestResultsOnATerminal(t *testing.T) {
	c := newCommandLine(t, `{"servers": {}}`)
	const script = `return {text: "a\u009b31m\u202eb\u200b\u2028c", "\u009d": 1}`
	const raw = "{\"text\":\"a\u009b31m\u202eb\u200b\u2028c\",\"\u009d\":1}\n"
	if out := c.does("", "eval", script); out != raw {
		t.Errorf("a program reads %q, want %q", out, raw)
	}
	for _, args := range [][]string{{"eval", script}, {"eval", "--json", script}} {
		term := onTerminal(t, c.program("", args...), "")
		<-term.ended
		wantInert(t, term.all())
		if want := `"text": "a\u{9B}31m\u{202E}b\u{200B}\u{2028}c",`; !strings.Contains(term.all(), want) {
			t.Errorf("%s shows %q, which lacks %q", args, term.all(), want)
		}
	}
}

// A person who is needed is notified, by the bell of the bridge's terminal and on the
// desktop, with the tool's name and nothing of its arguments.
func TestAPersonIsTold(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, strings.Replace(queueing, "{\n", `{ "approvals": {"listen": "127.0.0.1:0", "desktop": true},`+"\n", 1))
	desktop := filepath.Join(c.home, "desktop")
	if err := os.Mkdir(desktop, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(desktop, "notify-send"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" > "+desktop+"/note.part && mv "+desktop+"/note.part "+desktop+"/note\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := c.program("", "serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "PATH="+desktop+":"+os.Getenv("PATH"))
	term := onTerminal(t, cmd, "")
	term.shows("Ctrl-C ends it")
	endpoint := regexp.MustCompile(`endpoint +(\S+)`).FindStringSubmatch(term.all())
	if endpoint == nil {
		t.Fatalf("no endpoint: %q", term.all())
	}
	client, err := serving{endpoint: endpoint[1]}.connect(t, "")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if strings.Contains(term.all(), "\a") {
		t.Error("it rings without a question")
	}
	go func() {
		_, _ = eval(ctx, client, `return await codemode.utils__hash({text: "canary-3107"})`) // it waits until the test ends
	}()
	term.shows("\a")
	note := ""
	eventually(t, "the desktop shows nothing", func() bool {
		text, err := os.ReadFile(filepath.Join(desktop, "note"))
		note = string(text)
		return err == nil
	})
	if !strings.Contains(note, "utils__hash") || !strings.Contains(note, "http://127.0.0.1:") || strings.Contains(note+term.all(), "canary-3107") {
		t.Errorf("the note is %q", note)
	}
}

// What the bridge knows of a server is accepted by a person's yes, and by no other answer;
// the configuration is written either way.
func TestKnownServersAreAcceptedAtATerminal(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		answer   string
		accepted bool
	}{{"y", true}, {"", false}, {"n", false}, {"sure", false}} {
		c := newCommandLine(t, "{}")
		work := filepath.Join(c.home, "work")
		if err := os.Mkdir(work, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, ".mcp.json"), []byte(`{"mcpServers": {"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"]}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := c.program("", "init", "--force", "--pin=false", "--from", ".mcp.json")
		cmd.Dir = work
		term := onTerminal(t, cmd, "")
		term.shows("accept what the bridge knows of files?")
		term.types(row.answer + "\r")
		term.shows("with 1 server of your clients, the workspace ")
		term.types("y\r")
		<-term.ended
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		is := strings.Contains(string(text), `"known": "filesystem@`) && strings.Contains(string(text), `"@modelcontextprotocol/server-filesystem@`)
		if code := term.process.ProcessState.ExitCode(); code != 0 || is != row.accepted || !strings.Contains(string(text), `"workspace": `) {
			t.Errorf("answered %q: exit code %d, accepted %t\n%s\n%s", row.answer, code, is, text, term.all())
		}
	}
}

// A script that is run at a terminal can be answered there, with an approver's token, and
// without one by nothing that is typed.
func TestEvalIsAnsweredOnItsTerminal(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, queueing)
	ann := strings.TrimSpace(c.does("", "approvers", "add", "ann", "--role", "admin"))
	script := `try { return (await codemode.utils__hash({text: "x"})).digest.length } catch (e) { return e.name }`
	const prompt = "your approver's token, to answer here, or nothing: "
	for _, test := range []struct{ answer, result string }{{"y\r", "64"}, {"n\r", "ToolCallDeniedError"}} {
		term := onTerminal(t, c.program("", "eval", script), "y\r"+ann+"\ry\r") // what is typed ahead is no answer
		term.shows(prompt)
		term.types(ann + "\r")
		term.shows("allow it? [y/N]")
		term.types(test.answer)
		<-term.ended
		if shown := term.all(); !strings.Contains(shown, test.result) || !strings.Contains(shown, "utils__hash") || strings.Contains(after(shown, prompt), ann) {
			t.Errorf("answered %q it shows\n%s", test.answer, shown)
		}
		if m := regexp.MustCompile(`(\w+): your approver's token, [^\n]*\n(\w+): allow it\?`).FindStringSubmatch(term.all()); m == nil || m[1] != m[2] || !strings.Contains(term.all(), "approvals approve "+m[1]) {
			t.Errorf("the questions do not say what they are about: %q\n%s", m, term.all())
		}
	}

	// A wrong token, or none, leaves it to others, whose answer ends the run.
	for _, typed := range []string{"\r", "y\r", "no-token-of-anybody\r"} {
		term := onTerminal(t, c.program("", "eval", script), "")
		term.shows(prompt)
		term.types(typed)
		if typed != "\r" {
			term.shows("that is no approver's token")
		}
		var open []struct{ ID string }
		if err := json.Unmarshal([]byte(c.does("", "approvals", "list", "--json")), &open); err != nil || len(open) != 1 {
			t.Fatalf("after %q %d requests wait, %v", typed, len(open), err)
		}
		c.does(ann+"\n", "approvals", "approve", open[0].ID, "--token-stdin")
		<-term.ended
		if shown := term.all(); !strings.Contains(shown, "64") || strings.Contains(shown, "allow it?") {
			t.Errorf("after %q it shows\n%s", typed, shown)
		}
	}
}

// after is what stands behind the first of a text.
func after(text, first string) string {
	_, rest, _ := strings.Cut(text, first)
	return rest
}
