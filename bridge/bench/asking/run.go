package main

import (
	"context"
	"errors"
	"sync"
)

// initName is the setting that init writes, baselineName what was the default before.
const (
	baselineName = "supervised"
	initName     = "init"
)

// fitting names for each session the builtin template that a person would choose for
// such work, by what it says of itself.
var fitting = map[string]string{
	"coding":         "coding",
	"data":           "research",
	"mixed":          "coding",
	"operations":     "operations",
	"research":       "research",
	"teamwork":       "research",
	"triage":         "coding",
	"writing":        "research",
	"second/backend": "coding",
	"second/day":     "research",
}

// mostQuestions is how often a setting may ask in a session, with natural answers.
func mostQuestions(with setting) int {
	if with.Template == "" {
		return 5
	}
	return 3
}

// builtins are the templates that come with the bridge.
var builtins = []string{"coding", "research", "operations", "read-only", "paranoid"}

// settings returns all settings, the baseline first.
func settings() []setting {
	all := []setting{{Name: baselineName, Baseline: true}, {Name: initName}}
	for _, name := range builtins {
		all = append(all, setting{Name: name, Template: name})
	}
	return all
}

// A cell is a session with a setting: what became of it.
type cell struct {
	Session session
	Setting setting
	Fits    bool
	Ranks   ranks  // of the calls of Natural
	Narrow  played // each yes for one call only
	Natural played // each yes as a person would give it
	// Questions are those of Natural, with the template that fits.
	Questions []question
	Verdicts  []verdict
	Shapes    []shaped
	Learnt    *learning // nil if it was not played
}

// A plan says what of a cell is to be played.
type plan struct {
	narrow, twins, shapes bool
}

// atOnce is how many cells are played at the same time: most wait, for a process or
// for a disk.
const atOnce = 6

// playCells plays sessions with settings, as the plan for each says, several at once.
func (h *harness) playCells(ctx context.Context, cells []*cell, what func(*cell) plan) error {
	return each(cells, func(c *cell) error { return h.playCell(ctx, c, what(c)) })
}

// each plays cells, several at once.
func each(cells []*cell, play func(*cell) error) error {
	queue := make(chan *cell)
	var mu sync.Mutex // guards errs
	var errs []error
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for c := range queue {
				if err := play(c); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, c := range cells {
		queue <- c
	}
	close(queue)
	workers.Wait()
	return errors.Join(errs...)
}

// playCell plays one session with one setting. A window stays open all the time, so
// that the bridge behind it and its servers do too.
func (h *harness) playCell(ctx context.Context, c *cell, what plan) (err error) {
	st, err := h.stage(ctx, c.Session, c.Setting)
	if err != nil {
		return err
	}
	first, err := st.open(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, first.Close()) }()
	if c.Natural, err = st.playAll(ctx, st.Evals, natural); err != nil {
		return err
	}
	if c.Ranks, err = st.ranked(ctx); err != nil {
		return err
	}
	if c.Fits {
		if c.Questions, err = st.questions(ctx); err != nil {
			return err
		}
	}
	if what.narrow {
		if c.Narrow, err = st.playAll(ctx, st.Evals, narrowest); err != nil {
			return err
		}
	}
	if what.twins {
		if c.Verdicts, err = st.playTwins(ctx); err != nil {
			return err
		}
	}
	if what.shapes {
		for _, s := range shapes() {
			got, err := st.playShape(ctx, s)
			if err != nil {
				return err
			}
			c.Shapes = append(c.Shapes, got)
		}
	}
	c.forget(st)
	return nil
}

// passed returns the twins of a cell that got through.
func (c *cell) passed() []verdict { return passed(c.Verdicts) }

// refused returns why scripts ended early.
func (p played) refused() (all []string) {
	for _, o := range p.Scripts {
		if o.Error != "" {
			all = append(all, o.Error)
		}
	}
	return all
}
