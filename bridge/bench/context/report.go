package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The targets: with two servers and one small call the bridge is at most this much dearer
// than the best other way, and with eleven so many times cheaper than direct, on average.
const (
	mostDearer   = 0.05
	leastCheaper = 15
)

// A result is a task with one number of servers, played in each way.
type result struct {
	task  task
	size  int
	costs map[way]cost
}

// measure plays everything.
func measure(ctx context.Context, count counter, stages []*stage) (all []result, err error) {
	for _, s := range stages {
		for _, t := range tasks {
			r := result{t, len(s.servers), map[way]cost{}}
			for _, w := range ways {
				p, err := s.play(ctx, t, w)
				if err != nil {
					return nil, fmt.Errorf("%q, %d servers, %s: %w", t.name, r.size, w, err)
				}
				if r.costs[w], err = costOf(ctx, count, p); err != nil {
					return nil, err
				}
			}
			all = append(all, r)
		}
	}
	return all, nil
}

func report(ctx context.Context, o options, out io.Writer, stages []*stage) error {
	count := o200k(o.packages)
	results, err := measure(ctx, count, stages)
	if err != nil {
		return err
	}
	listed := map[int]map[way]cost{}
	for _, s := range stages {
		listed[len(s.servers)] = map[way]cost{}
		for _, w := range ways {
			p := played{prompt: []string{s.said[w]}}
			for _, d := range s.ways[w] {
				p.prompt = append(p.prompt, written(d))
			}
			c, err := costOf(ctx, count, p)
			if err != nil {
				return err
			}
			listed[len(s.servers)][w] = c
		}
	}
	_, err = io.WriteString(out, page(stages, listed, results))
	return err
}

// page is the report as Markdown.
func page(stages []*stage, listed map[int]map[way]cost, results []result) string {
	var b strings.Builder
	b.WriteString(`# What does a model read?

Written by ` + "`make bench-context`" + `: every number here was counted (o200k) in conversations with real MCP servers from npm, started for
it. Eight tasks are written down as what a model sends; the answers are the servers' own. Each task is done in three ways:

- **direct**: the definitions of all tools are in the prompt;
- **found by search**: the definitions are left out, and a tool finds them by keywords and returns those of the best five, as some clients do
  by default. It is given the bridge's own ranking;
- **bridge**: the tools of codemode-bridge. One script does the task. Where the description of ` + "`eval`" + ` does not have every tool and argument
  that it writes, a search comes before it.

Where nothing else is said, a number is the tokens of the prompts of all requests of a task together: each request has all that came before it.
What providers take for prompts that they have cached is less, in all three ways.

## Before anything is asked

| servers | tools | direct | found by search | bridge |
| --: | --: | --: | --: | --: |
`)
	for _, s := range stages {
		l := listed[len(s.servers)]
		fmt.Fprintf(&b, "| %d | %d | %s | %s | %s |\n", len(s.servers), len(s.ways[direct]), size(l[direct]), size(l[found]), size(l[bridge]))
	}
	for _, s := range stages {
		n := len(s.servers)
		fmt.Fprintf(&b, "\n## %d servers: %s\n\n| task | direct | found by search | bridge | of direct | of found |\n| --- | --: | --: | --: | --: | --: |\n", n, names(s.servers))
		for _, r := range results {
			if r.size != n {
				continue
			}
			c := r.costs
			fmt.Fprintf(&b, "| %s | %s in %d | %s in %d | %s in %d | %s | %s |\n", r.task.name, thousands(c[direct].prompt), c[direct].requests,
				thousands(c[found].prompt), c[found].requests, thousands(c[bridge].prompt), c[bridge].requests, part(c[bridge].prompt, c[direct].prompt), part(c[bridge].prompt, c[found].prompt))
		}
		d, f, br := sum(results, n, direct), sum(results, n, found), sum(results, n, bridge)
		fmt.Fprintf(&b, "| **all** | %s | %s | %s | %s | %s |\n", thousands(d), thousands(f), thousands(br), part(br, d), part(br, f))
	}
	b.WriteString("\n*In n* is the number of requests. The last columns are what the bridge takes of the other ways: below 100 % it is cheaper.\n\n## Where the bridge loses\n\n")
	b.WriteString(losses(results))
	b.WriteString(`
`)
	b.WriteString(floor(stages, listed))
	b.WriteString("\n## Targets\n\n| target | is | |\n| --- | --: | --- |\n")
	for _, t := range targets(results) {
		met := "met"
		if !t.met {
			met = "**missed**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", t.what, t.is, met)
	}
	b.WriteString(`
What is not counted: what a client itself puts into the prompt, the definitions' output schemas and annotations, which clients do not show to models, and the
time that a request takes. A model may also go another way than the one that is written down: ` + "`go run ./bridge/bench/context -model`" + ` has one
do the tasks by your own key (` + "`CONTEXT_MODEL`, `CONTEXT_API_KEY`, `CONTEXT_BASE_URL`" + `) and says how often it succeeds, in how many turns, for how many tokens.
`)
	return b.String()
}

// floor says what keeps the bridge from being cheaper where it loses.
func floor(stages []*stage, listed map[int]map[way]cost) string {
	var carried []string
	for _, s := range stages {
		n := len(s.servers)
		carried = append(carried, fmt.Sprintf("%s tokens with %d servers", thousands(listed[n][bridge].prompt), n))
	}
	return fmt.Sprintf(`Every request through the bridge has the same text in it: %s. While all tools fit, half of that is their names and arguments, and a
task takes two requests; then a search comes first, and it takes three. Two requests with that text are the floor. A client that leaves definitions out is
below it for one small call of a tool whose definition is short, and above it as soon as a definition or a result is long, or calls follow from one another.
A client that lists all tools pays more from the first call on, already with two servers.
`, strings.Join(carried, ", "))
}

func names(all []server) string {
	var n []string
	for _, s := range all {
		n = append(n, s.name)
	}
	return strings.Join(n, ", ")
}

func sum(results []result, size int, w way) (total int) {
	for _, r := range results {
		if r.size == size {
			total += r.costs[w].prompt
		}
	}
	return total
}

// losses lists the tasks for which another way takes less.
func losses(results []result) string {
	var b strings.Builder
	for _, r := range results {
		best := direct
		if r.costs[found].prompt < r.costs[direct].prompt {
			best = found
		}
		if r.costs[bridge].prompt > r.costs[best].prompt {
			fmt.Fprintf(&b, "- %d servers, %s: %s of %s (%s against %s tokens)\n", r.size, r.task.name, part(r.costs[bridge].prompt, r.costs[best].prompt), best,
				thousands(r.costs[bridge].prompt), thousands(r.costs[best].prompt))
		}
	}
	if b.Len() == 0 {
		return "Nowhere among these tasks.\n"
	}
	return b.String()
}

// A target is one of the two, with what was measured.
type target struct {
	what, is string
	met      bool
}

func targets(results []result) []target {
	small, best, dear, cheap := sizes[0], 0, 0, sizes[len(sizes)-1]
	for _, r := range results {
		if r.size == small && r.task.small {
			best += min(r.costs[direct].prompt, r.costs[found].prompt)
			dear += r.costs[bridge].prompt
		}
	}
	with, without := sum(results, cheap, bridge), sum(results, cheap, direct)
	return []target{
		{fmt.Sprintf("%d servers, one small call: at most %d %% dearer than the best other way", small, int(100*mostDearer)), part(dear, best), float64(dear) <= (1+mostDearer)*float64(best)},
		{fmt.Sprintf("%d servers, all tasks: at least %d times cheaper than direct", cheap, leastCheaper), fmt.Sprintf("%.1f times", float64(without)/float64(max(1, with))), without >= leastCheaper*with},
	}
}

func size(c cost) string {
	return fmt.Sprintf("%s tokens, %s bytes", thousands(c.prompt), thousands(c.bytes))
}

func part(n, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(max(1, of))) }

func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
