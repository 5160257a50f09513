//go:build !race

package main_test

// What a person types, and what comes of it: testdata/script has sessions at the command
// line, which are run with the real binaries. In each, the home folder and everything that
// the bridge keeps are below $WORK, and the user's own configuration has the two built-in
// servers. Besides the commands of testscript there are:
//
//	exits CODE PROGRAM ARGS...    runs it; it must end with this exit code
//	fill FILE COUNT TEXT          writes TEXT COUNT times
//	bytes FILE HEX                writes bytes that no archive can hold
//	converse LINES PROGRAM ARGS   sends the lines one by one, each request after
//	                              the answer to the one before, and keeps
//	                              standard output, which must be protocol and
//	                              nothing else, in the file `answers`
//	sqlite FILE STATEMENT...      changes a database, as its owner can
//	atmost BYTES FILE...          fails if the files together have more bytes
//	interrupt CODE TEXT PROGRAM ARGS
//	                              interrupts it once its standard error has
//	                              TEXT; it must end with this exit code

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"
)

var update = flag.Bool("update", false, "write the texts that scripts compare with anew")

const userConfig = `{
  "servers": {
    "time": { "type": "builtin", "builtin": "time" },
    "utils": { "type": "builtin", "builtin": "utils" },
  },
}
`

func TestScript(t *testing.T) {
	bin := programs(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			for name, dir := range map[string]string{"XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache", "XDG_DATA_HOME": "data"} {
				e.Setenv(name, filepath.Join(home, dir))
			}
			e.Setenv("HOME", home)
			e.Setenv("USERPROFILE", home)
			e.Setenv("PROGRAMS", bin)
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			folder := filepath.Join(home, "config", "codemode-bridge")
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(folder, "config.json"), []byte(userConfig), 0o644)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "fill": fill, "bytes": writeBytes, "converse": converse, "interrupt": interrupt, "sqlite": sqlite, "atmost": atMost,
		},
	})
}

// need ends the script unless a command is used as form says.
func need(ts *testscript.TestScript, neg bool, args []string, n int, form string) {
	if neg || len(args) < n {
		ts.Fatalf("usage: %s", form)
	}
}

// exitCode returns the code with which a program exited.
func exitCode(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "exits CODE PROGRAM ARGS...")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitCode(ts, ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func fill(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "fill FILE COUNT TEXT")
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(args[2], n)), 0o644))
}

func writeBytes(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "bytes FILE HEX...")
	data, err := hex.DecodeString(strings.Join(args[1:], ""))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o644))
}

func sqlite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: sqlite FILE STATEMENT...")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	changed := int64(0)
	for _, statement := range args[1:] {
		result, err := db.Exec(statement)
		ts.Check(err)
		n, err := result.RowsAffected()
		ts.Check(err)
		changed += n
	}
	if changed == 0 {
		ts.Fatalf("no row was changed")
	}
}

// atMost fails if the files have more bytes together; one may be missing.
func atMost(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "atmost BYTES FILE...")
	most, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	size := int64(0)
	for _, name := range args[1:] {
		if info, err := os.Stat(ts.MkAbs(name)); err == nil {
			size += info.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			ts.Check(err)
		}
	}
	if size == 0 || size > most {
		ts.Fatalf("they have %d bytes, at most %d are wanted", size, most)
	}
}

// command is a program of the script, in its folder and environment.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path, err := exec.LookPath(filepath.Join(dir, args[0])); err == nil {
			cmd = exec.Command(path, args[1:]...)
			break
		}
	}
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "CODEMODE_CONFIG", "SYSTEMROOT", "TMP", "TMPDIR"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}

func converse(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "converse LINES PROGRAM ARGS...")
	cmd := command(ts, args[1:])
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var talk bytes.Buffer
	cmd.Stderr = &talk
	ts.Check(cmd.Start())
	answers := bufio.NewReader(out)
	var all strings.Builder

	// read takes the next line of standard output; "" is the end.
	type message struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
	}
	read := func() (m message, ok bool) {
		line, err := answers.ReadString('\n')
		all.WriteString(line)
		if line == "" && err == io.EOF {
			return m, false
		}
		if json.Unmarshal([]byte(line), &m) != nil || m.Version != "2.0" {
			cmd.Process.Kill()
			ts.Fatalf("standard output has a line that is no message: %q", line)
		}
		return m, true
	}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		_, err := io.WriteString(in, line)
		ts.Check(err)
		var sent message
		if json.Unmarshal([]byte(line), &sent) != nil || sent.ID == nil {
			continue // garbage and notifications have no answer
		}
		for {
			m, ok := read()
			if !ok {
				ts.Fatalf("no answer to %s; standard error:\n%s", line, talk.String())
			}
			if m.Method == "" && bytes.Equal(m.ID, sent.ID) {
				break
			}
		}
	}
	ts.Check(in.Close())
	for ok := true; ok; {
		_, ok = read()
	}
	err = cmd.Wait()
	ts.Logf("[answers]\n%s[stderr]\n%s", all.String(), talk.String())
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("answers"), []byte(all.String()), 0o644))
}

func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "interrupt CODE TEXT PROGRAM ARGS...")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	cmd := command(ts, args[2:])
	talk, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	lines := bufio.NewScanner(talk)
	for sent := false; lines.Scan(); {
		ts.Logf("%s", lines.Text())
		if !sent && strings.Contains(lines.Text(), args[1]) {
			sent = true
			ts.Check(cmd.Process.Signal(os.Interrupt))
		}
	}
	if code := exitCode(ts, cmd.Wait()); code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}
