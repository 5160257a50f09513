package ledger

import (
	"strings"
	"testing"
)

func TestEntriesThatAreWrong(t *testing.T) {
	for _, row := range []struct {
		entry JournalEntry
		want  string // part of the error; empty for none
	}{
		{JournalEntry{Run: "r", Owner: "x", Kind: Sent}, ""},
		{JournalEntry{Run: "r", Owner: "x", Kind: Began, Shared: "s", Common: []byte("c")}, ""},
		{JournalEntry{Run: "r", Owner: "x", Kind: Began, Shared: "s"}, ""},
		{JournalEntry{Run: "r", Owner: "x", Kind: Began, Configuration: "c"}, ""},
		{JournalEntry{Run: "r", Owner: "x", Kind: Sent, Configuration: "c"}, "names a configuration"},
		{JournalEntry{Owner: "x", Kind: Sent}, "names no run"},
		{JournalEntry{Run: "r", Kind: Sent}, "nobody owns"},
		{JournalEntry{Run: "r", Owner: "x", Kind: "paused"}, `no kind "paused"`},
		{JournalEntry{Run: "r", Owner: "x"}, `no kind ""`},
		{JournalEntry{Run: "r", Owner: "x", Kind: Ended, Shared: "s"}, "shared bytes"},
		{JournalEntry{Run: "r", Owner: "x", Kind: Began, Common: []byte("c")}, "shared bytes"},
		{JournalEntry{Run: "r", Owner: "x", Kind: Sent, Body: make([]byte, MaxEntry+1)}, "at most"},
	} {
		err := row.entry.Check()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s entry of %q: %v, want %q", row.entry.Kind, row.entry.Run, err, row.want)
		}
	}
}
