package provenance

import (
	"reflect"
	"testing"
)

// Runs are noted with each place where they stand, all else once for each source, and what is lost as such.
func TestPieces(t *testing.T) {
	a, b := Source{Call: 1, Labels: []string{"private"}}, Source{Call: 2, Unlabelled: true}
	spans := []Span{{Offset: 1, Length: 24}, {Offset: 40, Length: 30}}
	f := Found{
		Runs:   []Run{{Source: a, Argument: "body", Spans: spans}},
		Values: []Run{{Source: b, Argument: "to", Spans: spans[:1]}, {Source: b, Argument: "cc"}},
		Also:   []Run{{Source: a, Argument: "body"}, {Source: a, Argument: "title"}},
		Lost:   []Source{b},
		Partly: true,
	}
	want := []Piece{
		{KindRun, a, "body", spans[0]}, {KindRun, a, "body", spans[1]}, {KindValue, b, "to", spans[0]}, {KindMore, a, "body", Span{}},
		{KindName, b, "subject", Span{}}, {KindLost, b, "", Span{}},
	}
	if got := f.Pieces([]Run{{Source: b, Argument: "subject"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got, want := (Found{Partly: true}).Pieces(nil), []Piece{{Kind: KindLost, Source: Source{Unlabelled: true}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("of a search that was too much: %+v", got)
	}
}
