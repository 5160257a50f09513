package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// reasonConstants are the reasons that the package approval has.
func reasonConstants(t *testing.T) (all []approval.Reason) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../approval/approval.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Reason" {
			word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, approval.Reason(word))
		}
		return true
	})
	slices.Sort(all)
	return all
}

// Every reason of a denial occurs, and the reference lists them and no others.
func TestReasonsOccurAndAreDocumented(t *testing.T) {
	start := func(t *testing.T, reach Reach) *asking { return ask(t, supervised(asksFs), &book{}, reach, deletion) }
	provoke := map[approval.Reason]func(t *testing.T) *asking{
		approval.Denied: func(t *testing.T) *asking {
			return ask(t, supervised(profiles.ProfileSpec{Denylist: []string{"fs__*"}}), &book{}, ByElicitation, deletion)
		},
		approval.ElicitationUnsupported: func(t *testing.T) *asking { return start(t, NoElicitation) },
		approval.NoApprover:             func(t *testing.T) *asking { return start(t, Nobody) },
		approval.ElicitationDeclined: func(t *testing.T) *asking {
			a := start(t, ByElicitation)
			a.answer(declined)
			return a
		},
		approval.Declined: func(t *testing.T) *asking {
			a := start(t, ByElicitation)
			a.answer(approval.Verdict{Reason: approval.Declined, By: "ann", Channel: "page"})
			return a
		},
		approval.Timeout: func(t *testing.T) *asking {
			a := start(t, ByElicitation)
			time.Sleep(a.question().Decision.Timeout)
			return a
		},
		approval.Expired: func(t *testing.T) *asking {
			a := start(t, ByElicitation)
			a.cancel(errors.New("pressed stop"))
			return a
		},
		approval.RateLimited: func(t *testing.T) *asking {
			a := start(t, ByElicitation)
			for n := range 3 {
				a.answer(declined)
				<-a.done
				next := deletion
				next.Number, next.Args = 2+n, json.RawMessage(fmt.Sprintf(`{"path":"/tmp/%d"}`, n))
				go func() {
					_, err := a.g.Call(t.Context(), a.r, next)
					a.done <- err
				}()
				synctest.Wait()
			}
			return a
		},
		approval.Stale: func(t *testing.T) *asking {
			a := start(t, ByElicitation)
			a.question()
			a.g.Replace(&View{Profiles: a.g.View().Profiles, Catalog: catalog.Build(nil)})
			a.answer(agreed)
			return a
		},
		approval.PolicyError: func(t *testing.T) *asking {
			a := start(t, ByElicitation)
			a.question()
			a.replace(profiles.Spec{})
			a.answer(agreed)
			return a
		},
		approval.AuditUnavailable: func(t *testing.T) *asking {
			a := ask(t, supervised(asksFs), &book{refuse: ledger.Intent}, ByElicitation, deletion)
			a.answer(agreed)
			return a
		},
	}
	constants := reasonConstants(t)
	if provoked := slices.Sorted(maps.Keys(provoke)); !slices.Equal(provoked, constants) {
		t.Errorf("provoked are %q, there are %q", provoked, constants)
	}
	for reason, by := range provoke {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { by(t).refused(reason) })
		})
	}

	text, err := os.ReadFile("../../docs/reference/script.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| `reason` of a denial | meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []approval.Reason
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, approval.Reason(row[1]))
	}
	if slices.Sort(documented); !slices.Equal(documented, constants) {
		t.Errorf("script.md lists %q, there are %q", documented, constants)
	}
}

// What the person wrote beside "stop" is in the error that the script's run ends with.
func TestStoppedSaysWhatWasWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":              "the person who was asked said no and stopped the script",
		"not \"now\"\n": `the person who was asked said no and stopped the script; they wrote: "not \"now\"\n"`,
	} {
		if got := (approval.Verdict{Text: text}).StopsRun().Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
