package main_test

import (
	"strings"
	"testing"
)

// At a terminal install --take-over shows what the client called without asking, and asks
// whether scripts may. A no leaves it out.
func TestTakeOverAsksAboutWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answer string
		taken  bool
	}{{"y\r", true}, {"n\r", false}} {
		h, before := kiroHome(t)
		term := onTerminal(t, h.command("install", "kiro", "--take-over", "--no-queue"), "")
		term.shows("make this change?")
		if h.read("config.json") != before {
			t.Error("the configuration changed before anybody agreed")
		}
		term.types("y\r")
		term.shows("  web__fetch")
		term.shows("arguments? [y/N]")
		if h.read("config.json") != before {
			t.Error("the configuration changed before the second answer")
		}
		term.types(test.answer)
		<-term.ended
		text := h.read("config.json")
		if code := term.process.ProcessState.ExitCode(); code != 0 || !strings.Contains(text, `"web"`) || strings.Contains(text, kiroRule) != test.taken {
			t.Errorf("answered %q: exit code %d\n%s\n%s", test.answer, code, term.all(), text)
		}
		if strings.Contains(term.all(), "does nothing any more") {
			t.Errorf("answered %q, it is told again what to do:\n%s", test.answer, term.all())
		}
	}
}
