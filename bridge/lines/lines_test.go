package lines

import (
	"slices"
	"strings"
	"testing"
)

func TestCutPadTail(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text           string
		width          int
		cut, pad, tail string
	}{
		{"short", 8, "short", "short   ", "short"},
		{"exactly8", 8, "exactly8", "exactly8", "exactly8"},
		{"too long for it", 8, "too lon…", "too long for it", "g for it"},
		{"名前は長い", 7, "名前は…", "名前は長い", "は長い"}, // each takes two cells
	} {
		if got := Cut(row.text, row.width); got != row.cut {
			t.Errorf("cut to %d, %q is %q, want %q", row.width, row.text, got, row.cut)
		}
		if got := Pad(row.text, row.width); got != row.pad {
			t.Errorf("padded to %d, %q is %q, want %q", row.width, row.text, got, row.pad)
		}
		if got := Tail(row.text, row.width); got != row.tail {
			t.Errorf("the last %d of %q are %q, want %q", row.width, row.text, got, row.tail)
		}
	}
}

func TestHang(t *testing.T) {
	t.Parallel()
	text := "a sentence that goes on, andawordthatislongerthanaline"
	got := Hang(text, 20, "  ")
	if want := []string{"a sentence that ", "  goes on, andawordt", "  hatislongerthanali", "  ne"}; !slices.Equal(got, want) {
		t.Errorf("broken as %q, want %q", got, want)
	}
	if all := strings.ReplaceAll(strings.Join(got, "\n"), "\n  ", ""); all != text {
		t.Errorf("what is left is %q", all)
	}
}
