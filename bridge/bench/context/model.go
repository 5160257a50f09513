package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// An endpoint is a model behind an OpenAI-compatible API of chat completions.
type endpoint struct {
	url, key, model string
	client          *http.Client
}

// maxTurns bounds how often a model is asked in one task.
const maxTurns = 15

func endpointOf(env func(string) string) (*endpoint, error) {
	e := &endpoint{url: env("CONTEXT_BASE_URL"), key: env("CONTEXT_API_KEY"), model: env("CONTEXT_MODEL"), client: &http.Client{Timeout: 5 * time.Minute}}
	if e.url == "" {
		e.url = "https://api.openai.com/v1"
	}
	e.url = strings.TrimRight(e.url, "/")
	if e.model == "" || e.key == "" {
		return nil, errors.New("-model needs CONTEXT_MODEL and CONTEXT_API_KEY in the environment")
	}
	return e, nil
}

// Messages, as the API has them.
type (
	message struct {
		Role    string     `json:"role"`
		Content string     `json:"content"`
		Calls   []toolCall `json:"tool_calls,omitempty"`
		Of      string     `json:"tool_call_id,omitempty"`
	}
	toolCall struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	function struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	completion struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
		Usage struct {
			Prompt int `json:"prompt_tokens"`
			Answer int `json:"completion_tokens"`
		} `json:"usage"`
	}
)

// A trial is a task that a model has done, or not.
type trial struct {
	succeeded      bool
	requests       int
	prompt, answer int // tokens, as the endpoint counts them
}

// complete asks the model for its next message.
func (e *endpoint) complete(ctx context.Context, messages []message, tools []definition) (c completion, err error) {
	var functions []function
	for _, d := range tools {
		f := function{Type: "function"}
		f.Function.Name, f.Function.Description, f.Function.Parameters = d.Name, d.Description, d.Input
		functions = append(functions, f)
	}
	body, err := json.Marshal(map[string]any{"model": e.model, "messages": messages, "tools": functions})
	if err != nil {
		return c, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return c, err
	}
	req.Header.Set("Authorization", "Bearer "+e.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := e.client.Do(req)
	if err != nil {
		return c, fmt.Errorf("asking the model: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return c, fmt.Errorf("reading the model's answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return c, fmt.Errorf("the model's endpoint answers %s: %.500s", res.Status, text)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("reading the model's answer: %w", err)
	}
	if len(c.Choices) == 0 {
		return c, errors.New("the model's answer has no choices")
	}
	return c, nil
}

// try has the model do a task. It succeeds if its last words have what is wanted. Do makes
// one call for it: the text is what the model reads, more are tools that it gets with it.
func (e *endpoint) try(ctx context.Context, t task, said string, tools []definition, do func(ctx context.Context, name, args string) (text string, more []definition)) (r trial, err error) {
	messages := []message{{Role: "system", Content: strings.TrimSpace("You work in " + workspaceMark + ". Do what you are asked with the tools, then answer briefly.\n" + said)}, {Role: "user", Content: t.ask}}
	tools = slices.Clone(tools)
	for r.requests < maxTurns {
		c, err := e.complete(ctx, messages, tools)
		if err != nil {
			return r, err
		}
		r.requests++
		r.prompt += c.Usage.Prompt
		r.answer += c.Usage.Answer
		m := c.Choices[0].Message
		m.Role = "assistant"
		messages = append(messages, m)
		if len(m.Calls) == 0 {
			r.succeeded = !slices.ContainsFunc(t.said(), func(want string) bool { return !strings.Contains(m.Content, want) })
			return r, nil
		}
		for _, call := range m.Calls {
			text, more := do(ctx, call.Function.Name, call.Function.Arguments)
			messages = append(messages, message{Role: "tool", Content: text, Of: call.ID})
			for _, d := range more {
				if !slices.ContainsFunc(tools, func(known definition) bool { return known.Name == d.Name }) {
					tools = append(tools, d)
				}
			}
		}
	}
	return r, nil
}

// said is what a right answer in a model's own words contains.
func (t task) said() (all []string) {
	for _, w := range t.want {
		w = strings.TrimPrefix(w, `"wednesday":`)
		name, _, _ := strings.Cut(w, ":")
		all = append(all, name)
	}
	return all
}

// do makes the calls of a model in one way.
func (s *stage) do(w way) func(ctx context.Context, name, args string) (string, []definition) {
	return func(ctx context.Context, name, args string) (string, []definition) {
		session, tool := s.through, name
		switch {
		case w == found && name == searchTool.Name:
			var a struct{ Query string }
			if err := json.Unmarshal([]byte(args), &a); err != nil {
				return "error: " + err.Error(), nil
			}
			return "the tools can be called now", s.best(a.Query)
		case w != bridge:
			server, rest, _ := strings.Cut(name, "__")
			if session, tool = s.direct[server], rest; session == nil {
				return "error: no such tool", nil
			}
		}
		text, err := s.call(ctx, session, tool, json.RawMessage(s.real(args)))
		if err != nil {
			return "error: " + s.shown(err.Error()), nil
		}
		return text, nil
	}
}

// report has the model do every task in every way, and says what that took.
func (e *endpoint) report(ctx context.Context, out io.Writer, stages []*stage) error {
	if _, err := fmt.Fprintf(out, "# Eight tasks, done by %s\n\n| servers | way | succeeded | requests | prompt tokens | answer tokens |\n| --: | --- | --: | --: | --: | --: |\n", e.model); err != nil {
		return err
	}
	for _, s := range stages {
		for _, w := range ways {
			var all trial
			good := 0
			for _, t := range tasks {
				if err := s.renew(); err != nil {
					return err
				}
				r, err := e.try(ctx, t, s.said[w], s.ways[w], s.do(w))
				if err != nil {
					return fmt.Errorf("%q, %d servers, %s: %w", t.name, len(s.servers), w, err)
				}
				if r.succeeded {
					good++
				}
				all.requests, all.prompt, all.answer = all.requests+r.requests, all.prompt+r.prompt, all.answer+r.answer
			}
			if _, err := fmt.Fprintf(out, "| %d | %s | %d of %d | %d | %s | %s |\n", len(s.servers), w, good, len(tasks), all.requests, thousands(all.prompt), thousands(all.answer)); err != nil {
				return err
			}
		}
	}
	return nil
}
