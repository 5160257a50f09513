package instance

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func noteIn(t *testing.T) (*note, *os.File) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "note"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	n, err := newNote(f)
	if err != nil {
		t.Fatal(err)
	}
	return n, f
}

// What a note says at any time is what is open, in the order in which it came.
func TestNote(t *testing.T) {
	n, f := noteIn(t)
	random := rand.New(rand.NewPCG(1, 2))
	n.most = 500
	var want [][]json.RawMessage
	again := false
	for i := range 1000 {
		if random.IntN(2) == 0 || len(want) == 0 {
			ids := []json.RawMessage{json.RawMessage(strconv.Itoa(i)), json.RawMessage(strconv.Quote("x" + strconv.Itoa(i)))}[random.IntN(2):]
			if len(ids) == 2 && random.IntN(2) == 0 {
				ids = ids[:1]
			}
			n.Asked(ids)
			want = append(want, ids)
		} else {
			at := random.IntN(len(want))
			key := string(want[at][0])
			want = slices.Delete(want, at, at+1)
			before := n.end
			n.Answered(key)
			again = again || n.end < before && len(want) > 0
		}
		select {
		case <-n.allAnswered():
			if len(want) > 0 {
				t.Fatalf("%d are open, and all are answered", len(want))
			}
		default:
			if len(want) == 0 {
				t.Fatal("nothing is open, and not all are answered")
			}
		}
		if i%10 != 0 {
			continue
		}
		open, half, err := readNote(f)
		if err != nil || half {
			t.Fatal(half, err)
		}
		if diff := cmp.Diff(want, open); diff != "" {
			t.Fatal(diff)
		}
	}
	if !again {
		t.Error("the lines were never put together again")
	}
	n.Answered("an id that nobody asked with")
	n.writing(true)
	if _, half, err := readNote(f); !half || err != nil {
		t.Error("while a message is written:", half, err)
	}
}

// Whatever a process that was killed left, reading it ends well.
func TestReadNote(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "0": 0, "0\x00": 0, "1+1 [1]\n\x00": 1, "0+1 [1]\n+2 [2": 1, "0+1 [1]\n+2 [2,3]\n-1\n\x00+3 [4]\n": 1,
		"0\n\n-\n+\n+x [1]\n+4\n+4 []\n+4 {}\n+5 [\"a\"]\n": 1, "0-7\n": 0,
	} {
		open, half, err := readNote(strings.NewReader(text))
		if err != nil || len(open) != want || half != strings.HasPrefix(text, "1") {
			t.Errorf("%q: %s, %v, %v", text, open, half, err)
		}
	}
}
