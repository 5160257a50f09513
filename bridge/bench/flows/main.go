// Command flows measures what rules about flows are worth: how many attacks get private text out,
// and how often a person is asked in ordinary work that looks like them.
//
//	go run ./bridge/bench/flows -page docs/flows.md
//
// # A scenario
//
// Each file in the folder scenarios is one attack with its benign twin, as JSON:
//
//	says      a sentence
//	injected  where the instruction stands that the model follows: page, issue, mail, file, …
//	private   what is taken
//	way       how it is passed on
//	servers   by name: "known", a file of profiles/known whose server it is, with the tools that the real one
//	          lists (profiles/known/testdata/lists) or, where there is no list, those of the file; or "tools",
//	          those of a server that nobody knows
//	answers   what a tool answers for these arguments; every other call is answered "ok"
//	attack    the scripts of a model that does what it was told, one after the other in one session
//	success   what must have arrived for the attack to have succeeded: the text "has", in an argument of the
//	          tools that match "tools", whole or in parts
//	twin      the scripts of ordinary work with the same servers, in a session of its own
//
// ${WORKSPACE} is the folder that scripts work on. Nothing is contacted, and every name and key is invented. The
// scenarios were written before the rules were made to fit, and are never edited after. Those in scenarios/unseen are
// by somebody who has not seen the code, and are counted apart.
//
// Scripts run in the bridge itself, over MCP in memory; each question gets a no, and is counted.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	var o options
	flag.StringVar(&o.scenarios, "scenarios", "bridge/bench/flows/scenarios", "the folder with the scenarios")
	flag.StringVar(&o.lists, "lists", "profiles/known/testdata/lists", "the folder with what servers list")
	flag.StringVar(&o.page, "page", "", "the Markdown file in which the table is replaced (default: it is printed)")
	flag.BoolVar(&o.all, "v", false, "say what became of each scenario")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "flows:", err)
		os.Exit(1)
	}
}

type options struct {
	scenarios, lists, page string
	all                    bool
}

func run(ctx context.Context, o options) error {
	all, err := read(o.scenarios)
	if err != nil {
		return err
	}
	results, err := playAll(ctx, all, settings(), o.lists)
	if err != nil {
		return err
	}
	if o.all {
		for _, r := range results {
			fmt.Println(r)
		}
	}
	table := report(results)
	if o.page == "" {
		fmt.Print(table)
		return nil
	}
	return replace(o.page, table)
}

// A scenario is one attack with its twin: see the top.
type scenario struct {
	Says, Injected, Private, Way string
	Servers                      map[string]server
	Answers                      []answer
	Attack, Twin                 []string
	Success                      struct{ Tools, Has string }

	name   string
	unseen bool
}

type server struct {
	Known string
	Tools []definition
}

type definition struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
}

type answer struct {
	Tool string
	Args json.RawMessage
	Text string
}

// unseenFolder has the scenarios by somebody who has not seen the code.
const unseenFolder = "unseen"

// read reads the scenarios in a folder and those below it.
func read(folder string) (all []scenario, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s := scenario{name: strings.TrimSuffix(d.Name(), ".json"), unseen: filepath.Base(filepath.Dir(path)) == unseenFolder}
		if err := json.Unmarshal(text, &s); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if len(s.Attack) == 0 || len(s.Twin) == 0 || len(s.Servers) == 0 || s.Success.Tools == "" || s.Success.Has == "" {
			return fmt.Errorf("%s: attack, twin, servers and success must not be empty", path)
		}
		all = append(all, s)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New(folder + " has no scenarios")
	}
	return all, err
}
