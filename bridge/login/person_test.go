package login_test

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"codemode-bridge/bridge/login"
)

var shownLink = regexp.MustCompile(`(?m)^  (http\S+)$`)

// Without a browser the person pastes the address that the browser ended at, and may
// paste something else first.
func TestLogInByHand(t *testing.T) {
	p := newPerson(t, nil)
	in, typed := io.Pipe()
	shown, out := io.Pipe()
	said := make(chan string, 1)
	go func() {
		var text strings.Builder
		for lines := bufio.NewReader(shown); ; {
			line, err := lines.ReadString('\n')
			text.WriteString(line)
			if m := shownLink.FindStringSubmatch(line); m != nil {
				go func() { // reading goes on meanwhile
					fmt.Fprintf(typed, "\nnot an address\n%s\n", p.fake.Browse(p, m[1]))
					typed.Close()
				}()
			}
			if err != nil {
				said <- text.String()
				return
			}
		}
	}()
	logged, err := p.client().LogIn(t.Context(), login.Terminal{In: in, Out: out, NoBrowser: true})
	out.Close()
	text := <-said
	if err != nil || logged.Describe() == "" {
		t.Fatalf("%+v, %v\n%s", logged, err, text)
	}
	if !strings.HasPrefix(text, "log in to linear at:\n\n") || !strings.Contains(text, "that is not it") {
		t.Errorf("it said\n%s", text)
	}
	p.wantStatus(p.client(), 200)
}
