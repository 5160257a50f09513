package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"codemode-bridge/bridge/jsonc"
)

// learntName is the name of the profile that is learnt.
const learntName = "learnt"

// A learning is what became of a session whose first half taught the profile that decides
// about its second half, and about its twins.
type learning struct {
	Says     string // of the profile, when it was learnt
	Calls    int    // of the second half
	Before   played // the second half with the template that the profile extends
	After    played // and with the profile
	Verdicts []verdict
}

// half is how many scripts are the first half of a session: as few as make half of its calls.
func (s session) half() (scripts int) {
	for calls := 0; calls*2 < s.count(); scripts++ {
		calls += len(s.Evals[scripts].Calls)
	}
	return scripts
}

// playLearning plays the first half of a session with natural answers, and has `profiles
// suggest` learn from the log. Then it plays the second half twice, with the template and
// with what was learnt, and all twins with what was learnt. Each time it is a window of its
// own, in which no yes of another one holds.
func (h *harness) playLearning(ctx context.Context, c *cell) error {
	st, err := h.stage(ctx, c.Session, c.Setting)
	if err != nil {
		return err
	}
	first, second := st.Evals[:st.half()], st.Evals[st.half():]
	if _, err := st.playAll(ctx, first, natural); err != nil {
		return err
	}
	l := &learning{}
	if l.Says, err = st.learn(ctx, c.Setting.Template); err != nil {
		return err
	}
	if l.Before, err = st.playAll(ctx, second, natural); err != nil {
		return err
	}
	if err := st.decideBy(learntName); err != nil {
		return err
	}
	if l.After, err = st.playAll(ctx, second, natural); err != nil {
		return err
	}
	l.Calls, c.Learnt = l.After.Calls, l
	l.Verdicts, err = st.playTwins(ctx)
	return err
}

// learn learns a profile from what was played, and writes it into the configuration.
func (st *stage) learn(ctx context.Context, template string) (says string, err error) {
	out, err := st.command(ctx, "profiles", "suggest", "--config", st.config, "--as", learntName, "--extends", "builtin:"+template+"@1", "--apply").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: learning: %w\n%s", st.Name, err, out)
	}
	return string(out), nil
}

// decideBy makes a profile the default of the configuration. No window is open meanwhile, so
// that no bridge goes by another one.
func (st *stage) decideBy(profile string) error {
	text, err := os.ReadFile(st.config)
	if err != nil {
		return err
	}
	if text, err = jsonc.Replace(text, "/evaluation/defaultProfile", jsonc.Text(`"`+profile+`"`)); err != nil {
		return err
	}
	return os.WriteFile(st.config, text, 0o600)
}

// playTwins plays all twins of a session, while a window stays open, so that the bridge
// behind it and its servers do too.
func (st *stage) playTwins(ctx context.Context) (all []verdict, err error) {
	open, err := st.open(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	for _, t := range st.Twins {
		v, err := st.playTwin(ctx, t)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// passed returns the twins that got through.
func passed(all []verdict) []verdict {
	return slices.DeleteFunc(slices.Clone(all), func(v verdict) bool { return v.Caught })
}

// learntTable writes what profiles ask that were learnt from the first halves of sessions.
func learntTable(w io.Writer, cells []*cell) {
	fmt.Fprint(w, `## With a profile that was learnt

The first half of each session was played with the template that fits and with natural answers, and `+"`profiles suggest --as learnt`"+`
learnt a profile from the log that extends that template. These are the questions of the second half, with natural answers and without the yeses of
the first, and the twins of the whole session. Wanted are at most two questions. A learnt profile lets pass what was done, and asks
about all else. So it spares nothing where the first half only reads and the second writes, sends and publishes for the first time.

| session | calls, second half | template | questions | learnt: questions | twins that pass |
| --- | --: | --- | --: | --: | --: |
`)
	for _, c := range cells {
		if l := c.Learnt; l != nil {
			fmt.Fprintf(w, "| %s | %d | %s | %d | %d | %d of %d |\n", c.Session.Name, l.Calls, c.Setting.Name, len(l.Before.dialogs()), len(l.After.dialogs()), len(passed(l.Verdicts)), len(l.Verdicts))
		}
	}
	fmt.Fprintln(w)
}
