package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"codemode-bridge/profiles/known"
)

// A ground is why a call is asked about: a line of the table in docs/templates.md.
type ground string

const (
	writing     ground = "writing in the workspace or in a store on this machine"
	anotherHost ground = "reading from another host, or acting on its pages"
	endpoint    ground = "writing and sending at the server's own endpoint"
	outside     ground = "paths outside the workspace"
	sensitive   ground = "files of secrets; writing what runs later"
	running     ground = "running code"
	deleting    ground = "deleting"
	spending    ground = "spending"
	firstLook   ground = "the first look into a database that a login reaches"
)

// A question is what a person was asked, as the audit log has it.
type question struct {
	Tools   []string // of its calls, each once
	Grounds []ground // each once
}

// questions reads from the audit log what a person was asked so far, in order.
func (st *stage) questions(ctx context.Context) (all []question, err error) {
	rows, err := st.exported(ctx, "verdict")
	if err != nil {
		return nil, err
	}
	at := map[string]int{} // questions by their requests
	var verdicts [][]asked
	for line := range bytes.Lines(rows) {
		var v asked
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("%s: a row of the audit log: %w", st.Name, err)
		}
		if v.Channel != "elicitation" {
			continue // covered by a yes before
		}
		if _, ok := at[v.Request]; !ok {
			at[v.Request], verdicts = len(verdicts), append(verdicts, nil)
		}
		verdicts[at[v.Request]] = append(verdicts[at[v.Request]], v)
	}
	for _, calls := range verdicts {
		q, err := st.questionOf(calls)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}

// An asked is a row of the audit log with what a person said to a call.
type asked struct {
	decided
	Request, Channel, Server, Tool string
	Args                           map[string]any
}

// questionOf makes a question of its calls, in the order in which the script has them.
func (st *stage) questionOf(calls []asked) (q question, err error) {
	slices.SortFunc(calls, func(a, b asked) int { return a.Call - b.Call })
	for _, v := range calls {
		why, err := groundOf(v.Reasons, st.reading(v.Server, v.Tool, v.Args))
		if err != nil {
			return q, fmt.Errorf("%s: %s %s: %w", st.Name, v.Server, v.Tool, err)
		}
		if !slices.Contains(q.Tools, v.Tool) {
			q.Tools = append(q.Tools, v.Tool)
		}
		if !slices.Contains(q.Grounds, why) {
			q.Grounds = append(q.Grounds, why)
		}
	}
	return q, nil
}

// reading says what a call means by the file of its server.
func (st *stage) reading(name, tool string, args map[string]any) known.Reading {
	one := st.Servers[name]
	started := known.Started{Command: one.Command, Args: one.Args}
	for name := range one.Env {
		started.Env = append(started.Env, name)
	}
	match, _ := known.Identify(started)
	return match.Server.Tools[tool].Read(args)
}

// groundOf says why a call is asked about, by what decided and by what the call does.
func groundOf(reasons []string, does known.Reading) (ground, error) {
	all := strings.Join(reasons, "\n")
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(all, part) })
	}
	effect := func(e known.Effect) bool { return slices.Contains(does.Tool.Effects, e) }
	switch {
	case has("rule secrets (", "rule runs later ("):
		return sensitive, nil
	case effect(known.Spend):
		return spending, nil
	case has("it runs code"):
		return running, nil
	case effect(known.Delete):
		return deleting, nil
	case has("outside the workspace"):
		return outside, nil
	case has("rule first contact ("):
		return firstLook, nil
	case does.Tool.Net == known.NetChosen && !has("it changes something", "names a recipient who is new here"):
		return anotherHost, nil
	case !has("it changes something", "names a recipient who is new here"):
		return "", fmt.Errorf("no line says why it is asked about: %q", reasons)
	case effect(known.Send) && does.Tool.Net == known.NetChosen:
		return anotherHost, nil
	case effect(known.Send):
		return endpoint, nil
	case slices.ContainsFunc(does.Values, func(v known.Value) bool { return v.Role == known.Path }):
		return writing, nil
	case does.Tool.Net == known.NetChosen:
		return anotherHost, nil
	case does.Tool.Where == known.Remote:
		return endpoint, nil
	default:
		return writing, nil
	}
}

// many returns the cells with the template that fits in which a person is asked more
// often than is wanted.
func many(cells []*cell) (all []*cell) {
	for _, c := range cells {
		if c.Fits && len(c.Natural.dialogs()) > mostQuestions(c.Setting) {
			all = append(all, c)
		}
	}
	return all
}

// groundTable writes of each session with many questions what each of them is about.
func groundTable(w io.Writer, cells []*cell) {
	fmt.Fprint(w, `## Why more than three

Of the sessions with more than three questions, these are all of them, with the template that fits and natural answers. The last column
has the lines of [what the templates ask about](templates.md) by which the calls in a question are asked about, by the audit log.
No two questions are of one script, and nobody can be asked about a script that is not there yet. A yes is for what it names: another
folder, host, channel or repository is asked about anew, and so are other code, files of secrets, and what runs later.

A command line such as `+"`git status`"+` is *running code*, although it is meant to read: git starts programs that the configuration of the repository names
(`+"`core.fsmonitor`"+`, filters, external diffs), and a shell reads the line first. [Why](rationale.md#a-command-line-of-git-is-asked-about-even-git-status) no list of harmless commands helps.

| session | script | asked about | answer | because it is |
| --- | --: | --- | --- | --- |
`)
	for _, c := range many(cells) {
		n := 0
		for i, s := range c.Natural.Scripts {
			for _, d := range s.Dialogs {
				if n < len(c.Questions) {
					q := c.Questions[n]
					fmt.Fprintf(w, "| %s | %d | `%s` | %s | %s |\n", c.Session.Name, i+1, strings.Join(q.Tools, "`, `"), spokenYes[d.Answer], q.grounds())
				}
				n++
			}
		}
	}
	fmt.Fprintln(w)
}

func (q question) grounds() string {
	var all []string
	for _, g := range q.Grounds {
		all = append(all, string(g))
	}
	return strings.Join(all, " · ")
}

// spokenYes are the yeses of a form's field "decision" in words.
var spokenYes = map[string]string{"once": "once", "run": "in this run", "session": "for this session"}
