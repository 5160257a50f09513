package bridge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codemode-bridge/profiles"
)

// A script that keeps asking after noes has five dialogs at most, in either era, from a
// person or from a client that answers by itself, one call after the other or many at
// once.
func TestAScriptThatKeepsAsking(t *testing.T) {
	declines := func(int, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	for script, code := range map[string]string{
		"one after the other": `for (let n = 0; n < 30; n++) try { await codemode[n % 2 ? "a__echo" : "b__echo"]({n}) } catch {}`,
		"many at once":        `for (let n = 0; n < 16; n++) await Promise.allSettled([0, 1, 2].map(i => codemode[i % 2 ? "a__echo" : "b__echo"]({n, i})))`,
	} {
		for who, answer := range map[string]func(int, *mcp.ElicitParams) (*mcp.ElicitResult, error){"a person": says("no"), "a machine": declines} {
			for _, version := range []string{newestSessionProtocol, statelessProtocol} {
				t.Run(fmt.Sprintf("%s, %s, %s", script, who, version), func(t *testing.T) {
					p := &person{answer: answer}
					b := newBench(t, asks(func(p *profiles.ProfileSpec) { p.Asklist = []string{"*__echo"} }))
					c := b.connectAt(t, &mcp.ClientOptions{ElicitationHandler: p.elicit}, version)
					if got := eval(t, c, code+"\nreturn 1"); got != "1" {
						t.Errorf("got %s", got)
					}
					if n := len(p.questions()); n == 0 || n > 5 || len(b.up.made()) > 0 {
						t.Errorf("asked %d times, sent %d", n, len(b.up.made()))
					}
				})
			}
		}
	}
}

// At the end of the budget nothing is refused: the next question asks how to go on, once.
func TestTheBudgetEndsInAQuestion(t *testing.T) {
	for _, version := range []string{newestSessionProtocol, statelessProtocol} {
		t.Run(version, func(t *testing.T) {
			p := &person{answer: says("once")}
			b := newBench(t, asks())
			c := b.connectAt(t, &mcp.ClientOptions{ElicitationHandler: p.elicit}, version)
			for n := range 23 {
				if got := eval(t, c, fmt.Sprintf(`return codemode.a__echo({n: %d})`, n)); !strings.Contains(got, fmt.Sprint(n)) {
					t.Errorf("call %d: %s", n, got)
				}
			}
			var how []int
			for n, q := range p.questions() {
				if strings.Contains(q.Message, "say how to go on") {
					how = append(how, n+1)
				}
			}
			if len(p.questions()) != 23 || len(how) != 1 || how[0] != 21 {
				t.Errorf("of %d questions these ask how to go on: %v", len(p.questions()), how)
			}
		})
	}
}
