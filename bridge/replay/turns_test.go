package replay

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var someTurns = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Turn {
	turn := Turn{Call: rapid.IntRange(0, 1<<31).Draw(t, "call"), At: time.Unix(0, rapid.Int64().Draw(t, "at")).UTC()}
	if answer := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "answer"); len(answer) > 0 {
		turn.Answer = answer
	}
	return turn
}), 1, 20)

// What was written is read, whichever of the turns are known already; a journal that
// leaves out turns, or is cut off, is not.
func TestTurnsAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := someTurns.Draw(t, "turns")
		first := rapid.IntRange(0, len(turns)).Draw(t, "first")
		known := rapid.IntRange(first, len(turns)).Draw(t, "known")
		before := AppendTurns([]byte("x"), turns[first:])
		if before[0] != 'x' {
			t.Fatal("what was there is gone")
		}
		packed := before[1:]
		got, err := ReadTurns(slices.Clone(turns[:known]), first, packed)
		if err != nil || !reflect.DeepEqual(got, turns) {
			t.Fatalf("%v (%v), want %v", got, err, turns)
		}
		if _, err := ReadTurns(nil, first, packed); (err == nil) != (first == 0) {
			t.Fatalf("from turn %d on: %v", first, err)
		}
		cut := packed[:rapid.IntRange(0, len(packed)).Draw(t, "cut")]
		if got, err := ReadTurns(nil, 0, cut); err == nil && !reflect.DeepEqual(AppendTurns(nil, got), slices.Clone(cut)) && len(cut) > 0 {
			t.Fatalf("of %x it reads %v", cut, got)
		}
	})
}

// What claims more than there is takes no memory.
func TestDamagedTurns(t *testing.T) {
	for _, damaged := range [][]byte{{0x80}, {2, 0x80}, {2, 2}, {2, 2, 0x80}, {2, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, {2, 2, 5, 'a'}} {
		if got, err := ReadTurns(nil, 0, damaged); err == nil {
			t.Errorf("%x is %v", damaged, got)
		}
	}
	if _, err := ReadTurns(nil, -1, nil); err == nil {
		t.Error("a turn before the first")
	}
}

// Journals of releases before turns were packed have them as JSON.
func TestTurnsInJSON(t *testing.T) {
	var got []Turn
	if err := json.Unmarshal([]byte(`[{"c":3,"t":1000000001,"a":"YWJj"},{"c":4,"t":2}]`), &got); err != nil {
		t.Fatal(err)
	}
	want := []Turn{{3, time.Unix(1, 1).UTC(), []byte("abc")}, {4, time.Unix(0, 2).UTC(), nil}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
