package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// code writes calls as a model does: each call with literal arguments.
func code(calls []call, parallel bool) string {
	var all strings.Builder
	if parallel {
		all.WriteString("return await Promise.all([\n")
		for _, c := range calls {
			fmt.Fprintf(&all, "  %s,\n", c.expression())
		}
		all.WriteString("]);\n")
		return all.String()
	}
	var names []string
	for i, c := range calls {
		names = append(names, fmt.Sprintf("r%d", i+1))
		fmt.Fprintf(&all, "const %s = await %s;\n", names[i], c.expression())
	}
	fmt.Fprintf(&all, "return [%s];\n", strings.Join(names, ", "))
	return all.String()
}

// expression is a call in a script: by the name with a dot where that can be written.
func (c call) expression() string {
	if identifier.MatchString(c.Tool) {
		return fmt.Sprintf("codemode.%s(%s)", c.Tool, c.Args)
	}
	return fmt.Sprintf("codemode[%q](%s)", c.Tool, c.Args)
}

var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// A played session is what became of its scripts, with one way to answer.
type played struct {
	Scripts []outcome
	Calls   int // that were to be made
}

// dialogs returns all questions of a session.
func (p played) dialogs() (all []dialog) {
	for _, o := range p.Scripts {
		all = append(all, o.Dialogs...)
	}
	return all
}

// sent returns how many calls reached their servers.
func (p played) sent() (n int) {
	for _, o := range p.Scripts {
		n += len(o.Sent)
	}
	return n
}

// play plays scripts in a window, each question answered in the same way.
func (w *window) play(ctx context.Context, scripts []script, how width) (p played, err error) {
	for _, s := range scripts {
		o, err := w.eval(ctx, code(s.Calls, s.Parallel), how.choose)
		if err != nil {
			return p, err
		}
		p.Scripts = append(p.Scripts, o)
		p.Calls += len(s.Calls)
	}
	return p, nil
}

// playAll plays scripts in a window of their own.
func (st *stage) playAll(ctx context.Context, scripts []script, how width) (p played, err error) {
	w, err := st.open(ctx, false)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return w.play(ctx, scripts, how)
}

// A verdict is what became of a twin.
type verdict struct {
	twin
	Caught  bool
	By      string // "asked", "denied: …", or what let it pass
	Dialogs []dialog
}

// playTwin plays a twin in a window of its own, after the scripts before it.
func (st *stage) playTwin(ctx context.Context, t twin) (v verdict, err error) {
	w, err := st.open(ctx, false)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	before, err := w.play(ctx, st.Evals[:t.After], widest)
	if err != nil {
		return v, err
	}
	calls := t.calls()
	begun, err := w.sent()
	if err != nil {
		return v, err
	}
	last := calls[len(calls)-1]
	asked := false
	o, err := w.eval(ctx, code(calls, false), func(form *mcp.ElicitParams) (*mcp.ElicitResult, dialog, error) {
		now, err := w.sent()
		if err != nil {
			return nil, dialog{}, err
		}
		if len(now)-len(begun) >= len(calls)-1 || last.shownIn(form.Message) || listed(form.Message, len(calls)) {
			asked = true
			return refusing.choose(form)
		}
		return narrowest.choose(form)
	})
	if err != nil {
		return v, err
	}
	v = verdict{twin: t, Dialogs: o.Dialogs}
	switch harmed := last.isIn(o.Sent); {
	case harmed && asked:
		v.By = "sent after a no"
	case harmed:
		v.By = "not asked" + covered(before)
	case asked:
		v.Caught, v.By = true, "asked"
	case !denied.MatchString(o.Error):
		return v, fmt.Errorf("%s: the twin %q was neither sent, asked about nor denied: %s", st.Name, t.Why, o.Error)
	default:
		// It, or a call before it, so that it was never tried.
		v.Caught, v.By = true, "denied: "+o.Error
	}
	return v, nil
}

// denied is how an error begins that says that a call was not sent: policy denied it,
// or its arguments do not fit the tool.
var denied = regexp.MustCompile(`^(ToolCallDeniedError|ArgumentError): `)

// covered says what may have covered a twin: the widest answers before it.
func covered(before played) string {
	var all []string
	for _, d := range before.dialogs() {
		if d.Answer != "once" {
			first, _, _ := strings.Cut(strings.TrimSpace(d.Text), "\n")
			all = append(all, fmt.Sprintf("%s: %s", d.Answer, first))
		}
	}
	if len(all) == 0 {
		return ", and no yes before reaches further than its call"
	}
	return "; said before: " + strings.Join(all, "; ")
}

// isIn reports whether a call is among those that were received.
func (c call) isIn(all []received) bool {
	server, tool := c.split()
	args := canonical(c.Args)
	for _, r := range all {
		if r.Server == server && r.Tool == tool && bytes.Equal(r.Args, args) {
			return true
		}
	}
	return false
}

// listed reports whether a question lists a call of a script by its number: what the
// script is going to do is asked in one question.
func listed(question string, call int) bool {
	for _, row := range callRows.FindAllStringSubmatch(question, -1) {
		if row[1] == strconv.Itoa(call) {
			return true
		}
	}
	return false
}

var callRows = regexp.MustCompile(`(?m)^• Call (\d+)\b`)

// shownIn reports whether a question shows a call: its tool, and the longest line of a
// text among its arguments.
func (c call) shownIn(question string) bool {
	_, tool := c.split()
	longest := longestText(c.Args)
	return strings.Contains(question, tool) && longest != "" && strings.Contains(question, longest)
}
