package ledger

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A chain is a log as it is kept, made with none of the code under test but
// its row type.
type chain struct {
	store string
	key   []byte
	links []Link
}

// hashOf and sealOf follow docs/security.md.
func hashOf(store string, seq int64, prev Hash, body []byte) Hash {
	return sha256.Sum256(fmt.Appendf(nil, "codemode-bridge row 1\n%s\n%d\n%x\n%s", store, seq, prev[:], body))
}

func sealOf(store string, key []byte, seq int64, hash Hash) (s Seal) {
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "codemode-bridge seal 1\n%s\n%d\n%x", store, seq, hash[:])
	copy(s[:], m.Sum(nil))
	return s
}

func (c *chain) add(body string) {
	var prev Hash
	seq := int64(1)
	if n := len(c.links); n > 0 {
		prev, seq = c.links[n-1].Hash, c.links[n-1].Seq+1
	}
	hash := hashOf(c.store, seq, prev, []byte(body))
	c.links = append(c.links, Link{seq, hash, sealOf(c.store, c.key, seq, hash), []byte(body)})
}

// rehash makes hashes from index i on anew, and seals if it has a key.
func (c *chain) rehash(i int, key []byte) {
	for ; i < len(c.links); i++ {
		var prev Hash
		if i > 0 {
			prev = c.links[i-1].Hash
		}
		l := &c.links[i]
		l.Hash = hashOf(c.store, l.Seq, prev, l.Body)
		if key != nil {
			l.Seal = sealOf(c.store, key, l.Seq, l.Hash)
		}
	}
}

// renumber closes gaps, as one would who hides them.
func (c *chain) renumber() {
	for i := range c.links {
		c.links[i].Seq = int64(i + 1)
	}
}

func (c *chain) check(against ...Checkpoint) Report { return c.checkWith(c.key, against...) }

func (c *chain) checkWith(key []byte, against ...Checkpoint) Report {
	checker := NewChecker(c.store, key, against...)
	for _, l := range c.links {
		body := bytes.Clone(l.Body) // the reader's buffer is used again
		more := checker.Add(Link{l.Seq, l.Hash, l.Seal, body})
		clear(body)
		if !more {
			break
		}
	}
	return checker.Report()
}

func (c *chain) checkpoint() Checkpoint {
	last := c.links[len(c.links)-1]
	p := Checkpoint{Store: c.store, Seq: last.Seq, Hash: last.Hash, Time: time.Unix(0, 0)}
	p.Sign(c.key)
	return p
}

func example(n int) *chain {
	c := &chain{store: "s1", key: []byte("secret")}
	for i := range n {
		c.add(fmt.Sprintf(`{"event":"intent","call":%d}`, i+1))
	}
	return c
}

func TestCheckerFindsTheFirstBadRow(t *testing.T) {
	const n = 9
	other := &chain{store: "s2", key: []byte("other")}
	for i := range n {
		other.add(fmt.Sprintf(`{"event":"intent","call":%d}`, i+1))
	}
	for _, tamper := range []struct {
		name   string
		do     func(c *chain, i int)
		kind   Kind
		lastOK bool // at the last row it cannot be seen without a checkpoint
	}{
		{"edit the text", func(c *chain, i int) { c.links[i].Body[20] ^= 1 }, Edited, false},
		{"edit the text and its hash", func(c *chain, i int) {
			var prev Hash
			if i > 0 {
				prev = c.links[i-1].Hash
			}
			c.links[i].Body[20] ^= 1
			c.links[i].Hash = hashOf(c.store, c.links[i].Seq, prev, c.links[i].Body)
		}, Edited, false},
		{"delete", func(c *chain, i int) { c.links = slices.Delete(c.links, i, i+1) }, Removed, true},
		{"delete and renumber", func(c *chain, i int) { c.links = slices.Delete(c.links, i, i+1); c.renumber() }, Removed, true},
		{"delete three and renumber", func(c *chain, i int) { c.links = slices.Delete(c.links, i, min(i+3, len(c.links))); c.renumber() }, Removed, true},
		{"insert", func(c *chain, i int) {
			c.links = slices.Insert(c.links, i, Link{Body: []byte(`{"event":"intent"}`)})
			c.renumber()
		}, Inserted, false},
		{"insert with a hash", func(c *chain, i int) {
			var prev Hash
			if i > 0 {
				prev = c.links[i-1].Hash
			}
			l := Link{Body: []byte(`{"event":"intent"}`)}
			l.Hash = hashOf(c.store, int64(i+1), prev, l.Body)
			c.links = slices.Insert(c.links, i, l)
			c.renumber()
		}, Inserted, false},
		{"swap texts", func(c *chain, i int) {
			j := (i + 1) % len(c.links)
			c.links[i].Body, c.links[j].Body = c.links[j].Body, c.links[i].Body
		}, Edited, false},
		{"splice", func(c *chain, i int) { c.links[i] = other.links[i] }, Edited, false},
		{"rehash without the key", func(c *chain, i int) { c.links[i].Body[20] ^= 1; c.rehash(i, nil) }, Rewritten, false},
		{"rehash with another key", func(c *chain, i int) { c.links[i].Body[20] ^= 1; c.rehash(i, []byte("x")) }, Rewritten, false},
		{"cut", func(c *chain, i int) { c.links = c.links[:i] }, "", false},
	} {
		for i := range n {
			c := example(n)
			signed := c.checkpoint()
			tamper.do(c, i)
			got := c.check()
			wantKind, wantBad := tamper.kind, int64(i+1)
			switch {
			case tamper.name == "swap texts" && i == n-1:
				wantBad = 1
			case tamper.name == "insert with a hash" && i == n, tamper.name == "rehash without the key" && i == n-1,
				tamper.name == "rehash with another key" && i == n-1, tamper.name == "edit the text and its hash" && i == n-1:
				wantKind = Rewritten
			}
			if wantKind == "" || tamper.lastOK && i >= len(c.links) {
				if !got.Whole {
					t.Errorf("%s %d: %+v", tamper.name, i+1, got)
				}
				if got, wantBad = c.check(signed), int64(len(c.links)+1); got.Whole || got.Kind != Cut || got.Bad != wantBad {
					t.Errorf("%s %d, against a checkpoint: %+v, want cut at row %d", tamper.name, i+1, got, wantBad)
				}
				continue
			}
			if got.Whole || got.Kind != wantKind || got.Bad != wantBad || got.Last != wantBad-1 && tamper.name != "delete" {
				t.Errorf("%s %d: %+v, want row %d %s", tamper.name, i+1, got, wantBad, wantKind)
			}
		}
	}
}

func TestCheckerTellsMovedRows(t *testing.T) {
	for i := range 8 {
		for j := i + 1; j < 9; j++ {
			c := example(9)
			c.links[i], c.links[j] = c.links[j], c.links[i]
			c.renumber()
			if got := c.check(); got.Bad != int64(i+1) || got.Kind != Reordered {
				t.Errorf("swapped %d and %d: %+v", i+1, j+1, got)
			}
			c = example(9)
			c.links = slices.Insert(c.links, j, c.links[i])
			c.renumber()
			if got := c.check(); got.Bad != int64(j+1) || got.Kind != Inserted {
				t.Errorf("copied %d to %d: %+v", i+1, j+1, got)
			}
		}
	}
	c := example(3)
	c.links = slices.Insert(c.links, 1, c.links[0])
	if got := c.check(); got.Bad != 1 || got.Kind != Inserted {
		t.Errorf("a number twice: %+v", got)
	}
}

// Every bit of what is kept of a row counts, with the key; without it, every
// bit but the seal's.
func TestCheckerSeesEveryBit(t *testing.T) {
	c := example(2)
	for i := range c.links {
		l := &c.links[i]
		for name, part := range map[string][]byte{"text": l.Body, "hash": l.Hash[:], "seal": l.Seal[:]} {
			for bit := range 8 * len(part) {
				part[bit/8] ^= 1 << (bit % 8)
				if got := c.check(); got.Whole || got.Bad != l.Seq {
					t.Fatalf("bit %d of the %s of row %d: %+v", bit, name, l.Seq, got)
				}
				if got := c.checkWith(nil); got.Whole != (name == "seal") || got.Sealed {
					t.Fatalf("without the key, bit %d of the %s of row %d: %+v", bit, name, l.Seq, got)
				}
				part[bit/8] ^= 1 << (bit % 8)
			}
		}
	}
	if got := c.check(); !got.Whole {
		t.Fatalf("all bits back: %+v", got)
	}
}

// Who has the key can write another log. Only what was signed and kept
// elsewhere tells.
func TestCheckpointFindsWhatTheKeyHides(t *testing.T) {
	for i := range 6 {
		c := example(6)
		signed := c.checkpoint()
		c.links[i].Body[20] ^= 1
		c.rehash(i, c.key)
		c.add(`{"event":"intent"}`)
		if got := c.check(); !got.Whole {
			t.Fatalf("a log written with the key: %+v", got)
		}
		if got := c.check(signed); got.Whole || got.Kind != Rewritten || got.Bad != 6 {
			t.Errorf("row %d rewritten, against a checkpoint of row 6: %+v", i+1, got)
		}
		early := Checkpoint{Store: c.store, Seq: int64(i), Time: time.Unix(0, 0)}
		if i > 0 {
			early.Hash = c.links[i-1].Hash
			early.Sign(c.key)
			if got := c.check(early); !got.Whole {
				t.Errorf("row %d rewritten, against a checkpoint before it: %+v", i+1, got)
			}
		}
	}
}

func TestCheckerWantsRemovalsAccountedFor(t *testing.T) {
	removal := func(c *chain, last int64) string {
		text, err := json.Marshal(Removal{Rows: last, Last: last, Hash: c.links[last-1].Hash}.Record())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, row := range []struct {
		name string
		do   func(c *chain)
		bad  int64
	}{
		{"pruned", func(c *chain) { c.add(removal(c, 4)); c.links = c.links[4:] }, 0},
		{"pruned twice", func(c *chain) { c.add(removal(c, 2)); c.add(removal(c, 5)); c.add(`{}`); c.links = c.links[5:] }, 0},
		{"interrupted before the first row", func(c *chain) { c.add(removal(c, 4)) }, 0},
		{"interrupted", func(c *chain) { c.add(removal(c, 4)); c.links = c.links[2:] }, 0},
		{"all of it", func(c *chain) { c.add(removal(c, 9)); c.links = c.links[9:] }, 0},
		{"nothing accounts for it", func(c *chain) { c.links = c.links[4:] }, 1},
		{"more than was pruned", func(c *chain) { c.add(removal(c, 4)); c.links = c.links[6:] }, 5},
		{"forged without the key", func(c *chain) {
			key := c.key
			c.key = []byte("guessed")
			c.add(removal(c, 4))
			c.key, c.links = key, c.links[4:]
		}, 10},
		{"the first row edited", func(c *chain) {
			c.add(removal(c, 4))
			c.links = c.links[4:]
			c.links[0].Body[20] ^= 1
		}, 5},
	} {
		c := example(9)
		row.do(c)
		if got := c.check(); got.Whole != (row.bad == 0) || got.Bad != row.bad {
			t.Errorf("%s: %+v, want row %d", row.name, got, row.bad)
		}
	}
}

// wholeByTheBook is the second verifier: what docs/security.md says, as plainly
// as it can be written, and nothing of how the first one works.
func wholeByTheBook(c *chain) bool {
	pruned := map[int64]Hash{0: {}}
	for _, l := range c.links {
		var rec struct {
			Event  string
			Detail struct {
				Last int64
				Hash Hash
			}
		}
		if json.Unmarshal(l.Body, &rec) == nil && rec.Event == "pruned" {
			pruned[rec.Detail.Last] = rec.Detail.Hash
		}
	}
	upTo := int64(0)
	for last := range pruned {
		upTo = max(upTo, last)
	}
	for i, l := range c.links {
		if l.Seal != sealOf(c.store, c.key, l.Seq, l.Hash) {
			return false
		}
		if i > 0 {
			if l.Seq != c.links[i-1].Seq+1 || l.Hash != hashOf(c.store, l.Seq, c.links[i-1].Hash, l.Body) {
				return false
			}
		} else if l.Seq > upTo+1 {
			return false
		} else if prev, known := pruned[l.Seq-1]; known && (l.Seq == 1 || l.Seq == upTo+1) && l.Hash != hashOf(c.store, l.Seq, prev, l.Body) {
			return false
		}
	}
	return true
}

func TestTwoVerifiersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &chain{store: "s", key: []byte("k")}
		for range rapid.IntRange(1, 12).Draw(t, "rows") {
			if n := int64(len(c.links)); n > 0 && rapid.IntRange(0, 5).Draw(t, "prune") == 0 {
				last := rapid.Int64Range(1, n).Draw(t, "last")
				text, _ := json.Marshal(Removal{Rows: last, Last: last, Hash: c.links[last-1].Hash}.Record())
				c.add(string(text))
				continue
			}
			c.add(`{"event":"intent","error":"` + rapid.StringMatching(`[a-z]{0,9}`).Draw(t, "text") + `"}`)
		}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			if len(c.links) == 0 {
				break
			}
			pick := func() int { return rapid.IntRange(0, len(c.links)-1).Draw(t, "row") }
			i, j := pick(), pick()
			switch rapid.IntRange(0, 8).Draw(t, "change") {
			case 0:
				c.links[i].Body = slices.Clone(c.links[i].Body)
				c.links[i].Body[rapid.IntRange(0, len(c.links[i].Body)-1).Draw(t, "byte")] ^= 1
			case 1:
				c.links[i].Hash[rapid.IntRange(0, 31).Draw(t, "byte")] ^= 1
			case 2:
				c.links[i].Seal[rapid.IntRange(0, 15).Draw(t, "byte")] ^= 1
			case 3:
				c.links = slices.Delete(c.links, i, i+1)
			case 4:
				a, b := c.links[i].Seq, c.links[j].Seq
				c.links[i], c.links[j] = c.links[j], c.links[i]
				c.links[i].Seq, c.links[j].Seq = a, b
			case 5:
				c.links = c.links[i:]
			case 6:
				c.links = c.links[:i]
			case 7:
				first := c.links[0].Seq
				c.links = slices.Insert(c.links, i, c.links[j])
				for k := range c.links {
					c.links[k].Seq = first + int64(k)
				}
			case 8:
				c.links[i].Seq, c.links[i].Hash = c.links[j].Seq, c.links[j].Hash
				slices.SortStableFunc(c.links, func(a, b Link) int { return int(a.Seq - b.Seq) })
			}
		}
		if got, want := c.check(), wholeByTheBook(c); got.Whole != want {
			t.Fatalf("%+v, the second verifier says %v\n%+v", got, want, c.links)
		}
	})
}

// The worked example of docs/security.md is recomputed from its own words.
func TestDocumentedExample(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	value := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^    (store|key|seq|previous|body|hash|seal|checkpoint) *= (.*)$`).FindAllSubmatch(text, -1) {
		value[string(m[1])] = string(m[2])
	}
	prev, err := ParseHash(value["previous"])
	if err != nil {
		t.Fatal(err)
	}
	hash := HashRow(value["store"], 1, prev, []byte(value["body"]))
	seal := NewKeyring(value["store"], []byte(value["key"])).Seal(1, hash)
	p := Checkpoint{Store: value["store"], Seq: 1, Hash: hash, Time: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	p.Sign([]byte(value["key"]))
	for name, got := range map[string]string{"seq": "1", "hash": hash.String(), "seal": fmt.Sprintf("%x", seal[:]), "checkpoint": p.String()} {
		if value[name] != got {
			t.Errorf("docs/security.md says %s = %s, want %s", name, value[name], got)
		}
	}
	rec, err := Decode([]byte(value["body"]))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := Encode(rec, nil); err != nil || string(body) != value["body"] {
		t.Errorf("the body of the example is written as %s, %v", body, err)
	}
}

func TestParseCheckpoint(t *testing.T) {
	line := example(3).checkpoint().String()
	for _, bad := range []string{"", line[1:], line + "0", line[:len(line)-1], "x " + line,
		"codemode-bridge checkpoint 2" + line[len("codemode-bridge checkpoint 1"):], line[:40] + " " + line[40:]} {
		if c, err := ParseCheckpoint(bad); err == nil {
			t.Errorf("%q reads as %v", bad, c)
		}
	}
	if _, err := ParseCheckpoint(" " + line + "\r\n"); err != nil {
		t.Error(err)
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add(example(3).checkpoint().String())
	f.Fuzz(func(t *testing.T, line string) {
		c, err := ParseCheckpoint(line)
		if err != nil {
			return
		}
		if again, err := ParseCheckpoint(c.String()); err != nil || again != c {
			t.Fatalf("%q reads as %v, which reads as %v, %v", line, c, again, err)
		}
	})
}

func TestGlob(t *testing.T) {
	naive := func(pattern, text string) bool {
		quoted := regexp.QuoteMeta(pattern)
		return regexp.MustCompile(`(?s)\A` + regexp.MustCompile(`\\\*`).ReplaceAllString(quoted, ".*") + `\z`).MatchString(text)
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*_.]{0,8}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[ab_.]{0,8}`).Draw(t, "text")
		if got, want := Glob(pattern, text), naive(pattern, text); got != want {
			t.Fatalf("%q over %q: %v, want %v", pattern, text, got, want)
		}
	})
}
