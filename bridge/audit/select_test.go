package audit

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every event that is recorded can be selected, and is documented.
func TestEveryEventCanBeAskedFor(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	documents := ""
	for line := range strings.Lines(read("../../docs/reference/cli.md")) {
		if strings.HasPrefix(line, "| `--event-type` |") {
			documents = line
		}
	}
	events := regexp.MustCompile(`(?m)\bEvent += "(\w+)"`).FindAllStringSubmatch(read("../ledger/record.go"), -1)
	if len(events) < 20 {
		t.Fatalf("found %d events in record.go", len(events))
	}
	for _, e := range events {
		if !slices.Contains(EventWords, e[1]) {
			t.Errorf("audit query --event-type does not know %s", e[1])
		}
		if !strings.Contains(documents, "`"+e[1]+"`") {
			t.Errorf("docs/reference/cli.md does not name the event %s", e[1])
		}
	}
}
