package doctor

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/upstream"
)

// A Trial is how connecting to a server went.
type Trial struct {
	Name     string   `json:"name"`
	OK       bool     `json:"ok"`
	State    string   `json:"state"`
	Took     int64    `json:"tookMs"`
	Tools    []string `json:"tools"`
	Protocol string   `json:"protocol,omitempty"`
	Program  string   `json:"program,omitempty"`
	Version  string   `json:"version,omitempty"`
	Why      string   `json:"why,omitempty"`
	// Box is the box that it ran in; nil without one, or if it did not run.
	Box *TriedBox `json:"box,omitempty"`

	Listed []upstream.Tool `json:"-"`

	running bool // it is connected to a bridge that runs, and was not tried

	kept  *upstream.BoxStatus // what kept its program; nil if it ran none here
	lacks []string            // the steps of its box that do not hold

	withheld string // the variables of ours that may be why it does not answer, and what to do; may be empty
}

// A TriedBox is how the box of a server held.
type TriedBox struct {
	Allows  string            `json:"allows"`  // "writes /home/me/app, no network"
	Steps   map[string]string `json:"steps"`   // each is "on", or says why it does not hold
	Lacks   []string          `json:"lacks"`   // what of the box is not enforced
	Refused []string          `json:"refused"` // hosts that it asked for
}

// tried converts what holds a child.
func tried(b *upstream.Boxed) *TriedBox {
	if b == nil {
		return nil
	}
	steps := make(map[string]string, len(b.Steps))
	for step, why := range b.Steps {
		steps[string(step)] = why
	}
	return &TriedBox{b.Box.String(), steps, append([]string{}, b.Box.Lacks(b.Steps)...), append([]string{}, b.Refused...)}
}

// BoxWords says in lines how the box held that each server ran in. From says where
// the box of a server comes from.
func BoxWords(all []Trial, from map[string]string) []string {
	var lines []string
	for _, t := range all {
		switch {
		case t.Box == nil:
			lines = append(lines, fmt.Sprintf("%s did not run in %s", t.Name, from[t.Name]))
			continue
		case len(t.Box.Lacks) > 0:
			lines = append(lines, fmt.Sprintf("%s ran in %s: %s; not enforced here: %s", t.Name, from[t.Name], t.Box.Allows, strings.Join(t.Box.Lacks, ", ")))
		default:
			on := slices.DeleteFunc(slices.Sorted(maps.Keys(t.Box.Steps)), func(step string) bool { return t.Box.Steps[step] != "on" })
			lines = append(lines, fmt.Sprintf("%s ran in %s: %s; all of it holds (%s)", t.Name, from[t.Name], t.Box.Allows, strings.Join(on, ", ")))
		}
		if len(t.Box.Refused) > 0 {
			lines = append(lines, fmt.Sprintf("  it was refused %s; to let it: codemode-bridge servers allow %s --net %s", strings.Join(t.Box.Refused, ", "), t.Name, t.Box.Refused[0]))
		}
	}
	return lines
}

// Running is a server that a bridge that runs is connected to, as that says; ok is false if
// it has to be tried.
func Running(s upstream.Status, listed []upstream.Tool) (t Trial, ok bool) {
	if s.State != upstream.Connected && s.State != upstream.Idle || len(listed) == 0 {
		return t, false
	}
	t = Trial{Name: s.Name, OK: true, State: string(s.State), Tools: []string{}, Protocol: s.Protocol, Program: s.Program, Version: s.Version, Listed: listed, running: true}
	t.Box, t.kept, t.lacks = tried(s.Box), s.BoxStatus(), s.Box.Lacks()
	for _, tool := range listed {
		t.Tools = append(t.Tools, tool.Name)
	}
	return t, true
}

// Try connects to one server and disconnects again. Some programs get their login by
// themselves: Try waits for that only if asks, which is told the link, is not nil.
// Version is this program's, as servers are told.
func Try(ctx context.Context, spec upstream.Spec, version string, asks func(server, link string)) Trial {
	changed := make(chan struct{}, 1)
	set := upstream.New(upstream.Options{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), ClientVersion: version,
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default: // somebody will look
			}
		},
	})
	defer set.Close()
	begun := time.Now()
	set.Apply([]upstream.Spec{spec})
	if err := set.WaitReady(ctx); err != nil {
		why, waits := strings.CutPrefix(set.Status()[0].Why(), unanswered)
		if why != "" && !waits {
			why = "; " + why
		}
		return Trial{Name: spec.Name, Why: why, withheld: withheld(spec, os.LookupEnv)} // what comes after that it has not answered
	}
	for told := ""; asks != nil && ctx.Err() == nil; {
		link := set.Status()[0].Login
		if link == "" {
			break
		}
		if link != told {
			asks(spec.Name, link)
			told = link
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	r := Trial{Name: spec.Name, Took: time.Since(begun).Milliseconds(), Tools: []string{}, withheld: withheld(spec, os.LookupEnv)}
	for _, s := range set.Status() {
		r.OK = s.State == upstream.Connected
		r.State, r.Protocol, r.Program, r.Version, r.Why = string(s.State), s.Protocol, s.Program, s.Version, s.Err
		r.Box, r.kept, r.lacks = tried(s.Box), s.BoxStatus(), s.Box.Lacks()
	}
	r.Listed = set.Tools()[spec.Name]
	for _, tool := range r.Listed {
		r.Tools = append(r.Tools, tool.Name)
	}
	return r
}

// TookText is how long it took, for people.
func (t Trial) TookText() string {
	if t.Took < 1000 {
		return fmt.Sprintf("%d ms", t.Took)
	}
	return fmt.Sprintf("%.1f s", float64(t.Took)/1000)
}

// NoTools says in a line why there are no tools to use; empty if there are some.
// Limit is how long the server had to answer.
func (t Trial) NoTools(limit time.Duration) string {
	switch {
	case t.OK && len(t.Listed) > 0:
		return ""
	case t.OK:
		return "it has no tools"
	case t.State == string(upstream.NeedsLogin):
		return "it needs a login"
	case t.State == "":
		return fmt.Sprintf("it has not answered within %v", limit) + t.Why
	}
	return t.Why
}

// unanswered is how the reason of a server begins that has not answered yet.
const unanswered = "it has not answered yet"

// why returns what is wrong, and what the server's program wrote last.
func (t Trial) why() (why, said string) {
	why, said, _ = strings.Cut(t.Why, "; its stderr ends: ")
	return why, said
}

// TryAll tries all servers that are not disabled at once, and returns how it went by
// their names. Together they have limit. Each is told to answered as soon as it is known.
func TryAll(ctx context.Context, specs []upstream.Spec, version string, limit time.Duration, answered func(server string)) map[string]Trial {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all := map[string]Trial{}
	var mu sync.Mutex // guards all
	var trying sync.WaitGroup
	for _, spec := range specs {
		if spec.Disabled || spec.Kind == upstream.InProcess {
			answered(spec.Name)
			continue
		}
		trying.Go(func() {
			t := Try(ctx, spec, version, nil)
			answered(spec.Name)
			mu.Lock()
			defer mu.Unlock()
			all[spec.Name] = t
		})
	}
	trying.Wait()
	return all
}

// TrialTable is how connecting to servers went, as a table.
func TrialTable(all []Trial) [][]string {
	table := [][]string{{"name", "state", "tools", "time", "protocol", "server"}}
	for _, t := range all {
		table = append(table, []string{t.Name, t.State, strconv.Itoa(len(t.Tools)), t.TookText(), t.Protocol, strings.TrimSpace(t.Program + " " + t.Version)})
	}
	return table
}
