package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"codemode-bridge/bridge/ledger"

	"github.com/spf13/cobra"
)

// tailCommand follows what running bridges do, call by call.
func (a *app) tailCommand() *cobra.Command {
	var o struct {
		run   string
		all   bool
		lines int
		once  bool
	}
	c := &cobra.Command{
		Use: "tail", Short: "Follow the calls of the bridges that run", Args: noArgs,
		Long: "Follows the log files of this user's bridges and prints each run and call as it happens.",
		RunE: func(c *cobra.Command, _ []string) error {
			dir := a.logDir()
			if dir == "" {
				return errors.New("there is no state folder, so there are no log files")
			}
			t := &tail{app: a, dir: dir, run: o.run, all: o.all, back: o.lines, files: map[string]*followed{}}
			if err := t.poll(); err != nil {
				return err
			}
			if o.once {
				return nil
			}
			fmt.Fprintf(a.err, "following %s; Ctrl-C ends it\n", dir)
			return t.follow(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "only this `run`")
	f.BoolVar(&o.all, "all", false, "every log line, not only runs and calls")
	f.IntVarP(&o.lines, "lines", "n", 10, "begin with the last `N` lines")
	f.BoolVar(&o.once, "no-follow", false, "print what is there and end")
	a.jsonFlag(c)
	return c
}

// tail reads log files as they grow.
type tail struct {
	app   *app
	dir   string
	run   string
	all   bool
	back  int // lines to begin with
	begun bool
	files map[string]*followed
}

// followed is a log file, up to what was read.
type followed struct {
	file *os.File
	r    *bufio.Reader
	part string // of a line that is being written
	info os.FileInfo
}

// follow prints what is written until ctx ends, which is how it is meant to end.
func (t *tail) follow(ctx context.Context) error {
	const every = 200 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := t.poll(); err != nil {
				return err
			}
		}
	}
}

// poll reads what is new in all files.
func (t *tail) poll() error {
	var lines []string
	for _, name := range logFiles(t.dir) {
		news, err := t.read(name)
		if err != nil {
			return err
		}
		lines = append(lines, news...)
	}
	if !t.begun {
		t.begun = true
		lines = lines[max(0, len(lines)-t.back):]
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(t.app.out, line); err != nil {
			return err
		}
	}
	return nil
}

// read returns the new lines of a file that are to be printed. A file that
// was set aside under its name is begun anew.
func (t *tail) read(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil // it was removed: the next poll does not list it
	}
	f := t.files[name]
	if f != nil && !os.SameFile(f.info, info) {
		f.file.Close()
		f = nil
	}
	if f == nil {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("following the log: %w", err)
		}
		f = &followed{file: file, r: bufio.NewReader(file), info: info}
		t.files[name] = f
	}
	var lines []string
	for {
		text, err := f.r.ReadString('\n')
		f.part += text
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return lines, fmt.Errorf("following the log: %w", err)
		}
		if line, ok := t.format(f.part); ok {
			lines = append(lines, line)
		}
		f.part = ""
	}
}

// format makes a line of the log one for people, and reports whether it is to
// be printed.
func (t *tail) format(line string) (string, bool) {
	line = strings.TrimRight(line, "\n")
	var r struct {
		Time     time.Time     `json:"time"`
		Event    ledger.Event  `json:"msg"`
		Run      string        `json:"run"`
		Client   string        `json:"client"`
		Profile  string        `json:"profile"`
		Call     int           `json:"call"`
		Server   string        `json:"server"`
		Tool     string        `json:"tool"`
		Args     string        `json:"args"`
		Outcome  string        `json:"outcome"`
		Error    string        `json:"error"`
		Notify   bool          `json:"notify"`
		Approver string        `json:"approver"`
		Channel  string        `json:"channel"`
		Answer   string        `json:"answer"`
		Duration time.Duration `json:"duration"`
	}
	if json.Unmarshal([]byte(line), &r) != nil {
		return "", false
	}
	if t.run != "" && r.Run != t.run {
		return "", false
	}
	at := r.Time.Local().Format(time.TimeOnly)
	tool := r.Tool
	if r.Server != "" {
		tool = r.Server + "__" + r.Tool
	}
	because := ""
	if r.Error != "" {
		because = ": " + cut(firstLine(r.Error), 160)
	}
	var text string
	switch r.Event {
	case ledger.RunStarted:
		text = fmt.Sprintf("run started  %s", strings.Trim(r.Client+"  "+r.Profile, " "))
	case ledger.RunEnded:
		text = fmt.Sprintf("run %-8s %v%s", r.Outcome, r.Duration.Round(time.Millisecond), because)
	case ledger.Intent:
		text = fmt.Sprintf("  #%d %s %s", r.Call, tool, cut(r.Args, 120))
		if r.Notify {
			text = "!" + text[1:]
		}
	case ledger.Asked:
		text = fmt.Sprintf("  #%d %s is asked %s", r.Call, tool, cut(r.Args, 120))
	case ledger.Verdict:
		text = strings.TrimRight(fmt.Sprintf("  #%d %s %s (%s) %s", r.Call, tool, r.Answer, r.Channel, r.Approver), " ")
	case ledger.Outcome:
		text = fmt.Sprintf("  #%d %s %s %v%s", r.Call, tool, r.Outcome, r.Duration.Round(time.Millisecond), because)
	case ledger.Refusal:
		text = fmt.Sprintf("  #%d %s refused%s", r.Call, tool, because)
	default:
		if !t.all {
			return "", false
		}
		text = string(r.Event)
	}
	if t.app.json {
		return line, true
	}
	return fmt.Sprintf("%s %s %s", at, r.Run, strings.TrimRight(text, " ")), true
}
