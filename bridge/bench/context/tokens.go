package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
)

// A counter counts the tokens of texts.
type counter func(ctx context.Context, texts []string) ([]int, error)

// o200k counts by the tokenizer of that name, from npm's gpt-tokenizer in a folder.
func o200k(packages string) counter {
	const script = `const {countTokens} = require("gpt-tokenizer/encoding/o200k_base");
let text = "";
process.stdin.setEncoding("utf8").on("data", d => text += d).on("end", () =>
	process.stdout.write(JSON.stringify(JSON.parse(text).map(t => countTokens(t, {disallowedSpecial: new Set()})))));`
	return func(ctx context.Context, texts []string) ([]int, error) {
		input, err := json.Marshal(texts)
		if err != nil {
			return nil, err
		}
		node := exec.CommandContext(ctx, "node", "-e", script)
		var stderr bytes.Buffer
		node.Dir, node.Stdin, node.Stderr = packages, bytes.NewReader(input), &stderr
		out, err := node.Output()
		if err != nil {
			return nil, fmt.Errorf("counting tokens: %w\n%s", err, stderr.String())
		}
		var counts []int
		if err := json.Unmarshal(out, &counts); err != nil {
			return nil, fmt.Errorf("reading the counts of tokens: %w", err)
		}
		if len(counts) != len(texts) {
			return nil, fmt.Errorf("%d counts of tokens for %d texts", len(counts), len(texts))
		}
		return counts, nil
	}
}

// A cost is what a task takes.
type cost struct {
	requests int
	prompt   int // tokens of the prompts of all requests together: each has all that was before
	context  int // tokens of the last one with its answer: what was read once
	bytes    int // of the same
}

// framing is about what each message takes besides its text.
const framing = 4

// costOf counts a played task.
func costOf(ctx context.Context, count counter, p played) (c cost, err error) {
	texts := append([]string{}, p.prompt...)
	for _, t := range p.turns {
		texts = append(append(texts, t.sent...), t.got...)
	}
	texts = append(texts, p.answer)
	counts, err := count(ctx, texts)
	if err != nil {
		return c, err
	}
	next := 0
	take := func(n int) (tokens int) {
		for range n {
			tokens += counts[next] + framing
			c.bytes += len(texts[next])
			next++
		}
		return tokens
	}
	so := take(len(p.prompt))
	for _, t := range p.turns {
		c.requests++
		c.prompt += so
		so += take(len(t.sent) + len(t.got))
	}
	c.requests++
	c.prompt += so
	c.context = so + take(1)
	return c, nil
}
