package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A prompt of a later request has all that was before it.
func TestCostOf(t *testing.T) {
	length := func(_ context.Context, texts []string) (all []int, err error) {
		for _, text := range texts {
			all = append(all, len(text))
		}
		return all, nil
	}
	p := played{prompt: []string{"1234567890"}, turns: []turn{{[]string{"12"}, []string{"1234"}}, {[]string{"1", "2"}, []string{"3", "4"}}}, answer: "123"}
	c, err := costOf(t.Context(), length, p)
	if err != nil {
		t.Fatal(err)
	}
	first := 10 + framing
	second := first + 2 + 4 + 2*framing
	third := second + 4 + 4*framing
	if want := (cost{requests: 3, prompt: first + second + third, context: third + 3 + framing, bytes: 23}); c != want {
		t.Errorf("it costs %+v, want %+v", c, want)
	}
}

func TestTargets(t *testing.T) {
	made := func(two, eleven int) []result {
		return []result{
			{tasks[0], 2, map[way]cost{direct: {prompt: 2000}, found: {prompt: 1000}, bridge: {prompt: two}}},
			{tasks[2], 2, map[way]cost{direct: {prompt: 1}, found: {prompt: 1}, bridge: {prompt: 1000}}}, // not a small call
			{tasks[0], 11, map[way]cost{direct: {prompt: 15000}, found: {prompt: 1000}, bridge: {prompt: eleven}}},
		}
	}
	for _, row := range []struct {
		two, eleven int
		want        []bool
	}{{1050, 1000, []bool{true, true}}, {1051, 1000, []bool{false, true}}, {900, 1001, []bool{true, false}}} {
		var met []bool
		for _, one := range targets(made(row.two, row.eleven)) {
			met = append(met, one.met)
		}
		if !slices.Equal(met, row.want) {
			t.Errorf("with %d and %d tokens the targets are met: %v, want %v", row.two, row.eleven, met, row.want)
		}
	}
	if lost := losses(made(1051, 1000)); strings.Count(lost, "\n") != 2 || !strings.Contains(lost, "105 % of found by search") {
		t.Errorf("the bridge loses at\n%s", lost)
	}
	text := page(nil, nil, made(1051, 1000))
	if !strings.Contains(text, "**missed**") || !strings.Contains(text, "15.0 times | met") {
		t.Errorf("the page is\n%s", text)
	}
}

// The files have what the tasks want to know, and no task can be done without them.
func TestFurnish(t *testing.T) {
	dir := t.TempDir()
	if err := furnish(dir); err != nil {
		t.Fatal(err)
	}
	count := func(name, word string) int {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), word)
	}
	for name, want := range map[string]int{"monday": 9, "tuesday": 12, "wednesday": 15} {
		if got := count("logs/"+name+".log", " ERROR "); got != want {
			t.Errorf("%s has %d errors, the answer says %d", name, got, want)
		}
	}
	sum := 0
	for n := 1; n <= 4; n++ {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("orders/%d.json", n)))
		if err != nil {
			t.Fatal(err)
		}
		var order struct{ Total int }
		if err := json.Unmarshal(text, &order); err != nil {
			t.Fatal(err)
		}
		sum += order.Total
	}
	if sum != 1000 || len(tasks) != 8 {
		t.Errorf("the orders come to %d, of %d tasks", sum, len(tasks))
	}
	for _, one := range tasks {
		if one.ask == "" || one.answer == "" || len(one.find) == 0 || len(one.direct) == 0 || len(one.scripts) == 0 || len(one.want) == 0 {
			t.Errorf("%q is not written down in full", one.name)
		}
		for _, script := range one.scripts {
			if len(callsOf(script)) == 0 {
				t.Errorf("%q calls no tool", one.name)
			}
		}
	}
}

// A model is asked until it says something, by the API that it has; its calls are made, tools
// that it has found are there for the next request, and what it takes is added up.
func TestTry(t *testing.T) {
	script := []string{
		`{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"tool_search","arguments":"{\"query\":\"read\"}"}}]}}],"usage":{"prompt_tokens":100,"completion_tokens":10}}`,
		`{"choices":[{"message":{"role":"assistant","content":"","tool_calls":[{"id":"2","type":"function","function":{"name":"fs__read","arguments":"{}"}}]}}],"usage":{"prompt_tokens":200,"completion_tokens":20}}`,
		`{"choices":[{"message":{"role":"assistant","content":"Invoice 311."}}],"usage":{"prompt_tokens":300,"completion_tokens":30}}`,
	}
	type request struct {
		Model    string
		Messages []message
		Tools    []function
	}
	var asked []request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("asked for %s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		var body request
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		asked = append(asked, body)
		if len(asked) > len(script) {
			http.Error(w, "no more", http.StatusTooManyRequests)
			return
		}
		fmt.Fprint(w, script[len(asked)-1])
	}))
	defer server.Close()
	env := map[string]string{"CONTEXT_BASE_URL": server.URL + "/v1/", "CONTEXT_API_KEY": "k", "CONTEXT_MODEL": "m"}
	e, err := endpointOf(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	reads := definition{Name: "fs__read", Input: json.RawMessage(`{}`)}
	do := func(_ context.Context, name, args string) (string, []definition) {
		if name == searchTool.Name {
			return "found", []definition{reads, reads}
		}
		return "call the printer about invoice 311", nil
	}
	r, err := e.try(t.Context(), tasks[0], "", []definition{searchTool}, do)
	if err != nil {
		t.Fatal(err)
	}
	if want := (trial{succeeded: true, requests: 3, prompt: 600, answer: 60}); r != want {
		t.Errorf("it took %+v, want %+v", r, want)
	}
	if len(asked[0].Tools) != 1 || len(asked[2].Tools) != 2 || asked[2].Model != "m" {
		t.Errorf("asked with %d and then %d tools of %s", len(asked[0].Tools), len(asked[2].Tools), asked[2].Model)
	}
	if last := asked[2].Messages; len(last) != 6 || last[5].Role != "tool" || last[5].Of != "2" || !strings.Contains(last[5].Content, "311") {
		t.Errorf("the last request has %+v", last)
	}
	if _, err := e.try(t.Context(), tasks[0], "", nil, do); err == nil || !strings.Contains(err.Error(), "429") {
		t.Errorf("an endpoint that refuses gives %v", err)
	}
	if _, err := endpointOf(func(string) string { return "" }); err == nil {
		t.Error("a model without a key is asked")
	}
}

// A model that never answers is not asked for ever.
func TestTryEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"x","arguments":"{}"}}]}}]}`)
	}))
	defer server.Close()
	e := &endpoint{url: server.URL, client: server.Client()}
	r, err := e.try(t.Context(), tasks[0], "", nil, func(context.Context, string, string) (string, []definition) { return "", nil })
	if err != nil || r.requests != maxTurns || r.succeeded {
		t.Errorf("it took %+v: %v", r, err)
	}
}

// A task goes straight to its script only where the description has all that it writes.
func TestTells(t *testing.T) {
	one := task{scripts: []string{`const x = await codemode.fs__read({path: "a) {b: 1}"});
return codemode.memory__create({entities: [{name: "Ada", observations: ["x"]}], note}) + x;`}}
	const fs, memory = "fs => {content}: list({path}), read({path, head?: number})\n", "memory: create({entities: {name, observations: string[]}[], note?})\n"
	for text, want := range map[string]bool{
		fs + memory: true,
		fs:          false,
		fs + "memory: create({entities: {name}[], note?})":                                false, // not every key
		fs + "memory: create({entities: unknown[]})":                                      false,
		fs + "memory: recreate({entities: {name, observations: string[]}[], note?})\n":    false, // another tool
		fs + "other: create({entities: {name, observations: string[]}[], note?})\n":       false, // another server
		"codemode.fs__read(args: {path: string}): Promise<string>\n" + memory:             true,
		"SERVERS (tools): fs (2), memory (1)\nEXAMPLE\nawait codemode.fs__read({path})\n": false,
	} {
		s := &stage{ways: map[way][]definition{bridge: {{Name: "eval", Description: text}}}}
		if got := s.tells(one); got != want {
			t.Errorf("%v, want %v, for\n%s", got, want, text)
		}
	}
	if (&stage{}).tells(one) {
		t.Error("no description tells it")
	}
	if err := declares(one, "codemode.fs__read(args: {path: string}): Promise<string>"); err == nil || !strings.Contains(err.Error(), "memory__create") {
		t.Errorf("a search that lacks a tool gives %v", err)
	}
}
