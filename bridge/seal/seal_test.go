package seal

import (
	"errors"
	"testing"
	"time"
)

// A state is read by whoever has the key, for the principal and the call that it
// was sealed for, until it expires; and a state sealed twice gives two texts.
func TestAStateIsReadWhereItBelongs(t *testing.T) {
	key, now := make([]byte, 32), time.Unix(1000, 0)
	one, err := New(key)
	if err != nil {
		t.Fatal(err)
	}
	same, err := New(key)
	if err != nil {
		t.Fatal(err)
	}
	another, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := one.Close(State{Run: "r1", Principal: "ci", Call: "c", Expires: now})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := one.Close(State{Run: "r1", Principal: "ci", Call: "c", Expires: now}); err != nil || again == text {
		t.Errorf("the same state is sealed as the same text: %v", err)
	}
	if st, err := same.Open(text, "ci", "c", now); err != nil || st.Run != "r1" || st.ID == "" {
		t.Errorf("read is %+v, %v", st, err)
	}
	altered := []byte(text)
	altered[len(altered)/2] ^= 1
	for name, row := range map[string]struct {
		seal                  *Seal
		text, principal, call string
		at                    time.Time
	}{
		"another key":       {another, text, "ci", "c", now},
		"another principal": {one, text, "ann", "c", now},
		"another call":      {one, text, "ci", "d", now},
		"too late":          {one, text, "ci", "c", now.Add(time.Second)},
		"altered":           {one, string(altered), "ci", "c", now},
		"cut":               {one, text[:8], "ci", "c", now},
		"no state":          {one, "x", "ci", "c", now},
	} {
		if st, err := row.seal.Open(row.text, row.principal, row.call, row.at); !errors.Is(err, ErrInvalid) || st.Run != "" {
			t.Errorf("%s: read is %+v, %v", name, st, err)
		}
	}
}

// States that an older release sealed have no ID: what came of one does not affect
// the others.
func TestStatesOfAnOlderRelease(t *testing.T) {
	s, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Use(State{Run: "r1"}).Left = []string{"q1"}
	if got := s.Use(State{Run: "r2"}); len(got.Left) > 0 || got.Missed == nil {
		t.Errorf("another state has %+v", got)
	}
	s.Use(State{ID: "a"}).Left = []string{"q1"}
	if got := s.Use(State{ID: "a"}); len(got.Left) != 1 {
		t.Errorf("the same state has %+v", got)
	}
}
