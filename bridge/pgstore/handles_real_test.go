//go:build real

package pgstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/bridge/handles"
)

// What one bridge keeps another reads, for the same principal alone, for as long as the
// database's clock says, and nobody reads it in the tables.
func TestRealHandles(t *testing.T) {
	o := place()
	one, other := begin(t, o), begin(t, o)
	keep := func(principal, id, what string, lives time.Duration) {
		t.Helper()
		if err := one.KeepHandle(t.Context(), principal, handles.Kept{ID: id, Text: what}, lives, 1000); err != nil {
			t.Fatal(err)
		}
	}
	read := func(principal, id string) string {
		k, lives, err := other.Handle(t.Context(), principal, id)
		switch {
		case errors.Is(err, handles.ErrNoHandle):
			return "none"
		case err != nil:
			return err.Error()
		case k.ID != id || lives <= 0 || lives > time.Minute:
			t.Errorf("handle %s is %s, for %v", id, k.ID, lives)
		}
		return k.Text
	}
	keep("ann", "h1_x", "what ann may read", time.Minute)
	keep("bob", "h2_x", "what bob may read", time.Minute)
	keep("ann", "h3_x", "nobody", -time.Second)
	got := []string{read("ann", "h1_x"), read("bob", "h1_x"), read("", "h1_x"), read("bob", "h2_x"), read("ann", "h3_x"), read("ann", "h9_x")}
	if diff := cmp.Diff([]string{"what ann may read", "none", "none", "what bob may read", "none", "none"}, got); diff != "" {
		t.Error(diff)
	}
	conn := raw(t, o)
	var shown bool
	if err := conn.QueryRow(t.Context(), "SELECT bool_or(position('may read'::bytea IN body) > 0) FROM handles").Scan(&shown); err != nil || shown {
		t.Errorf("the table shows what it keeps: %v, %v", shown, err)
	}
	// A row that somebody gives to another principal is good for nobody.
	edit(t, o, "UPDATE handles SET principal = 'eve' WHERE id = 'h1_x'")
	if got := read("eve", "h1_x"); !strings.Contains(got, "not what was written") {
		t.Errorf("eve reads %q", got)
	}
	// The oldest give way, of that principal alone; what has expired is removed with them.
	for i := range 5 {
		keep("carl", fmt.Sprintf("h%d_y", i), strings.Repeat("y", 400), time.Minute)
	}
	keep("carl", "h5_y", strings.Repeat("z", 5000), time.Minute)
	var left string
	if err := conn.QueryRow(t.Context(), "SELECT string_agg(principal || ' ' || id, ', ' ORDER BY number) FROM handles").Scan(&left); err != nil {
		t.Fatal(err)
	}
	if want := "eve h1_x, bob h2_x, carl h5_y"; left != want {
		t.Errorf("there are %s; want %s", left, want)
	}
}
