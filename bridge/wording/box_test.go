package wording

import (
	"strings"
	"testing"

	"codemode-bridge/bridge/approval"

	"github.com/google/go-cmp/cmp"
)

func TestBoxOfCalls(t *testing.T) {
	of := func(server, box string) approval.Item {
		return approval.Item{Server: server, About: approval.About{Box: box}}
	}
	for _, row := range []struct {
		want  string
		calls []approval.Item
	}{
		{"", nil},
		{"", []approval.Item{of("github", "")}},
		{"not confined", []approval.Item{of("files", "not confined")}},
		{"confined to /a, no network", []approval.Item{of("files", "confined to /a, no network"), of("files", "confined to /a, no network")}},
		{"not confined", []approval.Item{of("files", "not confined"), of("notes", "not confined")}},
		{"files confined to /a, no network; notes not confined", []approval.Item{of("files", "confined to /a, no network"), of("github", ""), of("notes", "not confined")}},
		{`confined to /a\u{202E}b, no network`, []approval.Item{of("files", "confined to /a\u202eb, no network")}},
	} {
		if diff := cmp.Diff(row.want, boxOf(row.calls)); diff != "" {
			t.Error(diff)
		}
	}
}

// A dialog says what a server is confined to where that takes no further row, and never
// that it is not confined, which is so of most.
func TestDialogSaysTheBoxWhereThereIsRoom(t *testing.T) {
	for _, row := range []struct {
		box  string
		said bool
	}{
		{"confined to /home/me/app, no network", true},
		{"not confined", false},
		{"", false},
		{"confined to " + strings.Repeat("/long", 40) + ", no network", false},
	} {
		d := Description{Box: row.box}
		d.said.question = say("Write this?")
		line := d.firstLine()
		if said := strings.Contains(line, "Its server is"); said != row.said || rows(line) != 1 {
			t.Errorf("%q: %s", row.box, line)
		}
	}
}
