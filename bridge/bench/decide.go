package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"codemode-bridge/profiles"
)

// decisions measures how long policy takes to decide on a call, in this process.
func (m *machine) decisions(_ context.Context, t *table) error {
	call := profiles.Call{
		Server: "server0", Tool: "write_file", Description: strings.Repeat("Stores a file at the given place and tells its size. ", 8),
		Args: map[string]any{"path": "/srv/data/../data/report.txt", "size": json.Number("4096"), "content": strings.Repeat("some text ", 40)},
	}
	for _, row := range []struct {
		what string
		rule func(int) map[string]any
	}{
		{"a decision, 200 rules of 50 servers, half with CEL", mixedRule},
		{"a decision, 200 rules with CEL, all for this tool", func(i int) map[string]any {
			return map[string]any{"tools": []string{"server0__*"}, "when": fmt.Sprintf("args.size > %d", 1_000_000+i), "action": "ask"}
		}},
	} {
		policy, err := policyOf(row.rule)
		if err != nil {
			return err
		}
		const each = 100
		took, err := alternate(max(m.rounds, 5), func() error {
			for range each {
				policy.Decide(call)
			}
			return nil
		})
		if err != nil {
			return err
		}
		t.times(row.what, 0, took[0]/each, target{time: 50 * time.Microsecond})
	}
	return nil
}

// mixedRule is the i-th of the rules for fifty servers, of which a call meets a few;
// every other one has an expression.
func mixedRule(i int) map[string]any {
	rule := map[string]any{"tools": []string{fmt.Sprintf("server%d__*_%d*", i%50, i), fmt.Sprintf("server%d__delete_*", i%50)}, "action": "ask"}
	if i%20 == 0 {
		rule["tools"] = []string{"*__write_*"}
	}
	if i%2 == 0 {
		rule["when"] = fmt.Sprintf("clean(args.path).startsWith('/etc/%d/') || args.size > %d", i, 1_000_000+i)
	}
	return rule
}

// policyOf is a profile of 200 rules.
func policyOf(rule func(int) map[string]any) (*profiles.Profile, error) {
	var rules []map[string]any
	for i := range 200 {
		rules = append(rules, rule(i))
	}
	text, err := json.Marshal(map[string]any{"profiles": map[string]any{"p": map[string]any{"rules": rules}}})
	if err != nil {
		return nil, err
	}
	var spec profiles.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	set, problems := profiles.Parse(spec)
	if len(problems) > 0 {
		return nil, fmt.Errorf("200 rules: %v", problems)
	}
	p, ok := set.Profile("p")
	if !ok {
		return nil, errors.New("200 rules: there is no profile")
	}
	return p, nil
}
