package ledger

import (
	"strings"
	"testing"
)

func TestEntriesThatAreWrong(t *testing.T) {
	for _, row := range []struct {
		entry Entry
		want  string // part of the error; empty for none
	}{
		{Entry{Run: "r", Owner: "x", Kind: Sent}, ""},
		{Entry{Run: "r", Owner: "x", Kind: Began, Shared: "s", Common: []byte("c")}, ""},
		{Entry{Run: "r", Owner: "x", Kind: Began, Shared: "s"}, ""},
		{Entry{Run: "r", Owner: "x", Kind: Began, Configuration: "c"}, ""},
		{Entry{Run: "r", Owner: "x", Kind: Sent, Configuration: "c"}, "names a configuration"},
		{Entry{Owner: "x", Kind: Sent}, "names no run"},
		{Entry{Run: "r", Kind: Sent}, "nobody owns"},
		{Entry{Run: "r", Owner: "x", Kind: "paused"}, `no kind "paused"`},
		{Entry{Run: "r", Owner: "x"}, `no kind ""`},
		{Entry{Run: "r", Owner: "x", Kind: Ended, Shared: "s"}, "shared bytes"},
		{Entry{Run: "r", Owner: "x", Kind: Began, Common: []byte("c")}, "shared bytes"},
		{Entry{Run: "r", Owner: "x", Kind: Sent, Body: make([]byte, MaxEntry+1)}, "at most"},
	} {
		err := row.entry.Check()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s entry of %q: %v, want %q", row.entry.Kind, row.entry.Run, err, row.want)
		}
	}
}
