package provenance

import "testing"

// Of two calls under way that lead elsewhere nobody knows which is the last.
func TestPagesThatOverlap(t *testing.T) {
	t.Parallel()
	var b Met
	w := Whose{Server: "s"}
	one := b.Depart(w)
	if got := b.At(w); got != "" {
		t.Errorf("on the way: %q", got)
	}
	two := b.Depart(w)
	two("two")
	one("one")
	if got := b.At(w); got != "" {
		t.Errorf("after two at a time: %q", got)
	}
	b.Depart(w)("three")
	if got := b.At(w); got != "three" {
		t.Errorf("then one: %q", got)
	}
}
